r"""Binary losses ``l(z)`` of a margin ``z = y f``, each an object that says what training, decoding and proofs need.

Whatever takes a binary loss takes one of these or the name of one; `register` adds a name::

    class ModifiedHuber(MarginLoss):
        name, at_zero = "modified_huber", 1.0

        def value(self, z): return torch.where(z < -1, -4 * z, (1 - z).clamp(min=0).square())
        def slope(self, z): return torch.where(z < -1, -4.0, -2 * (1 - z).clamp(min=0))
        def curvature(self, z): return torch.where((z > -1) & (z < 1), 2.0, torch.zeros_like(z))
        def conjugate(self, u): return torch.where((u >= -4) & (u <= 0), u + u.square() / 4, torch.inf)

    register(ModifiedHuber())
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from torch_multiclass import checks as check
from torch_multiclass.checks.spelling import MARGIN_LOSSES, loss_meant

__all__ = ["MarginLoss", "MarginLossLike", "as_margin_loss", "names", "register"]

Parts = list[tuple[float, Tensor]]


class MarginLoss(ABC):
    r"""A loss ``l(z)`` of a binary margin, elementwise and in the dtype of what it is given.

    Decoding compares sums of ``l`` over many columns. Where terms of very different size meet, `parts` splits them so
    that large ones cancel exactly; a loss whose values themselves leave the range of floats is ``wide``, and its sums
    are formed from `log_value`.

    A subclass sets `name` and `at_zero`, which is ``l(0)``, says where it is not `convex` or not `smooth`, and writes
    `value`, `slope`, `curvature` and `conjugate`. Solvers prove with the conjugate: of another loss it proves nothing.

    Raises:
        TypeError, ValueError: where it is used, a subclass without these, or one whose `at_zero` is not ``l(0)``.

    Shape:
        margins ``(*)`` to values ``(*)``, and so for slope and curvature.

    Reference: Allwein, Schapire and Singer (2000), section 2; for the conjugate Rockafellar (1970), *Convex analysis*,
    §12.

    Example:
        >>> import torch
        >>> logistic = as_margin_loss("logistic")
        >>> logistic, logistic.value(torch.tensor(0.0)), logistic.slope(torch.tensor(0.0))
        (logistic, tensor(0.6931), tensor(-1.))
    """

    name: ClassVar[str]
    """What `as_margin_loss` knows it by once it is registered."""
    at_zero: ClassVar[float]
    """``l(0)``, what an ignored column adds to a distance."""
    convex: ClassVar[bool] = True
    """Whether ``l`` is convex, so that its dual proves how good a fit is."""
    smooth: ClassVar[bool] = True
    """Whether ``l'`` is continuous, so that Newton's method applies."""
    wide: ClassVar[bool] = False
    """Whether values leave the range of floats at moderate margins."""
    steps: ClassVar[bool] = False
    """Whether values are multiples of 1/2, so that their sums are exact."""

    @abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """``l(z)``; NaN for NaN."""

    @abstractmethod
    def slope(self, z: Tensor) -> Tensor:
        """``l'(z)``, at a kink one of the subgradients."""

    @abstractmethod
    def curvature(self, z: Tensor) -> Tensor:
        """``l''(z)``, 0 at a kink."""

    @abstractmethod
    def conjugate(self, u: Tensor) -> Tensor:
        """``l*(u) = sup_z [u z - l(z)]``, ``+inf`` outside its domain."""

    def log_value(self, z: Tensor) -> Tensor:
        """``log l(z)``, which a ``wide`` loss computes without leaving the range of floats."""
        return self.value(z).log()

    def parts(self, z: Tensor) -> Parts:
        """``l(z)`` as a sum of units times terms of different magnitude.

        Terms of one magnitude may cancel exactly over the columns, and what is left decides.
        """
        return [(1.0, self.value(z))]

    def __repr__(self) -> str:
        return self.name


class Hinge(MarginLoss):
    """``[1 - z]_+``."""

    name, at_zero, smooth = "hinge", 1.0, False

    def value(self, z: Tensor) -> Tensor:
        return (1 - z).clamp(min=0)

    def slope(self, z: Tensor) -> Tensor:
        return -_flag(z < 1, z)

    def curvature(self, z: Tensor) -> Tensor:
        return _zero(z)

    def conjugate(self, u: Tensor) -> Tensor:
        return torch.where((u >= -1) & (u <= 0), u, torch.inf)


class Squared(MarginLoss):
    """``(1 - z)^2``."""

    name, at_zero = "squared", 1.0

    def value(self, z: Tensor) -> Tensor:
        return (1 - z).square()

    def slope(self, z: Tensor) -> Tensor:
        return -2 * (1 - z)

    def curvature(self, z: Tensor) -> Tensor:
        return torch.full_like(z, 2.0)

    def conjugate(self, u: Tensor) -> Tensor:
        return u + u.square() / 4

    def parts(self, z: Tensor) -> Parts:
        """``z^2`` and the rest."""
        return [(1.0, z.square()), (1.0, 1 - 2 * z)]


class SquaredHinge(MarginLoss):
    """``[1 - z]_+^2``."""

    name, at_zero = "squared_hinge", 1.0

    def value(self, z: Tensor) -> Tensor:
        return (1 - z).clamp(min=0).square()

    def slope(self, z: Tensor) -> Tensor:
        return -2 * (1 - z).clamp(min=0)

    def curvature(self, z: Tensor) -> Tensor:
        return 2 * _flag(z < 1, z)

    def conjugate(self, u: Tensor) -> Tensor:
        return torch.where(u <= 0, u + u.square() / 4, torch.inf)


class Logistic(MarginLoss):
    """``log(1 + e^{-2z})``, so that ``P(y = 1) = sigmoid(2f)``."""

    name, at_zero = "logistic", math.log(2.0)

    def value(self, z: Tensor) -> Tensor:
        return -logsigmoid(2 * z)

    def slope(self, z: Tensor) -> Tensor:
        return -2 * torch.sigmoid(-2 * z)

    def curvature(self, z: Tensor) -> Tensor:
        return 4 * torch.sigmoid(-2 * z) * torch.sigmoid(2 * z)

    def conjugate(self, u: Tensor) -> Tensor:
        """The negative entropy of the share ``-u / 2``."""
        share = -u / 2
        entropy = torch.xlogy(share, share) + torch.xlogy(1 - share, 1 - share)
        return torch.where((share >= 0) & (share <= 1), entropy, torch.inf)

    def parts(self, z: Tensor) -> Parts:
        """``2 [-z]_+ + log(1 + exp(-2|z|))``, the latter by itself at 0."""
        none, wrong = (z == 0).to(z.dtype), z < 0
        return [(2.0, -z * wrong), (self.at_zero, none), (1.0, torch.exp(-2 * z.abs()).log1p() * (1 - none))]


class Exponential(MarginLoss):
    """``e^{-z}``."""

    name, at_zero, wide = "exponential", 1.0, True

    def value(self, z: Tensor) -> Tensor:
        return torch.exp(-z)

    def slope(self, z: Tensor) -> Tensor:
        return -torch.exp(-z)

    def curvature(self, z: Tensor) -> Tensor:
        return torch.exp(-z)

    def conjugate(self, u: Tensor) -> Tensor:
        return torch.where(u <= 0, u + torch.xlogy(-u, -u), torch.inf)

    def log_value(self, z: Tensor) -> Tensor:
        return -z


class Sigmoid(MarginLoss):
    """``1 / (1 + e^{2z})``, of randomised AdaBoost; not convex."""

    name, at_zero, convex = "sigmoid", 0.5, False

    def value(self, z: Tensor) -> Tensor:
        return torch.sigmoid(-2 * z)

    def slope(self, z: Tensor) -> Tensor:
        return -2 * torch.sigmoid(-2 * z) * torch.sigmoid(2 * z)

    def curvature(self, z: Tensor) -> Tensor:
        wrong, right = torch.sigmoid(-2 * z), torch.sigmoid(2 * z)
        return 4 * wrong * right * (right - wrong)

    def conjugate(self, u: Tensor) -> Tensor:
        """0 at 0, where nothing is gained, else ``+inf``."""
        return torch.where(u == 0, u, torch.inf)

    def parts(self, z: Tensor) -> Parts:
        """1 or 0 for a wrong or right sign, less or plus what is lacking."""
        return [(1.0, (1 - z.sign()) / 2), (1.0, z.sign() * torch.sigmoid(-2 * z.abs()))]


class ZeroOne(MarginLoss):
    """``(1 - sign z) / 2`` with ``sign 0 = 0``, which counts wrong answers and has no gradient."""

    name, at_zero, convex, smooth, steps = "zero_one", 0.5, False, False, True

    def value(self, z: Tensor) -> Tensor:
        return (1 - sign(z)) / 2

    def slope(self, z: Tensor) -> Tensor:
        return _zero(z)

    def curvature(self, z: Tensor) -> Tensor:
        return _zero(z)

    def conjugate(self, u: Tensor) -> Tensor:
        """0 at 0, where nothing is gained, else ``+inf``."""
        return torch.where(u == 0, u, torch.inf)


def sign(z: Tensor) -> Tensor:
    """``-1``, ``0`` or ``+1``; NaN stays NaN."""
    return torch.where(z.isnan(), z, z.sign())


def _flag(flag: Tensor, z: Tensor) -> Tensor:
    """1 where flagged, else 0; NaN where ``z`` is NaN."""
    return torch.where(z.isnan(), z, flag.to(z.dtype))


def _zero(z: Tensor) -> Tensor:
    """0; NaN where ``z`` is NaN."""
    return torch.where(z.isnan(), z, 0.0)


MarginLossLike = str | MarginLoss
"""What is taken for a binary loss: an object, or the name of a registered one."""

_REGISTRY: dict[str, MarginLoss] = {}


def register(loss: MarginLoss) -> None:
    """Let `as_margin_loss`, and so every loss, decoder, metric and solver, know ``loss`` by its name.

    Raises:
        TypeError: what is no `MarginLoss`.
        ValueError: a name that is taken by another class, or an `MarginLoss.at_zero` other than ``l(0)``.

    Reference: Allwein, Schapire and Singer (2000), section 2, whose (7) a loss has to satisfy for the bounds to hold.

    Example:
        >>> register(as_margin_loss("hinge"))  # once more the same: nothing changes
    """
    if not isinstance(loss, MarginLoss):
        raise TypeError(f"loss: got {check.came(loss)}; accepted is a MarginLoss")
    _check_own("loss", loss)
    taken = _REGISTRY.get(loss.name)
    if taken is not None and type(taken) is not type(loss):
        raise ValueError(f"loss: the name {loss.name!r} is taken; accepted is a name of its own")
    _REGISTRY[loss.name] = loss


def _check_own(name: str, loss: MarginLoss) -> None:
    """Raise for one that is not registered and lacks an attribute, or whose `at_zero` is not its value at 0."""
    if _REGISTRY.get(getattr(loss, "name", "")) is loss:
        return
    lost = [one for one in ("name", "at_zero") if not hasattr(loss, one)]
    if lost:
        accepted = "a MarginLoss with name and at_zero, its value at 0"
        raise TypeError(f"{name}: {type(loss).__name__} has no {' and no '.join(lost)}; accepted is {accepted}")
    if not check.captured():
        value = float(loss.value(torch.zeros((), dtype=torch.float64, device="cpu")))
        if not math.isclose(value, loss.at_zero, rel_tol=1e-12):
            raise ValueError(f"{name}: at_zero of {loss.name!r} is {loss.at_zero}, but its value at 0 is {value}")


def names() -> tuple[str, ...]:
    """The names of the registered losses.

    Reference: Allwein, Schapire and Singer (2000), section 2.

    Example:
        >>> {"hinge", "logistic", "exponential"} <= set(names())
        True
    """
    return tuple(_REGISTRY)


def as_margin_loss(loss: MarginLossLike, name: str = "loss") -> MarginLoss:
    """The object itself, or the registered one of that name; ``name`` is what errors call the argument.

    Raises:
        ValueError: a name that no loss has.
        TypeError: neither a name nor a `MarginLoss`; one without `MarginLoss.name` or `MarginLoss.at_zero`.

    Reference: Allwein, Schapire and Singer (2000), section 2.

    Example:
        >>> as_margin_loss("hinge"), as_margin_loss(as_margin_loss("hinge"))
        (hinge, hinge)
    """
    if isinstance(loss, MarginLoss):
        _check_own(name, loss)
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"{name}: got {check.came(loss)}; accepted are a name, such as 'hinge', and a MarginLoss")
    return _REGISTRY[check.named(name, loss, _REGISTRY, lambda given: loss_meant(given, MARGIN_LOSSES))]


for _loss in (Hinge(), Squared(), SquaredHinge(), Logistic(), Exponential(), Sigmoid(), ZeroOne()):
    register(_loss)


def __dir__() -> list[str]:
    return sorted(__all__)


check.lacks(__name__)
