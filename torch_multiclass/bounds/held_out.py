r"""The bound of a sample that took no part in training: exact, and for any model."""

from __future__ import annotations

import math

import torch

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import Bound, confidence
from torch_multiclass.ops.precision import undisturbed


@check.told
@undisturbed
def held_out_error(errors: int, rows: int, *, delta: float) -> Bound:
    r"""The one-sided Clopper–Pearson limit: the largest ``p`` with ``Pr[Bin(m, p) <= e] >= delta``.

    This is the quantile ``Beta^-1(1 - delta; e + 1, m - e)``, and 1 where all rows are wrong. The true error is below
    it with probability at least ``1 - delta`` over held-out samples, whatever the model.

    Args:
        errors: ``e``, wrong rows.
        rows: ``m``, rows that took no part in training nor in choosing among models.
        delta: probability of a sample that is an exception.

    Raises:
        ValueError: a number outside its range, or more errors than rows.

    Reference: Clopper and Pearson (1934).

    Example:
        >>> [round(held_out_error(e, m, delta=d).value, 6) for e, m, d in ((3, 100, 0.05), (19, 2000, 0.01))]
        [0.075711, 0.015872]
        >>> held_out_error(100, 100, delta=0.05).vacuous
        True
    """
    rows, errors = check.whole("rows", rows), check.whole("errors", errors, least=0)
    if errors > rows:
        raise ValueError(f"errors: got {errors}; accepted is at most rows = {rows}")
    delta = confidence(delta)
    upper = 1.0 if errors == rows else _quantile(errors, rows, math.log(delta))
    given = {"empirical": errors / rows, "confidence": upper - errors / rows}
    return Bound(upper, given, ("the rows are drawn independently", "they took no part in training or choosing"))


def _quantile(errors: int, rows: int, log_delta: float) -> float:
    """Where ``log Pr[Bin(m, p) <= e]``, which falls in ``p``, reaches ``log delta``; by bisection to the last bits."""
    least = max(0, errors - 60 * math.isqrt(rows) - 1000)  # the terms below it are less than exp(-7000) of the largest
    count = torch.arange(least, errors + 1, dtype=torch.float64)
    choices = math.lgamma(rows + 1) - torch.lgamma(count + 1) - torch.lgamma(rows - count + 1)
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if errors - middle * rows > 30 * math.isqrt(rows) + 500:  # there the probability is 1 to the last digit
            low = middle
            continue
        tail = (choices + count * math.log(middle) + (rows - count) * math.log1p(-middle)).logsumexp(0)
        low, high = (middle, high) if float(tail) > log_delta else (low, middle)
    return high
