"""Linear emissions and learned transitions of a label sequence."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.constants import Constants
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features, place, width
from torch_multiclass.scores import ChainScores
from torch_multiclass.tags import Constraints

__all__ = ["Chain", "ChainScorer"]


class Chain(Constants):
    """The transitions of a label sequence: emissions to `ChainScores`.

    Its parameters are ``transitions`` ``(K, K)`` ``[from, to]``, ``start_transitions`` and ``end_transitions``
    ``(K,)``, under the names that pytorch-crf gives them, so that a `state_dict` of its ``CRF`` loads strictly.

    Args:
        num_tags: ``K``.
        constraints: from `torch_multiclass.tag_constraints`: what is forbidden, added to the scores and not learned;
            kept outside the `state_dict`.
        device, dtype: of the parameters.

    Shape:
        emissions ``(*, T, K)``; mask ``(*, T)`` or lengths ``(*)``.

    Raises:
        ValueError: ``num_tags`` below 1, constraints of another number of tags; what `ChainScores` raises.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5.

    Example:
        >>> import torch
        >>> chain = Chain(4)
        >>> chain(torch.randn(2, 5, 4), lengths=torch.tensor([5, 3])).decode().labels.shape
        torch.Size([2, 5])
        >>> sorted(chain.state_dict())
        ['end_transitions', 'start_transitions', 'transitions']
    """

    def __init__(
        self,
        num_tags: int,
        constraints: Constraints | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        super().__init__()
        num_tags = check.whole("num_tags", num_tags)
        self.num_tags = num_tags
        self.start_transitions = nn.Parameter(torch.empty(num_tags, device=device, dtype=dtype))
        self.end_transitions = nn.Parameter(torch.empty(num_tags, device=device, dtype=dtype))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags, device=device, dtype=dtype))
        self.constrained = constraints is not None
        if constraints is not None:
            if not isinstance(constraints, Constraints):
                raise TypeError(
                    f"constraints: got {check.came(constraints)}; accepted is what tag_constraints(tags) gives"
                )
            for name, part, own in zip(Constraints._fields, constraints, self._parts(), strict=True):
                check.floating(f"constraints.{name}", part)
                check.shape(f"constraints.{name}", part, tuple(own.shape), f"for {num_tags} tags")
                check.with_values(f"constraints.{name}", part)
                self.register_constant(f"allowed_{name}", part.to(own, copy=True), part)
        self.reset_parameters()

    belongs: ClassVar[str] = "after head = ChainHead(D, K), head.scorer.chain = chain puts one in"
    """Where it goes, for a message."""

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.transitions, self.start_transitions, self.end_transitions

    def reset_parameters(self) -> None:
        """Draw all scores uniformly in ``±0.1``, and write the constraints anew."""
        super().reset_parameters()
        for part in self._parts():
            nn.init.uniform_(part, -0.1, 0.1)

    def forward(self, emissions: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None) -> ChainScores:
        """The scores of every labelling."""
        check.floating("emissions", emissions)
        # Never the parameters themselves: whoever shards or watches them (FSDP, DDP) takes them back after this call.
        transitions, start, end = (
            part + getattr(self, f"allowed_{name}") if self.constrained else part.clone()
            for name, part in zip(Constraints._fields, self._parts(), strict=True)
        )
        return ChainScores(upcast(emissions), transitions, start=start, end=end, mask=mask, lengths=lengths)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"num_tags={self.num_tags}" + (", constrained" if self.constrained else "")


class ChainScorer(Scorer):
    r"""Linear emissions ``W x_t + b`` at every position, and learned transitions between neighbouring labels.

    Args:
        in_features: ``D``, the width of the features at each position; or any scorer, such as a `KernelScorer`, whose
            scores are the emissions.
        num_tags: ``K``.
        constraints: from `torch_multiclass.tag_constraints`: what is forbidden, in training and decoding alike.
        bias: whether the emissions have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``; mask ``(*, T)`` bool or lengths ``(*)``; the result is `ChainScores`.

    Raises:
        ValueError: features whose last dimension is not ``D``; what `ChainScores` raises. Features that make
            an emission ``+inf`` or NaN are not refused: values become infinite or NaN. A chain put in place of its own
            that has other tags, or no constraints where its own has some.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> scorer, loss, decode = ChainScorer(8, 3), tm.CRFLoss(), tm.ViterbiDecoder()
        >>> scores = scorer(torch.randn(2, 5, 8), lengths=torch.tensor([5, 2]))
        >>> loss(scores, torch.zeros(2, 5, dtype=torch.long)).backward()
        >>> decode(scores)[1, 2:]
        tensor([-100, -100, -100])
    """

    gives = ChainScores

    def __init__(
        self,
        in_features: int | Scorer,
        num_tags: int,
        constraints: Constraints | None = None,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        super().__init__()
        if isinstance(num_tags, Chain):
            raise TypeError(f"num_tags: got Chain; accepted is the number of tags, a whole number{place(num_tags)}")
        num_tags = check.whole("num_tags", num_tags)
        check.flag("bias", bias)
        if isinstance(in_features, Scorer):
            if in_features.num_classes != num_tags:
                raise ValueError(f"in_features: has {in_features.num_classes} scores; accepted is one of {num_tags}")
            self.emissions: nn.Linear | Scorer = in_features
        else:
            in_features = width(in_features)
            self.emissions = nn.Linear(in_features, num_tags, bias, device=device, dtype=dtype)
        self.in_features, self.num_classes, self.num_tags = self.emissions.in_features, num_tags, num_tags
        self.chain = Chain(num_tags, constraints, device=device, dtype=dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        """As ever; a chain in place of another one has as many tags, and constraints where that has some."""
        before = self.__dict__.get("_modules", {}).get(name)
        if isinstance(before, Chain) and isinstance(value, Chain) and value is not before:
            if value.num_tags != before.num_tags:
                raise ValueError(f"{name}: has {value.num_tags} tags; accepted is one of {before.num_tags}")
            if before.constrained and not value.constrained:
                raise ValueError(
                    f"{name}: has no constraints, and the one in its place has; accepted is one with constraints, as "
                    "load_crf(state_dict, constraints=...) gives it"
                )
        super().__setattr__(name, value)

    def reset_parameters(self) -> None:
        """Draw emission weights and transitions anew."""
        self.emissions.reset_parameters()
        self.chain.reset_parameters()

    def forward(self, features: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None) -> ChainScores:
        """The scores of every labelling."""
        check_features(features, self.in_features)
        if isinstance(self.emissions, nn.Linear):
            features = as_wide_as(self.emissions.weight, features)
        scores: ChainScores = self.chain(self.emissions(features), mask=mask, lengths=lengths)
        return scores

    def class_norms(self) -> Tensor:
        """The norms of the emission weights of each tag, ``(K,)``."""
        if isinstance(self.emissions, Scorer):
            return self.emissions.class_norms()
        norms: Tensor = self.emissions.weight.norm(dim=1)
        return norms
