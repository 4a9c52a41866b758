"""What every loss module shares: the frame of `torch_multiclass.functional._reduction`, kept as attributes."""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.functional._reduction import REDUCTIONS
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.ops.constants import Constants
from torch_multiclass.options import LOSS_OPTIONS, Frame, LossOptions, Weight, known_keywords
from torch_multiclass.scores import Scores

_DEFAULTS: dict[str, Any] = {
    "ignore_index": check.IGNORE,
    "reduction": "mean",
    "class_dim": -1,
    "validate_args": None,
}


class Loss(check.Told, Constants, ABC):
    """A stateless module ``loss(scores, target)`` to be minimised.

    Args:
        weight: ``(K,)`` a weight for each class, kept as a buffer outside the `state_dict`. As everything that is
            written down beforehand it may be a tensor, an array or a list; scores, features and targets are tensors.
        ignore_index: the label of examples to leave out.
        reduction: ``"mean"`` (weighted, over labelled examples; 0 over none), ``"sum"``, ``"none"`` or
            ``"token_mean"`` (the sum over the number of labelled positions).
        class_dim: the dimension of a plain tensor of scores that holds the classes.
        validate_args: check the range of labels: None on the CPU only, True always, False never.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3 and §9.5.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> loss = tm.CrammerSingerLoss(reduction="none")
        >>> isinstance(loss, Loss), loss(torch.tensor([[2.0, 1.5], [0.0, 3.0]]), torch.tensor([0, 1]))
        (True, tensor([0.5000, 0.0000]))
    """

    reads: ClassVar[tuple[type, ...]] = (object,)
    """The kinds of scores that it is a loss of, by which a head refuses another when it is made."""
    convex: bool = True
    """Whether it is convex in the scores, so that planes bound it from below (`torch_multiclass.solvers.planes`)."""
    weight: Tensor | None
    scale: float = 1.0
    """A factor of the whole, see `scaled`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Say of a class outside this package whose ``__init__`` leaves out the one of `Loss`."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
            cls.__init__ = _whole(cls, cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        weight: Weight = None,
        ignore_index: int = check.IGNORE,
        reduction: str = "mean",
        class_dim: int = -1,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__()
        check.choice("reduction", reduction, REDUCTIONS)
        ignore_index = check.integer("ignore_index", ignore_index)
        class_dim = check.integer("class_dim", class_dim)
        check.flag("validate_args", validate_args, optional=True)
        self.weigh(weight)
        self.reduction = reduction
        self.frame: Frame = {"ignore_index": ignore_index, "class_dim": class_dim, "validate_args": validate_args}

    def weigh(self, weight: Weight) -> None:
        """Take other weights of the classes, ``(K,)``, or None for none."""
        if weight is not None:
            counted = "; a head takes 'balanced'" if check.came(weight) == "str" else ""
            weight = check.numbers("weight", weight, f"one weight for each class, (K,){counted}").detach()
            if weight.ndim != 1:
                raise ValueError(f"weight: got shape {tuple(weight.shape)}; accepted is (K,), one for each class")
        self.register_constant("weight", weight)

    def scaled(self, scale: float) -> Self:
        """This loss times a factor ``> 0``, for an optimiser whose step size suits other losses.

        Example:
            >>> import torch
            >>> from torch_multiclass import WestonWatkinsLoss
            >>> WestonWatkinsLoss().scaled(0.5)(torch.zeros(1, 3), torch.tensor([0]))
            tensor(1.)
        """
        new = copy.deepcopy(self)
        new.scale = self.scale * check.positive("scale", scale)
        return new

    def _scaled(self, value: Tensor) -> Tensor:
        return value if self.scale == 1 else value * self.scale

    @classmethod
    def _known(cls, options: LossOptions) -> LossOptions:
        """``options``, the keyword arguments that a loss hands on to this class; raise for one that no loss has."""
        known_keywords(cls, options, LOSS_OPTIONS)
        return options

    @abstractmethod
    def forward(self, scores: Tensor | Scores, target: Tensor) -> Tensor:
        """The reduced loss."""

    @property
    def shared(self) -> dict[str, Any]:
        """The arguments that every loss hands on to its function."""
        return {"weight": self.weight, "reduction": self.reduction, **self.frame}

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults, shown by ``repr``."""
        parts = [f"{name}={value!r}" for name, value in self._own_arguments().items()]
        shared = self.shared
        parts += [f"{name}={shared[name]!r}" for name, default in _DEFAULTS.items() if shared[name] != default]
        if self.scale != 1:
            parts.append(f"scale={self.scale:.4g}")
        if self.weight is not None:
            parts.append(f"weight=<{len(self.weight)} classes>")
        return ", ".join(parts)

    def _own_arguments(self) -> dict[str, Any]:
        """The arguments of this loss alone, for ``repr``."""
        return {}


def _whole(cls: type[Loss], init: Callable[..., None]) -> Callable[..., None]:
    """``__init__`` of a class, which has to call that of `Loss`."""

    @functools.wraps(init)
    def made(self: Loss, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        if type(self) is cls and "frame" not in vars(self):
            name = cls.__name__
            raise TypeError(f"{name}: its __init__ does not call that of Loss; accepted is one with super().__init__()")

    return made


def optional_cost(cost: CostLike | None) -> Cost | None:
    """The cost object that a loss keeps as its submodule, or None for the default of the scores."""
    return None if cost is None else as_cost(cost)
