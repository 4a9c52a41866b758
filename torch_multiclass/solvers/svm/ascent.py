r"""Accelerated dual ascent.

The dual is maximised over one row at a time, each row exactly. The native library goes row by row; without it rows go
in blocks: those of a block move together, and a line search along the joint move, exact because the dual is quadratic,
takes less of it where rows get into each other's way. With many classes they seldom do, since a row moves only the few
classes that compete for it.

Around it stands a proximal-point iteration with momentum: ascent solves, roughly, the problem with
``kappa/2 |W - centre|^2`` added, which is ``1 + kappa`` times better conditioned, and the centre follows ``W``. In it
``W = (kappa centre + V)/(1 + kappa)`` with ``V = sum_i alpha_i Phi(x_i)``. Every ``beta`` on the way is feasible for
the original dual, so the gap reported is the original one.

Each pass looks at all rows, and then for a while only at those that have multipliers or have moved. A row whose own
part of the gap is a small part of what is allowed stays where it is.

Reference: Shalev-Shwartz and Zhang (2016), *Accelerated proximal stochastic dual coordinate ascent for regularized loss
minimization*; Crammer and Singer (2001) for the row's sub-problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from torch_multiclass.ops.ascent import RowAscent, loops_for
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.space import Space
from torch_multiclass.solvers.svm.duals import Hinge, hinge_of

_AGAIN = {True: 2.0, False: 1.0}  # with the library and without: how often a pass looks at its rows again
_PATIENCE = {True: 200, False: 15}  # more passes in prospect than that leave it to Newton's method
_REVIEW = 10  # passes over which progress is judged
_ACCURACY = 20.0  # the centre moves when the sub-problem's gap is below this times kappa/2 |W - centre|^2
_SHARE = 0.1  # rows stay that have less of the gap than this share of what is allowed for a row
_SETTLED = 0.1  # and a pass ends when all that is left is less than this share of what is allowed
_PROMISING, _HALFWAY, _OVERDUE = 1.5, 0.5, 2  # estimated gaps, over the allowed and the last, and passes: to measure


class _Blocks:
    """What `RowAscent` does, by operators of torch, the rows of a block moving together."""

    def __init__(self, space: Space, hinge: Hinge) -> None:
        self.space, self.hinge, self.size = space, hinge, min(max(space.rows // 32, 64), 256)

    def lay(self, weight: Tensor) -> Tensor:
        return weight.clone()

    def lift(self, laid: Tensor, outputs: int) -> Tensor:
        return laid

    def square(self, laid: Tensor) -> float:
        return float(self.space.square(laid))

    def sweep(
        self, laid: Tensor, beta: Tensor, order: Tensor, squares: Tensor, damp: float, skip: float
    ) -> tuple[float, Tensor]:
        parts = [self._step(laid, beta, rows, squares, damp, skip) for rows in torch.split(order, self.size)]
        return float(torch.stack([gap for gap, _ in parts]).sum()), torch.cat([moved for _, moved in parts])

    def _step(
        self, weight: Tensor, every_beta: Tensor, rows: Tensor, squares: Tensor, damp: float, skip: float
    ) -> tuple[Tensor, Tensor]:
        hinge, space = self.hinge, self.space
        beta, upper = every_beta.index_select(0, rows), hinge.upper.index_select(0, rows).squeeze(1)
        margins = hinge.margins(space.scores(weight, rows), rows)
        gaps = hinge.loss(margins, rows) - (beta * margins).sum(1)
        moves = gaps > skip * upper
        moved = hinge.maximise_rows(beta, margins, squares.index_select(0, rows)[:, None], rows).sub_(beta)
        moved.mul_(moves[:, None])
        alpha = hinge.alpha(moved, rows)
        energy, direction = space.energy(alpha, rows)
        energy = (energy * damp).clamp_min(torch.finfo(beta.dtype).tiny)
        length = ((moved * margins).sum() / energy).clamp(0, 1)
        space.shift(weight, alpha, rows, direction, length * damp)
        every_beta.index_copy_(0, rows, beta.addcmul_(moved, length))
        return gaps.double().sum(), moves


def _loops(space: Space, hinge: Hinge) -> RowAscent | _Blocks:
    """The native library's loops over the rows of a space, where there are any."""
    of_gram = isinstance(space, KernelSpace)
    values = space.matrix if isinstance(space, KernelSpace) else getattr(space, "features", None)
    loops = None if values is None else loops_for(values)
    if values is None or loops is None:
        return _Blocks(space, hinge)
    return RowAscent(
        loops, hinge.polytopes(), values, of_gram, space.constant.value if of_gram and space.constant.free else 0.0
    )


class _ProximalPoint:
    """The weight of the sub-problem, its centre, and the dual point that belongs to them; all weights laid out as the
    loops have them. A bias that is free is held by its centre alone."""

    def __init__(self, space: Space, hinge: Hinge, beta: Tensor, weight: Tensor, kappa: float) -> None:
        self.space, self.hinge, self.kappa, self.damp = space, hinge, kappa, 1 / (1 + kappa)
        self.beta = beta.clone(memory_format=torch.contiguous_format)
        # rows near 0 are held to a norm at which one step still crosses the polytope many times over
        crossing = 1e-4 / float(hinge.upper.mean())
        least = max(1e-6 * float(space.squared_norms.mean()), crossing)
        self.squares = space.squared_norms.clamp_min(least) * self.damp
        self.loops = _loops(space, hinge)
        start = self._image()
        if space.constant.free:
            start = space.charged(start) + space.along_bias(space.bias_part(weight))
        self.weight = self.loops.lay(start)
        self.centre, self.previous = self.weight.clone(), self.weight.clone()

    def _image(self) -> Tensor:
        alpha = self.hinge.alpha(self.beta)
        used = (alpha != 0).any(1).nonzero().squeeze(1)
        return self.space.image(alpha[used], used) if 4 * len(used) < len(alpha) else self.space.image(alpha)

    def measure(self, monitor: GapMonitor) -> bool:
        """Recompute ``V`` and ``W`` from ``beta``, dropping what rounding has added up to, and show them."""
        image, hinge = self._image(), self.hinge
        self.weight = (self._pull() + self.loops.lay(image)) * self.damp
        weight = self.loops.lift(self.weight, hinge.outputs)
        return monitor.see(weight, hinge.margins(self.space.scores(weight)), self.beta, image)

    def distance(self) -> float:
        """``|W - centre|^2``."""
        moved = self.weight - self.centre
        if self.space.constant.free:
            return float(self.space.square(self.loops.lift(moved, self.hinge.outputs)))
        return self.loops.square(moved)

    def _pull(self) -> Tensor:
        """``kappa centre``, and of a free bias as much as it has no square to be weighed against."""
        pull = self.kappa * self.centre
        if self.space.constant.free:
            bias = self.space.bias_part(self.loops.lift(self.centre, self.hinge.outputs))
            pull += self.loops.lay(self.space.along_bias(bias))
        return pull

    def move_centre(self) -> None:
        """``centre <- W + theta (W - W of the move before)``; ``V`` stays, ``W`` follows."""
        root = math.sqrt(self.damp)
        image = (1 + self.kappa) * self.weight - self._pull()
        self.centre = self.weight + (1 - root) / (1 + root) * (self.weight - self.previous)
        self.previous = self.weight
        self.weight = (self._pull() + image) * self.damp

    def sweep(self, rows: Tensor, skip: float) -> tuple[float, Tensor]:
        """Go over the rows; the sub-problem's gap of them beforehand, and which had more than ``skip C`` of it."""
        return self.loops.sweep(self.weight, self.beta, rows, self.squares, self.damp, skip)


def dual_ascent(monitor: GapMonitor, generator: torch.Generator) -> Iterator[None]:
    """Passes until the gap is proved or patience runs out; the best is in the monitor."""
    space, hinge = monitor.space, hinge_of(monitor)
    strength = float((hinge.upper.squeeze(1) * space.squared_norms).mean())
    kappa = min(max(strength, 1.0), 100.0) ** 0.5
    state = _ProximalPoint(space, hinge, monitor.beta, monitor.weight, kappa)
    everyone, total = torch.arange(space.rows, device=space.device), float(hinge.upper.double().sum())
    native = isinstance(state.loops, RowAscent)
    course, again = _Course(monitor, _PATIENCE[native]), _AGAIN[native] * space.rows

    while True:
        yield
        monitor.measure_unfinished = partial(state.measure, monitor)
        pool, visits, settled = everyone, 0, False
        while not settled and visits < again:
            order = pool[torch.randperm(len(pool), generator=generator).to(pool.device)]
            gap, moved = state.sweep(order, _SHARE * monitor.allowed / total)
            distance = state.distance()
            estimate = gap + kappa**2 / 2 * distance  # of the gap of W and beta, were W to stay
            if pool is everyone:
                if course.worth_measuring(estimate):
                    if state.measure(monitor):
                        return
                    if monitor.misled or course.too_slow():
                        return
                support = (hinge.alpha(state.beta) != 0).any(1)
                support[order[moved]] = True
                pool = support.nonzero().squeeze(1)
            else:
                visits += len(order)
            if gap <= _ACCURACY * kappa / 2 * distance:
                state.move_centre()
            settled = len(pool) == 0 or estimate <= _SETTLED * monitor.allowed


class _Course:
    """When to measure, and when to give up."""

    def __init__(self, monitor: GapMonitor, patience: int) -> None:
        self.monitor, self.patience = monitor, patience
        self.measured, self.estimate = monitor.passes, math.inf
        self.gaps = [(monitor.passes, monitor.gap)]

    def worth_measuring(self, estimate: float) -> bool:
        """Where the estimate of the gap gives hope or is much less than it was, and now and then."""
        monitor = self.monitor
        hopeful = estimate <= max(_PROMISING * monitor.allowed, _HALFWAY * self.estimate)
        if not hopeful and monitor.passes < self.measured + _OVERDUE:
            return False
        self.measured, self.estimate = monitor.passes, min(estimate, self.estimate)
        return True

    def too_slow(self) -> bool:
        """Whether, at the pace of the last passes, more than there is patience for are still needed."""
        monitor = self.monitor
        gap, tol = max(monitor.gap, monitor.tol), monitor.tol
        self.gaps.append((monitor.passes, gap))
        earlier = [(passes, before) for passes, before in self.gaps if passes <= monitor.passes - _REVIEW]
        if not earlier or earlier[-1][0] < _REVIEW:  # the first passes are like no others
            return False
        passes, before = earlier[-1]
        pace = math.log(max(before, tol) / gap) / (monitor.passes - passes)
        return math.log(gap / tol) > self.patience * pace
