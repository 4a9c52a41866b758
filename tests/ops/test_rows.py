"""A loss of rows as one node: by blocks or at once, by hand or by its formula, values and gradients are the same."""

import math

import pytest
import torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import torch_multiclass as tm
from torch_multiclass.ops import row_losses as formulas
from torch_multiclass.ops import rows as node
from torch_multiclass.ops.rows import row_losses

ROWS = 7


def some_cost(k, dtype):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, 4, (k, k), generator=generator).to(dtype).fill_diagonal_(0)


MAKERS = {
    "margin": lambda cost: formulas.BestRival(0.7),
    "squared margin": lambda cost: formulas.BestRival(power=2),
    "margin of a cost": lambda cost: formulas.BestRival(cost=cost),
    "cubed margin of a cost": lambda cost: formulas.BestRival(power=3, cost=cost),
    "ramp": lambda cost: formulas.Ramp(1.5),
    "scaled": lambda cost: formulas.ScaledRival(cost),
    "best class": lambda cost: formulas.BestClass(),
    "hinges": lambda cost: formulas.RivalSum(0.7),
    "squared hinges": lambda cost: formulas.RivalSum(power=2),
    "hinges of a cost": lambda cost: formulas.RivalSum(cost=cost),
    "squared hinges of a cost": lambda cost: formulas.RivalSum(power=2, cost=cost),
    "exponential sum": lambda cost: formulas.ExponentialSum(),
    "exponentials": lambda cost: formulas.Exponentials(),
    "average": lambda cost: formulas.AverageExponential(),
    "soft-max": lambda cost: formulas.SoftMax(),
    "warm soft-max": lambda cost: formulas.SoftMax(temperature=2.0),
    "soft-max with a margin": lambda cost: formulas.SoftMax(1.0, temperature=0.5),
    "soft-max of a cost": lambda cost: formulas.SoftMax(cost=cost, temperature=0.5),
}


@pytest.fixture(params=[1, 1 << 18], ids=["row by row", "at once"])
def block(request, monkeypatch):
    monkeypatch.setattr(node, "_BLOCK", request.param)


def drawn(num_classes, dtype, device="cpu"):
    generator = torch.Generator().manual_seed(num_classes)
    scores = torch.randn(ROWS, num_classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(num_classes, (ROWS,), generator=generator)
    scores[::2].scatter_(1, labels[::2, None], 3.0)  # some labels on top
    return scores.to(dtype).to(device), labels.to(device)


def both(loss, scores, labels, kept, mean):
    """Value and gradient of the node and of the formula."""
    results = []
    for of in (
        lambda s: row_losses(loss, s, labels, kept, mean=mean),
        lambda s: node._formula(loss, s, labels.unsqueeze(-1), None if kept is None else kept.unsqueeze(-1), mean),
    ):
        leaf = scores.clone().requires_grad_()
        value = of(leaf)
        upstream = torch.arange(1.0, 1 + value.numel(), dtype=value.dtype, device=value.device).view(value.shape)
        results.append((value.detach(), torch.autograd.grad(value, leaf, upstream)[0]))
    return results


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("num_classes", [1, 2, 9, 300])
@pytest.mark.parametrize("case", ["mean", "each", "some", "odd"])
def test_the_node_is_the_formula(name, num_classes, case, block, dtype, device):
    scores, labels = drawn(num_classes, dtype, device)
    loss = MAKERS[name](some_cost(num_classes, dtype).to(device))
    kept = None if case in ("mean", "each") else torch.arange(ROWS, device=device) != 2
    if case == "odd":  # a forbidden label, an ignored row of NaN, a forbidden rival
        scores[0, labels[0]] = -math.inf
        scores[2] = math.nan
        if num_classes > 1:
            scores[4, (labels[4] + 1) % num_classes] = -math.inf
    (value, gradient), (plain, slope) = both(loss, scores, labels, kept, case == "mean")
    torch.testing.assert_close(value, plain)
    torch.testing.assert_close(gradient, slope)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", MAKERS)
def test_nan_stays(name, block):
    scores, labels = drawn(300, torch.float32)
    scores[3, 7] = math.nan
    scores[5, labels[5]] = -math.inf
    scores[5, 0 if labels[5] else 1] = math.nan
    losses = row_losses(MAKERS[name](some_cost(300, torch.float32)), scores, labels)
    assert losses.isnan().tolist() == [row in (3, 5) for row in range(ROWS)]


class Large(TorchDispatchMode):
    """Where tensors live that take at least so many bytes."""

    def __init__(self, least):
        super().__init__()
        self.least, self.found = least, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in pytree.tree_leaves(result):
            if isinstance(part, torch.Tensor) and part.untyped_storage().nbytes() >= self.least:
                self.found.add(part.untyped_storage().data_ptr())
        return result


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kept", [None, torch.arange(ROWS) != 2], ids=["all", "some"])
def test_nothing_of_the_size_of_the_scores_is_made_but_their_gradient(name, kept, monkeypatch):
    monkeypatch.setattr(node, "_BLOCK", 1)
    scores, labels = drawn(300, torch.float32)
    scores.requires_grad_()
    loss = MAKERS[name](some_cost(300, torch.float32))
    with Large(scores.nbytes) as large:
        row_losses(loss, scores, labels, kept, mean=kept is None).sum().backward()
    cost = getattr(loss, "cost", None)
    assert large.found - {tensor.data_ptr() for tensor in (scores, cost) if tensor is not None} == {
        scores.grad.data_ptr()
    }


@pytest.mark.parametrize("level", [1e5, -1e5, 1e6])
@pytest.mark.parametrize("cost", [None, "matrix"])
def test_large_scores_keep_their_digits(level, cost):
    """The difference of two scores is taken before a margin or a cost is added."""
    scores, labels = drawn(9, torch.float32)
    scores = scores + level
    cost = None if cost is None else some_cost(9, torch.float64)
    for make in (tm.CrammerSingerLoss, tm.WestonWatkinsLoss, tm.M3NLoss, tm.SVMStructLoss, tm.CRFLoss):
        loss = make(cost=cost, reduction="none")
        exact = loss(scores.double(), labels)
        torch.testing.assert_close(loss(scores, labels).double(), exact, rtol=1e-6, atol=1e-6)


def test_m3n_with_the_zero_one_cost_is_crammer_singer_in_every_bit():
    scores, labels = drawn(9, torch.float32)
    for loss in (tm.M3NLoss(), tm.M3NLoss("hamming"), tm.SVMStructLoss()):
        leaves = [scores.clone().requires_grad_() for _ in range(2)]
        values = [make(leaf, labels) for make, leaf in zip((loss, tm.CrammerSingerLoss()), leaves, strict=True)]
        assert torch.equal(*values)
        for value in values:
            value.backward()
        assert torch.equal(*(leaf.grad for leaf in leaves))


def test_a_cost_of_ones_own_is_read_from_its_rows():
    class Distance(tm.costs.Cost):
        def rows(self, target, num_classes, dtype):
            return (torch.arange(num_classes, device=target.device) - target.unsqueeze(-1)).abs().to(dtype)

    class Doubled(tm.costs.ZeroOne):
        def rows(self, target, num_classes, dtype):
            return 2 * super().rows(target, num_classes, dtype)

    scores, labels = drawn(9, torch.float64)
    for cost in (Distance(), Doubled()):
        matrix = cost.rows(torch.arange(9), 9, torch.float64)
        for make in (tm.CrammerSingerLoss, tm.WestonWatkinsLoss, tm.M3NLoss, tm.SVMStructLoss, tm.CRFLoss):
            ours, theirs = make(cost=cost)(scores, labels), make(cost=matrix)(scores, labels)
            torch.testing.assert_close(ours, theirs)


def test_a_learned_cost_has_a_gradient():
    scores, labels = drawn(5, torch.float64)
    cost = tm.costs.Matrix(some_cost(5, torch.float64))
    cost.matrix.requires_grad_()
    for make in (tm.CrammerSingerLoss, tm.M3NLoss, tm.SVMStructLoss, tm.CRFLoss):
        gradient = torch.autograd.grad(make(cost=cost)(scores, labels), cost.matrix)[0]
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("name", MAKERS)
def test_forward_derivatives_are_the_backward_ones(name):
    scores, labels = drawn(9, torch.float64)
    loss, tangent = MAKERS[name](some_cost(9, torch.float64)), torch.ones_like(scores).cumsum(1)
    with forward_ad.dual_level():
        value = row_losses(loss, forward_ad.make_dual(scores, tangent), labels, mean=True)
        forward = forward_ad.unpack_dual(value).tangent
    leaf = scores.clone().requires_grad_()
    backward = torch.autograd.grad(row_losses(loss, leaf, labels, mean=True), leaf)[0]
    torch.testing.assert_close(forward, (backward * tangent).sum())


@pytest.mark.parametrize("name", MAKERS)
def test_a_trace_of_usual_scores_serves_barred_labels(name):
    """Where a dispatch mode looks on, nothing depends on the values that were there."""
    scores, labels = drawn(9, torch.float64)
    loss = MAKERS[name](some_cost(9, torch.float64))
    traced = make_fx(lambda given, of: row_losses(loss, given, of))(scores, labels)
    barred = scores.scatter(1, labels[:, None], -math.inf)
    for given in (scores, barred, scores.masked_fill(scores < 0, math.nan)):
        torch.testing.assert_close(traced(given, labels), row_losses(loss, given, labels), equal_nan=True)
