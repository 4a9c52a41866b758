"""AdaBoost.MO: one ensemble for all columns of a code, and the margins that its bound speaks of."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.codes import check as check_code
from torch_multiclass.codes.checks import CodeLike
from torch_multiclass.ops.coded import nearest
from torch_multiclass.ops.margins import as_margin_loss
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.coded import CodedScorer
from torch_multiclass.scores.coded import CodedScores
from torch_multiclass.solvers.boosting.booster import Watch
from torch_multiclass.solvers.boosting.machines import _RealOrNot
from torch_multiclass.solvers.boosting.report import BoostOptions, Rounds
from torch_multiclass.solvers.boosting.samples import Sample, known_classes, rows_of, with_classes
from torch_multiclass.solvers.problem import Problem, RowWeights

__all__ = ["AdaBoostMO"]


class AdaBoostMO(_RealOrNot):
    r"""Boosting over the columns of an output code, the column being part of the instance.

    ``D(i, s)`` is uniform over the pairs with ``M(y_i, s) != 0`` at the start, and then proportional to
    ``exp(-M(y_i, s) f(x_i, s))``. The training error of loss-based decoding is at most
    ``(L/rho) (q + (1 - q) prod_t Z_t)``, ``q`` the share of ignored pairs.

    Args:
        code: ``M (K, L)`` of -1, 0 and +1.
        rounds: how many base classifiers at most.
        real: confidence-rated votes in place of ±1.
        leaves, bins, patience, progress, on_step: as in `AdaBoost`.

    Shape:
        features ``(N, D)``, NaN a missing value; target ``(N)`` of classes. The scorer gives `CodedScores` with margins
        ``(*, L)``; decode them by `LossBasedDecoder("exponential")`.

    Raises:
        ValueError: what `fit` says; a code that `torch_multiclass.codes.check` refuses.

    Reference: Allwein, Schapire and Singer (2000), section 5; Schapire and Singer (1999), section 7.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> scorer, report = AdaBoostMO(tm.codes.one_vs_one(3), rounds=20).fit(x, torch.tensor([0, 0, 1, 1, 2, 2]))
        >>> tm.LossBasedDecoder("exponential")(scorer(x)).tolist()
        [0, 0, 1, 1, 2, 2]
    """

    def __init__(
        self, code: CodeLike, rounds: int = 100, *, real: bool = False, **options: Unpack[BoostOptions]
    ) -> None:
        super().__init__(rounds, real=real, **options)
        self.code = check_code(code)

    def sample(self, features: Tensor, target: Tensor, weight: RowWeights | None, num_classes: int | None) -> Sample:
        classes = len(self.code)
        known_classes(num_classes, classes, "the rows of the code")
        rows = with_classes(rows_of(features, target, weight), classes)
        signs = self.code.cpu()[rows.labels.cpu()].double().numpy()
        return Sample(**vars(rows), signs=signs, single=True)

    def wrong(self, scores: Floats, sample: Sample) -> float:
        margins, code = torch.from_numpy(scores), self.code.cpu().double()
        found = nearest(margins, code, as_margin_loss("exponential"))
        return float((found != sample.labels.cpu()).double().mean())

    def scorer(self, problem: Problem, monitor: Watch) -> Scorer:
        return CodedScorer(self.ensemble(problem, monitor), self.code)

    @staticmethod
    def margins(scores: CodedScores, target: Tensor, report: Rounds) -> Tensor:
        r"""``½ (nu(y) - max_{r != y} nu(r))`` with ``nu(y) = -(1/eta) ln((1/L) sum_s exp(-M(y, s) F_s))``.

        ``F`` are the margins that the scorer gives, ``eta = sum_t alpha_t``. It is this margin whose distribution on
        the training sample `torch_multiclass.bounds.code_margin` bounds.

        Args:
            scores: of the scorer.
            target: the classes.
            report: of the fit.

        Shape:
            margins ``(*, L)``; target and result ``(*)``.

        Reference: Allwein, Schapire and Singer (2000), section 5 and Theorem 6.

        Example:
            >>> import torch
            >>> import torch_multiclass as tm
            >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([0, 1, 1])
            >>> scorer, report = AdaBoostMO([[1], [-1]], rounds=1).fit(x, y)
            >>> AdaBoostMO.margins(scorer(x), y, report)
            tensor([1., 1., 1.])
        """
        total = sum(report.alphas)
        check.positive("report.alphas", total)
        code = scores.code.to(scores.margins)
        nu = -(-code * scores.margins[..., None, :]).logsumexp(-1) / total
        own = nu.gather(-1, target[..., None])
        others = nu.scatter(-1, target[..., None], -torch.inf).amax(-1, keepdim=True)
        return ((own - others) / 2).squeeze(-1)
