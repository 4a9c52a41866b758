"""Coded losses: the contract, the definition, and columns that ask a class nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.contracts.loss import LossContract
from tests.references import coded as naive
from tests.references.drawn import margins_like, ternary
from torch_multiclass import codes
from torch_multiclass.functional import average_binary_loss
from torch_multiclass.ops.margins import as_margin_loss

LOSSES = naive.LOSSES


class OneVsAllLoss(tm.CodedLoss):
    """A coded loss of K class scores taken as the margins of the one-versus-all code."""

    def forward(self, scores, target):
        return super().forward(tm.CodedScores(scores, codes.one_vs_all(scores.shape[-1]).to(scores.device)), target)


class OneVsOneLoss(tm.CodedLoss):
    """A coded loss of K class scores whose differences are the margins of the one-versus-one code."""

    def forward(self, scores, target):
        k = scores.shape[-1]
        first, second = torch.triu_indices(k, k, 1, device=scores.device)
        code = codes.one_vs_one(k).to(scores.device)
        active = (code != 0).long().sort(dim=1, descending=True, stable=True).indices[:, : k - 1]
        values = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
        margins = values[..., first] - values[..., second]
        return super().forward(tm.CodedScores(margins, code, active=active if k > 3 else None), target)


def one_vs_all_function(scores, target, **arguments):
    return tm.functional.coded_loss(
        tm.CodedScores(scores, codes.one_vs_all(scores.shape[-1]).to(scores.device)), target, **arguments
    )


def one_vs_one_function(scores, target, **arguments):
    k = scores.shape[-1]
    first, second = torch.triu_indices(k, k, 1)
    margins = scores[..., first] - scores[..., second]
    return tm.functional.coded_loss(tm.CodedScores(margins, codes.one_vs_one(k).to(scores.device)), target, **arguments)


class CodedContract(LossContract):
    shift_invariant = False

    @pytest.mark.parametrize("num_classes", [2, 3, 12])
    def test_any_number_of_classes(self, device, num_classes):
        super().test_any_number_of_classes(device, num_classes)

    def test_class_dim(self, device):
        scores, target = self.batch(device)
        with pytest.raises(ValueError, match="class_dim: got 1"):
            self.loss(class_dim=1)(scores, target)

    def test_bad_shapes_types_and_names(self, device):
        scores, target = self.batch(device)
        loss = self.loss()
        with pytest.raises(ValueError, match=r"target: got shape \(5,\); accepted is \(6,\)"):
            loss(scores, target[:5])
        with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
            loss(scores, target.float())
        with pytest.raises(TypeError, match=r"margins: got dtype torch\.int64"):
            loss(scores.long(), target)
        with pytest.raises(TypeError, match="target: got list"):
            loss(scores, target.tolist())
        with pytest.raises(TypeError, match="scores: got Tensor; accepted here is CodedScores"):
            tm.CodedLoss()(scores, target)
        with pytest.raises(ValueError, match="loss: got 'hinges'; accepted are 'hinge', 'squared'"):
            tm.CodedLoss("hinges")
        with pytest.raises(ValueError, match=r"weight: got shape \(3,\); accepted is \(5,\)"):
            self.loss(weight=[1.0, 1.0, 1.0]).to(device)(scores, target)


class TestOneVsAllHinge(CodedContract):
    module, function = OneVsAllLoss, staticmethod(one_vs_all_function)
    reference = staticmethod(lambda f, y: naive.training_loss(f, codes.one_vs_all(len(f)), y, "hinge"))


class TestOneVsAllLogistic(CodedContract):
    module, function = OneVsAllLoss, staticmethod(one_vs_all_function)
    arguments = {"loss": "logistic"}
    reference = staticmethod(lambda f, y: naive.training_loss(f, codes.one_vs_all(len(f)), y, "logistic"))


class TestOneVsOneSquaredHinge(CodedContract):
    module, function = OneVsOneLoss, staticmethod(one_vs_one_function)
    arguments = {"loss": "squared_hinge"}
    shift_invariant = True

    @staticmethod
    def reference(f, y):
        margins = [f[i] - f[j] for i in range(len(f)) for j in range(i + 1, len(f))]
        return naive.training_loss(margins, codes.one_vs_one(len(f)), y, "squared_hinge")

    def test_function_and_module_agree(self, device):
        scores, target = self.batch(device)  # the module takes the columns it needs, the function masks: other sums
        module = self.loss(reduction="sum")
        direct = self.function(scores, target, **self.arguments, reduction="sum")
        torch.testing.assert_close(module(scores, target), direct)

    def test_nan_is_never_swallowed(self, device):
        for place in range(3):
            scores = torch.tensor([[0.0, 1.0, 0.0]], device=device)
            scores[0, place] = torch.nan
            for y in range(3):
                assert self.loss()(scores, torch.tensor([y], device=device)).isnan(), (place, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_against_the_definition(loss, device, dtype):
    code = ternary(5, 9, 0)
    margins = margins_like(code, 30, 1, scale=2.0).to(device, dtype)
    target = torch.arange(30, device=device) % 5
    scores = tm.CodedScores(margins, code.to(device))
    rows = margins.tolist()
    expected = torch.tensor([naive.training_loss(f, code, y, loss) for f, y in zip(rows, target.tolist(), strict=True)])
    value = tm.CodedLoss(loss, reduction="none")(scores, target)
    torch.testing.assert_close(value.cpu().double(), expected.double(), rtol=1e-5, atol=1e-6)
    at_label = torch.tensor(
        [float(naive.distances(f, code, loss)[y]) for f, y in zip(rows, target.tolist(), strict=True)]
    )
    average = average_binary_loss(scores, target, loss=loss)
    torch.testing.assert_close(float(average), float(at_label.mean()) / 9, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("code", [codes.one_vs_all(4), codes.one_vs_one(4)], ids=["full", "sparse"])
def test_the_average_in_several_batch_dimensions(code, device):
    margins, target = torch.randn(2, 5, code.shape[1], device=device), torch.randint(4, (2, 5), device=device)
    expected = (1 - code.to(device)[target] * margins).clamp(min=0).mean(-1)
    value = average_binary_loss(tm.CodedScores(margins, code.to(device)), target, reduction="none")
    torch.testing.assert_close(value, expected)


@given(z=st.floats(-50, 50), loss=st.sampled_from(LOSSES))
def test_no_binary_loss_pays_for_hedging(z, loss):
    """(l(z) + l(-z)) / 2 >= l(0) > 0: eq. (7), the one assumption of Theorem 1."""
    z = torch.tensor([z, -z, 0.0], dtype=torch.float64)
    at_z, at_minus_z, at_zero = tm.functional.binary_loss(z, loss).tolist()
    assert (at_z + at_minus_z) / 2 >= at_zero * (1 - 1e-12)
    assert at_zero == pytest.approx(as_margin_loss(loss).at_zero, rel=1e-15)
    assert at_zero > 0


def test_the_columns_a_label_needs_give_the_same_loss_and_gradient():
    code = codes.one_vs_one(7)
    scorer = tm.CodedScorer(3, code)
    target = torch.arange(14) % 7
    target[3] = -100
    gradients = []
    for active in (None, scorer.active):
        margins = margins_like(code, 14, 0).requires_grad_()
        loss = tm.CodedLoss("logistic")(tm.CodedScores(margins, code, active=active), target)
        gradients.append((loss.detach(), *torch.autograd.grad(loss, margins)))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_ignored_columns_reach_neither_loss_nor_gradient():
    code = codes.one_vs_one(3)
    margins = torch.tensor([[0.3, -0.2, torch.nan]], requires_grad=True)  # column (1, 2) says nothing about class 0
    loss = tm.CodedLoss("squared")(tm.CodedScores(margins, code), torch.tensor([0]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0.7**2 + 1.2**2)
    assert margins.grad[0, 2] == 0


def test_a_class_that_every_column_ignores_cannot_be_trained_on():
    scores = tm.CodedScores(torch.zeros(2, 1), torch.tensor([[1], [-1], [0]]))
    assert tm.CodedLoss()(scores, torch.tensor([0, 1])) == 1
    with pytest.raises(ValueError, match="target: label 2 is ignored by every column of the code"):
        tm.CodedLoss()(scores, torch.tensor([0, 2]))


def test_nan_margins_are_never_a_number(device):
    """A sign has no value for NaN: neither has the loss, the distance or the vote."""
    code = tm.codes.one_vs_all(3).to(device)
    scores = tm.CodedScores(torch.tensor([[torch.nan, 1.0, -1.0]], device=device), code)
    target = torch.tensor([0], device=device)
    assert tm.CodedLoss("zero_one")(scores, target).isnan()
    assert tm.HammingDecoder().class_scores(scores).isnan().all()
    assert tm.functional.average_binary_loss(scores, target, loss="zero_one").isnan()


def test_coded_scores_in_a_loss_of_classes_name_the_loss_to_take(device):
    scores = tm.CodedScores(torch.zeros(1, 3, device=device), tm.codes.one_vs_all(3).to(device))
    with pytest.raises(TypeError, match="use CodedLoss"):
        tm.CRFLoss()(scores, torch.tensor([0], device=device))
