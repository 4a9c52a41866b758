r"""The hinge losses as their duals see them.

Each writes example ``i``'s loss as ``C_i max_{b in B_i} b · t_i``, where ``t_i = T s_i + cost_i`` is linear in the
scores ``s_i`` and ``B_i`` a polytope. The dual variables are ``beta_i in B_i``; the multipliers of the scores are
``alpha_i = -T^T beta_i``, and the dual objective is ``sum_i cost_i · beta_i - ½ |sum_i alpha_i Phi(x_i)|^2``.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from torch_multiclass.ops.ascent import BOX, SIGN, SIMPLEX, Polytopes
from torch_multiclass.ops.simplex import project_coupled_box, project_simplex
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.losses import Losses
from torch_multiclass.solvers.svm.balance import balanced, fill, middle


class Hinge(Losses):
    """The rows' polytopes, costs and weights. ``rows`` picks examples everywhere; None means all."""

    vanishes = True
    curvature = 1.0
    """The largest eigenvalue of ``T T^T`` on directions within the polytope."""

    def __init__(self, upper: Tensor) -> None:
        self.upper = upper  # (N, 1): C times the example's weight

    @abstractmethod
    def polytopes(self) -> Polytopes:
        """The losses as the native library's loops see them."""

    @abstractmethod
    def differences(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """``T s``."""

    @abstractmethod
    def adjoint(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        """``T^T beta``."""

    @abstractmethod
    def maximise_rows(self, beta: Tensor, margins: Tensor, squared_norms: Tensor, rows: Tensor) -> Tensor:
        """The maximiser over each row alone, all others being held: ``beta`` moves along ``t / |Phi(x)|^2``."""

    @abstractmethod
    def free(self, projected: Tensor) -> Tensor:
        """The coordinates that a small move before `project` still moves after it: a 0/1 mask, 0 in rows with none."""

    @abstractmethod
    def project_direction(self, direction: Tensor, free: Tensor) -> Tensor:
        """The derivative of `project` along ``direction``; a symmetric projector."""

    @abstractmethod
    def from_alpha(self, alpha: Tensor) -> Tensor:
        """A feasible ``beta`` near the one of the multipliers ``alpha``."""

    def alpha(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        """``-T^T beta``."""
        return -self.adjoint(beta, rows)


def hinge_of(monitor: GapMonitor) -> Hinge:
    """The losses that the monitor works with."""
    assert isinstance(monitor.losses, Hinge)
    return monitor.losses


def _pick(values: Tensor, rows: Tensor | None = None) -> Tensor:
    return values if rows is None else values.index_select(0, rows)


class _Multiclass(Hinge):
    """``t_l = cost_l + s_l - s_y``, so ``t_y = 0``."""

    def __init__(self, target: Tensor, num_classes: int, upper: Tensor, cost: Tensor | None) -> None:
        super().__init__(upper)
        self.label, self.outputs = target[:, None], num_classes
        self.cost = cost  # (N, K), or None for zero-one

    def differences(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        return scores - scores.gather(1, _pick(self.label, rows))

    def adjoint(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        label = _pick(self.label, rows)
        return beta.scatter_add(1, label, -beta.sum(1, keepdim=True))

    def margins(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        label = _pick(self.label, rows)
        own = scores.gather(1, label)
        if self.cost is None:
            return (scores - (own - 1)).scatter_(1, label, 0.0)
        return (scores - own).add_(_pick(self.cost, rows).to(scores.dtype))

    def dual(self, beta: Tensor) -> Tensor:
        """``cost_i · beta_i``."""
        if self.cost is None:
            return beta.sum(1) - beta.gather(1, self.label).squeeze(1)
        return (beta * self.cost.to(beta.dtype)).sum(1)

    def balance(self, beta: Tensor, margins: Tensor | None = None) -> Tensor:
        margins = torch.zeros_like(beta) if margins is None else margins

        def offers(beta: Tensor, giver: int, taker: int) -> tuple[Tensor, Tensor]:
            return self._room(beta, giver, taker), margins[:, taker] - margins[:, giver]

        return balanced(beta, self.start().to(beta), self.alpha(beta.double()).sum(0), offers, self._move)

    def _room(self, beta: Tensor, giver: int, taker: int) -> Tensor:
        """How much of the multiplier of the score of one class each row can give to that of another."""
        return beta[:, taker]

    def _move(self, beta: Tensor, giver: int, taker: int, rows: Tensor, amounts: Tensor) -> None:
        """``alpha`` falls where ``beta`` grows."""
        beta[rows, taker] -= amounts
        beta[rows, giver] += amounts

    def _caps(self, like: Tensor, rows: Tensor | None = None) -> Tensor:
        return _pick(self.upper, rows).to(like.dtype)

    @abstractmethod
    def _kinks(self, margins: Tensor, label: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of the losses as the scores of a class grow: where each of them begins to grow or ceases to fall, what its
        slope gains there, and how much they fall before."""

    def best_shift(self, margins: Tensor) -> Tensor:
        margins, shift = margins.clone(), margins.new_zeros(self.outputs)
        for label in range(self.outputs):
            shift[label] = middle(*self._kinks(margins, label))
            scores = torch.zeros_like(margins)
            scores[:, label] = shift[label]
            margins += self.differences(scores)
        return shift


class CrammerSinger(_Multiclass):
    r"""``B = {b >= 0, sum_l b_l = C}``: ``max_l [cost_l + s_l - s_y]``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.
    """

    def __init__(self, target: Tensor, num_classes: int, upper: Tensor, cost: Tensor | None) -> None:
        super().__init__(target, num_classes, upper, cost)
        self._thresholds: Tensor | None = None

    def polytopes(self) -> Polytopes:
        return Polytopes(SIMPLEX, self.outputs, self.label.squeeze(1), self.upper, self.cost)

    def loss(self, margins: Tensor, rows: Tensor | None = None) -> Tensor:
        return margins.amax(1) * self._caps(margins, rows).squeeze(1)

    def _kinks(self, margins: Tensor, label: int) -> tuple[Tensor, Tensor, Tensor]:
        others = margins.clone()
        others[:, label] = -torch.inf
        return others.amax(1) - margins[:, label], self.upper.squeeze(1), self.upper[self.label == label]

    def project(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        return project_simplex(beta, self._caps(beta, rows))[0]

    def maximise_rows(self, beta: Tensor, margins: Tensor, squared_norms: Tensor, rows: Tensor) -> Tensor:
        """A simplex projection; each row remembers its threshold, a good start for the next pass."""
        moved = torch.addcdiv(beta, margins, squared_norms)
        if self._thresholds is None:
            self._thresholds = torch.full_like(self.upper, torch.inf)
        start = self._thresholds.index_select(0, rows)
        projected, threshold = project_simplex(moved, self.upper.index_select(0, rows), start)
        self._thresholds.index_copy_(0, rows, threshold)
        return projected

    def free(self, projected: Tensor) -> Tensor:
        positive = (projected > 0).to(projected.dtype)
        return positive * (positive.sum(1, keepdim=True) > 1)

    def project_direction(self, direction: Tensor, free: Tensor) -> Tensor:
        kept = direction * free
        return kept - free * (kept.sum(1, keepdim=True) / free.sum(1, keepdim=True).clamp_min(1))

    def start(self) -> Tensor:
        return torch.zeros_like(self.upper.expand(-1, self.outputs)).scatter_(1, self.label, self.upper)

    def from_alpha(self, alpha: Tensor) -> Tensor:
        return self.project(self.start() - alpha, None)


class WestonWatkins(_Multiclass):
    r"""``B = {0 <= b_l <= C, b_y = 0}``: ``sum_{l != y} [cost_l + s_l - s_y]_+``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.6.
    """

    def __init__(self, target: Tensor, num_classes: int, upper: Tensor, cost: Tensor | None) -> None:
        super().__init__(target, num_classes, upper, cost)
        self.curvature = float(num_classes)

    def polytopes(self) -> Polytopes:
        return Polytopes(BOX, self.outputs, self.label.squeeze(1), self.upper, self.cost)

    def _box(self, like: Tensor, rows: Tensor | None = None) -> Tensor:
        caps = self._caps(like, rows).expand_as(like)
        return caps.scatter(1, _pick(self.label, rows), 0.0)

    def loss(self, margins: Tensor, rows: Tensor | None = None) -> Tensor:
        return (margins.clamp_min(0) * self._box(margins, rows)).sum(1)

    def _kinks(self, margins: Tensor, label: int) -> tuple[Tensor, Tensor, Tensor]:
        own, upper = self.label.squeeze(1) == label, self.upper.squeeze(1)
        others = margins[own][:, torch.arange(self.outputs, device=margins.device) != label]
        falls = upper[own].repeat_interleave(self.outputs - 1)
        return torch.cat([others.flatten(), -margins[~own, label]]), torch.cat([falls, upper[~own]]), falls

    def project(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        return torch.minimum(beta.clamp_min(0), self._box(beta, rows))

    def maximise_rows(self, beta: Tensor, margins: Tensor, squared_norms: Tensor, rows: Tensor) -> Tensor:
        """The label's own score feels every class at once, which couples the box."""
        moved = torch.addcdiv(beta, margins, squared_norms)
        return project_coupled_box(moved, self._box(beta, rows), beta.sum(1, keepdim=True))

    def _room(self, beta: Tensor, giver: int, taker: int) -> Tensor:
        label, caps = self.label.squeeze(1), self._caps(beta).squeeze(1)
        takes = torch.where(label == taker, caps, beta[:, taker])  # the label's own multiplier is the sum of the others
        gives = torch.where(label == giver, caps, caps - beta[:, giver])
        return torch.minimum(takes, gives)

    def _move(self, beta: Tensor, giver: int, taker: int, rows: Tensor, amounts: Tensor) -> None:
        super()._move(beta, giver, taker, rows, amounts)
        beta.scatter_(1, self.label, 0.0)

    def free(self, projected: Tensor) -> Tensor:
        return ((projected > 0) & (projected < self._box(projected, None))).to(projected.dtype)

    def project_direction(self, direction: Tensor, free: Tensor) -> Tensor:
        return direction * free

    def start(self) -> Tensor:
        return torch.zeros_like(self.upper.expand(-1, self.outputs))

    def from_alpha(self, alpha: Tensor) -> Tensor:
        return self.project(-alpha, None)


class BinaryHinge(Hinge):
    """One score, ``t = cost - y s`` with ``y = ±1``, ``0 <= b <= C``."""

    outputs = 1

    def __init__(self, signs: Tensor, upper: Tensor) -> None:
        super().__init__(upper)
        self.signs = signs[:, None]

    def polytopes(self) -> Polytopes:
        return Polytopes(SIGN, self.outputs, self.signs.squeeze(1).long(), self.upper, None)

    def differences(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        return -scores * _pick(self.signs, rows).to(scores.dtype)

    def adjoint(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        return -beta * _pick(self.signs, rows).to(beta.dtype)

    def margins(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        return 1 + self.differences(scores, rows)

    def dual(self, beta: Tensor) -> Tensor:
        return beta.squeeze(1)

    def loss(self, margins: Tensor, rows: Tensor | None = None) -> Tensor:
        return (margins.clamp_min(0) * _pick(self.upper, rows).to(margins.dtype)).squeeze(1)

    def project(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        return torch.minimum(beta.clamp_min(0), _pick(self.upper, rows).to(beta.dtype))

    def maximise_rows(self, beta: Tensor, margins: Tensor, squared_norms: Tensor, rows: Tensor) -> Tensor:
        return self.project(torch.addcdiv(beta, margins, squared_norms), rows)

    def free(self, projected: Tensor) -> Tensor:
        return ((projected > 0) & (projected < self.upper)).to(projected.dtype)

    def project_direction(self, direction: Tensor, free: Tensor) -> Tensor:
        return direction * free

    def start(self) -> Tensor:
        return torch.zeros_like(self.upper)

    def from_alpha(self, alpha: Tensor) -> Tensor:
        return self.project(alpha * self.signs, None)

    def balance(self, beta: Tensor, margins: Tensor | None = None) -> Tensor:
        """Those of the sign that has too much fall, and those of the other grow."""
        excess = float(self.alpha(beta.double()).sum())
        if excess == 0:
            return beta
        falls = self.signs * excess > 0
        room = torch.where(falls, beta, self.upper.to(beta) - beta)
        price = torch.zeros_like(beta) if margins is None else torch.where(falls, margins, -margins)
        rows, parts, _ = fill(room.squeeze(1).double(), price.squeeze(1), abs(excess))
        moved = beta.clone()
        moved[rows] += torch.where(falls[rows], -parts[:, None], parts[:, None]).to(beta.dtype)
        return moved

    def best_shift(self, margins: Tensor) -> Tensor:
        """``sum_i C_i [t_i - y_i b]_+`` falls by the ``C_i`` of the positive rows, and its kinks are ``y_i t_i``."""
        falls = self.upper[self.signs > 0]
        return middle((margins * self.signs.to(margins)).squeeze(1), self.upper.squeeze(1), falls)[None]
