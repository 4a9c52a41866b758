"""Gram matrices: in blocks, within the memory there is, and checked for being definite."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels.kernel import GramFunction, Kernel, as_kernel, check_rows


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
    kernel: str | Kernel | GramFunction,
    left: Tensor,
    right: Tensor | None = None,
    *,
    chunk: int = 1024,
    limit: int | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The Gram matrix, computed in blocks of rows and refused before it is allocated where it would not fit.

    Args:
        kernel: the kernel, its name, or a function that returns a Gram block.
        left: its rows.
        right: its columns; by default ``left`` again.
        chunk: how many rows to compute at a time.
        limit: bytes it may take; by default 80 % of what is free.
        dtype: of the matrix; by default the rows'. A user's function is called with the rows as they are and its
            blocks are cast; the kernels here compute in ``dtype``.

    Shape:
        left ``(A, D)``; right ``(B, D)``; the result ``(A, B)``.

    Raises:
        ValueError, TypeError: rows that do not fit each other, as in `Kernel`; a ``chunk``, ``limit`` or ``dtype`` that
            is none.
        MemoryError: the matrix is larger than the limit; the message gives its size and proposes Nyström features.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> from torch_multiclass.kernels import Linear
        >>> gram(Linear(), torch.eye(3)).shape
        torch.Size([3, 3])
    """
    kernel = as_kernel(kernel)
    left, right = check_rows(left, left if right is None else right)
    chunk = check.whole("chunk", chunk)
    if limit is not None:
        limit = check.whole("limit", limit, least=0)
    dtype = left.dtype if dtype is None else dtype
    if not isinstance(dtype, torch.dtype) or dtype not in check.FLOATING:
        raise TypeError(f"dtype: got {check.shown(dtype)}; accepted are float16, bfloat16, float32 and float64")
    need = len(left) * len(right) * dtype.itemsize
    limit = int(0.8 * available_bytes(left.device)) if limit is None else limit
    if need > limit:
        raise MemoryError(
            f"kernel: the {len(left)} x {len(right)} Gram matrix takes {_in_bytes(need)} and {_in_bytes(limit)} may be "
            f"used; accepted are fewer rows, a larger memory_limit, or a linear machine on NystromFeatures of them (of "
            "DualSVM: landmarks=)"
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
    if kernel.definite:  # no entry is larger than the largest of the diagonal
        if not bool(kernel.diagonal(features).isfinite().all()):
            raise _not_finite()
        return
    rows = torch.randperm(len(features), generator=generator)[:sample].to(features.device)
    matrix = gram(kernel.at(rows), features[rows], dtype=torch.float64)
    if not bool(matrix.isfinite().all()):
        raise _not_finite()
    scale = float(matrix.diagonal().abs().amax().clamp_min(torch.finfo(matrix.dtype).tiny))
    if float((matrix - matrix.mT).abs().amax()) > 1e-5 * scale:
        raise ValueError("kernel: its Gram matrix is not symmetric; accepted is a symmetric positive definite kernel")
    least = float(torch.linalg.eigvalsh((matrix + matrix.mT) / 2)[0])
    if least < -1e-6 * scale * len(rows):
        raise not_definite(f"the Gram matrix of {len(rows)} rows has the eigenvalue {least:.3g}")


def _not_finite() -> ValueError:
    return ValueError("kernel: its Gram matrix has entries that are not finite; accepted are finite entries")


def not_definite(evidence: str) -> ValueError:
    """The error that says a kernel is not positive semi-definite, and how one knows."""
    return ValueError(
        f"kernel: is not positive semi-definite ({evidence}); accepted is a positive semi-definite kernel"
    )
