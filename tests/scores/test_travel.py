"""Scores of several batches put together, and sent through other libraries' loops, that are those of one batch."""

import pytest
import torch

import torch_multiclass as tm

D, K = 4, 3
PARENTS = torch.tensor([-1, 0, 0, 1, 1, 2, 2])


def scorers():
    torch.manual_seed(0)
    return {
        "chain": tm.ChainScorer(D, K),
        "second order": tm.SecondOrderScorer(D, K),
        "segments": tm.SegmentScorer(D, 2, 3, longest=(1, 3)),
        "tree": tm.LabelTreeScorer(D, K),
    }


def batch(name, steps, how, rows=2):
    features = torch.randn(rows, steps, D)
    lengths = torch.arange(rows) + steps - rows + 1
    given = {"parents": PARENTS[:steps]} if name == "tree" else {}
    if how == "lengths":
        given["lengths"] = lengths
    if how == "mask":
        given["mask"] = torch.rand(rows, steps) < 0.7
    return features, given


@pytest.mark.parametrize("ways", [("none", "none"), ("lengths", "lengths"), ("mask", "mask"), ("lengths", "none")])
@pytest.mark.parametrize("name", scorers())
def test_sequences_are_padded_to_the_longest(name, ways):
    scorer = scorers()[name]
    parts = [scorer(x, **given) for x, given in (batch(name, 5, ways[0]), batch(name, 7, ways[1], 3))]
    whole = torch.cat(parts)
    assert whole.shape[:2] == (5, 7)
    for verb in ("log_partition", "max_score", "entropy"):
        torch.testing.assert_close(getattr(whole, verb)(), torch.cat([getattr(part, verb)() for part in parts]))
    labels = whole.decode().labels
    assert torch.equal(labels[:2, :5], parts[0].decode().labels)
    assert torch.equal(labels[2:], parts[1].decode().labels)
    assert bool((labels[:2, 5:] == -100).all())
    if ways == ("lengths", "lengths"):
        assert whole.mask is None  # what says which positions count stays as it was


def test_a_matrix_for_each_step_is_padded_too():
    parts = [tm.ChainScores(torch.randn(2, t, K), torch.randn(2, t - 1, K, K), start=torch.randn(2, K)) for t in (3, 6)]
    whole = torch.cat(parts)
    assert whole.transitions.shape == (4, 5, K, K)
    torch.testing.assert_close(whole.log_partition(), torch.cat([part.log_partition() for part in parts]))
    with pytest.raises(ValueError, match="tensors: some have transitions of their own and some have not"):
        torch.cat([parts[0], tm.ChainScores(torch.randn(2, 3, K), torch.randn(K, K), start=torch.randn(2, K))])


def test_what_is_shared_has_to_agree():
    a, b = tm.ChainScorer(D, K), tm.ChainScorer(D, K)
    x = torch.randn(2, 5, D)
    with pytest.raises(ValueError, match="tensors: have different transitions"):
        torch.cat([a(x), b(x)])
    with pytest.raises(ValueError, match="tensors: have different code"):
        torch.cat(
            [tm.CodedScores(torch.zeros(2, 3), getattr(tm.codes, name)(3)) for name in ("one_vs_all", "one_vs_one")]
        )


def test_gradients_reach_every_batch():
    scorer = tm.ChainScorer(D, K)
    x, y = [torch.randn(2, t, D) for t in (3, 5)], [torch.randint(K, (2, t)) for t in (3, 5)]
    apart = sum(tm.CRFLoss(reduction="sum")(scorer(part), gold) for part, gold in zip(x, y, strict=True))
    expected = torch.autograd.grad(apart, scorer.chain.transitions)[0]
    gold = torch.cat([torch.nn.functional.pad(y[0], (0, 2), value=-100), y[1]])
    whole = tm.CRFLoss(reduction="sum")(torch.cat([scorer(part) for part in x]), gold)
    torch.testing.assert_close(torch.autograd.grad(whole, scorer.chain.transitions)[0], expected)


def coded(name):
    if name == "many pairs":  # whose margins are computed as they are read
        return tm.OneVsOneHead(D, 300)
    return tm.ECOCHead(D, 6, code=name, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["one_vs_all", "sparse_random", "many pairs"])
def test_coded_scores(name):
    head = coded(name)
    scores = head(torch.randn(5, D))
    whole = torch.cat([scores[:2], scores[2:]])
    assert torch.equal(head.predict(whole), head.predict(scores))
    assert torch.equal(head.predict(scores[:1].with_rows(scores.as_rows())), head.predict(scores))
    assert list(scores.as_rows()) == [scores.leading]
    with pytest.raises(ValueError, match="got shape"):
        scores.with_rows({scores.leading: torch.zeros(5, 1)})
    assert scores.double().dtype == torch.float64


@pytest.mark.parametrize("name", ["chain", "second order", "segments", "tree"])
@pytest.mark.parametrize("value", [0, -100])
def test_rows_that_a_trainer_pads_are_masked(name, value):
    """As ``nested_concat`` of a Hugging Face trainer and ``pad_across_processes`` of accelerate do."""
    scorer = scorers()[name]
    (x, given), (longer, more) = batch(name, 5, "mask"), batch(name, 7, "lengths")
    scores, like = scorer(x, **given), scorer(longer, **more)
    rows = {
        key: torch.nn.functional.pad(part, (0, 0) * (part.ndim - 2) + (0, 2), value=value) if part.ndim > 1 else part
        for key, part in scores.as_rows().items()
    }
    torch.testing.assert_close(like.with_rows(rows).log_partition(), scores.log_partition())


def test_lightning_changes_what_pairs_come_from():
    utilities = pytest.importorskip("lightning_utilities.core.apply_func")
    head = coded("many pairs")
    scores = head(torch.randn(2, D))
    assert torch.equal(
        head.predict(utilities.apply_to_collection(scores, torch.Tensor, lambda x: x)), head.predict(scores)
    )
