"""Small inputs on which libraries for chains have gone wrong, each with its right value."""

from __future__ import annotations

import math

import pytest
import torch

import torch_multiclass as tm
from tests.references.chain import enumerate_chain

INF, NAN = math.inf, math.nan

EMISSIONS = torch.tensor(
    [
        [[1, 0, -1], [0, 2, 0], [0.5, 0, 1], [0, 0, 3]],
        [[0, 1, 0], [2, 0, 0], [0, 0, 0], [1, 1, 1]],
    ]
)
TARGET = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]])
TRANSITIONS = torch.tensor([[0.5, -0.5, 0], [0, 0.2, 0.3], [-0.4, 0, 0.1]])
ENDS = {"start": torch.tensor([0.1, 0, -0.1]), "end": torch.tensor([0, 0.2, 0])}
LOSS = tm.CRFLoss(reduction="sum")


def chain(emissions=EMISSIONS, transitions=TRANSITIONS, mask=None, device="cpu", **ends):
    mask = None if mask is None else torch.tensor(mask, dtype=torch.bool, device=device)
    parts = {name: part.to(device) for name, part in {**ENDS, **ends}.items()}
    return tm.ChainScores(emissions.to(device), transitions.to(device), mask=mask, **parts)


def with_gradients(mask, emissions=EMISSIONS, target=TARGET, device="cpu"):
    leaf = emissions.clone().to(device).requires_grad_()
    moves = TRANSITIONS.clone().to(device).requires_grad_()
    loss = LOSS(chain(leaf, moves, mask, device), target.to(device))
    loss.backward()
    return loss.detach().cpu(), leaf.grad.cpu(), moves.grad.cpu()


def equals(value, expected):
    torch.testing.assert_close(value.detach().cpu(), torch.tensor(expected), rtol=0, atol=1e-5)


def test_first_token_masked(device):
    mask = [[0, 1, 1, 1], [0, 1, 1, 0]]
    loss, grad, _ = with_gradients(mask, device=device)
    equals(loss, 1.82525)
    assert not grad[~torch.tensor(mask, dtype=torch.bool)].any()
    assert tm.ViterbiDecoder()(chain(mask=mask, device=device)).tolist() == [[-100, 1, 2, 2], [-100, 0, 0, -100]]


def test_empty_row(device):
    loss, grad, _ = with_gradients([[1, 1, 1, 1], [0, 0, 0, 0]], device=device)
    equals(loss, 1.61672)
    assert not grad[1].any()
    empty = chain(mask=[[1, 1, 1, 1], [0, 0, 0, 0]], device=device)
    assert empty.decode().labels[1].tolist() == [-100] * 4
    assert empty.log_partition()[1] == 0
    losses = tm.CRFLoss(reduction="none")(empty, TARGET.to(device))
    assert losses[1] == 0
    equals(tm.CRFLoss()(empty, TARGET.to(device)), 1.61672)  # the mean counts rows with a labelled position


def test_length_one(device):
    loss, *_ = with_gradients([[1, 1, 1, 1], [1, 0, 0, 0]], device=device)
    equals(loss, 2.09010)
    equals(LOSS(chain(EMISSIONS[:, :1], device=device), TARGET[:, :1].to(device)), 0.89036)


def test_no_positions_at_all(device):
    nothing = chain(EMISSIONS[:, :0].requires_grad_(), device=device)
    target = TARGET[:, :0].to(device)
    for loss in (tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()):
        assert loss(nothing, target) == 0
    assert nothing.decode().labels.shape == (2, 0)
    assert nothing.log_partition().tolist() == [0, 0]
    assert nothing.marginals().shape == (2, 0, 3)
    assert nothing.pair_marginals().shape == (2, 0, 3, 3)
    assert nothing.sample(4).shape == (2, 4, 0)
    assert nothing.entropy().tolist() == [0, 0]


def test_batch_of_no_sequences(device):
    none = chain(EMISSIONS[:0].clone().requires_grad_(), device=device)
    target = TARGET[:0].to(device)
    for name in ("CRFLoss", "M3NLoss", "SVMStructLoss", "StructuredPerceptronLoss"):
        assert getattr(tm, name)(reduction="sum")(none, target) == 0
        assert getattr(tm, name)()(none, target) == 0
    assert none.decode().labels.shape == (0, 4)
    assert none.top(2).labels.shape == (0, 2, 4)


PADDED = [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_ignored_labels_in_the_padding(device):
    target = TARGET.clone()
    target[1, 2:] = -100
    equals(with_gradients(PADDED, target=target, device=device)[0], 2.52443)


@pytest.mark.parametrize("junk", [NAN, INF, -INF])
def test_anything_in_the_padding(junk, device):
    emissions, target = EMISSIONS.clone(), TARGET.clone()
    emissions[1, 2:] = junk
    target[1, 2:] = 10**6
    loss, grad, moves = with_gradients(PADDED, emissions, target, device)
    equals(loss, 2.52443)
    assert bool(grad.isfinite().all() and moves.isfinite().all())
    assert not grad[1, 2:].any()
    clean = with_gradients(PADDED, device=device)
    torch.testing.assert_close(grad[:, :2], clean[1][:, :2])
    torch.testing.assert_close(moves, clean[2])


@pytest.mark.parametrize("forbidden", [-INF, -1e4])
def test_forbidden_transitions(forbidden, device):
    moves = TRANSITIONS.clone()
    moves[0, 2] = moves[2, 0] = forbidden
    moves = moves.to(device).requires_grad_()
    scores = chain(transitions=moves, device=device)
    loss = LOSS(scores, TARGET.to(device))
    equals(loss, 3.62049)
    loss.backward()
    assert bool(moves.grad.isfinite().all())
    assert moves.grad[0, 2] == 0
    assert moves.grad[2, 0] == 0
    pairs = scores.pair_marginals()
    assert not pairs[..., 0, 2].any()
    assert not pairs[..., 2, 0].any()


def test_a_label_that_is_legal_only_as_the_first(device):
    moves = torch.tensor([[0.0, -INF], [0.3, -INF]], device=device, requires_grad=True)
    emissions = torch.randn(1, 5, 2, device=device, requires_grad=True)
    scores = tm.ChainScores(emissions, moves)
    (scores.log_partition() + scores.entropy() + scores.max_score()).sum().backward()
    assert bool(emissions.grad.isfinite().all())
    assert bool(moves.grad.isfinite().all())
    assert not scores.marginals()[:, 1:, 1].any()


def test_no_legal_labelling(device):
    moves = torch.full((2, 2), -INF, device=device, requires_grad=True)
    emissions = torch.randn(1, 3, 2, device=device, requires_grad=True)
    scores = tm.ChainScores(emissions, moves)
    target = torch.zeros(1, 3, dtype=torch.long, device=device)
    assert scores.log_partition() == -INF
    assert scores.decode().labels.tolist() == [[-100] * 3]
    for loss in (tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss(), tm.CRFLoss("hamming")):
        value = loss(scores, target)
        assert value == INF
        for grad in torch.autograd.grad(value, (emissions, moves), allow_unused=True):
            assert grad is None or not grad.any()


def test_strong_emissions_against_a_constraint(device):
    moves = torch.tensor([[0, -INF], [-INF, 0]])
    emissions = torch.tensor([[3e4, 0], [0, 3e4]])
    decoded = tm.ChainScores(emissions.to(device), moves.to(device)).decode()
    assert decoded.labels.tolist() in ([0, 0], [1, 1])
    assert decoded.score == 30000


def test_rows_are_independent(device):
    mask = [[1, 1, 1, 1], [0, 1, 1, 0]]
    loss, grad, _ = with_gradients(mask, device=device)
    pad = torch.nn.functional.pad
    padded, padded_grad, _ = with_gradients(
        [[*row, 0, 0, 0] for row in mask], pad(EMISSIONS, (0, 0, 0, 3), value=NAN), pad(TARGET, (0, 3)), device
    )
    equals(padded, float(loss))
    torch.testing.assert_close(padded_grad[:, :4], grad)
    alone = [with_gradients(mask[b : b + 1], EMISSIONS[b : b + 1], TARGET[b : b + 1], device) for b in range(2)]
    equals(alone[0][0] + alone[1][0], float(loss))
    torch.testing.assert_close(torch.cat([alone[0][1], alone[1][1]]), grad)


def test_small_transitions_and_many_steps(device):
    moves = 0.01 * torch.randn(17, 17)
    emissions = torch.randn(2, 102, 17)
    grads = []
    for dtype in (torch.float32, torch.float64):
        leaf = emissions.to(device, dtype).clone().requires_grad_()
        own = moves.to(device, dtype).clone().requires_grad_()
        tm.ChainScores(leaf, own).log_partition().sum().backward()
        grads.append((leaf.grad.double(), own.grad.double()))
    for ours, exact in zip(*grads, strict=True):
        assert bool(ours.isfinite().all())
        assert float((ours - exact).abs().max() / exact.abs().max()) < 1e-5


def test_bfloat16_over_many_steps(device):
    e = torch.randn(1, 512, 9).bfloat16()
    moves = torch.randn(9, 9).bfloat16()
    y = torch.randint(9, (1, 512))
    ours = tm.ChainScores(e.to(device), moves.to(device))
    exact = tm.ChainScores(e.double(), moves.double())
    for value in (lambda s, y: s.log_partition(), lambda s, y: s.relative_to(y).log_partition()):
        torch.testing.assert_close(value(ours, y.to(device)).cpu().double(), value(exact, y), rtol=1e-5, atol=0)


def test_batched_decode(device):
    scores = chain(mask=[[1, 1, 0, 1], [0, 1, 1, 0]], device=device)
    decoded = scores.decode()
    assert decoded.labels.dtype == torch.long
    assert decoded.labels.shape == (2, 4)
    assert bool((decoded.labels[~scores.mask] == -100).all())
    torch.testing.assert_close(scores.score(decoded.labels), decoded.score)
    for b in range(2):
        e = enumerate_chain(EMISSIONS[b], TRANSITIONS, **ENDS, mask=scores.mask[b].cpu())
        assert decoded.labels[b].tolist() == e.best()[0].tolist()


@pytest.mark.parametrize(("steps", "k"), [(4, 3), (1, 2), (1, 5), (2, 12)])
def test_k_best(steps, k, device):
    decoded = chain(EMISSIONS[:, :steps], device=device).top(k)
    assert tm.KBestDecoder(k)(chain(EMISSIONS[:, :steps], device=device)).tolist() == decoded.labels.tolist()
    for b in range(2):
        every = enumerate_chain(EMISSIONS[b, :steps], TRANSITIONS, **ENDS)
        _, scores = every.top(k)
        for y, score in zip(decoded.labels[b].tolist(), scores.tolist(), strict=True):  # the labels have these scores
            place = (every.labels == torch.tensor(y)).all(1)
            assert (float(every.scores[place]) if score > -INF else -INF) == pytest.approx(score, abs=1e-5)
        torch.testing.assert_close(decoded.score[b].cpu(), scores.float())
        real = [tuple(y) for y in decoded.labels[b].tolist() if y[0] != -100]
        assert len(set(real)) == len(real) == min(k, 3**steps)


def test_the_callers_tensor(device):
    emissions = EMISSIONS.transpose(1, 2).contiguous().transpose(1, 2).to(device)
    assert not emissions.is_contiguous()
    before = emissions.clone()
    equals(LOSS(chain(emissions, device=device), TARGET.to(device)), float(LOSS(chain(), TARGET)))
    assert torch.equal(emissions, before)
    assert not emissions.requires_grad


def test_transitions_that_win_at_the_last_step(device):
    """States far below the best win through the transitions: right, not merely finite."""
    k = 3
    moves = torch.full((k, k), -50.0).fill_diagonal_(50.0)
    emissions = torch.zeros(1, 40, k)
    emissions[0, -1, 1] = 400.0
    small = tm.ChainScores(emissions.to(device), moves.to(device))
    large = tm.ChainScores(emissions.double(), moves.double())
    torch.testing.assert_close(small.log_partition().double().cpu(), large.log_partition(), rtol=1e-6, atol=0)
    torch.testing.assert_close(small.marginals().double().cpu(), large.marginals(), rtol=0, atol=1e-5)
    assert small.decode().labels.tolist() == [[1] * 40]


def test_posterior_decoding_of_an_impossible_sequence():
    emissions = torch.tensor([[[0.0, -torch.inf], [-torch.inf, -torch.inf]], [[0.0, 1.0], [0.0, 1.0]]])
    for legal in (True, False):
        found = tm.ChainScores(emissions, torch.zeros(2, 2)).posterior_decode(legal=legal)
        assert found.labels.tolist() == [[-100, -100], [1, 1]]
        assert found.score[0] == -torch.inf


@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_entropy_at_any_level(shift):
    torch.manual_seed(0)
    parts = torch.randn(2, 6, 4) + shift, torch.randn(4, 4) + shift
    exact = tm.ChainScores(*(part.double() for part in parts)).entropy()
    torch.testing.assert_close(tm.ChainScores(*parts).entropy().double(), exact, rtol=1e-5, atol=1e-5)


def test_arguments_of_the_wrong_kind_are_named():
    emissions, transitions = torch.zeros(1, 3, 2), torch.zeros(2, 2)
    with pytest.raises(TypeError, match=r"allowed: got dtype torch\.float32; accepted is torch\.bool"):
        tm.ChainScores(emissions, transitions).restrict(torch.ones(1, 3, 2))
    with pytest.raises(TypeError, match=r"lengths: got dtype torch\.float32; accepted are numbers of positions"):
        tm.ChainScores(emissions, transitions, lengths=torch.tensor([1.0]))
