"""A cost as an object: zero-one, Hamming, and any matrix."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.chain.slack import common_unit
from torch_multiclass.ops.constants import Constants

_PACKAGE = __name__.partition(".")[0]


class Cost(Constants, ABC):
    """A cost ``L(y, y')`` between labels; a module, so that a matrix follows its loss to a device.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5, for costs ``L(y, y')``.

    Example:
        >>> import torch
        >>> isinstance(as_cost("zero_one"), Cost), as_cost("zero_one")(torch.tensor([1]), num_classes=2)
        (True, tensor([[1., 0.]]))
    """

    @abstractmethod
    def rows(self, target: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
        """``L(y, .)`` for every label ``y`` of ``target``: ``(*)`` labels in ``0..K-1`` to ``(*, K)`` costs.

        For the verbs of scores, which have checked the labels; calling the cost itself checks them. What a class of
        your own gives is checked like a matrix where it enters a loss, a decoder or a solver: costs >= 0, 0 for ``y``.
        """

    def of_rival(self, num_classes: int, dtype: torch.dtype) -> float | Tensor | None:
        """The cost of one label as what every rival costs or as a ``(K, K)`` matrix, None where it is neither.

        With it losses of one label need not write down `rows`.
        """
        return None

    def check_size(self, num_classes: int) -> None:
        """Raise where this is a cost of another number of classes; one of any number fits."""
        self._check_size(check.whole("num_classes", num_classes))

    def _check_size(self, num_classes: int) -> int:
        return num_classes

    def whole(self, num_classes: int) -> tuple[float, int]:
        """The largest unit of which every cost is a whole multiple, and the largest multiple; ``(1, -1)``, for who
        looks himself, where no value can be read.

        Raises:
            ValueError: costs that are not whole multiples of one unit.
        """
        if check.captured():
            return 1.0, -1
        return common_unit(self.rows(torch.arange(num_classes), num_classes, torch.float64))

    def forward(self, target: Tensor, num_classes: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """`rows` of labels of any integer dtype, checked."""
        num_classes = _check_asked(target, num_classes, dtype)
        target = target.long()
        check.label_range("target", target, num_classes)
        return trusted(self).rows(target, num_classes, dtype)


def _check_asked(target: Tensor, num_classes: int, dtype: torch.dtype) -> int:
    """The number of classes as one of Python's; raise for labels, a number or a dtype that are none."""
    check.class_indices("target", target)
    num_classes = check.whole("num_classes", num_classes)
    if not isinstance(dtype, torch.dtype) or dtype not in check.FLOATING:
        raise TypeError(f"dtype: got {check.shown(dtype)}; accepted are {', '.join(map(str, check.FLOATING))}")
    return num_classes


class ZeroOne(Cost):
    r"""``L(y, y') = 1[y' \ne y]``.

    Shape:
        labels ``(*)`` in ``0..K-1``; costs ``(*, K)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.1).

    Example:
        >>> import torch
        >>> ZeroOne()(torch.tensor([0, 2]), num_classes=3)
        tensor([[0., 1., 1.],
                [1., 1., 0.]])
    """

    def rows(self, target: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
        """``1 - e_y`` for every label."""
        num_classes = _check_asked(target, num_classes, dtype)
        return (torch.arange(num_classes, device=target.device) != target.long().unsqueeze(-1)).to(dtype)

    def of_rival(self, num_classes: int, dtype: torch.dtype) -> float | None:
        """1."""
        return 1.0 if type(self).rows is ZeroOne.rows else None

    def whole(self, num_classes: int) -> tuple[float, int]:
        """A mistake costs one unit."""
        return 1.0, 1


class Hamming(ZeroOne):
    r"""The number of wrong positions, ``L(y, y') = \sum_t 1[y'_t \ne y_t]``; for one label the same as `ZeroOne`.

    Args:
        normalize: divide by the number of positions, so that the cost of a labelling lies in ``[0, 1]``.

    Shape:
        labels ``(*)`` in ``0..K-1``; costs ``(*, K)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.2).

    Example:
        >>> import torch
        >>> Hamming()(torch.tensor([1]), num_classes=3)
        tensor([[1., 0., 1.]])
    """

    def __init__(self, normalize: bool = False) -> None:
        super().__init__()
        check.flag("normalize", normalize)
        self.normalize = normalize

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "normalize=True" if self.normalize else ""


class Matrix(Cost):
    """A cost written as a matrix, ``L(y, y') = matrix[y, y']``.

    Args:
        matrix: ``(K, K)``, row = true class; or ``(*, K, K)``, one matrix for each example.
        normalize: on sequences, divide by the number of positions.

    Shape:
        labels ``(*)`` in ``0..K-1``; costs ``(*, K)``.

    Raises:
        ValueError: a matrix that is not square, or has a negative or infinite entry or a non-zero diagonal.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and its footnote on
    cost functions that differ between examples.

    Example:
        >>> import torch
        >>> Matrix([[0, 1, 4], [1, 0, 1], [4, 1, 0]])(torch.tensor([0]), num_classes=3)
        tensor([[0., 1., 4.]])
    """

    matrix: Tensor

    def __init__(self, matrix: Tensor | Sequence[Sequence[float]], normalize: bool = False) -> None:
        super().__init__()
        check.flag("normalize", normalize)
        given = check.numbers("cost", matrix, "a (K, K) or (*, K, K) matrix of numbers >= 0", booleans=True)
        if given.ndim < 2 or given.shape[-1] != given.shape[-2] or given.shape[-1] == 0:
            raise ValueError(f"cost: got shape {tuple(given.shape)}; accepted is (K, K) or (*, K, K) with K >= 1")
        given = given if given.is_floating_point() else given.to(torch.get_default_dtype())
        if check.values_readable(given):
            _check_values(given.detach(), given.detach().diagonal(dim1=-2, dim2=-1))
        self.normalize = normalize
        self._whole: tuple[float, int] | None = None
        if check.values_readable(given):
            with contextlib.suppress(ValueError):  # raised where whole costs are needed
                self._whole = common_unit(given)
        self.register_constant("matrix", given)

    def rows(self, target: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
        """``matrix[y]`` for every label."""
        num_classes = _check_asked(target, num_classes, dtype)
        size = self._check_size(num_classes)
        check.same_device("cost", self.matrix, "target", target)
        matrix, target = self.matrix.to(dtype), target.long()
        if check.captured():
            return self._pick(matrix, target)
        try:
            return self._pick(matrix, target)
        except (IndexError, RuntimeError):  # a second look at the labels only where torch refuses one
            check.label_range("target", target, size, validate_args=True)
            raise

    def of_rival(self, num_classes: int, dtype: torch.dtype) -> Tensor | None:
        """The matrix, unless there is one for each example or it is learned."""
        if self.matrix.ndim > 2 or self.matrix.requires_grad or type(self).rows is not Matrix.rows:
            return None
        self._check_size(num_classes)
        return self.matrix.to(dtype)

    def _check_size(self, num_classes: int) -> int:
        size = self.matrix.shape[-1]
        if size != num_classes:
            raise ValueError(
                f"cost: is {size} x {size}, but the scores have {num_classes} classes; accepted is one size"
            )
        return size

    def _pick(self, matrix: Tensor, target: Tensor) -> Tensor:
        size = matrix.shape[-1]
        if matrix.ndim == 2:
            return nn.functional.embedding(target, matrix)
        lead = matrix.shape[:-2]
        if lead != target.shape[: len(lead)]:
            raise ValueError(
                f"cost: has one matrix for each of {tuple(lead)} examples, but the target has shape "
                f"{tuple(target.shape)}; accepted are leading dimensions that agree"
            )
        matrix = matrix.reshape(*lead, *([1] * (target.ndim - len(lead))), size, size)
        matrix = matrix.expand(*target.shape, size, size)
        index = target[..., None, None].expand(*target.shape, 1, size)
        return matrix.gather(-2, index).squeeze(-2)

    def whole(self, num_classes: int) -> tuple[float, int]:
        """The largest unit of which every entry is a whole multiple, and the largest multiple; worked out once.

        ``(1, -1)``, for who looks himself, where no value can be read.
        """
        if self._whole is None:
            if check.captured():
                return 1.0, -1
            self._whole = common_unit(self.matrix)
        return self._whole

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return " x ".join(map(str, self.matrix.shape)) + (", normalize=True" if self.normalize else "")


def _check_values(costs: Tensor, right: Tensor, of: str = "") -> None:
    """Of all costs, and of those where the ``right`` label is given."""
    if not bool(costs.isfinite().all()):
        raise ValueError(f"cost: {of}has an entry that is not finite; accepted are finite entries >= 0")
    if bool((costs < 0).any()):
        raise ValueError(f"cost: {of}has a negative entry, {float(costs.min()):g}; accepted are finite entries >= 0")
    if bool((right != 0).any()):
        worst = float(right.reshape(-1)[right.reshape(-1).abs().argmax()])
        raise ValueError(f"cost: {of}has {worst:g} on the diagonal; accepted is 0, since the right label costs nothing")


def trusted(cost: Cost, validate_args: bool | None = None) -> Cost:
    """The cost itself; or, where a class outside this package writes its `rows`, a copy that checks what they give."""
    if validate_args is False or check.captured() or type(cost).rows.__module__.partition(".")[0] == _PACKAGE:
        return cost
    of = f"{type(cost).__name__}.rows "

    def rows(target: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
        found = cost.rows(target, num_classes, dtype)
        if not isinstance(found, Tensor) or found.shape != (*target.shape, num_classes):
            given = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else check.came(found)
            accepted = f"{(*target.shape, num_classes)}, what each label costs in place of each of the target"
            raise ValueError(f"cost: {of}gives {given}; accepted is {accepted}")
        if check.values_readable(found, validate_args):
            _check_values(found.detach(), found.detach().gather(-1, target.long().unsqueeze(-1)), of)
        return found

    copied = copy.copy(cost)
    copied.rows = rows  # type: ignore[method-assign]
    return copied


_NAMES: dict[str, type[Cost]] = {"zero_one": ZeroOne, "hamming": Hamming}

_BY_NAME: dict[str, Cost] = {name: kind() for name, kind in _NAMES.items()}


def named_cost(name: str) -> Cost:
    """The cost of this name, always the same object: for a call that keeps nothing of it."""
    return _BY_NAME[name]


def as_cost(cost: str | Tensor | Sequence[Sequence[float]] | Cost) -> Cost:
    """The cost behind a name, a matrix or a cost object.

    Shape:
        a matrix ``(K, K)``, its rows the true classes.

    Raises:
        ValueError: another name, or a matrix that is not square, has a negative entry or a diagonal other than 0.
        TypeError: none of these.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5, for costs ``L(y, y')``.

    Example:
        >>> as_cost("hamming")
        Hamming()
        >>> as_cost([[0, 2], [1, 0]])
        Matrix(2 x 2)
    """
    if isinstance(cost, Cost):
        return cost
    if isinstance(cost, str):
        return _NAMES[check.named("cost", cost, _NAMES)]()
    if isinstance(cost, (Tensor, list, tuple, np.ndarray)):
        return Matrix(cost)
    raise TypeError(
        f"cost: got {check.came(cost)}; accepted are {', '.join(map(repr, _NAMES))}, a (K, K) matrix and a "
        "torch_multiclass.costs.Cost"
    )
