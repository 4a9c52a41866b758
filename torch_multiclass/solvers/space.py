r"""Weight vectors in feature space, explicit or as kernel expansions, behind one set of verbs.

A weight (one vector for each output) is a tensor: ``(K, D)`` in `LinearSpace`; in `KernelSpace` ``(2, N, K)``, the
coefficients over the training rows and, since they are always wanted, the scores of those rows. Weights add and scale
as tensors do. A space works in its own precision, and knows its rows exactly as well, for certificates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy, deepcopy

import torch
from torch import Tensor, nn
from typing_extensions import Self

from torch_multiclass.kernels import Kernel, gram
from torch_multiclass.kernels.gram import gram_block, not_definite
from torch_multiclass.scorers.features import NystromFeatures
from torch_multiclass.scorers.kernel import KernelScorer, NystromScorer
from torch_multiclass.scorers.linear import LinearScorer

Machine = LinearScorer | KernelScorer | NystromScorer
"""What a weight becomes."""

_CERTIFY_ROWS = 1024


class Space(ABC):
    """A feature space with its training rows."""

    given: Tensor
    """The rows as they are exactly, in the dtype that a scorer is to have."""
    rows: int
    squared_norms: Tensor
    """``(N)``: ``|Phi(x_i)|^2``."""
    device: torch.device
    dtype: torch.dtype

    @abstractmethod
    def zero(self, outputs: int) -> Tensor:
        """The weight 0."""

    @abstractmethod
    def scores(self, weight: Tensor, rows: Tensor | None = None) -> Tensor:
        """``w_l · Phi(x_i)``: ``(N, K)``, or of the ``rows`` only."""

    @abstractmethod
    def image(self, alpha: Tensor, rows: Tensor | None = None) -> Tensor:
        """``w_l = sum_i alpha_{il} Phi(x_i)``, summed over all rows or over ``rows`` only."""

    @abstractmethod
    def class_products(self, left: Tensor, right: Tensor) -> Tensor:
        """``v_l · w_l`` of each output, in float64."""

    @abstractmethod
    def energy(self, alpha: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """``|sum_i alpha_i Phi(x_i)|^2`` over ``rows``, and what `shift` needs to add that sum to a weight."""

    @abstractmethod
    def shift(self, weight: Tensor, alpha: Tensor, rows: Tensor, direction: Tensor, scale: Tensor) -> None:
        """Add ``scale * sum_i alpha_i Phi(x_i)`` over ``rows`` to the weight, in place."""

    @abstractmethod
    def gram_matrix(self, rows: Tensor) -> Tensor:
        """The Gram matrix of the ``rows``."""

    @abstractmethod
    def gram_product(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        """The function ``P -> K_RR P`` for the Gram matrix of the ``rows``."""

    @abstractmethod
    def scale_classes(self, weight: Tensor, factors: Tensor) -> Tensor:
        """Each ``w_l`` times its factor."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers describe the rows."""

    @abstractmethod
    def widened(self) -> Space:
        """The same space in float64."""

    @abstractmethod
    def adopt(self, weight: Tensor) -> Tensor:
        """A weight of the same space in another precision."""

    @abstractmethod
    def exact(self, weight: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In float64 on the exact rows: a weight's scores ``(N, K)``, its ``|w_l|^2``, and the ``|v_l|^2`` of the image
        of ``alpha``. The weight may have any dtype, that of a scorer for one."""

    @abstractmethod
    def evaluated(self, weight: Tensor) -> Tensor:
        """The scores as a scorer that holds the weight computes them, in the weight's dtype."""

    @abstractmethod
    def scorer(self, weight: Tensor) -> Machine:
        """The scorer of a weight, in the weight's dtype."""

    def class_squares(self, weight: Tensor) -> Tensor:
        """``|w_l|^2`` of each output, in float64."""
        return self.class_products(weight, weight)

    def square(self, weight: Tensor) -> Tensor:
        """``sum_l |w_l|^2``, in float64."""
        return self.class_squares(weight).sum()


class WeightSpace(Space):
    """A space whose weights are written out, ``(K, D)``: what holds however the rows are stored."""

    @abstractmethod
    def _work_in(self, dtype: torch.dtype) -> None:
        """Hold the rows in the precision of the work."""

    def class_products(self, left: Tensor, right: Tensor) -> Tensor:
        return (left.double() * right.double()).sum(1)

    def energy(self, alpha: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        direction = self.image(alpha, rows)
        return direction.square().sum(), direction

    def shift(self, weight: Tensor, alpha: Tensor, rows: Tensor, direction: Tensor, scale: Tensor) -> None:
        weight.addcmul_(direction, scale)

    def scale_classes(self, weight: Tensor, factors: Tensor) -> Tensor:
        return weight * factors[:, None]

    def widened(self) -> Self:
        wide = copy(self)
        wide._work_in(torch.float64)
        return wide

    def adopt(self, weight: Tensor) -> Tensor:
        return weight.to(self.dtype)


class LinearSpace(WeightSpace):
    """``Phi(x) = x``, or an explicit map, the features being at hand.

    Args:
        features: the rows ``(N, D)``.
        dtype: of the work; by default the features'.
        bias: append the constant feature 1.
        mapped: what maps features to these rows.
    """

    def __init__(
        self,
        features: Tensor,
        dtype: torch.dtype | None = None,
        bias: bool = False,
        mapped: NystromFeatures | None = None,
    ) -> None:
        self.bias, self.mapped = bias, mapped
        self.given = torch.cat([features, features.new_ones(len(features), 1)], 1) if bias else features
        self._work_in(features.dtype if dtype is None else dtype)

    def _work_in(self, dtype: torch.dtype) -> None:
        self.features = self.given.to(dtype)
        self.rows, self.device, self.dtype = len(self.given), self.given.device, dtype
        self.squared_norms = torch.linalg.vector_norm(self.features, dim=1).square()
        self._latest: tuple[Tensor, Tensor] | None = None

    def _pick(self, rows: Tensor | None) -> Tensor:
        """The features of ``rows``; those asked for last are kept, since a step of ascent wants them twice."""
        if rows is None:
            return self.features
        if self._latest is None or self._latest[0] is not rows:
            self._latest = (rows, self.features.index_select(0, rows))
        return self._latest[1]

    def zero(self, outputs: int) -> Tensor:
        return self.features.new_zeros(outputs, self.features.shape[1])

    def scores(self, weight: Tensor, rows: Tensor | None = None) -> Tensor:
        return self._pick(rows) @ weight.mT

    def image(self, alpha: Tensor, rows: Tensor | None = None) -> Tensor:
        return alpha.mT @ self._pick(rows)

    def gram_matrix(self, rows: Tensor) -> Tensor:
        features = self._pick(rows)
        return features @ features.mT

    def gram_product(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        features = self._pick(rows)
        return lambda p: features @ (features.mT @ p)

    @property
    def size(self) -> int:
        return self.features.numel()

    def exact(self, weight: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        exact_weight, alpha = weight.double(), alpha.double()
        image, used = torch.zeros_like(exact_weight), (alpha != 0).any(1).nonzero().squeeze(1)
        for rows in torch.split(used, _CERTIFY_ROWS):
            image.addmm_(alpha[rows].mT, self.given[rows].double())
        scores = [part.double() @ exact_weight.mT for part in torch.split(self.given, _CERTIFY_ROWS)]
        return torch.cat(scores), exact_weight.square().sum(1), image.square().sum(1)

    def evaluated(self, weight: Tensor) -> Tensor:
        return torch.cat([part.to(weight.dtype) @ weight.mT for part in torch.split(self.given, _CERTIFY_ROWS)])

    def scorer(self, weight: Tensor) -> Machine:
        linear = linear_scorer(weight, self.bias)
        return linear if self.mapped is None else NystromScorer(self.mapped, len(weight), linear=linear)


def linear_scorer(weight: Tensor, bias: bool) -> LinearScorer:
    """The scorer of a weight ``(K, D)``, its last column being the bias where there is one."""
    check_weight(weight)
    inner = weight.shape[1] - bias
    scorer = LinearScorer(inner, len(weight), bias, device="meta", dtype=weight.dtype)  # nothing is drawn for it
    scorer.weight = nn.Parameter(weight[:, :inner].clone(memory_format=torch.contiguous_format))
    if bias:
        scorer.bias = nn.Parameter(weight[:, -1].clone())
    return scorer


def check_weight(weight: Tensor) -> None:
    """Raise where sums of rows, or their products, were too large for the numbers that the scorer is made of."""
    if not bool(weight.isfinite().all()):
        dtype = str(weight.dtype).removeprefix("torch.")
        raise ValueError(
            f"features: so large that the weights of these rows overflow {dtype}; accepted are smaller ones"
        )


class KernelSpace(Space):
    """``Phi`` known through the Gram matrix of the training rows.

    Args:
        kernel: ``K``.
        features: the rows ``(N, D)``.
        dtype: of the work; by default the features'.
        bias: add 1 to the kernel, a constant feature.
        limit: bytes that the Gram matrix may take.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: Tensor,
        dtype: torch.dtype | None = None,
        bias: bool = False,
        limit: int | None = None,
    ) -> None:
        self.kernel, self.given, self.bias, self.limit = kernel, features, bias, limit
        self.matrix = gram(kernel, features, limit=limit, dtype=dtype).add_(int(bias))
        self.rows, self.device, self.dtype = len(features), features.device, self.matrix.dtype
        self.squared_norms = self.matrix.diagonal().clone()

    def zero(self, outputs: int) -> Tensor:
        return self.matrix.new_zeros(2, self.rows, outputs)

    def scores(self, weight: Tensor, rows: Tensor | None = None) -> Tensor:
        return weight[1] if rows is None else weight[1].index_select(0, rows)

    def image(self, alpha: Tensor, rows: Tensor | None = None) -> Tensor:
        if rows is None:
            return torch.stack([alpha, self.matrix @ alpha])
        spread = alpha.new_zeros(self.rows, alpha.shape[1]).index_copy_(0, rows, alpha)
        return torch.stack([spread, self.matrix.index_select(0, rows).mT @ alpha])

    def class_products(self, left: Tensor, right: Tensor) -> Tensor:
        return (left[0].double() * right[1].double()).sum(0)

    def energy(self, alpha: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        block = self.matrix.index_select(0, rows)
        energy = (alpha * (block.index_select(1, rows) @ alpha)).sum()
        if float(energy) < -1e-4 * float((alpha.square().sum(1) * self.squared_norms[rows].abs()).sum()):
            raise not_definite(f"a combination of {len(rows)} rows has the squared length {float(energy):.3g}")
        return energy, block

    def shift(self, weight: Tensor, alpha: Tensor, rows: Tensor, direction: Tensor, scale: Tensor) -> None:
        scaled = alpha * scale
        weight[0].index_add_(0, rows, scaled)
        weight[1].addmm_(direction.mT, scaled)

    def gram_matrix(self, rows: Tensor) -> Tensor:
        return self.matrix.index_select(0, rows).index_select(1, rows)

    def gram_product(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        matrix = self.gram_matrix(rows)
        return lambda p: matrix @ p

    def scale_classes(self, weight: Tensor, factors: Tensor) -> Tensor:
        return weight * factors

    @property
    def size(self) -> int:
        return self.matrix.numel()

    def widened(self) -> KernelSpace:
        return KernelSpace(self.kernel, self.given, torch.float64, self.bias, self.limit)

    def adopt(self, weight: Tensor) -> Tensor:
        return self.image(weight[0].to(self.dtype))

    def exact(self, weight: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        coefficients, alpha = weight[0].double(), alpha.double()
        scores, images = self._products(torch.cat([coefficients, alpha], 1)).tensor_split(2, 1)
        squares, image_squares = (coefficients * scores).sum(0), (alpha * images).sum(0)
        if not self.bias:
            return scores, squares, image_squares
        offset = self.offset(weight).double()
        return scores + offset, squares + offset.square(), image_squares + alpha.sum(0).square()

    @staticmethod
    def offset(weight: Tensor) -> Tensor:
        """The weights of the constant feature, rounded as the coefficients are: a scorer's bias."""
        return weight[0].sum(0)

    def evaluated(self, weight: Tensor) -> Tensor:
        scores = self._blockwise(weight[0])
        return scores + self.offset(weight) if self.bias else scores

    def scorer(self, weight: Tensor) -> Machine:
        """An expansion over the support vectors; what the kernel learns is copied, so that it stays as certified."""
        coefficients = weight[0]
        support = (coefficients != 0).any(1)
        points = self.given[support]
        kernel = self.kernel.at(support.nonzero().squeeze(1))
        kernel = deepcopy(kernel) if any(True for _ in kernel.parameters()) else kernel
        points = points.to(weight.dtype) if kernel.any_dtype else points
        empty = torch.empty_like(points, device="meta")  # nothing is drawn for it
        scorer = KernelScorer(empty, coefficients.shape[1], kernel, bias=self.bias)
        scorer.support = points
        scorer.coefficients = nn.Parameter(coefficients[support].clone())
        if scorer.bias is not None:
            scorer.bias = nn.Parameter(self.offset(weight))
        return scorer

    def _products(self, coefficients: Tensor) -> Tensor:
        """The Gram matrix, without the constant feature, times ``coefficients``, in float64."""
        if self.dtype != torch.float64:
            return self._blockwise(coefficients)
        return self.matrix @ coefficients - coefficients.sum(0) * int(self.bias)

    def _blockwise(self, coefficients: Tensor) -> Tensor:
        """The same in the coefficients' dtype, the Gram matrix being computed anew."""
        used = (coefficients != 0).any(1).nonzero().squeeze(1)
        picked, points, dtype = coefficients[used], self.given[used], coefficients.dtype
        parts, kernel = torch.split(self.given, _CERTIFY_ROWS), self.kernel.at(used)
        return torch.cat([gram_block(kernel, part, points, dtype) @ picked for part in parts])
