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


# ------------------------------------------------------------------------- scores and labels say the same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", naive.LOSSES)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1.0, 1e2, 1e4, 1e6, 1e30]),
    absent=st.booleans(),
    one=st.booleans(),
)
def test_the_largest_class_score_is_that_of_the_label(loss, dtype, seed, scale, absent, one):
    """At margins of any size, where logarithms round and distances overflow; ties of exact distances go lowest."""
    code = ternary(5, 7, seed)
    margins = margins_like(code, 6, seed, scale).to(dtype)
    out = torch.tensor([False, True, False, False, True]) if absent else None
    scores = tm.CodedScores(margins[0] if one else margins, code, out)
    decoder = tm.LossBasedDecoder(loss)
    label = decoder(scores)
    assert torch.equal(decoder.class_scores(scores).argmax(-1), label)
    assert torch.equal(scores.class_scores(loss).argmax(-1), label)
    if scale <= 1e6:
        likely = tm.TemperatureScaling()(decoder.class_scores(scores))
        assert torch.equal(likely.gather(-1, label.unsqueeze(-1)).squeeze(-1), likely.amax(-1))


@pytest.mark.parametrize("loss", naive.LOSSES)
def test_scores_that_are_raised_keep_their_gradient_and_nearly_their_value(loss):
    code = codes.one_vs_one(4)
    margins = (1e4 * torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).float()
    leaf = margins.clone().requires_grad_()
    scores = tm.CodedScores(leaf, code)
    raised = tm.LossBasedDecoder(loss).class_scores(scores)
    plain = -(ops.log_distances if loss == "exponential" else ops.distances)(leaf, code, as_margin_loss(loss))
    torch.testing.assert_close(raised, plain, rtol=1e-6, atol=1e-6)
    gradients = [torch.autograd.grad(value.sum(), leaf, retain_graph=True)[0] for value in (raised, plain)]
    torch.testing.assert_close(gradients[0], gradients[1])


# ------------------------------------------------------------------------------------------ fields that fit


def test_a_code_of_other_entries_is_named(device):
    margins = torch.zeros(2, 3)
    for entry in (5, -2, 127):
        code = codes.one_vs_all(3)
        code[1, 1] = entry
        with pytest.raises(ValueError, match=rf"code: holds the entry {entry}; accepted are -1, 0 and \+1"):
            tm.CodedScores(margins, code)
    with pytest.raises(ValueError, match="code: holds the entry 255"):  # -1 in eight bits without a sign
        tm.CodedScores(margins, codes.one_vs_all(3).to(torch.uint8))


@pytest.mark.parametrize("odd", [None, 3, 2.5, "code", [[1, -1]], object()], ids=lambda odd: type(odd).__name__)
def test_fields_that_are_no_tensors_are_named(odd):
    code = codes.one_vs_all(3)
    with pytest.raises(TypeError, match="margins: got"):
        tm.CodedScores(odd, code)
    with pytest.raises(TypeError, match="code: got"):
        tm.CodedScores(torch.zeros(2, 3), odd)
    for name in ("absent", "active"):
        if odd is not None:
            with pytest.raises(TypeError, match=f"{name}: got"):
                tm.CodedScores(torch.zeros(2, 3), code, **{name: odd})
    if odd is not None:
        with pytest.raises(ValueError, match="name: got"):
            tm.CodedScores(torch.zeros(2, 3), code, name=odd)


def test_columns_that_do_not_fit_the_code_are_named():
    code, margins = codes.one_vs_one(4), torch.zeros(2, 6)
    right = tm.CodedScorer(3, code).active
    assert tm.CodedScores(margins, code, active=right).active is right
    with pytest.raises(ValueError, match=r"active: got shape \(3, 3\) of torch.int64; accepted is \(4, A\)"):
        tm.CodedScores(margins, code, active=right[:3])
    with pytest.raises(ValueError, match=r"active: label 9 is outside 0\.\.5"):
        tm.CodedScores(margins, code, active=torch.full_like(right, 9))
    twice = torch.cat([right, right[:, :1]], 1)
    for wrong in (right.roll(1, 0), right[:, :2], twice):
        with pytest.raises(ValueError, match="active: leaves out a column that asks a class, or names one twice"):
            tm.CodedScores(margins, code, active=wrong)


def test_utilities_may_put_anything_in_place_of_the_tensors():
    scores = tm.CodedScorer(3, codes.one_vs_one(4))(torch.randn(5, 3))
    numbered = torch.utils._pytree.tree_map(lambda _: 0, scores)
    assert (numbered.margins, numbered.code, numbered.name) == (0, 0, "one_vs_one")
