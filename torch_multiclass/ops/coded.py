"""Binary margins read through a code: losses, distances to the rows, and the nearest row.

Margins ``f`` are ``(*, L)``, a code ``M`` is ``(K, L)`` with entries -1, 0, +1. A distance is a sum over columns of a
function of ``M(r, s) f_s``, which takes three values a column, so two matrix products give the distances to all rows;
no ``(*, K, L)`` tensor exists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torch_multiclass.checks import captured
from torch_multiclass.ops.coding import Coding, OneVsOne, Read, Written, as_coding
from torch_multiclass.ops.margins import (
    Exponential,
    Hinge,
    Logistic,
    MarginLoss,
    Parts,
    Sigmoid,
    Squared,
    SquaredHinge,
    sign,
)
from torch_multiclass.ops.precision import upcast

_FAR = 1e100  # stands for an infinite margin in float64: its square is still finite
_WINDOW, _WINDOWS = 700.0, 4  # how far apart exponents may lie to be summed in one unit, and how many units there are
_LARGE = 600.0  # the exponential of this is finite, and so is a sum of many
_BLOCK = 1 << 22  # entries of the widest temporary while the nearest row is sought
_SMALL = 300.0  # up to margins of this size exponentials and sums of them are far from the ends of float64
_FALLING = (Hinge, Squared, SquaredHinge, Logistic, Exponential, Sigmoid)  # l(z) - l(-z) falls strictly with z
_LINEAR = {Logistic: 2.0, Squared: 4.0}  # where l(-z) - l(z) is that many times z


def distances(margins: Tensor, code: Tensor | Coding, loss: MarginLoss) -> Tensor:
    """``sum_s l(M(r, s) f_s)`` for every row ``r``: ``(*, K)``; infinite only where the sum itself overflows."""
    if loss.wide:
        return log_distances(margins, code, loss).exp()
    f = upcast(margins)
    limit = torch.finfo(f.dtype).max  # an infinite term times the 0 of another row would be NaN
    agree, against = (loss.value(z).clamp(max=limit) for z in (f, -f))
    coding = as_coding(code)
    total = coding.sums(agree, against) + loss.at_zero * coding.zeros(f.device).to(f.dtype)
    return total.masked_fill(total >= limit, math.inf)


def log_distances(margins: Tensor, code: Tensor | Coding, loss: MarginLoss) -> Tensor:
    """``log sum_s l(M(r, s) f_s)`` for every row ``r``, ``(*, K)``; never overflows and never underflows to 0.

    The exponents of a row, the logarithms of its terms, may lie further apart than floats reach, so they are summed
    window by window, each in units of the largest exponent in it. In float64 inside.
    """
    f = margins.double().clamp(-_FAR, _FAR)
    coding, exponents = as_coding(code), _exponents(f, loss)
    zeros = coding.zeros(f.device).to(f.dtype)
    everything = torch.cat([e.detach() for e in exponents], -1)
    windows = []
    for anchor in _anchors(everything, everything.amax(-1, keepdim=True)):
        agree, against, ignored = (_in_window(e, anchor) for e in exponents)
        windows.append(anchor + _log(coding.sums(agree, against) + ignored * zeros))
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


def votes(margins: Tensor, code: Tensor | Coding) -> Tensor:
    """The columns that speak for each row, ``sum_{s: M(r, s) != 0} (1 + sign(M(r, s) f_s)) / 2``: ``(*, K)``."""
    wins = (1 + sign(upcast(margins))) / 2
    return as_coding(code).sums(wins, 1 - wins)


def votes_by_block(read: Read, rows: int, coding: OneVsOne) -> Tensor:
    """`votes` on margins that are read block by block: ``(n, K)``."""

    def signs(f: Tensor) -> tuple[Tensor, None]:
        f = upcast(f)
        return (sign(f) if math.isnan(float(f.sum())) else f.sign()), None  # faster, and loses NaN

    return (coding.num_classes - 1 + coding.sums_by_block(read, rows, signs)) / 2


# ------------------------------------------------------------------------------------------------- nearest row


def nearest(margins: Tensor, code: Tensor | Coding, loss: MarginLoss, left_out: Tensor | None = None) -> Tensor:
    """The row of smallest distance, ``argmin_r sum_s l(M(r, s) f_s)``, the lowest among equals: ``(*)``.

    Rows flagged in ``left_out`` ``(K,)`` do not take part.

    Two large distances may differ by less than a unit in the last place of either, so rows of a code that is written
    out are compared by what sets them apart: with a first guess ``g``, ``d_r - d_g`` is a sum over the columns in which
    the two rows differ, all other terms being exactly 0. If some row is nearer than the guess, it is the next guess.
    """
    lead, columns, coding = margins.shape[:-1], margins.shape[-1], as_coding(code)
    if coding.name == "one_vs_all" and isinstance(loss, _FALLING):  # d_r - d_q = [l - l(-.)](f_r) - [l - l(-.)](f_q)
        return _allowed(-margins, left_out).argmin(-1)
    if loss.steps:
        return _allowed(distances(margins, coding, loss), left_out).argmin(-1)
    f = margins.double().reshape(-1, columns)
    if captured():
        return _sought(f, coding, loss, left_out).reshape(lead)
    blocks = [f] if f.numel() <= _BLOCK // 3 else torch.split(f, max(1, _BLOCK // (3 * columns)))
    found = [_sought(block, coding, loss, left_out) for block in blocks]
    return (found[0] if len(found) == 1 else torch.cat(found)).reshape(lead)


def _sought(f: Tensor, coding: Coding, loss: MarginLoss, left_out: Tensor | None) -> Tensor:
    if isinstance(coding, Written):
        if f.numel() and _readable(f) and (label := _plainly_nearest(f, coding, loss, left_out)) is not None:
            return label
        return _nearest(f.clamp(-_FAR, _FAR), coding.matrix, loss, left_out)
    return _allowed(_unshifted(f.clamp(-_FAR, _FAR), coding, loss), left_out).argmin(-1)


def _unshifted(f: Tensor, coding: Coding, loss: MarginLoss) -> Tensor:
    """What orders the rows of a code with as many zeros in each, where no term is common to all."""
    if loss.wide:
        return log_distances(f, coding, loss)
    return coding.sums(loss.value(f) - loss.at_zero, loss.value(-f) - loss.at_zero)


def distances_by_block(read: Read, rows: int, coding: OneVsOne, loss: MarginLoss) -> Tensor | None:
    """`distances` less ``L l(0)``, in float64, on margins that are read block by block: ``(n, K)``.

    None where margins are too large for that.
    """
    largest = 0.0

    def terms(f: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal largest
        f = f.double().clamp(-_FAR, _FAR)
        if loss.wide:
            largest = max(largest, float(f.abs().max()))
        return loss.value(f) - loss.at_zero, loss.value(-f) - loss.at_zero

    total = coding.sums_by_block(read, rows, terms)
    return total if largest <= _SMALL else None


def topped(
    class_scores: Tensor, margins: Tensor, code: Tensor | Coding, loss: MarginLoss, left_out: Tensor | None = None
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
        close = _close(values, margins.shape[-1])
        if not bool(close.any()):
            return class_scores
        label = values.argmax(-1)
        label[close] = nearest(margins[close], code, loss, left_out)
    return raised(class_scores, label)


def raised(class_scores: Tensor, label: Tensor) -> Tensor:
    """Class scores ``(*, K)`` of which the label's, where it is not the largest, is the next number above."""
    values = class_scores.detach()
    best = values.amax(-1, keepdim=True)
    limits = torch.finfo(values.dtype)
    raised = torch.where(best == -math.inf, limits.min, best + best.abs() * limits.eps + limits.tiny)
    behind = (values.argmax(-1) != label).unsqueeze(-1)
    at_label = torch.arange(values.shape[-1], device=label.device) == label.unsqueeze(-1)
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
    z = torch.cat([f, -f, 0 * f], -1)
    terms = loss.log_value(z) if loss.wide else loss.parts(z)
    for _ in range(4):
        reference = code[guess]
        entry = torch.where(reference > 0, 0, torch.where(reference < 0, 1, 2))
        own = entry * f.shape[-1] + torch.arange(f.shape[-1], device=f.device)
        better = _lowest(_relative_distances(terms, own, symbols), left_out)
        if _readable(f) and torch.equal(better, guess):
            break
        guess = better
    return guess


def _plainly_nearest(f: Tensor, coding: Written, loss: MarginLoss, left_out: Tensor | None) -> Tensor | None:
    """The nearest rows if all are nearer than the next by more than anything was rounded, else None.

    ``2 d_r = sum_s [l(f_s) + l(-f_s)] - [M h + |1 - |M|| e]_r`` with ``h = l(-f) - l(f)`` and, where columns ignore a
    class, ``e = l(f) + l(-f) - 2 l(0)``; what is common to all rows is left out.
    """
    if loss.wide and not float(f.abs().max()) <= _SMALL:
        return None
    matrix = coding.matrix.to(f.dtype)
    if coding.full and type(loss) in _LINEAR:
        odd = f * _LINEAR[type(loss)]
        gain, largest = odd @ matrix.mT, float(odd.abs().amax())
    else:
        agree, against = loss.value(f), loss.value(-f)
        total = agree + against
        gain, largest = (against - agree) @ matrix.mT, float(total.amax())
        if not coding.full:
            gain += (total - 2 * loss.at_zero) @ (matrix == 0).to(f.dtype).mT
    if left_out is not None:
        gain.masked_fill_(left_out, -math.inf)
    best, order = gain.topk(2, dim=-1)
    rounding = 4 * f.shape[-1] * (f.shape[-1] + 4) * torch.finfo(f.dtype).eps * (1 + largest)
    return order[:, 0] if float((best[:, 0] - best[:, 1]).amin()) > rounding else None


def _lowest(levels: Iterator[Tensor], left_out: Tensor | None) -> Tensor:
    """The row with the lowest number ``(B, K)`` to ``(B,)``; of those with equal ones, by the next level, and so on."""
    total = _allowed(next(levels), left_out)
    for finer in levels:
        lowest = total == total.amin(-1, keepdim=True)
        if _readable(total) and bool((lowest.sum(-1) == 1).all()):
            break
        total = _allowed(torch.where(lowest, finer, math.inf), left_out)
    return total.argmin(-1)


def _relative_distances(terms: Parts | Tensor, own: Tensor, symbols: Tensor) -> Iterator[Tensor]:
    """``d_r - d_reference`` for every row, up to a positive factor for each example: ``(B, K)``.

    ``terms`` ``(B, 3 L)`` are those of each column where a row has +1, -1 and 0 there, ``symbols`` ``(3 L, K)`` says
    which a row has, and ``own`` ``(B, L)`` are the places of the reference's. Of a wide loss the terms are logarithms,
    and the sums in units of the reference's largest term; then, for the rows in which all such terms cancel, in those
    of the terms below, window by window.
    """
    if not isinstance(terms, Tensor):
        yield _differences(terms, own, symbols)
        return
    sizes = terms > 0, terms == 0, terms < 0
    for level, anchor in enumerate(_anchors(terms, terms.gather(-1, own).amax(-1, keepdim=True))):
        inside = _in_window(terms, anchor, first=level == 0)
        yield _differences([(1.0, inside * size) for size in sizes], own, symbols)


def _differences(parts: Parts, own: Tensor, symbols: Tensor) -> Tensor:
    """The sum over the columns of each row's terms less the reference's."""
    total = torch.zeros((), dtype=symbols.dtype, device=symbols.device)
    for unit, terms in parts:
        total = total + unit * ((terms - terms.gather(-1, own).repeat(1, 3)) @ symbols)
    return total


def _allowed(distances: Tensor, left_out: Tensor | None) -> Tensor:
    return distances if left_out is None else distances.masked_fill(left_out, math.inf)


def _readable(tensor: Tensor) -> bool:
    """Whether a loop may stop on a value: on the CPU, outside capture."""
    return tensor.device.type == "cpu" and not captured()
