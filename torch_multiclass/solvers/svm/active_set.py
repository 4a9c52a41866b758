"""The multipliers that a small move of the scores moves too, and what that does in feature space."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from torch_multiclass.solvers.space import LinearSpace, Space
from torch_multiclass.solvers.svm.duals import Hinge

_BLOCK = 2048


class ActiveSet:
    """The free coordinates ``c`` of projected multipliers, and ``Z``, its rows the ``T^T J e_c`` in feature space.

    ``J`` is the derivative of the projection; the losses' curvature is ``Z^T Z``.
    """

    def __init__(self, space: Space, hinge: Hinge, beta: Tensor) -> None:
        self.space, self.hinge = space, hinge
        mask = hinge.free(beta)
        self.rows = (mask > 0).any(1).nonzero().squeeze(1)
        self.mask = mask.index_select(0, self.rows)

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return int((self.mask > 0).sum())

    def curvature(self, scores: Tensor) -> Tensor:
        """``T^T J T`` of the rows' scores: how the multipliers answer to them."""
        hinge = self.hinge
        return hinge.adjoint(hinge.project_direction(hinge.differences(scores, self.rows), self.mask), self.rows)

    @cached_property
    def _effects(self) -> tuple[Tensor, Tensor]:
        """Each coordinate's row, within `rows`, and its ``T^T J e_c`` ``(C, K)``."""
        row, coordinate = self.mask.nonzero(as_tuple=True)
        unit = torch.nn.functional.one_hot(coordinate, self.mask.shape[1]).to(self.mask.dtype)
        moved = self.hinge.project_direction(unit, self.mask.index_select(0, row))
        return row, self.hinge.adjoint(moved, self.rows.index_select(0, row)).double()

    def gram(self) -> Tensor:
        """``Z Z^T``, in float64."""
        row, effect = self._effects
        matrix = self.space.gram_matrix(self.rows).double()
        return matrix.index_select(0, row).index_select(1, row).mul_(effect @ effect.mT)

    def products(self, scores: Tensor) -> Tensor:
        """``Z w`` from the rows' scores under ``w``, in float64."""
        row, effect = self._effects
        return (effect * scores.double().index_select(0, row)).sum(1)

    def coefficients(self, values: Tensor) -> Tensor:
        """The multipliers of the rows whose image is ``Z^T v``."""
        row, effect = self._effects
        total = effect.new_zeros(self.mask.shape).index_add_(0, row, effect * values[:, None])
        return total.to(self.mask.dtype)

    def second_moment(self, space: LinearSpace) -> Tensor:
        """``Z^T Z`` in float64, a block of coordinates at a time."""
        row, effect = self._effects
        rows = self.rows.index_select(0, row)
        size = effect.shape[1] * space.features.shape[1]
        total = effect.new_zeros(size, size)
        for part, chosen in zip(torch.split(effect, _BLOCK), torch.split(rows, _BLOCK), strict=True):
            features = space.features.index_select(0, chosen).double()
            z = (part[:, :, None] * features[:, None, :]).reshape(len(part), size)
            total.addmm_(z.mT, z)
        return total
