"""The mean of what several scorers say, or of how they vote."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.scorers.base import Scorer

__all__ = ["AveragedScorer"]


class AveragedScorer(Scorer):
    r"""``f(x) = (1/T) sum_t f_t(x)``, or the share of the scorers that vote for a class.

    A vote is 1 for the class of the highest score, the first of equal ones; of a single score it is its sign, -1 at 0.

    Args:
        scorers: one or more, of the same features, with equally many scores.
        vote: ``"average"`` of the scores, or ``"majority"``, without a gradient.

    Shape:
        features ``(*, D)``; scores ``(*, K)``.

    Raises:
        ValueError: no scorers, scorers of different sizes.
        TypeError: what is no scorer; scorers whose scores are not a tensor, such as those of a code, of which
            ``margins`` can be averaged.

    Reference: Breiman (1996), *Bagging predictors*, section 1.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> parts = [tm.LinearScorer(3, 4) for _ in range(5)]
        >>> x = torch.randn(2, 3)
        >>> torch.allclose(AveragedScorer(parts)(x), sum(part(x) for part in parts) / 5, atol=1e-6)
        True
        >>> AveragedScorer(parts, "majority")(x).sum(1)
        tensor([1., 1.])
    """

    def __init__(self, scorers: Sequence[Scorer], vote: str = "average") -> None:
        super().__init__()
        if not isinstance(scorers, (list, tuple, nn.ModuleList)):
            raise TypeError(f"scorers: got {check.shown(scorers)}; accepted is a sequence of scorers")
        if not len(scorers):
            raise ValueError("scorers: there are none; accepted is at least one")
        for scorer in scorers:
            if not isinstance(scorer, Scorer):
                raise TypeError(f"scorers: got {check.shown(scorer)}; accepted are scorers")
            size, first = (scorer.in_features, scorer.num_classes), (scorers[0].in_features, scorers[0].num_classes)
            if size != first:
                raise ValueError(
                    f"scorers: one has {size[0]} features and {size[1]} scores, another {first[0]} and {first[1]}; "
                    "accepted are scorers of the same"
                )
        check.choice("vote", vote, ("average", "majority"))
        self.in_features, self.num_classes = scorers[0].in_features, scorers[0].num_classes
        self.scorers, self.vote = nn.ModuleList(scorers), vote

    def reset_parameters(self) -> None:
        """Draw those of every scorer anew."""
        super().reset_parameters()
        for scorer in self.scorers:
            scorer.reset_parameters()  # type: ignore[operator]

    def forward(self, features: Tensor) -> Tensor:
        """The mean."""
        total: Tensor | None = None
        for scorer in self.scorers:
            scores = scorer(features)
            if not isinstance(scores, Tensor):
                raise TypeError(f"scorers: give {type(scores).__name__}; accepted are those that give a tensor")
            part = scores if self.vote == "average" else votes(scores)
            total = part if total is None else total + part
        assert total is not None
        return total / len(self.scorers)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_classes={self.num_classes}, vote={self.vote!r}"


def votes(scores: Tensor) -> Tensor:
    """1 for the class of the highest score; ±1 by the sign of a single one, -1 at 0."""
    if scores.shape[-1] == 1:
        return torch.where(scores > 0, 1.0, -1.0).to(scores.dtype)
    return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
