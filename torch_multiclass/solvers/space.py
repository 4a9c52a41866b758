r"""Weight vectors in feature space, explicit or as kernel expansions, behind one set of verbs.

A weight (one vector for each output) is a tensor: ``(K, D)`` where weights are written out, ``(2, N, K)`` in
`KernelSpace`: the coefficients over the training rows and, since they are always wanted, the scores of those rows.
Weights add and scale as tensors do. A space works in its own precision, and knows its rows exactly as well, for
certificates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import Self

from torch_multiclass.scorers.features import NystromFeatures
from torch_multiclass.scorers.kernel import KernelScorer, NystromScorer
from torch_multiclass.scorers.linear import LinearScorer

Machine = LinearScorer | KernelScorer | NystromScorer
"""What a weight becomes."""

Bias = bool | Literal["free"]
"""No bias; one that is the weight of a constant feature 1; or one that the norm does not charge."""

CERTIFY_ROWS = 1024
"""Rows looked at together in float64."""


class Constant(NamedTuple):
    """The constant feature that a bias is the weight of."""

    value: float
    """0: there is none."""
    free: bool = False
    """Whether the norm leaves its weight out; the value then is the space's choice."""
    least: float = 0.0
    """The square of the value at least."""

    def beside(self, squares: Callable[[], Tensor]) -> Constant:
        """Of a free bias, about as long as rows of these squared lengths: a power of 2, so that nothing is rounded."""
        if not self.free:
            return self
        mean = max(float(squares().double().mean()), self.least)
        return self._replace(value=2.0 ** round(math.log2(mean) / 2) if 0 < mean < math.inf else 1.0)


NONE = Constant(0.0)
"""No bias."""


class Space(ABC):
    """A feature space with its training rows."""

    given: Tensor
    """The rows as they are exactly, in the dtype that a scorer is to have."""
    rows: int
    squared_norms: Tensor
    """``(N)``: ``|Phi(x_i)|^2``."""
    device: torch.device
    dtype: torch.dtype
    constant: Constant

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
    def bias_part(self, weight: Tensor) -> Tensor:
        """``(K)``: each ``w_l`` along the constant feature, where there is one: the bias over the feature's value."""

    @abstractmethod
    def along_bias(self, part: Tensor) -> Tensor:
        """The weight that is nothing but such a part ``(K)``."""

    @abstractmethod
    def saved(self, weight: Tensor) -> Tensor:
        """A weight as a report has it: ``(K, D)``, or ``(N, K)``, and a bias as it is."""

    @abstractmethod
    def restored(self, saved: Tensor) -> Tensor | None:
        """A weight that a report has; None where that is of other rows."""

    @abstractmethod
    def evaluated(self, weight: Tensor) -> Tensor:
        """The scores as a scorer that holds the weight computes them, in the weight's dtype."""

    @abstractmethod
    def scorer(self, weight: Tensor) -> Machine:
        """The scorer of a weight, in the weight's dtype."""

    def hidden(self, weight: Tensor) -> Tensor:
        """``(K)``: what rounding in float64 may hide of each ``|w_l|^2``, where it is found by sums that cancel."""
        return torch.zeros(len(weight), dtype=torch.float64, device=self.device)

    def shortened(self, weight: Tensor) -> Tensor:
        """The same weight without coefficients that make nothing, in the precision of the work."""
        return self.adopt(weight)

    def class_squares(self, weight: Tensor) -> Tensor:
        """``|w_l|^2`` of each output, in float64."""
        return self.class_products(weight, weight)

    def charged(self, weight: Tensor) -> Tensor:
        """The weight without a free bias."""
        return weight - self.along_bias(self.bias_part(weight)) if self.constant.free else weight

    def charged_squares(self, weight: Tensor) -> Tensor:
        """``|w_l|^2`` of each output as the norm sees them, in float64."""
        squares = self.class_squares(weight)
        return squares - self.bias_part(weight).double().square() if self.constant.free else squares

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

    def bias_part(self, weight: Tensor) -> Tensor:
        return weight[:, -1]

    def along_bias(self, part: Tensor) -> Tensor:
        weight = self.zero(len(part)).to(part)
        weight[:, -1] = part
        return weight

    def charged_squares(self, weight: Tensor) -> Tensor:
        return self.class_squares(weight[:, :-1] if self.constant.free else weight)

    def saved(self, weight: Tensor) -> Tensor:
        return torch.cat([weight[:, :-1], self.constant.value * weight[:, -1:]], 1) if self.constant.free else weight

    def restored(self, saved: Tensor) -> Tensor | None:
        weight = self.zero(len(saved))
        if saved.shape != weight.shape:
            return None
        weight.copy_(saved)
        if self.constant.free:
            weight[:, -1] /= self.constant.value
        return weight

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
        constant: a feature to append.
        mapped: what maps features to these rows.
    """

    def __init__(
        self,
        features: Tensor,
        dtype: torch.dtype | None = None,
        constant: Constant = NONE,
        mapped: NystromFeatures | None = None,
    ) -> None:
        self.mapped = mapped
        self.constant = constant.beside(lambda: torch.linalg.vector_norm(features, dim=1).square())
        column = features.new_full((len(features), 1), self.constant.value)
        self.given = torch.cat([features, column], 1) if self.constant.value else features
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
        for rows in torch.split(used, CERTIFY_ROWS):
            image.addmm_(alpha[rows].mT, self.given[rows].double())
        scores = [part.double() @ exact_weight.mT for part in torch.split(self.given, CERTIFY_ROWS)]
        return torch.cat(scores), self.charged_squares(exact_weight), self.charged_squares(image)

    def evaluated(self, weight: Tensor) -> Tensor:
        return torch.cat([part.to(weight.dtype) @ weight.mT for part in torch.split(self.given, CERTIFY_ROWS)])

    def scorer(self, weight: Tensor) -> Machine:
        linear = linear_scorer(self.saved(weight), self.constant.value != 0)
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
