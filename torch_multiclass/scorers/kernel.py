"""Scores that are kernel expansions, exact or approximated by explicit features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.kernels import GramFunction, Kernel, as_kernel, gram, not_definite
from torch_multiclass.scorers.linear import LinearScorer, as_wide_as, check_features


class KernelScorer(nn.Module):
    r"""``f_l(x) = sum_i alpha_{il} K(x_i, x) + b_l``, an expansion over the support points ``x_i``.

    Differentiable in everything, the features included, so that it also stands behind a network (a deep kernel).

    Args:
        support: the points ``x_i``, ``(S, D)``.
        num_classes: ``K``.
        kernel: a kernel, the name ``"linear"``, or a function that returns a Gram block.
        bias: whether to learn ``b``.
        learn_support: make the points a parameter instead of a buffer.
        chunk: rows of the Gram matrix held at a time where no gradient is asked for.
        device, dtype: of the parameters; by default the points'.

    Shape:
        features ``(*, D)``, of the points' dtype or a narrower one; scores ``(*, K)``.

    Raises:
        ValueError: points that are not ``(S, D)``; features whose last dimension is not ``D``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.

    Example:
        >>> import torch
        >>> from torch_multiclass.kernels import Gaussian
        >>> scorer = KernelScorer(torch.randn(20, 8), 3, kernel=Gaussian(0.1))
        >>> scorer(torch.randn(5, 8)).shape
        torch.Size([5, 3])
    """

    support: Tensor
    bias: nn.Parameter | None

    def __init__(
        self,
        support: Tensor,
        num_classes: int,
        kernel: str | Kernel | GramFunction = "linear",
        bias: bool = True,
        *,
        learn_support: bool = False,
        chunk: int = 4096,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.floating("support", support)
        if support.ndim != 2:
            raise ValueError(f"support: got shape {tuple(support.shape)}; accepted is (S, D), one point a row")
        check.whole("num_classes", num_classes)
        check.whole("chunk", chunk)
        points = support.detach().clone().to(device=device, dtype=dtype)
        self.in_features, self.num_classes, self.chunk = points.shape[1], num_classes, chunk
        self.kernel = as_kernel(kernel)
        if learn_support:
            self.support = nn.Parameter(points)
        else:
            self.register_buffer("support", points)
        self.coefficients = nn.Parameter(points.new_empty(len(points), num_classes))
        self.register_parameter("bias", nn.Parameter(points.new_empty(num_classes)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the coefficients uniformly in ``±1/sqrt(S)`` and set the bias to 0; the points stay."""
        bound = max(1, len(self.support)) ** -0.5
        nn.init.uniform_(self.coefficients, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """The scores."""
        check_features(features, self.in_features)
        rows = features.reshape(-1, self.in_features)
        if torch.is_grad_enabled() or len(rows) <= self.chunk:
            scores = self._expansion(rows)
        else:
            scores = torch.cat([self._expansion(part) for part in torch.split(rows, self.chunk)])
        scores = scores if self.bias is None else scores + self.bias
        return scores.reshape(*features.shape[:-1], self.num_classes)

    def _expansion(self, rows: Tensor) -> Tensor:
        """``K(x, x_i) alpha_i``, the block in the coefficients' dtype, which may be wider than the points'."""
        scores: Tensor = (
            self.kernel(as_wide_as(self.support, rows), self.support).to(self.coefficients.dtype) @ self.coefficients
        )
        return scores

    def class_norms(self) -> Tensor:
        r"""``|w_l| = sqrt(alpha_l^T K alpha_l)``, the norms of the weight vectors in feature space.

        Shape:
            the result ``(K)``.
        """
        squared = torch.zeros_like(self.coefficients[:1]).sum(0)
        for points, coefficients in zip(
            torch.split(self.support, self.chunk), torch.split(self.coefficients, self.chunk), strict=True
        ):
            squared = squared + (coefficients * self._expansion(points)).sum(0)
        return squared.clamp_min(0).sqrt()

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return (
            f"support={len(self.support)}, in_features={self.in_features}, num_classes={self.num_classes}, "
            f"bias={self.bias is not None}"
        )


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

    def __init__(
        self, landmarks: Tensor, kernel: str | Kernel | GramFunction, *, dtype: torch.dtype | None = None
    ) -> None:
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
        self.num_features = len(self.landmarks)

    def forward(self, features: Tensor) -> Tensor:
        """The features."""
        check_features(features, self.landmarks.shape[1])
        rows = features.reshape(-1, features.shape[-1])
        block = self.kernel(as_wide_as(self.landmarks, rows), self.landmarks)
        mapped: Tensor = block.to(self.root.dtype) @ self.root
        return mapped.reshape(*features.shape[:-1], self.num_features)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"landmarks={len(self.landmarks)}, num_features={self.num_features}"


def _inverse_root(matrix: Tensor, finest: torch.dtype) -> Tensor:
    """``L^{-T}`` with ``L L^T`` the matrix, plus a ridge of ten roundings in the dtype ``finest``, in which its entries
    were computed, so that repeated landmarks do no harm."""
    ridge = max(10 * torch.finfo(finest).eps, 1e-10) * matrix.diagonal().mean()
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
        super().__init__()
        check.whole("in_features", in_features)
        check.whole("num_features", num_features, least=2)
        check.generator(generator)
        check.positive("gamma", gamma)
        if num_features % 2:
            raise ValueError(f"num_features: got {num_features}; accepted is an even number, a cosine and a sine each")
        self.in_features, self.num_features, self.gamma = in_features, num_features, gamma
        drawn = torch.randn(in_features, num_features // 2, generator=generator, dtype=dtype)
        self.register_buffer("frequencies", drawn.to(device) * math.sqrt(2 * gamma))

    def forward(self, features: Tensor) -> Tensor:
        """The features."""
        check_features(features, self.in_features)
        angles = as_wide_as(self.frequencies, features) @ self.frequencies
        return torch.cat([angles.cos(), angles.sin()], -1) * math.sqrt(2 / self.num_features)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_features={self.num_features}, gamma={self.gamma:g}"


class _MappedScorer(nn.Module):
    """A linear scorer on explicit features."""

    def __init__(
        self,
        features: NystromFeatures | RandomFourierFeatures,
        num_classes: int,
        bias: bool,
        linear: LinearScorer | None = None,
    ) -> None:
        super().__init__()
        check.whole("num_classes", num_classes)
        if not isinstance(features, (NystromFeatures, RandomFourierFeatures)):
            raise TypeError(f"features: got {type(features).__name__}; accepted is a map, such as NystromFeatures")
        if linear is not None and (linear.in_features, linear.num_classes) != (features.num_features, num_classes):
            raise ValueError(
                f"linear: maps {linear.in_features} features to {linear.num_classes} scores; accepted is one from "
                f"{features.num_features} to {num_classes}"
            )
        self.features = features
        like = features.get_buffer("root" if isinstance(features, NystromFeatures) else "frequencies")
        self.linear = linear or LinearScorer(
            features.num_features, num_classes, bias, device=like.device, dtype=like.dtype
        )
        self.num_classes = num_classes

    def reset_parameters(self) -> None:
        """Reset the linear part; the features stay."""
        self.linear.reset_parameters()

    def forward(self, features: Tensor) -> Tensor:
        """The scores."""
        scores: Tensor = self.linear(self.features(features))
        return scores


class NystromScorer(_MappedScorer):
    r"""``f(x) = W L^{-1} K(Z, x) + b``, ``L L^T = K_ZZ``: a kernel expansion over a few landmarks ``Z``.

    Args:
        features: the map, `NystromFeatures`.
        num_classes: ``K``.
        bias: whether to learn ``b``.
        linear: the linear part, where there is one already.

    Shape:
        features ``(*, D)``; scores ``(*, K)``.

    Raises:
        ValueError: features whose last dimension is not ``D``.

    Reference: Williams and Seeger (2001), *Using the Nyström method to speed up kernel machines*.

    Example:
        >>> import torch
        >>> from torch_multiclass.kernels import Gaussian
        >>> features = NystromFeatures(torch.randn(20, 8), Gaussian(0.1))
        >>> NystromScorer(features, 3)(torch.randn(5, 8)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self, features: NystromFeatures, num_classes: int, bias: bool = True, linear: LinearScorer | None = None
    ) -> None:
        super().__init__(features, num_classes, bias, linear)


class RandomFourierScorer(_MappedScorer):
    """``f(x) = W phi(x) + b`` with random Fourier features of a Gaussian kernel.

    Args:
        in_features: ``D``.
        num_classes: ``K``.
        num_features: ``F``, even.
        gamma: of the Gaussian kernel, > 0.
        bias: whether to learn ``b``.
        generator: draws the frequencies.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; scores ``(*, K)``.

    Raises:
        ValueError: as `RandomFourierFeatures`.

    Reference: Rahimi and Recht (2007), *Random features for large-scale kernel machines*.

    Example:
        >>> import torch
        >>> RandomFourierScorer(8, 3, 64, gamma=0.1)(torch.randn(5, 8)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        num_features: int,
        gamma: float = 1.0,
        bias: bool = True,
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        features = RandomFourierFeatures(
            in_features, num_features, gamma, generator=generator, device=device, dtype=dtype
        )
        super().__init__(features, num_classes, bias)
