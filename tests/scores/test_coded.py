"""Coded scores: distances to the rows of a code, and what they refuse."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references import coded as naive
from tests.references.drawn import margins_like, ternary
from torch_multiclass import codes
from torch_multiclass.ops import coded as ops
from torch_multiclass.ops.margins import as_margin_loss

LOSSES = naive.LOSSES


@pytest.mark.parametrize("loss", LOSSES)
def test_distances_against_the_definition(loss, device, dtype):
    code = ternary(6, 8, 3)
    margins = margins_like(code, 10, 0, 3.0).to(device, dtype)
    expected = torch.tensor([[float(d) for d in naive.distances(f, code, loss)] for f in margins.tolist()])
    value = -tm.CodedScores(margins, code.to(device)).class_scores(loss)
    torch.testing.assert_close(value.cpu().float(), expected, rtol=1e-5, atol=1e-5)


@given(
    k=st.integers(2, 6), columns=st.integers(2, 8), seed=st.integers(0, 10**6), scale=st.sampled_from([0.01, 1, 300])
)
def test_log_exponential_distances(k, columns, seed, scale):
    code = ternary(k, max(columns, k), seed)
    margins = margins_like(code, 1, seed, scale)
    expected = [float(d.ln()) for d in naive.distances(margins[0].tolist(), code, "exponential")]
    value = ops.log_distances(margins, code, as_margin_loss("exponential"))[0]
    torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_the_logistic_distance_is_the_negative_log_likelihood():
    code = codes.dense_random(5, 8, trials=10, generator=torch.Generator().manual_seed(0))
    margins = margins_like(code, 4, 0)
    bits = (code > 0).double()
    probability = torch.sigmoid(2 * margins)[:, None]  # of a 1 in each column
    likelihood = (bits * probability + (1 - bits) * (1 - probability)).prod(-1)
    torch.testing.assert_close(tm.CodedScores(margins, code).class_scores("logistic"), likelihood.log())


def test_bad_coded_scores_are_named():
    code = codes.one_vs_all(3)
    with pytest.raises(ValueError, match=r"margins: got shape \(2, 4\); accepted is \(\*, 3\)"):
        tm.CodedScores(torch.zeros(2, 4), code)
    with pytest.raises(TypeError, match=r"code: got dtype torch.float32; accepted are -1, 0 and \+1 of an integer"):
        tm.CodedScores(torch.zeros(2, 3), code.float())
    with pytest.raises(ValueError, match=r"absent: got shape \(2,\); accepted is \(3,\)"):
        tm.CodedScores(torch.zeros(2, 3), code, absent=torch.zeros(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="loss: got 'l2'"):
        tm.CodedScores(torch.zeros(2, 3), code).class_scores("l2")


@pytest.mark.parametrize("loss", LOSSES)
def test_class_scores_are_differentiable(loss):
    code = ternary(4, 6, 1)
    margins = margins_like(code, 2, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda f: tm.CodedScores(f, code).class_scores(loss), (margins,))
    if loss == "exponential":
        decoder = tm.LossBasedDecoder(loss)
        assert torch.autograd.gradcheck(lambda f: decoder.class_scores(tm.CodedScores(f, code)), (margins,))
