"""Ties of votes: the lowest class, or on request the class whose margins add up to most."""

import numpy as np
import pytest
import torch
from sklearn.multiclass import _ovr_decision_function

import torch_multiclass as tm

K = 4


def scores_of(rows=400):
    g = torch.Generator().manual_seed(0)
    return tm.CodedScores(torch.randn(rows, K * (K - 1) // 2, generator=g, dtype=torch.float64), tm.codes.one_vs_one(K))


def test_votes_are_broken_as_in_scikit_learn():
    scores = scores_of()
    f = scores.margins.numpy()
    # there the second class of a pair is the positive one
    theirs = _ovr_decision_function(f < 0, -f, K).argmax(1)
    counts = tm.VotingDecoder().class_scores(scores)
    tied = (counts == counts.amax(-1, keepdim=True)).sum(-1) > 1
    assert int(tied.sum()) > 50
    assert np.array_equal(tm.VotingDecoder(ties="confidence")(scores).numpy(), theirs)
    assert not torch.equal(tm.VotingDecoder()(scores), tm.VotingDecoder(ties="confidence")(scores))


@pytest.mark.parametrize("make", [tm.VotingDecoder, tm.HammingDecoder])
def test_only_ties_change(make):
    scores = scores_of()
    plain, broken = make(), make(ties="confidence")
    counts = plain.class_scores(scores)
    best = counts == counts.amax(-1, keepdim=True)
    chosen = broken(scores)
    assert bool(best.gather(-1, chosen.unsqueeze(-1)).all())
    alone = best.sum(-1) == 1
    assert torch.equal(chosen[alone], plain(scores)[alone])
    assert float((broken.class_scores(scores) - counts).abs().max()) < 0.25
    confidence = scores.margins @ scores.code.double().T
    assert torch.equal(chosen, torch.where(best, confidence, -torch.inf).argmax(-1))
    some = tm.CodedScores(scores.margins.view(20, 4, 5, -1), scores.code)
    assert torch.equal(broken(some), chosen.view(20, 4, 5))
    nothing = tm.CodedScores(torch.zeros(1, scores.num_columns), scores.code)
    assert torch.equal(broken.class_scores(nothing), plain.class_scores(nothing))
    assert repr(broken) == f"{make.__name__}(ties='confidence')"
    with pytest.raises(ValueError, match="ties: got 'x'; accepted are 'lowest', 'confidence'"):
        make(ties="x")


def test_many_pairs_block_by_block():
    head = tm.OneVsOneHead(6, 300, decoder=tm.VotingDecoder(ties="confidence"))
    scores = head(torch.randn(5, 6)).detach()
    written = tm.CodedScores(scores.margins, scores.code, name="one_vs_one")
    torch.testing.assert_close(scores.agreement(), written.agreement(), rtol=1e-5, atol=1e-5)


def test_infinite_margins_and_absent_classes():
    scores = tm.CodedScores(
        torch.tensor([[torch.inf, -torch.inf, torch.inf], [0.0, 0.0, 0.0]]),
        tm.codes.one_vs_one(3),
        torch.tensor([False, False, True]),
    )
    for make in (tm.VotingDecoder, tm.HammingDecoder):
        labels = make(ties="confidence")(scores)
        assert bool((labels < 2).all())
    nan = tm.CodedScores(torch.tensor([[torch.nan, 1.0, 1.0]]), tm.codes.one_vs_one(3))
    assert bool(tm.VotingDecoder(ties="confidence").class_scores(nan).isnan().any())


def test_a_ranking_over_another_dimension():
    scores = torch.randn(2, 5, 3, 3)
    assert torch.equal(tm.RankingDecoder(class_dim=1)(scores), tm.RankingDecoder()(scores.movedim(1, -1)))
    assert repr(tm.RankingDecoder(class_dim=1)) == "RankingDecoder(class_dim=1)"
