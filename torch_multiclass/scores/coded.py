"""Binary margins with the code that reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.ops.coded import distances
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.scores._travel import Travels, registered
from torch_multiclass.scores.flat import FlatScores


@registered
@dataclass(eq=False)
class CodedScores(Travels):
    r"""Margins ``f_s`` of ``L`` binary problems and the coding matrix ``M`` that gives each class a row of answers.

    Args:
        margins: ``(*, L)``, any floating dtype; positive for the classes with +1 in the column.
        code: ``(K, L)`` of -1, 0 and +1, integer.
        absent: ``(K,)`` bool, classes that decoding leaves out, or None.
        active: ``(K, A)`` int64, columns of each class that hold all of its non-zero entries, or None; a shortcut for
            the training loss of codes that are mostly 0.

    Raises:
        ValueError: margins, code or the others of shapes that disagree.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.3.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_all(3))
        >>> scores.class_scores("hinge")  # minus the distance to each class
        tensor([[-0.5000, -3.5000, -4.5000]])
    """

    margins: Tensor
    code: Tensor
    absent: Tensor | None = None
    active: Tensor | None = None
    leading: ClassVar[str] = "margins"

    def __post_init__(self) -> None:
        check.floating("margins", self.margins)
        check.integers("code", self.code, "-1, 0 and +1")
        if self.code.ndim != 2 or self.code.shape[0] < 2 or self.code.shape[1] < 1:
            raise ValueError(
                f"code: got shape {tuple(self.code.shape)}; accepted is (K, L), two classes and one column or more"
            )
        if self.margins.ndim == 0 or self.margins.shape[-1] != self.code.shape[1]:
            raise ValueError(
                f"margins: got shape {tuple(self.margins.shape)}; accepted is (*, {self.code.shape[1]}), one margin "
                f"for each column of the {tuple(self.code.shape)} code"
            )
        check.same_device("code", self.code, "margins", self.margins)
        if isinstance(self.absent, Tensor):
            check.shape("absent", self.absent, (self.num_classes,), "one flag for each class")

    def _own_dims(self) -> dict[str, int]:
        return {"margins": 1}

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.code.shape[0]

    @property
    def num_columns(self) -> int:
        """``L``."""
        return self.code.shape[1]

    def class_scores(self, loss: MarginLossLike) -> Tensor:
        r"""Minus the distance to each class, ``-\sum_s \ell(M(r, s) f_s)`` with ``\ell(0)`` at the zeros, ``(*, K)``.

        ``"zero_one"`` gives the Hamming distance. Absent classes get ``-inf``. Differentiable.

        Reference: Allwein, Schapire and Singer (2000), eq. (4) and (5); Mohri, Rostamizadeh and Talwalkar, (9.19).
        """
        return self.without_absent(-distances(self.margins, self.code, as_margin_loss(loss)))

    def without_absent(self, class_scores: Tensor) -> Tensor:
        """Class scores ``(*, K)`` with ``-inf`` for the absent classes."""
        return class_scores if self.absent is None else class_scores.masked_fill(self.absent, -torch.inf)

    def check_target(self, target: Tensor | Target, validate_args: bool | None = None) -> Target:
        """Labels ``(*)`` in ``0..K-1`` or -100, checked; raise a named error unless ``target`` is that."""
        return self.as_flat().check_target(target, validate_args)

    def as_flat(self) -> FlatScores:
        """Zero scores of the same batch and classes: what a label has to fit is the same as there."""
        return FlatScores(self.margins.new_zeros(()).expand(*self.margins.shape[:-1], self.num_classes))
