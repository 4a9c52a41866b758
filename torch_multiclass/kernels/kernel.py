r"""Positive definite symmetric kernels ``K(x, x') = Phi(x) · Phi(x')``.

A kernel is a module: called with ``(A, D)`` and ``(B, D)`` features it returns the ``(A, B)`` block of the Gram
matrix. Wherever a kernel is accepted, so are a name (``"linear"``, ``"gaussian"``) and any function that returns such a
block.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.checks.spelling import KERNELS
from torch_multiclass.ops.precision import no_autocast, upcast

GramFunction = Callable[[Tensor, Tensor], Tensor]


def check_rows(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The two sets of rows; raise unless they are dense ``(A, D)`` and ``(B, D)`` of one floating dtype and device.

    Under autocast, which may have narrowed the one and not the other, both get the wider dtype.
    """
    for name, rows in (("left", left), ("right", right)):
        check.floating(name, rows)
        if rows.ndim != 2:
            raise ValueError(f"{name}: got shape {tuple(rows.shape)}; accepted is (A, D), one row an example")
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"right: got shape {tuple(right.shape)}; accepted is (B, {left.shape[1]}), as many features as left has"
        )
    check.same_device("right", right, "left", left)
    if left.dtype != right.dtype:
        if not torch.is_autocast_enabled(left.device.type):
            raise TypeError(f"right: is {right.dtype}, but left is {left.dtype}; accepted is one dtype")
        wider = torch.promote_types(left.dtype, right.dtype)
        left, right = left.to(wider), right.to(wider)
    return left, right


class Kernel(nn.Module, ABC):
    """A kernel; a module, so that what it learns follows it to a device and into a checkpoint.

    To write one, derive from it and return the Gram block from ``forward``. Solvers call it in the features' own dtype,
    which its weights may rely on, and cast the block; with ``any_dtype = True`` they may ask for float64 instead.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError, TypeError: rows that are not dense ``(A, D)`` and ``(B, D)`` of one floating dtype and one device.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> class Cosine(Kernel):
        ...     def forward(self, left, right):
        ...         return torch.nn.functional.normalize(left) @ torch.nn.functional.normalize(right).T
        >>> Cosine()(torch.tensor([[2.0, 0.0]]), torch.eye(2))
        tensor([[1., 0.]])
    """

    any_dtype = False
    """Whether it computes in whatever dtype the features come."""
    definite = False
    """Whether it is known to be positive semi-definite, so that a solver need not look."""

    @abstractmethod
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The Gram block: ``(A, D)`` and ``(B, D)`` to ``(A, B)``."""

    def diagonal(self, features: Tensor) -> Tensor:
        """``K(x, x)`` of every row: ``(A, D)`` to ``(A)``."""
        check_rows(features, features)
        blocks = [self(rows, rows).diagonal() for rows in torch.split(features, 256)]
        return torch.cat(blocks) if blocks else features.new_zeros(0)

    def at(self, rows: Tensor) -> Kernel:
        """The kernel for these of the points on the right: itself, unless it knows the points by their numbers."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The numbers and words that it was made with, by name, as scikit-learn asks for them."""
        return {name: part for name, part in self._arguments().items() if isinstance(part, (int, float, str))}

    def set_params(self, **given: Any) -> Kernel:
        """Another one, made with these and else as this one: ``kernel__gamma`` of a solver in a search.

        Raises:
            ValueError: a name that is no number or word it was made with; what these are refused for.
        """
        for name in given:
            accepted = list(self.get_params())
            if name not in accepted:
                raise ValueError(
                    f"{name}: is not changed by name in {self}; accepted {'are' if len(accepted) > 1 else 'is'} "
                    f"{', '.join(accepted) or 'another kernel'}"
                )
        return type(self)(**{**self._arguments(), **given})

    def _arguments(self) -> dict[str, Any]:
        """What it was made with, where each argument is an attribute; what is learned, as it is now."""
        given = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        names = [one.name for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        if not all(hasattr(self, name) for name in names):
            return {}
        parts = {name: getattr(self, name) for name in names}
        return {
            name: float(part.detach()) if isinstance(part, Tensor) and part.ndim == 0 else part
            for name, part in parts.items()
        }

    def __sklearn_clone__(self) -> Kernel:
        return copy.deepcopy(self)


class Linear(Kernel):
    r"""``K(x, x') = x · x'``.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError, TypeError: rows that are not dense ``(A, D)`` and ``(B, D)`` of one floating dtype and one device.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Linear()(torch.eye(2), torch.ones(1, 2))
        tensor([[1.],
                [1.]])
    """

    any_dtype = definite = True

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """``left right^T``."""
        left, right = check_rows(left, right)
        return left @ right.mT

    def diagonal(self, features: Tensor) -> Tensor:
        """``|x|^2``."""
        check_rows(features, features)
        return features.square().sum(-1)


class Polynomial(Kernel):
    r"""``K(x, x') = (gamma x · x' + c)^degree``.

    Args:
        degree: a whole number, at least 1.
        gamma: > 0.
        c: >= 0.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError: a degree, ``gamma`` or ``c`` outside these.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Polynomial(2)(torch.ones(1, 2), torch.ones(1, 2))
        tensor([[9.]])
    """

    any_dtype = definite = True

    @check.told
    def __init__(self, degree: int, gamma: float = 1.0, c: float = 1.0) -> None:
        super().__init__()
        self.degree = check.whole("degree", degree)
        self.gamma = check.positive("gamma", gamma)
        self.c = check.positive("c", c, zero=True)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The power of the shifted inner product, half precision being computed in float32."""
        left, right = check_rows(left, right)
        with no_autocast(left):
            products = upcast(left) @ upcast(right).mT
            return self._power(self.gamma * products + self.c).to(left.dtype)

    def diagonal(self, features: Tensor) -> Tensor:
        """``(gamma |x|^2 + c)^degree``."""
        check_rows(features, features)
        return self._power(self.gamma * upcast(features).square().sum(-1) + self.c).to(features.dtype)

    def _power(self, base: Tensor) -> Tensor:
        """``base^degree``, without a gradient where that is infinite."""
        power = base**self.degree
        if not power.requires_grad or not check.values_readable(power) or bool(power.isfinite().all()):
            return power
        over = power.detach().isinf()
        return torch.where(over, power.detach(), base.masked_fill(over, 0.0) ** self.degree)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"degree={self.degree}, gamma={self.gamma:g}, c={self.c:g}"


class Function(Kernel):
    """Any function ``(A, D), (B, D) -> (A, B)`` as a kernel; that it is positive definite is checked where it is used.

    Solvers call it with features as they were given (half precision as float32) and cast its blocks.

    Shape:
        left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        TypeError, ValueError: a block that is not a tensor, or not ``(A, B)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> Function(lambda a, b: torch.minimum(a[:, None], b[None]).sum(-1))(torch.ones(1, 3), torch.ones(2, 3))
        tensor([[3., 3.]])
    """

    def __init__(self, function: GramFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The function's block, its shape checked."""
        left, right = check_rows(left, right)
        block = self.function(left, right)
        check.is_tensor("kernel", block)
        check.dense("kernel", block)
        check.shape("kernel", block, (len(left), len(right)), "the Gram block of the two sets of rows")
        return block

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return getattr(self.function, "__name__", type(self.function).__name__)


NAMES: dict[str, Callable[[], Kernel]] = {"linear": Linear}
"""The kernels that a name stands for, with what they are by default."""


def as_kernel(kernel: str | Kernel | GramFunction) -> Kernel:
    """The kernel behind a name, a function or a kernel.

    ``"gaussian"`` and ``"laplacian"`` are those of ``gamma = 1``; a polynomial has no degree by default, and no name.

    Shape:
        the kernel takes left ``(A, D)`` and right ``(B, D)`` to ``(A, B)``.

    Raises:
        ValueError, TypeError: another name, or none of these.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> as_kernel("linear"), as_kernel("gaussian")
        (Linear(), Gaussian(gamma=1))
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel not in NAMES:
            known = f"; meant may be {KERNELS[kernel]}" if kernel in KERNELS else ""
            raise ValueError(
                f"kernel: got {kernel!r}; accepted are {', '.join(map(repr, NAMES))} and a kernel, such as "
                f"kernels.Gaussian(gamma=0.1) or kernels.Polynomial(3){known}"
            )
        return NAMES[kernel]()
    if callable(kernel) and not isinstance(kernel, type) and takes_two(kernel):
        return Function(kernel)
    raise TypeError(
        f"kernel: got {check.shown(kernel)}; accepted are {', '.join(map(repr, NAMES))}, "
        "a torch_multiclass.kernels.Kernel (made, as in Gaussian()) "
        "and a function that returns a Gram block"
    )


def takes_two(function: Callable[..., object]) -> bool:
    """Whether a function can be called with two sets of rows; of one that does not say so, yes."""
    try:
        inspect.signature(function.forward if isinstance(function, nn.Module) else function).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True
