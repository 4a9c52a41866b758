"""How margins are read by a code: one that is written out, or one whose entries follow from their places.

What a code is asked: sums over the columns of each row, the columns of a label, and its rows. The two codes with a
column for each class or each pair of classes answer without a matrix, which for 1,000 classes has 500 million entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.pairs import add_pairs, blocks_of_pairs, columns_of, pair_sums
from torch_multiclass.ops.precision import no_autocast

_BLOCK = 1 << 18  # margins in a block that is read at a time: its temporaries stay in cache

Read = Callable[[slice], Tensor]
"""The margins of some columns of all rows, ``(C, n)``."""


class Coding(ABC):
    """A code of ``K`` rows and ``L`` columns with entries -1, 0 and +1."""

    name: str | None = None
    num_classes: int
    num_columns: int
    products: tuple[int, int, int] | None = None
    """``u.u`` and ``u.v`` of any two rows, and the columns that ask both, where they are the same for all."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(K, L)``."""
        return self.num_classes, self.num_columns

    @abstractmethod
    def rows(self, labels: Tensor, columns: slice = slice(None)) -> Tensor:
        """The rows of some classes, int8: ``(*)`` to ``(*, L)``, or some columns of them."""

    @abstractmethod
    def zeros(self, device: torch.device) -> Tensor:
        """How many columns ignore each class, ``(K,)``."""

    @abstractmethod
    def sums(self, agree: Tensor, against: Tensor) -> Tensor:
        """``sum_{s: M = +1} agree_s + sum_{s: M = -1} against_s`` for every row: ``(*, L)`` twice to ``(*, K)``."""

    @abstractmethod
    def of_label(self, margins: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """``M(y, s) f_s`` in columns ``(*, A)`` that hold all non-zero entries of the label; where it is not asked, 0.

        And which of them ask it, None where all do.
        """

    def written(self, device: torch.device | str = "cpu") -> Tensor:
        """The matrix itself, ``(K, L)`` int8."""
        return self.rows(torch.arange(self.num_classes, device=device))

    def equals(self, matrix: Tensor) -> bool:
        """Whether this is that matrix; compared some rows at a time."""
        if tuple(matrix.shape) != self.shape:
            return False
        step = max(1, _BLOCK // self.num_columns)
        labels = torch.split(torch.arange(self.num_classes, device=matrix.device), step)
        return all(torch.equal(self.rows(some), matrix[some].to(torch.int8)) for some in labels)


class Written(Coding):
    """A code with a matrix.

    And perhaps the columns ``(K, A)`` of each class that hold its non-zero entries; ``full`` where it has no others.
    """

    def __init__(self, matrix: Tensor, active: Tensor | None = None, full: bool = False) -> None:
        self.matrix, self.active, self.full = matrix, active, full
        self.num_classes, self.num_columns = matrix.shape

    def rows(self, labels: Tensor, columns: slice = slice(None)) -> Tensor:
        """The rows of some classes."""
        return self.matrix[labels] if columns == slice(None) else self.matrix[:, columns][labels]

    def zeros(self, device: torch.device) -> Tensor:
        """How many columns ignore each class."""
        return (self.matrix == 0).sum(-1)

    def sums(self, agree: Tensor, against: Tensor) -> Tensor:
        """The two matrix products."""
        plus, minus = ((self.matrix == entry).to(agree.dtype) for entry in (1, -1))
        with no_autocast(agree):
            return agree @ plus.mT + against @ minus.mT

    def of_label(self, margins: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the columns of each label say."""
        bits = self.matrix
        if self.active is not None:  # only the columns that some class with this label can use
            margins, bits = margins.gather(-1, self.active[labels]), bits.gather(1, self.active)
        bits = bits[labels]
        if self.full:
            return bits * margins, None
        asked = bits != 0
        # 0 where nothing is asked, so that whatever stands there reaches neither the loss nor a gradient
        return torch.where(asked, bits * margins, 0.0), asked

    def written(self, device: torch.device | str = "cpu") -> Tensor:
        """The matrix."""
        return self.matrix


class OneVsOne(Coding):
    """The code of `torch_multiclass.codes.one_vs_one`, a column for each pair of classes, without its matrix.

    Scorers, scores, losses and decoders take it as they take the matrix, which `written` gives.

    Args:
        num_classes: ``K``, at least 2.

    Shape:
        ``(K, K(K-1)/2)``.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> OneVsOne(1000).shape
        (1000, 499500)
        >>> OneVsOne(3).written()
        tensor([[ 1,  1,  0],
                [-1,  0,  1],
                [ 0, -1, -1]], dtype=torch.int8)
    """

    name = "one_vs_one"

    def __init__(self, num_classes: int) -> None:
        num_classes = check.whole("num_classes", num_classes, least=2)
        self.num_classes, self.num_columns = num_classes, num_classes * (num_classes - 1) // 2
        self.products = num_classes - 1, -1, 1

    def rows(self, labels: Tensor, columns: slice = slice(None)) -> Tensor:
        """The rows of some classes."""
        start, stop, _ = columns.indices(self.num_columns)
        places, higher = columns_of(labels, self.num_classes)
        asked = (places >= start) & (places < stop)
        signs = torch.where(asked, torch.where(higher, -1, 1), 0).to(torch.int8)
        zeros = signs.new_zeros(*labels.shape, stop - start + 1)  # with a place for those of other columns
        return zeros.scatter_(-1, torch.where(asked, places - start, stop - start), signs)[..., :-1]

    def zeros(self, device: torch.device) -> Tensor:
        """How many columns ignore each class."""
        return torch.full((self.num_classes,), self.num_columns - self.num_classes + 1, device=device)

    def sums(self, agree: Tensor, against: Tensor) -> Tensor:
        """What each row collects."""
        return pair_sums(agree, against, self.num_classes)

    def of_label(self, margins: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the columns of each label say."""
        columns, higher = columns_of(labels, self.num_classes)
        margins = margins.gather(-1, columns)
        return torch.where(higher, -margins, margins), None

    def sums_by_block(self, read: Read, rows: int, terms: Callable[[Tensor], tuple[Tensor, Tensor | None]]) -> Tensor:
        """`sums` of the ``terms`` ``(agree, against)`` of margins that are read block by block: ``(n, K)``.

        None in place of ``against`` is ``-agree``.
        """
        total: Tensor | None = None
        for lower, columns in blocks_of_pairs(self.num_classes, max(1, _BLOCK // max(1, rows))):
            agree, against = terms(read(columns))
            total = agree.new_zeros(self.num_classes, rows) if total is None else total
            add_pairs(total, agree, against, lower)
        assert total is not None
        return total.T


class OneVsAll(Coding):
    """The code of `torch_multiclass.codes.one_vs_all`, a column for each class, without its matrix.

    Scorers, scores, losses and decoders take it as they take the matrix, which `written` gives.

    Args:
        num_classes: ``K``, at least 2.

    Shape:
        ``(K, K)``.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> OneVsAll(10_000).shape
        (10000, 10000)
        >>> OneVsAll(3).written()
        tensor([[ 1, -1, -1],
                [-1,  1, -1],
                [-1, -1,  1]], dtype=torch.int8)
    """

    name = "one_vs_all"

    def __init__(self, num_classes: int) -> None:
        num_classes = check.whole("num_classes", num_classes, least=2)
        self.num_classes = self.num_columns = num_classes
        self.products = num_classes, num_classes - 4, num_classes

    def rows(self, labels: Tensor, columns: slice = slice(None)) -> Tensor:
        """The rows of some classes."""
        classes = torch.arange(self.num_classes, device=labels.device)[columns]
        return torch.where(labels.unsqueeze(-1) == classes, 1, -1).to(torch.int8)

    def zeros(self, device: torch.device) -> Tensor:
        """How many columns ignore each class."""
        return torch.zeros(self.num_classes, dtype=torch.int64, device=device)

    def sums(self, agree: Tensor, against: Tensor) -> Tensor:
        """By sums of what stands before and behind each column: a difference of large sums would say little."""
        before, behind = (part.narrow(-1, 0, self.num_classes - 1).cumsum(-1) for part in (against, against.flip(-1)))
        pad = torch.nn.functional.pad
        return agree + pad(before, (1, 0)) + pad(behind, (1, 0)).flip(-1)

    def of_label(self, margins: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the columns of each label say."""
        own = labels.unsqueeze(-1)
        return (-margins).scatter(-1, own, margins.gather(-1, own)), None


KNOWN: dict[str, Callable[[int], Coding]] = {"one_vs_one": OneVsOne, "one_vs_all": OneVsAll}
"""The codes that need no matrix, by name."""


def as_coding(code: Tensor | Coding) -> Coding:
    """A code by its matrix, or as it is."""
    return Written(code) if isinstance(code, Tensor) else code
