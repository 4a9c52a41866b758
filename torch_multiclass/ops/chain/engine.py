"""Which recursion computes a chain."""

from __future__ import annotations

from torch import Tensor

from torch_multiclass.ops.chain import logspace
from torch_multiclass.ops.chain.logspace import Chain, Gradients


def value(chain: Chain, labels: Tensor | None, method: str) -> tuple[Tensor, None]:
    """``log Z``, or ``log Z - s(labels)``, and what the gradient can build on."""
    return logspace.value(chain, labels), None


def gradient(grad: Tensor, chain: Chain, labels: Tensor | None, method: str) -> Gradients:
    """The gradient of ``sum(grad * value)``."""
    return logspace.gradient(grad, chain, labels)
