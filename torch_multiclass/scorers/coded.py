"""Margins read by a code, and codes that are learned with the margins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.codes import CodeLike, name_of
from torch_multiclass.codes import check as check_code
from torch_multiclass.ops.coding import Coding
from torch_multiclass.ops.constants import home
from torch_multiclass.ops.pairs import in_use
from torch_multiclass.ops.precision import no_autocast, upcast
from torch_multiclass.scorers.base import (
    Scorer,
    as_wide_as,
    check_features,
    class_counts,
    sample_of,
    warn_of_absent,
    width,
)
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scores._source import Source
from torch_multiclass.scores.coded import CodedScores
from torch_multiclass.scores.coded_lazy import LazyCodedScores
from torch_multiclass.scores.flat import FlatScores

SIMILARITIES = ("inner_product", "gaussian")
WRITTEN = 1 << 22  # entries up to which a code that goes by its name is written out all the same
SOURCED = 16  # classes from which on the loss of pairs computes only those of each label, by the native library


class CodedScorer(Scorer):
    r"""The margins ``f(x)`` of any scorer, read by a coding matrix with a row for each class.

    Args:
        margins: a scorer with one output for each column: linear, kernel, a tree or any other; or ``D``, for a
            `LinearScorer` of so many features.
        code: ``(K, L)`` of -1, 0 and +1; kept as an int8 buffer in the `state_dict`, so that margins are always read
            by the code they were trained with.
        bias: whether the `LinearScorer` learns one.
        sparse: whether the gradients of linear margins of pairs are sparse, see `OneVsOneHead`.
        device, dtype: of the `LinearScorer`'s parameters.

    Shape:
        features ``(*, D)``; `CodedScores` with margins ``(*, L)``.

    Raises:
        ValueError: a code that `torch_multiclass.codes.check` refuses, margins of another number of columns, features
            whose last dimension is not ``D``.
        TypeError: margins that are neither a scorer nor a number.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> import torch
        >>> from torch_multiclass import KernelScorer, codes, kernels
        >>> scorer = CodedScorer(8, codes.one_vs_one(4))
        >>> scorer(torch.randn(5, 8)).margins.shape
        torch.Size([5, 6])
        >>> sorted(scorer.state_dict())
        ['absent', 'coding_matrix', 'margins.bias', 'margins.weight']
        >>> machine = KernelScorer(torch.randn(20, 8), 6, kernels.Gaussian(0.1))
        >>> CodedScorer(machine, codes.one_vs_one(4))(torch.randn(5, 8)).margins.shape
        torch.Size([5, 6])
    """

    coding_matrix: Tensor
    absent: Tensor
    active: Tensor | None

    gives = CodedScores

    def __init__(
        self,
        margins: Scorer | int,
        code: CodeLike | Coding,
        bias: bool = True,
        *,
        sparse: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.flag("sparse", sparse)
        self.sparse = sparse
        many = isinstance(code, Coding) and code.num_classes * code.num_columns > WRITTEN
        self.coding: Coding | None = code if many else None  # type: ignore[assignment]
        matrix = None if many else check_code(code).clone()
        shape: tuple[int, ...] = self.coding.shape if matrix is None else matrix.shape  # type: ignore[union-attr]
        self.num_classes, self.num_columns = shape
        self.margins = _margins(margins, self.num_columns, bias, device, dtype)
        self.in_features = self.margins.in_features
        device = sample_of(self.margins).device
        absent = torch.zeros(self.num_classes, dtype=torch.bool, device=home())
        for name, value in (("coding_matrix", matrix), ("absent", absent)):
            if value is not None:
                self.register_buffer(name, value.to(device))
                self.know_buffer(name, value)
        self._read(matrix)

    def _read(self, code: Tensor | None) -> None:
        """What follows from the code: its name, and the columns that each class can use."""
        active = None
        if code is None:
            assert self.coding is not None
            self.name, self.full = self.coding.name, self.coding.name == "one_vs_all"
        else:
            self.name, self.full = name_of(code), bool((code != 0).all())
            active = None if self.full else _active_columns(code)
        self.register_constant("active", None if active is None else active.to(self.absent.device), active)

    def __getattr__(self, name: str) -> Any:
        coding = self.__dict__.get("coding")
        if name == "coding_matrix" and coding is not None:
            return coding.written(self.absent.device)
        return super().__getattr__(name)

    def shares(self) -> tuple[float, Tensor]:
        """How many columns ask a class, on average, and which share of the classes that each asks is +1, ``(L,)``."""
        if self.coding is not None:
            asked, share = (self.num_columns, 1 / self.num_classes) if self.full else (self.num_classes - 1, 0.5)
            return asked, torch.full((self.num_columns,), share)
        code = self._constants["coding_matrix"]  # which has values on any device
        return float((code != 0).sum()) / len(code), (code > 0).sum(0).double() / (code != 0).sum(0)

    def reset_parameters(self) -> None:
        """Reset the margins; every class takes part in decoding again."""
        super().reset_parameters()
        self.margins.reset_parameters()
        if not self.absent.is_meta:
            self.absent.fill_(False)

    def class_norms(self) -> Tensor:
        """The norms of the weight vectors of the columns, ``(L,)``."""
        return self.margins.class_norms()

    def forward(self, features: Tensor, **structure: Any) -> CodedScores:
        """The margins with their code."""
        if structure and not torch.compiler.is_compiling():
            check.takes(type(self).__name__, self.margins.forward, structure)
        source = None if structure else self._source(features)
        if self.coding is not None:
            given = self.margins(features, **structure) if source is None else source.features
            return LazyCodedScores.of(self.coding, self.absent, given, source)
        margins = self.margins(features, **structure)
        return CodedScores.read_by(margins, self.coding_matrix, self.absent, self.active, self.name, source, self.full)

    def _source(self, features: Tensor) -> Source | None:
        """What the margins of many pairs come from, where they are plain linear ones, on the CPU unless sparse."""
        worth = self.coding is not None or (
            torch.is_grad_enabled() and (self.sparse or (self.num_classes >= SOURCED and in_use()))
        )
        plain = worth and self.name == "one_vs_one" and type(self.margins) is LinearScorer
        if not plain or check.captured() or self.margins._forward_hooks or self.margins._forward_pre_hooks:
            return None
        linear: LinearScorer = self.margins  # type: ignore[assignment]
        weight, bias = linear.weight, linear.bias
        if (weight.device.type != "cpu" and not self.sparse) or weight.dtype not in (torch.float32, torch.float64):
            return None
        if (
            torch.is_autocast_enabled(weight.device.type)
            or not isinstance(features, Tensor)
            or features.layout != torch.strided
        ):
            return None
        if features.is_nested:
            return None
        check_features(features, self.in_features)
        return Source.of(as_wide_as(weight, features), weight, bias, self.sparse)

    def leave_out_absent(self, target: Tensor) -> None:
        """Leave every class without a label in ``target``, the whole training data, out of decoding; warn which.

        Ignored labels (-100) do not count. Calling it again with other labels starts afresh.
        """
        absent = class_counts(target, self.num_classes) == 0
        self.absent.copy_(absent)
        warn_of_absent(absent)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        code = "" if self.name is None else f", code={self.name}"
        return f"num_classes={self.num_classes}, num_columns={self.num_columns}{code}"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        key = prefix + "coding_matrix"
        if self.coding is not None and key in state_dict:  # written out by an older version
            if not self.coding.equals(state_dict[key]):
                args[-1].append(f"{key}: is another code; accepted is codes.{self.name}({self.num_classes})")
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *args)
        if self.coding is None and key in state_dict and not self.coding_matrix.is_meta:
            self._read(self.coding_matrix)


def _margins(
    given: Scorer | int, columns: int, bias: bool, device: torch.device | str | None, dtype: torch.dtype | None
) -> Scorer:
    """A scorer with an output for each column: the given one, or a linear one of so many features."""
    if not isinstance(given, nn.Module):
        return LinearScorer(width(given), columns, bias, device=device, dtype=dtype)
    if not isinstance(given, Scorer):
        raise TypeError(f"margins: got {check.came(given)}; accepted is a Scorer, such as LinearScorer")
    if given.num_classes != columns:
        raise ValueError(f"margins: has {given.num_classes} outputs; accepted are {columns}, one for each column")
    return given


def _active_columns(code: Tensor) -> Tensor | None:
    """For codes that are mostly 0: ``(K, A)`` columns of each class that hold all its non-zero entries, else None.

    A class with fewer than ``A`` of them is filled up with columns that ignore it.
    """
    most = int((code != 0).sum(1).max())
    if 2 * most > code.shape[1]:
        return None
    return (code != 0).long().sort(dim=1, descending=True, stable=True).indices[:, :most].clone()


class ContinuousCodeScorer(Scorer):
    r"""Class scores ``K(F(x), M_y)``, the similarity of margins ``F(x) = W x + b`` to real code words ``M_y``.

    Starting from a code of -1, 0 and +1, its entries are relaxed to real numbers and learned, with the margins or in
    turn with them (`learn`). With the inner product and fixed margins, a multi-class hinge loss of these scores is
    convex in the code: it is the linear multi-class SVM on ``F``, whose exact solution can be put into `codewords`.
    With the Gaussian kernel ``exp(-\gamma \|F - M_y\|^2)`` it is not convex.

    Args:
        margins: a scorer with one output for each column, or ``D``, for a `LinearScorer` of so many features.
        code: ``(K, L)``, where the code starts.
        similarity: ``"inner_product"`` or ``"gaussian"``.
        gamma: of the Gaussian, ``> 0``; ``1 / L`` by default.
        bias: whether the `LinearScorer` learns one.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; scores ``(*, K)``, a plain tensor.

    Raises:
        ValueError: a code that `torch_multiclass.codes.check` refuses, an unknown similarity, features of another
            width.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3 (continuous codes).

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scorer = ContinuousCodeScorer(8, codes.hadamard(4))
        >>> scorer(torch.randn(5, 8)).shape
        torch.Size([5, 4])
        >>> sorted(scorer.state_dict())
        ['codewords', 'margins.bias', 'margins.weight']
    """

    start: Tensor

    gives = FlatScores

    def __init__(
        self,
        margins: Scorer | int,
        code: CodeLike,
        similarity: str = "inner_product",
        gamma: float | None = None,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.choice("similarity", similarity, SIMILARITIES)
        matrix = check_code(code)
        self.num_classes, self.num_columns = matrix.shape
        self.similarity = similarity
        self.gamma = check.positive("gamma", 1 / self.num_columns if gamma is None else gamma)
        self.margins = _margins(margins, self.num_columns, bias, device, dtype)
        self.in_features = self.margins.in_features
        like = sample_of(self.margins)
        self.register_constant("start", matrix.to(like.device), matrix)
        self.codewords = nn.Parameter(torch.empty(matrix.shape, device=like.device, dtype=like.dtype))
        self._start()

    def _start(self) -> None:
        with torch.no_grad():
            self.codewords.copy_(self.start)

    def reset_parameters(self) -> None:
        """Reset the margins, and the code words to the starting code."""
        super().reset_parameters()
        self.margins.reset_parameters()
        self._start()

    def learn(self, what: str = "both") -> None:
        """Let the optimiser change the ``"code"``, the ``"margins"`` or ``"both"``; to alternate, call it in turn."""
        check.choice("what", what, ("code", "margins", "both"))
        self.codewords.requires_grad_(what != "margins")
        self.margins.requires_grad_(what != "code")

    def forward(self, features: Tensor) -> Tensor:
        """``K(F(x), M_y)`` for every class, in float32 at least."""
        margins, words = upcast(self.margins(features)), upcast(self.codewords)
        with no_autocast(margins):
            products = margins @ words.mT
            if self.similarity == "inner_product":
                return products
            squares = margins.square().sum(-1, keepdim=True) - 2 * products + words.square().sum(-1)
            return torch.exp(-self.gamma * squares.clamp(min=0))

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        gamma = f", gamma={self.gamma:g}" if self.similarity == "gaussian" else ""
        return f"num_classes={self.num_classes}, num_columns={self.num_columns}, similarity={self.similarity!r}{gamma}"
