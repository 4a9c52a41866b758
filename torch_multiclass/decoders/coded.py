"""From binary margins to the class whose row of the code is nearest."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.codes import name_of
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores.coded import CodedScores

__all__ = ["HammingDecoder", "LossBasedDecoder", "TournamentDecoder", "VotingDecoder"]

TIES = ("lowest", "confidence")


class LossBasedDecoder(Decoder):
    r"""The class on which the binary losses would be smallest, ``\arg\min_r \sum_s \ell(M(r, s) f_s)``.

    Columns that ignore a class add ``\ell(0)``. With ``"logistic"`` this is maximum likelihood decoding. Classes are
    compared by the columns in which they differ, so that neither large margins nor large common terms hide which is
    nearer. Ties go to the lowest class.

    Args:
        loss: one of the losses of `CodedLoss`, by name or as an object; ``"zero_one"`` is Hamming decoding.

    Shape:
        `CodedScores` of margins ``(*, L)``; labels ``(*)``.

    Raises:
        ValueError: an unknown loss.
        TypeError: scores that are not `CodedScores`.

    Reference: Allwein, Schapire and Singer (2000), eq. (5); Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine
    Learning*, (9.19).

    Example:
        >>> import torch
        >>> code = torch.tensor([[-1, 0, -1, -1, 1, -1, -1], [1, -1, 0, 1, 1, 1, -1],
        ...                      [1, 0, -1, -1, -1, 1, 1], [-1, -1, 1, 0, -1, -1, 1]])
        >>> scores = CodedScores(torch.tensor([0.5, -7.0, -1.0, -2.0, -10.0, -12.0, 9.0]), code)
        >>> LossBasedDecoder("exponential")(scores), HammingDecoder()(scores)
        (tensor(3), tensor(2))
    """

    reads = (CodedScores,)

    def __init__(self, loss: MarginLossLike = "hinge") -> None:
        super().__init__()
        self.loss = as_margin_loss(loss)

    def forward(self, scores: CodedScores) -> Tensor:
        """The labels."""
        with unrecorded():
            _check(scores)
            return scores.nearest(self.loss)

    def class_scores(self, scores: CodedScores) -> Tensor:
        """Minus the distance to each class; for ``"exponential"`` minus its logarithm, which orders alike.

        The largest is that of the label, also where rounding hides which row is nearer.
        """
        _check(scores)
        if self.loss.wide:
            return scores.log_class_scores(self.loss)
        return scores.class_scores(self.loss)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"loss={self.loss.name!r}"


class HammingDecoder(LossBasedDecoder):
    r"""The class whose row agrees with the most signs, ``\arg\min_r \sum_s (1 - sign(M(r, s) f_s)) / 2``.

    A zero in the row or a zero margin counts ½.

    Args:
        ties: ``"lowest"``, the lowest class; or ``"confidence"``, the class for which the margins add up to most,
            ``\sum_s M(r, s) f_s``.

    Shape:
        `CodedScores` of margins ``(*, L)``; labels ``(*)``.

    Raises:
        TypeError: scores that are not `CodedScores`.

    Reference: Allwein, Schapire and Singer (2000), eq. (4); Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine
    Learning*, (9.18).

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> HammingDecoder()(CodedScores(torch.tensor([0.2, -0.5, 0.9]), codes.one_vs_one(3)))  # each wins once
        tensor(0)
    """

    def __init__(self, ties: str = "lowest") -> None:
        super().__init__("zero_one")
        check.choice("ties", ties, TIES)
        self.ties = ties

    def forward(self, scores: CodedScores) -> Tensor:
        """The labels."""
        if self.ties == "lowest":
            return super().forward(scores)
        with unrecorded():
            return self.class_scores(scores).argmax(-1)

    def class_scores(self, scores: CodedScores) -> Tensor:
        """Minus the distance to each class, and less than a quarter by confidence where that breaks ties."""
        distances = super().class_scores(scores)
        return distances if self.ties == "lowest" else _by_confidence(distances, scores)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return _shown(self.ties)


class VotingDecoder(Decoder):
    r"""The class that wins most of its pairs, ``\arg\max_r |\{r' : h_{r r'} = 1\}|``, on the one-versus-one code.

    The same as Hamming decoding on that code. A margin of 0 gives each of the two half a vote.

    Args:
        ties: ``"lowest"``, the lowest class; or ``"confidence"``, the class whose margins against the others add up to
            most, as scikit-learn's ``OneVsOneClassifier`` has it.

    Shape:
        `CodedScores` of margins ``(*, K(K-1)/2)``; labels ``(*)``.

    Raises:
        ValueError: a code other than one-versus-one.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.17).

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([-0.2, -0.5, 0.9]), codes.one_vs_one(3))
        >>> VotingDecoder()(scores), VotingDecoder().class_scores(scores)
        (tensor(1), tensor([0., 2., 1.]))
        >>> each_wins_once = CodedScores(torch.tensor([0.2, -0.5, 0.9]), codes.one_vs_one(3))
        >>> VotingDecoder()(each_wins_once), VotingDecoder(ties="confidence")(each_wins_once)
        (tensor(0), tensor(1))
    """

    reads = (CodedScores,)

    def __init__(self, ties: str = "lowest") -> None:
        super().__init__()
        check.choice("ties", ties, TIES)
        self.ties = ties

    def forward(self, scores: CodedScores) -> Tensor:
        """The labels."""
        with unrecorded():
            return self.class_scores(scores).argmax(-1)

    def class_scores(self, scores: CodedScores) -> Tensor:
        """The number of pairs that each class wins, and less than a quarter by confidence where that breaks ties."""
        _check_one_vs_one(scores, "VotingDecoder")
        return scores.votes() if self.ties == "lowest" else _by_confidence(scores.votes(), scores)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return _shown(self.ties)


class TournamentDecoder(Decoder):
    """The winner of a knock-out among the classes, on the one-versus-one code: ``K - 1`` matches instead of all pairs.

    The bracket starts as ``0 .. K-1``; neighbours meet, an odd last one has a bye. A margin of 0 lets the lower class
    through.

    Shape:
        `CodedScores` of margins ``(*, K(K-1)/2)``; labels ``(*)``.

    Raises:
        ValueError: a code other than one-versus-one.

    Reference: Roth, lecture slides on multi-class classification.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([0.2, -0.5, 0.9]), codes.one_vs_one(3))  # 0 beats 1, 2 beats 0
        >>> TournamentDecoder()(scores), TournamentDecoder().class_scores(scores)
        (tensor(2), tensor([1., 0., 2.]))
    """

    reads = (CodedScores,)

    def forward(self, scores: CodedScores) -> Tensor:
        """The labels."""
        with unrecorded():
            _check_one_vs_one(scores, "TournamentDecoder")
            return scores.knock_out()[0]

    def class_scores(self, scores: CodedScores) -> Tensor:
        """The number of rounds that each class survives."""
        _check_one_vs_one(scores, "TournamentDecoder")
        return scores.without_absent(scores.knock_out()[1])


def _by_confidence(counts: Tensor, scores: CodedScores) -> Tensor:
    """Counts of halves, equal ones set apart by the agreement of the margins, as a share of the largest of the row."""
    agreement = scores.agreement().nan_to_num(torch.nan, 1e300, -1e300)
    largest = agreement.abs().amax(-1, keepdim=True)
    return counts + torch.where(largest > 0, agreement / (4.5 * largest), 0.0).to(counts.dtype)


def _shown(ties: str) -> str:
    return "" if ties == "lowest" else f"ties={ties!r}"


def _check(scores: CodedScores) -> None:
    if not isinstance(scores, CodedScores):
        raise TypeError(f"scores: got {check.came(scores)}; accepted here is CodedScores(margins, code)")


def _check_one_vs_one(scores: CodedScores, name: str) -> None:
    _check(scores)
    k, columns = scores.num_classes, scores.num_columns
    fits = columns == k * (k - 1) // 2
    if scores.name is not None:
        fits = fits and scores.name == "one_vs_one"
    elif fits and check.values_readable(scores.code):
        fits = name_of(scores.code) == "one_vs_one"
    if not fits:
        raise ValueError(
            f"code: got a ({k}, {columns}) code that is not codes.one_vs_one({k}); accepted by {name} is that code"
        )
