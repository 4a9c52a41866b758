"""Binary margins read through a code: losses, distances to the rows, and the nearest row.

Margins ``f`` are ``(*, L)``, a code ``M`` is ``(K, L)`` with entries -1, 0, +1. A distance is a sum over columns of a
function of ``M(r, s) f_s``, which takes three values a column, so two matrix products give the distances to all rows;
no ``(*, K, L)`` tensor exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from torch_multiclass.checks import captured
from torch_multiclass.ops.margins import MarginLoss, Parts, sign
from torch_multiclass.ops.precision import no_autocast, upcast

_FAR = 1e100  # stands for an infinite margin in float64: its square is still finite
_WINDOW, _WINDOWS = 700.0, 4  # how far apart exponents may lie to be summed in one unit, and how many units there are
_LARGE = 600.0  # the exponential of this is finite, and so is a sum of many
_BLOCK = 1 << 22  # entries of the widest temporary while the nearest row is sought


def distances(margins: Tensor, code: Tensor, loss: MarginLoss) -> Tensor:
    """``sum_s l(M(r, s) f_s)`` for every row ``r``: ``(*, K)``; infinite only where the sum itself overflows."""
    if loss.wide:
        return log_distances(margins, code, loss).exp()
    f = upcast(margins)
    limit = torch.finfo(f.dtype).max  # an infinite term times the 0 of another row would be NaN
    agree, against = (loss.value(z).clamp(max=limit) for z in (f, -f))
    total = _row_sums(agree, against, code) + loss.at_zero * _zeros(code, f)
    return total.masked_fill(total >= limit, math.inf)


def log_distances(margins: Tensor, code: Tensor, loss: MarginLoss) -> Tensor:
    """``log sum_s l(M(r, s) f_s)`` for every row ``r``, ``(*, K)``; never overflows and never underflows to 0.

    The exponents of a row, the logarithms of its terms, may lie further apart than floats reach, so they are summed
    window by window, each in units of the largest exponent in it. In float64 inside.
    """
    f = margins.double().clamp(-_FAR, _FAR)
    exponents = _exponents(f, loss)
    everything = torch.cat([e.detach() for e in exponents], -1)
    windows = []
    for anchor in _anchors(everything, everything.amax(-1, keepdim=True)):
        agree, against, ignored = (_in_window(e, anchor) for e in exponents)
        windows.append(anchor + _log(_row_sums(agree, against, code) + ignored * _zeros(code, f)))
    found = torch.stack(windows)
    nothing = (found == -math.inf).all(0)  # beyond the last window: no row is nearer than one column's smallest term
    least = everything.amin(-1, keepdim=True)
    total = torch.where(nothing, least, torch.where(nothing, 0.0, found).logsumexp(0))
    return total.to(upcast(margins).dtype)


def _exponents(f: Tensor, loss: MarginLoss) -> tuple[Tensor, Tensor, Tensor]:
    """``log l`` of the columns by what a row has there, +1, -1 and 0: ``(*, L)`` twice and ``(*, 1)``."""
    return loss.log_value(f), loss.log_value(-f), f.new_tensor(loss.at_zero).log().expand(*f.shape[:-1], 1)


def _anchors(exponents: Tensor, top: Tensor) -> list[Tensor]:
    """The tops of windows over the exponents ``(*, E)`` of each example, from ``top`` down: ``(*, 1)``."""
    anchors = [top]
    while len(anchors) < _WINDOWS:
        below = exponents.masked_fill(exponents - anchors[-1] > -_WINDOW, -math.inf).amax(-1, keepdim=True)
        if _readable(exponents) and bool((below == -math.inf).all()):
            break
        anchors.append(below)
    return anchors


def _in_window(exponents: Tensor, anchor: Tensor, *, first: bool = False) -> Tensor:
    """``exp(e - anchor)`` for the exponents from the anchor down to the end of its window, 0 for the others.

    The ``first`` window has no upper end: what lies far above the anchor is large there, and finite.
    """
    depth = exponents - anchor
    outside = depth <= -_WINDOW if first else (depth <= -_WINDOW) | (depth > 0)
    return torch.where(outside, 0.0, torch.where(outside, 0.0, depth).clamp(max=_LARGE).exp())


def _log(x: Tensor) -> Tensor:
    """``log x``, with zero gradient where ``x = 0``."""
    return torch.where(x > 0, x.clamp(min=torch.finfo(x.dtype).tiny).log(), -math.inf)


def votes(margins: Tensor, code: Tensor) -> Tensor:
    """The columns that speak for each row, ``sum_{s: M(r, s) != 0} (1 + sign(M(r, s) f_s)) / 2``: ``(*, K)``."""
    wins = (1 + sign(upcast(margins))) / 2
    return _row_sums(wins, 1 - wins, code)


def _row_sums(agree: Tensor, against: Tensor, code: Tensor) -> Tensor:
    """``sum_{s: M = +1} agree_s + sum_{s: M = -1} against_s`` for every row: the two matrix products."""
    with no_autocast(agree):
        return agree @ (code > 0).to(agree.dtype).mT + against @ (code < 0).to(agree.dtype).mT


def _zeros(code: Tensor, like: Tensor) -> Tensor:
    """How many columns ignore each row."""
    return (code == 0).sum(-1).to(like.dtype)


# ------------------------------------------------------------------------------------------------- nearest row


def nearest(margins: Tensor, code: Tensor, loss: MarginLoss, left_out: Tensor | None = None) -> Tensor:
    """The row of smallest distance, ``argmin_r sum_s l(M(r, s) f_s)``, the lowest among equals: ``(*)``.

    Rows flagged in ``left_out`` ``(K,)`` do not take part.

    Two large distances may differ by less than a unit in the last place of either, so rows are compared by what sets
    them apart: with a first guess ``g``, ``d_r - d_g`` is a sum over the columns in which the two rows differ, all
    other terms being exactly 0. If some row is nearer than the guess, it is the next guess.
    """
    lead, columns = margins.shape[:-1], margins.shape[-1]
    if loss.steps:
        return _allowed(distances(margins, code, loss), left_out).argmin(-1)
    f = margins.double().clamp(-_FAR, _FAR).reshape(-1, columns)
    if captured():
        return _nearest(f, code, loss, left_out).reshape(lead)
    blocks = torch.split(f, max(1, _BLOCK // (3 * columns)))
    return torch.cat([_nearest(block, code, loss, left_out) for block in blocks]).reshape(lead)


def topped(
    class_scores: Tensor, margins: Tensor, code: Tensor, loss: MarginLoss, left_out: Tensor | None = None
) -> Tensor:
    """Class scores ``(*, K)`` of which the largest is that of the `nearest` row.

    They are right as numbers, but where the best lie within the rounding of each other, their order need not be that
    of exact arithmetic: then the nearest row's is raised to the next number above the others.
    """
    values = class_scores.detach()
    if loss.steps:  # exact as they are
        return class_scores
    if not _readable(values) or values.ndim == 1:
        label = nearest(margins, code, loss, left_out)
    else:
        close = _close(values, code.shape[1])
        if not bool(close.any()):
            return class_scores
        label = values.argmax(-1)
        label[close] = nearest(margins[close], code, loss, left_out)
    best = values.amax(-1, keepdim=True)
    limits = torch.finfo(values.dtype)
    raised = torch.where(best == -math.inf, limits.min, best + best.abs() * limits.eps + limits.tiny)
    behind = (values.argmax(-1) != label).unsqueeze(-1)
    at_label = torch.arange(len(code), device=label.device) == label.unsqueeze(-1)
    nothing = class_scores - values  # 0 with the gradient of the score, NaN where that is infinite
    return torch.where(behind & at_label, torch.where(nothing.isnan(), raised, nothing + raised), class_scores)


def _close(values: Tensor, columns: int) -> Tensor:
    """Where the two largest of ``(*, K)`` class scores lie so near that rounding may have set their order."""
    first, second = values.topk(2, dim=-1).values.unbind(-1)
    rounding = 4 * (columns + 4) * torch.finfo(values.dtype).eps * (1 + second.abs())
    return ~((first - second > rounding) | (second == -math.inf) & first.isfinite())


def _nearest(f: Tensor, code: Tensor, loss: MarginLoss, left_out: Tensor | None) -> Tensor:
    first = log_distances(f, code, loss) if loss.wide else distances(f, code, loss)
    guess = _allowed(first, left_out).argmin(-1)
    symbols = torch.cat([code > 0, code < 0, code == 0], 1).to(f.dtype).mT
    for _ in range(4):
        better = _lowest(_relative_distances(f, code[guess], symbols, loss), left_out)
        if _readable(f) and torch.equal(better, guess):
            break
        guess = better
    return guess


def _lowest(levels: Iterator[Tensor], left_out: Tensor | None) -> Tensor:
    """The row with the lowest number ``(B, K)`` to ``(B,)``; of those with equal ones, by the next level, and so on."""
    total = _allowed(next(levels), left_out)
    for finer in levels:
        lowest = total == total.amin(-1, keepdim=True)
        if _readable(total) and bool((lowest.sum(-1) == 1).all()):
            break
        total = _allowed(torch.where(lowest, finer, math.inf), left_out)
    return total.argmin(-1)


def _relative_distances(f: Tensor, reference: Tensor, symbols: Tensor, loss: MarginLoss) -> Iterator[Tensor]:
    """``d_r - d_reference`` for every row, up to a positive factor for each example: ``(B, K)``.

    ``symbols`` ``(3 L, K)`` says where each row has +1, -1 and 0. For a wide loss, in units of the reference's largest
    term; then, for the rows in which all such terms cancel, in those of the terms below, window by window.
    """
    if not loss.wide:
        yield _differences(reference, symbols, lambda y: loss.parts(y * f))
        return
    everything = torch.cat(_exponents(f, loss), -1)
    for level, anchor in enumerate(_anchors(everything, loss.log_value(reference * f).amax(-1, keepdim=True))):
        yield _differences(reference, symbols, partial(_window_parts, f, anchor, loss, first=level == 0))


def _differences(reference: Tensor, symbols: Tensor, parts: Callable[[Tensor | int], Parts]) -> Tensor:
    """The sum over the columns of each row's terms less the reference's, by the terms of an entry of the code."""
    total = torch.zeros((), dtype=symbols.dtype, device=symbols.device)
    by_entry = (parts(entry) for entry in (reference, 1, -1, 0))
    for (unit, own), (_, plus), (_, minus), (_, zero) in zip(*by_entry, strict=True):
        total = total + unit * (torch.cat([plus - own, minus - own, zero - own], -1) @ symbols)
    return total


def _window_parts(f: Tensor, anchor: Tensor, loss: MarginLoss, entry: Tensor | int, *, first: bool) -> Parts:
    """The terms ``l(M f)`` that lie in a window, in its units: those above 1, those that are 1, those below."""
    exponents = loss.log_value(entry * f)
    terms = _in_window(exponents, anchor, first=first)
    return [(1.0, terms * (exponents > 0)), (1.0, terms * (exponents == 0)), (1.0, terms * (exponents < 0))]


def _allowed(distances: Tensor, left_out: Tensor | None) -> Tensor:
    return distances if left_out is None else distances.masked_fill(left_out, math.inf)


def _readable(tensor: Tensor) -> bool:
    """Whether a loop may stop on a value: on the CPU, outside capture."""
    return tensor.device.type == "cpu" and not captured()
