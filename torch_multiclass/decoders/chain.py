"""Decoding a sequence of labels."""

from __future__ import annotations

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores import ChainScores, MultilabelScores, SecondOrderScores, SegmentScores, TreeScores
from torch_multiclass.scores.recorded import Recorded

__all__ = ["KBestDecoder", "PosteriorDecoder", "ViterbiDecoder"]


class _ChainDecoder(Decoder):
    reads = (ChainScores, SecondOrderScores, SegmentScores, TreeScores, MultilabelScores)

    def class_scores(self, scores: ChainScores | Recorded) -> Tensor:
        """The probability of each label at each position, ``(*, T, K)``, 0 where masked."""
        return _chain(scores).marginals()


def _chain(scores: object) -> ChainScores | Recorded:
    if not isinstance(scores, _ChainDecoder.reads):
        best = {"Tensor": "topk(k, dim=-1)", "FlatScores": "top(k)"}.get(type(scores).__name__)
        hint = f"; one label a row is decoded by ArgmaxDecoder, and scores.{best} has the k best" if best else ""
        raise TypeError(
            f"scores: got {check.came(scores)}; accepted are ChainScores, SecondOrderScores, SegmentScores, "
            f"TreeScores and MultilabelScores{hint}"
        )
    return scores


class ViterbiDecoder(_ChainDecoder):
    r"""The best labelling, ``\arg\max_y s(y)``; of equal ones that with the lowest last label, then backwards.

    Shape:
        `ChainScores` of ``(*, T, K)``; labels ``(*, T)``, -100 where masked or where no labelling is possible.

    Raises:
        TypeError: scores that are not `ChainScores`.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5; Viterbi
    (1967).

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScores
        >>> emissions = torch.tensor([[[1.0, 0.0], [0.0, 0.4], [0.0, 9.0]]])
        >>> ViterbiDecoder()(ChainScores(emissions, torch.eye(2), lengths=torch.tensor([2])))
        tensor([[   0,    0, -100]])
    """

    def forward(self, scores: ChainScores | Recorded) -> Tensor:
        """The labels."""
        with unrecorded():
            return _chain(scores).best_labels()


class PosteriorDecoder(_ChainDecoder):
    r"""The labelling with the most positions right on average, ``\arg\max_y \sum_t p(y_t)``.

    Args:
        legal: among the labellings that are not forbidden; False takes the most probable label of each position alone.

    Shape:
        `ChainScores` of ``(*, T, K)``; labels ``(*, T)``, -100 where masked or where no labelling is possible.

    Raises:
        TypeError: scores that are not `ChainScores`.

    Reference: Rabiner (1989), A tutorial on hidden Markov models, (39)-(41), the individually most likely states.

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScores
        >>> emissions = torch.tensor([[1.0, 0.0], [0.0, 0.4]])
        >>> PosteriorDecoder()(ChainScores(emissions, torch.zeros(2, 2)))
        tensor([0, 1])
    """

    def __init__(self, legal: bool = True) -> None:
        super().__init__()
        check.flag("legal", legal)
        self.legal = legal

    def forward(self, scores: ChainScores | Recorded) -> Tensor:
        """The labels."""
        with unrecorded():
            return _chain(scores).posterior_decode(legal=self.legal).labels

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "" if self.legal else "legal=False"


class KBestDecoder(_ChainDecoder):
    """The ``k`` best labellings, distinct, best first.

    Args:
        k: how many.

    Shape:
        `ChainScores` of ``(*, T, K)``; labels ``(*, k, T)``, -100 where masked and where fewer labellings exist.

    Raises:
        ValueError: a ``k`` that is not a whole number >= 1.
        TypeError: scores that are not `ChainScores`.

    Reference: Soong and Huang (1991), A tree-trellis based fast search for finding the N best sentence hypotheses.

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScores
        >>> KBestDecoder(3)(ChainScores(torch.tensor([[2.0, 1.0], [0.5, 0.0]]), torch.zeros(2, 2)))
        tensor([[0, 0],
                [0, 1],
                [1, 0]])
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        k = check.whole("k", k)
        self.k = k

    def forward(self, scores: ChainScores | Recorded) -> Tensor:
        """The labels."""
        with unrecorded():
            return _chain(scores).top(self.k).labels

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"k={self.k}"
