"""Coding matrices: how a class becomes a row of binary questions, and how far apart the rows are.

A code is an int8 tensor ``M`` of shape ``(K, L)`` with entries -1, 0 and +1: row `r` is the code word of
class `r`, column `s` a binary problem that ignores the classes with a 0 (Allwein, Schapire and Singer (2000),
section 3; Mohri, Rostamizadeh and Talwalkar, Foundations of Machine Learning, section 9.4.3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import _validation as validate

__all__ = [
    "check",
    "complete",
    "correctable",
    "dense_random",
    "hadamard",
    "min_row_distance",
    "minimal",
    "one_vs_all",
    "one_vs_one",
    "row_distances",
    "sparse_random",
]

CodeLike = Tensor | np.ndarray | Sequence[Sequence[int]]
"""What the functions here take for a code: a tensor, an array or nested lists of -1, 0 and +1."""

Wanted = Callable[[Tensor], Tensor]

MOST_COMPLETE = 16
"""The largest number of classes for which every split is listed (32,767 columns)."""


# -------------------------------------------------------------------------------------------- constructions


def one_vs_all(k: int) -> Tensor:
    """Code with one column a class, that class against the rest: ``M(r, s) = +1 if r = s else -1``.

    Its smallest row distance is 2.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, k)``, int8.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.1.

    Example:
        >>> one_vs_all(3)
        tensor([[ 1, -1, -1],
                [-1,  1, -1],
                [-1, -1,  1]], dtype=torch.int8)
    """
    validate.whole("k", k, least=2)
    return 2 * torch.eye(k, dtype=torch.int8) - 1


def one_vs_one(k: int) -> Tensor:
    """Code with one column for each pair ``i < j`` of classes, in lexicographic order: +1 for ``i``, -1 for ``j``.

    Its smallest row distance is ``(k(k-1)/2 - 1)/2 + 1``.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, k(k-1)/2)``, int8.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.2.

    Example:
        >>> one_vs_one(3)
        tensor([[ 1,  1,  0],
                [-1,  0,  1],
                [ 0, -1, -1]], dtype=torch.int8)
    """
    validate.whole("k", k, least=2)
    first, second = torch.triu_indices(k, k, 1)
    pair = torch.arange(first.numel())
    code = torch.zeros(k, first.numel(), dtype=torch.int8)
    code[first, pair] = 1
    code[second, pair] = -1
    return code


def complete(k: int) -> Tensor:
    """Code with every split of the classes in two, once: ``2^(k-1) - 1`` columns, smallest row distance ``2^(k-2)``.

    Column ``s`` writes ``s + 1`` in binary over the classes after the first; class 0 is always on the + side.

    Args:
        k: the number of classes, from 2 to 16.

    Shape:
        ``(k, 2^(k-1) - 1)``, int8.

    Reference: Allwein, Schapire and Singer (2000), section 6.

    Example:
        >>> complete(3)
        tensor([[ 1,  1,  1],
                [ 1, -1, -1],
                [-1,  1, -1]], dtype=torch.int8)
    """
    validate.whole("k", k, least=2)
    if k > MOST_COMPLETE:
        raise ValueError(
            f"k: got {k} classes, which have 2^{k - 1} - 1 splits; accepted are at most {MOST_COMPLETE} for the "
            "complete code (dense_random draws from the same columns)"
        )
    return _signs(torch.arange(1, 2 ** (k - 1)), k).T.contiguous()


def minimal(k: int) -> Tensor:
    """Code with as few columns as tell the classes apart, ``ceil(log2 k)``: class ``r`` written in binary.

    It corrects nothing: two rows may differ in one column only.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, ceil(log2 k))``, int8.

    Reference: Roth, lecture slides on multi-class classification.

    Example:
        >>> minimal(4)
        tensor([[ 1,  1],
                [ 1, -1],
                [-1,  1],
                [-1, -1]], dtype=torch.int8)
    """
    validate.whole("k", k, least=2)
    return _signs(torch.arange(k), _digits(k))


def hadamard(k: int) -> Tensor:
    """Code of the first ``k`` rows of Sylvester's Hadamard matrix of order ``N >= k``, less its constant column.

    ``M(r, s) = (-1)^(bits in common of r and s)``, ``s = 1 .. N-1``: any two rows differ in exactly ``N/2`` columns,
    and no column is constant, equal or opposite to another, because ``k > N/2``.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, N - 1)`` with ``N`` the least power of 2 that is at least ``k``, int8.

    Example:
        >>> hadamard(4)
        tensor([[ 1,  1,  1],
                [-1,  1, -1],
                [ 1, -1, -1],
                [-1, -1,  1]], dtype=torch.int8)
    """
    validate.whole("k", k, least=2)
    matrix = torch.ones(1, 1, dtype=torch.int8)
    while len(matrix) < k:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix[:k, 1:].contiguous()


def dense_random(
    k: int,
    columns: int | None = None,
    *,
    trials: int = 10_000,
    generator: torch.Generator | None = None,
    rule: str = "admissible",
) -> Tensor:
    """Best of many random codes of ±1, by smallest row distance.

    A draw takes its columns without replacement from the admissible ones: both signs occur, and no column equals
    another or its opposite. Draws with equal rows do not count.

    Args:
        k: the number of classes, at least 2.
        columns: ``L``; by default ``ceil(10 log2 k)``. There are ``2^(k-1) - 1`` admissible columns: asking for more
            gives that many and a warning.
        trials: the number of codes drawn.
        generator: the source of randomness; the code lives on its device.
        rule: ``"admissible"``, or ``"paper"`` to draw each entry alone and reject identical columns only, as the
            reference did.

    Shape:
        ``(k, columns)``, int8.

    Raises:
        ValueError: fewer columns than tell ``k`` classes apart, or no draw that told them apart.

    Reference: Allwein, Schapire and Singer (2000), section 6.

    Example:
        >>> code = dense_random(10, generator=torch.Generator().manual_seed(0))
        >>> code.shape, min_row_distance(code) >= 13
        (torch.Size([10, 34]), True)
    """
    return _random(k, columns, 10, trials, generator, rule, alphabet=(-1, 1))


def sparse_random(
    k: int,
    columns: int | None = None,
    *,
    trials: int = 10_000,
    generator: torch.Generator | None = None,
    rule: str = "admissible",
) -> Tensor:
    """Best of many random codes with zeros, by smallest row distance.

    An entry is 0 with probability 1/2, +1 and -1 with 1/4 each, conditioned on what makes a column admissible, as for
    `dense_random`. Draws with equal rows or an all-zero row do not count.

    Args:
        k: the number of classes, at least 2.
        columns: ``L``; by default ``ceil(15 log2 k)``. There are ``(3^k - 2^(k+1) + 1)/2`` admissible columns: asking
            for more gives that many and a warning.
        trials: the number of codes drawn.
        generator: the source of randomness; the code lives on its device.
        rule: ``"admissible"``, or ``"paper"`` to draw each entry alone and reject all-zero rows and columns only, as
            the reference did.

    Shape:
        ``(k, columns)``, int8.

    Raises:
        ValueError: fewer columns than tell ``k`` classes apart, or no draw that told them apart.

    Reference: Allwein, Schapire and Singer (2000), section 6.

    Example:
        >>> code = sparse_random(10, generator=torch.Generator().manual_seed(0))
        >>> code.shape, min_row_distance(code) >= 20
        (torch.Size([10, 50]), True)
    """
    return _random(k, columns, 15, trials, generator, rule, alphabet=(-1, 0, 0, 1))


# -------------------------------------------------------------------------------------------------- properties


def row_distances(code: CodeLike) -> Tensor:
    """Distance between each two rows: columns where they differ, and 1/2 for each column where either is 0.

    ``Delta(u, v) = (L - u.v)/2``; the diagonal holds ``Delta(u, u)``, half the zeros of the row.

    Shape:
        code ``(K, L)``; distances ``(K, K)``, float32.

    Reference: Allwein, Schapire and Singer (2000), section 4.

    Example:
        >>> row_distances([[1, -1], [-1, 1], [0, 1]])
        tensor([[0.0000, 2.0000, 1.5000],
                [2.0000, 0.0000, 0.5000],
                [1.5000, 0.5000, 0.5000]])
    """
    rows = as_code(code).float()
    return (rows.shape[1] - rows @ rows.T) / 2


def min_row_distance(code: CodeLike) -> float:
    """Smallest distance between two different rows, ``rho = min Delta(M(r), M(r'))``.

    Reference: Allwein, Schapire and Singer (2000), eq. (6).

    Example:
        >>> min_row_distance(one_vs_all(5)), min_row_distance(one_vs_one(5)), min_row_distance(complete(5))
        (2.0, 5.5, 8.0)
    """
    distances = row_distances(code)
    return float(distances.fill_diagonal_(math.inf).min())


def correctable(code: CodeLike) -> Tensor:
    """How many wrong columns Hamming decoding is sure to survive, for each class.

    With a true row of ``q`` zeros, another row of ``z`` zeros and ``d`` columns in which they have opposite signs,
    ``e`` wrong columns still leave the true row nearest if ``2e < d + (z - q)/2``, whatever the ignored columns say.
    For ±1 codes that is ``floor((rho - 1)/2)`` at the least, and in general at least any ``e < (rho - q)/2``. A class
    gets -1 where not even faultless columns settle it.

    Shape:
        code ``(K, L)``; counts ``(K,)``, int64.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3.

    Example:
        >>> correctable(complete(5)), correctable(one_vs_one(4)), correctable(one_vs_all(3))
        (tensor([3, 3, 3, 3, 3]), tensor([0, 0, 0, 0]), tensor([0, 0, 0]))
    """
    rows = as_code(code).double()
    opposite = (rows.abs() @ rows.abs().T - rows @ rows.T) / 2
    zeros = (rows == 0).sum(1)
    lead = (opposite + (zeros[None, :] - zeros[:, None]) / 2).fill_diagonal_(math.inf).amin(1)
    return (lead / 2).ceil().long() - 1


# ------------------------------------------------------------------------------------------------------ checks


def as_code(code: CodeLike, name: str = "code") -> Tensor:
    """The code as an int8 tensor ``(K, L)``; raise unless it is a matrix of -1, 0, +1 of two rows or more."""
    matrix = torch.as_tensor(np.asarray(code) if not isinstance(code, Tensor) else code)
    if matrix.dim() != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise ValueError(
            f"{name}: got shape {tuple(matrix.shape)}; accepted is (K, L), two classes and one column or more"
        )
    if validate.values_readable(matrix, True) and not bool(((matrix == 0) | (matrix.abs() == 1)).all()):
        odd = matrix[(matrix != 0) & (matrix.abs() != 1)][0].item()
        raise ValueError(f"{name}: holds the entry {odd}; accepted are -1, 0 and +1")
    return matrix.to(torch.int8)


def check(code: CodeLike, name: str = "code") -> Tensor:
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
    k, columns = matrix.shape
    symbols = 3 if bool((matrix == 0).any()) else 2
    if symbols**columns < k:
        raise ValueError(
            f"{name}: {columns} column(s) tell at most {symbols**columns} classes apart; "
            f"accepted are at least {_digits(k, symbols)} for {k} classes"
        )
    if (same := _first_pair(_equal(matrix))) is not None:
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
    k, rows = len(code), code.float()
    found = []
    if (one_sided := _list(~((code > 0).any(0) & (code < 0).any(0)))) is not None:
        found.append(f"column(s) {one_sided} have a single sign, so nothing is learned there")
    if k > 2 and (pair := _twin_columns(code)) is not None:
        found.append(f"columns {pair[0]} and {pair[1]} are equal or opposite, so one question counts twice")
    ignored = (code == 0).all(1)
    if (unseen := _list(ignored)) is not None:
        found.append(f"class(es) {unseen} are ignored by every column, so their labels cannot be trained on")
    together = (rows.abs() @ rows.abs().T) == (rows @ rows.T)
    together &= ~(ignored[:, None] | ignored[None, :])
    if (pair := _first_pair(together)) is not None:
        found.append(f"no column sets classes {pair[0]} and {pair[1]} against each other")
    return found


def _equal(vectors: Tensor) -> Tensor:
    """Which rows are equal, ``(n, d)`` → ``(n, n)``: those with ``u·v = u·u = v·v``, and only they."""
    rows = vectors.float()
    gram = rows @ rows.mT
    own = gram.diagonal(dim1=-2, dim2=-1)
    return (gram == own[..., :, None]) & (gram == own[..., None, :])


def _twin_columns(code: Tensor) -> tuple[int, int] | None:
    """Two columns that are equal or opposite, if any: found by their keys, of which there are few alike."""
    keys, order = _keys(code.T).abs().sort(stable=True)
    for place in (keys[1:] == keys[:-1]).nonzero().flatten().tolist():
        first, second = int(order[place]), int(order[place + 1])
        one, other = code[:, first], code[:, second]
        if torch.equal(one, other) or torch.equal(one, -other):
            return first, second
    return None


def _first_pair(related: Tensor) -> tuple[int, int] | None:
    """The first ``i < j`` with ``related[i, j]``."""
    pairs = related.triu(1).nonzero()
    return (int(pairs[0, 0]), int(pairs[0, 1])) if len(pairs) else None


def _list(flags: Tensor, most: int = 5) -> str | None:
    """The places of the set flags in words, or None."""
    places = flags.nonzero().flatten().tolist()
    if not places:
        return None
    return ", ".join(map(str, places[:most])) + (" …" if len(places) > most else "")


# -------------------------------------------------------------------------------------------- random search


def _random(
    k: int,
    columns: int | None,
    factor: int,
    trials: int,
    generator: torch.Generator | None,
    rule: str,
    alphabet: tuple[int, ...],
) -> Tensor:
    """The best of ``trials`` codes drawn with entries uniform over ``alphabet``."""
    validate.whole("k", k, least=2)
    validate.whole("trials", trials)
    validate.choice("rule", rule, ("admissible", "paper"))
    if columns is None:
        columns = math.ceil(factor * math.log2(k))
    validate.whole("columns", columns)
    symbols = len(set(alphabet))
    if rule == "paper" and symbols == 2 and columns > 2**k:
        raise ValueError(f"columns: got {columns}; accepted by the paper's rule are at most {2**k}, which can differ")
    # A row of zeros is not drawn, so that three symbols make 3^columns - 1 code words.
    if symbols**columns - (symbols == 3) < k:
        least = _digits(k + (symbols == 3), symbols)
        raise ValueError(f"columns: got {columns}; accepted are at least {least} to tell {k} classes apart")
    if rule == "admissible":
        exist = _splits(k, symbols)
        if columns > exist:
            warnings.warn(
                f"columns: {columns} asked for, but {k} classes have {exist} different splits; using {exist}",
                UserWarning,
                stacklevel=3,
            )
            columns = exist
    draw = _Draws(k, columns, torch.tensor(alphabet, dtype=torch.int8), rule, generator)
    best, best_distance, chunk = None, -1.0, max(1, min(trials, 2**21 // (k * (k + columns))))
    for start in range(0, trials, chunk):
        codes = draw(min(chunk, trials - start))
        if not len(codes):
            continue
        distance = _search_distance(codes, rule)
        value, place = distance.max(0)
        if float(value) > best_distance:
            best_distance, best = float(value), codes[place].clone()
    if best is None:
        raise ValueError(
            f"columns: none of {trials} draws of {columns} columns told {k} classes apart; accepted are "
            "more columns, more trials, or codes.minimal"
        )
    return best


def _search_distance(codes: Tensor, rule: str) -> Tensor:
    """Smallest row distance of each of ``(n, K, L)`` codes, -1 where the code is rejected for its rows."""
    rows = codes.float()
    gram = torch.bmm(rows, rows.mT)
    own = gram.diagonal(dim1=1, dim2=2).clone()
    gram.diagonal(dim1=1, dim2=2).fill_(-math.inf)
    if rule == "admissible":
        # Two equal rows: their product is both their lengths. For ±1 codes that is distance 0.
        equal = ((gram == own[:, :, None]) & (gram == own[:, None, :])).flatten(1).any(1)
        rejected = equal | (own == 0).any(1)
    else:
        rejected = (own == 0).any(1)
    distance: Tensor = (codes.shape[2] - gram.flatten(1).amax(1)) / 2
    return distance.masked_fill(rejected, -1.0)


class _Draws:
    """Random codes ``(n, K, L)``, entries uniform over an alphabet, columns distinct and admissible.

    Columns are drawn without replacement: a repeated (or inadmissible) one is drawn again until none is left,
    which keeps the first occurrences of an endless stream. Where that would take too many draws, because most
    of the admissible columns are wanted, all are listed and ordered by Gumbel-perturbed probability: the same
    law. Where so few columns are wanted that independent columns would hardly ever tell the classes apart,
    rows are drawn without replacement instead, and codes with an inadmissible column are drawn again; among
    codes with distinct rows and admissible columns both ways are uniform.
    """

    def __init__(self, k: int, columns: int, alphabet: Tensor, rule: str, generator: torch.Generator | None) -> None:
        self.k, self.columns, self.rule, self.generator = k, columns, rule, generator
        self.device = torch.device("cpu") if generator is None else generator.device
        self.alphabet = alphabet.to(self.device)
        self.symbols = torch.tensor(sorted(set(alphabet.tolist())), dtype=torch.int8, device=self.device)
        n = len(self.symbols)
        exist = _splits(k, n)
        words = n**columns - (n == 3)
        self.by_rows = rule == "admissible" and words < k * k
        self.listed_columns = rule == "admissible" and not self.by_rows and 4 * columns > exist
        self.listed_rows = self.by_rows and 4 * k > words

    def __call__(self, n: int) -> Tensor:
        if self.rule == "paper":
            return self._paper(n)
        if self.by_rows:
            return self._rows(n)
        draw = self._listed if self.listed_columns else self._distinct
        return draw(n, self.columns, self.k, _both_signs, fold=True).mT

    def _entries(self, *shape: int) -> Tensor:
        place = torch.randint(
            len(self.alphabet), shape, generator=self.generator, device=self.device, dtype=torch.uint8
        )
        if len(self.alphabet) == 2:
            return place.to(torch.int8).mul_(2).sub_(1)
        return (place == 3).to(torch.int8) - (place == 0).to(torch.int8)

    def _distinct(self, n: int, count: int, d: int, good: Wanted, fold: bool) -> Tensor:
        """Vectors ``(n, count, d)``, all good and distinct within each of the `n`."""
        vectors = self._entries(n, count, d)
        while bool((bad := _unwanted(vectors, good, fold)).any()):
            vectors[bad] = self._entries(int(bad.sum()), d)
        return vectors

    def _listed(self, n: int, count: int, d: int, good: Wanted, fold: bool) -> Tensor:
        """As `_distinct`, from the list of all vectors: the largest Gumbel-perturbed log probabilities."""
        everything = torch.cartesian_prod(*[self.symbols] * d).reshape(-1, d)
        everything = everything[good(everything)]
        if fold:
            everything = everything[_keys(everything) > 0]
        probability = (self.alphabet == self.symbols[:, None]).double().mean(1).log()
        weight = probability[torch.searchsorted(self.symbols, everything.contiguous())].sum(1)
        uniform = torch.rand(n, len(everything), generator=self.generator, device=self.device, dtype=torch.float64)
        gumbel = -(-uniform.clamp_min(1e-300).log()).log()
        chosen = everything[(weight + gumbel).topk(count, dim=1).indices]
        if fold:
            sign = torch.randint(2, (n, count, 1), generator=self.generator, device=self.device, dtype=torch.int8)
            chosen = chosen * (2 * sign - 1)
        return chosen

    def _rows(self, n: int) -> Tensor:
        """Up to `n` codes with distinct rows and good columns."""
        draw = self._listed if self.listed_rows else self._distinct
        return _redraw(
            lambda wanted: draw(wanted, self.k, self.columns, _any_sign, fold=False),
            lambda codes: _unwanted(codes.mT.contiguous(), _both_signs, fold=True).any(1),
            n,
        )

    def _paper(self, n: int) -> Tensor:
        """Up to `n` codes of independent entries, without identical columns (±1) or all-zero columns."""
        ternary = len(self.symbols) == 3
        return _redraw(
            lambda wanted: self._entries(wanted, self.columns, self.k),
            lambda codes: ~_any_sign(codes).all(1) if ternary else _unwanted(codes, _any_sign, fold=False).any(1),
            n,
        ).mT


def _both_signs(vectors: Tensor) -> Tensor:
    return (vectors.amax(-1) == 1) & (vectors.amin(-1) == -1)


def _any_sign(vectors: Tensor) -> Tensor:
    return (vectors != 0).any(-1)


def _unwanted(vectors: Tensor, good: Wanted, fold: bool) -> Tensor:
    """Which of ``(n, count, d)`` vectors are not good or repeat an earlier one (or its opposite)."""
    keys = _keys(vectors)
    order = (keys.abs() if fold else keys).sort(dim=1, stable=True)
    repeats = torch.zeros_like(keys, dtype=torch.bool)
    repeats.scatter_(1, order.indices[:, 1:], order.values[:, 1:] == order.values[:, :-1])
    return repeats | ~good(vectors)


def _redraw(draw: Callable[[int], Tensor], bad: Wanted, n: int, most: int = 100) -> Tensor:
    """`n` draws that are not bad, or fewer where ``most`` attempts do not find them."""
    found = [draw(n)]
    found[0] = found[0][~bad(found[0])]
    for _ in range(most - 1):
        if (missing := n - sum(map(len, found))) == 0:
            break
        codes = draw(missing)
        found.append(codes[~bad(codes)])
    return torch.cat(found)


def _keys(vectors: Tensor) -> Tensor:
    """A number for each vector over -1, 0, +1: equal vectors share it, opposite ones have opposite numbers.

    Base 3 up to 40 entries, where the number names the vector; beyond, it wraps around 64 bits, and a rare
    chance collision only makes a draw be repeated.
    """
    powers = torch.tensor([pow(3, i, 2**62) for i in range(vectors.shape[-1])], device=vectors.device)
    return (vectors.long() * powers).sum(-1)


def _splits(k: int, symbols: int) -> int:
    """How many columns have both signs, up to their sign: of ±1, or of -1, 0 and +1."""
    return int(2 ** (k - 1) - 1 if symbols == 2 else (3**k - 2 ** (k + 1) + 1) // 2)


def _digits(count: int, base: int = 2) -> int:
    """The least number of digits that tell ``count`` things apart."""
    digits = 1
    while base**digits < count:
        digits += 1
    return digits


def _signs(numbers: Tensor, digits: int) -> Tensor:
    """Binary digits of ``numbers``, highest first, 0 as +1 and 1 as -1: ``(n,)`` → ``(n, digits)``, int8."""
    shifts = torch.arange(digits - 1, -1, -1)
    return (1 - 2 * ((numbers[:, None] >> shifts) & 1)).to(torch.int8)
