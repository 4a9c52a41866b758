"""Explicit features whose inner products approximate a kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.kernels import GramFunction, Kernel, as_kernel, gram
from torch_multiclass.kernels.gram import gram_block, not_definite
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import as_wide_as, check_features, width


class NystromFeatures(nn.Module):
    r"""``phi(x) = L^{-1} K(Z, x)`` with ``L L^T = K_ZZ``: explicit features whose inner product approximates a kernel.

    ``phi(x) · phi(x') = K(x, Z) K_ZZ^{-1} K(Z, x')``, which is exact between landmarks ``Z`` (up to a ridge of ten
    roundings on ``K_ZZ``). The factor is taken in float64.

    Args:
        landmarks: ``(M, D)``.
        kernel: a kernel, the name ``"linear"``, or a function that returns a Gram block.
        dtype: of the result; by default the landmarks'. A user's function is called in the landmarks' dtype all the
            same.

    Shape:
        ``(*, D)`` to ``(*, M)``.

    Raises:
        MemoryError: an ``M x M`` matrix would not fit.
        ValueError: landmarks that are not ``(M, D)``; a kernel that is not positive semi-definite.

    Reference: Williams and Seeger (2001), *Using the Nyström method to speed up kernel machines*.

    Example:
        >>> import torch
        >>> from torch_multiclass.kernels import Gaussian
        >>> x = torch.randn(10, 4, dtype=torch.float64)
        >>> phi = NystromFeatures(x, Gaussian(0.1))(x)
        >>> torch.allclose(phi @ phi.T, Gaussian(0.1)(x, x))
        True
    """

    landmarks: Tensor
    root: Tensor

    @check.told
    def __init__(
        self, landmarks: Tensor, kernel: str | Kernel | GramFunction, *, dtype: torch.dtype | None = None
    ) -> None:
        factory(None, dtype)
        super().__init__()
        check.floating("landmarks", landmarks)
        if landmarks.ndim != 2:
            raise ValueError(f"landmarks: got shape {tuple(landmarks.shape)}; accepted is (M, D), one point a row")
        self.kernel = as_kernel(kernel)
        dtype = landmarks.dtype if dtype is None else dtype
        points = landmarks.detach().clone()
        self.register_buffer("landmarks", points.to(dtype) if self.kernel.any_dtype else points)
        finest = dtype if self.kernel.any_dtype else landmarks.dtype
        self.register_buffer("root", _inverse_root(gram(self.kernel, self.landmarks, dtype=dtype), finest))
        self.in_features, self.num_features = landmarks.shape[1], len(self.landmarks)

    def forward(self, features: Tensor) -> Tensor:
        """The features."""
        check_features(features, self.landmarks.shape[1])
        check.dense("features", features)
        rows = features.reshape(-1, features.shape[-1])
        root = upcast(self.root)
        mapped = gram_block(self.kernel, as_wide_as(self.landmarks, rows), self.landmarks, root.dtype) @ root
        mapped = mapped if root is self.root else mapped.to(self.root.dtype)
        return mapped.reshape(*features.shape[:-1], self.num_features)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"landmarks={len(self.landmarks)}, num_features={self.num_features}"


def _inverse_root(matrix: Tensor, finest: torch.dtype) -> Tensor:
    """``L^{-T}`` with ``L L^T`` the matrix, plus a ridge of ten roundings in the dtype ``finest``, in which its entries
    were computed, so that repeated landmarks do no harm."""
    if matrix.is_meta:
        return matrix  # no values yet: a `state_dict` brings the root
    if not bool(matrix.isfinite().all()):
        raise ValueError(
            "kernel: the landmarks' Gram matrix has entries that are not finite; accepted are finite entries"
        )
    size = matrix.diagonal().mean()
    ridge = max(10 * torch.finfo(finest).eps, 1e-10) * torch.where(size > 0, size, 1.0)
    wide = matrix.double()
    wide.diagonal().add_(ridge)
    lower, failed = torch.linalg.cholesky_ex(wide)
    if bool(failed):
        least = float(torch.linalg.eigvalsh(wide)[0])
        raise not_definite(f"the landmarks' Gram matrix has the eigenvalue {least:.3g}")
    identity = torch.eye(len(wide), dtype=wide.dtype, device=wide.device)
    root: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False).mT
    return root.to(matrix.dtype)


class RandomFourierFeatures(nn.Module):
    r"""``phi(x) = sqrt(2/F) (cos(w_j · x), sin(w_j · x))_{j <= F/2}`` with ``w_j ~ N(0, 2 gamma I)``.

    In expectation ``phi(x) · phi(x') = exp(-gamma |x - x'|^2)``.

    Args:
        in_features: ``D``.
        num_features: ``F``, even.
        gamma: of the Gaussian kernel, > 0.
        generator: draws the frequencies.
        device, dtype: of the frequencies.

    Shape:
        ``(*, D)`` to ``(*, F)``.

    Raises:
        ValueError: an odd ``F``; sizes or a ``gamma`` that are not positive.

    Reference: Rahimi and Recht (2007), *Random features for large-scale kernel machines*.

    Example:
        >>> import torch
        >>> RandomFourierFeatures(4, 64, gamma=0.5)(torch.randn(10, 4)).norm(dim=1).allclose(torch.ones(10))
        True
    """

    frequencies: Tensor

    @check.told
    def __init__(
        self,
        in_features: int,
        num_features: int,
        gamma: float = 1.0,
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        super().__init__()
        in_features = width(in_features)
        num_features = check.whole("num_features", num_features, least=2)
        check.generator(generator)
        gamma = check.positive("gamma", gamma)
        if num_features % 2:
            raise ValueError(f"num_features: got {num_features}; accepted is an even number, a cosine and a sine each")
        self.in_features, self.num_features, self.gamma = in_features, num_features, gamma
        drawn = torch.randn(in_features, num_features // 2, generator=generator, dtype=dtype, device="cpu")
        frequencies = torch.empty_like(drawn, device=device or torch.get_default_device()).copy_(drawn)
        self.register_buffer("frequencies", frequencies * math.sqrt(2 * gamma))

    def forward(self, features: Tensor) -> Tensor:
        """The features."""
        check_features(features, self.in_features)
        angles = as_wide_as(self.frequencies, features) @ self.frequencies
        return torch.cat([angles.cos(), angles.sin()], -1) * math.sqrt(2 / self.num_features)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_features={self.num_features}, gamma={self.gamma:g}"
