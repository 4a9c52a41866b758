"""The space of a kernel, known through the Gram matrix of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from torch_multiclass.kernels import Kernel, gram
from torch_multiclass.kernels.gram import gram_block, not_definite
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.solvers.space import CERTIFY_ROWS, Machine, Space


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
        parts, kernel = torch.split(self.given, CERTIFY_ROWS), self.kernel.at(used)
        return torch.cat([gram_block(kernel, part, points, dtype) @ picked for part in parts])
