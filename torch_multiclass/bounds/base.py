"""What a bound is, and the checks that the functions share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from torch import Tensor

from torch_multiclass import checks as check

_LEAST = 1e-300  # of delta, whose parts are to be above 0


@dataclass(frozen=True, repr=False)
class Bound:
    """An upper bound, what it is made of, and what it rests on.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), section 9.2; each bound names its own equation.

    Example:
        >>> Bound(1.25, {"empirical": 0.25, "complexity": 1.0}, assumptions=("rows are independent",)).vacuous
        True
        >>> print(Bound(1.25, {"empirical": 0.25, "complexity": 1.0}, assumptions=("rows are independent",)))
        1.25 (vacuous: above 1) = 0.25 empirical + 1 complexity
    """

    value: float
    """The bound itself; it may be above ``trivial``."""
    terms: Mapping[str, float]
    """What adds up to it, or what it is a product of, by name."""
    assumptions: tuple[str, ...]
    """What has to hold for it to hold."""
    trivial: float = 1.0
    """What is true anyway: 1 for an error rate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what is true anyway."""
        return not self.value < self.trivial

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        given = f"value={self.value}, terms={dict(self.terms)}, assumptions={self.assumptions}, trivial={self.trivial}"
        return f"{type(self).__name__}({given})"

    def __str__(self) -> str:
        """The bound in words: whether it says anything, and the terms that it is the sum or the product of."""
        return f"{self.value:.4g}{self._emptiness()}{self._composition()}"

    def _emptiness(self) -> str:
        if not self.vacuous:
            return ""
        return f" (vacuous: {'above' if self.value > self.trivial else 'not below'} {self.trivial:g})"

    def _composition(self) -> str:
        terms = {name: number for name, number in self.terms.items() if not name.startswith("(")}
        for sign, made in ((" + ", sum(terms.values())), (" × ", math.prod(terms.values()))):
            if made == self.value or math.isclose(made, self.value, rel_tol=1e-9):
                return " = " + sign.join(f"{number:.4g} {name}" for name, number in terms.items())
        return ", from " + ", ".join(f"{name} {number:.4g}" for name, number in terms.items()) if terms else ""

    def __reduce__(self) -> tuple[object, ...]:
        return Bound, (self.value, dict(self.terms), self.assumptions, self.trivial)


SAMPLE = "the rows are drawn independently, from the distribution that the error is measured on"
FIXED = "the features and the kernel were fixed before this sample was seen"


def total(terms: dict[str, float], assumptions: tuple[str, ...], trivial: float = 1.0) -> Bound:
    """The bound that is the sum of its terms."""
    return Bound(sum(terms.values()), terms, assumptions, trivial)


def plain(given: object) -> Any:
    """A tensor of one number as that number: what losses and norms measure."""
    return check.plain(given, floats=True)


def measured(name: str, given: object) -> float:
    """A finite number >= 0."""
    return check.positive(name, plain(given), zero=True)


def positive(name: str, given: object) -> float:
    """A finite number > 0."""
    return check.positive(name, plain(given))


def product_of(given: object) -> float:
    """A finite number >= 0; of several, as ``report.Z`` has them, their product."""
    several = isinstance(given, np.ndarray) or (isinstance(given, Tensor) and not given.is_meta)
    if isinstance(given, (list, tuple)) or (several and getattr(given, "ndim", 0) == 1):
        each: Iterable[Any] = given  # type: ignore[assignment]
        return math.prod([measured("product", one) for one in each])
    if hasattr(given, "Z"):
        raise TypeError(f"product: got {check.came(given)}; accepted is a finite number >= 0, or several, as its Z")
    return measured("product", given)


def real(given: object) -> float:
    """A number as a float, NaN for what is none."""
    given = plain(given)
    return check.real(given) if isinstance(given, (int, Real)) and not isinstance(given, bool) else math.nan


def share(name: str, given: object) -> float:
    """A number in [0, 1]."""
    if not 0 <= (number := real(given)) <= 1:
        raise ValueError(f"{name}: got {check.shown(given)}; accepted is a number in [0, 1]")
    return number


def confidence(given: object) -> float:
    """The probability ``delta`` of a sample for which the bound fails; warn of one that is most likely its rest."""
    if not _LEAST <= (delta := real(given)) < 1:
        raise ValueError(
            f"delta: got {check.shown(given)}; accepted is a number in (0, 1), the probability that the bound fails, "
            "such as 0.05"
        )
    if delta > 0.5:
        warnings.warn(
            f"delta: got {delta:g}, the probability that the bound fails, so that it holds with {1 - delta:g} only; "
            f"did you mean {1 - delta:g}?",
            UserWarning,
            stacklevel=check.caller(),
        )
    return delta
