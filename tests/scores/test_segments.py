"""Scores of semi-Markov segments."""

import pytest
import torch

import torch_multiclass as tm
from tests.references.structures import enumerate_segments
from tests.scores.structures import INF, Numbers, StructureContract
from tests.scores.test_second_order import expanded
from torch_multiclass.metrics import SpanF1


class TestSegmentScores(StructureContract):
    parts = ("segments", "transitions", "start", "end")

    def draw(self, seed):
        n = Numbers(seed)
        steps, most, k = n.whole(1, 5), n.whole(1, 4), n.whole(1, 3)
        where, kept = n.positions(steps)
        longest = (most, *(n.whole(1, most + 1) for _ in range(k - 1)))
        segments = n.junk(n.scores(*n.batch, steps, most, k), kept)
        ends = {"start": n.scores(k), "end": n.scores(*n.batch, k)}
        return tm.SegmentScores(segments, n.scores(k, k), longest=None if seed % 2 else longest, **ends, **where)

    def rows(self, scores):
        steps, most, k = scores.segments.shape[-3:]
        own = expanded(scores.segments, scores, steps, most, k)
        start, end = (expanded(part, scores, k) for part in (scores.start, scores.end))
        kept = self.flat(scores, self.kept(scores))
        return [
            enumerate_segments(own[b], scores.transitions, start[b], end[b], kept[b], scores.longest)
            for b in range(len(own))
        ]

    def golds(self, scores, seed):
        partial, gold = super().golds(scores, seed)
        # segments that are too long are refused at the door; here they shrink to what begins
        return torch.where(partial >= scores.num_kinds, -100, partial), gold


def test_segments_of_length_one_are_the_chain():
    for seed in range(10):
        g = torch.Generator().manual_seed(seed)
        e, moves = (torch.randn(s, generator=g) for s in [(8, 12, 5), (5, 5)])
        mask = torch.rand(8, 12, generator=g) < 0.7
        chain = tm.ChainScores(e, moves, mask=mask)
        scores = tm.SegmentScores(e.unsqueeze(-2), moves, mask=mask)
        assert scores.num_classes == 5
        assert torch.equal(scores.decode().labels, chain.decode().labels)
        target = torch.randint(5, (8, 12), generator=g)
        for loss in [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()]:
            torch.testing.assert_close(loss(scores, target), loss(chain, target), rtol=1e-5, atol=1e-5)


def test_a_gold_segment_that_is_too_long_is_named_and_forbidden():
    scores = tm.SegmentScores(torch.zeros(2, 5, 3, 2), torch.zeros(2, 2), longest=(3, 2))
    target = torch.tensor([[0, 2, 2, 1, 3], [0, 1, 3, 3, 0]])
    with pytest.raises(
        ValueError, match="target: has a segment of kind 1 with 3 positions or more; accepted are at most 2"
    ):
        tm.CRFLoss()(scores, target)
    for loss in [tm.CRFLoss, tm.M3NLoss, tm.SVMStructLoss, tm.StructuredPerceptronLoss]:
        values = loss(reduction="none", validate_args=False)(scores, target)
        assert values[1] == INF
        assert values[0] < INF


def test_a_gold_segment_across_a_hole_is_counted_without_it():
    mask = torch.tensor([[True, False, True, True]])
    scores = tm.SegmentScores(torch.zeros(1, 4, 2, 1), torch.zeros(1, 1), mask=mask)
    assert tm.CRFLoss()(scores, torch.tensor([[0, 1, 1, 0]])) < INF
    with pytest.raises(ValueError, match="kind 0 with 3 positions"):
        tm.CRFLoss()(scores, torch.tensor([[0, 0, 1, 1]]))


def test_tags_serve_constraints_and_span_metrics():
    tags = tm.segment_tags(["O", "PER", "LOC"], longest=4)
    assert tags == ["O", "B-PER", "B-LOC", "I-PER", "I-LOC"]
    assert tm.segment_tags(["O", "PER", "LOC"], longest=(1, 1, 2)) == ["O", "B-PER", "B-LOC", "I-LOC"]
    constraints = tm.tag_constraints(tags)
    scores = tm.SegmentScores(torch.randn(3, 9, 4, 3), torch.randn(3, 3), longest=(1, 4, 4))
    chain = tm.ChainScores(torch.zeros(3, 9, 5), constraints.transitions, start=constraints.start)
    assert (chain.score(scores.sample(20)) > -INF).all()
    decoded = scores.decode().labels
    assert SpanF1(tags)(decoded, decoded) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"longest": (2,)}, "longest: got .* accepted are 2 whole numbers"),
        ({"longest": (2, 4)}, "longest: 4 is outside 1..3"),
        ({"longest": (0, 1)}, "longest: got 0"),
        ({"start": torch.zeros(3)}, "start: got shape"),
        ({"transitions": torch.zeros(3, 3)}, "transitions: got shape"),
        ({"segments": torch.zeros(5, 2)}, "segments: got shape"),
        ({"lengths": torch.tensor([9])}, "lengths: 9 is outside 0..5"),
    ],
)
def test_bad_input(arguments, message):
    given = {"segments": torch.zeros(1, 5, 3, 2), "transitions": torch.zeros(2, 2)} | arguments
    with pytest.raises(ValueError, match=message):
        tm.SegmentScores(**given)


@pytest.mark.parametrize("kinds", [["O", "PER"], ["PER"]])
def test_bad_tags(kinds):
    with pytest.raises(ValueError, match="longest: "):
        tm.segment_tags(kinds, (2, 3))


def test_lengths_of_kinds_and_flags_are_named():
    scores = torch.zeros(1, 3, 2, 2)
    with pytest.raises(ValueError, match=r"longest: got shape \(\); accepted is \(2,\)"):
        tm.SegmentScores(scores, torch.zeros(2, 2), longest=torch.tensor(2))
    with pytest.raises(TypeError, match="legal: got"):
        tm.SegmentScores(scores, torch.zeros(2, 2)).posterior_decode(legal=torch.tensor(1.0))


@pytest.mark.parametrize(
    "scores",
    [
        tm.ChainScores(torch.zeros(2, 0, 3), torch.zeros(3, 3)),
        tm.SegmentScores(torch.zeros(2, 0, 3, 2), torch.zeros(2, 2)),
        tm.TreeScores(torch.zeros(2, 0, 3), torch.zeros(3, 3), torch.zeros(0, dtype=torch.long)),
        tm.SecondOrderScores(torch.zeros(2, 0, 3), torch.zeros(3, 3), torch.zeros(3, 3, 3)),
    ],
    ids=lambda scores: type(scores).__name__,
)
def test_sequences_without_a_position_have_one_labelling(scores):
    assert scores.log_partition().tolist() == [0, 0]
    assert scores.decode().labels.shape == (2, 0)
    assert tm.CRFLoss()(scores, torch.zeros(2, 0, dtype=torch.long)) == 0
