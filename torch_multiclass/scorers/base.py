"""What every scorer shares."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from itertools import chain
from typing import ClassVar

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.constants import Constants


class Scorer(check.Told, Constants, ABC):
    """A module from features to scores, which owns every learnable parameter.

    ``scorer(features)`` gives one score for each class, ``(*, K)``, or scores that know their structure
    (`CodedScores`, `ChainScores`), for which the call may take more, such as ``mask=``. A subclass sets `in_features`
    and `num_classes` and writes ``forward`` and `reset_parameters`; a tree, an ensemble or another library's learner
    is a scorer as good as a linear one, and stands behind any code (`CodedScorer`).

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2, the scoring function.

    Example:
        >>> import torch
        >>> class Constant(Scorer):
        ...     in_features, num_classes = 2, 3
        ...     def forward(self, features):
        ...         return features.new_zeros(*features.shape[:-1], 3)
        ...     def reset_parameters(self):
        ...         pass
        >>> Constant()(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    in_features: int
    """``D``, the width of the features."""
    num_classes: int
    """``K``, the number of classes, or of margins where a code reads them."""

    gives: ClassVar[type | None] = None
    """The kind of its scores, `FlatScores` for a tensor ``(*, K)``; None where a subclass does not say."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the parameters anew, and write every buffer that follows from the arguments."""
        super().reset_parameters()

    def class_norms(self) -> Tensor:
        """The norm of the weight vector of each class, ``(K,)``, in feature space; biases do not count.

        Raises:
            TypeError: a scorer without weight vectors.
        """
        raise TypeError(f"scorer: {type(self).__name__} has no weight vectors; accepted are linear and kernel scorers")


def sample_of(module: nn.Module) -> Tensor:
    """A floating-point tensor of a module, for its device and dtype; for a module without any, torch's defaults."""
    held = (tensor for tensor in chain(module.parameters(), module.buffers()) if tensor.is_floating_point())
    return next(held, torch.empty(0))


def place(module: object) -> str:
    """Where a module belongs that stands in another place, for a message; "" where that is not known."""
    if not isinstance(module, nn.Module):
        return ""
    usual = "Head(scorer, loss, decoder) takes one" if isinstance(module, Scorer) else "head(module(x)) calls it"
    return f"; {getattr(module, 'belongs', usual)}"


def width(in_features: int) -> int:
    """``in_features`` as a whole number; of a module in its place it is said where that goes."""
    if isinstance(in_features, nn.Module):
        raise TypeError(
            f"in_features: got {type(in_features).__name__}; accepted is the width of the features, a whole number"
            f"{place(in_features)}"
        )
    return check.whole("in_features", in_features)


def check_features(features: Tensor, in_features: int, *, sparse: bool = True) -> None:
    """Raise unless ``features`` is a floating tensor ``(*, in_features)``, or a matrix that may be ``sparse``."""
    check.floating("features", features, sparse=sparse)
    if features.ndim == 0 or features.shape[-1] != in_features:
        raise ValueError(
            f"features: got shape {tuple(features.shape)}; accepted is (*, {in_features}), {in_features} features last"
        )
    if features.layout != torch.strided and features.ndim != 2:
        raise ValueError(
            f"features: are sparse, of shape {tuple(features.shape)}; accepted is a sparse matrix (N, {in_features}), "
            f"or a dense tensor (*, {in_features})"
        )


def as_wide_as(weight: Tensor, features: Tensor) -> Tensor:
    """Features of a narrower dtype in the weights' own; autocast, where it is on, decides by itself."""
    check.same_device("features", features, "the scorer", weight)
    if features.dtype == weight.dtype:
        return features
    if torch.is_autocast_enabled(features.device.type):  # it leaves float64 as it is, beside what it has made narrower
        return features.to(weight.dtype) if torch.float64 in (features.dtype, weight.dtype) else features
    if torch.promote_types(features.dtype, weight.dtype) != weight.dtype:
        raise TypeError(
            f"features: are {features.dtype}, but the weights {weight.dtype}; accepted is that or a narrower dtype, "
            f"as features.to({weight.dtype})"
        )
    return features.to(weight.dtype)


def class_counts(target: Tensor, num_classes: int) -> Tensor:
    """How many labels of each class ``target`` holds, ``(K,)``, ignored ones (-100) not counted; else raise."""
    check.class_indices("target", target)
    check.with_values("target", target)
    seen = target[target != check.IGNORE].long()
    if seen.numel() == 0:
        raise ValueError("target: holds no label; accepted is at least one, so that a class is left to predict")
    check.label_range("target", seen, num_classes, validate_args=True, ignorable=True)
    return torch.bincount(seen.flatten(), minlength=num_classes)


def warn_of_absent(absent: Tensor) -> None:
    """Name the classes that are left out of decoding."""
    if bool(absent.any()):
        names = ", ".join(map(str, absent.nonzero().flatten().tolist()))
        warnings.warn(
            f"target: class(es) {names} of {len(absent)} have no example; they are left out of decoding",
            UserWarning,
            stacklevel=3,
        )
