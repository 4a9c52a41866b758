"""Labels: the one check of a target, and what it makes of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass.checks.tensors import integers, same_device, shape, signed
from torch_multiclass.checks.values import IGNORE, values_readable

USUALLY_IGNORED = (-1, 255)
"""What others write where there is no label."""


def class_indices(name: str, target: Tensor) -> None:
    """Raise unless ``target`` holds integers."""
    integers(name, target, "class indices")


class Target(NamedTuple):
    """Labels that were checked once, at the door, and that every verb trusts."""

    labels: Tensor
    """int64, safe to index with: 0 where no label is known."""
    kept: Tensor
    """bool: where a label is known at a position that counts."""
    complete: bool
    """Whether every position that counts is known to have a label; False where that was not read."""


def usual_labels(
    name: str, given: Tensor, shape: tuple[int, ...], num_classes: int, like: Tensor, validate_args: bool | None
) -> Target | None:
    """What `labels` makes of them where they are int64 and count everywhere, in few steps; None where it is to look."""
    if type(given) is not Tensor or given.dtype != torch.int64 or given.is_nested or given.shape != shape:
        return None
    if given.device != like.device:
        return None
    if given.layout != torch.strided or not values_readable(given, validate_args) or given.numel() == 0:
        return None
    if given.is_cpu:  # NumPy's calls cost less than torch's
        values = given.numpy()
        if all_labels(values, num_classes):
            return Target(given, torch.from_numpy(np.ones(values.shape, bool)), True)
        known = torch.from_numpy(np.asarray(values != IGNORE))
    else:
        known = given != IGNORE
    complete = label_range(name, given, num_classes, known, validate_args, ignorable=True)
    return Target(given if complete else torch.where(known, given, 0), known, complete)


def labels(
    name: str,
    given: Tensor,
    shape_and_meaning: tuple[tuple[int, ...], str],
    num_classes: int,
    like: tuple[str, Tensor],
    *,
    counts: Tensor | None = None,
    ignore_index: int = IGNORE,
    validate_args: bool | None = None,
) -> Target:
    """The target behind labels of that shape, on the device of ``like``, in ``0..num_classes-1`` where they count.

    Args:
        name: of the argument.
        given: labels; ``ignore_index`` and -100 mark those that are not known.
        shape_and_meaning: what `shape` takes.
        num_classes: ``K``.
        like: name and tensor that the labels have to share their device with.
        counts: where a label counts, None for everywhere.
        ignore_index: the label that marks "no label here".
        validate_args: whether the values are read.
    """
    if not _usual(given, shape_and_meaning[0], like[1]):  # what most calls bring needs no more than one look
        class_indices(name, given)
        shape(name, given, *shape_and_meaning)
        same_device(name, given, *like)
        given = given.long()
    known = given != IGNORE
    if ignore_index != IGNORE:
        known = known & (given != ignore_index)
    kept = known if counts is None else known & counts
    inside = label_range(name, given, num_classes, kept, validate_args, ignorable=True)
    if inside and counts is None and ignore_index == IGNORE:
        return Target(given, kept, True)  # every entry is a label
    complete = values_readable(kept, validate_args) and bool((known if counts is None else known | ~counts).all())
    return Target(torch.where(kept, given, 0), kept, complete)


def _usual(given: object, expected: tuple[int, ...], like: Tensor) -> bool:
    if type(given) is not Tensor or given.dtype != torch.int64 or given.is_nested or given.layout != torch.strided:
        return False
    return given.shape == expected and given.device == like.device


def for_rows(of: str, shape: tuple[int, ...], given: object) -> str:
    """What labels of the rows of class scores are, in words, and how scores are read whose classes stand elsewhere."""
    elsewhere = isinstance(given, Tensor) and shape[:-1] != tuple(given.shape) == (*shape[:1], *shape[2:])
    how = "; where dimension 1 holds the classes, give class_dim=1, or scores.movedim(1, -1)" if elsewhere else ""
    return f"one class index for each row of {of} {shape}{how}"


def rows_behind(of: str, scores: Tensor, target: object, class_dim: int) -> None:
    """Raise for labels of another shape than rows of scores whose classes are not last, by the shapes that were given;
    what is no tensor of labels is named where labels are read.
    """
    given = tuple(scores.shape)
    at = class_dim % len(given)
    expected = given[:at] + given[at + 1 :]
    if at < len(given) - 1 and isinstance(target, Tensor) and not target.is_nested and target.shape != expected:
        class_indices("target", target)
        meaning = f"one class index for each row of {of} {given}, whose classes are in dimension {class_dim}"
        shape("target", target, expected, meaning)


def label_range(
    name: str,
    target: Tensor,
    num_classes: int,
    kept: Tensor | None = None,
    validate_args: bool | None = None,
    *,
    ignorable: bool = False,
    all_there: bool = True,
) -> bool:
    """Raise unless every label (of those ``kept``) lies in ``0..num_classes-1``; whether all were seen to do so.

    ``ignorable`` where -100 or a loss's ``ignore_index`` marks no label, and ``all_there`` unless others came before
    these, for the message.
    """
    if target.numel() == 0 or not values_readable(target, validate_args):
        return False
    if target.is_cpu and type(target) is Tensor and target.dtype == torch.int64:
        usual = all_labels(target.numpy(), num_classes)
    else:
        target = signed(target)
        lowest, highest = target.aminmax()
        usual = int(lowest) >= 0 and int(highest) < num_classes
    if usual:
        return True
    outside = (target < 0) | (target >= num_classes)
    if kept is not None:
        outside = outside & kept
    if not bool(outside.any()):
        return False
    bad = int(target[outside][0])
    seen = target if kept is None else target[kept]
    from_one = all_there and bad == num_classes and int(seen.min()) == 1 and int(seen.max()) == num_classes
    signs = bad == -1 and bool((seen.abs() == 1).all())
    hint = "; labels start at 0 here: subtract 1" if from_one else "; of signs: (labels + 1) // 2" if signs else ""
    if not hint and ignorable and bad in USUALLY_IGNORED:
        hint = f"; where it marks no label, write {IGNORE}, or give the loss ignore_index={bad}"
    raise ValueError(f"{name}: label {bad} is outside 0..{num_classes - 1} ({num_classes} classes){hint}")


def all_labels(numbers: NDArray[np.int64], num_classes: int) -> bool:
    """Whether all are in ``0..num_classes-1``; without a sign, what is below 0 is very large."""
    return int(numbers.view(np.uint64).max()) < num_classes
