"""What is scored, and the verbs that losses and decoders are written in."""

from torch import Tensor

from torch_multiclass.checks import integer, lacks, no_tensor
from torch_multiclass.scores.base import Decoded, Scores
from torch_multiclass.scores.chain import ChainScores
from torch_multiclass.scores.coded import CodedScores
from torch_multiclass.scores.flat import FlatScores, check_scores
from torch_multiclass.scores.multilabel import MultilabelScores
from torch_multiclass.scores.second_order import SecondOrderScores
from torch_multiclass.scores.segments import SegmentScores, segment_tags
from torch_multiclass.scores.tree import TreeScores

__all__ = [
    "ChainScores",
    "CodedScores",
    "Decoded",
    "FlatScores",
    "MultilabelScores",
    "Scores",
    "SecondOrderScores",
    "SegmentScores",
    "TreeScores",
    "as_scores",
    "segment_tags",
]


def as_scores(scores: Tensor | Scores, class_dim: int = -1) -> Scores:
    """Scores as they are, or a plain tensor as `FlatScores` with its classes moved last.

    Args:
        scores: a floating-point tensor, `FlatScores` or `ChainScores`.
        class_dim: the dimension of a plain tensor that holds the classes.

    Shape:
        a tensor ``(*, K)``, or with ``K`` at ``class_dim``; the result is of ``(*, K)``.

    Raises:
        TypeError: `CodedScores`, or what is no floating-point tensor.
        ValueError: a dimension that the tensor does not have, or one named for scores that are no plain tensor.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2, for scores of one label.

    Example:
        >>> import torch
        >>> as_scores(torch.zeros(2, 3, 5), class_dim=1).num_classes
        3
    """
    class_dim = integer("class_dim", class_dim)
    if not isinstance(scores, Tensor):
        return _of_structure(scores, class_dim)
    if not -scores.ndim <= class_dim < max(scores.ndim, 1):
        raise ValueError(
            f"class_dim: got {class_dim} for scores with {scores.ndim} dimensions; accepted is one of theirs"
        )
    if class_dim in (-1, scores.ndim - 1):
        return FlatScores(scores)
    check_scores(scores)
    return FlatScores(scores.movedim(class_dim, -1))


def _of_structure(scores: object, class_dim: int) -> Scores:
    if isinstance(scores, Scores):
        if class_dim != -1:
            raise ValueError(f"class_dim: got {class_dim} with {type(scores).__name__}; accepted there is -1")
        return scores
    if isinstance(scores, CodedScores):
        raise TypeError(
            "scores: got CodedScores; accepted are a tensor (*, K), FlatScores and ChainScores (use CodedLoss)"
        )
    raise no_tensor("scores", scores)


lacks(__name__)
