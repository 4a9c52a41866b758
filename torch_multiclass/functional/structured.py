r"""Losses over any scored structure, written in ``d(y) = s(y) - s(y*)``, the score relative to the gold labelling."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, named_cost
from torch_multiclass.functional._reduction import Frame, Weight, finish, priced
from torch_multiclass.functional._soft import check_smoothing, is_soft, prepare_any, soft_losses
from torch_multiclass.scores import Scores

CostLike = str | Tensor | Sequence[Sequence[float]] | Cost


def check_temperature(temperature: float) -> float:
    """The temperature as a number of Python's; raise unless a soft-max at it can be computed."""
    return check.temperature(
        temperature, " (towards 0 the loss tends to M3NLoss, and without a cost to StructuredPerceptronLoss)"
    )


def m3n_loss(
    scores: Tensor | Scores,
    target: Tensor,
    *,
    cost: CostLike | None = None,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Max-margin loss with an additive margin (margin rescaling), ``max_y [L(y*, y) + s(y) - s(y*)]``.

    See `torch_multiclass.M3NLoss`.

    Shape:
        scores ``(*, K)`` and target ``(*)``, or structured scores and their labelling; the result is a scalar, or one
        entry for each example with ``reduction="none"``.

    Example:
        >>> import torch
        >>> m3n_loss(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(0.8000)
    """
    scores, gold = prepare_any(m3n_loss, scores, target, frame, weight)
    cost = named_cost(scores.default_cost) if cost is None else priced(cost, frame)
    return finish(scores.margin_max(gold, cost), scores, gold, weight, sample_weight, reduction, frame)


def svmstruct_loss(
    scores: Tensor | Scores,
    target: Tensor,
    *,
    cost: CostLike | None = None,
    exact: bool = True,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Max-margin loss with a multiplicative margin (slack rescaling), ``max_y L(y*, y) [1 + s(y) - s(y*)]_+``.

    See `torch_multiclass.SVMStructLoss`.

    Shape:
        scores ``(*, K)`` and target ``(*)``, or structured scores and their labelling; the result is a scalar, or one
        entry for each example with ``reduction="none"``.

    Example:
        >>> import torch
        >>> svmstruct_loss(torch.tensor([[2.0, 1.5, 1.8]]), torch.tensor([0]), cost=[[0, 3, 1], [1, 0, 1], [1, 1, 0]])
        tensor(1.5000)
    """
    check.flag("exact", exact)
    scores, gold = prepare_any(svmstruct_loss, scores, target, frame, weight)
    cost = named_cost(scores.default_cost) if cost is None else priced(cost, frame)
    return finish(scores.slack_max(cost, gold, exact=exact), scores, gold, weight, sample_weight, reduction, frame)


def svmstruct_bounds(
    scores: Tensor | Scores,
    target: Tensor,
    *,
    cost: CostLike | None = None,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> tuple[Tensor, Tensor]:
    r"""A lower and an upper value of `svmstruct_loss`, for any cost; no gradient.

    On sequences by a search over ``L(y*, y) + \lambda d(y)`` for the corner of the upper hull of cost and score with
    the largest product: the lower value is attained by a labelling, the upper bounds every labelling.

    Shape:
        scores ``(*, K)`` and target ``(*)``, or structured scores and their labelling; two results ``(*)``, or scalars
        by ``reduction``.

    Raises:
        ValueError: labels outside ``0..K-1``, shapes that disagree, a cost that is negative or not 0 on the diagonal.

    Reference: Choi, Meshi and Srebro (2016), Fast and scalable structural SVM with slack rescaling.

    Example:
        >>> import torch
        >>> svmstruct_bounds(torch.tensor([[2.0, 1.5, 1.8]]), torch.tensor([0]), cost=[[0, 3, 1], [1, 0, 1], [1, 1, 0]])
        (tensor(1.5000), tensor(1.5000))
    """
    scores, gold = prepare_any(svmstruct_bounds, scores, target, frame, weight)
    cost = named_cost(scores.default_cost) if cost is None else priced(cost, frame)
    lower, upper = scores.slack_bounds(cost, gold)
    return finish(lower, scores, gold, weight, sample_weight, reduction, frame), finish(
        upper, scores, gold, weight, sample_weight, reduction, frame
    )


def crf_loss(
    scores: Tensor | Scores,
    target: Tensor,
    *,
    cost: CostLike | None = None,
    temperature: float = 1.0,
    label_smoothing: float = 0.0,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Soft-max loss, ``\tau \log \sum_y \exp((L(y*, y) + s(y) - s(y*)) / \tau)``.

    See `torch_multiclass.CRFLoss`.

    Shape:
        scores ``(*, K)`` and target ``(*)``, or structured scores and their labelling; the result is a scalar, or one
        entry for each example with ``reduction="none"``.

    Example:
        >>> import torch
        >>> crf_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))  # log 2
        tensor(0.6931)
    """
    temperature = check_temperature(temperature)
    if type(label_smoothing) is not float or label_smoothing:
        label_smoothing = check_smoothing(label_smoothing)
    if label_smoothing or (is_soft(target) and target.is_floating_point()):
        losses, scores, gold, each = soft_losses(crf_loss, scores, target, temperature, label_smoothing, weight, frame)
        if cost is not None:  # after what is wrong with the target itself
            raise ValueError("cost: has no meaning with a distribution over labels; accepted there is None")
        return finish(losses, scores, gold, None, sample_weight, reduction, frame, each)
    scores, gold = prepare_any(crf_loss, scores, target, frame, weight)
    losses = scores.margin_log_partition(gold, None if cost is None else priced(cost, frame), temperature)
    return finish(losses, scores, gold, weight, sample_weight, reduction, frame)


def structured_perceptron_loss(
    scores: Tensor | Scores,
    target: Tensor,
    *,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Perceptron loss, ``max_y s(y) - s(y*)``.

    See `torch_multiclass.StructuredPerceptronLoss`.

    Shape:
        scores ``(*, K)`` and target ``(*)``, or structured scores and their labelling; the result is a scalar, or one
        entry for each example with ``reduction="none"``.

    Example:
        >>> import torch
        >>> structured_perceptron_loss(torch.tensor([[2.0, 1.5]]), torch.tensor([1]))
        tensor(0.5000)
    """
    scores, gold = prepare_any(structured_perceptron_loss, scores, target, frame, weight)
    return finish(scores.margin_max(gold), scores, gold, weight, sample_weight, reduction, frame)
