"""Targets of structured losses that are not labels: sets of allowed labels, distributions, smoothed labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._reduction import Frame, Weight, asked_to_validate, class_weights, prepare
from torch_multiclass.options import FRAME, known_keywords
from torch_multiclass.scores import Scores, as_scores
from torch_multiclass.scores._soft import (
    as_structured,
    cross_entropy,
    is_soft,
    mixed,
    read_distribution,
    read_sets,
    smoothed,
)
from torch_multiclass.scores.multilabel import MultilabelScores
from torch_multiclass.scores.structured import Structured

__all__ = ["check_smoothing", "is_soft", "prepare_any", "soft_losses", "soft_target", "weighted"]


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
            "accepted are labels and sets of allowed labels (bool); CRFLoss and CodedLoss take distributions"
        )
    _no_class_weight(weight)
    structured = as_structured(scored)
    return structured, read_sets(structured, _with_position(scored, target, frame), asked_to_validate(frame))


def check_smoothing(label_smoothing: float) -> float:
    """The share as a number of Python's; raise unless it is one."""
    return check.share("label_smoothing", label_smoothing)


def soft_losses(
    of: Callable[..., object],
    scores: Tensor | Scores,
    target: Tensor,
    temperature: float,
    label_smoothing: float,
    weight: Weight,
    frame: Frame,
) -> tuple[Tensor, Scores, Target, Tensor | None]:
    """The cross-entropy of each example with a distribution or with what smooths it or a label, the scores, what
    counts, and what each example counts in the mean, None for 1.
    """
    validate = asked_to_validate(frame)
    scored, labels = as_scores(scores, frame.get("class_dim", -1)), None
    soft = is_soft(target)
    if isinstance(scored, MultilabelScores) and soft and target.is_floating_point() and target.ndim == _sites(scored):
        known_keywords(of, frame, FRAME)
        target = scored.distribution(target, validate)
    elif soft and target.ndim == _sites(scored) + 1:
        known_keywords(of, frame, FRAME)
        target = _with_position(scored, target, frame)
    else:
        scored, labels = prepare(of, scores, target, frame)
    structured = as_structured(scored)
    share, counted, known = soft_target(structured, target if labels is None else labels, label_smoothing, validate)
    if weight is None:
        return cross_entropy(structured, share, temperature, known), structured, counted, None
    if structured is scored:
        _no_class_weight(weight)
    share, mass, each = weighted(share, known, weight, structured, validate)
    losses = cross_entropy(structured, share, temperature, known)
    losses = torch.where(mass.squeeze(-1) == 0, 0.0, losses * mass.squeeze(-1).to(losses.dtype))
    return losses, structured, counted, None if each is None else each.squeeze(-1)


def soft_target(
    scores: Structured, target: Tensor | Target, label_smoothing: float, validate_args: bool | None
) -> tuple[Tensor, Target, Tensor | Target | None]:
    """A distribution at each position, what counts of it, and the labels or distribution that it smooths, if any."""
    if isinstance(target, Target):
        if target.labels.ndim < len(scores.sites):
            target = Target(target.labels.unsqueeze(-1), target.kept.unsqueeze(-1), target.complete)
        return smoothed(scores, target, label_smoothing, validate_args), target, target
    if not target.is_floating_point():
        raise ValueError(f"label_smoothing: got {label_smoothing!r} with sets of labels; accepted there is 0")
    target = target.unsqueeze(-2) if target.ndim <= len(scores.sites) else target
    counted, share = read_distribution(scores, target, validate_args)
    return (mixed(share, label_smoothing), counted, share) if label_smoothing else (share, counted, None)


def weighted(
    share: Tensor, known: Tensor | Target | None, weight: Weight, scores: Scores, validate_args: bool | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Distributions weighted by class, their mass, and the weight of the label that each smooths, which the mean
    divides by as `torch.nn.CrossEntropyLoss` does; None for 1, where they smooth no label.
    """
    weights = class_weights(weight, scores.num_classes, share, validate_args).to(share.dtype)
    heavy = share * weights
    mass = heavy.sum(-1)
    heavy = torch.where((mass != 0).unsqueeze(-1), heavy / mass.unsqueeze(-1), share)
    return heavy, mass, weights[known.labels] if isinstance(known, Target) else None


def _sites(scores: Scores) -> int:
    """The number of dimensions of a labelling."""
    sites = getattr(scores, "sites", None)
    return len(scores.shape) - 1 if sites is None else len(sites)


def _with_position(scores: Scores, target: Tensor, frame: Frame) -> Tensor:
    """A set or a distribution for each position, of which one label is one, with the classes last."""
    if hasattr(scores, "sites"):
        return target
    check.dense("target", target)
    class_dim, shape = frame.get("class_dim", -1), tuple(scores.shape)
    at = class_dim % len(shape)
    expected = (*shape[:-1][:at], shape[-1], *shape[:-1][at:])  # as they were given
    meaning = "a distribution over labels" if target.is_floating_point() else "a set of allowed labels"
    if tuple(target.shape) == (*expected[:at], 1, *expected[at + 1 :]) != expected:
        meaning = f"target.squeeze({class_dim}).long() where they are labels, or {meaning}"
    where = "" if at == len(shape) - 1 else f", its classes in dimension {class_dim} as those of the scores"
    check.shape("target", target, expected, f"{meaning} for each example{where}")
    return target.movedim(class_dim, -1).unsqueeze(-2)


def _no_class_weight(weight: Weight) -> None:
    if weight is not None:
        raise ValueError(
            "weight: a class weight has no meaning with sets, nor with distributions or smoothed labels of sequences; "
            "accepted is sample_weight, a weight for each example"
        )
