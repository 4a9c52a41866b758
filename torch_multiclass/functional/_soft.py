"""Targets of structured losses that are not labels: sets of allowed labels, distributions, smoothed labels."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._reduction import Frame, Weight, prepare
from torch_multiclass.options import FRAME, known_keywords
from torch_multiclass.scores import Scores, as_scores
from torch_multiclass.scores._soft import (
    as_structured,
    cross_entropy,
    is_soft,
    read_distribution,
    read_sets,
    smoothed,
)

__all__ = ["check_smoothing", "is_soft", "prepare_any", "soft_losses"]


def prepare_any(
    of: Callable[..., object], scores: Tensor | Scores, target: Tensor, frame: Frame, weight: Weight = None
) -> tuple[Scores, Target]:
    """As `prepare`; a target of sets, ``(*, T, K)`` bool, too. Scores of one label become a sequence of one."""
    if not is_soft(target):
        return prepare(of, scores, target, frame)
    known_keywords(of, frame, FRAME)
    scored = as_scores(scores, frame.get("class_dim", -1))
    if target.ndim != _sites(scored) + 1:
        return prepare(of, scores, target, frame)  # which says what is wrong with it
    if target.is_floating_point():
        raise TypeError(
            f"target: a distribution over labels has no meaning for {of.__name__}, which compares with one labelling; "
            "accepted are labels and sets of allowed labels (bool); CRFLoss takes distributions"
        )
    _no_class_weight(weight)
    structured = as_structured(scored)
    return structured, read_sets(structured, _with_position(scored, target), frame.get("validate_args"))


def check_smoothing(label_smoothing: float) -> None:
    """Raise unless it is a share."""
    check.share("label_smoothing", label_smoothing)


def soft_losses(
    of: Callable[..., object],
    scores: Tensor | Scores,
    target: Tensor,
    temperature: float,
    label_smoothing: float,
    weight: Weight,
    frame: Frame,
) -> tuple[Tensor, Scores, Target]:
    """The cross-entropy of each example with a distribution or with smoothed labels, the scores, and what counts."""
    validate = frame.get("validate_args")
    _no_class_weight(weight)
    if is_soft(target) and target.ndim == _sites(scored := as_scores(scores, frame.get("class_dim", -1))) + 1:
        known_keywords(of, frame, FRAME)
        structured = as_structured(scored)
        if not target.is_floating_point() or label_smoothing:
            raise ValueError(
                f"label_smoothing: got {label_smoothing!r} with a target that is not of labels; accepted there is 0"
            )
        counted, share = read_distribution(structured, _with_position(scored, target), validate)
        return cross_entropy(structured, share, temperature), structured, counted
    scored, gold = prepare(of, scores, target, frame)
    structured = as_structured(scored)
    if structured is not scored:
        gold = Target(gold.labels.unsqueeze(-1), gold.kept.unsqueeze(-1), gold.complete)
    share = smoothed(structured, gold, label_smoothing, validate)
    return cross_entropy(structured, share, temperature, gold), structured, gold


def _sites(scores: Scores) -> int:
    """The number of dimensions of a labelling."""
    sites = getattr(scores, "sites", None)
    return len(scores.shape) - 1 if sites is None else len(sites)


def _with_position(scores: Scores, target: Tensor) -> Tensor:
    return target if hasattr(scores, "sites") else target.unsqueeze(-2)


def _no_class_weight(weight: Weight) -> None:
    if weight is not None:
        raise ValueError(
            "weight: a class weight has no meaning with sets, distributions or smoothed labels; accepted is "
            "sample_weight, a weight for each example"
        )
