"""Arithmetic on arrays of NumPy, whose calls cost a third of torch's, by torch where arrays are large."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Given = ParamSpec("Given")
Result = TypeVar("Result")
Array = npt.NDArray[Any]

MANY = 2048
"""Numbers from which torch is faster by more than its calls cost."""

TOGETHER = 32
"""Rows of a few numbers that NumPy reduces as one."""

LARGE = 1 << 18
"""Multiply-adds from which NumPy's library for products takes threads of its own, which nobody here has set."""

PLAIN = (Tensor, torch.nn.Parameter)
"""The types of tensors that have their numbers where they say."""

NUMBERS: dict[torch.dtype, np.dtype[Any]] = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}


def empty(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory that begins with a line of the cache, which NumPy's own need not: vectors of large arrays stay whole."""
    own = torch.float32 if dtype == np.float32 else torch.float64
    return torch.empty(shape, dtype=own, device="cpu").numpy()


def quiet(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function without NumPy's warnings: what is no number, or out of range, is looked for where it matters."""

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        with np.errstate(all="ignore"):
            return function(*given, **named)

    return call


def array(tensor: Tensor) -> Array:
    """The numbers of a tensor on the CPU, shared with it."""
    return tensor.detach().numpy()


def numbers(tensor: Tensor) -> Array:
    """The same of scores, half precision in float32."""
    tensor = tensor.detach()
    return (tensor if tensor.dtype in NUMBERS else tensor.float()).numpy()


def in_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy of the numbers in float32 or float64."""
    if type(tensor) is Tensor and tensor.is_cpu:
        return torch.from_numpy(tensor.numpy().astype(NUMBERS[dtype]))
    return tensor.to(dtype, copy=True)


def exp(values: Array) -> Array:
    """``exp``, in place."""
    if values.size < MANY:
        return np.exp(values, out=values)
    torch.from_numpy(values).exp_()
    return values


def divide(values: Array, by: Array) -> Array:
    """``(n, K)`` by ``(n,)``, in place."""
    if values.size < MANY:
        return np.divide(values, by[:, None], out=values)
    torch.from_numpy(values).div_(torch.from_numpy(by)[:, None])
    return values


def subtract(values: Array, by: Array) -> Array:
    """``(n, K, ...)`` less ``(n, ...)``, in place."""
    if values.size < MANY:
        return np.subtract(values, by[:, None], out=values)
    torch.from_numpy(values).sub_(torch.from_numpy(by)[:, None])
    return values


def largest(values: Array) -> Array:
    """The largest label's value of ``(n, K, ...)``."""
    if values.size < MANY:
        best: Array = np.maximum.reduce(values, 1)
        return best
    return torch.from_numpy(values).amax(1).numpy()


def least(values: Array) -> Array:
    """The least of each column of ``(n, K)``, several rows at a time."""
    count, k = values.shape
    full = count // TOGETHER * TOGETHER
    if full == 0:
        first: Array = np.minimum.reduce(values, 0, initial=np.inf)
        return first
    wide = np.minimum.reduce(values[:full].reshape(-1, TOGETHER * k), 0).reshape(TOGETHER, k)
    both: Array = np.minimum.reduce(np.concatenate([wide, values[full:]]), 0)
    return both


def product(left: Array, right: Array) -> Array:
    """A product of matrices."""
    if left.size * right.shape[1] <= LARGE:
        return np.dot(left, right)  # type: ignore[no-any-return]
    return torch.mm(torch.from_numpy(left), torch.from_numpy(right)).numpy()


def product_into(left: Array, right: Array, out: Array) -> object:
    """The same, written to ``out``."""
    return torch.mm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))


def steps_product(rows: int, num_labels: int) -> Callable[[Array, Array, Array], object]:
    """What computes ``(n, K) (K, K)`` for up to ``rows`` rows."""
    return np.dot if rows * num_labels**2 <= LARGE else product_into


def ordered_sums(values: Array) -> Array:
    """The sums over labels of ``(n, K)``; a product, which NumPy has at full speed, its own sums not."""
    sums: Array = values.dot(ones(values.shape[1], values.dtype))
    return sums


@functools.lru_cache(64)
def ones(count: int, dtype: np.dtype[Any]) -> Array:
    """So many ones, to be read only."""
    found = np.ones(count, dtype)
    found.flags.writeable = False
    return found


def filled(mass: Array) -> Array:
    """The mass to divide by: 1 where there is none."""
    mass[mass == 0] = 1
    return mass


def at_labels(num_labels: int, labels: Array) -> Array:
    """Where ``values[n, labels[n]]`` stand in the flat ``values (n, K)``."""
    return np.arange(0, len(labels) * num_labels, num_labels) + labels
