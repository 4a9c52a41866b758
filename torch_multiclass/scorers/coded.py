"""Linear margins for the columns of a code, and codes that are learned with them."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes import check as check_code
from torch_multiclass.ops.precision import no_autocast, upcast
from torch_multiclass.scorers.linear import LinearScorer, check_features
from torch_multiclass.scores.coded import CodedScores

SIMILARITIES = ("inner_product", "gaussian")


class CodedScorer(LinearScorer):
    r"""Margins ``f(x) = W x + b``, one row of ``W`` for each column of a coding matrix.

    Args:
        in_features: ``D``.
        code: ``(K, L)`` of -1, 0 and +1; kept as an int8 buffer in the `state_dict`, so that margins are always read
            by the code they were trained with.
        bias: whether to learn ``b``.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; `CodedScores` with margins ``(*, L)``.

    Raises:
        ValueError: a code that `torch_multiclass.codes.check` refuses, features whose last dimension is not ``D``.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scorer = CodedScorer(8, codes.one_vs_one(4))
        >>> scorer(torch.randn(5, 8)).margins.shape
        torch.Size([5, 6])
        >>> sorted(scorer.state_dict())
        ['absent', 'bias', 'coding_matrix', 'weight']
    """

    coding_matrix: Tensor
    absent: Tensor
    active: Tensor | None

    def __init__(
        self,
        in_features: int,
        code: CodeLike,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        matrix = check_code(code)
        super().__init__(in_features, matrix.shape[1], bias, device=device, dtype=dtype)
        self.num_classes, self.num_columns = matrix.shape
        matrix = matrix.clone().to(self.weight.device)
        self.register_buffer("coding_matrix", matrix)
        self.register_buffer("absent", torch.zeros(self.num_classes, dtype=torch.bool, device=matrix.device))
        self.register_buffer("active", _active_columns(matrix), persistent=False)

    def forward(self, features: Tensor) -> CodedScores:  # type: ignore[override]
        """The margins with their code."""
        return CodedScores(super().forward(features), self.coding_matrix, self.absent, self.active)

    def leave_out_absent(self, target: Tensor) -> None:
        """Leave every class without a label in ``target``, the whole training data, out of decoding; warn which.

        Ignored labels (-100) do not count. Calling it again with other labels starts afresh.
        """
        check.class_indices("target", target)
        seen = target[target != check.IGNORE].long()
        check.label_range("target", seen, self.num_classes, validate_args=True)
        counts = torch.bincount(seen.flatten(), minlength=self.num_classes)
        self.absent.copy_(counts == 0)
        if bool(self.absent.any()):
            names = ", ".join(map(str, self.absent.nonzero().flatten().tolist()))
            warnings.warn(
                f"target: class(es) {names} of {self.num_classes} have no example; they are left out of decoding",
                UserWarning,
                stacklevel=2,
            )

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, num_columns={self.num_columns}, "
            f"bias={self.bias is not None}"
        )

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        self.active = _active_columns(self.coding_matrix)


def _active_columns(code: Tensor) -> Tensor | None:
    """For codes that are mostly 0: ``(K, A)`` columns of each class that hold all its non-zero entries, else None.

    A class with fewer than ``A`` of them is filled up with columns that ignore it.
    """
    if code.device.type == "meta":
        return None
    most = int((code != 0).sum(1).max())
    if 2 * most > code.shape[1]:
        return None
    return (code != 0).long().sort(dim=1, descending=True, stable=True).indices[:, :most].clone()


class ContinuousCodeScorer(nn.Module):
    r"""Class scores ``K(F(x), M_y)``, the similarity of margins ``F(x) = W x + b`` to real code words ``M_y``.

    Starting from a code of -1, 0 and +1, its entries are relaxed to real numbers and learned, with the margins or in
    turn with them (`learn`). With the inner product and fixed margins, a multi-class hinge loss of these scores is
    convex in the code: it is the linear multi-class SVM on ``F``, whose exact solution can be put into `codewords`.
    With the Gaussian kernel ``exp(-\gamma \|F - M_y\|^2)`` it is not convex.

    Args:
        in_features: ``D``.
        code: ``(K, L)``, where the code starts.
        similarity: ``"inner_product"`` or ``"gaussian"``.
        gamma: of the Gaussian, ``> 0``; ``1 / L`` by default.
        bias: whether to learn ``b``.
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
        ['bias', 'codewords', 'weight']
    """

    bias: nn.Parameter | None
    start: Tensor

    def __init__(
        self,
        in_features: int,
        code: CodeLike,
        similarity: str = "inner_product",
        gamma: float | None = None,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.whole("in_features", in_features)
        check.choice("similarity", similarity, SIMILARITIES)
        matrix = check_code(code)
        self.in_features, self.similarity = in_features, similarity
        self.num_classes, self.num_columns = matrix.shape
        self.gamma = 1 / self.num_columns if gamma is None else gamma
        check.positive("gamma", self.gamma)
        self.weight = nn.Parameter(torch.empty(self.num_columns, in_features, device=device, dtype=dtype))
        self.register_buffer("start", matrix.clone().to(self.weight.device), persistent=False)
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(self.num_columns, device=device, dtype=dtype)) if bias else None
        )
        self.codewords = nn.Parameter(torch.empty(self.num_classes, self.num_columns, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights uniformly in ``±1/sqrt(D)``, set the bias to 0 and the code words to the starting code."""
        bound = self.in_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        with torch.no_grad():
            self.codewords.copy_(self.start)

    def learn(self, what: str = "both") -> None:
        """Let the optimiser change the ``"code"``, the ``"margins"`` or ``"both"``; to alternate, call it in turn."""
        check.choice("what", what, ("code", "margins", "both"))
        self.codewords.requires_grad_(what != "margins")
        self.weight.requires_grad_(what != "code")
        if self.bias is not None:
            self.bias.requires_grad_(what != "code")

    def margins(self, features: Tensor) -> Tensor:
        """``F(x)``, ``(*, L)``."""
        check_features(features, self.in_features)
        return nn.functional.linear(features, self.weight, self.bias)

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
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, num_columns={self.num_columns}, "
            f"similarity={self.similarity!r}{gamma}, bias={self.bias is not None}"
        )
