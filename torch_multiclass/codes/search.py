"""Random codes: the best of many draws, by smallest row distance."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass import checks as validate
from torch_multiclass.codes.words import count_splits, digits_for, fits, word_keys
from torch_multiclass.ops.code_search import apart, without_doubt

__all__ = ["dense_random", "sparse_random"]

Wanted = Callable[[Tensor], Tensor]


def dense_random(
    k: int,
    columns: int | None = None,
    *,
    trials: int = 10_000,
    generator: torch.Generator | None = None,
    rule: str = "admissible",
    progress: bool | None = None,
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
        progress: whether to show a line on standard error while it goes on; by default on a terminal, and only when
            the search takes longer than a second.

    Shape:
        ``(k, columns)``, int8.

    Raises:
        ValueError: fewer columns than tell ``k`` classes apart, or no draw that told them apart.

    Reference: Allwein, Schapire and Singer (2000), section 6.

    Example:
        >>> import torch
        >>> from torch_multiclass.codes import min_row_distance
        >>> code = dense_random(10, generator=torch.Generator().manual_seed(0))
        >>> code.shape, min_row_distance(code) >= 13
        (torch.Size([10, 34]), True)
    """
    return best_of(k, columns, 10, trials, generator, rule, progress, alphabet=(-1, 1))


def sparse_random(
    k: int,
    columns: int | None = None,
    *,
    trials: int = 10_000,
    generator: torch.Generator | None = None,
    rule: str = "admissible",
    progress: bool | None = None,
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
        >>> import torch
        >>> from torch_multiclass.codes import min_row_distance
        >>> code = sparse_random(10, generator=torch.Generator().manual_seed(0))
        >>> code.shape, min_row_distance(code) >= 20
        (torch.Size([10, 50]), True)
    """
    return best_of(k, columns, 15, trials, generator, rule, progress, alphabet=(-1, 0, 0, 1))


def best_of(
    k: int,
    columns: int | None,
    factor: int,
    trials: int,
    generator: torch.Generator | None,
    rule: str,
    progress: bool | None,
    alphabet: tuple[int, ...],
) -> Tensor:
    """The best of ``trials`` codes drawn with entries uniform over ``alphabet``."""
    k = validate.whole("k", k, least=2)
    trials = validate.whole("trials", trials)
    validate.choice("rule", rule, ("admissible", "paper"))
    validate.generator(generator)
    validate.flag("progress", progress, optional=True)
    if columns is None:
        columns = usual_columns(k, factor)
    columns = validate.whole("columns", columns)
    fits(k, columns, beside=k)  # the distances of its rows
    symbols = len(set(alphabet))
    if rule == "paper" and symbols == 2 and columns.bit_length() > k and columns > 2**k:
        raise ValueError(f"columns: got {columns}; accepted by the paper's rule are at most {2**k}, which can differ")
    # A row of zeros is not drawn, so that three symbols make 3^columns - 1 code words.
    if symbols**columns - (symbols == 3) < k:
        least = digits_for(k + (symbols == 3), symbols)
        raise ValueError(f"columns: got {columns}; accepted are at least {least} to tell {k} classes apart")
    if rule == "admissible":
        exist = count_splits(k, symbols)
        if columns > exist:
            warnings.warn(
                f"columns: {columns} asked for, but {k} classes have {exist} different splits; using {exist}",
                UserWarning,
                stacklevel=3,
            )
            columns = exist
    draw = Draws(k, columns, torch.tensor(alphabet, dtype=torch.int8, device="cpu"), rule, generator)
    best, best_distance, chunk = None, -1.0, max(1, min(trials, 2**21 // (k * (k + columns))))
    name, line = "dense_random" if symbols == 2 else "sparse_random", Line(progress)
    for start in range(0, trials, chunk):
        codes = draw(min(chunk, trials - start))
        codes = codes[apart(codes, best_distance)]
        if len(codes):
            value, place = search_distance(codes, rule).max(0)
            if float(value) > best_distance:
                best_distance, best = float(value), codes[place].clone(memory_format=torch.contiguous_format)
        line.show(f"{name}({k}): {start:,} of {trials:,} codes, smallest row distance {max(best_distance, 0):g}")
    line.close(f"{name}({k}): {trials:,} codes, smallest row distance {max(best_distance, 0):g}")
    if best is None:
        raise ValueError(
            f"columns: none of {trials} draws of {columns} columns told {k} classes apart; accepted are "
            "more columns, more trials, or codes.minimal"
        )
    return best


def usual_columns(k: int, factor: int) -> int:
    """How many columns the reference draws, ``ceil(factor log2 k)``: 10 a bit without zeros, 15 with them."""
    return math.ceil(factor * math.log2(k))


def search_distance(codes: Tensor, rule: str) -> Tensor:
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


class Line:
    """A line of progress on standard error: None for one on a terminal, from a second on."""

    def __init__(self, wanted: bool | None) -> None:
        self.wanted, self.terminal = wanted, sys.stderr is not None and sys.stderr.isatty()
        self.begun, self.due, self.shown = time.monotonic(), 1.0, False

    def show(self, text: str) -> None:
        """What has been reached, at most twice a second."""
        seconds = time.monotonic() - self.begun
        if seconds >= self.due and (self.wanted if self.wanted is not None else self.terminal) and self.terminal:
            self.shown, self.due = True, seconds + 0.5
            self._write(f"{text}, {seconds:.0f} s", "\r")

    def close(self, text: str) -> None:
        """The last line, where there is to be one."""
        if self.shown or self.wanted:
            self._write(f"{text}, {time.monotonic() - self.begun:.0f} s", "\n")

    def _write(self, text: str, end: str) -> None:
        print(text.ljust(79) if self.terminal else text, end=end, file=sys.stderr, flush=True)


class Draws:
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
        exist = count_splits(k, n)
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
        return draw(n, self.columns, self.k, both_signs, fold=True).mT

    def _entries(self, *shape: int) -> Tensor:
        place = torch.randint(
            len(self.alphabet), shape, generator=self.generator, device=self.device, dtype=torch.uint8
        )
        if len(self.alphabet) == 2:
            return place.view(torch.int8).mul_(2).sub_(1)
        return place.add_(1).bitwise_right_shift_(1).view(torch.int8).sub_(1)  # 0, 1, 2, 3 to -1, 0, 0, 1

    def _distinct(self, n: int, count: int, d: int, good: Wanted, fold: bool) -> Tensor:
        """Vectors ``(n, count, d)``, all good and distinct within each of the `n`."""
        vectors = self._entries(n, count, d)
        if fold and good is both_signs and without_doubt(vectors):
            return vectors
        while bool((bad := unwanted(vectors, good, fold)).any()):
            vectors[bad] = self._entries(int(bad.sum()), d)
        return vectors

    def _listed(self, n: int, count: int, d: int, good: Wanted, fold: bool) -> Tensor:
        """As `_distinct`, from the list of all vectors: the largest Gumbel-perturbed log probabilities."""
        everything = torch.cartesian_prod(*[self.symbols] * d).reshape(-1, d)
        everything = everything[good(everything)]
        if fold:
            everything = everything[word_keys(everything) > 0]
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
        return redraw(
            lambda wanted: draw(wanted, self.k, self.columns, any_sign, fold=False),
            lambda codes: unwanted(codes.mT.contiguous(), both_signs, fold=True).any(1),
            n,
        )

    def _paper(self, n: int) -> Tensor:
        """Up to `n` codes of independent entries, without identical columns (±1) or all-zero columns."""
        ternary = len(self.symbols) == 3
        return redraw(
            lambda wanted: self._entries(wanted, self.columns, self.k),
            lambda codes: ~any_sign(codes).all(1) if ternary else unwanted(codes, any_sign, fold=False).any(1),
            n,
        ).mT


def both_signs(vectors: Tensor) -> Tensor:
    return (vectors.amax(-1) == 1) & (vectors.amin(-1) == -1)


def any_sign(vectors: Tensor) -> Tensor:
    return (vectors != 0).any(-1)


def unwanted(vectors: Tensor, good: Wanted, fold: bool) -> Tensor:
    """Which of ``(n, count, d)`` vectors are not good or repeat an earlier one (or its opposite)."""
    keys = word_keys(vectors)
    order = (keys.abs() if fold else keys).sort(dim=1, stable=True)
    repeats = torch.zeros_like(keys, dtype=torch.bool)
    repeats.scatter_(1, order.indices[:, 1:], order.values[:, 1:] == order.values[:, :-1])
    return repeats | ~good(vectors)


def redraw(draw: Callable[[int], Tensor], bad: Wanted, n: int, most: int = 100) -> Tensor:
    """`n` draws that are not bad, or fewer where ``most`` attempts do not find them."""
    found = [draw(n)]
    found[0] = found[0][~bad(found[0])]
    for _ in range(most - 1):
        if (missing := n - sum(map(len, found))) == 0:
            break
        codes = draw(missing)
        found.append(codes[~bad(codes)])
    return torch.cat(found)
