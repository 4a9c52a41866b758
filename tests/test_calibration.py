"""Temperature and Platt scaling against maximum likelihood and scikit-learn."""

import math
import warnings

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import torch_multiclass as tm
from torch_multiclass.ops import logistic


def generator():
    return torch.Generator().manual_seed(0)


def test_temperature_is_the_maximum_likelihood_one():
    true = 3.0
    scores = 4 * torch.randn(4000, 5, generator=generator(), dtype=torch.float64)
    target = torch.multinomial((scores / true).softmax(-1), 1, generator=generator()).squeeze(-1)
    scaling = tm.TemperatureScaling(dtype=torch.float64).fit(scores, target)
    assert float(scaling.temperature) == pytest.approx(true, rel=0.1)
    beta = (1 / scaling.temperature).requires_grad_()
    nn.functional.cross_entropy(beta * scores, target).backward()
    assert abs(float(beta.grad)) < 1e-6
    torch.testing.assert_close(scaling(scores), (scores / scaling.temperature).softmax(-1))


def test_platt_scaling_is_logistic_regression_of_each_column():
    """On so many examples that Platt's targets are nearly 0 and 1, against scikit-learn without a penalty."""
    g = generator()
    code = torch.tensor([[1, 1], [-1, 0], [1, -1]])
    target = torch.arange(6000) % 3
    bits = code[target]
    margins = 0.8 * bits + torch.randn(6000, 2, generator=g) + torch.tensor([0.5, -0.2])
    scores = tm.CodedScores(margins.double(), code)
    platt = tm.PlattScaling(2, dtype=torch.float64).fit(scores, target)
    for s in range(2):
        asked = bits[:, s] != 0
        fitted = LogisticRegression(C=1e10, tol=1e-10).fit(margins[asked, s, None].numpy(), bits[asked, s].numpy())
        assert 2 * float(platt.slope[s]) == pytest.approx(fitted.coef_[0, 0], abs=0.02)
        assert 2 * float(platt.offset[s]) == pytest.approx(fitted.intercept_[0], abs=0.02)
    line = torch.stack([platt.slope, platt.offset]).requires_grad_()
    positive = (bits > 0).double()
    goal = torch.where(bits > 0, (positive.sum(0) + 1) / (positive.sum(0) + 2), 1 / ((bits < 0).double().sum(0) + 2))
    u = 2 * (line[0] * margins.double() + line[1])
    loss = ((nn.functional.softplus(u) - goal * u) * (bits != 0)).sum(0)
    gradient = torch.autograd.grad(loss.sum(), line)[0]
    assert float(gradient.abs().max()) / 6000 < 1e-7


def test_platt_leaves_columns_alone_that_it_cannot_fit():
    scores = tm.CodedScores(torch.tensor([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0]]), torch.tensor([[1, -1, 1], [1, -1, -1]]))
    platt = tm.PlattScaling(3).fit(scores, torch.tensor([0, 1]))
    assert platt.slope[:2].tolist() == [1, 1]
    assert platt.offset[:2].tolist() == [0, 0]
    assert platt.slope[2] < 0
    separated = tm.CodedScores(torch.tensor([[-2.0], [3.0], [-1.0]]), torch.tensor([[1], [-1]]))
    line = tm.PlattScaling(1).fit(separated, torch.tensor([1, 0, 1]))
    assert bool(line.slope.isfinite().all())
    assert float(line.slope) > 0


def test_lines_descend_by_newton_s_steps():
    """From slope 0 and the share's offset; close to it a whole step is taken."""
    g = generator()
    f, goal = torch.randn(40, 3, generator=g).double(), 0.4 + 0.3 * torch.rand(40, 3, generator=g).double()
    f, weight = f + 0.5, (torch.rand(40, 3, generator=g) < 0.7).double()
    begin = torch.stack([torch.zeros(3).double(), torch.logit((weight * goal).sum(0) / weight.sum(0))])
    torch.testing.assert_close(logistic.descended(f, goal, weight, steps=0), begin)
    for steps in (0, 1):
        before, after = (logistic.descended(f, goal, weight, steps=n) for n in (steps, steps + 1))
        for s in range(3):

            def loss(line, s=s):
                u = line[0] * f[:, s] + line[1]
                return (weight[:, s] * (nn.functional.softplus(u) - goal[:, s] * u)).sum()

            slopes, curves = torch.func.grad(loss)(before[:, s]), torch.func.hessian(loss)(before[:, s])
            whole = before[:, s] - torch.linalg.solve(curves, slopes)
            torch.testing.assert_close(after[:, s], whole, rtol=1e-9, atol=1e-11)


def two_columns(margins, bits):
    """Scores of one column, and labels: class 0 for +1, class 1 for -1."""
    scores = tm.CodedScores(torch.tensor(margins, dtype=torch.float64)[:, None], torch.tensor([[1], [-1]]))
    return scores, (1 - torch.tensor(bits)) // 2


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1.0, 100.0, 1000.0, 1e6, 1e30, 1e150])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_platt_scaling_does_not_depend_on_the_unit(unit, dtype):
    """Four margins of +1 unit, three of them right, and four of -1: probabilities 2/3 and 1/3 in any unit."""
    if dtype == torch.float32 and not 1e-30 < unit < 1e35:
        pytest.skip("the slope is no float32")
    scores, target = two_columns([unit] * 4 + [-unit] * 4, [1, 1, 1, -1, -1, -1, -1, 1])
    probability = tm.PlattScaling(1, dtype=dtype).fit(scores, target)(scores).margins.mul(2).sigmoid().squeeze(1)
    expected = torch.tensor([2 / 3] * 4 + [1 / 3] * 4, dtype=probability.dtype)
    torch.testing.assert_close(probability, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("unit", "shift"), [(100.0, 0.0), (1.0, 1000.0), (1e4, -3e4), (1e-3, 5.0)])
def test_platt_scaling_of_other_units_and_zeros_is_that_of_the_plain_margins(seed, unit, shift):
    g = torch.Generator().manual_seed(seed)
    bits = 2 * torch.randint(2, (40,), generator=g) - 1
    f = (bits + 1.5 * torch.randn(40, generator=g, dtype=torch.float64)).tolist()
    curves = []
    for margins in (f, [unit * m + shift for m in f]):
        scores, target = two_columns(margins, bits.tolist())
        curves.append(tm.PlattScaling(1, dtype=torch.float64).fit(scores, target)(scores).margins)
    torch.testing.assert_close(curves[1], curves[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("outlier", [1e3, 1e6])
def test_platt_scaling_reaches_its_optimum_with_outliers(outlier):
    g = generator()
    f = torch.cat([torch.randn(50, generator=g, dtype=torch.float64), torch.tensor([outlier, -outlier])])
    bits = torch.where(torch.arange(52) % 3 == 0, 1, -1)
    scores, target = two_columns(f.tolist(), bits.tolist())
    platt = tm.PlattScaling(1, dtype=torch.float64).fit(scores, target)
    line = torch.cat([platt.slope, platt.offset]).requires_grad_()
    many, few = (bits > 0).sum(), (bits < 0).sum()
    goal = torch.where(bits > 0, (many + 1) / (many + 2), 1 / (few + 2)).double()
    u = 2 * (line[0] * f + line[1])
    (gradient,) = torch.autograd.grad((nn.functional.softplus(u) - goal * u).sum(), line)
    assert abs(float(gradient[0])) / outlier < 1e-6
    assert abs(float(gradient[1])) < 1e-6


def test_a_column_of_one_margin_says_nothing():
    """The share of each answer, by Platt's targets: (3 * 4/5 + 1/3) / 4."""
    scores, target = two_columns([250.0] * 4, [1, 1, 1, -1])
    probability = tm.PlattScaling(1).fit(scores, target)(scores).margins.mul(2).sigmoid()
    torch.testing.assert_close(probability, torch.full_like(probability, (3 * 4 / 5 + 1 / 3) / 4))


def test_what_cannot_be_calibrated_is_named():
    scores, target = two_columns([1.0, math.nan], [1, -1])
    with pytest.raises(ValueError, match="scores: hold margins that are not finite"):
        tm.PlattScaling(1).fit(scores, target)
    scores, target = two_columns([1.0, math.inf], [1, -1])
    with pytest.raises(ValueError, match="scores: hold margins that are not finite"):
        tm.PlattScaling(1).fit(scores, target)
    with pytest.raises(ValueError, match="scores: have 1 columns; accepted are 3"):
        tm.PlattScaling(3).fit(scores, target)
    with pytest.raises(ValueError, match="scores: have 1 columns; accepted are 3"):
        tm.PlattScaling(3)(scores)
    for call in (tm.PlattScaling(1).fit, lambda scores, _: tm.PlattScaling(1)(scores)):
        with pytest.raises(TypeError, match="scores: got Tensor; accepted here is CodedScores"):
            call(torch.zeros(2, 1), target)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="scores: hold NaN or inf"):
            tm.TemperatureScaling().fit(torch.tensor([[bad, 0.0]]), torch.tensor([0]))


def test_a_margin_that_the_label_ignores_may_be_anything():
    code = torch.tensor([[1, 1], [-1, 0], [1, -1]])
    margins = torch.tensor([[1.0, 2.0], [-1.0, math.nan], [2.0, -1.0], [-0.5, math.inf]])
    platt = tm.PlattScaling(2).fit(tm.CodedScores(margins, code), torch.tensor([0, 1, 2, 1]))
    assert bool(platt.slope.isfinite().all())
    assert bool(platt.offset.isfinite().all())


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_temperature_scaling_does_not_depend_on_the_unit(unit):
    """Three of four right at a lead of 4 units: probabilities 3/4 and 1/4 in any unit."""
    scores = unit * torch.tensor([[4.0, 0.0]] * 4)
    scaling = tm.TemperatureScaling().fit(scores, torch.tensor([0, 0, 0, 1]))
    torch.testing.assert_close(scaling(scores[0]), torch.tensor([0.75, 0.25]), rtol=1e-4, atol=1e-5)


RIGHT = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]), torch.tensor([0, 1])
OPPOSITE = torch.tensor([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), torch.tensor([1, 0])


@pytest.mark.parametrize(
    ("scores", "target", "words"),
    [(*RIGHT, "2 rows given, probabilities are 0 and 1"), (*OPPOSITE, "2 rows given, probabilities are all equal")],
)
def test_a_temperature_that_rows_leave_at_its_bound_is_told(scores, target, words):
    head = tm.MulticlassHead(4, 3)
    for fit in (tm.TemperatureScaling().fit, head.calibrate):
        with pytest.warns(UserWarning, match=f"temperature: .*{words}") as told:
            fit(scores, target)
        assert [one.filename for one in told] == [__file__]
    one = tm.ChainScores(scores.unsqueeze(1), torch.zeros(3, 3))
    chained, example = tm.ChainHead(4, 3), words.replace("rows", "examples")
    with pytest.warns(UserWarning, match=f"temperature: .*{example}"):
        chained.calibrate(one, target.unsqueeze(1))


def test_a_temperature_of_one_row_is_told():
    between = torch.tensor([[1.0, 0.9, -5.0]])  # right neither at 0 nor at a large temperature
    with pytest.warns(UserWarning, match=r"temperature: 1\.\d+ is that of one row; accepted are some hundreds"):
        tm.TemperatureScaling().fit(between, torch.tensor([1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tm.TemperatureScaling().fit(between.repeat(2, 1), torch.tensor([1, 1]))


@pytest.mark.parametrize("coded", [False, True])
def test_calibrate_gives_the_temperature_it_keeps(coded):
    target = torch.randint(3, (60,), generator=generator())
    values = torch.randn(60, 3, generator=generator()) + nn.functional.one_hot(target, 3)
    head = tm.OneVsAllHead(4, 3) if coded else tm.MulticlassHead(4, 3)
    found = head.calibrate(tm.CodedScores(values, tm.codes.one_vs_all(3)) if coded else values, target)
    assert found is head.temperature
    assert isinstance(found, tm.TemperatureScaling)
    assert 0.01 < float(found.temperature) < 100


@pytest.mark.parametrize("flat", [True, False])
def test_rows_that_are_all_forbidden_are_named(flat):
    values, target = torch.tensor([[-math.inf, 0.0], [-math.inf, 1.0]]), torch.tensor([0, 0])
    scores = values if flat else tm.ChainScores(values.unsqueeze(1), torch.zeros(2, 2))
    target = target if flat else target.unsqueeze(1)
    what = "labels, none of which is of a class" if flat else "labelled examples, none of which is possible"
    with pytest.raises(ValueError, match=f"target: has 2 {what}.*: each has a score of -inf; accepted is at least one"):
        tm.TemperatureScaling().fit(scores, target)
    with pytest.raises(ValueError, match=r"target: holds no label.*; accepted is at least one$"):
        tm.TemperatureScaling().fit(scores, torch.full_like(target, -100))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_temperature_of_sequences_is_the_best_there_is(unit):
    draws = torch.Generator().manual_seed(0)
    emissions, moves = torch.randn(60, 4, 3, generator=draws), torch.randn(3, 3, generator=draws)
    target = tm.ChainScores(emissions, moves).sample(1, generator=draws)[:, 0]
    given = tm.ChainScores(3 * unit * emissions, 3 * unit * moves)
    best = float(tm.TemperatureScaling().fit(given, target).temperature) / unit
    assert 2 < best < 4.5

    def loss(temperature):
        return float(
            tm.functional.crf_loss(
                tm.ChainScores(*(3 * part.double() / temperature for part in (emissions, moves))), target
            )
        )

    assert loss(best) < min(loss(1.02 * best), loss(best / 1.02))
