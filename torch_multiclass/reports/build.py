"""The report of a head on some examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import confidence
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.decoders import Decoder
from torch_multiclass.reports import codes, fits, labels, margins, proofs, sequences
from torch_multiclass.reports.blocks import Table, Text
from torch_multiclass.reports.found import Asked
from torch_multiclass.reports.model import Model, batches, evaluating
from torch_multiclass.reports.result import HeadReport, Section
from torch_multiclass.reports.space import linear_part, space_of
from torch_multiclass.reports.tally import Tally

__all__ = ["report"]


@check.told
def report(
    model: Any,
    data: Any,
    *,
    decoder: Decoder | None = None,
    backbone: Callable[[Any], Any] | None = None,
    probabilities: Callable[[Any], Tensor] | None = None,
    names: Sequence[str] | None = None,
    cost: str | Tensor | Sequence[Sequence[float]] | Cost = "zero_one",
    held_out: bool | None = True,
    delta: float = 0.05,
    margin: float | None = None,
    radius: float | None = None,
    norm: float | None = None,
    batch_size: int = 1024,
    title: str | None = None,
) -> HeadReport:
    r"""What a head does on some examples, and what that proves.

    The error with its binomial interval; the margin distribution; every bound that applies, with its numbers and what
    it rests on, and why the others do not (of rows held out, of margins, of a code, of boosting, of an online learner's
    mistakes); the code with the error of each column; calibration; confusion by cost;
    errors of each label; of sequences also the most confused transitions and the error against the length; and how the
    solver's fit went. What cannot be said is said to be missing (`HeadReport.gaps`).

    Args:
        model: a head, a scorer, or the fit ``(scorer, report)`` of a solver.
        data: ``(features, target)``; ``(features, target, structure)`` with a dictionary of ``mask=``, ``lengths=`` or
            ``parents=``; or an iterable of such batches. Scores that know their structure (`ChainScores`,
            `CodedScores`, ...) can stand in the place of features.
        decoder: reads the scores; by default the head's, the one of the fit, or the arg max.
        backbone: makes features of the rows, where they are not features yet.
        probabilities: makes those of the classes of the scores, such as a `TemperatureScaling` that was fitted to other
            examples; by default as the head does. What its ``repr`` says is said in the report. Not for sets of labels.
        names: of the classes; more names than classes are labels that the head does not know, counted as wrong.
        cost: of mistakes, a name, a ``(K, K)`` matrix or an object of `torch_multiclass.costs`.
        held_out: whether these examples took part neither in training nor in choosing. If they did, say False, and
            None if you do not know: then there is no held-out bound.
        delta: intervals and bounds hold with probability ``1 - delta``.
        margin: ``rho`` of the margin bounds, in the units of the scores; by default the one where they are smallest,
            which the bound that is uniform in the margin allows. Of AdaBoost.MO it is ``2 eta theta`` of Theorem 6, by
            default given at ``theta`` of 0 and 0.1.
        radius: what no row's norm is above, new rows' included, known beforehand; of a kernel machine that of
            ``sqrt(K(x, x))``, which is 1 for kernels of the distance.
        norm: a bound on the norm of the weights of each class that was fixed before the fit.
        batch_size: rows at a time, where ``data`` is one batch.
        title: of the report.

    Shape:
        features ``(N, D)``, target ``(N)``; of sequences ``(B, T, D)`` and ``(B, T)``; of sets of labels, and of one
        binary question, ±1 in the shape of the scores. Labels of -100 are left out.

    Raises:
        TypeError: a model that is none, data that is none.
        ValueError: no example, no label, a label without a name, NaN among the scores, a scorer of coded margins
            without a decoder.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 9; Allwein, Schapire and
    Singer (2000); Clopper and Pearson (1934); Guo, Pleiss, Sun and Weinberger (2017).

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> x, y = torch.eye(3).repeat(20, 1), torch.arange(60) % 3
        >>> fit = tm.solvers.DualSVM(kernel=tm.kernels.Gaussian(0.5)).fit(x[:30], y[:30])
        >>> found = tm.report(fit, (x[30:], y[30:]), names=["cat", "dog", "hen"])  # rows that were held out
        >>> error = found.as_dict()["error"]["rows"]
        >>> error["wrong"], error["of"], [round(end, 3) for end in error["interval"]]
        (0, 30, [0.0, 0.116])
        >>> [bound["name"] for bound in found.as_dict()["bounds"]["bounds"] if not bound["vacuous"]]
        ['Clopper–Pearson']
        >>> path = found.save("report.html")  # doctest: +SKIP
    """
    read = Model.of(model, decoder, backbone, probabilities)
    price = as_cost(cost)
    for part in price.buffers():
        check.with_values("cost", part)
    if held_out is not None:
        check.flag("held_out", held_out)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title: got {check.shown(title)}; accepted is a string")
    batch_size = check.whole("batch_size", batch_size)
    numbers = {"margin": margin, "radius": radius, "norm": norm}
    positive = {name: None if given is None else check.positive(name, given) for name, given in numbers.items()}
    asked = Asked(held_out, confidence(delta), learned=backbone is not None, **positive)

    tally = Tally(None if names is None else check.label_names("names", names))
    scorer = linear_part(read.scorer)
    with evaluating(read.head or read.scorer, backbone):
        space = space_of(scorer)
        for inputs, target, structure in batches(data, read, batch_size):
            tally.add(read, inputs, target, structure, None if space is None else space.squares)
    if not tally.kind or tally.rows + tally.ignored == 0:
        masked = ", or no position that counts by mask or lengths" if tally.kind == "sequences" else ""
        raise ValueError(f"data: holds no example{masked}; accepted is one at least")
    if tally.rows == 0:
        raise ValueError(f"target: holds no label, {tally.ignored} times -100; accepted is one label at least")
    price = price.to("cpu")
    return HeadReport(
        title or f"{_name(read)}: {tally.rows:,} {_unit(tally)}", _sections(read, tally, price, space, asked)
    )


def _name(model: Model) -> str:
    return type(model.scorer if model.head is None else model.head).__name__


def _unit(tally: Tally) -> str:
    return {"classes": "labelled rows", "sets": "rows of labels", "sequences": "labels of sequences"}[tally.kind]


def _sections(model: Model, tally: Tally, cost: Cost, space: Any, asked: Asked) -> list[Section]:
    said = model.describe()
    facts = {**said, "kind": tally.kind, "num_classes": tally.num_classes, "held_out": asked.held_out}
    rows = [[name, text if len(text) < 400 else text[:400] + " ..."] for name, text in said.items()]
    took = {
        True: "The examples took no part in training or choosing.",
        False: "The examples took part in training or choosing.",
        None: "Whether the examples took part in training or choosing is not known.",
    }[asked.held_out]
    first = Section(
        "model",
        "What is reported on",
        facts,
        [Table(["", ""], rows), Text(f"{tally.num_classes:,} classes. {took}")],
    )
    error = labels.error(tally, asked.delta)
    whole = error.facts["sequences" if tally.kind == "sequences" else "rows"]
    assert model.decoder is not None
    parts = [first, error, margins.margins(tally)]
    parts.append(proofs.proofs(tally, model.decoder, space, model.fit, asked, whole["wrong"], whole["of"]))
    if tally.code is not None:
        parts.append(codes.columns(tally, model.decoder))
    parts.append(margins.calibration(tally, _source(model, tally)))
    if tally.kind != "sets":
        parts.append(labels.confusion(tally, cost))
    parts.append(labels.classes(tally, asked.delta))
    if tally.kind == "sequences":
        parts.append(sequences.sequences(tally, model, asked.delta))
    if model.fit is not None:
        parts.append(fits.fitted(model.fit, tally, model.scorer))
    return parts


def _source(model: Model, tally: Tally) -> str:
    if model.shares is not None:
        return f"those of {getattr(model.shares, '__name__', None) or ' '.join(repr(model.shares).split())}"
    if model.head is not None:
        return f"those of {type(model.head).__name__}.predict_proba"
    if tally.kind == "sets":
        return "the logistic function of twice the scores, uncalibrated"
    return "marginals of the scores" if tally.kind == "sequences" else "the scores, or their soft-max, uncalibrated"
