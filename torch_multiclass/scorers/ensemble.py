"""Trees and weighted sums of trees: scores by questions about single features, grown by a solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.ops.splits import descend
from torch_multiclass.ops.splits.descend import Nodes
from torch_multiclass.ops.splits.tree import Tree, single
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features

__all__ = ["EnsembleScorer", "TreeScorer"]

TABLES = tuple(Nodes.__annotations__)


class _Trees(Scorer, Nodes):
    """Trees whose nodes stand in buffers, one table for all of them."""

    tables: ClassVar[tuple[str, ...]] = TABLES
    """The names in the `state_dict`."""

    def __init__(
        self, trees: Sequence[Tree], device: torch.device | str | int | None, dtype: torch.dtype | None
    ) -> None:
        factory(device, dtype)
        super().__init__()
        if not isinstance(trees, Sequence):
            raise TypeError(f"trees: got {check.shown(trees)}; accepted are trees as solvers grow them, one or more")
        if not trees:
            raise ValueError("trees: there are none; accepted is at least one")
        for tree in trees:
            if not isinstance(tree, Tree):
                raise TypeError(f"trees: got {check.shown(tree)}; accepted are trees as solvers grow them")
            if (tree.features, tree.values.shape[1]) != (trees[0].features, trees[0].values.shape[1]):
                raise ValueError(
                    f"trees: one has {tree.features} features and {tree.values.shape[1]} values, another "
                    f"{trees[0].features} and {trees[0].values.shape[1]}; accepted are trees of the same"
                )
        self.in_features, self.num_classes = trees[0].features, trees[0].values.shape[1]
        nodes = descend.pack(trees, torch.get_default_dtype() if dtype is None else dtype)
        self.depth = descend.depth(nodes.branches, len(nodes.values))
        """How many questions at most are asked."""
        device = torch.empty(0).device if device is None else device
        for name in TABLES:
            made = getattr(nodes, name).to(device)
            # Nothing in NumPy's memory has an address that `torch.export.save` takes for a part of something.
            self.register_buffer(name, made if made.numel() else torch.empty_like(made))

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.values)

    def reset_parameters(self) -> None:
        """Nothing to draw: what was grown stays."""
        super().reset_parameters()

    def _rows(self, features: Tensor) -> Tensor:
        check_features(features, self.in_features)
        check.dense("features", features)
        return as_wide_as(self.threshold, features).to(self.threshold.dtype).reshape(-1, self.in_features)

    def leaves(self, features: Tensor) -> Tensor:
        """The leaf of each row in each tree, ``(*, T)``, counted over all trees."""
        found = descend.leaves_of(self._rows(features), self, self.depth)
        return found.reshape(*features.shape[:-1], found.shape[-1])

    def _summed(self, features: Tensor, weights: Tensor | None) -> Tensor:
        rows = self._rows(features)
        return descend.summed(rows, self, weights, self.depth).reshape(*features.shape[:-1], self.num_classes)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        for name, own in list(self._buffers.items()):  # trees of other sizes are trees as good
            given = state_dict.get(prefix + name)
            if own is None or not isinstance(given, Tensor) or given.dim() != own.dim():
                continue
            if given.shape[1:] == own.shape[1:] or name == "subsets":
                self._buffers[name] = own.new_empty(given.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)  # type: ignore[arg-type]
        if not self.branches.is_meta and self.branches.shape[0] == self.feature.shape[0]:
            self.depth = descend.depth(self.branches, len(self.values))

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Tensor], prefix: str = "") -> Self:
        """The scorer that a `state_dict` is of, whatever its size.

        Args:
            state: what ``scorer.state_dict()`` gave, or what `torch.load` made of it.
            prefix: of its names, where it is a part of a whole: ``"margins."`` in a `CodedScorer`.

        Raises:
            ValueError: a state of another scorer.

        Example:
            >>> import torch
            >>> from torch_multiclass.solvers import DecisionTree
            >>> x = torch.tensor([[0.0], [1.0], [2.0]])
            >>> grown = DecisionTree().fit(x, torch.tensor([0, 1, 1])).scorer
            >>> TreeScorer.from_state_dict(grown.state_dict())(x).argmax(1)
            tensor([0, 1, 1])
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state: got {check.shown(state)}; accepted is a state_dict of a {cls.__name__}")
        own = {name: state.get(prefix + name) for name in cls.tables}
        parts = {name: part for name, part in own.items() if isinstance(part, Tensor)}
        if len(parts) < len(own) or not parts["values"].dim() == parts["directions"].dim() == 2:
            lost = ", ".join(prefix + name for name in own if name not in parts) or "entries of such shapes"
            raise ValueError(f"state: is without {lost}; accepted is a state_dict of a {cls.__name__}")
        values = parts["values"]
        made = cls.of([single(np.zeros(values.shape[1]), parts["directions"].shape[1])], values.device, values.dtype)
        made.load_state_dict(parts)
        return made

    @classmethod
    @abstractmethod
    def of(cls, trees: Sequence[Tree], device: torch.device, dtype: torch.dtype) -> Self:
        """A scorer of trees."""

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        trees = "" if isinstance(self, TreeScorer) else f", trees={len(self.roots)}"
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}{trees}, leaves={self.num_leaves}, "
            f"depth={self.depth}"
        )


class TreeScorer(_Trees):
    r"""A binary tree of questions; the scores of a row are those of the leaf where its answers lead.

    Made by a solver such as `torch_multiclass.solvers.DecisionTree`. All that it consists of stands in buffers, so that
    it moves, saves, loads and exports; a batch is evaluated at once, by as many gathers as the tree is deep. Another
    tree's `state_dict` can be loaded whatever its number of nodes; `from_state_dict` makes a scorer of one.

    Args:
        tree: the nodes.
        device, dtype: of the thresholds and values.

    Shape:
        features ``(*, D)``, where NaN is a missing value; scores ``(*, K)``.

    Raises:
        ValueError: features whose last dimension is not ``D``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.3.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> from torch_multiclass.ops.splits.tree import single
        >>> TreeScorer(single(torch.tensor([0.2, 0.8]).numpy(), features=3))(torch.randn(2, 3))
        tensor([[0.2000, 0.8000],
                [0.2000, 0.8000]])
    """

    def __init__(
        self, tree: Tree, *, device: torch.device | str | int | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__([tree], device, dtype)

    @classmethod
    def of(cls, trees: Sequence[Tree], device: torch.device, dtype: torch.dtype) -> Self:
        """A scorer of one tree."""
        return cls(trees[0], device=device, dtype=dtype)

    def forward(self, features: Tensor) -> Tensor:
        """The values of the leaves."""
        return self._summed(features, None)


class EnsembleScorer(_Trees):
    r"""``f(x) = sum_t alpha_t h_t(x)`` of trees ``h_t``, stumps among them: a forest, or what boosting makes.

    Args:
        trees: one or more, with values for the same classes.
        weights: ``(T)``, by default ``1 / T`` each, the mean.
        device, dtype: of the thresholds, values and weights.

    Shape:
        features ``(*, D)``, where NaN is a missing value; scores ``(*, K)``.

    Raises:
        ValueError: no trees, trees of different sizes, weights that are not one for each tree.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, figure 9.1; Breiman (2001), *Random
    forests*.

    Example:
        >>> import torch
        >>> from torch_multiclass.ops.splits.tree import single
        >>> votes = [single(torch.tensor(v).numpy(), features=3) for v in ([1.0, 0.0], [0.0, 1.0])]
        >>> EnsembleScorer(votes, torch.tensor([0.25, 0.75]))(torch.randn(3))
        tensor([0.2500, 0.7500])
    """

    tables = (*TABLES, "weights")
    weights: Tensor

    def __init__(
        self,
        trees: Sequence[Tree],
        weights: Tensor | Sequence[float] | None = None,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(trees, device, dtype)
        if weights is None:
            weights = torch.full((len(trees),), 1 / len(trees), dtype=torch.float64)
        given = check.numbers("weights", weights, "one number for each tree, (T)").detach()
        check.shape("weights", given, (len(trees),), "one number for each tree")
        self.register_buffer("weights", given.to(self.values.device, self.values.dtype))

    @classmethod
    def of(cls, trees: Sequence[Tree], device: torch.device, dtype: torch.dtype) -> Self:
        """A scorer of the mean of trees."""
        return cls(trees, device=device, dtype=dtype)

    def forward(self, features: Tensor) -> Tensor:
        """The weighted sum."""
        return self._summed(features, self.weights)
