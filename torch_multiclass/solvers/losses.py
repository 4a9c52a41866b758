"""What certified solvers ask of the losses of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class Losses(ABC):
    r"""The losses ``sum_i loss_i(s_i)`` of all rows, each with its weight, and their dual variables ``beta_i``.

    The multipliers of the scores are ``alpha(beta)``, linear in ``beta``, and the dual objective is
    ``sum_i dual_i(beta_i) - R*(sum_i alpha_i Phi(x_i))``, ``R`` being the regulariser.
    """

    outputs: int
    """How many scores a row has."""
    vanishes = False
    """Whether the loss of a row is 0 from some margin on, so that larger scores may end it."""

    @abstractmethod
    def margins(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """What the losses read, affine in the scores. ``rows`` picks examples everywhere; None means all."""

    @abstractmethod
    def loss(self, margins: Tensor, rows: Tensor | None = None) -> Tensor:
        """The loss of each row."""

    @abstractmethod
    def dual(self, beta: Tensor) -> Tensor:
        """``dual_i(beta_i)``, minus the conjugate of the loss."""

    @abstractmethod
    def alpha(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        """The multipliers of the scores."""

    @abstractmethod
    def project(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        """The nearest feasible ``beta``."""

    @abstractmethod
    def start(self) -> Tensor:
        """The ``beta`` of ``alpha = 0``."""

    @abstractmethod
    def balance(self, beta: Tensor, margins: Tensor | None = None) -> Tensor:
        """A feasible ``beta`` nearby with ``sum_i alpha_i = 0``, at little cost at the margins."""

    def best_shift(self, margins: Tensor) -> Tensor | None:
        """What to add to every row's scores, ``(K)``, for a sum of losses that no class alone makes less, and in the
        middle of where it is as small; None where the losses have one place only."""
        return None
