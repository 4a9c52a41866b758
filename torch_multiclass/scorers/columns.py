"""Margins of several binary scorers side by side, and of classifiers of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.precision import no_autocast
from torch_multiclass.scorers.base import Scorer, check_features, width

__all__ = ["AttributeScorer", "ColumnsScorer", "OutsideScorer"]

_CHUNK = 4096  # rows written out with an attribute at a time


def margin_of(scores: Tensor) -> Tensor:
    """The margin ``(*)`` of a binary scorer: its one score, or what the second of two is above the first."""
    if not isinstance(scores, Tensor) or scores.ndim == 0 or scores.shape[-1] not in (1, 2):
        raise ValueError(f"learner: gives {check.shown(scores)}; accepted are scores (*, 1) or (*, 2)")
    return scores[..., 0] if scores.shape[-1] == 1 else scores[..., 1] - scores[..., 0]


class ColumnsScorer(Scorer):
    """``f_s(x)`` of one binary scorer for each column; 0 for a column that has none.

    The margin of a scorer with two outputs is the second less the first.

    Args:
        columns: a scorer with one or two outputs, or None, for each column.
        in_features: ``D``.

    Shape:
        features ``(*, D)``; scores ``(*, L)``.

    Raises:
        ValueError: no columns, scorers of other features or with more outputs.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> import torch
        >>> from torch_multiclass import LinearScorer
        >>> ColumnsScorer([LinearScorer(3, 1), None, LinearScorer(3, 2)], 3)(torch.randn(5, 3)).shape
        torch.Size([5, 3])
    """

    def __init__(self, columns: Sequence[Scorer | None], in_features: int) -> None:
        super().__init__()
        in_features = width(in_features)
        if not isinstance(columns, (list, tuple)):
            raise TypeError(f"columns: got {check.shown(columns)}; accepted is a scorer or None for each column")
        if not columns:
            raise ValueError("columns: there are none; accepted is at least one")
        for scorer in columns:
            if scorer is not None and not isinstance(scorer, Scorer):
                raise TypeError(f"columns: one is {check.shown(scorer)}; accepted are scorers and None")
            if scorer is not None and (scorer.in_features != in_features or scorer.num_classes not in (1, 2)):
                raise ValueError(
                    f"columns: one is {scorer!r}; accepted are scorers of {in_features} features and 1 or 2 scores"
                )
        self.in_features, self.num_classes = in_features, len(columns)
        self.columns = nn.ModuleDict({str(s): scorer for s, scorer in enumerate(columns) if scorer is not None})

    def reset_parameters(self) -> None:
        """Reset the columns."""
        super().reset_parameters()
        for scorer in self.columns.values():
            assert isinstance(scorer, Scorer)
            scorer.reset_parameters()

    def forward(self, features: Tensor) -> Tensor:
        """The margins."""
        check_features(features, self.in_features)
        known = {int(s): margin_of(scorer(features)) for s, scorer in self.columns.items()}
        like = next(iter(known.values()), features)
        zero = torch.zeros(features.shape[:-1], dtype=like.dtype, device=like.device)  # `new_zeros` of CSR is no vector
        return torch.stack([known.get(s, zero) for s in range(self.num_classes)], -1)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_classes={self.num_classes}"


class AttributeScorer(Scorer):
    r"""``f_s(x) = f(x, e_s)``: one binary scorer for all columns, to which the column is an attribute of the instance.

    Args:
        scorer: of ``D + L`` features, or, with ``interaction``, of ``D L``; one or two outputs.
        columns: ``L``.
        interaction: multiply the features and the attribute, ``x ⊗ e_s``, in place of putting one after the other.
        silent: columns whose margin is 0.

    Shape:
        features ``(*, D)``; scores ``(*, L)``.

    Raises:
        ValueError: a scorer of a number of features that does not fit, a silent column that there is not.

    Reference: Allwein, Schapire and Singer (2000), section 3 (single-call training).

    Example:
        >>> import torch
        >>> from torch_multiclass import LinearScorer
        >>> AttributeScorer(LinearScorer(3 + 4, 1), columns=4)(torch.randn(5, 3)).shape
        torch.Size([5, 4])
    """

    def __init__(self, scorer: Scorer, columns: int, interaction: bool = False, silent: Sequence[int] = ()) -> None:
        super().__init__()
        columns = check.whole("columns", columns)
        check.flag("interaction", interaction)
        if not isinstance(scorer, Scorer):
            raise TypeError(f"scorer: got {check.shown(scorer)}; accepted is a scorer of margins")
        if not isinstance(silent, (list, tuple)):
            raise TypeError(f"silent: got {check.shown(silent)}; accepted are numbers of columns")
        silent = tuple(check.whole("silent", column, least=0) for column in silent)
        if silent and max(silent) >= columns:
            raise ValueError(f"silent: {max(silent)} is outside 0..{columns - 1} ({columns} columns)")
        given = scorer.in_features
        width, rest = divmod(given, columns) if interaction else (given - columns, 0)
        if width < 1 or rest or scorer.num_classes not in (1, 2):
            size = f"D times {columns}" if interaction else f"D plus {columns}"
            raise ValueError(f"scorer: is {scorer!r}; accepted is one of {size} features and 1 or 2 scores")
        self.scorer, self.interaction, self.silent = scorer, interaction, silent
        self.in_features, self.num_classes = width, columns

    def reset_parameters(self) -> None:
        """Reset the scorer."""
        super().reset_parameters()
        self.scorer.reset_parameters()

    def forward(self, features: Tensor) -> Tensor:
        """The margins."""
        check_features(features, self.in_features, sparse=False)
        rows = features.reshape(-1, self.in_features)
        whole = torch.is_grad_enabled() or len(rows) <= _CHUNK
        parts = [rows] if whole else torch.split(rows, _CHUNK)
        margins = torch.cat([self._margins(part) for part in parts])
        return margins.reshape(*features.shape[:-1], self.num_classes)

    def _margins(self, rows: Tensor) -> Tensor:
        return torch.stack([self._margin(rows, column) for column in range(self.num_classes)], -1)

    def _margin(self, rows: Tensor, column: int) -> Tensor:
        margin = margin_of(self.scorer(self._instances(rows, column)))
        return torch.zeros_like(margin) if column in self.silent else margin

    def _instances(self, rows: Tensor, column: int) -> Tensor:
        """As `with_attribute`, of one column, without a branch or a shape that depends on values."""
        before, after = column, self.num_classes - column - 1
        if self.interaction:
            return nn.functional.pad(rows, (before * self.in_features, after * self.in_features))
        one = nn.functional.pad(torch.ones_like(rows[:, :1]), (before, after))
        with no_autocast(rows):  # which cannot put float16 together on the CPU
            return torch.cat([rows, one], 1)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_classes={self.num_classes}, interaction={self.interaction}"


def with_attribute(rows: Tensor, column: Tensor, columns: int, interaction: bool) -> Tensor:
    """``(x, e_s)`` or ``x ⊗ e_s`` of rows ``(M, D)`` and their columns ``(M)``."""
    if interaction:  # a missing value stays one in its own column and makes none in the others
        block = rows.new_zeros(len(rows), columns, rows.shape[1])
        block[torch.arange(len(rows), device=rows.device), column] = rows
        return block.flatten(1)
    return torch.cat([rows, nn.functional.one_hot(column, columns).to(rows.dtype)], 1)


class OutsideScorer(Scorer):
    """The margin of a fitted classifier of another library that works on NumPy arrays, times a factor.

    Its ``decision_function``, or else ``2 p - 1`` of the probability ``p`` of its second class, or half the log-odds
    ``½ ln(p/(1 - p))``. There is no gradient, and the `state_dict` does not hold it; pickle does.

    Args:
        classifier: with ``decision_function(X)`` that gives ``(N)``, or ``predict_proba(X)`` that gives ``(N, 2)``.
        in_features: ``D``.
        factor: what the decision function is multiplied by.
        log_odds: make of probabilities half their log-odds; a probability of 0 or 1 is taken for one next to it.

    Shape:
        features ``(*, D)``; scores ``(*, 1)``, in the features' dtype, float32 at least.

    Raises:
        TypeError: a classifier with neither method.
        ValueError: what it gives is not a number for each row.

    Reference: Pedregosa et al. (2011), *Scikit-learn: machine learning in Python*, for the two methods.

    Example:
        >>> import torch
        >>> class First:
        ...     def decision_function(self, X):
        ...         return X[:, 0]
        >>> OutsideScorer(First(), 2)(torch.tensor([[3.0, 4.0]]))
        tensor([[3.]])
    """

    def __init__(self, classifier: Any, in_features: int, factor: float = 1.0, *, log_odds: bool = False) -> None:
        super().__init__()
        in_features = width(in_features)
        self.method = next((name for name in ("decision_function", "predict_proba") if hasattr(classifier, name)), "")
        if not self.method:
            raise TypeError(
                f"learner: got {check.came(classifier)}; accepted is one with decision_function or predict_proba"
            )
        check.flag("log_odds", log_odds)
        self.classifier, self.factor, self.log_odds = classifier, check.positive("factor", factor), log_odds
        self.in_features, self.num_classes = in_features, 1

    def reset_parameters(self) -> None:
        """Nothing to draw: what was trained stays."""
        super().reset_parameters()

    def forward(self, features: Tensor) -> Tensor:
        """The margin."""
        check_features(features, self.in_features, sparse=False)
        check.with_values("features", features)
        rows = features.detach().reshape(-1, self.in_features).cpu()
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        if len(rows) == 0:
            return rows.new_zeros(*features.shape[:-1], 1).to(features.device)
        given = torch.as_tensor(getattr(self.classifier, self.method)(rows.numpy()), device="cpu")
        if self.method == "predict_proba":
            check.shape("predict_proba", given, (len(rows), 2), "a share for each of two classes")
            given = (given[:, 1] - given[:, 0]).double()
            if self.log_odds:
                given = given.clamp(-1 + 1e-15, 1 - 1e-15).atanh()
        if given.shape not in ((len(rows),), (len(rows), 1)):
            raise ValueError(
                f"decision_function: gave shape {tuple(given.shape)}; accepted is ({len(rows)},), a number for each row"
            )
        margins = self.factor * given.to(rows.dtype)
        return margins.reshape(*features.shape[:-1], 1).to(features.device)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"{type(self.classifier).__name__}, in_features={self.in_features}, factor={self.factor:g}"
