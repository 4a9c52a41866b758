"""The duality gap: what has been reached, what is proved, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.ops.norms import dual_exponent, group_norm
from torch_multiclass.solvers.base import Step, relative_gap
from torch_multiclass.solvers.space import Space
from torch_multiclass.solvers.svm.duals import Hinge


class Monitor:
    r"""Keeps the best scorer and the best dual point seen, and stops when a float64 gap between them is small.

    The objective is ``½ (sum_l |w_l|^p)^{2/p} + sum_i loss_i``; its dual has the exponent ``q``, ``1/p + 1/q = 1``.
    ``exact`` is the hinge in float64, which certifies and which the work changes over to in `widen`.
    """

    def __init__(
        self,
        space: Space,
        hinge: Hinge,
        tol: float,
        p: float = 2.0,
        on_step: Callable[[Step], None] | None = None,
        exact: Hinge | None = None,
    ) -> None:
        self.space, self.hinge, self.tol, self.p, self.q = space, hinge, tol, p, dual_exponent(p)
        self.exact, self.on_step = exact or hinge, on_step
        self.started, self.passes = time.perf_counter(), 0
        self.history: list[Step] = []
        self._target, self._refuted = tol, 0
        self.weight, self.primal = space.zero(hinge.outputs), math.inf
        self.beta, self.dual = hinge.start(), -math.inf

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    @property
    def gap(self) -> float:
        """The relative gap between the best values seen, in the working precision."""
        return relative_gap(self.primal, self.dual)

    def begin(self) -> bool:
        """Measure the weight 0 and the multipliers 0."""
        return self.try_weight(self.weight, self.beta)

    def try_weight(self, weight: Tensor, beta: Tensor) -> bool:
        """`see` a weight and a dual point of which nothing else is known yet."""
        margins = self.hinge.margins(self.space.scores(weight), None)
        return self.see(weight, margins, beta, self.space.image(self.hinge.alpha(beta)))

    def regulariser(self, class_squares: Tensor, exponent: float) -> float:
        """``½`` times the squared group norm."""
        if exponent == 2:
            return 0.5 * float(class_squares.sum())
        return 0.5 * float(group_norm(class_squares.clamp_min(0).sqrt(), exponent)) ** 2

    def see(self, weight: Tensor, margins: Tensor, beta: Tensor, image: Tensor) -> bool:
        """Take note of a weight with its margins, and of a dual point with its image; whether to stop."""
        losses = self.hinge.loss(margins, None)
        primal = self.regulariser(self.space.class_squares(weight), self.p) + float(losses.double().sum())
        worth = float(self.hinge.worth(beta, None).double().sum())
        dual = worth - self.regulariser(self.space.class_squares(image), self.q)
        if primal < self.primal:
            self.primal, self.weight = primal, weight.clone()
        if dual > self.dual:
            self.dual, self.beta = dual, beta.clone()
        step = Step(self.passes, self.seconds, primal, dual)
        self.history.append(step)
        if self.on_step is not None:
            self.on_step(step)
        return self.gap <= self._target and self._proved()

    def _proved(self) -> bool:
        primal, dual = self.certify(self.weight)
        proved = relative_gap(primal, dual) <= self.tol
        if not proved:  # rounding has misled: ask for more before the next attempt
            self._target, self._refuted = self._target / 2, self._refuted + 1
        return proved

    @property
    def misled(self) -> bool:
        """Whether single precision believes in gaps that double precision refutes."""
        return self.space.dtype != torch.float64 and self._refuted > 1

    def widen(self) -> None:
        """Go on in float64 from the best so far."""
        self.space = self.space.widened()
        self.weight, self.beta = self.space.adopt(self.weight), self.feasible()
        self.hinge, self._target, self._refuted = self.exact, self.tol, 0
        self.primal, self.dual = self.certify(self.weight)

    def feasible(self) -> Tensor:
        """The best dual point, projected onto the feasible set in float64."""
        return self.exact.project(self.beta.double(), None)

    @torch.no_grad()
    def certify(self, weight: Tensor) -> tuple[float, float]:
        """In float64, the primal at a weight, of any dtype, and the dual at the best dual point."""
        beta = self.feasible()
        scores, weight_squares, image_squares = self.space.exact(weight, self.exact.alpha(beta))
        primal = self.regulariser(weight_squares, self.p) + self.losses(scores)
        dual = float(self.exact.worth(beta, None).sum()) - self.regulariser(image_squares, self.q)
        return primal, dual

    @torch.no_grad()
    def computed(self, weight: Tensor) -> float:
        """The primal at a weight with its scores in its own precision."""
        return self.regulariser(self.space.class_squares(weight), self.p) + self.losses(self.space.evaluated(weight))

    def losses(self, scores: Tensor) -> float:
        """The sum of the losses, in float64."""
        return float(self.exact.loss(self.exact.margins(scores.double(), None), None).sum())
