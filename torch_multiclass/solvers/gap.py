"""The duality gap: what has been reached, what is proved, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.ops.norms import dual_exponent, group_norm
from torch_multiclass.solvers.losses import Losses
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.report import Certificate, Step, relative_gap
from torch_multiclass.solvers.space import Space

_ROUNDING = 1e-12  # of sums in float64
_FAR = 1e3  # from where a projection ends in a corner
_SHORTER = 12  # quarters of a weight tried
_PARTS = [1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0]  # of the stretch that ends every loss
_KNOWN = 1e4  # times what rounding hides is known to two digits
_SAME = {torch.float32: 1e-6, torch.float64: 1e-9}  # relative gaps that are as good as none


class GapMonitor(Monitor):
    r"""Keeps the best weight and the best dual point seen, and says when a float64 gap between them is small.

    The objective is ``½ (sum_l |w_l|^p)^{2/p} + sum_i loss_i``; its dual has the exponent ``q``, ``1/p + 1/q = 1``.
    Where the bias is free, dual points are those with ``sum_i alpha_i = 0``: what comes is balanced first.
    The gap is small when it is at most ``tol`` times the larger of 1 and the primal, but no more than ``tol`` times the
    objective of the weight 0, so that weak losses are minimised too. With the weight 0 itself the work goes on until
    another is better, or there is none.

    Args:
        space: where the weights live.
        losses: in the precision of the work.
        tol: the relative gap to reach.
        p: the exponent of the group norm.
        exact: the losses in float64, which certify and which the work changes over to in `widen`.
        name, max_passes, progress, on_step: as in `Monitor`.
    """

    begin_from: Certificate | None = None
    """Another fit of the same rows, at which to begin."""
    done: bool = False
    """Whether the gap is proved to be small."""
    sparse: bool = False
    """Whether the weight of the dual point is preferred where it is good enough."""

    def __init__(
        self,
        space: Space,
        losses: Losses,
        tol: float,
        p: float = 2.0,
        *,
        exact: Losses | None = None,
        name: str = "",
        max_passes: int = 2000,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(name, max_passes, progress, on_step)
        self.space, self.losses, self.exact, self.tol = space, losses, exact or losses, tol
        self.p, self.q = p, dual_exponent(p)
        self._target, self._refuted = tol, 0
        self.weight, self.beta = space.zero(losses.outputs), losses.start()
        self._latest = self.beta
        self._certified: tuple[tuple[Tensor, Tensor, Space], tuple[float, float]] | None = None  # the last
        self._at_zero = self._total(torch.zeros(space.rows, losses.outputs, device=space.device))
        self.at_most = self._at_zero

    def begin(self) -> bool:
        """Measure the weight 0 and the multipliers 0."""
        scores = torch.zeros(self.space.rows, self.losses.outputs, device=self.space.device, dtype=self.space.dtype)
        return self.see(self.weight, self.losses.margins(scores), self.beta, torch.zeros_like(self.weight))

    def try_weight(self, weight: Tensor, beta: Tensor) -> bool:
        """`see` a weight and a dual point of which nothing else is known yet."""
        margins = self.losses.margins(self.space.scores(weight))
        return self.see(weight, margins, beta, self.space.image(self.losses.alpha(beta)))

    def see(self, weight: Tensor, margins: Tensor, beta: Tensor, image: Tensor) -> bool:
        """Take note of a weight with its margins, and of a dual point with its image; whether to stop."""
        if self.space.constant.free:
            beta, image = self._balanced(beta, margins, image)
            weight, margins = self._shifted(weight, margins)
        self._latest = beta
        primal = self.objective(weight, margins)
        if self.losses.vanishes and primal < 2 * self._at_zero:
            primal, weight = self._stretched(primal, weight, margins)
        dual = float(self.losses.dual(beta).double().sum()) - self.regulariser(
            self.space.charged_squares(image), self.q
        )
        if primal <= self.primal:
            self.primal, self.weight = primal, weight.clone()
        if dual > self.dual:
            self.dual, self.beta = dual, beta.clone()
        self.note(primal, dual)
        self.done = self.gap <= self._target and self._worth_returning() and self._proved()
        return self.done

    def _balanced(self, beta: Tensor, margins: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        """The dual point with ``sum_i alpha_i = 0``, and the image of it."""
        losses = self.losses
        moved = losses.balance(beta, margins)
        rows = (moved != beta).any(1).nonzero().squeeze(1)
        if len(rows) == 0:
            return beta, image
        change = losses.alpha(moved[rows], rows) - losses.alpha(beta[rows], rows)
        return moved, image + self.space.image(change, rows)

    def _shifted(self, weight: Tensor, margins: Tensor) -> tuple[Tensor, Tensor]:
        """The weight with the free bias that is the best for it, where the losses know it."""
        shift = self.losses.best_shift(margins) if self.losses.outputs == 1 else None  # else not worth it every time
        if shift is None:
            return weight, margins
        shifted = weight + self.space.along_bias(shift.to(weight) / self.space.constant.value)
        return shifted, self.losses.margins(self.space.scores(shifted))

    def _stretched(self, primal: float, weight: Tensor, margins: Tensor) -> tuple[float, Tensor]:
        """A little more of the weight where that is better. Of separable rows the direction is right long before the
        last rows have come to the margin: with the largest loss ``xi < ½``, ``1/(1 - xi)`` times the weight has none.
        """
        losses = self.losses
        rows = (losses.loss(margins) > 0).nonzero().squeeze(1)
        if len(rows) == 0:
            return primal, weight
        short = margins.index_select(0, rows)
        at_zero = losses.margins(torch.zeros_like(short), rows)
        largest = float((losses.loss(short, rows) / losses.loss(at_zero, rows)).max())
        if not largest < 0.5:
            return primal, weight
        half, best = self.regulariser(self.space.charged_squares(weight), self.p), 1.0
        for part in _PARTS:
            factor = 1 / (1 - part * largest)
            left = losses.loss(at_zero + factor * (short - at_zero), rows)
            value = factor**2 * half + float(left.double().sum())
            if value < primal:
                primal, best = value, factor
        return primal, best * weight

    def objective(self, weight: Tensor, margins: Tensor) -> float:
        """The primal in the working precision."""
        losses = self.losses.loss(margins)
        return self.regulariser(self.space.charged_squares(weight), self.p) + float(losses.double().sum())

    @property
    def gap(self) -> float:
        """The gap between the best values seen, in the working precision, relative as the tolerance is."""
        return self.relative(self.primal, self.dual)

    @property
    def allowed(self) -> float:
        """The absolute gap at which to stop, as far as the best primal so far tells."""
        return self._target * (max(1.0, abs(self.primal)) if self._at_zero >= 1 else self._at_zero)

    def relative(self, primal: float, dual: float) -> float:
        """The gap over the larger of 1 and the primal, or over the primal of the weight 0 where that is less."""
        gap = relative_gap(primal, dual)
        return gap if self._at_zero >= 1 else gap / self._at_zero if self._at_zero > 0 else max(gap, 0.0)

    def _worth_returning(self) -> bool:
        """Whether the weight tells rows apart, or is 0 because nothing is better."""
        return bool(self.space.charged(self.weight).any()) or self.gap <= _SAME[self.space.dtype]

    def _proved(self) -> bool:
        if self.sparse and self._prefer_image():
            return True
        proved = self.relative(*self.certify(self.weight)) <= self.tol
        if not proved:  # rounding has misled: ask for more before the next attempt
            self._target, self._refuted = self._target / 2, self._refuted + 1
        return proved

    @property
    def misled(self) -> bool:
        """Whether single precision believes in gaps that double precision refutes."""
        return self.space.dtype != torch.float64 and self._refuted > 1

    def widen(self) -> None:
        """Go on in float64 from the best so far."""
        space, beta = self.space.widened(), self.feasible()
        weight = space.adopt(self.weight)
        primal, dual = self.certify(weight, space)
        # together, so that an interrupt finds either all of it or nothing
        self.space, self.losses, self.weight, self.beta = space, self.exact, weight, beta
        self.primal, self.dual, self._target, self._refuted = primal, dual, self.tol, 0

    def feasible(self) -> Tensor:
        """The best dual point, projected onto the feasible set in float64."""
        beta = self.exact.project(self.beta.double())
        return self.exact.balance(beta) if self.space.constant.free else beta

    def certify(self, weight: Tensor, space: Space | None = None) -> tuple[float, float]:
        """In float64, the primal at a weight, of any dtype, and the dual at the best dual point."""
        space, beta = space or self.space, self.feasible()
        asked = (weight, self.beta, space)
        if self._certified is not None and all(a is b for a, b in zip(self._certified[0], asked, strict=True)):
            return self._certified[1]
        scores, squares, image_squares = space.exact(weight, self.exact.alpha(beta))
        primal = self.regulariser(squares, self.p) + self._total(scores)
        values = primal, float(self.exact.dual(beta).sum()) - self.regulariser(image_squares, self.q)
        self._certified = asked, values
        return values

    def settle(self) -> Tensor:
        """The best weight as it is to be stored; `primal` and `dual` become those of it, in float64.

        It is rounded to the dtype of the rows given, or left in float64 where rounding would lose the tolerance: the
        primal counts both as it is and with the scores as a scorer of that dtype computes them. The weight 0 is better
        than one that rounding has made worse than it.
        """
        if self.sparse and not self.done:
            self._prefer_image()
        if not bool(self.space.charged(self.weight).any()):
            self._leave_zero()
        if self.space.constant.free:
            self._centre_bias()
        if self.p != 2:
            self._leave_hidden()
        rounded = self.weight.to(self.space.given.dtype)
        self.primal, self.dual = self.certify(rounded)
        if rounded.dtype != torch.float64:
            squares, scores = self.space.charged_squares(rounded), self.space.evaluated(rounded)
            computed = self.regulariser(squares, self.p) + self._total(scores)
            if relative_gap(max(self.primal, computed), self.dual) > self.tol:
                wide = self.weight.double()
                primal, dual = self.certify(wide)
                if relative_gap(primal, dual) <= self.tol:
                    rounded, self.primal = wide, primal
        if self.primal > self._at_zero * (1 + _ROUNDING):
            rounded, self.primal = torch.zeros_like(rounded), self._at_zero
        self.weight = rounded
        return rounded

    def _leave_hidden(self) -> None:
        """Take what rounding cannot tell from nothing out of the best weight, where as much is proved without it:
        unless ``p = 2`` a norm of nothing but rounding counts beside large ones."""
        space, weight = self.space, self.space.shortened(self.weight)
        known = space.class_squares(weight) > _KNOWN * space.hidden(weight)
        weight = space.scale_classes(weight, known.to(weight.dtype))
        most = max(self.tol, self.relative(*self.certify(self.weight)))
        if bool(weight.any()) and self.relative(*self.certify(weight)) <= most:
            self.weight = weight

    def _centre_bias(self) -> None:
        """Where a whole range of biases is as good, or the work ended early: the best one, in the middle. What all
        classes have in common says nothing, and goes."""
        space, losses, weight = self.space, self.exact, self.weight.double()
        scores = space.exact(weight, losses.alpha(self.feasible()))[0]
        shift = losses.best_shift(losses.margins(scores))
        if shift is not None:
            part = space.bias_part(weight) + shift / space.constant.value
            part = part - part.mean() if losses.outputs > 1 else part
            self.weight = space.charged(weight) + space.along_bias(part)

    def _prefer_image(self) -> bool:
        """Take the dual point's own weight, the sparser expansion, where it is as good as was asked for."""
        space, losses = self.space, self.losses
        image = self._with_bias(space.image(losses.alpha(self.feasible().to(space.dtype))))
        primal = self.objective(image, losses.margins(space.scores(image)))
        if not (bool(image.any()) and primal <= self.at_most and self.relative(primal, self.dual) <= 0.9 * self.tol):
            return False
        if self.relative(*self.certify(image)) > self.tol:
            return False
        self.weight = image
        return True

    def _leave_zero(self) -> None:
        """Take the last dual point's own weight instead of 0, as much of it as is no worse: 0 tells no rows apart.
        Where the bias is free and the point was not yet in balance, that may be no way down, as the steepest one is."""
        most = min(self._at_zero, self.certify(self.weight)[0]) * (1 + _ROUNDING)
        offset = self._bias()
        directions = [self._latest, self._steepest()] if self.space.constant.free else [self._latest]
        for beta in directions:
            image = self.space.image(self.losses.alpha(beta.to(self.space.dtype)))
            weight = self.space.charged(self._of_image(image))
            scores, squares, _ = self.space.exact(weight, self.exact.alpha(self.feasible()))
            norm, factor = self.regulariser(squares, self.p), 1.0
            for _ in range(_SHORTER):
                if factor**2 * norm + self._total(factor * scores + offset) <= most:
                    self.weight = self._with_bias(factor * weight)
                    return
                factor /= 4

    def _steepest(self) -> Tensor:
        """The dual point of the losses at 0, in balance."""
        scores = torch.zeros(self.space.rows, self.losses.outputs, device=self.space.device, dtype=torch.float64)
        margins = self.exact.margins(scores)
        return self.exact.balance(self.exact.project(_FAR * self._at_zero * margins), margins)

    def _bias(self) -> Tensor | float:
        """What the free bias of the best weight adds to all scores."""
        constant = self.space.constant
        return constant.value * self.space.bias_part(self.weight).double() if constant.free else 0.0

    def _with_bias(self, weight: Tensor) -> Tensor:
        """The weight with the free bias of the best one."""
        space = self.space
        if not space.constant.free:
            return weight
        return space.charged(weight) + space.along_bias(space.bias_part(self.weight).to(weight))

    def _of_image(self, image: Tensor) -> Tensor:
        """The weight of which ``v`` is a gradient of the regulariser: ``w_l = (|v| / |v_l|)^{2-q} v_l`` with the dual
        norm ``|v|``; where that is the largest ``|v_l|``, those alone share it."""
        if self.q == 2:
            return image
        norms = self.space.class_squares(image).clamp_min(0).sqrt()
        if self.q == math.inf:
            largest = (norms == norms.amax()).double()
            factors = largest / largest.sum()
        else:
            factors = (group_norm(norms, self.q) / norms.clamp_min(1e-300)) ** (2 - self.q)
        return self.space.scale_classes(image, factors.to(image.dtype))

    def regulariser(self, class_squares: Tensor, exponent: float) -> float:
        """``½`` times the squared group norm."""
        if exponent == 2:
            return 0.5 * float(class_squares.sum())
        return 0.5 * float(group_norm(class_squares.clamp_min(0).sqrt(), exponent)) ** 2

    def _total(self, scores: Tensor) -> float:
        """The sum of the losses, in float64."""
        return float(self.exact.loss(self.exact.margins(scores.double())).sum())
