"""Parts of the machines' methods, each against what it is to be: a machine converges by wrong steps too, only later."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from torch_multiclass.ops.norms import dual_exponent, group_norm
from torch_multiclass.solvers import DualSVM
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import NONE, Constant, LinearSpace
from torch_multiclass.solvers.svm import ascent, balance, hard_margin, newton, proximal
from torch_multiclass.solvers.svm import group_norm as of_groups
from torch_multiclass.solvers.svm.duals import BinaryHinge, CrammerSinger, WestonWatkins

K = 3


def problem(rows=9, features=4, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(rows, features, generator=draw, dtype=torch.float64), torch.arange(rows) % K


def made(kind=CrammerSinger, rows=9, features=4, p=2.0, constant=NONE, C=0.7):
    x, y = problem(rows, features)
    upper = C * torch.linspace(0.5, 1.5, rows, dtype=torch.float64)[:, None]
    hinge = BinaryHinge(1.0 - 2 * (y % 2), upper) if kind is BinaryHinge else kind(y, K, upper, None)
    return GapMonitor(LinearSpace(x, constant=constant), hinge, 1e-6, p)


KINDS = [CrammerSinger, WestonWatkins, BinaryHinge]

# ---------------------------------------------------------------------------------------------------------- a free bias


@pytest.mark.parametrize("few", [2, 5, 1024])
@pytest.mark.parametrize("amount", [0.0, 0.4, 2.0, 3.1, 100.0])
def test_the_cheapest_rows_take_an_amount(few, amount, monkeypatch):
    monkeypatch.setattr(balance, "_FEW", few)
    draw = np.random.default_rng(0)
    room, price = draw.random(12) * (draw.random(12) > 0.3), draw.normal(size=12)
    left, wanted = amount, {}
    for row in np.argsort(price):
        part = min(room[row], left)
        if part > 0:
            wanted[int(row)] = part
        left -= part
    rows, parts, rest = balance.fill(torch.from_numpy(room), torch.from_numpy(price), amount)
    assert dict(zip(rows.tolist(), parts.tolist(), strict=True)) == pytest.approx(wanted)
    assert rest == pytest.approx(left)


def test_an_amount_that_rounding_leaves_is_none():
    room = torch.full((10,), 0.1, dtype=torch.float64)
    assert balance.fill(room, torch.zeros(10), 1 + 1e-12)[2] == 0.0
    assert balance.fill(room, torch.zeros(10), 1 + 1e-11)[2] > 0.0


@pytest.mark.parametrize("excess", [[0.5, -0.5], [3.0, -1.0, -4.0, 2.0], [-1.0, 0.0, 1.5, -0.5]])
def test_who_gives_how_much_to_whom(excess):
    trades = balance._trades(torch.tensor(excess))
    left = list(excess)
    for giver, taker, amount in trades:
        assert amount > 0
        left[giver] -= amount
        left[taker] += amount
    assert left == [0] * len(excess)
    assert len(trades) < len(excess)
    assert (trades[0][0], trades[0][1]) == (int(np.argmax(excess)), int(np.argmin(excess)))


def test_the_middle_of_where_a_convex_function_is_least():
    """``sum_i C_i [t_i + b]_+ + sum_i D_i [s_i - b]_+``, by its values at all kinks."""
    draw = torch.Generator().manual_seed(0)
    for size, seed in itertools.product((1, 4), range(6)):
        up, down = (torch.randint(-3, 4, (size,), generator=draw).double() for _ in range(2))
        C, D = (torch.randint(1, 3, (size,), generator=draw).double() for _ in range(2))
        kinks = torch.cat([-up, down])
        values = (C * (up + kinks[:, None]).clamp(min=0) + D * (down - kinks[:, None]).clamp(min=0)).sum(1)
        best = kinks[values == values.min()]
        found = balance.middle(kinks, torch.cat([C, D]), D)
        assert float(found) == float(best.min() + best.max()) / 2, seed


@pytest.mark.parametrize("kind", KINDS)
def test_a_dual_point_is_balanced_at_what_it_costs(kind):
    hinge = made(kind).losses
    draw = torch.Generator().manual_seed(1)
    for _ in range(10):
        beta = hinge.project(torch.randn(9, hinge.outputs, generator=draw, dtype=torch.float64))
        margins = hinge.margins(torch.randn(9, hinge.outputs, generator=draw, dtype=torch.float64))
        moved = hinge.balance(beta, margins)
        assert float(hinge.alpha(moved).sum(0).abs().max()) < 1e-12
        torch.testing.assert_close(hinge.project(moved), moved)
    hinge.upper = hinge.upper * (1 - hinge.alpha(hinge.start() + 1).sign()[:, :1].clamp(min=0) * 0.999)
    beta = hinge.project(torch.full((9, hinge.outputs), 9.0, dtype=torch.float64))  # there is little room on one side
    assert float(hinge.alpha(hinge.balance(beta)).sum(0).abs().max()) < 1e-12


@pytest.mark.parametrize("kind", [CrammerSinger, WestonWatkins])
def test_the_cheapest_rows_move_when_a_dual_point_is_balanced(kind):
    """Of two classes: the price is the margin of the one that receives over that of the one that gives."""
    draw = torch.Generator().manual_seed(1)
    y = torch.arange(12) % 2
    hinge = kind(y, 2, torch.full((12, 1), 0.7, dtype=torch.float64), None)
    for _ in range(10):
        beta = hinge.project(torch.randn(12, 2, generator=draw, dtype=torch.float64))
        margins = hinge.margins(torch.randn(12, 2, generator=draw, dtype=torch.float64))
        excess = hinge.alpha(beta).sum(0)
        giver, taker = int(excess.argmax()), int(excess.argmin())
        price = margins[:, taker] - margins[:, giver]
        before = hinge.alpha(beta)
        change = hinge.alpha(hinge.balance(beta, margins)) - before
        took = change[:, taker] > 1e-12
        room = torch.where(y == taker, 0.7, 0.0) - before[:, taker] - change[:, taker]
        assert bool(took.any())
        assert float(price[took].max()) <= float(torch.where(room > 1e-12, price, torch.inf).min()) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_a_free_bias_is_in_the_middle_of_the_best(kind):
    monitor = made(kind)
    hinge = monitor.losses
    scores = torch.randint(-2, 3, (9, hinge.outputs), generator=torch.Generator().manual_seed(5)).double()
    shift = hinge.best_shift(hinge.margins(scores))

    def total(bias):
        return float(hinge.loss(hinge.margins(scores + bias)).sum())

    *_, last = torch.eye(hinge.outputs, dtype=torch.float64)  # those before are shifted again by the ones after
    steps = torch.linspace(-4, 4, 1601, dtype=torch.float64)
    totals = torch.tensor([total(shift + step * last) for step in steps])
    best = steps[totals <= totals.min() + 1e-9]
    assert float(best.min() + best.max()) == pytest.approx(0.0, abs=1e-9)


# ----------------------------------------------------------------------------------------------- proximal-point methods


def test_steps_grow_with_every_centre_that_is_found():
    monitor = made()
    space, hinge = monitor.space, monitor.losses
    typical, size = float(space.squared_norms.mean()), float(hinge.upper.mean())
    steps = proximal.StepSize(space, hinge)
    assert steps.sigma == pytest.approx(10 / typical)
    assert steps._largest == pytest.approx(1e6 / typical)
    for count, factor in ((3, 10.0), (4, 2.0), (0, 10.0)):
        before = steps.sigma
        steps.grow(count)
        assert steps.sigma == pytest.approx(factor * before)
    before = steps.sigma
    steps.shrink()
    assert steps.sigma == pytest.approx(before / 10)
    steps.grow(0)
    assert steps.sigma == pytest.approx(before / 5)  # no more leaps
    for _ in range(60):
        steps.grow(0)
    assert steps.sigma == steps._largest
    several = made(WestonWatkins)
    assert proximal.StepSize(several.space, several.losses).sigma == pytest.approx(10 / (K * typical))
    hinge.upper = 1e5 * hinge.upper
    assert proximal.StepSize(space, hinge)._largest == pytest.approx(1e3 * 1e5 * size)
    hinge.upper = 1e-15 * hinge.upper
    assert proximal.StepSize(space, hinge)._largest == pytest.approx(1e10 * 1e-10 * size)


@pytest.mark.parametrize("root", [1.0, 0.9, 0.13, 0.12, 1e-3, 3e-9])
def test_where_a_function_changes_its_sign(root):
    asked = []

    def increasing(length):
        asked.append(length)
        return length - root

    found = proximal.root_of(increasing)
    assert found <= root <= 1.125 * found
    assert len(asked) <= 2 + math.log(1 / root) / math.log(8) + 6
    assert 0 < proximal.root_of(lambda _: 1.0) < 1e-14


def test_single_precision_is_at_its_end():
    def monitor(dtype, misled=False):
        return SimpleNamespace(misled=misled, space=SimpleNamespace(dtype=dtype))

    single = monitor(torch.float32)
    slow, quick = ([9.0, 1.0] + [0.95] * 39 + [last] for last in (0.81, 0.79))  # over the last forty passes
    assert proximal.exhausted(monitor(torch.float32, misled=True), [1.0])
    assert proximal.exhausted(single, slow)
    assert not proximal.exhausted(single, quick)
    assert not proximal.exhausted(single, slow[-40:])
    assert not proximal.exhausted(monitor(torch.float64), slow)


def at_a_point(monitor, sigma, bias=0.0):
    """A centre, and a point somewhere else."""
    space, hinge = monitor.space, monitor.losses
    draw = torch.Generator().manual_seed(3)
    weight, away = (0.5 * torch.randn(space.zero(hinge.outputs).shape, generator=draw).double() for _ in range(2))
    beta = hinge.project(torch.rand(space.rows, hinge.outputs, generator=draw, dtype=torch.float64))
    return newton._Centre(space, beta, away, sigma), weight


def gradient_of(monitor, point):
    return point.charged - monitor.space.image(monitor.losses.alpha(point.beta))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [NONE, Constant(1.0, free=True)])
def test_a_point_of_newton_s_method(kind, constant):
    """``F(W)`` is the largest over ``beta``, and its gradient what its values tell."""
    monitor = made(kind, constant=constant)
    space, hinge = monitor.space, monitor.losses
    centre, weight = at_a_point(monitor, 0.8)
    point = newton._Point(space, hinge, weight, centre)
    moved = weight.clone()
    if constant.free:
        moved[:, -1] -= centre.bias[:, -1]

    def value(beta):
        return float(
            0.5 * moved.square().sum() + (beta * point.margins).sum() - (beta - centre.beta).square().sum() / 1.6
        )

    assert point.value == pytest.approx(value(point.beta))
    for beta in (centre.beta, hinge.start(), hinge.project(point.beta + 0.01), hinge.project(point.beta - 0.01)):
        assert value(beta) <= point.value + 1e-12
    way = torch.randn(weight.shape, generator=torch.Generator().manual_seed(4)).double()
    ends = [newton._Point(space, hinge, weight + step * way, centre).value for step in (1e-6, -1e-6)]
    assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float((gradient_of(monitor, point) * way).sum()), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "features", "outright"), [(30, 2, 500), (9, 12, 500), (9, 12, 0), (30, 2, 0)])
@pytest.mark.parametrize("constant", [NONE, Constant(1.0, free=True)])
def test_a_newton_step_takes_the_gradient_to_nothing(kind, rows, features, outright, constant, monkeypatch):
    """A little of the step takes as little of the gradient away, since between kinks it is linear: by the features, by
    the rows, and by conjugate gradients to the end."""
    monkeypatch.setattr(newton, "FORCING", 1e-9)
    monitor = made(kind, rows, features, constant=constant)
    space, hinge = monitor.space, monitor.losses
    centre, weight = at_a_point(monitor, 0.8)
    point = newton._Point(space, hinge, weight, centre)
    gradient, size = gradient_of(monitor, point), proximal.StepSize(space, hinge)
    solver = newton._Newton(space, hinge, size)
    solver.outright = outright
    step = solver.direction(point.beta, gradient, 0.8)
    after = gradient_of(monitor, newton._Point(space, hinge, weight + 1e-6 * step, centre))
    torch.testing.assert_close((after - gradient) / 1e-6, -gradient, rtol=1e-5, atol=1e-5)
    assert size._growth == (10.0 if outright or not bool(hinge.free(point.beta).any()) else 2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stretch", [0.01, 40.0, 1e4])
def test_a_step_that_is_too_long_ends_where_the_function_stops_falling(kind, stretch):
    monitor = made(kind)
    space, hinge = monitor.space, monitor.losses
    centre, weight = at_a_point(monitor, 0.8)
    point = newton._Point(space, hinge, weight, centre)
    gradient = gradient_of(monitor, point)
    found = newton._search(space, hinge, point, -stretch * gradient, gradient, centre)
    length = float((weight - found.weight)[0, 0] / (stretch * gradient)[0, 0])
    torch.testing.assert_close(found.weight, weight - length * stretch * gradient)

    def value(step):
        return newton._Point(space, hinge, weight - step * stretch * gradient, centre).value

    if value(1.0) <= point.value - 1e-4 * stretch * float(gradient.square().sum()):
        assert length == pytest.approx(1.0)
        return
    low, high = 0.0, 1.0
    for _ in range(100):
        third = (high - low) / 3
        low, high = (low, high - third) if value(low + third) < value(high - third) else (low + third, high)
    assert length * (1 - 1e-6) <= low <= 1.125 * length * (1 + 1e-6)


@pytest.mark.parametrize(("part", "whole"), [(1e-6, False), (1e-2, True)])
def test_a_whole_step_is_to_fall_by_a_part_of_what_its_slope_promises(part, whole):
    monitor = made()
    space, hinge = monitor.space, monitor.losses
    centre, weight = at_a_point(monitor, 0.8)
    point = newton._Point(space, hinge, weight, centre)
    gradient = gradient_of(monitor, point)
    low, high = 0.0, 1e3
    for _ in range(200):  # where the value is as high again
        middle = (low + high) / 2
        fallen = newton._Point(space, hinge, weight - middle * gradient, centre).value < point.value
        low, high = (middle, high) if fallen else (low, middle)
    length = low * (1 - part)
    fall = point.value - newton._Point(space, hinge, weight - length * gradient, centre).value
    assert fall > 0
    assert (fall > 1e-4 * length * float(gradient.square().sum())) == whole
    found = newton._search(space, hinge, point, -length * gradient, gradient, centre)
    assert torch.allclose(found.weight, weight - length * gradient) == whole


def at_a_point_of_groups(p, features):
    """A centre, and a point somewhere else."""
    monitor = made(CrammerSinger, 12, features, p)
    space, hinge = monitor.space, monitor.losses
    draw = torch.Generator().manual_seed(3)
    weight, old, multipliers = (torch.randn(K, features, generator=draw).double() for _ in range(3))
    beta = hinge.project(torch.rand(12, K, generator=draw, dtype=torch.float64))
    centre = of_groups._Centre(beta, old, multipliers, 0.8, 2.0)
    return space, hinge, centre, of_groups._Point(space, hinge, weight, centre, p)


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, math.inf])
@pytest.mark.parametrize("features", [2, 1500])
def test_a_newton_step_under_a_group_norm(p, features, monkeypatch):
    """A little of the step takes as little of the gradient away, with the matrix and by products with it."""
    monkeypatch.setattr(of_groups, "FORCING", 1e-9)
    space, hinge, centre, point = at_a_point_of_groups(p, features)
    weight, old, multipliers, beta = point.weight, centre.weight, centre.multipliers, centre.beta
    assert centre.stiffness == 0.005
    # Y maximises <Y, W> - R*(Y) - |Y - Y0|^2 / (2 tau)
    norms = point.multipliers.norm(dim=1)
    for near in (point.multipliers * 1.01, point.multipliers + 0.01 * multipliers, multipliers):
        values = [
            (y * weight).sum()
            - group_norm(y.norm(dim=1), dual_exponent(p)) ** 2 / 2
            - (y - multipliers).square().sum() / 4
            for y in (point.multipliers, near)
        ]
        assert float(values[0]) >= float(values[1]) - 1e-9 * float(norms.sum()) ** 2
    image = space.image(hinge.alpha(hinge.project(beta + 0.8 * point.margins)))
    torch.testing.assert_close(point.gradient, point.multipliers - image + 0.005 * (weight - old))
    step = of_groups._direction(space, hinge, point, centre, p)
    after = of_groups._Point(space, hinge, weight + 1e-6 * step, centre, p)
    torch.testing.assert_close((after.gradient - point.gradient) / 1e-6, -point.gradient, rtol=1e-3, atol=1e-3)
    found = of_groups._search(space, hinge, point, 1e3 * step, centre, p)
    slopes = [float((of_groups._Point(space, hinge, at, centre, p).gradient * step).sum())
              for at in (found.weight, weight + 1.13 * (found.weight - weight))]  # fmt: skip
    assert slopes[0] <= 0 <= slopes[1]


@pytest.mark.parametrize(("steepness", "whole"), [(0.45, True), (0.55, False)])
def test_a_whole_step_under_a_group_norm_may_end_half_as_steep_up(steepness, whole):
    space, hinge, centre, point = at_a_point_of_groups(1.5, 4)

    def slope(length):
        end = of_groups._Point(space, hinge, point.weight - length * point.gradient, centre, 1.5)
        return float((end.gradient * -point.gradient).sum())

    low, high = 0.0, 10.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < -steepness * slope(0.0) else (low, middle)
    step = -low * point.gradient
    found = of_groups._search(space, hinge, point, step, centre, 1.5)
    assert torch.allclose(found.weight, point.weight + step) == whole


@pytest.mark.parametrize(("method", "p"), [(newton.augmented_lagrangian, 2.0), (of_groups.method_of_multipliers, 1.5)])
def test_a_centre_is_found_where_the_gradient_is_less_than_a_part_of_the_gap(method, p, monkeypatch):
    """``½ |grad F|^2`` is at most a twentieth of the gap where the next centre begins, and more before each step."""
    ratios = {True: [], False: []}
    for rows in (12, 60):  # drawn so that some are near
        monitor = made(CrammerSinger, rows, p=p, C=100.0)
        square, squares = monitor.space.square, []

        def noting(weight, square=square, squares=squares):
            squares.append(square(weight))
            return squares[-1]

        monitor.space.square = noting

        def decided(owner, name, found, monitor=monitor, squares=squares):
            method = getattr(owner, name)

            def noted(*arguments):
                ratios[found].append(10 * float(squares[-1]) / (monitor.primal - monitor.dual))
                return method(*arguments)

            patched.setattr(owner, name, noted)

        with monkeypatch.context() as patched:
            decided(proximal.StepSize, "grow", True)
            decided(newton._Newton, "direction", False)
            decided(of_groups, "_direction", False)
            assert sum(1 for _ in itertools.islice(method(monitor), 100)) < 100
    assert 0.5 < max(ratios[True]) <= 1 < min(ratios[False]) < 2


@pytest.mark.parametrize(
    ("hidden", "of_gradient", "primal", "drifted"),
    [(0.0, 0.0, 0.5, False), (0.019, 0.0, 0.5, False), (0.021, 0.0, 0.5, True), (0.021, 0.0, 4.0, False),
     (0.081, 0.0, 4.0, True), (0.0, 0.099, 0.5, False), (0.0, 0.101, 0.5, True), (0.0, 0.101, 4.0, False)],
)  # fmt: skip
def test_rounding_that_hides_a_hundredth_of_the_tolerance(hidden, of_gradient, primal, drifted):
    """Of the regulariser, or a twentieth of it of the gradient's square; here each class has a share of it."""
    monitor = made(p=2.0)
    monitor.tol, monitor.primal = 1.0, primal
    point = SimpleNamespace(weight=torch.ones(K, 4, dtype=torch.float64), gradient=torch.zeros(K, 4))
    share = {id(point.weight): hidden / K, id(point.gradient): of_gradient / K}
    monitor.space.hidden = lambda weight: torch.full((K,), share[id(weight)], dtype=torch.float64)
    assert of_groups._drifted(monitor, point) == drifted


# -------------------------------------------------------------------------------------------------------------- ascent


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [NONE, Constant(1.0, free=True)])
def test_a_centre_that_follows(kind, constant):
    """``W (1 + kappa) = kappa centre + V`` before and after, of a free bias ``W = centre``; with momentum."""
    monitor = made(kind, constant=constant)
    hinge, space, kappa = monitor.losses, monitor.space, 3.0
    draw = torch.Generator().manual_seed(3)
    beta = hinge.project(torch.rand(9, hinge.outputs, generator=draw, dtype=torch.float64))
    start = torch.randn(space.zero(hinge.outputs).shape, generator=draw).double()
    state = ascent._ProximalPoint(space, hinge, beta, start, kappa)
    image = space.image(hinge.alpha(beta))

    def lifted(laid):
        return state.loops.lift(laid, hinge.outputs).double().clone()

    def agrees():
        weight, centre = lifted(state.weight), lifted(state.centre)
        charged, pulled = space.charged(weight), space.charged(centre)
        torch.testing.assert_close((1 + kappa) * charged, kappa * pulled + space.charged(image))

    if constant.free:
        torch.testing.assert_close(lifted(state.weight)[:, -1], start[:, -1])
    previous = lifted(state.previous)
    state.centre = state.loops.lay(torch.randn(start.shape, generator=draw).double())
    state.measure(monitor)
    agrees()
    before, centre = lifted(state.weight), lifted(state.centre)
    assert state.distance() == pytest.approx(float((before - centre).square().sum()))
    state.move_centre()
    theta = (1 - math.sqrt(1 / 4)) / (1 + math.sqrt(1 / 4))
    torch.testing.assert_close(lifted(state.centre), before + theta * (before - previous))
    torch.testing.assert_close(lifted(state.previous), before)
    agrees()


def test_when_a_gap_is_measured():
    """Where it is hopeful, half the last estimate, or two passes have gone by."""
    monitor = SimpleNamespace(passes=4, gap=1.0, allowed=0.1, tol=1e-3)
    course = ascent._Course(monitor, 15)
    course.estimate = 2.0
    for passes, estimate, measured in (
        (4, 1.01, False),
        (5, 1.01, False),
        (5, 0.99, True),
        (6, 0.98, False),
        (7, 0.98, True),
    ):
        monitor.passes = passes
        assert course.worth_measuring(estimate) == measured, (passes, estimate)
    assert (course.measured, course.estimate) == (7, 0.98)
    monitor.passes = 8
    assert course.worth_measuring(0.49)
    assert not course.worth_measuring(0.26)
    monitor.allowed = 0.2
    assert course.worth_measuring(0.29)


@pytest.mark.parametrize(("patience", "slow"), [(39, True), (41, False)])
def test_more_passes_in_prospect_than_there_is_patience_for(patience, slow):
    """From 1 at pass 10 to 0.5 at pass 20: 10 log(0.5 / tol) / log 2 more of them at that pace."""
    monitor = SimpleNamespace(passes=0, gap=4.0, allowed=0.1, tol=0.5 * 2.0**-4)
    course = ascent._Course(monitor, patience)
    for passes, gap in ((9, 2.0), (10, 1.0), (19, 0.6)):
        monitor.passes, monitor.gap = passes, gap
        assert not course.too_slow()
    monitor.passes, monitor.gap = 20, 0.5
    assert course.too_slow() == slow


# --------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize(
    ("Cs", "tol", "length", "dtype"),
    [
        ([1.0], 1e-3, 1.0, torch.float32),
        ([1.0], 1e-5, 1.0, torch.float64),
        ([1.0, 1e6], 1e-3, 1.0, torch.float64),
        ([1e-6, 1.0], 1e-3, 1.0, torch.float64),
        ([10.0], 1e-3, 1000.0, torch.float64),
    ],
)
def test_fine_strong_and_weak_machines_work_in_double_precision(Cs, tol, length, dtype):
    x, y = problem()
    solver = DualSVM(tol=tol)
    assert solver.space(solver.problem(length * x.float(), y), Cs).dtype == dtype


def test_multipliers_that_are_all_at_their_bound_are_so_for_another_strength():
    x, y = problem(30)
    weak, strong = DualSVM(1.0, tol=1e-6, binary=True), DualSVM(4.0, tol=1e-6, binary=True)
    warm = weak.fit(0.01 * x, y.clamp(max=1)).report
    assert torch.equal(warm.alpha.abs(), torch.ones_like(warm.alpha))
    assert strong.fit(0.01 * x, y.clamp(max=1), warm_start=warm).report.iterations == 0


# --------------------------------------------------------------------------------------------------------- hard margins


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_factor_with_which_no_row_has_a_loss(kind):
    hinge = made(kind).losses
    scores = torch.randn(9, hinge.outputs, generator=torch.Generator().manual_seed(0)).double()
    if kind is BinaryHinge:
        scores = scores.abs() * hinge.signs
        wanted = float((1 / scores.abs()).max())
    else:
        assert hard_margin._factor(hinge, scores) == math.inf
        own = scores.gather(1, hinge.label)
        scores = scores.scatter_add(1, hinge.label, (scores.amax(1, keepdim=True) - own) + 0.1)
        own = scores.gather(1, hinge.label)
        wanted = max(1 / float(own[i] - scores[i, k]) for i in range(9) for k in range(K) if k != hinge.label[i])
    assert hard_margin._factor(hinge, scores) == pytest.approx(wanted)
    assert hard_margin._factor(hinge, torch.zeros_like(scores)) == math.inf


def test_hard_margins_are_the_end_of_growing_strengths(monkeypatch):
    """From 10 over the rows' squared length on, ten times as strong each time, until the machine is certified."""
    asked, steps = [], DualSVM.steps

    def seen(solver, problem, monitor):
        asked.append(solver.C)
        return steps(solver, problem, monitor)

    monkeypatch.setattr(DualSVM, "steps", seen)
    x = torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = (x @ torch.tensor([1.0, -0.5]).double() > 0).long()
    report = DualSVM(math.inf, tol=1e-6, binary=True).fit(x, y).report
    monkeypatch.undo()
    first = 10 / float(x.square().sum(1).mean())
    assert asked == pytest.approx([first * 10**n for n in range(len(asked))])
    assert len(asked) > 2
    weight = DualSVM(1e8, tol=1e-9, binary=True).fit(x, y).scorer.weight.detach()
    assert report.primal == pytest.approx(0.5 * float(weight.square().sum()), rel=1e-5)
