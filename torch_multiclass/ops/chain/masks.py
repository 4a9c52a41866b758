"""What a mask says of a batch: how many positions count, and which labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.checks import all_labels
from torch_multiclass.ops import _native
from torch_multiclass.ops.chain import native


def mask_lengths(mask: Tensor) -> tuple[Tensor, bool, bool] | None:
    """How many positions of a mask ``(B, T)`` count, whether all do, and whether in each row they come first.

    None for tensors that are not plain ones on the CPU.
    """
    if type(mask) is not Tensor or not mask.is_cpu:
        return None
    if _native.library() is not None:
        return native.mask_lengths(mask)
    counted = mask.numpy()
    counts = np.add.reduce(counted, 1, np.int64)
    whole = np.count_nonzero(counted) == counted.size
    # the first that does not count has as many before it as do; where all do, 0 is found in place of T
    left = whole or np.count_nonzero((counted.argmin(1) - counts) % counted.shape[1]) == 0
    return torch.from_numpy(counts), whole, left


def mask_labels(mask: Tensor, labels: Tensor, num_labels: int) -> Tensor | None:
    """The labels that count, and 0 for the others; None unless they are seen to be plain, in ``0..num_labels-1``."""
    plain = type(mask) is type(labels) is Tensor and mask.is_cpu and labels.is_cpu
    if not plain or labels.dtype != torch.long or mask.shape != labels.shape or labels.layout != torch.strided:
        return None
    if _native.library() is not None:
        return native.mask_labels(mask, labels, num_labels)
    counted = labels.numpy() * mask.numpy()
    return torch.from_numpy(counted) if counted.size > 0 and all_labels(counted, num_labels) else None
