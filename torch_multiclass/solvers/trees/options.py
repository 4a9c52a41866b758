"""What trees are grown by: the options that a tree and a forest share, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.impurity import IMPURITIES
from torch_multiclass.ops.splits.tree import Tree

QUESTIONS = ("threshold", "subset", "hyperplane", "sphere")
"""The kinds of questions, in the order in which equal ones are preferred."""

LEAVES = ("squared", "logistic", "exponential")
"""The losses for which a leaf has a margin."""

HALF = 0.5
"""Half a row is added to either side where margins are logarithms."""


@dataclass(frozen=True)
class TreeOptions:
    """As `DecisionTree` documents them."""

    impurity: str = "gini"
    max_leaves: int | None = None
    max_depth: int | None = None
    min_leaf: float = 1
    min_decrease: float = 0.0
    weighted: bool = True
    look_ahead: int = 1
    questions: Sequence[str] = ("threshold", "subset")
    categorical: Sequence[int] = ()
    draws: int = 10
    bins: int | None = None

    def __post_init__(self) -> None:
        check.choice("impurity", self.impurity, IMPURITIES)
        for name, least in (("max_leaves", 1), ("max_depth", 0), ("draws", 1), ("bins", 2)):
            if (given := getattr(self, name)) is not None or name == "draws":
                object.__setattr__(self, name, check.whole(name, given, least=least))
        for name in ("min_leaf", "min_decrease"):
            zero = name == "min_decrease"
            object.__setattr__(self, name, check.positive(name, getattr(self, name), zero=zero))
        check.flag("weighted", self.weighted)
        ahead = check.plain(self.look_ahead)
        if isinstance(ahead, bool) or not isinstance(ahead, Integral) or ahead not in (1, 2):
            raise ValueError(f"look_ahead: got {check.shown(self.look_ahead)}; accepted are 1 and 2")
        object.__setattr__(self, "look_ahead", int(ahead))
        if isinstance(self.questions, str) or not isinstance(self.questions, Sequence) or not self.questions:
            accepted = f"some of {', '.join(map(repr, QUESTIONS))}"
            raise TypeError(f"questions: got {check.shown(self.questions)}; accepted is a sequence of {accepted}")
        for kind in self.questions:
            check.choice("questions", kind, QUESTIONS)
        if not isinstance(self.categorical, (list, tuple, range)):
            raise TypeError(f"categorical: got {check.shown(self.categorical)}; accepted is a sequence of features")
        features = tuple(check.whole("categorical", feature, least=0) for feature in self.categorical)
        object.__setattr__(self, "categorical", features)
        if self.categorical and "subset" not in self.questions:
            raise ValueError("categorical: is given, but questions have no 'subset'; accepted are questions that do")

    @property
    def plain(self) -> bool:
        """Whether all questions are thresholds, looked at by themselves."""
        other = {"hyperplane", "sphere"} & set(self.questions)
        return not other and not self.categorical and self.look_ahead == 1

    @property
    def deepest(self) -> int | None:
        """How many levels may be split."""
        limits = [self.max_depth, None if self.max_leaves is None else self.max_leaves - 1]
        return min((limit for limit in limits if limit is not None), default=None)

    def check_categories(self, features: Tensor) -> None:
        """Raise unless the categorical features hold categories."""
        for number in self.categorical:
            if number >= features.shape[1]:
                raise ValueError(f"categorical: holds {number}; accepted are features in 0..{features.shape[1] - 1}")
            column = features[:, number]
            known = column[~column.isnan()]
            bad = known[(known < 0) | (known != known.floor()) | (known >= 2**20)]
            if len(bad):
                raise ValueError(
                    f"features: feature {number} is categorical and holds {float(bad[0]):g}; accepted are the numbers "
                    "of categories, 0, 1, ..., and NaN where one is missing"
                )


def check_loss(loss: object) -> None:
    """None, or one for which a leaf has a margin."""
    if loss is not None:
        check.choice("loss", loss, LEAVES)


def with_leaf_values(tree: Tree, loss: str | None) -> Tree:
    """The tree of which a scorer is made: class shares, or the margin that a loss asks for."""
    return tree.with_values(leaf_values(tree.values, loss))


def leaf_values(sums: Floats, loss: str | None) -> Floats:
    """From the weight of each class ``(N, K)``: the shares, or margins ``(N, 1)``.

    Squared: ``p_+ - p_-``; logistic and exponential: ``½ log((n_+ + ½) / (n_- + ½))``.
    """
    total = sums.sum(1, keepdims=True)
    if loss is None:
        return np.asarray(sums / total)
    negative, positive = sums[:, :1], sums[:, 1:]
    if loss == "squared":
        return np.asarray((positive - negative) / total)
    return np.asarray(0.5 * np.log((positive + HALF) / (negative + HALF)))


def number_or_none(name: str, given: object, names: Sequence[str]) -> None:
    """Raise unless ``given`` is None, one of the ``names`` or a number >= 0."""
    if given is None or (isinstance(given, str) and given in names):
        return
    if not check.real(given) >= 0:
        accepted = ", ".join(map(repr, names))
        raise ValueError(f"{name}: got {check.shown(given)}; accepted are None, {accepted} and numbers >= 0")


def seed_of(generator: torch.Generator) -> int:
    """A seed drawn from a generator."""
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def features_tried(given: object) -> int | float | str | None:
    """None, ``"sqrt"``, a number of features or a share of them, as Python's own; raise for anything else."""
    if given is None or (isinstance(given, str) and given == "sqrt"):
        return given
    number: Any = check.plain(given)
    if isinstance(number, Real) and number is not True:
        if isinstance(number, Integral) and int(number) >= 1:
            return int(number)
        if not isinstance(number, Integral) and 0 < float(number) <= 1:
            return float(number)
    accepted = "None, 'sqrt', a whole number >= 1 and a share above 0 and at most 1"
    raise ValueError(f"features: got {check.shown(given)}; accepted are {accepted}")


def tried(features: int | float | str | None, width: int) -> int:
    """How many of the features are tried."""
    if features is None:
        return width
    if features == "sqrt":
        return isqrt(width)
    if isinstance(features, int):
        return min(features, width)
    return max(1, int(float(features) * width))
