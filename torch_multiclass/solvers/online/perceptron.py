"""The multi-class perceptron and its passive-aggressive kin."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass.ops.online import Rule
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.online.examples import Features
from torch_multiclass.solvers.online.learner import Mistakes, OnlineLearner, OnlineOptions
from torch_multiclass.solvers.online.sequences import check_constraints, sequences
from torch_multiclass.solvers.problem import RowWeights, check_constant, no_sequence
from torch_multiclass.tags import Constraints

__all__ = ["PassiveAggressive", "Perceptron"]


class Perceptron(OnlineLearner):
    r"""The multi-class perceptron: on a mistake ``w_y += eta x``, ``w_z -= eta x``, the competitor ``z`` being the best
    of the other classes, the lowest among equals, and a mistake ``w_y · x <= w_z · x``.

    If some ``W*`` separates the rows with ``gamma = min_i min_{z != y_i} (w*_{y_i} - w*_z) · x_i / sqrt(2 |W*|^2)`` and
    ``|x_i| <= R``, there are at most ``R^2 / gamma^2`` updates whatever the order, and then a pass without any, with
    which the fit ends. Of two classes this is the binary perceptron, update for update.

    Of sequences ``(N, T, D)`` it is the structured perceptron: a mistake is a best labelling (ties to the lowest last
    label, then backwards) that differs from the gold one, and the weights of emissions, transitions, start and end move
    by ``eta`` times the difference of what the two labellings count.

    Args:
        learning_rate: ``eta``; from weights of 0 it scales them and changes no decision.
        averaged: give the mean of the weights after each visit, whether it changed them or not.
        shuffle: draw a new order for each pass; by default it is the given one.
        bias: append a constant feature 1.
        constraints: of sequences, from `torch_multiclass.tag_constraints`: what is forbidden.
        max_passes: how often at most to go over the rows; a warning says where that did not do.
        generator: draws the orders; by default one seeded with 0, so fits repeat.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer, a `LinearScorer`, has scores ``(N, K)``. Of sequences
        ``(N, T, D)``, ``(N, T)``; it is a `ChainScorer`.

    Raises:
        ValueError: a rate that is not positive; what `fit` and `partial_fit` refuse.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §8.3.1 and Theorem 8.8; Crammer and
    Singer (2003), *Ultraconservative online algorithms for multiclass problems*; Freund and Schapire (1999) for
    averaging; Collins (2002), *Discriminative training methods for hidden Markov models*, for sequences.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0, 1], [0, 1, 1], [-1, -1, 1], [2, -1, 1], [-1, 2, 1], [-2, -1, 1]])
        >>> scorer, report = Perceptron().fit(x, torch.tensor([0, 1, 2, 0, 1, 2]))
        >>> scorer.weight.data
        tensor([[ 2.,  0., -1.],
                [-1.,  1.,  0.],
                [-1., -1.,  1.]])
        >>> report.mistakes, report.converged
        ([3, 0], True)
    """

    def __init__(
        self,
        *,
        learning_rate: float = 1.0,
        constraints: Constraints | None = None,
        **options: Unpack[OnlineOptions],
    ) -> None:
        super().__init__(**options)
        self.learning_rate = check_constant("learning_rate", learning_rate)
        self.constraints = check_constraints(constraints)

    def __repr__(self) -> str:
        return f"Perceptron(learning_rate={self.learning_rate:g}, averaged={self.averaged}, shuffle={self.shuffle})"

    def fit(
        self,
        features: Features,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        mask: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Fit[LinearScorer | ChainScorer, Mistakes]:
        """Train on rows or sequences at hand, until a pass changes nothing or there have been ``max_passes``.

        Args:
            features: rows: a dense tensor, one of layout ``torch.sparse_csr``, or a CSR matrix of SciPy; or sequences,
                a dense tensor.
            target: their labels, integers; rows, or positions, labelled -100 are left out.
            weight: a multiple of the step of each row or sequence, >= 0; 0 leaves it out. A step of 2 is not the row
                twice, which would be looked at again in between.
            num_classes: ``K``; by default one more than the largest label.
            mask, lengths: of sequences, the positions that count; by default those with a label.

        Shape:
            features ``(N, D)``, target ``(N)``; or ``(N, T, D)``, ``(N, T)``, mask ``(N, T)`` bool or lengths ``(N)``;
            weight ``(N)``.

        Raises:
            ValueError: no rows, one class, or features that are not finite; weights that do not fit; a position that
                counts without a label.
        """
        if not _are_sequences(features, target, mask, lengths):
            return super().fit(features, target, weight=weight, num_classes=num_classes)
        problem = sequences(features, target, weight, num_classes, mask, lengths, self.constraints)
        if problem.given and not len(problem.visits):
            raise no_sequence(problem.given)
        problem.some()
        return self.solve(problem, self.monitor(problem))

    def partial_fit(
        self,
        features: Features,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        mask: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Fit[LinearScorer | ChainScorer, Mistakes]:
        """Visit the rows or sequences of one more batch of a stream once, from where the batch before has left off.

        What a stream has taught is kept in the learner, apart from `fit`, until `reset`.

        Args:
            features, target, weight, mask, lengths: as in `fit`; a batch may lack classes, or rows.
            num_classes: ``K``, at the first batch; by default one more than its largest label.

        Returns:
            The scorer so far, and how the stream has gone, a batch being a pass.

        Raises:
            ValueError: what `fit` raises; a label or a width other than the first batch had.
        """
        if not _are_sequences(features, target, mask, lengths):
            return super().partial_fit(features, target, weight=weight, num_classes=num_classes)
        known = self.known_classes(num_classes)
        begins = self._stream is None
        return self.go_on(sequences(features, target, weight, known, mask, lengths, self.constraints, begins))

    @property
    def rule(self) -> Rule:
        return Rule("perceptron")

    @property
    def rate(self) -> float:
        return self.learning_rate


def _are_sequences(features: Features, target: Tensor, mask: Tensor | None, lengths: Tensor | None) -> bool:
    """Whether this is meant as sequences."""
    shaped = all(isinstance(part, Tensor) for part in (features, target)) and (features.ndim, target.ndim) == (3, 2)
    return shaped or mask is not None or lengths is not None


class PassiveAggressive(OnlineLearner):
    r"""The least change that gives the row the margin 1 over its competitor, within limits: on a loss
    ``l = [1 - w_y · x + w_z · x]_+ > 0`` a step ``tau = min(C, l / (2 |x|^2))``, ``w_y += tau x``, ``w_z -= tau x``.

    ``z`` is the best of the other classes, the lowest among equals. An update is a visit with a loss, so a pass without
    one means that every row has the margin 1.

    Args:
        C: the longest step; the weight of a row multiplies it, as it would its loss.
        averaged, shuffle, bias, max_passes, generator, progress: as in `Perceptron`.

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer's scores ``(N, K)``.

    Raises:
        ValueError: a ``C`` that is not positive; what `fit` and `partial_fit` refuse.

    Reference: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), *Online passive-aggressive algorithms*, §8,
    PA-I.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]]), torch.tensor([0, 1, 1])
        >>> scorer, report = PassiveAggressive(C=1.0).fit(x, y)
        >>> scorer(x).argmax(1), report.converged
        (tensor([0, 1, 1]), True)
    """

    def __init__(
        self,
        C: float = 1.0,
        **options: Unpack[OnlineOptions],
    ) -> None:
        super().__init__(**options)
        self.C = check_constant("C", C)

    def __repr__(self) -> str:
        return f"PassiveAggressive(C={self.C:g}, averaged={self.averaged}, shuffle={self.shuffle})"

    @property
    def rule(self) -> Rule:
        return Rule("passive_aggressive")

    @property
    def rate(self) -> float:
        return self.C
