"""Targets that are not one label for each position: sets of allowed labels, and distributions over labels."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.scores._potentials import or_infinite
from torch_multiclass.scores.base import Scores
from torch_multiclass.scores.chain import ChainScores
from torch_multiclass.scores.flat import FlatScores
from torch_multiclass.scores.structured import Structured

__all__ = ["as_structured", "cross_entropy", "is_soft", "mixed", "read_distribution", "read_sets", "smoothed"]

SUMS_TO_ONE = 1e-2
"""How far from 1 the sum of a distribution may be: what bfloat16 makes of 1."""


def is_soft(target: object) -> bool:
    """Whether a target is of a dtype that labels do not have."""
    return isinstance(target, Tensor) and (target.dtype == torch.bool or target.is_floating_point())


def as_structured(scores: Scores) -> Structured:
    """Scores of one label as a sequence of one position."""
    if isinstance(scores, Structured):
        return scores
    if not isinstance(scores, FlatScores):
        raise TypeError(
            f"target: a set or a distribution has no meaning with {type(scores).__name__}; accepted are labels"
        )
    values = scores.tensor
    return ChainScores(values.unsqueeze(-2), values.new_zeros(values.shape[-1], values.shape[-1]))


def _whole(scores: Structured, target: Tensor, meaning: str) -> tuple[int, ...]:
    shape = (*scores.sites, scores.num_classes)
    check.dense("target", target)
    check.shape("target", target, shape, meaning)
    check.same_device("target", target, "scores", scores._lead())
    return shape


def _counted(scores: Structured) -> Tensor:
    counted = scores._counted()
    return torch.ones(scores.sites, dtype=torch.bool, device=scores.device) if counted is None else counted


def read_sets(scores: Structured, target: Tensor, validate_args: bool | None = None) -> Target:
    """The target behind sets of allowed labels, ``(*, T, K)`` bool, which stand in the place of its labels.

    A position carries a label unless its set is everything.
    """
    _whole(scores, target, "a set of allowed labels for each position")
    counted = _counted(scores)
    if check.values_readable(target, validate_args) and bool((counted & ~target.any(-1)).any()):
        at = (counted & ~target.any(-1)).nonzero()[0].tolist()
        raise ValueError(f"target: no label is allowed at {at}; accepted are sets of at least one label")
    target = target | ~counted.unsqueeze(-1)
    return Target(target, ~target.all(-1), False)


def read_distribution(scores: Structured, target: Tensor, validate_args: bool | None = None) -> tuple[Target, Tensor]:
    """What counts of a distribution over labels, ``(*, T, K)``, and itself; where it is all 0, nothing is known."""
    _whole(scores, target, "a distribution over labels for each position")
    counted = _counted(scores)
    share = torch.where(counted.unsqueeze(-1), target.to(work_dtype(target.dtype)), 0.0)
    total = share.sum(-1)
    if check.values_readable(target, validate_args):
        if bool((share < 0).any() | ~share.isfinite().all()):
            raise ValueError("target: has an entry that is negative or not finite; accepted are probabilities")
        wrong = counted & (total != 0) & ((total - 1).abs() > SUMS_TO_ONE)
        if bool(wrong.any()):
            raise ValueError(
                f"target: the entries of a position add up to {float(total[wrong][0]):g}; accepted are distributions "
                "over labels, which add up to 1, and zeros where nothing is known of any position"
            )
    kept = counted & (total != 0)
    return Target(torch.zeros_like(kept, dtype=torch.long), kept, False), _known(scores, share, kept, validate_args)


def smoothed(scores: Structured, target: Target, amount: float, validate_args: bool | None = None) -> Tensor:
    """``(1 - amount)`` for the label and ``amount / K`` for every label, ``(*, T, K)``."""
    only = target.labels.unsqueeze(-1) == torch.arange(scores.num_classes, device=target.labels.device)
    return _known(scores, mixed(only.to(work_dtype(scores.dtype)), amount), target.kept, validate_args)


def mixed(share: Tensor, amount: float) -> Tensor:
    """``(1 - amount) share + amount / K``, ``(*, T, K)``."""
    return (1 - amount) * share + amount / share.shape[-1]


def _known(scores: Structured, share: Tensor, kept: Tensor, validate_args: bool | None) -> Tensor:
    """The distribution; NaN where others of its row are known and it is not, or an error."""
    missing = _counted(scores) & ~kept & kept.any(-1, keepdim=True)
    if check.values_readable(missing, validate_args) and bool(missing.any()):
        raise ValueError(
            f"target: nothing is known at {missing.nonzero()[0].tolist()}, which counts; accepted are distributions at "
            "every position, or a mask or lengths that take it out (labels that are not known are summed out where "
            "the target is one of labels or of sets, without smoothing)"
        )
    return torch.where(missing.unsqueeze(-1), torch.nan, share)


def cross_entropy(
    scores: Structured, share: Tensor, temperature: float = 1.0, known: Tensor | Target | None = None
) -> Tensor:
    r"""``\tau \log \sum_y \exp(s(y) / \tau) - E_q s``, ``(*)``, for labels drawn independently at each position.

    Everything is measured from the expected score, term by term, so that nothing large cancels. Where the distribution
    meets what is forbidden the value is ``+inf``; where it smooths what is ``known``, where that does, and of the rest
    the mean is that of what is not forbidden.

    Args:
        scores: of labellings.
        share: ``(*, T, K)``, a distribution at each position that counts.
        temperature: ``\tau``.
        known: labels, or a distribution over them, that have to be possible.
    """
    record = scores._all(scores._level_all(scores._level(scores.raw)))
    if not hasattr(record, "expected") or not hasattr(getattr(record, "record", record), "expected"):
        raise TypeError(
            f"target: a distribution over labels has no meaning with {type(scores).__name__}, where labels drawn one "
            "by one make no labelling; accepted are labels and sets of allowed labels, without smoothing"
        )
    share = scores._rows(share, 2)
    terms = record.expected(share.to(work_dtype(scores.dtype)))
    if known is not None:
        terms = terms.allowed()
    dead = (terms.forbidden > 0).any(1)
    if isinstance(known, Target):
        dead |= (record.terms(scores._rows(known.labels, 1).unsqueeze(1)).squeeze(1) == -torch.inf).any(1)
    elif known is not None:
        dead |= (record.expected(scores._rows(known, 2).to(share.dtype)).forbidden > 0).any(1)
    if scores.sites[-1]:
        for part in record.by_position(terms.means):
            record = record.plus(-part.unsqueeze(2))
    value = record.log_partition() if temperature == 1 else temperature * record.times(1 / temperature).log_partition()
    possible = value != -torch.inf
    value = torch.where(possible, value.clamp(min=0), 0.0)
    return or_infinite(value, dead | ~possible).view(scores.batch_shape)
