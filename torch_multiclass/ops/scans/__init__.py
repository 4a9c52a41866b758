"""The recursions as scans over time, made of plain operators of torch: for formats that have no others, such as ONNX.

`PLAIN` says for each operator what it is made of. Gradients are those of the first argument alone, which probabilities
are read off; `ONLY_FIRST` names these operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from torch_multiclass.ops import kbest as _k_best_operators  # noqa: F401
from torch_multiclass.ops import second_order as _second_order_operators  # noqa: F401  operators exist once imported
from torch_multiclass.ops import segments as _segment_operators  # noqa: F401
from torch_multiclass.ops import tree as _tree_operators  # noqa: F401
from torch_multiclass.ops.scans import chain, kbest, rows, second_order, segments, solve, tree

_OWN = torch.ops.torch_multiclass

PLAIN: dict[OpOverload, Callable[..., Any]] = {
    _OWN.chain_best_labels.default: chain.best_labels,
    _OWN.chain_value.default: chain.value,
    _OWN.chain_gradient.default: chain.gradient,
    _OWN.second_order_best_labels.default: second_order.best_labels,
    _OWN.second_order_value.default: second_order.value,
    _OWN.second_order_gradient.default: second_order.gradient,
    _OWN.segments_best_labels.default: segments.best_labels,
    _OWN.segments_value.default: segments.value,
    _OWN.segments_gradient.default: segments.gradient,
    _OWN.tree_best_labels.default: tree.best_labels,
    _OWN.tree_value.default: tree.value,
    _OWN.tree_gradient.default: tree.gradient,
    _OWN.chain_k_best.default: kbest.k_best,
    _OWN.first_best.default: kbest.first_best,
    torch.ops.aten.linalg_solve.default: solve.linalg_solve,
    torch.ops.aten.cummax.default: rows.cummax,
    torch.ops.aten.cdist.default: rows.cdist,
}

ONLY_FIRST = (
    _OWN.chain_gradient.default,
    _OWN.second_order_gradient.default,
    _OWN.segments_gradient.default,
    _OWN.tree_gradient.default,
)
