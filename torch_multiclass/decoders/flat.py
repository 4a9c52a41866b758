"""Decoding one label among K."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, Matrix, as_cost, trusted
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores import CodedScores, FlatScores, as_scores
from torch_multiclass.scores.flat import check_scores


class ArgmaxDecoder(Decoder):
    r"""The class of the largest score, ``\arg\max_y f_y``, the lowest among equals.

    Args:
        class_dim: the dimension of the scores that holds the classes.

    Shape:
        scores ``(*, K)``; labels ``(*)``.

    Raises:
        TypeError: scores that are not a dense floating-point tensor or `FlatScores`.
        ValueError: a ``class_dim`` that the scores do not have, or no class at all.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and (9.16).

    Example:
        >>> import torch
        >>> ArgmaxDecoder()(torch.tensor([[0.1, 0.7, 0.7]]))
        tensor([1])
    """

    reads = (FlatScores,)

    def __init__(self, class_dim: int = -1) -> None:
        super().__init__()
        self.class_dim = check.integer("class_dim", class_dim)

    def forward(self, scores: Tensor | FlatScores) -> Tensor:
        """The labels."""
        with unrecorded():
            return self._flat(scores).decode().labels

    def class_scores(self, scores: Tensor | FlatScores) -> Tensor:
        """The scores themselves, classes last."""
        return self._flat(scores).tensor

    def _flat(self, scores: Tensor | FlatScores) -> FlatScores:
        if isinstance(scores, CodedScores):
            raise TypeError(
                "scores: got CodedScores; accepted are a tensor (*, K) and FlatScores: of a head with a code "
                "head.predict_proba(scores).log(), or decoder.class_scores(scores) of a decoder of codes"
            )
        flat = as_scores(scores, self.class_dim)
        if not isinstance(flat, FlatScores):
            raise TypeError(f"scores: got {check.came(flat)}; accepted are a tensor (*, K) and FlatScores")
        check_scores(flat.values)
        return flat

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "" if self.class_dim == -1 else f"class_dim={self.class_dim}"


class ExpectedCostDecoder(ArgmaxDecoder):
    r"""The class of the lowest expected cost, ``\arg\min_{y'} \sum_y p_y L(y, y')``, ``p`` the soft-max of the scores.

    With zero-one costs it is `ArgmaxDecoder`. It is as good as the probabilities are: train by `CRFLoss`, and
    calibrate. A `Head` with this decoder hands it scores at the temperature that `Head.calibrate` found; of a head with
    a code, it takes ``head.predict_proba(scores).log()``. Costs that are known in training may go into a loss instead
    (``M3NLoss(cost=...)``), whose scores are then decoded by `ArgmaxDecoder`.

    Args:
        cost: ``L``, a name (``"zero_one"``), a ``(K, K)`` matrix with ``matrix[true, predicted]``, ``(*, K, K)``, one
            for each example, or a cost of `torch_multiclass.costs`.
        class_dim: the dimension of the scores that holds the classes.

    Shape:
        scores ``(*, K)``; labels ``(*)``; class scores, minus the expected costs, ``(*, K)``. The lowest class among
        equals; a class of score ``-inf`` is not chosen, however cheap.

    Raises:
        TypeError: scores that are not a dense floating-point tensor or `FlatScores`, a cost that is none.
        ValueError: a ``class_dim`` that the scores do not have, a cost of another number of classes or examples, with
            an entry that is negative or not finite, or not 0 on the diagonal.

    Reference: Elkan (2001), The foundations of cost-sensitive learning, (1).

    Example:
        >>> import torch
        >>> cost = [[0, 1, 1], [1, 0, 1], [9, 9, 0]]  # class 2 must not be missed
        >>> scores = torch.tensor([[0.6, 0.2, 0.2], [0.9, 0.08, 0.02]]).log()
        >>> ExpectedCostDecoder(cost)(scores), ArgmaxDecoder()(scores)
        (tensor([2, 0]), tensor([0, 0]))
        >>> ExpectedCostDecoder(cost).class_scores(scores)
        tensor([[-2.0000, -2.4000, -0.8000],
                [-0.2600, -1.0800, -0.9800]])
    """

    reads_probabilities = True

    def __init__(self, cost: str | Tensor | Sequence[Sequence[float]] | Cost, class_dim: int = -1) -> None:
        super().__init__(class_dim)
        self.cost = as_cost(cost)

    def forward(self, scores: Tensor | FlatScores) -> Tensor:
        """The labels."""
        with unrecorded():
            return FlatScores(self.class_scores(scores)).decode().labels

    def class_scores(self, scores: Tensor | FlatScores) -> Tensor:
        """Minus the expected cost of each class, classes last; ``-inf`` for a class of score ``-inf``."""
        values = self._flat(scores).tensor
        expected = self._expected(FlatScores(values.double()).marginals())
        return torch.where(values == -torch.inf, -torch.inf, -expected.to(values.dtype))

    def _expected(self, p: Tensor) -> Tensor:
        """The expected cost of each class by probabilities ``(*, K)`` of float64, or equals would differ by the order
        of their sums."""
        classes = torch.arange(p.shape[-1], device=p.device)
        one_each = isinstance(self.cost, Matrix) and self.cost.matrix.ndim > 2
        costs = trusted(self.cost).rows(classes.expand(p.shape) if one_each else classes, p.shape[-1], p.dtype)
        return (p.unsqueeze(-2) @ costs).squeeze(-2) if one_each else p @ costs
