"""What solvers keep of planes, whose slopes and offsets a test draws itself, against the dual written out.

With slopes ``g`` and offsets ``b`` its value is ``sum share b - ½ sum_p s_p (sum share g_p)^2``, ``s`` the scales.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.solvers import CuttingPlane, FrankWolfe, cutting_plane
from torch_multiclass.solvers.cutting_plane import Bundle
from torch_multiclass.solvers.objective import Point
from torch_multiclass.solvers.parametric import KeptSlopes, Parametric
from torch_multiclass.solvers.planes import Planes
from torch_multiclass.solvers.sequences import Examples


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def made(C=0.5, rows=3):
    """The objective of a chain of two labels, whose transitions count a quarter in the norm."""
    features, target = torch.randn(rows, 2, 1, generator=generator()), torch.arange(2 * rows).view(rows, 2) % 2
    solver = FrankWolfe(C=C, transition_scale=2.0, scorer=tm.ChainScorer(1, 2))
    return solver.objective(Examples.made(features, target, None, None, None, {}))


def found(objective, seed, offset=1.0):
    draw = generator(seed)
    slope = torch.randn(len(objective.strength), len(objective.scales), generator=draw, dtype=torch.float64)
    offsets = offset * torch.rand(len(slope), generator=draw, dtype=torch.float64)
    return Planes(slope, offsets, offsets)


def value(objective, slope, offset, share):
    """The dual, of planes in one list."""
    pulled = share @ slope
    return float(share @ offset - 0.5 * (objective.scales * pulled * pulled).sum())


def best_step(parabola, most):
    """Where a parabola that opens downwards is highest, from 0 to ``most``."""
    at = [parabola(step) for step in (0.0, 1.0, 2.0)]
    bend = 2 * at[1] - at[0] - at[2]
    return min(max(((at[1] - at[0]) + bend / 2) / bend, 0.0), most)


def same(first, second):
    both = (torch.as_tensor(one, dtype=torch.float64) for one in (first, second))
    torch.testing.assert_close(*both, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_objective_of_a_weight(dtype):
    objective = made()
    point = Point((torch.randn(len(objective.scales), generator=generator(), dtype=dtype),))
    weight = point.parts[0].double()
    scorer = objective.scorer(Point((weight,)))
    losses = tm.M3NLoss(reduction="none")(scorer(objective.features), objective.labels).detach()
    square = float((weight * weight / objective.scales).sum())
    exact, wide, computed = objective.exact(point)
    same([exact, wide], [square, 0.5 * float(losses.sum())])
    assert computed == pytest.approx(wide, rel=1e-6)
    same(objective.primal(Point((weight,)), losses), 0.5 * square + 0.5 * float(losses.sum()))


# ------------------------------------------------------------------------------------------- planes of the whole risk


def bundle_of(objective, planes):
    bundle = Bundle(objective)
    for plane in planes:
        bundle = bundle.with_plane(plane, 1e-12)
    return bundle


def test_a_bundle_against_its_planes():
    objective = made()
    planes = [found(objective, seed) for seed in range(3)]
    bundle = bundle_of(objective, planes)
    slopes = torch.stack([torch.zeros(len(objective.scales)).double(), *(objective.strength @ p.slope for p in planes)])
    offsets = torch.stack([torch.zeros(()).double(), *(objective.strength @ p.offset for p in planes)])
    shares = torch.from_numpy(bundle.shares)
    assert int((shares > 0).sum()) > 1
    same(shares.sum(), 1.0)
    same(bundle.offsets, offsets)
    same(bundle.products, slopes * objective.scales @ slopes.mT)
    weight = bundle.point().parts[0]
    same(weight, -objective.scales * (shares @ slopes))
    same(bundle.linear(), float(shares @ offsets))
    same(bundle.risk(), float((offsets + slopes @ weight).max()))  # at the optimum all planes in use say the same
    same(bundle.value(Point((weight + 1,))), float(offsets[-1] + slopes[-1] @ (weight + 1)))
    every = sum(share * objective.strength[:, None] for share in shares[1:])
    same(bundle.multipliers(), every.expand(len(objective.strength), 1))


def test_shares_of_a_bundle_are_made_feasible():
    objective = made()
    bundle = bundle_of(objective, [found(objective, seed) for seed in range(2)])
    again = replace(bundle, shares=np.array([0.5, -0.1, 1.5])).anew()
    assert again.shares.tolist() == [0.25, 0.0, 0.75]


def test_a_round_of_cutting_planes(monkeypatch):
    """Planes are sought at the latest weight and a tenth of the way to it from the best; both come where the second
    makes up for less than a tenth of what the risk is above the planes at the latest weight."""
    asked, taken, counts = [], [], []

    def planes(objective, point, plain=Parametric.planes):
        losses, plane = plain(objective, point)
        asked.append((objective, point.parts[0], losses, plane))
        return losses, plane

    def with_plane(bundle, plane, tol, plain=Bundle.with_plane):
        taken.append((plane, tol, bundle))
        return plain(bundle, plane, tol)

    monkeypatch.setattr(Parametric, "planes", planes)
    monkeypatch.setattr(Bundle, "with_plane", with_plane)
    x, y = torch.randn(8, 3, 2, generator=generator()), torch.randint(2, (8, 3), generator=generator())
    solver = CuttingPlane(5.0, tol=1e-6, scorer=tm.ChainScorer(2, 2), on_step=lambda _: counts.append(len(taken)))
    history = solver.fit(x, y).report.history
    best, weight, ends = math.inf, None, [*counts[1:], len(taken)]
    for step, first, last in zip(history[:-1], counts, ends, strict=False):
        objective, latest, losses, plane = asked.pop(0)
        values = [objective.primal(Point((latest,)), losses)]
        wanted = [plane]
        tried = [(values[0], latest)]
        if step.iteration > 0:
            _, near, near_losses, near_plane = asked.pop(0)
            same(near, 0.9 * weight + 0.1 * latest)
            values.append(objective.primal(Point((near,)), near_losses))
            tried.append((values[1], near))
        assert step.primal == min(values)
        for found_value, point in tried:
            if found_value <= best:
                best, weight = found_value, point
        if step.iteration > 0:
            bundle, strength = taken[first][2], objective.strength
            lower, risk = bundle.risk(), float(strength @ losses)
            there = float(strength @ (near_plane.offset + near_plane.slope @ latest))
            wanted = [near_plane, plane] if there < lower + 0.1 * (risk - lower) else [near_plane]
        assert [id(one) for one, *_ in taken[first:last]] == [id(one) for one in wanted]
        assert taken[first][1] == pytest.approx(1e-3 * (best - max(s.dual for s in history[: step.iteration + 1])))
    assert {end - begin for begin, end in zip(counts, ends, strict=True)} >= {1, 2}


def test_a_bundle_drops_planes_that_stay_unused(monkeypatch):
    monkeypatch.setattr(cutting_plane, "_PATIENCE", 2)
    objective, counts, bundle = made(), [], Bundle(made())
    for seed in range(5):
        bundle = bundle.with_plane(found(objective, seed, offset=-1e6), 1e-9)
        counts.append(len(bundle.shares))
        assert len(bundle.points) == len(bundle.found) == len(bundle.offsets) == len(bundle.products) == counts[-1]
    assert counts == [2, 3, 3, 3, 3]  # the plane 0 stays, and of the others two rounds
    assert bundle.unused[1:].tolist() == [2, 1]
    bundle = bundle_of(objective, [found(objective, 0)])
    for seed in range(4):
        bundle = bundle.with_plane(found(objective, seed, offset=-1e6), 1e-9)
    assert bundle.unused.tolist()[1:] == [0, 2, 1]  # what is in use is kept


def test_a_bundle_for_larger_losses_has_its_planes_scaled():
    little, large = made(0.5), made(1.5)
    planes = [found(little, seed) for seed in range(3)]
    begun, wanted = Bundle(large).begun_at(bundle_of(little, planes), 3.0), bundle_of(large, planes)
    same(begun.offsets, wanted.offsets)
    same(begun.products, wanted.products)
    for one, other in zip(begun.points[1:], wanted.points[1:], strict=True):
        same(one.parts[0], other.parts[0])
    assert begun.objective is large


# ------------------------------------------------------------------------------------------- planes of each example


def kept(objective, planes, share):
    """Room for one plane more than there are, and shares that leave a rest."""
    slope = torch.stack([p.slope for p in planes], 1)
    offset = torch.stack([p.offset for p in planes], 1)
    share = objective.strength[:, None] * torch.tensor(share).double().expand(offset.shape)
    weight = -objective.scales * torch.einsum("ia,iap->p", share, slope)
    count = torch.full((len(slope),), slope.shape[1])
    return KeptSlopes(objective, weight, count, slope, offset, share).grown()


def value_of(state, share=None):
    share = state.share if share is None else share
    return value(state.objective, state.slope.flatten(0, 1), state.offset.flatten(), share.flatten())


def rest_of(state):
    """What the plane 0 of the first example has."""
    return (state.objective.strength - state.share.sum(1))[:1]


def test_room_for_more_planes():
    objective = made()
    state = kept(objective, [found(objective, seed) for seed in range(3)], [0.2, 0.1, 0.4])
    assert state.slope.shape == (3, 6, len(objective.scales))
    assert state.offset.shape == state.share.shape == (3, 6)
    assert not bool(state.slope[:, 3:].any() | state.share[:, 3:].any())
    same(state.linear(), float((state.share * state.offset).sum()))
    same(state.point().parts[0], state.pull(state.share)[0].parts[0])


@pytest.mark.parametrize("shares", [[0.2, 0.1, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("offset", [1.0, 50.0])
def test_a_step_goes_as_far_as_the_dual_grows(shares, offset):
    """From the lowest plane that has a share to the highest, and no other step between the two is better."""
    objective = made(rows=1)
    state = kept(objective, [found(objective, seed, offset) for seed in range(3)], shares)
    slope, offsets = state.slope[0, :4], state.offset[0, :4]  # with the plane 0, which has the rest
    values, before = slope @ state.weight + offsets, torch.cat([state.share[0, :3], rest_of(state)])
    low = int(torch.where(before > 1e-12, values, torch.inf).argmin())
    way = torch.zeros(4).double()
    way[int(values.argmax())] += 1
    way[low] -= 1
    step = best_step(lambda step: value(objective, slope, offsets, before + step * way), float(before[low]))
    after = state.visit(torch.tensor([0]), 1)
    same(after.weight, after.pull(after.share)[0].parts[0])
    same(torch.cat([after.share[0, :3], rest_of(after)]), before + step * way)
    many = state.visit(torch.tensor([0]), 500)
    share, values = torch.cat([many.share[0, :3], rest_of(many)]), slope @ many.weight + offsets
    assert float(values.max() - values[share > 0].min()) < 1e-6  # the optimum: all that have a share are the highest


@pytest.mark.parametrize("shares", [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0]])
def test_a_plane_takes_the_place_of_the_lowest_that_has_no_share(shares):
    objective = made(rows=1)
    state = kept(objective, [found(objective, seed) for seed in range(3)], shares)
    assert state._keep(0, found(objective, 5).slope[0], 0.75)  # there is room
    assert torch.equal(state.slope[0, 3], found(objective, 5).slope[0])
    assert (state.count.tolist(), state.offset[0, 3:].tolist()) == ([4], [0.75, 0.0, 0.0])
    state.count[0] = 6
    state.share[0, 3:] = 0.01
    state.slope[0, 3:] = torch.randn(3, len(objective.scales), generator=generator(9)).double()
    values = state.offset[0] + state.slope[0] @ state.weight
    wanted = int(torch.where(state.share[0] == 0, values, torch.inf).argmin())
    new = found(objective, 7)
    assert state._keep(0, new.slope[0], 0.25)
    assert torch.equal(state.slope[0, wanted], new.slope[0])
    assert float(state.offset[0, wanted]) == 0.25
    assert state._keep(0, new.slope[0], 0.5)  # known by its slope
    assert float(state.offset[0, wanted]) == 0.25
    state.share[0] = 0.01
    assert not state._keep(0, found(objective, 8).slope[0], 0.5)
    assert state.visit(torch.tensor([0]), 0, found(objective, 8)).share.shape == (1, 12)


def test_shares_are_made_feasible():
    objective = made()
    state = kept(objective, [found(objective, seed) for seed in range(3)], [0.2, 0.1, 0.4])
    state.share[0, 0], state.share[1, 1] = -0.1, 5.0
    share = state.share.clamp(min=0)
    share[1] *= objective.strength[1] / share[1].sum()
    state.anew()
    same(state.share, share)
    same(state.weight, state.pull(share)[0].parts[0])
    begun = kept(made(1.5), [found(objective, 0)], [0.0]).begun_at(state, 3.0)
    same(begun.share, 3 * share)
    same(begun.weight, 3 * state.weight)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("way", [[0.05, 0.0, -0.02], [-0.3, 0.4, 0.01], [0.3, 0.3, 0.3]])
@pytest.mark.parametrize("offset", [1.0, 9.0])
def test_shares_go_on_the_way_that_they_came(size, way, offset):
    """As far as the dual grows, or a share or the rest comes to nothing; but where one is nothing already."""
    objective = made(rows=4)
    planes = [found(objective, seed, offset) for seed in range(3)]
    state = kept(objective, [plane._replace(slope=size * plane.slope) for plane in planes], [0.3, 0.3, 0.3])
    move = torch.zeros_like(state.share)
    move[:, :3] = 0.1 * objective.strength[:, None] * torch.tensor(way).double()
    state.share[2:, 0] = 0.0
    state.share[2] *= objective.strength[2] / state.share[2].sum()
    move[2:, 0] = -move[2:, 0].abs()
    state.anew()
    share, rest = state.share.clone(), objective.strength - state.share.sum(1)
    free = move.clone()
    free[2:, 0] = 0.0
    free[2] *= float(free[2].sum()) <= 0  # it has no rest to grow of
    limits = [*(-share / free)[free < 0].tolist(), *(rest / free.sum(1))[free.sum(1) > 0].tolist()]
    step = best_step(lambda step: value_of(state, share + step * free), min(limits))
    same(state.onward(share - move, objective).share, share + step * free)
