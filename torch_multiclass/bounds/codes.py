r"""What the binary losses of a code prove about the error of its decoding, on the sample where they were measured."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import Bound, measured, share
from torch_multiclass.codes import min_row_distance
from torch_multiclass.codes.checks import CodeLike, as_code
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.ops.precision import undisturbed

SAME_ROWS = "a statement about the rows whose loss was measured, and no others"


@check.told
@undisturbed
def coded_error(mean_loss: float | Tensor, code: CodeLike, loss: MarginLossLike, *, ignored: float = 0.0) -> Bound:
    r"""``error <= (L/rho) (q + (1 - q) eps/l(0))`` of loss-based decoding.

    With ``q = 0`` this is ``L eps/(rho l(0))`` for the average binary loss that counts ``l(0)`` where the code is 0.

    Args:
        mean_loss: ``eps``, the mean of ``l(M(y, s) f_s)`` over the rows and over the columns that are counted: all with
            ``ignored=0``, else those that do not ignore the row's class.
        code: ``M (K, L)``; ``rho`` is its smallest row distance.
        loss: the binary loss, or its name.
        ignored: ``q``, the share of (row, column) pairs with ``M(y, s) = 0``, if ``eps`` leaves them out.

    Shape:
        a number and a code ``(K, L)`` to one bound.

    Raises:
        ValueError: a number outside its range, a code or a loss that is none; a loss without the property that the
            proof needs, ``(l(z) + l(-z))/2 >= l(0) > 0``.

    Reference: Allwein, Schapire and Singer (2000), Theorem 1 and the refinement that follows Corollary 2.

    Example:
        >>> from torch_multiclass import codes
        >>> round(coded_error(0.1186015, codes.one_vs_all(3), "squared").value, 6)
        0.177902
    """
    columns, distance, losses = spans(code, loss)
    z = torch.logspace(-4, 4, 200, dtype=torch.float64)
    binary = as_margin_loss(loss)
    if bool((binary.value(z) + binary.value(-z) < 2 * losses * (1 - 1e-9)).any()):
        raise ValueError(
            f"loss: {binary!r} falls below l(0) in the mean over z and -z; accepted are losses that do not"
        )
    mean, q = measured("mean_loss", mean_loss), share("ignored", ignored)
    per_pair = q + (1 - q) * mean / losses
    return Bound(columns / distance * per_pair, terms(columns, distance, losses, mean, q), (SAME_ROWS,))


@check.told
@undisturbed
def hamming_error(
    mean_loss: float | Tensor, code: CodeLike, loss: MarginLossLike | None, *, ignored: float = 0.0
) -> Bound:
    r"""``error <= (L/rho) (q + 2 (1 - q) eps/l(0))`` of Hamming decoding; with ``q = 0``, ``2 L eps/(rho l(0))``.

    Where ``eps`` is a share of wrong signs (a loss that is 1 at and below 0), `loss` is ``None`` and ``l(0) = 1``: then
    the bound is ``(L/rho) (q + 2 (1 - q) eps)``.

    Args:
        mean_loss: as in `coded_error`.
        code: ``M (K, L)``.
        loss: the binary loss, or its name; ``None`` for the share of wrong signs.
        ignored: ``q``, as in `coded_error`.

    Shape:
        a number and a code ``(K, L)`` to one bound.

    Raises:
        ValueError: as in `coded_error`; a loss below ``l(0)`` at a negative margin.

    Reference: Allwein, Schapire and Singer (2000), Corollary 2, with the ignored pairs counted apart.

    Example:
        >>> from torch_multiclass import codes
        >>> round(hamming_error(0.118601, codes.one_vs_all(3), "squared").value, 6)
        0.355803
    """
    columns, distance, losses = spans(code, loss)
    if loss is not None and bool((as_margin_loss(loss).value(-torch.logspace(-4, 4, 200).double()) < losses).any()):
        raise ValueError(f"loss: {loss!r} falls below l(0) at a negative margin; accepted are losses that do not")
    mean, q = measured("mean_loss", mean_loss), share("ignored", ignored)
    per_pair = q + 2 * (1 - q) * mean / losses
    return Bound(columns / distance * per_pair, terms(columns, distance, losses, mean, q), (SAME_ROWS,))


@check.told
@undisturbed
def one_vs_one_error(pair_error: float, *, num_classes: int) -> Bound:
    r"""``error <= (K - 1) r`` of the majority vote, if each of its pairs errs with probability at most ``r``.

    Args:
        pair_error: ``r``, the largest error of a pair's classifier on the classes of that pair.
        num_classes: K.

    Raises:
        ValueError: a number outside its range.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), section 9.4.2 and exercise 9.6, where it is tight.

    Example:
        >>> round(one_vs_one_error(0.2, num_classes=4).value, 6)
        0.6
    """
    rivals = check.whole("num_classes", num_classes, least=2) - 1
    error = share("pair_error", pair_error)
    given = {"rivals": float(rivals), "pair_error": error}
    return Bound(rivals * error, given, ("every pair errs at most that often on the rows of its two classes",))


def spans(code: CodeLike, loss: MarginLossLike | None) -> tuple[int, float, float]:
    """``L``, ``rho`` and ``l(0)``."""
    matrix = as_code(code)
    distance = min_row_distance(matrix)
    if not distance > 0:
        raise ValueError("code: two of its rows are equal; accepted are codes whose smallest row distance is positive")
    return matrix.shape[1], distance, 1.0 if loss is None else as_margin_loss(loss).at_zero


def terms(columns: int, distance: float, at_zero: float, mean: float, ignored: float) -> dict[str, float]:
    """The numbers of the formula."""
    return {
        "columns": float(columns),
        "row_distance": distance,
        "loss_at_zero": at_zero,
        "mean_loss": mean,
        "ignored": ignored,
    }
