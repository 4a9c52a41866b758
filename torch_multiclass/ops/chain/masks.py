"""What a mask says of a batch: how many positions count, and which labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
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
    whole = int(np.add.reduce(counts)) == counted.size
    return torch.from_numpy(counts), whole, whole or not bool((counted[:, 1:] > counted[:, :-1]).any())


def mask_labels(mask: Tensor, labels: Tensor) -> Tensor | None:
    """The labels that count, and 0 for the others; None unless they are seen to be plain, with none missing."""
    plain = type(mask) is type(labels) is Tensor and mask.is_cpu and labels.is_cpu
    if not plain or labels.dtype != torch.long or mask.shape != labels.shape or labels.layout != torch.strided:
        return None
    if _native.library() is not None:
        return native.mask_labels(mask, labels)
    counted = labels.numpy() * mask.numpy()
    return None if bool((counted == IGNORE).any()) else torch.from_numpy(counted)
