"""One versus one: a column for each pair ``i < j`` of ``K`` classes in lexicographic order, +1 for ``i``, -1 for ``j``.

The code is never written out here: which columns a class is in, and as which of the two, follows from their numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.checks import captured
from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer

pack = struct.Struct("@12q").pack
"""The fields of ``TmPairs`` in ``native/pairs.h``."""

_SCATTERED = 32  # classes up to which one matrix with an entry for each two is faster than a loop over classes


def first_column(first: Tensor | int, num_classes: int) -> Any:
    """The column of the first pair that ``first`` is the lower class of."""
    return first * (2 * num_classes - first - 1) // 2


def pair_column(first: Tensor, second: Tensor, num_classes: int) -> Tensor:
    """The column of the pair ``first < second``."""
    column: Tensor = first_column(first, num_classes) + second - first - 1
    return column


def columns_of(labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """The columns ``(*, K-1)`` of the pairs of each label with the other classes in order, and where it is the higher.

    There the code has -1, elsewhere +1.
    """
    place = torch.arange(num_classes - 1, device=labels.device)
    label = labels.unsqueeze(-1)
    higher = place < label
    first, second = torch.where(higher, place, label), torch.where(higher, label, place + 1)
    return pair_column(first, second, num_classes), higher


def pair_sums(agree: Tensor, against: Tensor, num_classes: int) -> Tensor:
    """What each class collects, ``agree`` of the pairs it is the lower of, ``against`` of the others: ``(*, K)``."""
    if captured() or agree.device.type != "cpu" or num_classes <= _SCATTERED:
        return _scattered(agree, against, num_classes)
    total: Tensor = PairSums.apply(agree, against, num_classes)  # type: ignore[no-untyped-call]
    return total


def _scattered(agree: Tensor, against: Tensor, num_classes: int) -> Tensor:
    first, second = torch.triu_indices(num_classes, num_classes, 1, device=agree.device)
    table = agree.new_zeros(*agree.shape[:-1], num_classes * num_classes)
    both = torch.cat([first * num_classes + second, second * num_classes + first])
    table = table.index_copy(-1, both, torch.cat([agree, against], -1))
    return table.view(*agree.shape[:-1], num_classes, num_classes).sum(-1)


class PairSums(torch.autograd.Function):
    """`pair_sums`, class by class."""

    @staticmethod
    def forward(ctx: Any, agree: Tensor, against: Tensor, num_classes: int) -> Tensor:
        """The sums."""
        ctx.num_classes = num_classes
        total = agree.new_zeros(num_classes, agree.shape[:-1].numel())
        plus, minus = (part.reshape(-1, part.shape[-1]).T.contiguous() for part in (agree, against))
        add_pairs(total, plus, minus, range(num_classes - 1))
        return total.T.reshape(*agree.shape[:-1], num_classes)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient of the lower class, and that of the higher."""
        first, second = torch.triu_indices(ctx.num_classes, ctx.num_classes, 1, device=grad.device)
        return grad.index_select(-1, first), grad.index_select(-1, second), None


def add_pairs(total: Tensor, agree: Tensor, against: Tensor | None, lower: range) -> None:
    """Add to ``total (K, n)`` what the classes collect in the pairs ``(C, n)`` whose lower one is in ``lower``.

    None in place of ``against`` is ``-agree``.
    """
    num_classes, column = len(total), 0
    for first in lower:
        others = slice(column, column + num_classes - 1 - first)
        total[first] += agree[others].sum(0)
        if against is None:
            total[first + 1 :] -= agree[others]
        else:
            total[first + 1 :] += against[others]
        column = others.stop


def blocks_of_pairs(num_classes: int, columns: int) -> list[tuple[range, slice]]:
    """All columns in turn, about so many at a time: the lower classes, and the columns of the pairs they begin."""
    blocks, begin = [], 0
    for end in range(1, num_classes):
        start, stop = first_column(begin, num_classes), first_column(end, num_classes)
        if stop - start >= columns or end == num_classes - 1:
            blocks.append((range(begin, end), slice(start, stop)))
            begin = end
    return blocks


# ------------------------------------------------------------------------------------------ linear margins


def label_margins(
    features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, sparse: bool = False
) -> Tensor:
    """Margins of the pairs that a row's label is in, as the label sees them: ``M(y, s) (w_s x + b_s)``, ``(B, K-1)``.

    The other ``(K-1)(K-2)/2`` columns are not computed. Nor do they cost memory or time where the gradient is sparse:
    else it holds zeros for them, which any optimiser takes.

    Args:
        features: ``(B, D)``.
        weight: ``(K(K-1)/2, D)``.
        bias: ``(K(K-1)/2)`` or None.
        labels: ``(B)``, below 0 where a row does not count: its margins are 0.
        sparse: whether the gradients by weight and bias are sparse tensors of the pairs of these labels, not coalesced.
    """
    margins: Tensor = LabelMargins.apply(features, weight, bias, labels, sparse)  # type: ignore[no-untyped-call]
    return margins


class LabelMargins(torch.autograd.Function):
    """`label_margins` as one node, the rows of one label together."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, sparse: bool
    ) -> Tensor:
        """The margins."""
        ctx.sparse = sparse
        order = labels.argsort()
        ctx.save_for_backward(features, weight, bias, labels, order)
        margins = features.new_zeros(len(features), num_classes_of(weight) - 1)
        _run("forward", _Rows(features, weight, bias, labels, order, margins))
        return margins

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients by features, weight and bias."""
        features, weight, bias, labels, order = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # a second derivative is asked for: the same gradient in differentiable steps
            inputs = [part for part, want in zip((features, weight, bias), wanted, strict=True) if want]
            margins = _label_margins(features, weight, bias, labels)
            found = iter(torch.autograd.grad(margins, inputs, grad, create_graph=True))
            return *(next(found) if want else None for want in wanted), None, None
        if ctx.sparse:
            return *_sparse_gradients(_Rows(features, weight, bias, labels, order, grad), wanted), None, None
        parts = [
            torch.zeros_like(part, memory_format=torch.contiguous_format) if want else None
            for part, want in zip((features, weight, bias), wanted, strict=True)
        ]
        _run("backward", _Rows(features, weight, bias, labels, order, grad.contiguous(), *parts))
        return *parts, None, None


def in_use() -> bool:
    """Whether the native library runs over the rows, which is worth it for fewer classes than torch's products."""
    return _native.library() is not None


def num_classes_of(weight: Tensor) -> int:
    """``K`` of ``K(K-1)/2`` columns."""
    return (1 + math.isqrt(1 + 8 * weight.shape[0])) // 2


def _label_margins(features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    columns, higher = columns_of(labels.clamp(min=0), num_classes_of(weight))
    margins = torch.einsum("bkd,bd->bk", weight[columns], features)
    margins = margins if bias is None else margins + bias[columns]
    return torch.where(labels.unsqueeze(-1) < 0, 0.0, torch.where(higher, -margins, margins))


class _Rows:
    """The arguments of a pass over the rows."""

    def __init__(
        self,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        order: Tensor,
        margins: Tensor,
        *gradients: Tensor | None,
    ) -> None:
        self.features, self.weight, self.bias, self.labels = features, weight, bias, labels
        self.order, self.margins, self.gradients = order, margins, gradients


def _run(which: str, rows: _Rows) -> None:
    """One of the passes ``"forward"`` and ``"backward"``, which write where the rows say."""
    library, dtypes = _native.library(), {torch.float32: "f32", torch.float64: "f64"}
    if library is None or rows.weight.dtype not in dtypes or rows.weight.device.type != "cpu":
        (_forward if which == "forward" else _backward)(rows)
        return
    given = [None if part is None else part.contiguous() for part in (rows.features, rows.weight, rows.bias)]
    sizes = *rows.features.shape, num_classes_of(rows.weight)
    ends = (*rows.gradients, None, None, None)[:3]
    own = rows.weight.dtype
    features, weight, bias, margins, *found = (pointer(part, own) for part in (*given, rows.margins, *ends))
    places = pointer(rows.labels, torch.int64), pointer(rows.order, torch.int64)
    library.function(f"tm_pairs_{which}_{dtypes[own]}")(pack(features, weight, bias, *places, *sizes, margins, *found))


def _groups(rows: _Rows) -> list[tuple[int, Tensor]]:
    """Each label, and the rows that have it."""
    labels, counts = torch.unique_consecutive(rows.labels[rows.order], return_counts=True)
    groups = zip(labels.tolist(), torch.split(rows.order, counts.tolist()), strict=True)
    return [(label, some) for label, some in groups if label >= 0]


def _forward(rows: _Rows) -> None:
    num_classes = num_classes_of(rows.weight)
    for label, some in _groups(rows):
        columns, higher = columns_of(torch.tensor(label, device=some.device), num_classes)
        bias = None if rows.bias is None else rows.bias[columns]
        margins = torch.nn.functional.linear(rows.features[some], rows.weight[columns], bias)
        rows.margins[some] = torch.where(higher, -margins, margins)


def _backward(rows: _Rows) -> None:
    num_classes = num_classes_of(rows.weight)
    by_features, by_weight, by_bias = rows.gradients
    for label, some in _groups(rows):
        columns, higher = columns_of(torch.tensor(label, device=some.device), num_classes)
        slope = torch.where(higher, -rows.margins[some], rows.margins[some])
        if by_features is not None:
            by_features[some] = slope @ rows.weight[columns]
        if by_weight is not None:
            by_weight.index_add_(0, columns, slope.T @ rows.features[some])
        if by_bias is not None:
            by_bias.index_add_(0, columns, slope.sum(0))


def _sparse_gradients(rows: _Rows, wanted: tuple[bool, ...]) -> list[Tensor | None]:
    """The gradients by features, weight and bias, of the latter two only the entries of the pairs of each label."""
    groups, others = _groups(rows), num_classes_of(rows.weight) - 1
    count, size = len(groups) * others, rows.features.shape[1]
    by_features = torch.zeros_like(rows.features) if wanted[0] else None
    by_weight = rows.weight.new_empty(count, size) if wanted[1] else None
    by_bias = rows.weight.new_empty(count) if wanted[2] else None
    touched = torch.empty(count, dtype=torch.int64, device=rows.weight.device)
    for i, (label, some) in enumerate(groups):
        own = slice(i * others, (i + 1) * others)
        touched[own], higher = columns_of(torch.tensor(label, device=some.device), others + 1)
        slope, features = torch.where(higher, -rows.margins[some], rows.margins[some]), rows.features[some]
        if by_features is not None:
            by_features[some] = slope @ rows.weight[touched[own]]
        if by_weight is not None:
            torch.mm(slope.T, features, out=by_weight[own])
        if by_bias is not None:
            torch.sum(slope, 0, out=by_bias[own])
    sparse = [
        None if part is None else torch.sparse_coo_tensor(touched[None], part, full.shape, check_invariants=False)
        for part, full in ((by_weight, rows.weight), (by_bias, rows.bias))
        if full is not None
    ]
    return [by_features, *sparse, *[None] * (2 - len(sparse))]


# -------------------------------------------------------------------------------------------------- knock-out


def knock_out(
    read: Callable[[Tensor], Tensor],
    lead: tuple[int, ...],
    num_classes: int,
    device: torch.device,
    left_out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A knock-out among the classes: the winner ``(*)`` and the rounds each class survived ``(*, K)``.

    ``read`` gives the margins of columns ``(*, m)``.

    Neighbours in a bracket that starts as ``0 .. K-1`` meet, an odd last one has a bye, winners go on in order. A
    margin of 0 lets the lower class through; a class flagged in ``left_out`` ``(K,)`` loses to any other.
    """
    alive = torch.arange(num_classes, device=device).expand(*lead, num_classes)
    survived = torch.zeros((*lead, num_classes), dtype=torch.float32, device=device)
    while alive.shape[-1] > 1:
        pairs = alive.shape[-1] // 2
        first, second = alive[..., 0 : 2 * pairs : 2], alive[..., 1 : 2 * pairs : 2]
        wins = read(pair_column(first, second, num_classes)) >= 0
        if left_out is not None:
            wins = (wins | left_out[second]) & ~(left_out[first] & ~left_out[second])
        alive = torch.cat([torch.where(wins, first, second), alive[..., 2 * pairs :]], -1)
        survived = survived.scatter_add(-1, alive, torch.ones_like(alive, dtype=survived.dtype))
    return alive.squeeze(-1), survived
