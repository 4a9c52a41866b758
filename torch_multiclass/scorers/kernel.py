"""Scores that are kernel expansions, exact or approximated by explicit features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.kernels import GramFunction, Kernel, as_kernel
from torch_multiclass.kernels.gram import gram_block
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features
from torch_multiclass.scorers.features import NystromFeatures, RandomFourierFeatures
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scores import FlatScores


class KernelScorer(Scorer):
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

    gives = FlatScores

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
        factory(device, dtype)
        super().__init__()
        check.floating("support", support)
        if support.ndim != 2:
            raise ValueError(f"support: got shape {tuple(support.shape)}; accepted is (S, D), one point a row")
        num_classes = check.whole("num_classes", num_classes)
        chunk = check.whole("chunk", chunk)
        check.flag("bias", bias)
        check.flag("learn_support", learn_support)
        if device is not None and torch.device(device).type != "meta":
            check.with_values("support", support)
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
        check_features(features, self.in_features, sparse=False)
        rows = features.reshape(-1, self.in_features)
        if torch.is_grad_enabled() or len(rows) <= self.chunk:
            scores = self._expansion(rows)
        else:
            scores = torch.cat([self._expansion(part) for part in torch.split(rows, self.chunk)])
        scores = scores if self.bias is None else scores + self.bias
        return scores.reshape(*features.shape[:-1], self.num_classes)

    def _expansion(self, rows: Tensor) -> Tensor:
        """``K(x, x_i) alpha_i``, the block in the coefficients' dtype, which may be wider than the points'."""
        wide, points = upcast(self.coefficients), as_wide_as(self.support, rows)
        block = gram_block(self.kernel, points, self.support, upcast(self.support).dtype)
        scores = block.to(wide.dtype) @ wide
        return scores if wide is self.coefficients else scores.to(self.coefficients.dtype)

    def class_norms(self) -> Tensor:
        r"""``|w_l| = sqrt(alpha_l^T K alpha_l)``, the norms of the weight vectors in feature space.

        Shape:
            the result ``(K)``.
        """
        wide = upcast(self.coefficients)  # in half precision K overflows, and infinity less infinity is no norm
        support = self.support.to(torch.promote_types(self.support.dtype, wide.dtype))
        squared = torch.zeros_like(wide[:1]).sum(0)
        for points, coefficients in zip(torch.split(support, self.chunk), torch.split(wide, self.chunk), strict=True):
            squared = squared + (coefficients * (self.kernel(points, support).to(wide) @ wide)).sum(0)
        positive = squared > 0  # the slope of the root at 0 is infinite
        norms = torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0 * squared)
        return norms.to(self.coefficients.dtype)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return (
            f"support={len(self.support)}, in_features={self.in_features}, num_classes={self.num_classes}, "
            f"bias={self.bias is not None}"
        )


class _MappedScorer(Scorer):
    """A linear scorer on explicit features."""

    gives = FlatScores

    def __init__(
        self,
        features: NystromFeatures | RandomFourierFeatures,
        num_classes: int,
        bias: bool,
        linear: LinearScorer | None = None,
    ) -> None:
        super().__init__()
        num_classes = check.whole("num_classes", num_classes)
        if not isinstance(features, (NystromFeatures, RandomFourierFeatures)):
            raise TypeError(f"features: got {check.came(features)}; accepted is a map, such as NystromFeatures")
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
        self.in_features, self.num_classes = features.in_features, num_classes

    def reset_parameters(self) -> None:
        """Reset the linear part; the features stay."""
        self.linear.reset_parameters()

    def forward(self, features: Tensor) -> Tensor:
        """The scores."""
        scores: Tensor = self.linear(self.features(features))
        return scores

    def class_norms(self) -> Tensor:
        """``|w_l|`` in the space of the explicit features, ``(K,)``."""
        return self.linear.class_norms()


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
