r"""What is preferred to what: pairs of classes ``a ≻ b``, which scores keep where ``f_a > f_b``.

Preferences of ``N`` examples are a tensor ``(N, P, 2)`` of classes, each pair the better one first, with -100 where an
example has fewer than ``P``. `torch_multiclass.solvers.ConstraintClassifier` learns them, and
`torch_multiclass.metrics.ViolatedPreferences` counts those that scores do not keep.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check

__all__ = ["ordinal", "pairs", "ranking"]


def ranking(order: Tensor, *, closure: bool = False) -> Tensor:
    r"""Each class of a ranking before the next one: ``order_1 ≻ order_2 ≻ ...``.

    Args:
        order: classes, the best first; -100, at any place, where an example ranks fewer.
        closure: all pairs rather than neighbours only. Scores keep both or neither; a learner that is told of all takes
            other steps.

    Shape:
        order ``(N, R)``; the result ``(N, R - 1, 2)``, or ``(N, R (R - 1) / 2, 2)``.

    Raises:
        ValueError: a class that an example ranks twice.

    Reference: Har-Peled, Roth and Zimak (2002), *Constraint classification: a new approach to multiclass
    classification*, §2.

    Example:
        >>> import torch
        >>> ranking(torch.tensor([[1, 0, 2]]))
        tensor([[[1, 0],
                 [0, 2]]])
    """
    check.class_indices("order", order)
    check.flag("closure", closure)
    if order.ndim != 2:
        raise ValueError(f"order: got shape {tuple(order.shape)}; accepted is (N, R), the classes from the best on")
    order = order.detach().long()
    _check_labels("order", order)
    ranked = order.sort(1).values
    twice = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != check.IGNORE)
    if _some("order", twice):
        row, place = twice.nonzero()[0].tolist()
        raise ValueError(
            f"order: row {row} ranks class {int(ranked[row, place])} twice; accepted are classes that differ"
        )
    order = order.gather(
        1, (order == check.IGNORE).byte().sort(dim=1, stable=True).indices
    )  # what is not ranked comes last
    first, second = torch.combinations(torch.arange(order.shape[1], device=order.device)).unbind(1)
    if not closure:
        first, second = first[second == first + 1], second[second == first + 1]
    return _known(torch.stack([order[:, first], order[:, second]], 2))


def pairs(preferred: Tensor, *, num_classes: int | None = None) -> Tensor:
    r"""Pairs as they are given, once they are seen to be consistent.

    Args:
        preferred: pairs of classes, the better one first; -100 where an example has fewer.
        num_classes: ``K``, where labels are to be below it.

    Shape:
        preferred and the result ``(N, P, 2)``.

    Raises:
        ValueError: pairs that go in a circle, such as ``a ≻ b`` and ``b ≻ a``, which no scores keep.

    Reference: Har-Peled, Roth and Zimak (2002), *Constraint classification: a new approach to multiclass
    classification*, §2.

    Example:
        >>> import torch
        >>> pairs(torch.tensor([[[2, 0], [2, 1]], [[0, 1], [-100, -100]]])).shape
        torch.Size([2, 2, 2])
        >>> pairs(torch.tensor([[[0, 1], [1, 2], [2, 0]]]))
        Traceback (most recent call last):
        ValueError: preferred: row 0 has preferences in a circle, over class 0; accepted are those that scores can keep
    """
    return checked_pairs("preferred", preferred, num_classes)


def ordinal(target: Tensor, num_classes: int) -> Tensor:
    r"""Of ordered classes, the nearer the better on either side: ``y ≻ y-1 ≻ y-2 ...`` and ``y ≻ y+1 ≻ y+2 ...``.

    The pairs stand by their distance from ``y``, the lower side first.

    Args:
        target: class indices; -100 for examples without preferences.
        num_classes: ``K``.

    Shape:
        target ``(N)``; the result ``(N, K - 1, 2)``.

    Raises:
        ValueError: a label outside ``0..K-1``.

    Reference: Har-Peled, Roth and Zimak (2002), *Constraint classification: a new approach to multiclass
    classification*, §2, for classes as preferences.

    Example:
        >>> import torch
        >>> ordinal(torch.tensor([1]), num_classes=4)
        tensor([[[1, 0],
                 [1, 2],
                 [2, 3]]])
    """
    check.class_indices("target", target)
    num_classes = check.whole("num_classes", num_classes, least=2)
    if target.ndim != 1:
        raise ValueError(f"target: got shape {tuple(target.shape)}; accepted is (N), one class index an example")
    target = target.detach().long()
    check.label_range("target", target, num_classes, target != check.IGNORE)
    far = torch.arange(num_classes - 1, device=target.device)
    y = target[:, None, None]
    side = torch.tensor([-1, 1], device=target.device)
    better = y + side * far[:, None]  # (N, K - 1, 2): at each distance below and above
    found = torch.stack([better, better + side], 3).flatten(1, 2)
    outside = ((found < 0) | (found >= num_classes)).any(2) | (y[:, :, 0] == check.IGNORE)
    found = found.masked_fill(outside[..., None], check.IGNORE)
    there = outside.sort(stable=True, dim=1).indices[:, : num_classes - 1]  # those that there are first, in order
    return found.gather(1, there[..., None].expand(-1, -1, 2))


def checked_pairs(name: str, given: Tensor, num_classes: int | None = None) -> Tensor:
    """Pairs ``(N, P, 2)`` that go in no circle, int64."""
    check.integers(name, given, "pairs of class indices")
    if given.ndim != 3 or given.shape[2] != 2:
        raise ValueError(f"{name}: got shape {tuple(given.shape)}; accepted is (N, P, 2), pairs of classes")
    given = given.detach().long()
    _check_labels(name, given)
    if num_classes is not None:
        num_classes = check.whole("num_classes", num_classes, least=2)
        check.label_range(name, given, num_classes, given != check.IGNORE)
    half = (given == check.IGNORE).sum(2) == 1
    if _some(name, half):
        raise ValueError(
            f"{name}: row {int(half.nonzero()[0, 0])} has a pair of a class and -100; accepted are two classes, or "
            "-100 twice"
        )
    _check_circles(name, given)
    return given


def _check_circles(name: str, given: Tensor) -> None:
    """Take away, again and again, the pairs whose better class is below none or whose worse one is above none; what
    stays goes in circles."""
    if given.numel() == 0 or not check.values_readable(given, True):
        return
    rows, left = torch.arange(len(given), device=given.device)[:, None].expand(given.shape[:2]), given[..., 0] >= 0
    classes = int(given.max()) + 1
    places = rows[left] * classes + given[..., 0][left], rows[left] * classes + given[..., 1][left]
    while len(places[0]):
        better, worse = places
        used, which = _unique(torch.cat([better, worse]))
        better, worse = which[: len(better)], which[len(better) :]
        below, above = torch.zeros(2, len(used), dtype=torch.bool, device=used.device)
        below[worse], above[better] = True, True
        stay = below[better] & above[worse]
        if bool(stay.all()):
            row, label = divmod(int(used[below & above][0]), classes)
            raise ValueError(
                f"{name}: row {row} has preferences in a circle, over class {label}; accepted are those that scores "
                "can keep"
            )
        places = used[better[stay]], used[worse[stay]]


def _unique(places: Tensor) -> tuple[Tensor, Tensor]:
    found: tuple[Tensor, Tensor] = torch.unique(places, return_inverse=True)
    return found


def _known(found: Tensor) -> Tensor:
    """Pairs of which a class is not known are none."""
    return found.masked_fill((found == check.IGNORE).any(2, keepdim=True), check.IGNORE)


def _check_labels(name: str, given: Tensor) -> None:
    wrong = (given < 0) & (given != check.IGNORE)
    if _some(name, wrong):
        raise ValueError(f"{name}: holds {int(given[wrong][0])}; accepted are classes 0, 1, ... and -100")


def _some(name: str, flags: Tensor) -> bool:
    """Whether any is set, of values that can be read."""
    check.with_values(name, flags)
    return bool(flags.any())


def check_signs(name: str, given: Tensor) -> None:
    """Raise unless ``(N, K)`` holds +1, -1 and -100 for what is not known."""
    wrong = (given != 1) & (given != -1) & (given != check.IGNORE)
    if _some(name, wrong):
        row, label = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: row {row} has {int(given[row, label])} for class {label}; accepted are 1, -1 and -100 (unknown)"
        )


def __dir__() -> list[str]:
    return sorted(__all__)


check.lacks(__name__)
