"""What all labellings of a chain share changes nothing that compares them, however large it is."""

import pytest
import torch

import torch_multiclass as tm

LEVEL = 2.0**23  # float32 holds this and a small whole number exactly
LOSSES = [
    tm.CRFLoss(),
    tm.CRFLoss(cost="hamming"),
    tm.CRFLoss(temperature=0.5),
    tm.M3NLoss(),
    tm.SVMStructLoss(),
    tm.StructuredPerceptronLoss(),
]


def parts(k, per_step, device):
    generator = torch.Generator().manual_seed(k)

    def whole(*shape):
        return torch.randint(-3, 4, shape, generator=generator).float().to(device)

    moves = whole(2, 4, k, k) if per_step else whole(k, k)
    return {"emissions": whole(2, 5, k) / 2, "transitions": moves, "start": whole(k), "end": whole(2, k)}


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("name", ["transitions", "start", "end"])
@pytest.mark.parametrize("k", [1, 3])
def test_losses_keep_their_digits(k, name, per_step, device):
    given = parts(k, per_step, device)
    shifted = {**given, name: given[name] + LEVEL}
    lengths = torch.tensor([5, 3], device=device)
    target = torch.randint(k, (2, 5)).to(device)
    for loss in LOSSES:
        expected = loss(tm.ChainScores(**given, lengths=lengths), target)
        torch.testing.assert_close(loss(tm.ChainScores(**shifted, lengths=lengths), target), expected)


@pytest.mark.parametrize("name", ["transitions", "start", "end"])
def test_draws_and_divergences_keep_theirs(name):
    given = parts(3, False, "cpu")
    plain, shifted = (tm.ChainScores(**given | {name: given[name] + level}) for level in (0.0, LEVEL))
    draws = [scores.sample(20, generator=torch.Generator().manual_seed(1)) for scores in (plain, shifted)]
    assert torch.equal(*draws)
    other = tm.ChainScores(torch.zeros(2, 5, 3), torch.eye(3))
    torch.testing.assert_close(shifted.kl(other), plain.kl(other))
    assert torch.equal(shifted.decode().labels, plain.decode().labels)
    assert torch.equal(shifted.top(4).labels, plain.top(4).labels)


def test_one_label_and_transitions_of_any_size():
    """With a single label there is nothing to lose."""
    chain = tm.ChainScores(torch.randn(5, 1), torch.full((1, 1), 1e8), start=torch.randn(1), end=torch.randn(1))
    for loss in LOSSES:
        assert loss(chain, torch.zeros(5, dtype=torch.long)) == 0


@pytest.mark.parametrize("size", [1e5, 1e7])
def test_margin_losses_keep_their_digits_beside_large_transitions(size):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        emissions = torch.randn(4, 6, 3, generator=generator)
        transitions = torch.randn(3, 3, generator=generator) * size
        scores, exact = (
            tm.ChainScores(e, t) for e, t in ((emissions, transitions), (emissions.double(), transitions.double()))
        )
        target = exact.decode().labels
        for loss in (tm.M3NLoss(reduction="none"), tm.StructuredPerceptronLoss(reduction="none")):
            found, right = loss(scores, target), loss(exact, target)
            assert (found >= 0).all()
            if size < 1e6:
                torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)


def test_a_labelled_row_keeps_its_value_beside_one_with_open_labels():
    torch.manual_seed(30)
    emissions, transitions = torch.randn(2, 4, 3), torch.randn(3, 3) * 1e5
    target = tm.ChainScores(emissions, transitions).decode().labels
    target[1, 1] = -100
    loss = tm.CRFLoss(reduction="none")
    beside, alone = (
        loss(tm.ChainScores(emissions, transitions), target),
        loss(tm.ChainScores(emissions[:1], transitions), target[:1]),
    )
    assert beside[0] == alone[0]
    torch.testing.assert_close(beside.double(), loss(tm.ChainScores(emissions.double(), transitions.double()), target))


def test_the_best_labellings_are_scored_in_order():
    torch.manual_seed(57)
    emissions, transitions = torch.randn(8, 7, 5), torch.randn(5, 5) * 1e5
    assert (tm.ChainScores(emissions, transitions).top(3).score.diff() <= 0).all()
