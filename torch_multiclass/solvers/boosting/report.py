"""How boosting went, and what every kind of it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from torch_multiclass.ops.splits.tree import Tree
from torch_multiclass.solvers.report import Report, Step


class BoostOptions(TypedDict, total=False):
    """The keyword arguments of every kind of boosting, as in `Booster`."""

    leaves: int
    bins: int | None
    patience: int | None
    progress: bool | None
    on_step: Callable[[Step], None] | None


BOOST_OPTIONS = tuple(BoostOptions.__annotations__)

Ending = Literal["rounds", "perfect", "no better than chance", "validation", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class Rounds(Report):
    """How boosting went, a number a round.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, section 9.3.2.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import AdaBoostMH
        >>> report = AdaBoostMH(rounds=5).fit(torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([0, 1, 1])).report
        >>> report.errors, report.smoothed, report.ending
        ([0.0], True, 'perfect')
    """

    errors: list[float]
    """``eps``: how often the base classifier is wrong, by the weights of its round."""
    alphas: list[float]
    """The weight of each base classifier; 1 of real-valued ones."""
    Z: list[float]
    """What the weights sum to after the round, before they are divided by it."""
    bound: list[float]
    """The product of all ``Z`` up to the round: of `AdaBoostMH` it bounds the share of wrong labels, not of wrong rows,
    which `torch_multiclass.bounds.boosting_error` bounds by ``K / 2`` of it; it has every kind."""
    smoothed: bool
    """Whether a base classifier was never wrong, so that its weight is what smoothing makes it."""
    ending: Ending
    """Why there are no more rounds."""
    validation_errors: list[float]
    """Of the ensemble after each round, on the rows given for it; the scorer has the rounds up to the first best."""
    kind: str
    """The solver, and ``real`` where its votes are real numbers."""
    sample: int = field(repr=False)
    """A check sum of the rows, their labels and weights."""
    trees: list[Tree] = field(repr=False)
    """The base classifiers, with their votes at the leaves; for `fit(resume=)`."""

    @property
    def rounds(self) -> int:
        """How many base classifiers the scorer has."""
        return len(self.alphas)
