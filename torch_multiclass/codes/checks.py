"""What counts as a code, and what is odd about one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as validate
from torch_multiclass.codes.products import row_products
from torch_multiclass.codes.words import digits_for, word_keys
from torch_multiclass.ops.coding import KNOWN, Coding
from torch_multiclass.ops.constants import home

__all__ = ["CodeLike", "as_code", "check"]

CodeLike = Tensor | np.ndarray | Sequence[Sequence[int]]
"""What the functions here take for a code: a tensor, an array or nested lists of -1, 0 and +1."""

_BLOCK = 1 << 22  # entries that are looked at at a time


def as_code(code: CodeLike | Coding, name: str = "code") -> Tensor:
    """The code as an int8 tensor ``(K, L)``; raise unless it is a matrix of -1, 0, +1 of two rows or more."""
    if isinstance(code, Coding):
        return code.written(home())
    matrix = validate.numbers(name, code, "a (K, L) matrix of -1, 0 and +1")
    if matrix.dim() != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise ValueError(
            f"{name}: got shape {tuple(matrix.shape)}; accepted is (K, L), two classes and one column or more"
        )
    validate.with_values(name, matrix)
    if validate.values_readable(matrix, True):
        for rows in torch.split(matrix, max(1, _BLOCK // matrix.shape[1])):
            if rows.dtype == torch.int8 and int(rows.min()) >= -1 and int(rows.max()) <= 1:
                continue
            entries = rows.double()  # small and unsigned dtypes know no -1
            if bool((odd := (entries != 0) & (entries.abs() != 1)).any()):
                raise ValueError(f"{name}: holds the entry {rows[odd][0].item()}; accepted are -1, 0 and +1")
    return matrix.to(torch.int8).contiguous()


def as_known(code: CodeLike | Coding) -> Coding | None:
    """The code without its matrix, if it is one that needs none; from 64 classes on, where it pays to know."""
    if isinstance(code, Coding):
        return code
    if not isinstance(code, Tensor) or code.is_nested or code.dim() != 2:
        return None
    if code.dtype != torch.int8 or len(code) < 64:
        return None
    if not validate.values_readable(code, True):
        return None
    known = (make(len(code)) for make in KNOWN.values())
    return next((coding for coding in known if coding.equals(code)), None)


def check(code: CodeLike | Coding, name: str = "code") -> Tensor:
    """The code as an int8 tensor, if its rows tell the classes apart and every column asks something.

    One warning lists what is merely odd: columns with a single sign, equal or opposite columns (with more than two
    classes), classes that every column ignores, and classes that no column sets against each other.

    Args:
        code: a tensor, an array or nested lists of -1, 0 and +1.
        name: what errors call it.

    Shape:
        ``(K, L)``, int8.

    Raises:
        ValueError: equal rows, an all-zero column, other entries than -1, 0, +1, or fewer columns than tell the classes
            apart.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> check([[1, 0], [-1, 1], [-1, -1]])
        tensor([[ 1,  0],
                [-1,  1],
                [-1, -1]], dtype=torch.int8)
        >>> check([[1, -1], [1, -1], [-1, 1]])
        Traceback (most recent call last):
        ValueError: code: rows 0 and 1 are equal; accepted are codes whose rows all differ
    """
    matrix = as_code(code, name)
    if as_known(matrix) is not None:
        return matrix
    k, columns = matrix.shape
    symbols = 3 if bool((matrix == 0).any()) else 2
    if symbols**columns < k:
        raise ValueError(
            f"{name}: {columns} column(s) tell at most {symbols**columns} classes apart; "
            f"accepted are at least {digits_for(k, symbols)} for {k} classes"
        )
    if (same := equal_rows(matrix)) is not None:
        raise ValueError(f"{name}: rows {same[0]} and {same[1]} are equal; accepted are codes whose rows all differ")
    empty = (matrix == 0).all(0)
    if bool(empty.any()):
        raise ValueError(
            f"{name}: column {int(empty.nonzero()[0])} is all zero; accepted are columns that ask something"
        )
    if oddities := _oddities(matrix):
        warnings.warn(f"{name}: {'; '.join(oddities)}", UserWarning, stacklevel=2)
    return matrix


def _oddities(code: Tensor) -> list[str]:
    """What is unusual about a code but does not stop it from being used."""
    k = len(code)
    found = []
    if (one_sided := _list(~((code > 0).any(0) & (code < 0).any(0)))) is not None:
        if bool((code >= 0).all()):
            return ["no entry is -1 and 0 leaves a class out, so nothing is learned; 2 * code - 1 may be meant"]
        found.append(f"column(s) {one_sided} have a single sign, so nothing is learned there")
    if k > 2 and (pair := twin_columns(code)) is not None:
        found.append(f"columns {pair[0]} and {pair[1]} are equal or opposite, so one question counts twice")
    ignored = (code == 0).all(1)
    if (unseen := _list(ignored)) is not None:
        found.append(f"class(es) {unseen} are ignored by every column, so their labels cannot be trained on")
    if (pair := _never_opposed(code, ignored)) is not None:
        found.append(f"no column sets classes {pair[0]} and {pair[1]} against each other")
    return found


def equal_rows(code: Tensor) -> tuple[int, int] | None:
    """The first two rows that are equal: found by their keys, of which there are few alike."""
    keys, order = word_keys(code).sort(stable=True)
    _, counts = torch.unique_consecutive(keys, return_counts=True)
    if len(counts) == len(keys):
        return None
    pairs = []
    for alike in torch.split(order, counts.tolist()):
        places = sorted(alike.tolist())
        twins = ((i, j) for i, j in combinations(places, 2) if torch.equal(code[i], code[j]))
        pairs.append(next(twins, None))
    return min((pair for pair in pairs if pair is not None), default=None)


def _never_opposed(code: Tensor, ignored: Tensor) -> tuple[int, int] | None:
    """The first two classes with the same sign in every column that asks both; those in ``ignored`` do not count."""
    for first, product, asking in row_products(code, both=True):
        together = product == asking
        together &= ~(ignored[first : first + len(product), None] | ignored[None, :])
        pairs = together.triu(first + 1).nonzero()
        if len(pairs):
            return first + int(pairs[0, 0]), int(pairs[0, 1])
    return None


def twin_columns(code: Tensor) -> tuple[int, int] | None:
    """Two columns that are equal or opposite, if any: found by their keys, of which there are few alike."""
    keys, order = word_keys(code.T).abs().sort(stable=True)
    for place in (keys[1:] == keys[:-1]).nonzero().flatten().tolist():
        first, second = int(order[place]), int(order[place + 1])
        one, other = code[:, first], code[:, second]
        if torch.equal(one, other) or torch.equal(one, -other):
            return first, second
    return None


def _list(flags: Tensor, most: int = 5) -> str | None:
    """The places of the set flags in words, or None."""
    places = flags.nonzero().flatten().tolist()
    if not places:
        return None
    return ", ".join(map(str, places[:most])) + (" …" if len(places) > most else "")
