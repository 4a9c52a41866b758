"""Block-coordinate Frank-Wolfe for structured machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torch_multiclass.solvers.objective import Kept, Objective
from torch_multiclass.solvers.problem import Problem
from torch_multiclass.solvers.structured import PlaneMonitor, StructuredSolver

__all__ = ["FrankWolfe"]

_STEPS = 4  # pairwise steps a visit
_SWEEPS, _MOST = 5, 80  # passes over the planes kept, for each that finds new ones, and for one that finds none


class FrankWolfe(StructuredSolver):
    r"""The structured SVM by block-coordinate Frank-Wolfe, to a certified relative duality gap.

    Minimises ``P = ½ (|W|^2 + (|transitions|^2 + |start|^2 + |end|^2) / s^2) + C sum_i loss_i`` over rows with a label,
    or sequences, with emissions that are linear or of a kernel, ``W = sum_{it} alpha_{it} Phi(x_{it})``.

    A plane of an example is a labelling ``y``, with the slope ``g = factor (phi(y) - phi(y*))`` and the offset
    ``L(y*, y)``; the gold labelling's is 0. The dual is ``sum_{ia} lambda_{ia} offset_{ia} - ½ |w|^2`` over shares
    ``lambda_i`` of the planes of each example, at least 0 and ``C`` altogether, with
    ``w = -sum_{ia} lambda_{ia} g_{ia}``. A pass finds the worst labelling of every example at ``w``, through the
    package's own losses, and at the averaged iterate, whose weights are ``2/(t + 2)``; then examples are visited in
    random order: share moves between their lowest and their highest plane as far as the dual grows, an exact step.
    Where no labelling is new, all shares go on the way that they came, as far as the dual grows. The report has the
    better primal of the two iterates.

    Args:
        C: the weight of the losses, a sum over examples, > 0.
        loss: ``"m3n"``, ``max_y [L(y*, y) + s(y) - s(y*)]``, or ``"svmstruct"``,
            ``max_y L(y*, y) [1 + s(y) - s(y*)]_+``.
        cost: ``L``, summed over positions: Hamming by default, a name, a ``(K, K)`` matrix, one for each example, or a
            cost object; for ``"svmstruct"`` in whole units.
        kernel: of the features at a position: ``"linear"``, a kernel, or a function that returns a Gram block.
        transition_scale: ``s``; the larger, the less transitions, start and end are regularised.
        bias: append a constant feature 1, regularised like any other.
        tol: the relative gap ``(P - dual) / max(1, |P|)`` to reach.
        scorer: of any structure, linear in its parameters: instead of a `LinearScorer` or a `ChainScorer` a copy of it
            is trained, by planes in its parameters: its ``forward`` gets parameters and features in float64. Those that
            do not multiply features are regularised as transitions; what is added to the scores and has no parameter
            may stay.
        max_passes: how many passes at most that find new labellings.
        generator: draws the order of the examples; by default one seeded with 0, so fits repeat.
        memory_limit: bytes that a Gram matrix may take; by default 80 % of what is free.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.
        on_step: called with every measurement of primal and dual.

    Shape:
        features ``(N, D)`` and target ``(N)``, or ``(N, T, D)`` and ``(N, T)`` with mask ``(N, T)`` or lengths ``(N)``.

    Raises:
        ValueError: constants that are not positive, a loss that is none; what `fit` refuses.

    Reference: Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), *Block-coordinate Frank-Wolfe optimization for
    structural SVMs*, algorithm 4; Osokin et al. (2016), *Minding the gaps for block Frank-Wolfe optimization of
    structured SVMs*, for cached planes and pairwise steps; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine
    Learning*, (9.22) and (9.23).

    Example:
        >>> import torch
        >>> words = torch.tensor([[[1.0], [-1.0]]])  # one word of two letters
        >>> scorer, report = FrankWolfe(C=0.1, tol=1e-6).fit(words, torch.tensor([[0, 1]]))
        >>> round(report.primal, 4)
        0.13
        >>> scorer(words).decode().labels
        tensor([[0, 1]])
    """

    def steps(self, problem: Problem, monitor: PlaneMonitor) -> Iterator[None]:
        objective, generator = monitor.objective, self.draws()
        monitor.measure_unfinished = lambda: self._measure(monitor)
        if monitor.begin_from is not None and self.begin(monitor, monitor.begin_from):
            return
        average, passes, sweeps = monitor.kept.point(), 0, 1
        while True:
            point = monitor.kept.point()
            losses, found = objective.planes(point)
            primal = monitor.see(point, losses)
            ways = [found]
            if passes:
                average = average.mixed(point, 2 / (passes + 2))
                losses, found = objective.planes(average)
                primal = min(primal, monitor.see(average, losses))
                ways.append(found)
            if monitor.measure(primal, point):
                return
            yield
            passes += 1
            monitor.measure_unfinished = lambda: self._measure(monitor)
            before = self._kept(monitor).known.clone()
            for found in ways:
                self._visit(monitor, generator, found)
            # where nothing new is found, the planes at hand are what to work on
            new = not torch.equal(self._kept(monitor).known, before)
            sweeps = min(passes - 1, _SWEEPS) if new else min(2 * max(sweeps, 1), _MOST)
            shares = self._kept(monitor).shares.clone()
            for _ in range(sweeps):
                self._visit(monitor, generator)
            if not new:
                monitor.kept = self._kept(monitor).onward(shares, objective)

    @staticmethod
    def _kept(monitor: PlaneMonitor) -> Kept[Any]:
        assert isinstance(monitor.kept, Kept)
        return monitor.kept

    def _visit(self, monitor: PlaneMonitor, generator: torch.Generator, found: Any = None) -> None:
        """All examples once, in a new order."""
        order = torch.randperm(len(monitor.objective.strength), generator=generator)
        monitor.kept = self._kept(monitor).visit(order, _STEPS, found)

    def dual(self, objective: Objective[Any]) -> Kept[Any]:
        return objective.kept()

    def _measure(self, monitor: PlaneMonitor) -> None:
        """Where the work stands."""
        point = monitor.kept.point()
        monitor.measure(monitor.see(point, monitor.objective.planes(point)[0]), point)
