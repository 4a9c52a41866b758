r"""Positive definite symmetric kernels ``K(x, x') = Phi(x) · Phi(x')``.

A kernel is a module: called with ``(A, D)`` and ``(B, D)`` features it returns the ``(A, B)`` block of the Gram
matrix. Wherever a kernel is accepted, so are a name (``"linear"``) and any function that returns such a block.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check

__all__ = ["Function", "Gaussian", "Kernel", "Laplacian", "Linear", "Polynomial", "as_kernel", "gram"]

GramFunction = Callable[[Tensor, Tensor], Tensor]


class Kernel(nn.Module, ABC):
    """A kernel; a module, so that what it learns follows it to a device and into a checkpoint.

    To write one, derive from it and return the Gram block from ``forward``. Solvers call it in the features' own dtype,
    which its weights may rely on, and cast the block; with ``any_dtype = True`` they may ask for float64 instead.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.
    """

    any_dtype = False
    """Whether it computes in whatever dtype the features come."""

    @abstractmethod
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The Gram block: ``(A, D)`` and ``(B, D)`` to ``(A, B)``."""

    def diagonal(self, features: Tensor) -> Tensor:
        """``K(x, x)`` of every row: ``(A, D)`` to ``(A)``."""
        blocks = [self(rows, rows).diagonal() for rows in torch.split(features, 256)]
        return torch.cat(blocks) if blocks else features.new_zeros(0)


class Linear(Kernel):
    r"""``K(x, x') = x · x'``.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Linear()(torch.eye(2), torch.ones(1, 2))
        tensor([[1.],
                [1.]])
    """

    any_dtype = True

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """``left right^T``."""
        return left @ right.mT

    def diagonal(self, features: Tensor) -> Tensor:
        """``|x|^2``."""
        return features.square().sum(-1)


class Polynomial(Kernel):
    r"""``K(x, x') = (gamma x · x' + c)^degree``.

    Args:
        degree: a whole number, at least 1.
        gamma: > 0.
        c: >= 0.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError: a degree, ``gamma`` or ``c`` outside these.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Polynomial(2)(torch.ones(1, 2), torch.ones(1, 2))
        tensor([[9.]])
    """

    any_dtype = True

    def __init__(self, degree: int, gamma: float = 1.0, c: float = 1.0) -> None:
        super().__init__()
        check.whole("degree", degree)
        check.positive("gamma", gamma)
        check.positive("c", c, zero=True)
        self.degree, self.gamma, self.c = degree, gamma, c

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The power of the shifted inner product."""
        return (self.gamma * (left @ right.mT) + self.c) ** self.degree

    def diagonal(self, features: Tensor) -> Tensor:
        """``(gamma |x|^2 + c)^degree``."""
        return (self.gamma * features.square().sum(-1) + self.c) ** self.degree

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"degree={self.degree}, gamma={self.gamma:g}, c={self.c:g}"


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


class Function(Kernel):
    """Any function ``(A, D), (B, D) -> (A, B)`` as a kernel; that it is positive definite is checked where it is used.

    Solvers call it with features as they were given (half precision as float32) and cast its blocks.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        TypeError, ValueError: a block that is not a tensor, or not ``(A, B)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Function(lambda a, b: torch.minimum(a[:, None], b[None]).sum(-1))(torch.ones(1, 3), torch.ones(2, 3))
        tensor([[3., 3.]])
    """

    def __init__(self, function: GramFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The function's block, its shape checked."""
        block = self.function(left, right)
        check.is_tensor("kernel", block)
        check.shape("kernel", block, (len(left), len(right)), "the Gram block of the two sets of rows")
        return block

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return getattr(self.function, "__name__", type(self.function).__name__)


def as_kernel(kernel: str | Kernel | GramFunction) -> Kernel:
    """The kernel behind a name, a function or a kernel.

    Raises:
        ValueError, TypeError: another name, or none of these.

    Example:
        >>> as_kernel("linear")
        Linear()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel != "linear":
            raise ValueError(
                f"kernel: got {kernel!r}; accepted are 'linear' and a kernel, such as kernels.Gaussian(gamma=0.1)"
            )
        return Linear()
    if callable(kernel) and not isinstance(kernel, type):
        return Function(kernel)
    raise TypeError(
        f"kernel: got {kernel!r}; accepted are 'linear', a torch_multiclass.kernels.Kernel (made, as in Gaussian()) "
        "and a function that returns a Gram block"
    )


def available_bytes(device: torch.device) -> int:
    """How much memory a new tensor on ``device`` may take now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def gram_block(kernel: Kernel, left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """A block in ``dtype``: computed in it where the kernel can, else computed as the rows come and cast."""
    if kernel.any_dtype:
        left, right = left.to(dtype), right.to(dtype)
    block: Tensor = kernel(left, right)
    return block.to(dtype)


@torch.no_grad()
def gram(
    kernel: Kernel,
    left: Tensor,
    right: Tensor | None = None,
    *,
    chunk: int = 1024,
    limit: int | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The Gram matrix, computed in blocks of rows and refused before it is allocated where it would not fit.

    Args:
        kernel: the kernel.
        left: its rows.
        right: its columns; by default ``left`` again.
        chunk: how many rows to compute at a time.
        limit: bytes it may take; by default 80 % of what is free.
        dtype: of the matrix; by default the rows'. A user's function is called with the rows as they are and its
            blocks are cast; the kernels here compute in ``dtype``.

    Shape:
        left ``(A, D)``; right ``(B, D)``; the result ``(A, B)``.

    Raises:
        MemoryError: the matrix is larger than the limit; the message gives its size and proposes landmarks.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> gram(Linear(), torch.eye(3)).shape
        torch.Size([3, 3])
    """
    right = left if right is None else right
    dtype = left.dtype if dtype is None else dtype
    need = len(left) * len(right) * dtype.itemsize
    limit = int(0.8 * available_bytes(left.device)) if limit is None else limit
    if need > limit:
        raise MemoryError(
            f"kernel: the {len(left)} x {len(right)} Gram matrix takes {_in_bytes(need)} and {_in_bytes(limit)} may be "
            f"used; accepted are fewer rows, a larger memory_limit, or the Nyström approximation: landmarks=2000"
        )
    matrix = left.new_empty(len(left), len(right), dtype=dtype)
    for start in range(0, len(left), chunk):
        matrix[start : start + chunk] = gram_block(kernel, left[start : start + chunk], right, dtype)
    return matrix


def _in_bytes(count: int) -> str:
    """A number of bytes in words."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def check_definite(
    kernel: Kernel, features: Tensor, *, sample: int = 256, generator: torch.Generator | None = None
) -> None:
    """Raise unless the Gram matrix of a sample of rows is symmetric and positive semi-definite.

    Necessary, not sufficient: a solver also looks at every curvature that it meets.

    Raises:
        ValueError: a Gram matrix that is not finite, not symmetric, or has a negative eigenvalue.
    """
    rows = torch.randperm(len(features), generator=generator)[:sample].to(features.device)
    matrix = gram(kernel, features[rows], dtype=torch.float64)
    if not bool(matrix.isfinite().all()):
        raise ValueError("kernel: its Gram matrix has entries that are not finite; accepted are finite entries")
    scale = float(matrix.diagonal().abs().amax().clamp_min(torch.finfo(matrix.dtype).tiny))
    if float((matrix - matrix.mT).abs().amax()) > 1e-5 * scale:
        raise ValueError("kernel: its Gram matrix is not symmetric; accepted is a symmetric positive definite kernel")
    least = float(torch.linalg.eigvalsh((matrix + matrix.mT) / 2)[0])
    if least < -1e-6 * scale * len(rows):
        raise not_definite(f"the Gram matrix of {len(rows)} rows has the eigenvalue {least:.3g}")


def not_definite(evidence: str) -> ValueError:
    """The error that says a kernel is not positive semi-definite, and how one knows."""
    return ValueError(
        f"kernel: is not positive semi-definite ({evidence}); accepted is a positive semi-definite kernel"
    )
