"""The space of sparse features, of which no dense copy is made."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.ops.sparse_rows import row_of_entries, take_rows, transposed
from torch_multiclass.solvers.space import NONE, Constant, Machine, WeightSpace, linear_scorer

_ROWS = 128  # written out at a time


class SparseSpace(WeightSpace):
    """``Phi(x) = x`` of the rows of a CSR matrix; weights are dense, ``(K, D)``, the bias being their last column.

    Args:
        features: the rows ``(N, D)``, CSR.
        dtype: of the work.
        constant: a feature to append.
    """

    def __init__(self, features: Tensor, dtype: torch.dtype, constant: Constant = NONE) -> None:
        self.given = features
        self.constant = constant.beside(lambda: self._squares(features))
        self._work_in(dtype)

    @staticmethod
    def _squares(features: Tensor) -> Tensor:
        """``|x_i|^2``."""
        squares = features.values().square()
        return squares.new_zeros(features.shape[0]).index_add_(0, row_of_entries(features), squares)

    def _work_in(self, dtype: torch.dtype) -> None:
        self.features = self.given.to(dtype)
        self._columns = transposed(self.features)
        self.rows, self.width = self.given.shape
        self.device, self.dtype = self.given.device, dtype
        self.squared_norms = self._squares(self.features) + self.constant.value**2
        self._latest: tuple[Tensor, Tensor] | None = None

    def _pick(self, rows: Tensor | None) -> Tensor:
        """The features of ``rows``; those asked for last are kept."""
        if rows is None:
            return self.features
        if self._latest is None or self._latest[0] is not rows:
            self._latest = (rows, take_rows(self.features, rows))
        return self._latest[1]

    def _scores(self, features: Tensor, weight: Tensor) -> Tensor:
        scores = features @ weight[:, : self.width].mT.contiguous()
        return scores + self.constant.value * weight[:, -1] if self.constant.value else scores

    def _image(self, columns: Tensor, alpha: Tensor) -> Tensor:
        image = (columns @ alpha.contiguous()).mT
        return torch.cat([image, self.constant.value * alpha.sum(0)[:, None]], 1) if self.constant.value else image

    def zero(self, outputs: int) -> Tensor:
        return torch.zeros(outputs, self.width + (self.constant.value != 0), dtype=self.dtype, device=self.device)

    def scores(self, weight: Tensor, rows: Tensor | None = None) -> Tensor:
        return self._scores(self._pick(rows), weight)

    def image(self, alpha: Tensor, rows: Tensor | None = None) -> Tensor:
        if rows is not None:
            alpha = alpha.new_zeros(self.rows, alpha.shape[1]).index_copy_(0, rows, alpha)
        return self._image(self._columns, alpha)

    def gram_matrix(self, rows: Tensor) -> Tensor:
        features = self._pick(rows)
        every = torch.arange(len(rows), device=self.device)
        parts = [features @ take_rows(features, part).to_dense().mT for part in torch.split(every, _ROWS)]
        return torch.cat(parts, 1) + self.constant.value**2

    def gram_product(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        features = take_rows(self.features, rows)
        columns = transposed(features)

        def product(p: Tensor) -> Tensor:
            answer: Tensor = features @ (columns @ p.contiguous())
            return answer + self.constant.value**2 * p.sum(0) if self.constant.value else answer

        return product

    @property
    def size(self) -> int:
        return self.features.values().numel()

    def exact(self, weight: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, weight = self.given.double(), weight.double()
        image = self._image(transposed(features), alpha.double())
        return self._scores(features, weight), self.charged_squares(weight), self.charged_squares(image)

    def evaluated(self, weight: Tensor) -> Tensor:
        return self._scores(self.given.to(weight.dtype), weight)

    def scorer(self, weight: Tensor) -> Machine:
        return linear_scorer(self.saved(weight), self.constant.value != 0)
