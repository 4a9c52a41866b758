r"""Accelerated block dual ascent.

The dual is maximised over one row at a time, each row exactly, in blocks: the rows of a block move together, and a line
search along the joint move, exact because the dual is quadratic, takes less of it where rows get into each other's way.
With many classes they seldom do, since a row moves only the few classes that compete for it.

Around it stands a proximal-point iteration with momentum: ascent solves, roughly, the problem with
``kappa/2 |W - centre|^2`` added, which is ``1 + kappa`` times better conditioned, and the centre follows ``W``. In it
``W = (kappa centre + V)/(1 + kappa)`` with ``V = sum_i alpha_i Phi(x_i)``. Every ``beta`` on the way is feasible for
the original dual, so the gap reported is the original one.

Reference: Shalev-Shwartz and Zhang (2016), *Accelerated proximal stochastic dual coordinate ascent for regularized loss
minimization*; Crammer and Singer (2001) for the row's sub-problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import Space
from torch_multiclass.solvers.svm.duals import Hinge, hinge_of

_CHECK_EVERY = 5
_REVIEW = 20  # passes over which progress is judged
_PATIENCE = 100  # more passes than this in prospect: give up and leave it to Newton's method
_ACCURACY = 20.0  # the centre moves when the sub-problem's gap is below this times kappa/2 |W - centre|^2


class _ProximalPoint:
    """The weight of the sub-problem, its centre, and the dual point that belongs to them."""

    def __init__(self, space: Space, hinge: Hinge, beta: Tensor, kappa: float) -> None:
        self.space, self.hinge, self.beta, self.kappa = space, hinge, beta, kappa
        # rows near 0 are held to a norm at which one step still crosses the polytope many times over
        crossing = 1e-4 / float(hinge.upper.mean())
        self.squared_norms = space.squared_norms.clamp_min(max(1e-6 * float(space.squared_norms.mean()), crossing))
        self.image = space.image(hinge.alpha(beta))
        self.centre = self.image.clone()
        self.previous = self.image.clone()
        self.weight = self.image.clone()

    def refresh(self) -> None:
        """Recompute ``V`` and ``W`` from ``beta``, dropping what rounding has added up to."""
        self.image = self.space.image(self.hinge.alpha(self.beta))
        self.weight = (self.kappa * self.centre + self.image) / (1 + self.kappa)

    def move_centre(self) -> None:
        """``centre <- W + theta (W - W of the move before)``; ``V`` stays, ``W`` follows."""
        root = math.sqrt(1 / (1 + self.kappa))
        image = (1 + self.kappa) * self.weight - self.kappa * self.centre
        self.centre = self.weight + (1 - root) / (1 + root) * (self.weight - self.previous)
        self.previous = self.weight
        self.weight = (self.kappa * self.centre + image) / (1 + self.kappa)

    def step(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """One block; the sub-problem's gap there beforehand, and which of its rows moved."""
        hinge, space, damp = self.hinge, self.space, 1 / (1 + self.kappa)
        beta = self.beta.index_select(0, rows)
        margins = hinge.margins(space.scores(self.weight, rows), rows)
        gap = hinge.loss(margins, rows).sum() - (beta * margins).sum()
        squared_norms = self.squared_norms.index_select(0, rows)[:, None] * damp
        moved = hinge.maximise_rows(beta, margins, squared_norms, rows).sub_(beta)
        alpha = hinge.alpha(moved, rows)
        energy, direction = space.energy(alpha, rows)
        energy = (energy * damp).clamp_min(torch.finfo(beta.dtype).tiny)
        length = ((moved * margins).sum() / energy).clamp(0, 1)
        space.shift(self.weight, alpha, rows, direction, length * damp)
        self.beta.index_copy_(0, rows, beta.addcmul_(moved, length))
        return gap, moved.abs().amax(1) > 1e-4 * hinge.upper.index_select(0, rows).squeeze(1)


def dual_ascent(monitor: GapMonitor, generator: torch.Generator) -> Iterator[None]:
    """Passes until the gap is proved or patience runs out; the best is in the monitor."""
    space, hinge = monitor.space, hinge_of(monitor)
    strength = float((hinge.upper.squeeze(1) * space.squared_norms).mean())
    state = _ProximalPoint(space, hinge, monitor.beta.clone(), kappa=min(max(strength, 1.0), 100.0) ** 0.5)
    everyone = torch.arange(space.rows, device=space.device)
    active = torch.ones(space.rows, dtype=torch.bool, device=space.device)
    size = min(max(space.rows // 32, 64), 256)
    gaps = [monitor.gap]
    since = 0

    def measure() -> bool:
        state.refresh()
        return monitor.see(state.weight, hinge.margins(space.scores(state.weight)), state.beta, state.image)

    while True:
        yield
        monitor.measure_unfinished = measure
        pool = everyone if since % _CHECK_EVERY == 0 else active.nonzero().squeeze(1)
        order = torch.randperm(len(pool), generator=generator).to(space.device)
        sub_gap = torch.zeros((), device=space.device, dtype=space.dtype)
        for rows in torch.split(pool.index_select(0, order), size):
            gap, moved = state.step(rows)
            sub_gap += gap
            active.index_copy_(0, rows, moved)
        since += 1
        if monitor.passes % _CHECK_EVERY == 0:
            if measure():
                return
            gaps.append(monitor.gap)
            if monitor.misled or _too_slow(gaps, monitor.tol):
                return
        distance = float(space.square(state.weight - state.centre))
        if float(sub_gap) <= _ACCURACY * state.kappa / 2 * distance:
            state.move_centre()
            since = 0


def _too_slow(gaps: list[float], tol: float) -> bool:
    """Whether, at the pace of the last `_REVIEW` passes, more than `_PATIENCE` are still needed."""
    back = _REVIEW // _CHECK_EVERY
    if len(gaps) <= 2 * back:
        return False
    pace = math.log(max(gaps[-1 - back], tol) / max(gaps[-1], tol)) / _REVIEW
    return math.log(max(gaps[-1], tol) / tol) > _PATIENCE * pace
