"""What an objective of boosting answers, round by round."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.hamming import Partition
from torch_multiclass.ops.splits.layout import Layout
from torch_multiclass.ops.splits.tree import Index

NO_BETTER = 1e-9
"""A base classifier whose edge is no larger is no better than chance."""


@dataclass(frozen=True)
class Round:
    """What a base classifier is worth."""

    votes: Floats
    """``(nodes, C)``: its answer at each leaf."""
    alpha: float
    """Its weight."""
    error: float
    """How often it is wrong, by the weights before this round."""
    normaliser: float
    """``Z``, what the weights sum to after it."""
    smoothed: bool = False
    """Whether it is never wrong, and ``alpha`` finite by smoothing only."""
    last: bool = False
    """Whether nothing is left to be done."""


class Objective(ABC):
    """The weights of a sample, and what they ask of a base classifier.

    The scores so far, ``F``, say everything; the weights follow from them in the log domain, so that they stay
    numbers after any number of rounds.
    """

    criterion: int
    """`EDGE` or `NORMALISER` of ``ops/splits/dense.py``."""
    layout: Layout
    """Of the channels."""
    scores: Floats
    """``F``, as the layout has them."""

    @property
    @abstractmethod
    def channels(self) -> Floats:
        """What the search for splits sums."""

    @abstractmethod
    def weigh(self, part: Partition) -> Round | None:
        """The votes of a partition and their weight; None where they are no better than chance."""

    @abstractmethod
    def add(self, leaf: Index, found: Round) -> None:
        """Go on to the weights after a round, in which the rows had these leaves."""


def half_log(better: float, worse: float) -> float:
    """``½ ln(better/worse)``."""
    return 0.5 * (math.log(better) - math.log(worse))


def signs(sums: Floats) -> Floats:
    """The better vote for each label; -1 where both are as good."""
    return np.where(sums > 1e-12, 1.0, -1.0)
