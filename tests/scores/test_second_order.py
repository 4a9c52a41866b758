"""Scores of second-order chains."""

import pytest
import torch

import torch_multiclass as tm
from tests.references.structures import enumerate_second_order
from tests.scores.structures import Numbers, StructureContract


def expanded(part, scores, *own):
    n = scores.batch_shape.numel()
    return [None] * n if part is None else part.expand(*scores.batch_shape, *own).reshape(n, *own)


class TestSecondOrderScores(StructureContract):
    parts = ("emissions", "transitions", "trans2", "start", "end")

    def draw(self, seed):
        n = Numbers(seed)
        steps, k = n.whole(1, 5), n.whole(1, 4)
        where, kept = n.positions(steps)
        moves = n.scores(*n.batch, steps - 1, k, k) if seed % 2 else n.scores(k, k)
        end = n.scores(*n.batch, k)
        emissions = n.junk(n.scores(*n.batch, steps, k), kept)
        return tm.SecondOrderScores(emissions, moves, n.scores(k, k, k), start=n.scores(k), end=end, **where)

    def rows(self, scores):
        steps, k = scores.emissions.shape[-2:]
        e = expanded(scores.emissions, scores, steps, k)
        per_step = scores.transitions.ndim > 2
        moves = expanded(scores.transitions, scores, *((steps - 1, k, k) if per_step else (k, k)))
        start, end = (expanded(part, scores, k) for part in (scores.start, scores.end))
        kept = self.flat(scores, self.kept(scores))
        return [enumerate_second_order(e[b], moves[b], scores.trans2, start[b], end[b], kept[b]) for b in range(len(e))]


def test_without_trans2_it_is_the_chain_to_the_last_bit_of_the_label():
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        e, moves = (torch.randn(s, generator=g) for s in [(8, 12, 5), (5, 5)])
        mask = torch.rand(8, 12, generator=g) < 0.7
        chain = tm.ChainScores(e, moves, mask=mask)
        scores = tm.SecondOrderScores(e, moves, torch.zeros(5, 5, 5), mask=mask)
        assert torch.equal(scores.decode().labels, chain.decode().labels)
        target = torch.randint(5, (8, 12), generator=g)
        for loss in [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()]:
            torch.testing.assert_close(loss(scores, target), loss(chain, target), rtol=1e-5, atol=1e-5)


def test_far_from_zero():
    """A level shared by all emissions of float32 costs no digits."""
    g = torch.Generator().manual_seed(0)
    e, moves, second = (torch.randn(s, generator=g) for s in [(2, 512, 4), (4, 4), (4, 4, 4)])
    e = (e * 8).round() / 8  # exact beside 1e4
    target = torch.randint(4, (2, 512), generator=g)
    for loss in [tm.CRFLoss(), tm.M3NLoss()]:
        near = loss(tm.SecondOrderScores(e.double(), moves.double(), second.double()), target)
        far = loss(tm.SecondOrderScores(e + 1e4, moves, second), target)
        torch.testing.assert_close(far.double(), near, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("trans2", "message"),
    [
        (torch.zeros(2, 3, 3), r"trans2: got shape \(2, 3, 3\); accepted is \(3, 3, 3\)"),
        (torch.zeros(3, 3, 3, dtype=torch.float64), "trans2: has dtype torch.float64"),
        (torch.zeros(3, 3, 3, dtype=torch.long), "trans2: got dtype torch.int64"),
    ],
)
def test_bad_input(trans2, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tm.SecondOrderScores(torch.zeros(1, 4, 3), torch.zeros(3, 3), trans2)


def test_a_confident_batch_loses_no_digit_to_large_scores():
    g = torch.Generator().manual_seed(0)
    e, w, v = (1e3 * torch.randn(shape, generator=g) for shape in [(8, 64, 5), (5, 5), (5, 5, 5)])
    wide = tm.SecondOrderScores(e.double(), w.double(), v.double())
    y = wide.decode().labels
    for target in (y, torch.where(torch.arange(64) == 3, -100, y)):
        ours = tm.CRFLoss(reduction="none")(tm.SecondOrderScores(e, w, v), target)
        assert ours.dtype == torch.float32
        expected = tm.CRFLoss(reduction="none")(wide, target).float()
        torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-9)
