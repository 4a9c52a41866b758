"""The regularised sum of the losses of examples, as solvers see it that know planes only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass.scorers.base import Scorer

__all__ = ["Dual", "Kept", "Objective", "Point"]

F = TypeVar("F")

_ROUNDING = 1e-12  # a rest of the strength below this part of it is none


@dataclass(frozen=True)
class Point:
    """A weight, in parts: what is linear in it is linear in each of them."""

    parts: tuple[Tensor, ...]

    def map(self, function: Callable[[Tensor], Tensor]) -> Point:
        """A function of each part."""
        return Point(tuple(map(function, self.parts)))

    def mixed(self, other: Point, share: float) -> Point:
        """``(1 - share) self + share other``."""
        return Point(tuple(torch.lerp(a, b, share) for a, b in zip(self.parts, other.parts, strict=True)))

    def plus(self, other: Point, times: float) -> Point:
        """``self + times other``."""
        return Point(tuple(torch.add(a, b, alpha=times) for a, b in zip(self.parts, other.parts, strict=True)))

    def any(self) -> bool:
        """Whether it is not 0."""
        return any(bool(part.any()) for part in self.parts)


class Objective(ABC, Generic[F]):
    """``½ |w|^2 + sum_i strength_i loss_i(w)``, whose weights and planes (``F``) only it knows from within.

    Shape:
        strength and losses ``(N)``, float64.
    """

    strength: Tensor
    dtype: torch.dtype
    """What a scorer is to have."""

    @abstractmethod
    def zero(self) -> Point:
        """The weight 0."""

    @abstractmethod
    def planes(self, point: Point) -> tuple[Tensor, F]:
        """The loss of each example, and its plane."""

    @abstractmethod
    def inner(self, one: Point, other: Point) -> float:
        """``one · other``."""

    @abstractmethod
    def pull(self, found: F, shares: Tensor) -> tuple[Point, float]:
        """``-sum_i shares_i slope_i``, and ``sum_i shares_i offset_i``."""

    @abstractmethod
    def multipliers(self, found: F | None, shares: Tensor) -> Tensor:
        """`Dual.multipliers` of one plane an example, or of none."""

    @abstractmethod
    def kept(self) -> Kept[F]:
        """Shares of planes, none as yet."""

    @abstractmethod
    def exact(self, point: Point) -> tuple[float, float, float]:
        """In float64 and on the rows as they were given, of a weight of any dtype: ``|w|^2``, the sum of the losses,
        and that sum as a scorer of that dtype computes it."""

    @abstractmethod
    def scorer(self, point: Point) -> Scorer:
        """The scorer of a weight, in the weight's dtype."""

    @abstractmethod
    def stored(self, point: Point) -> Tensor:
        """The part of a weight that multiplies features, as a report keeps it."""

    @abstractmethod
    def support(self, alpha: Tensor) -> Tensor:
        """Which of the rows given the rows of multipliers belong to, ``(M)``."""

    def primal(self, point: Point, losses: Tensor) -> float:
        """The objective."""
        return 0.5 * self.inner(point, point) + float((self.strength * losses).sum())


class Dual(ABC):
    """Shares of planes, a feasible point of the dual, and its weight."""

    @abstractmethod
    def point(self) -> Point:
        """``-sum share slope``."""

    @abstractmethod
    def linear(self) -> float:
        """``sum share offset``."""

    @abstractmethod
    def anew(self) -> Self:
        """The same with the shares made feasible, and the weight summed up from them."""

    @abstractmethod
    def multipliers(self) -> Tensor:
        """Of the scores of each row, ``(M, K)``; where rows are not known, the shares of examples ``(N, ·)``."""

    @abstractmethod
    def begun_at(self, other: Dual, ratio: float) -> Self:
        """With the planes of another whose ``C`` was less by the ratio."""


class Kept(Dual, Generic[F]):
    """Planes that each example keeps."""

    @property
    @abstractmethod
    def known(self) -> Tensor:
        """What changes when a plane comes."""

    @property
    @abstractmethod
    def shares(self) -> Tensor:
        """Of each plane, ``(N, A)``; what changes them in place calls `anew` then."""

    @abstractmethod
    def pull(self, shares: Tensor) -> tuple[Point, float]:
        """``-sum_{ia} shares_{ia} slope_{ia}``, and ``sum_{ia} shares_{ia} offset_{ia}``, of shares of any sign."""

    def onward(self, before: Tensor, objective: Objective[F]) -> Self:
        """Go on from the shares ``before`` through those of now as far as the dual value grows, all examples at once.

        Where features are large, steps at one example are short and lead the same way again and again.
        """
        share = self.shares
        rest = objective.strength - share.sum(1)
        rest = torch.where(rest > _ROUNDING * objective.strength, rest, 0.0)
        move = share - before
        move = torch.where((share == 0) & (move < 0), 0.0, move)
        move = torch.where(((rest == 0) & (move.sum(1) > 0)).unsqueeze(1), 0.0, move)
        way, gain = self.pull(move)
        gain -= objective.inner(self.point(), way)
        if not gain > 0:
            return self
        falls, left = torch.cat([-move, move.sum(1, keepdim=True)], 1), torch.cat([share, rest.unsqueeze(1)], 1)
        most = float(torch.where(falls > 0, left / falls, torch.inf).min())
        square = objective.inner(way, way)
        size = gain / square if gain < most * square else most
        share.add_(move, alpha=size)
        return self.anew()

    @abstractmethod
    def visit(self, order: Tensor, steps: int, found: F | None = None) -> Self:
        """Keep what was found for the examples ``order``, then take up to ``steps`` steps of ascent at each of them."""
