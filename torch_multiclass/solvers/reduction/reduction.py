"""The reduction of many classes to binary problems, by any learner and any code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes import check as check_code
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.decoders.coded import LossBasedDecoder
from torch_multiclass.scorers.coded import CodedScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.boosting.machines import AdaBoost
from torch_multiclass.solvers.monitor import Monitor, warn
from torch_multiclass.solvers.problem import Problem, RowWeights, check_memory_limit
from torch_multiclass.solvers.reduction.boosted import boost_columns
from torch_multiclass.solvers.reduction.folder import Folder
from torch_multiclass.solvers.reduction.joined import by_attribute, side_by_side
from torch_multiclass.solvers.reduction.learners import (
    check_learner,
    fit_signs,
    loss_of,
    of_column,
    reads_gram,
    takes_missing,
    takes_sparse,
    takes_weights,
)
from torch_multiclass.solvers.reduction.origin import check_origin, origin_of
from torch_multiclass.solvers.reduction.report import Column, ColumnsReport
from torch_multiclass.solvers.reduction.rows import ColumnRows, labelled_rows, present, signs_of

__all__ = ["CodedReduction"]


class ColumnMonitor(Monitor):
    """Keeps the columns that are done."""

    def begin(self, todo: list[int], done: dict[int, Column], folder: Folder | None, single: bool) -> None:
        """What there is to do, and what was done before."""
        self.single = single
        self.done, self.folder, self.failed = done, folder, dict[int, Exception]()
        self.todo = [column for column in todo if column not in done]

    def settle(self) -> Tensor:
        """Nothing to choose from."""
        return torch.empty(0)

    def add(self, column: int, fit: Column | Exception) -> None:
        """One more column; what an interrupt has left of one is none, but of a single call it is all there is."""
        if not isinstance(fit, Exception) and getattr(fit[1], "interrupted", False):
            if self.single:
                self.done[column] = fit
            raise KeyboardInterrupt
        if isinstance(fit, Exception):
            self.failed[column] = fit
            return
        self.done[column] = fit
        if self.folder is not None:
            self.folder.keep(column, fit)


class CodedReduction(Solver[ColumnMonitor, CodedScorer, ColumnsReport]):
    r"""A binary learner for each column ``s`` of a code, on the rows with ``M(y, s) != 0`` and the signs ``M(y, s)``.

    Args:
        code: ``M (K, L)`` of -1, 0 and +1.
        learner: a solver of two classes (`DualSVM(binary=True)`, `BinaryLogistic`, `AdaBoost`, a perceptron, a tree,
            ...), or a classifier like scikit-learn's, with ``fit`` and ``decision_function`` (or ``predict_proba``).
            Where it has two scores, the margin is the second less the first; of a classifier that minimises the log
            loss it is half the log-odds, so that ``P(+1) = sigmoid(2 f)`` as in `BinaryLogistic`.
        call: ``"multi"`` fits a learner for each column; ``"single"`` fits one, to which the column is an attribute of
            the instance. With `AdaBoost` a single call is `AdaBoostMO`.
        decoder: reads the scores; by default `LossBasedDecoder` of the learner's loss (the hinge for learners that know
            mistakes only). It is `decoder` of the reduction and of the report.
        jobs: how many columns are fitted at a time, in threads. The fit is the same.
        interaction: in a single call, ``x ⊗ e_s`` in place of ``(x, e_s)``: a linear learner then has weights for each
            column.
        memory_limit: bytes that the rows of a single call may take; by default what is free.
        progress: whether to print a line on standard error now and then, and the size of a single call before it is
            made; by default on a terminal, when the fit takes long, or that size is large.

    Shape:
        features ``(N, D)``; target ``(N)`` of classes. The scorer gives `CodedScores` with margins ``(*, L)``; linear
        columns become one `LinearScorer`, kernel machines one `KernelScorer`, trees one `EnsembleScorer`.

    Raises:
        TypeError: a learner that is none.
        ValueError: a code that `torch_multiclass.codes.check` refuses, an unknown ``call``, what `fit` says.

    Reference: Allwein, Schapire and Singer (2000), section 3; Dietterich and Bakiri (1995).

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> x, y = torch.eye(3).repeat(4, 1), torch.arange(12) % 3
        >>> reduction = CodedReduction(tm.codes.one_vs_one(3), tm.solvers.BinaryLogistic(C=10.0))
        >>> scorer, report = reduction.fit(x, y)
        >>> report.decoder, report.decoder(scorer(torch.eye(3)))
        (LossBasedDecoder(loss='logistic'), tensor([0, 1, 2]))
        >>> scorer.margins
        LinearScorer(in_features=3, num_classes=3, bias=False)
    """

    def __init__(
        self,
        code: CodeLike,
        learner: Any,
        *,
        call: str = "multi",
        decoder: Decoder | None = None,
        jobs: int = 1,
        interaction: bool = False,
        memory_limit: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.code = check_code(code)
        check_learner(learner)
        check.choice("call", call, ("multi", "single"))
        if decoder is not None and not isinstance(decoder, Decoder):
            raise TypeError(f"decoder: got {check.shown(decoder)}; accepted is a Decoder, such as HammingDecoder()")
        jobs = check.whole("jobs", jobs)
        check.flag("interaction", interaction)
        if interaction and call != "single":
            raise ValueError("interaction: got True with call='multi'; accepted is False, or call='single'")
        super().__init__(bias=False, max_passes=2**62, progress=progress)
        self.learner, self.call, self.jobs, self.interaction = learner, call, jobs, interaction
        self.memory_limit = check_memory_limit(memory_limit)
        self.decoder = LossBasedDecoder(loss_of(learner)) if decoder is None else decoder

    def __repr__(self) -> str:
        return (
            f"CodedReduction({tuple(self.code.shape)}, {self.learner!r}, call={self.call!r}, decoder={self.decoder!r})"
        )

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        resume: Fit[Any, ColumnsReport] | ColumnsReport | str | os.PathLike[str] | None = None,
    ) -> Fit[CodedScorer, ColumnsReport]:
        """Train.

        Args:
            features: the rows; NaN where the learner takes missing values: boosting and trees here, and classifiers of
                which scikit-learn's tags, or an attribute ``allow_nan`` that you set, say so; sparse (CSR) where the
                learner takes them, in several calls; with ``kernel="precomputed"`` the Gram matrix of all rows.
            target: their classes; rows labelled -100 are left out.
            weight: how much each row counts, >= 0, by the learner's own rule; 0 leaves it out.
            num_classes: ``K``, the number of rows of the code.
            resume: the fit, or the report, of an interrupted fit of the same rows, code, call and learner: its columns
                are kept; or a folder, where each column is written once it is done, and from which it is read if it is
                there. A file may hold objects of this package and of the learner's, and calls nothing else.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Returns:
            A `CodedScorer` and a report. A column whose rows have one sign, or none, or whose learner fails, has the
            margin 0, and one warning names all of them; classes without a row are never predicted. Ended from the
            keyboard, the columns that are done, with a warning, `Interrupted`; where there is none yet, the interrupt
            propagates.

        Raises:
            ValueError: no rows, one class, features that are not finite, a learner that does not take the weights;
                columns of another fit, whose differences are named; what the learner says, if it fails in every column.
            MemoryError: rows of a single call that would not fit, before they are made.
        """
        if weight is not None and not takes_weights(self.learner):
            raise ValueError(
                f"weight: {type(self.learner).__name__}.fit takes no weights of rows; accepted is None, or a learner "
                "that does"
            )
        problem = self.problem(features, target, weight, num_classes)
        monitor = self.monitor(problem)
        self._begin(problem, monitor, resume)
        return self.solve(problem, monitor)

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> ColumnRows:
        classes = len(self.code)
        if num_classes is not None and check.whole("num_classes", num_classes) != classes:
            raise ValueError(f"num_classes: got {num_classes!r}; accepted are None and the {classes} of the code")
        missing, sparse = takes_missing(self.learner), self.call == "multi" and takes_sparse(self.learner)
        rows = labelled_rows(features, target, weight, classes, missing=missing, sparse=sparse)
        origin = origin_of(
            features=rows.features,
            target=rows.labels,
            weight=None if weight is None else rows.weight,
            code=self.code,
            call=self.call,
            interaction=self.interaction,
            learner=self.learner,
        )
        signs = signs_of(self.code, rows.labels)
        return ColumnRows(**{**vars(rows), "classes": classes}, signs=signs, weighted=weight is not None, origin=origin)

    def monitor(self, problem: Problem) -> ColumnMonitor:
        progress = self.progress if self.call == "multi" else False  # of a single call the learner's says more
        return ColumnMonitor(type(self).__name__, self.max_passes, progress, self.on_step)

    def _begin(self, problem: ColumnRows, monitor: ColumnMonitor, resume: Any) -> None:
        idle, columns = problem.idle, self.code.shape[1]
        todo = [0] if self.call == "single" else [s for s in range(columns) if s not in idle]
        if len(idle) == columns:
            raise ValueError("code: no column has rows of both signs; accepted is a code with one at least")
        done: dict[int, Column] = {}
        folder = None
        if isinstance(resume, (str, os.PathLike)):
            folder = Folder(resume, problem.origin, self.learner)
            done = folder.load()
        elif resume is not None:
            report = resume.report if isinstance(resume, Fit) else resume
            if not isinstance(report, ColumnsReport):
                raise TypeError(
                    f"resume: got {check.shown(resume)}; accepted is a Fit of a CodedReduction, its report, or a folder"
                )
            check_origin(report.origin, problem.origin, "the report")
            done = {s: fit for s, fit in report.fits.items() if not getattr(fit[1], "interrupted", False)}
        monitor.begin(todo, done, folder, self.call == "single")

    def steps(self, problem: Problem, monitor: ColumnMonitor) -> Iterator[None]:
        """The columns, several at a time."""
        assert isinstance(problem, ColumnRows)
        todo = iter(monitor.todo)
        if self.jobs == 1 or len(monitor.todo) == 1:
            for column in todo:
                yield
                monitor.add(column, self._fit(problem, column))
            return
        running: dict[Future[Column | Exception], int] = {}
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(self.jobs, initializer=torch.set_num_threads, initargs=(threads,)) as pool:
            try:
                while True:
                    for column in islice(todo, self.jobs - len(running)):
                        running[pool.submit(self._fit, problem, column)] = column
                    if not running:
                        return
                    yield
                    for fit in wait(running, return_when=FIRST_COMPLETED).done:
                        monitor.add(running.pop(fit), fit.result())
            except (KeyboardInterrupt, GeneratorExit):
                for fit, column in running.items():  # what has begun is finished, and kept
                    monitor.add(column, fit.result())
                raise

    def _fit(self, problem: ColumnRows, column: int) -> Column | Exception:
        """One column, or all of them in a single call."""
        try:
            with torch.no_grad():
                learner = of_column(self.learner, column, self.progress if self.call == "single" else False)
                if self.call == "multi":
                    return fit_signs(learner, *problem.of_column(column, reads_gram(learner)))
                if isinstance(learner, AdaBoost):
                    return boost_columns(learner, self.code, problem, problem.signs, problem.idle)
                return fit_signs(learner, *problem.with_columns(self.interaction, self.memory_limit, self.progress))
        except (MemoryError, Warning):  # warnings are errors where the user says so
            raise
        except Exception as failure:
            return failure

    def scorer(self, problem: Problem, monitor: ColumnMonitor) -> CodedScorer:
        assert isinstance(problem, ColumnRows)
        if not monitor.done:
            if monitor.interrupted:
                raise KeyboardInterrupt
            column = min(monitor.failed)
            raise ValueError(
                f"learner: fails in every column; in column {column}: {monitor.failed[column]}; accepted is one that "
                "fits these rows"
            ) from monitor.failed[column]
        columns = self.code.shape[1]
        if self.call == "multi":
            fits = [monitor.done[s][0] if s in monitor.done else None for s in range(columns)]
            margins = side_by_side(fits, problem.features)
        elif isinstance(self.learner, AdaBoost):
            margins = monitor.done[0][0]
        else:
            margins = by_attribute(monitor.done[0][0], columns, self.interaction, problem.idle)
        scorer = CodedScorer(margins, self.code)
        scorer.absent.copy_(~present(problem.labels, problem.classes))
        self._warn(problem, monitor, scorer.absent)
        return scorer

    def _warn(self, problem: ColumnRows, monitor: ColumnMonitor, absent: Tensor) -> None:
        """One warning of all that is missing."""
        said = []
        if absent.any():
            said.append(f"no row has the label {_listed(absent.nonzero().flatten().tolist())}, never predicted")
        if problem.idle:
            said.append(f"the rows of column {_listed(problem.idle)} have one sign, or none: margin 0")
        said += [f"the learner failed in column {s}, margin 0: {monitor.failed[s]}" for s in sorted(monitor.failed)]
        if said:
            warn(f"target: {'; '.join(said)}")

    def report(self, problem: Problem, monitor: ColumnMonitor) -> ColumnsReport:
        assert isinstance(problem, ColumnRows)
        done, failed = monitor.done, monitor.failed
        return ColumnsReport(
            iterations=len(done),
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            decoder=self.decoder,
            columns=[
                done[s][1] if s in done else None for s in range(1 if self.call == "single" else self.code.shape[1])
            ],
            idle=problem.idle,
            failed={s: str(failed[s]) for s in sorted(failed)},
            unfinished=[s for s in monitor.todo if s not in done and s not in failed],
            fits=dict(sorted(done.items())),
            origin=problem.origin,
        )

    def _state(self, monitor: ColumnMonitor) -> str:
        return f"after {len(monitor.done)} columns"


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")
