"""Kernels of the distance."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.kernels.kernel import Kernel


class _Radial(Kernel):
    """A kernel of the distance, 1 at distance 0; ``learn=True`` makes the logarithm of ``gamma`` a parameter."""

    any_dtype = True

    def __init__(self, gamma: float = 1.0, *, learn: bool = False) -> None:
        super().__init__()
        check.positive("gamma", gamma)
        self.learn, self._given = learn, float(gamma)
        if learn:
            self.log_gamma = nn.Parameter(torch.tensor(float(gamma)).log())

    @property
    def gamma(self) -> Tensor | float:
        """The inverse width: the number given, or the current value of what is learned."""
        return self.log_gamma.exp() if self.learn else self._given

    def diagonal(self, features: Tensor) -> Tensor:
        """1 for every row."""
        return torch.ones_like(features[..., 0])

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"gamma={float(torch.as_tensor(self.gamma).detach()):g}" + (", learn=True" if self.learn else "")


class Gaussian(_Radial):
    r"""``K(x, x') = exp(-gamma |x - x'|^2)``.

    Args:
        gamma: > 0, the inverse squared width: ``gamma = 1 / (2 sigma^2)``.
        learn: make ``log gamma`` a parameter. A solver takes its value as it finds it, and its scorer has a copy.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError: ``gamma <= 0``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Gaussian(0.5)(torch.zeros(1, 2), torch.tensor([[1.0, 1.0]]))
        tensor([[0.3679]])
    """

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """``|x - x'|^2`` from one matrix product of centred features, where least cancels."""
        centre = right.mean(0, keepdim=True).detach()
        a, b = left - centre, right - centre
        squared = torch.addmm(b.square().sum(-1), a, b.mT, alpha=-2.0)
        squared = (squared + a.square().sum(-1, keepdim=True)).clamp_min(0)
        return torch.exp(-self.gamma * squared)


class Laplacian(_Radial):
    r"""``K(x, x') = exp(-gamma |x - x'|)``, the distance being Euclidean.

    Args:
        gamma: > 0, the inverse width.
        learn: make ``log gamma`` a parameter, as in `Gaussian`.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError: ``gamma <= 0``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Laplacian(1.0)(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor([[0.0067]])
    """

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The exponential of the distance."""
        return torch.exp(-self.gamma * torch.cdist(left, right))
