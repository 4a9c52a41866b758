"""Binary margins with the code that reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.codes.names import NAMES
from torch_multiclass.ops.coded import distances, log_distances, nearest, topped, votes
from torch_multiclass.ops.coding import KNOWN, Coding, Written
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike, as_margin_loss
from torch_multiclass.ops.pairs import knock_out
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores._source import Source
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
        name: of the construction that the code comes from (`torch_multiclass.codes.name_of`), where it is known, so
            that decoders for one code need not compare matrices.

    Raises:
        TypeError: fields that are not dense tensors, margins that are not floating, a code that is not of integers.
        ValueError: shapes or devices that disagree, entries of the code other than -1, 0 and +1.

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
    name: str | None = None
    leading: ClassVar[str] = "margins"

    def __post_init__(self) -> None:
        """Check the fields."""
        self.code = check.signed(self.code)
        check.integers("code", self.code, "-1, 0 and +1")
        if self.code.ndim != 2 or self.code.shape[0] < 2 or self.code.shape[1] < 1:
            raise ValueError(
                f"code: got shape {tuple(self.code.shape)}; accepted is (K, L), two classes and one column or more"
            )
        self._check_margins()
        if check.values_readable(self.code):
            _check_entries(self.code)
        if self.name is not None:
            check.choice("name", self.name, NAMES)
        if self.absent is not None:
            check.boolean("absent", self.absent, "True for a class to leave out")
            check.shape("absent", self.absent, (self.num_classes,), "one flag for each class")
            check.same_device("absent", self.absent, "margins", self.margins)
        if self.active is not None:
            _check_active(self.active, self.code)

    def _check_margins(self) -> None:
        check.floating("margins", self.margins)
        if self.margins.ndim == 0 or self.margins.shape[-1] != self.code.shape[1]:
            raise ValueError(
                f"margins: got shape {tuple(self.margins.shape)}; accepted is (*, {self.code.shape[1]}), one margin "
                f"for each column of the {tuple(self.code.shape)} code"
            )
        check.same_device("code", self.code, "margins", self.margins)

    @classmethod
    def read_by(
        cls,
        margins: Tensor,
        code: Tensor,
        absent: Tensor | None,
        active: Tensor | None,
        name: str | None,
        source: Source | None = None,
        full: bool = False,
    ) -> CodedScores:
        """Margins read by a code that was checked when it was made: for scorers."""
        new = object.__new__(cls)
        new.margins, new.code, new.absent, new.active, new.name = margins, code, absent, active, name
        new._check_margins()
        new.__dict__.update(_source=source, _full=full)
        return new

    def __repr__(self) -> str:
        code = tuple(self.code.shape) if self.name is None else f"{self.name}({self.num_classes})"
        return f"{type(self).__name__}(margins={tuple(self.margins.shape)}, code={code})"

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

    @property
    def source(self) -> Source | None:
        """What the margins of all pairs were computed from, where that is known: for the loss."""
        source: Source | None = getattr(self, "_source", None)
        return source

    @property
    def full(self) -> bool:
        """Whether the code is known to have no zeros."""
        return bool(getattr(self, "_full", False))

    def _with(self, **changes: Any) -> Self:
        new = super()._with(**changes)
        vars(new).pop("_source", None)  # which is that of these rows
        return new

    def __getstate__(self) -> dict[str, object]:
        return {name: part for name, part in vars(self).items() if name != "_source"}

    @property
    def coding(self) -> Coding:
        """How the code is read."""
        return Written(self.code, self.active, self.full)

    def class_scores(self, loss: MarginLossLike) -> Tensor:
        r"""Minus the distance to each class, ``-\sum_s \ell(M(r, s) f_s)`` with ``\ell(0)`` at the zeros, ``(*, K)``.

        ``"zero_one"`` gives the Hamming distance. Absent classes get ``-inf``. Differentiable. Where distances differ
        by less than they are rounded, or overflow, the class of the largest score is still that of the nearest row.

        Reference: Allwein, Schapire and Singer (2000), eq. (4) and (5); Mohri, Rostamizadeh and Talwalkar, (9.19).
        """
        loss = as_margin_loss(loss)
        return self._topped(-distances(self.margins, self.coding, loss), loss)

    def log_class_scores(self, loss: MarginLossLike) -> Tensor:
        """Minus the logarithm of the distance to each class, ``(*, K)``: the same order, and no overflow."""
        loss = as_margin_loss(loss)
        return self._topped(-log_distances(self.margins, self.coding, loss), loss)

    def nearest(self, loss: MarginLossLike) -> Tensor:
        """The class of smallest distance, the lowest among equals, ``(*)``; in exact order and without gradient."""
        return nearest(self.margins.detach(), self._ordering(), as_margin_loss(loss), self.absent)

    def votes(self) -> Tensor:
        """How many columns speak for each class, a margin of 0 for half, ``(*, K)``; ``-inf`` for absent classes."""
        coding = KNOWN["one_vs_one"](self.num_classes) if self.name == "one_vs_one" else self.coding
        return self.without_absent(votes(self.margins, coding))

    def agreement(self) -> Tensor:
        """How far the margins speak for each class, ``sum_s M(r, s) f_s``, ``(*, K)`` in float64."""
        margins = self.margins.double()
        return self.coding.sums(margins, -margins)

    def of_label(self, target: Target) -> tuple[Tensor, Tensor | None]:
        """``M(y, s) f_s`` in columns ``(*, A)`` that hold all that ask the label ``y``, and which do; None for all.

        0 where a column does not ask, or no label is known, so that what stands there reaches no gradient.
        """
        labels, kept, complete = target
        if self.source is not None and self.source.fresh:
            return self.source.of_label(labels if complete else torch.where(kept, labels, -1)), None
        z, asked = self.coding.of_label(upcast(self.margins), labels)
        if complete:
            return z, asked
        kept = kept.unsqueeze(-1)
        return torch.where(kept, z, 0.0), None if asked is None else asked & kept

    def at(self, columns: Tensor) -> Tensor:
        """The margins of some columns of each row, ``(*, m)``."""
        return self.margins.gather(-1, columns)

    def knock_out(self) -> tuple[Tensor, Tensor]:
        """A knock-out among the classes of pairs: the winner ``(*)``, and the rounds each class survives ``(*, K)``."""
        return knock_out(self.at, self._batch(), self.num_classes, self.device, self.absent)

    def in_parts(self, of: Callable[[CodedScores], Tensor]) -> Tensor:
        """A function of each row's margins; some rows at a time where there are very many."""
        return of(self)

    def columns(self, columns: slice) -> Tensor:
        """The margins of some columns, ``(*, C)``, without gradient."""
        return self.margins[..., columns].detach()

    def rows(self, labels: Tensor, columns: slice = slice(None)) -> Tensor:
        """What the code says of some classes, ``(*)`` to ``(*, L)``, or in some columns only; int8."""
        return self.coding.rows(labels, columns)

    def _ordering(self) -> Coding:
        """The same code, for the order of its rows: the one-versus-all code needs no matrix for that."""
        return KNOWN["one_vs_all"](self.num_classes) if self.name == "one_vs_all" else self.coding

    def _topped(self, class_scores: Tensor, loss: MarginLoss) -> Tensor:
        return topped(self.without_absent(class_scores), self.margins.detach(), self._ordering(), loss, self.absent)

    def without_absent(self, class_scores: Tensor) -> Tensor:
        """Class scores ``(*, K)`` with ``-inf`` for the absent classes."""
        return class_scores if self.absent is None else class_scores.masked_fill(self.absent, -torch.inf)

    def check_target(
        self, target: Tensor | Target, validate_args: bool | None = None, *, ignore_index: int = check.IGNORE
    ) -> Target:
        """Labels ``(*)`` in ``0..K-1`` or -100, checked; raise a named error unless ``target`` is that."""
        if isinstance(target, Target):
            return target
        shape = (*self._batch(), self.num_classes)
        meaning = f"one class index for each row of scores {shape}"
        return check.labels(
            "target",
            target,
            (shape[:-1], meaning),
            self.num_classes,
            ("scores", self._lead()),
            ignore_index=ignore_index,
            validate_args=validate_args,
        )

    def _batch(self) -> tuple[int, ...]:
        return tuple(self.margins.shape[:-1])

    def as_flat(self) -> FlatScores:
        """Zero scores of the same batch and classes: what a label has to fit is the same as there."""
        return FlatScores(self._lead().new_zeros(()).expand(*self._batch(), self.num_classes))


def _check_entries(code: Tensor) -> None:
    """Raise unless every entry is -1, 0 or +1."""
    lowest, highest = map(int, code.aminmax())
    if lowest < -1 or highest > 1:
        bad = lowest if lowest < -1 else highest
        raise ValueError(f"code: holds the entry {bad}; accepted are -1, 0 and +1")


def _check_active(active: Tensor, code: Tensor) -> None:
    """Raise unless ``active`` names, once each, columns of every class that hold all of its non-zero entries."""
    check.integers("active", active, "columns")
    if active.dtype != torch.int64 or active.ndim != 2 or len(active) != len(code):
        raise ValueError(
            f"active: got shape {tuple(active.shape)} of {active.dtype}; accepted is ({len(code)}, A) of torch.int64, "
            "columns of each class"
        )
    check.same_device("active", active, "code", code)
    if not check.values_readable(active):
        return
    check.label_range("active", active, code.shape[1])
    counts = torch.zeros(code.shape, dtype=torch.int64, device=code.device)
    counts.scatter_add_(1, active, torch.ones_like(active))
    if bool((counts > 1).any()) or bool(((code != 0) & (counts == 0)).any()):
        raise ValueError("active: leaves out a column that asks a class, or names one twice; accepted is each once")
