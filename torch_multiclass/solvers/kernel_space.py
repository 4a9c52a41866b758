"""The space of a kernel, known through the Gram matrix of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property

import torch
from torch import Tensor, nn

from torch_multiclass.kernels import Kernel, gram
from torch_multiclass.kernels.gram import gram_block, not_definite
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.solvers.space import CERTIFY_ROWS, NONE, Constant, Machine, Space

_MOST = 2000  # rows up to which the directions of their Gram matrix are looked for
_SAME = 1e-10  # share of the largest eigenvalue below which a direction makes nothing


class KernelSpace(Space):
    """``Phi`` known through the Gram matrix of the training rows.

    A free bias is a row more of a weight: below the coefficients stands the whole of its `bias_part`, and 0 below the
    scores.

    Args:
        kernel: ``K``.
        features: the rows ``(N, D)``.
        dtype: of the work; by default the features'.
        constant: a feature whose square is added to the kernel.
        limit: bytes that the Gram matrix may take.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: Tensor,
        dtype: torch.dtype | None = None,
        constant: Constant = NONE,
        limit: int | None = None,
    ) -> None:
        self.kernel, self.given, self.limit = kernel, features, limit
        self.constant = constant.beside(lambda: kernel.diagonal(features))
        self.matrix = gram(kernel, features, limit=limit, dtype=dtype).add_(self.constant.value**2)
        self.rows, self.device, self.dtype = len(features), features.device, self.matrix.dtype
        self.squared_norms = self.matrix.diagonal().clone()

    def zero(self, outputs: int) -> Tensor:
        return self.matrix.new_zeros(2, self.rows + self.constant.free, outputs)

    def scores(self, weight: Tensor, rows: Tensor | None = None) -> Tensor:
        return weight[1, : self.rows] if rows is None else weight[1].index_select(0, rows)

    def image(self, alpha: Tensor, rows: Tensor | None = None) -> Tensor:
        if rows is None:
            coefficients, scores = alpha, self.matrix @ alpha
        else:
            coefficients = alpha.new_zeros(self.rows, alpha.shape[1]).index_copy_(0, rows, alpha)
            scores = self.matrix.index_select(0, rows).mT @ alpha
        return torch.stack([coefficients, scores]) if not self.constant.free else self._joined(coefficients, scores)

    def _joined(self, coefficients: Tensor, scores: Tensor, part: Tensor | None = None) -> Tensor:
        """The weight with a row for its free bias, by default what the coefficients make of it."""
        part = self.constant.value * coefficients.sum(0) if part is None else part
        below = torch.stack([part, torch.zeros_like(part)])[:, None]
        return torch.cat([torch.stack([coefficients, scores]), below], 1)

    def class_products(self, left: Tensor, right: Tensor) -> Tensor:
        products = (left[0, : self.rows].double() * right[1, : self.rows].double()).sum(0)
        if not self.constant.free:
            return products
        # the coefficients have made a part of what is along the bias, and the scores know of the whole
        beside = self.bias_part(left).double() - self.constant.value * left[0, : self.rows].double().sum(0)
        return products + beside * self.bias_part(right).double()

    def bias_part(self, weight: Tensor) -> Tensor:
        return weight[0, self.rows] if self.constant.free else self.constant.value * weight[0].sum(0)

    def along_bias(self, part: Tensor) -> Tensor:
        zero = part.new_zeros(self.rows, len(part))
        return self._joined(zero, zero + self.constant.value * part, part)

    def energy(self, alpha: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        block = self.matrix.index_select(0, rows)
        energy = (alpha * (block.index_select(1, rows) @ alpha)).sum()
        if float(energy) < -1e-4 * float((alpha.square().sum(1) * self.squared_norms[rows].abs()).sum()):
            raise not_definite(f"a combination of {len(rows)} rows has the squared length {float(energy):.3g}")
        return energy, block

    def shift(self, weight: Tensor, alpha: Tensor, rows: Tensor, direction: Tensor, scale: Tensor) -> None:
        scaled = alpha * scale
        weight[0].index_add_(0, rows, scaled)
        weight[1, : self.rows].addmm_(direction.mT, scaled)
        if self.constant.free:
            weight[0, self.rows].add_(scaled.sum(0), alpha=self.constant.value)

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
        return KernelSpace(self.kernel, self.given, torch.float64, self.constant, self.limit)

    def adopt(self, weight: Tensor) -> Tensor:
        return self._of_coefficients(weight[0].to(self.dtype))

    def _of_coefficients(self, column: Tensor) -> Tensor:
        """The weight of coefficients, with its free bias below them."""
        if not self.constant.free:
            return self.image(column)
        image = self.image(column[: self.rows])
        return image + self.along_bias(column[self.rows] - self.bias_part(image))

    def hidden(self, weight: Tensor) -> Tensor:
        lengths = self.squared_norms.double().clamp_min(0).sqrt()
        return torch.finfo(torch.float64).eps * (lengths @ weight[0, : self.rows].double().abs()).square()

    def shortened(self, weight: Tensor) -> Tensor:
        if self.rows > _MOST or self._directions.shape[1] == self.rows:
            return self.adopt(weight)
        kept, (coefficients, below) = self._directions, weight[0].double().tensor_split([self.rows])
        return self.adopt(torch.cat([kept @ (kept.mT @ coefficients), below])[None])

    @cached_property
    def _directions(self) -> Tensor:
        """Those in which coefficients make something."""
        values, vectors = torch.linalg.eigh(self.matrix.double())
        kept: Tensor = vectors[:, values > _SAME * values[-1]]
        return kept

    def saved(self, weight: Tensor) -> Tensor:
        column = weight[0].clone()
        column[self.rows :] *= self.constant.value
        return column

    def restored(self, saved: Tensor) -> Tensor | None:
        if saved.shape != (self.rows + self.constant.free, saved.shape[-1]):
            return None
        column = saved.to(self.matrix)
        return self._of_coefficients(torch.cat([column[: self.rows], column[self.rows :] / self.constant.value]))

    def exact(self, weight: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        coefficients, alpha = weight[0, : self.rows].double(), alpha.double()
        scores, images = self._products(torch.cat([coefficients, alpha], 1)).tensor_split(2, 1)
        squares, image_squares = (coefficients * scores).sum(0), (alpha * images).sum(0)
        if not self.constant.value:
            return scores, squares, image_squares
        offset = self.offset(weight).double()
        if self.constant.free:
            return scores + offset, squares, image_squares
        return scores + offset, squares + offset.square(), image_squares + alpha.sum(0).square()

    def offset(self, weight: Tensor) -> Tensor:
        """A scorer's bias: of the constant feature's weights, rounded as the coefficients are."""
        return self.constant.value * self.bias_part(weight)

    def evaluated(self, weight: Tensor) -> Tensor:
        scores = self._blockwise(weight[0, : self.rows])
        return scores + self.offset(weight) if self.constant.value else scores

    def scorer(self, weight: Tensor) -> Machine:
        """An expansion over the support vectors; what the kernel learns is copied, so that it stays as certified."""
        coefficients = weight[0, : self.rows]
        support = (coefficients != 0).any(1)
        points = self.given[support]
        kernel = self.kernel.at(support.nonzero().squeeze(1))
        kernel = deepcopy(kernel) if any(True for _ in kernel.parameters()) else kernel
        points = points.to(weight.dtype) if kernel.any_dtype else points
        empty = torch.empty_like(points, device="meta")  # nothing is drawn for it
        scorer = KernelScorer(empty, coefficients.shape[1], kernel, bias=self.constant.value != 0)
        scorer.support = points
        scorer.coefficients = nn.Parameter(coefficients[support].clone())
        if scorer.bias is not None:
            scorer.bias = nn.Parameter(self.offset(weight))
        return scorer

    def _products(self, coefficients: Tensor) -> Tensor:
        """The Gram matrix, without the constant feature, times ``coefficients``, in float64."""
        if self.dtype != torch.float64:
            return self._blockwise(coefficients)
        return self.matrix @ coefficients - coefficients.sum(0) * self.constant.value**2

    def _blockwise(self, coefficients: Tensor) -> Tensor:
        """The same in the coefficients' dtype, the Gram matrix being computed anew."""
        used = (coefficients != 0).any(1).nonzero().squeeze(1)
        picked, points, dtype = coefficients[used], self.given[used], coefficients.dtype
        parts, kernel = torch.split(self.given, CERTIFY_ROWS), self.kernel.at(used)
        return torch.cat([gram_block(kernel, part, points, dtype) @ picked for part in parts])
