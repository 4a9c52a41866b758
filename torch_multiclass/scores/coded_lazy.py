"""Coded scores of many classes: the code is not written out, and margins are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import captured
from torch_multiclass.ops.coded import distances_by_block, raised, votes_by_block
from torch_multiclass.ops.coding import KNOWN, Coding, OneVsOne
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike, ZeroOne, as_margin_loss
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores._source import Source
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.coded import CodedScores

_BLOCK = 1 << 22  # margins that are computed at a time
_ROWS = 2048  # rows for which some columns are read at a time


@registered
class LazyCodedScores(CodedScores):
    """`CodedScores` of a code that goes by its name and, where the margins are linear, of what they come from.

    ``margins`` and ``code`` are computed at each access: for 1,000 classes in pairs 2 MB a row, and 500 MB. Labels,
    losses and decoders do without, and hold a few blocks of margins, some 64 MiB, at a time. Until they are read the
    weights must stay as they are.

    Args:
        given: the margins ``(*, L)``, or the features ``(*, D)`` that they come from.
        weight: ``(L, D)``, or None with margins.
        bias: ``(L)`` or None.
        absent: as for `CodedScores`.
        name: of the code.
        sizes: ``(K, L)``.
    """

    given: Tensor
    weight: Tensor | None
    bias: Tensor | None
    sizes: tuple[int, int]
    leading: ClassVar[str] = "given"
    field_names: ClassVar[tuple[str, ...]] = ("given", "weight", "bias", "absent", "name", "sizes")

    @classmethod
    def of(cls, coding: Coding, absent: Tensor | None, given: Tensor, source: Source | None = None) -> Self:
        """The scores of margins, or of what they come from."""
        new = object.__new__(cls)
        new.given, new.weight, new.bias, new.absent = given, None, None, absent
        new.name, new.sizes, new.active = str(coding.name), coding.shape, None
        if source is None:
            new._check_margins()
        else:
            new.weight, new.bias, new.__dict__["_version"] = source.weight, source.bias, source.version
            new.__dict__["_sparse"] = source.sparse
        return new

    def __setattr__(self, name: str, value: object) -> None:
        """As utilities do that go through the fields of a copy: weights in the place of others are read as they are."""
        source = self.source if name == "weight" and "weight" in vars(self) else None
        super().__setattr__(name, value)
        if source is not None and isinstance(value, Tensor):
            vars(self)["_version"] = value._version if source.fresh else -1

    def _check_margins(self) -> None:
        check.floating("margins", self.given)
        if self.given.ndim == 0 or self.given.shape[-1] != self.num_columns:
            raise ValueError(
                f"margins: got shape {tuple(self.given.shape)}; accepted is (*, {self.num_columns}), one margin for "
                f"each column of the {self.sizes} code"
            )

    def _with(self, **changes: Any) -> Self:
        if "margins" in changes:
            return self.of(self.coding, self.absent, changes["margins"])
        stale = self.source is not None and not self.source.fresh
        new = super()._with(**changes)
        if new.weight is not None:
            new.__dict__.update(_version=-1 if stale else new.weight._version, _sparse=getattr(self, "_sparse", False))
        return new

    def __getstate__(self) -> dict[str, object]:
        fresh = self.source is None or self.source.fresh
        return {name: part for name, part in vars(self).items() if name != "_version" or not fresh}

    def _own_dims(self) -> dict[str, int]:
        return {"given": 1}

    def _check_again(self) -> None:
        if self.weight is None:
            self._check_margins()
        else:
            check.floating("given", self.given)
            check.shape("given", self.given, (*self._batch(), self.weight.shape[1]), "the features of each row")

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.sizes[0]

    @property
    def num_columns(self) -> int:
        """``L``."""
        return self.sizes[1]

    @property
    def shape(self) -> torch.Size:
        """The shape of the margins."""
        return torch.Size((*self._batch(), self.num_columns))

    @property
    def source(self) -> Source | None:
        """What the margins come from, where they are not given."""
        if self.weight is None:
            return None
        version = getattr(self, "_version", self.weight._version)
        return Source(self.given, self.weight, self.bias, version, getattr(self, "_sparse", False))

    @property
    def margins(self) -> Tensor:  # type: ignore[override]
        """All margins ``(*, L)``, computed anew."""
        source = self._current()
        return self.given if source is None else source.margins()

    def _current(self) -> Source | None:
        source = self.source
        if source is not None and not source.fresh:
            raise RuntimeError(
                "scores: the weights have changed since; accepted are scores that are read before the optimiser's "
                f"step, because the margins of {self.num_columns} pairs are computed as they are read"
            )
        return source

    @property
    def code(self) -> Tensor:  # type: ignore[override]
        """The matrix ``(K, L)``, written out anew."""
        return self.coding.written(self.given.device)

    @property
    def coding(self) -> Coding:
        """How the code is read."""
        return KNOWN[str(self.name)](self.num_classes)

    def _batch(self) -> tuple[int, ...]:
        return tuple(self.given.shape[:-1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(margins={tuple(self.shape)}, code={self.name}({self.num_classes}))"

    # ------------------------------------------------------------------------------------------------ by block

    def _read_by_block(self, of: Callable[[Callable[[slice], Tensor], int], Tensor | None]) -> Tensor | None:
        """A function ``(*, K)`` of how some columns of rows are read, ``(C, n)``, and ``n``; None where it is none."""
        found, flat = [], self.given.detach().reshape(-1, self.given.shape[-1])
        source = self._current()
        for start in range(0, max(1, len(flat)), _ROWS):
            rows = flat[start : start + _ROWS]
            read = partial(_turned, rows) if source is None else source._replace(features=rows).columns
            part = of(read, len(rows))
            if part is None:
                return None
            found.append(part)
        return torch.cat(found).reshape((*self._batch(), self.num_classes))

    def columns(self, columns: slice) -> Tensor:
        """As of `CodedScores`; only those are computed."""
        source = self._current()
        if source is None:
            return self.given[..., columns].detach()
        found = source.columns(columns).T
        return found.reshape(*self._batch(), found.shape[-1])

    def at(self, columns: Tensor) -> Tensor:
        """As of `CodedScores`; only those are computed."""
        source = self._current()
        return self.given.gather(-1, columns) if source is None else source.at(columns)

    def parts(self) -> Iterator[LazyCodedScores]:
        """The scores of some rows at a time, with their margins, of a batch of one dimension."""
        flat = self._with(given=self.given.reshape(-1, self.given.shape[-1]))
        step = max(1, _BLOCK // self.num_columns)
        for start in range(0, max(1, len(flat.given)), step):
            part = flat[start : start + step]
            yield part._with(margins=part.margins)

    def in_parts(self, of: Callable[[CodedScores], Tensor]) -> Tensor:
        """A function of each row's margins that is of no interest to a gradient, some rows at a time."""
        if captured() or self._recorded():
            return of(self._with(margins=self.margins))
        found = torch.cat([of(part) for part in self.parts()])
        return found.reshape((*self._batch(), *found.shape[1:]))

    def _recorded(self) -> bool:
        parts = (self.given, self.weight, self.bias)
        return torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in parts)

    def class_scores(self, loss: MarginLossLike) -> Tensor:
        """As of `CodedScores`."""
        loss = as_margin_loss(loss)
        total = None if self._recorded() else self._distances(loss)
        if total is None:
            return self.in_parts(lambda part: CodedScores.class_scores(part, loss))
        total = self.without_absent(-total)
        return raised((total - self.num_columns * loss.at_zero).to(upcast(self.given).dtype), total.argmax(-1))

    def log_class_scores(self, loss: MarginLossLike) -> Tensor:
        """As of `CodedScores`."""
        return self.in_parts(lambda part: CodedScores.log_class_scores(part, loss))

    def nearest(self, loss: MarginLossLike) -> Tensor:
        """As of `CodedScores`; distances of pairs are compared in float64."""
        loss = as_margin_loss(loss)
        if isinstance(loss, ZeroOne) and self.name == "one_vs_one":
            return self.votes().argmax(-1)
        total = self._distances(loss)
        if total is not None:
            return self.without_absent(-total).argmax(-1)
        with torch.no_grad():
            return self.in_parts(lambda part: CodedScores.nearest(part, loss))

    def _distances(self, loss: MarginLoss) -> Tensor | None:
        """Distances to the classes of pairs, less a constant, in float64; None where they are not found by block."""
        coding = self.coding
        if captured() or not isinstance(coding, OneVsOne):
            return None
        return self._read_by_block(lambda read, rows: distances_by_block(read, rows, coding, loss))

    def agreement(self) -> Tensor:
        """As of `CodedScores`."""
        coding = self.coding
        if captured() or self._recorded() or not isinstance(coding, OneVsOne):
            return CodedScores.agreement(self)
        total = self._read_by_block(lambda read, rows: coding.sums_by_block(read, rows, lambda f: (f.double(), None)))
        assert total is not None
        return total

    def votes(self) -> Tensor:
        """As of `CodedScores`."""
        coding = self.coding
        if captured() or not isinstance(coding, OneVsOne):
            return CodedScores.votes(self)
        total = self._read_by_block(lambda read, rows: votes_by_block(read, rows, coding))
        assert total is not None
        return self.without_absent(total)


def _turned(margins: Tensor, columns: slice) -> Tensor:
    return margins[:, columns].T


@dataclass
class _Fields:
    """What those who go through the fields of a dataclass see of `LazyCodedScores`."""

    given: Tensor
    weight: Tensor | None
    bias: Tensor | None
    absent: Tensor | None
    name: str | None
    sizes: tuple[int, int]


LazyCodedScores.__dataclass_fields__ = _Fields.__dataclass_fields__
