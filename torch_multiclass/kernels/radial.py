"""Kernels of the distance."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.kernels.distances import distances, squared_distances
from torch_multiclass.kernels.kernel import NAMES, Kernel, check_rows
from torch_multiclass.ops.precision import no_autocast, upcast


class _Radial(Kernel):
    """A kernel of the distance, 1 at distance 0; ``learn=True`` makes the logarithm of ``gamma`` a parameter."""

    any_dtype = definite = True

    @check.told
    def __init__(self, gamma: float = 1.0, *, learn: bool = False) -> None:
        super().__init__()
        check.positive("gamma", gamma)
        check.flag("learn", learn)
        self.learn, self._given = learn, float(gamma)
        if learn:
            self.log_gamma = nn.Parameter(torch.tensor(float(gamma)).log())

    @property
    def gamma(self) -> Tensor | float:
        """The inverse width: the number given, or the current value of what is learned."""
        return self.log_gamma.exp() if self.learn else self._given

    def of(self, distance: Callable[[Tensor, Tensor], Tensor], left: Tensor, right: Tensor) -> Tensor:
        """``exp(-gamma d(x, x'))``, half precision being computed in float32."""
        left, right = check_rows(left, right)
        with no_autocast(left):
            apart = distance(upcast(left), upcast(right))
            if self.learn or apart.requires_grad or check.captured():
                return torch.exp(-self.gamma * apart).to(left.dtype)
            return apart.mul_(-self.gamma).exp_().to(left.dtype)  # a block is large, and new memory is slow

    def diagonal(self, features: Tensor) -> Tensor:
        """1 for every row."""
        check_rows(features, features)
        return features.new_ones(len(features))

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
        """The exponential of the squared distance."""
        return self.of(squared_distances, left, right)


class Laplacian(_Radial):
    r"""``K(x, x') = exp(-gamma |x - x'|)``, the distance being Euclidean (scikit-learn's is of the city blocks).

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
        return self.of(distances, left, right)


NAMES.update(gaussian=Gaussian, laplacian=Laplacian)
