"""The flat losses: the contract, independent libraries, and inputs that broke other libraries."""

import itertools
import math
from decimal import Decimal

import pytest
import torch
import torch.nn.functional as F

import torch_multiclass as tm
from tests.contracts.loss import LossContract
from tests.references import flat as reference

COST = [[0, 1, 2, 3, 4], [1, 0, 1, 0.5, 1], [2, 0, 0, 1, 1], [1, 1, 1, 0, 7], [1, 2, 3, 2, 0]]


class TestCrammerSinger(LossContract):
    module, function = tm.CrammerSingerLoss, staticmethod(tm.functional.crammer_singer_loss)
    reference = staticmethod(reference.crammer_singer)
    inductor = True


class TestSquaredCrammerSinger(LossContract):
    module, function = tm.CrammerSingerLoss, staticmethod(tm.functional.crammer_singer_loss)
    arguments = {"margin": 0.7, "power": 2}
    reference = staticmethod(lambda f, y: reference.crammer_singer(f, y, 0.7, 2))


class TestWestonWatkins(LossContract):
    module, function = tm.WestonWatkinsLoss, staticmethod(tm.functional.weston_watkins_loss)
    reference = staticmethod(reference.weston_watkins)
    inductor = True


class TestSquaredWestonWatkins(LossContract):
    module, function = tm.WestonWatkinsLoss, staticmethod(tm.functional.weston_watkins_loss)
    arguments = {"margin": 0.7, "power": 2}
    reference = staticmethod(lambda f, y: reference.weston_watkins(f, y, 0.7, 2))


class TestCubedWestonWatkins(LossContract):
    module, function = tm.WestonWatkinsLoss, staticmethod(tm.functional.weston_watkins_loss)
    arguments = {"power": 3}
    reference = staticmethod(lambda f, y: reference.weston_watkins(f, y, 1.0, 3))


class TestMarginRamp(LossContract):
    module, function = tm.MarginRampLoss, staticmethod(tm.functional.margin_ramp_loss)
    arguments = {"rho": 1.5}
    reference = staticmethod(lambda f, y: reference.ramp(f, y, 1.5))


class TestAdaBoostMH(LossContract):
    module, function = tm.AdaBoostLoss, staticmethod(tm.functional.adaboost_loss)
    reference = staticmethod(reference.adaboost_mh)
    shift_invariant = False


class TestAdaBoostMR(LossContract):
    module, function = tm.AdaBoostLoss, staticmethod(tm.functional.adaboost_loss)
    arguments = {"variant": "mr", "normalize": True}
    reference = staticmethod(lambda f, y: reference.adaboost_mr(f, y, True))


class TestAdaBoostAveraged(LossContract):
    module, function = tm.AdaBoostLoss, staticmethod(tm.functional.adaboost_loss)
    arguments = {"variant": "averaged"}
    reference = staticmethod(reference.adaboost_averaged)
    shift_invariant = False


class TestM3N(LossContract):
    module, function = tm.M3NLoss, staticmethod(tm.functional.m3n_loss)
    reference = staticmethod(reference.m3n)


class TestSVMStruct(LossContract):
    module, function = tm.SVMStructLoss, staticmethod(tm.functional.svmstruct_loss)
    reference = staticmethod(reference.svmstruct)


class TestCRF(LossContract):
    module, function = tm.CRFLoss, staticmethod(tm.functional.crf_loss)
    reference = staticmethod(reference.crf)


class TestSoftMaxMargin(LossContract):
    module, function = tm.CRFLoss, staticmethod(tm.functional.crf_loss)
    arguments = {"cost": "zero_one", "temperature": 0.5}
    reference = staticmethod(lambda f, y: reference.crf(f, y, reference.zero_one(len(f)), 0.5))


class TestPerceptron(LossContract):
    module, function = tm.StructuredPerceptronLoss, staticmethod(tm.functional.structured_perceptron_loss)
    reference = staticmethod(reference.perceptron)


# ---------------------------------------------------------------------- costs


@pytest.mark.parametrize(
    ("loss", "naive"),
    [
        (tm.M3NLoss(COST, reduction="none"), lambda f, y: reference.m3n(f, y, COST)),
        (tm.SVMStructLoss(COST, reduction="none"), lambda f, y: reference.svmstruct(f, y, COST)),
        (tm.CRFLoss(COST, 2.0, reduction="none"), lambda f, y: reference.crf(f, y, COST, 2.0)),
        (tm.CrammerSingerLoss(cost=COST, power=2, reduction="none"), lambda f, y: reference.m3n(f, y, COST) ** 2),
        (
            tm.WestonWatkinsLoss(cost=COST, reduction="none"),
            lambda f, y: sum(max(0.0, COST[y][k] - f[y] + f[k]) for k in reference.rivals(f, y)),
        ),
    ],
    ids=["m3n", "svmstruct", "crf", "crammer_singer", "weston_watkins"],
)
def test_cost_matrix(loss, naive, device):
    loss = loss.to(device)
    scores = torch.randn(20, 5, dtype=torch.float64, device=device)
    target = torch.randint(5, (20,), device=device)
    expected = [naive(f, y) for f, y in zip(scores.tolist(), target.tolist(), strict=True)]
    torch.testing.assert_close(loss(scores, target).cpu(), torch.tensor(expected, dtype=torch.float64))
    # the same matrix given once for each example
    per_example = torch.tensor(COST).expand(20, 5, 5).to(device)
    again = type(loss)(cost=per_example, reduction="none", **loss._own_arguments())
    torch.testing.assert_close(again(scores, target), loss(scores, target))


# ---------------------------------------------------------------------- independent libraries


def test_multi_margin_loss_is_weston_watkins_over_k(device):
    scores, target = torch.randn(50, 7, device=device), torch.randint(7, (50,), device=device)
    for power in (1, 2):
        ours = tm.functional.weston_watkins_loss(scores, target, power=power)
        torch.testing.assert_close(ours / 7, F.multi_margin_loss(scores, target, p=power))


def test_crf_on_one_label_is_cross_entropy(device):
    scores = torch.randn(50, 7, device=device, requires_grad=True)
    target, weight = torch.randint(7, (50,), device=device), torch.rand(7, device=device)
    target[::5] = -100
    ours, theirs = tm.CRFLoss(weight=weight)(scores, target), F.cross_entropy(scores, target, weight)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(loss, scores)[0] for loss in (ours, theirs)))


def test_mean_crammer_singer_is_scikit_learns_multiclass_hinge():
    from sklearn.metrics import hinge_loss

    scores, target = torch.randn(50, 7), torch.randint(7, (50,))
    ours = tm.functional.crammer_singer_loss(scores, target)
    assert ours.item() == pytest.approx(hinge_loss(target.numpy(), scores.numpy(), labels=range(7)), rel=1e-6)


# ---------------------------------------------------------------------- inputs that broke other libraries


def test_the_three_hinges(device):
    scores, y = torch.tensor([[2, 1.5, 1.8, 1]], device=device), torch.tensor([0], device=device)
    assert tm.functional.crammer_singer_loss(scores, y).item() == pytest.approx(0.8)
    assert tm.functional.weston_watkins_loss(scores, y).item() == pytest.approx(1.3)
    assert F.multi_margin_loss(scores, y).item() == pytest.approx(0.325)


def test_ignored_rows(device):
    scores = torch.tensor([[2, 1.5, 0, 1], [9, 9, 9, 9]], device=device, requires_grad=True)
    value = tm.CrammerSingerLoss()(scores, torch.tensor([0, -100], device=device))
    assert value.item() == pytest.approx(0.5)
    value.backward()
    assert (scores.grad[1] == 0).all()


def test_class_weights(device):
    scores = torch.tensor([[0.5, 0.0], [0.0, 0.0]], device=device)  # hinges 0.5 and 1.0
    y, weight = torch.tensor([0, 1], device=device), torch.tensor([3.0, 1.0], device=device)
    assert tm.CrammerSingerLoss(weight=weight, reduction="sum")(scores, y).item() == pytest.approx(2.5)
    assert tm.CrammerSingerLoss(weight=weight)(scores, y).item() == pytest.approx(0.625)


def test_weights_multiply_the_power(device):
    scores, y = torch.tensor([[0.5, 0.0]], device=device), torch.tensor([0], device=device)
    loss = tm.CrammerSingerLoss(power=2, weight=[3.0, 1.0], reduction="sum").to(device)
    assert loss(scores, y).item() == pytest.approx(0.75)


def test_labels_counted_from_one():
    with pytest.raises(ValueError, match=r"label 3 is outside 0\.\.2 \(3 classes\); labels start at 0"):
        tm.CrammerSingerLoss()(torch.zeros(4, 3), torch.tensor([1, 2, 3, 1]))


def test_second_derivative_of_the_squared_hinge(device):
    scores = torch.tensor([[0.3, 0, 0.1]], dtype=torch.float64, device=device, requires_grad=True)
    y = torch.tensor([0], device=device)
    value = tm.CrammerSingerLoss(power=2)(scores, y)
    assert value.item() == pytest.approx(0.64)
    (gradient,) = torch.autograd.grad(value, scores, create_graph=True)
    torch.testing.assert_close(gradient, torch.tensor([[-1.6, 0, 1.6]], dtype=torch.float64, device=device))
    (second,) = torch.autograd.grad(gradient[0, 0], scores)
    torch.testing.assert_close(second, torch.tensor([[2.0, 0, -2.0]], dtype=torch.float64, device=device))


ALL = [
    tm.CrammerSingerLoss(),
    tm.WestonWatkinsLoss(),
    tm.M3NLoss(),
    tm.SVMStructLoss(),
    tm.CRFLoss(),
    tm.StructuredPerceptronLoss(),
]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_a_forbidden_label_costs_infinity_and_has_no_gradient(loss, device):
    scores = torch.tensor([[-math.inf, 0.0, 1.0], [0.5, -math.inf, 0.0]], device=device, requires_grad=True)
    value = loss(scores, torch.tensor([0, 0], device=device))
    assert value == math.inf
    value.backward()
    assert (scores.grad[0] == 0).all()
    assert scores.grad.isfinite().all()


def test_the_margin_without_a_rival_and_of_a_forbidden_label(device):
    y = torch.zeros(3, dtype=torch.long, device=device)
    alone = torch.tensor([[-5.0], [math.inf], [math.nan]], device=device, requires_grad=True)
    margin = tm.functional.margin(alone, y)
    assert margin[:2].tolist() == [math.inf, math.inf]
    assert margin[2].isnan()
    margin[0].backward()
    assert alone.grad[0] == 0
    forbidden = torch.tensor([[-math.inf, 7.0], [-math.inf, -math.inf], [-math.inf, math.nan]], device=device)
    margin = tm.functional.margin(forbidden, y)
    assert margin[:2].tolist() == [-math.inf, -math.inf]
    assert margin[2].isnan()


def test_costs_of_each_example_and_forbidden_labels(device):
    """With a matrix for each: ``sum_k [cost + f_k - f_y]_+`` over the rivals, ``max_k cost [1 + f_k - f_y]_+``."""
    scores, y = torch.randn(2, 3, 4, device=device), torch.randint(4, (2, 3), device=device)
    scores[1, 2, y[1, 2]] = -math.inf
    matrices = 5 * torch.rand(2, 3, 4, 4, device=device)
    matrices.diagonal(dim1=-2, dim2=-1).zero_()
    value = tm.WestonWatkinsLoss(cost=matrices, reduction="none")(scores, y)
    scaled = tm.SVMStructLoss(cost=matrices, reduction="none")(scores, y)
    for a, b in itertools.product(range(2), range(3)):
        label, row = int(y[a, b]), scores[a, b]
        costs = matrices[a, b, label].tolist()
        expected = sum(max(0.0, costs[k] + float(row[k] - row[label])) for k in range(4) if k != label)
        assert float(value[a, b]) == pytest.approx(expected, rel=1e-5)
        expected = max(costs[k] * max(0.0, 1 + float(row[k] - row[label])) for k in range(4) if k != label)
        assert float(scaled[a, b]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_a_forbidden_rival_counts_for_nothing(loss, device):
    scores = torch.tensor([[0.5, -math.inf, 0.2]], device=device, requires_grad=True)
    y = torch.tensor([0], device=device)
    value = loss(scores, y)
    torch.testing.assert_close(value, loss(scores[:, [0, 2]], y))
    value.backward()
    assert scores.grad[0, 1] == 0
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_large_scores_lose_no_precision(loss, device):
    """Shifted by 1e4 in float32, the loss of the shifted, rounded scores is right to the last bits."""
    scores = torch.randn(64, 9, device=device) + 1e4
    y = torch.randint(9, (64,), device=device)
    torch.testing.assert_close(loss(scores, y).double(), loss(scores.double(), y), rtol=1e-6, atol=1e-6)


def test_ties_go_to_the_lowest_rival(device):
    scores = torch.zeros(1, 4, device=device, requires_grad=True)
    for y, rival in [(0, 1), (1, 0), (3, 0)]:
        (gradient,) = torch.autograd.grad(tm.CrammerSingerLoss()(scores, torch.tensor([y], device=device)), scores)
        assert gradient[0, rival] == 1
    wide = torch.zeros(2, 1000, device=device)
    rivals = torch.tensor([0, 1], device=device)
    assert tm.functional.margin(wide, rivals).tolist() == [0, 0]


# ---------------------------------------------------------------------- AdaBoost


@pytest.mark.parametrize("variant", ["mh", "mr", "averaged"])
def test_adaboost_on_label_sets(variant, device):
    scores = torch.randn(30, 4, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.randint(2, (30, 4), device=device) * 2 - 1
    y[0], y[1] = 1, -1  # no pair
    naive = getattr(reference, f"adaboost_{variant}")
    expected = [naive(f, s) for f, s in zip(scores.tolist(), y.tolist(), strict=True)]
    loss = tm.AdaBoostLoss(variant, reduction="none")
    torch.testing.assert_close(loss(scores, y).cpu(), torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(loss(scores, y.double()), loss(scores, y))
    many, signs = scores.view(2, 3, 5, 4), y.view(2, 3, 5, 4)
    torch.testing.assert_close(loss(many, signs).flatten(), loss(scores, y))
    for dim in (1, -2):
        of_dim = tm.AdaBoostLoss(variant, reduction="none", class_dim=dim)
        torch.testing.assert_close(of_dim(many.movedim(-1, dim), signs.movedim(-1, dim)).flatten(), loss(scores, y))
    assert torch.autograd.gradcheck(lambda s: loss(s, y), (scores,))
    if variant == "mr":
        value = loss(scores, y)
        value[:2].sum().backward()
        assert (value[:2] == 0).all()
        assert (scores.grad[:2] == 0).all()


def test_adaboost_of_sets_by_the_number_of_pairs(device):
    scores, y = torch.randn(2, 10, 5, dtype=torch.float64), torch.randint(2, (2, 10, 5)) * 2 - 1
    rows = zip(scores.view(20, 5).tolist(), y.view(20, 5).tolist(), strict=True)
    expected = [reference.adaboost_mr(f, signs, normalize=True) for f, signs in rows]
    value = tm.AdaBoostLoss("mr", normalize=True, reduction="none")(scores.to(device), y.to(device))
    torch.testing.assert_close(value.cpu(), torch.tensor(expected, dtype=torch.float64).view(2, 10))


def test_adaboost_leaves_single_labels_out(device):
    scores = torch.randn(3, 4, device=device)
    y = torch.tensor([[1, -1, -100, -1], [1, -1, 1, -1], [-100] * 4], device=device)
    for variant in ("mh", "mr", "averaged"):
        loss = tm.AdaBoostLoss(variant, reduction="none")
        part = loss(scores[:1, [0, 1, 3]], y[:1, [0, 1, 3]])
        torch.testing.assert_close(loss(scores, y)[:1], part)
        assert loss(scores, y)[2] == 0


def test_adaboost_of_one_known_sign():
    """Of one class alone ``e^{-y f}``, whatever the form, but for pairs, of which there are none."""
    scores, y = torch.tensor([[0.7, 3.0, -2.0]]), torch.tensor([[-1, -100, -100]])
    found = {form: float(tm.AdaBoostLoss(form)(scores, y)) for form in ("mh", "averaged", "mr")}
    assert found == pytest.approx({"mh": math.exp(0.7), "averaged": math.exp(0.7), "mr": 0.0}, rel=1e-6)


def exact_adaboost(variant, f, y):
    """Value and gradient in Python's decimals, which do not overflow."""
    f = [Decimal(repr(v)) for v in f]
    y = y if len(y) > 1 else [1 if k == y[0] else -1 for k in range(len(f))]
    if variant == "mh":
        terms = [((-s,), (k,)) for k, s in enumerate(y)]
    elif variant == "averaged":
        terms = [([-s / Decimal(len(y)) for s in y], range(len(y)))]
    else:
        terms = [((-1, 1), (a, b)) for a in range(len(f)) for b in range(len(f)) if y[a] == 1 and y[b] == -1]
    value, gradient = Decimal(0), [Decimal(0)] * len(f)
    for slopes, classes in terms:
        term = sum(s * f[k] for s, k in zip(slopes, classes, strict=True)).exp()
        value += term
        for s, k in zip(slopes, classes, strict=True):
            gradient[k] += s * term
    return float(value), [float(g) for g in gradient]


@pytest.mark.parametrize("variant", ["mh", "mr", "averaged"])
@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([-100.0], [0]),  # a single class has no pair
        ([1000.0], [0]),
        ([1000.0, -1000.0, 5.0], [0]),
        ([1000.0, -1000.0, 5.0], [1]),
        ([1000.0, -1000.0, 500.0], [1, 1, 1]),  # all relevant
        ([1000.0, -1000.0, 500.0], [-1, -1, -1]),  # none
        ([1000.0, 1000.5, 999.0], [1, -1, -1]),
        ([1000.0, 1000.5, 999.0], [0]),
        ([1000.0, 1000.0, 1000.0], [1, -1, 1]),
        ([-1000.0, 0.0, 1000.0], [1, -1, 1]),
        ([-1000.0, 80.0, 1000.0], [1, -1, 1]),
        ([60.0, -20.0, 300.0], [1, -1, 1]),
        ([1.0, 2.0, 3.0, 4.0], [1, -1, 1, -1]),
    ],
    ids=str,
)
def test_adaboost_of_large_scores(variant, scores, y, device, dtype):
    leaf = torch.tensor([scores], dtype=dtype, device=device, requires_grad=True)
    target = torch.tensor([y] if len(y) > 1 else y, device=device)
    value = tm.AdaBoostLoss(variant)(leaf, target)
    gradient = torch.autograd.grad(value, leaf)[0]
    exact_value, exact_gradient = exact_adaboost(variant, scores, y)
    close = {"rtol": 1e-4 if dtype == torch.float32 else 1e-9, "atol": 1e-30}
    torch.testing.assert_close(value.detach().cpu(), torch.tensor(exact_value, dtype=dtype), **close)
    if value.isinf():
        assert not gradient.isnan().any()
    else:
        torch.testing.assert_close(gradient[0].cpu(), torch.tensor(exact_gradient, dtype=dtype), **close)


@pytest.mark.parametrize("variant", ["mh", "mr", "averaged"])
def test_adaboost_does_not_overflow_where_its_value_does_not(variant, device):
    scores = torch.tensor([[80.0, 79.0, 120.0]], device=device)
    y = torch.tensor([[1, -1, 1]], device=device)
    value = tm.AdaBoostLoss(variant)(scores.where(y > 0, -scores), y)  # every label right, by far
    assert value.isfinite()
    close = tm.AdaBoostLoss("mr")(torch.tensor([[500.0, 500.0]], device=device), torch.tensor([[1, -1]], device=device))
    assert close.item() == pytest.approx(1.0)


def test_adaboost_bad_input(device):
    with pytest.raises(ValueError, match="variant: got 'hm'; accepted are 'mh', 'mr', 'averaged'"):
        tm.AdaBoostLoss("hm")
    with pytest.raises(ValueError, match="target: got the entry 0; accepted are -1 and"):
        tm.AdaBoostLoss(validate_args=True)(torch.zeros(1, 2, device=device), torch.tensor([[0, 1]], device=device))
    with pytest.raises(ValueError, match="weight: got class weights with a ±1 target"):
        tm.AdaBoostLoss(weight=[1.0, 1.0]).to(device)(
            torch.zeros(1, 2, device=device), torch.tensor([[-1, 1]], device=device)
        )
    with pytest.raises(ValueError, match="normalize"):
        tm.functional.adaboost_loss(torch.zeros(1, 2), torch.tensor([0]), normalize=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tm.CrammerSingerLoss(margin=-1), "margin: got -1"),
        (lambda: tm.CrammerSingerLoss(power=0.5), "power: got 0.5"),
        (lambda: tm.CrammerSingerLoss(margin=2, cost="zero_one"), "margin: got 2 together with a cost"),
        (lambda: tm.MarginRampLoss(0), "rho: got 0"),
        (lambda: tm.CRFLoss(temperature=0), "temperature: got 0"),
        (lambda: tm.M3NLoss("hinge"), "cost: got 'hinge'; accepted are 'zero_one', 'hamming'"),
        (lambda: tm.M3NLoss([[0, -1], [1, 0]]), "cost: has a negative entry"),
        (lambda: tm.M3NLoss([[1, 1], [1, 0]]), "cost: has 1 on the diagonal"),
        (lambda: tm.M3NLoss(torch.zeros(2, 3)), r"cost: got shape \(2, 3\)"),
        (lambda: tm.M3NLoss(torch.tensor([[0, torch.nan], [1, 0]])), "cost: has an entry that is not finite"),
        (lambda: tm.M3NLoss([[0, 1], [1, 0]])(torch.zeros(1, 3), torch.tensor([0])), "cost: is 2 x 2"),
        (
            lambda: tm.M3NLoss(torch.zeros(2, 3, 3))(torch.zeros(1, 3), torch.tensor([0])),
            "cost: has one matrix for each of",
        ),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cost_of_the_wrong_kind():
    with pytest.raises(TypeError, match="cost: got int"):
        tm.M3NLoss(3)


# ---------------------------------------------------------------------- inputs that broke this library


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_an_empty_batch_of_many_classes(shape, device):
    scores = torch.randn(*shape, 300, device=device, requires_grad=True)
    value = tm.CrammerSingerLoss()(scores, torch.zeros(shape, dtype=torch.long, device=device))
    value.backward()
    assert value == 0


@pytest.mark.parametrize("loss", [tm.CrammerSingerLoss(), tm.CrammerSingerLoss(power=2), tm.MarginRampLoss(1.0)])
def test_a_single_class_has_a_zero_gradient(loss, device):
    scores = torch.randn(3, 1, device=device, requires_grad=True)
    loss(scores, torch.zeros(3, dtype=torch.long, device=device)).backward()
    assert (scores.grad == 0).all()


@pytest.mark.parametrize("num_classes", [2, 300])
def test_adaboost_on_forbidden_classes(num_classes, device):
    target = torch.tensor([0], device=device)
    for forbidden_label in (False, True):
        scores = torch.full((1, num_classes), -math.inf, device=device)
        scores[0, int(forbidden_label)] = 1.0  # the only class that is allowed: the label, or a rival of it
        scores.requires_grad_()
        value = tm.AdaBoostLoss("mr", normalize=True)(scores, target)
        assert value == (math.inf if forbidden_label else 0)
        value.backward()
        assert (scores.grad == 0).all()


def test_numbers_of_numpy_are_numbers():
    import numpy as np

    head = tm.MulticlassHead(np.int64(4), np.int64(3), loss=tm.CrammerSingerLoss(margin=np.float32(1)))
    assert head(torch.zeros(2, 4)).shape == (2, 3)
    assert repr(tm.M3NLoss(cost=np.array([[0, 1], [1, 0]])).cost) == "Matrix(2 x 2)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tm.CrammerSingerLoss(weight=2.0), TypeError, "weight: got 2.0; accepted is one weight"),
        (lambda: tm.CrammerSingerLoss(weight="balanced"), TypeError, "weight: got 'balanced'"),
        (lambda: tm.CrammerSingerLoss(weight=[[1.0]]), ValueError, r"weight: got shape \(1, 1\)"),
        (lambda: tm.M3NLoss([[0, 1], [1]]), ValueError, "cost: is no table of numbers"),
        (lambda: tm.AdaBoostLoss()(torch.zeros(1, 2), torch.tensor([[True, False]])), TypeError, r"torch\.bool"),
        (
            lambda: tm.CRFLoss(weight=[1.0, torch.nan])(torch.zeros(1, 2), torch.tensor([0])),
            ValueError,
            "weight: has an entry that is not finite",
        ),
    ],
)
def test_more_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------------- the smallest and the largest numbers


@pytest.mark.parametrize("rho", [5e-324, 1e-308, 1e-45, 1e-38, 1e-3, 1e30, 1e38, 1e300, 1.7e308, 10**300])
def test_a_ramp_of_any_width(rho, device, dtype):
    loss = tm.MarginRampLoss(rho, reduction="none")
    margins = [-1000.0, -1.0, 0.0, 1e-3, 1.0, 1000.0]
    scores = torch.tensor([[z, 0.0] for z in margins], dtype=dtype, device=device, requires_grad=True)
    value = loss(scores, torch.zeros(len(margins), dtype=torch.long, device=device))
    expected = torch.tensor([reference.ramp([z, 0.0], 0, rho) for z in margins], dtype=dtype)
    torch.testing.assert_close(value.detach().cpu(), expected)
    gradient = torch.autograd.grad(value.sum(), scores)[0]
    assert gradient.isfinite().all()
    if rho < 1:
        assert (gradient[[0, 1, 4, 5]] == 0).all()
    alone = loss(scores[:, :1], torch.zeros(len(margins), dtype=torch.long, device=device))
    assert (alone == 0).all()


@pytest.mark.parametrize("setting", ["margin", "power"])
@pytest.mark.parametrize("given", [10**400, "1", None, True, math.nan, math.inf, -1, 1j, torch.tensor(1.0)], ids=repr)
def test_settings_that_are_no_finite_numbers_are_named(setting, given):
    for make in (tm.CrammerSingerLoss, tm.WestonWatkinsLoss):
        with pytest.raises(ValueError, match=rf"^{setting}: got .*; accepted is a finite number"):
            make(**{setting: given})


def test_settings_may_be_numbers_of_any_kind():
    from fractions import Fraction

    import numpy as np

    scores, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    for one in (np.float32(1), np.int8(1), Fraction(1), 1, 1.0):
        for loss in (tm.CrammerSingerLoss(one, power=one), tm.MarginRampLoss(one)):
            again = type(loss)(1.0)
            assert torch.equal(loss(scores, y), again(scores, y))
    assert tm.CrammerSingerLoss(10**25)(scores, y).isfinite()


@pytest.mark.parametrize("num_classes", [2, 3, 300])
@pytest.mark.parametrize("power", [1, 2])
def test_forbidden_classes_under_a_hinge_of_the_margin(num_classes, power, device, dtype):
    """Forbidden rivals cost nothing and a forbidden label +inf, with zero derivatives of both orders."""
    inf = math.inf
    scores = torch.full((4, num_classes), -inf, dtype=dtype, device=device)
    scores[0, 0], scores[2, 1] = 0.5, 0.5  # only the label; nothing; only a rival; label and rival, close
    scores[3, :2] = torch.tensor([0.25, 0.5])
    target = torch.zeros(4, dtype=torch.long, device=device)
    expected = torch.tensor([0.0, inf, inf, 1.25**power], dtype=dtype, device=device)
    slope = 1.0 if power == 1 else 2.5
    for y in (target, target.where(torch.arange(4, device=device) != 3, -100)):
        kept = y == 0
        leaf = scores.clone().requires_grad_()
        value = tm.CrammerSingerLoss(power=power, reduction="none")(leaf, y)
        assert torch.equal(value, expected.where(kept, 0.0))
        for create_graph in (False, True):
            gradient = torch.autograd.grad(value.sum(), leaf, retain_graph=True, create_graph=create_graph)[0]
            assert (gradient[:3] == 0).all()
            assert gradient[3, :2].tolist() == ([-slope, slope] if kept[3] else [0, 0])
            assert (gradient[3, 2:] == 0).all()
        if power == 2:
            second = torch.autograd.grad(gradient[3, 0], leaf)[0]
            assert second[3, :2].tolist() == ([2, -2] if kept[3] else [0, 0])
            assert second.isfinite().all()


def test_the_mean_in_one_node_is_the_mean(device, dtype):
    for shape in [(7, 4), (2, 3, 4), (4,)]:
        scores = torch.randn(*shape, dtype=dtype, device=device, requires_grad=True)
        target = torch.randint(4, shape[:-1], device=device)
        for loss in (tm.CrammerSingerLoss, lambda **extra: tm.MarginRampLoss(2.0, **extra)):
            fused, apart = loss()(scores, target), loss(reduction="none")(scores, target).mean()
            torch.testing.assert_close(fused, apart)
            torch.testing.assert_close(*(torch.autograd.grad(value, scores)[0] for value in (fused, apart)))


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e-40])
def test_weights_of_any_size_have_the_gradient_of_a_mean(size):
    """``(l_i - mean) / sum w``, where that is a number."""
    scores = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    weight = (size * torch.tensor([1.0, 2.0, 0.5])).requires_grad_()
    each = tm.WestonWatkinsLoss(reduction="none")(scores, torch.tensor([0, 0, 1]))
    loss = tm.WestonWatkinsLoss()(scores, torch.tensor([0, 0, 1]), sample_weight=weight)
    loss.backward()
    mean = float((each * weight.detach().double()).sum() / weight.detach().double().sum())
    expected = (each.double() - mean) / weight.detach().double().sum()
    assert loss.item() == pytest.approx(mean, rel=1e-4)
    limit = torch.finfo(torch.float32).max
    expected = torch.where(expected.abs() > limit, expected.sign() * torch.inf, expected)
    torch.testing.assert_close(weight.grad.double(), expected, rtol=1e-4, atol=0)
    alone = torch.tensor([size], requires_grad=True)
    tm.WestonWatkinsLoss()(scores[:1], torch.tensor([1]), sample_weight=alone).backward()
    assert alone.grad.tolist() == [0.0]
