"""What a head says of inputs that give an answer, and not the one that was meant."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scores import CodedScores, Scores
from torch_multiclass.scores._padded import Padded
from torch_multiclass.scores.structured import Structured

UNBALANCED = 5  # how many times the rarest class the most frequent one is, for that to be said
LISTED = 3  # places that a message names
FINITE = "accepted are numbers, as of features without NaN and of finite weights"


def refuse_nan(scores: Any, class_dim: int = -1, wanted: str = "label") -> None:
    """Raise where scores that may be read hold NaN at a place that counts."""
    where = nan_places(scores, class_dim)
    if where is not None:
        raise ValueError(f"scores: hold NaN{where}, for which there is no {wanted}; {FINITE}")


def warn_of_nan(scores: Any, class_dim: int = -1) -> None:
    """Say which scores hold NaN, where a loss is NaN and they do."""
    where = nan_places(scores, class_dim)
    if where is not None:
        warnings.warn(
            f"scores: hold NaN{where}, and so the loss is NaN; {FINITE}", UserWarning, stacklevel=check.caller()
        )


def warn_of_imbalance(counts: Tensor) -> None:
    """Say that of the first labels, so many of each class, the most frequent class drowns the rarest."""
    most, least = int(counts.max()), int(counts[counts > 0].min())
    if most >= UNBALANCED * (least + 3 * math.sqrt(least) + 3):  # beyond what few labels do by chance
        warnings.warn(
            f"target: of the first {int(counts.sum())} labels class {int(counts.argmax())} has {most} and class "
            f"{int(torch.where(counts > 0, counts, most).argmin())} {least}; a column of a code asks many classes, "
            'and rare ones are outvoted: consider weight="balanced" with head.balance(labels), or '
            'class_weight="balanced" of an estimator',
            UserWarning,
            stacklevel=check.caller(),
        )


def nan_places(scores: Any, class_dim: int = -1) -> str | None:
    """Which examples of scores that may be read hold NaN at a place that counts, in words; None where none does."""
    parts = [scores] if isinstance(scores, Tensor) else []
    if isinstance(scores, (Scores, CodedScores)):
        parts = [scores._lead(), *(part for part in [getattr(scores, "transitions", None)] if part is not None)]
    if not any(holds_nan(part) for part in parts):
        return None
    if isinstance(scores, Structured):  # what is masked may be anything
        rows = scores.detach().log_partition().isnan()
    else:
        rows = parts[0].isnan().any(class_dim if isinstance(scores, Tensor) else -1)
    return _of(rows) if bool(rows.any()) else None


def holds_nan(part: Tensor) -> bool:
    """Whether a tensor that may be read holds NaN or infinities of both signs: one pass, nothing kept."""
    return type(part) is Tensor and check.values_readable(part) and math.isnan(float(part.detach().sum()))


def _of(rows: Tensor) -> str:
    """Which examples, in words."""
    if rows.ndim == 0:
        return ""
    found = rows.nonzero()
    places = ", ".join(str(place[0] if len(place) == 1 else tuple(place)) for place in found[:LISTED].tolist())
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f" in example{'s' if len(found) > 1 else ''} {places}{more}"


def looks_padded(scores: Any, target: Any, ignored: int) -> bool | None:
    """Whether the ignored label stands at the ends of the rows of a target alone; None where it stands nowhere.

    Of scores of sequences without mask and lengths, whose values may be read.
    """
    plain = isinstance(scores, Padded) and scores.mask is None and getattr(scores, "lengths", None) is None
    if not plain or type(target) is not Tensor or target.ndim < 2 or not check.values_readable(target):
        return None
    known = (target != ignored) & (target != check.IGNORE)
    if bool(known.all()):
        return None
    return not bool((known[..., 1:] & ~known[..., :-1]).any())


def looks_inverted(scores: Any, target: Any, ignored: int) -> bool | None:
    """Whether every label of a target stands where the mask of the scores says there is nothing; None without labels
    or a mask, of values that may be read."""
    mask = getattr(scores, "mask", None)
    if not isinstance(mask, Tensor) or type(target) is not Tensor or target.shape != mask.shape:
        return None
    if not check.values_readable(target):
        return None
    known = (target != ignored) & (target != check.IGNORE)
    return not bool((known & mask).any()) if bool(known.any()) else None


def warn_of_inversion() -> None:
    """Say what was most likely turned round."""
    warnings.warn(
        "mask: no label of the target stands where it is True, so that nothing is trained; accepted is True where a "
        "position counts: mask=~padding_mask",
        UserWarning,
        stacklevel=check.caller(),
    )


def warn_of_padding() -> None:
    """Say what was most likely forgotten."""
    warnings.warn(
        "target: -100 stands only at the ends of its rows, and the scores have neither mask nor lengths: unknown "
        "labels there are summed over, and predicted. Where they are padding, give head(features, mask=target != -100) "
        "or lengths; where they are not known, mask=torch.ones(...) of bools says so",
        UserWarning,
        stacklevel=check.caller(),
    )


def warn_of_forbidden(scores: Structured, target: Tensor) -> None:
    """Name the places at which a target takes what the scores forbid, if it does."""
    with torch.no_grad():
        found = scores.forbidden(target).nonzero()
    if len(found) == 0:
        return
    sequences = len({tuple(place[:-1]) for place in found.tolist()})
    *rows, position = found[0].tolist()
    row = f"sequence {rows[0] if len(rows) == 1 else tuple(rows)}, " if rows else ""
    label = int(target[tuple(found[0])])
    before = int(target[(*rows, position - 1)]) if position else None
    after = "" if before is None or before < 0 else f" after {before}"
    warnings.warn(
        f"target: {row}position {position}: label {label}{after} is forbidden (a score of -inf), so that the loss is "
        f"inf; {len(found)} such place{'s' if len(found) > 1 else ''} in {sequences} of the sequences given, as "
        "scores.forbidden(target) marks them. Do the constraints have the scheme of the tags?",
        UserWarning,
        stacklevel=check.caller(),
    )
