"""What the way in which a model was trained proves: the rounds of boosting, the mistakes of an online learner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_multiclass import bounds
from torch_multiclass.bounds import Bound
from torch_multiclass.bounds.boosting import BOUNDS
from torch_multiclass.decoders import LossBasedDecoder
from torch_multiclass.reports.blocks import number
from torch_multiclass.reports.found import Asked, Found
from torch_multiclass.reports.model import VOTES
from torch_multiclass.reports.space import Space
from torch_multiclass.reports.tally import Tally
from torch_multiclass.solvers.boosting.report import Rounds
from torch_multiclass.solvers.online.learner import Mistakes
from torch_multiclass.solvers.reduction.report import ColumnsReport

__all__ = ["boosted", "rounds_of", "taught"]

KINDS = {"AdaBoostMH": ("mh", "hamming"), "AdaBoostMR": ("mr", "ranking"), "AdaBoostAveraged": ("averaged",)}
THEOREM_6 = "Theorem 6 of Allwein, Schapire and Singer"
THETAS = (0.0, 0.1)
WEIGHTED = "the rows counted by the weights that the fit gave them"
OTHER_RULES = {
    "passive_aggressive": "what is proved of the passive-aggressive rule is a bound of its losses.",
    "winnow": "what is proved of multiplicative updates is of another margin, by the 1-norm of the weights.",
}


# ---------------------------------------------------------------------- boosting
def rounds_of(fit: Any) -> Rounds | None:
    """The rounds of a fit; of a reduction those of its single call."""
    if isinstance(fit, ColumnsReport) and len(fit.columns) == 1:
        fit = fit.columns[0]
    return fit if isinstance(fit, Rounds) else None


def boosted(found: Found, tally: Tally, report: Rounds, idle: list[int], decoder: Any, asked: Asked) -> None:
    """What the normalisers prove of the training rows."""
    if not report.bound:
        return found.gap("boosting", "there is no round.")
    product, solver = report.bound[-1], report.kind.split()[0]
    if tally.code is not None:
        _output_codes(found, tally, report, idle, decoder, asked)
    elif solver == "AdaBoost":
        found.try_(
            "AdaBoost, Π Z", "error on the training rows", lambda: _weighted(bounds.boosting_error(product, "adaboost"))
        )
    else:
        for kind in KINDS.get(solver, ()):
            if tally.kind == "sets" and kind != "hamming" and kind != "ranking":
                continue
            found.try_(
                f"{solver}, Π Z",
                f"on the training rows, {BOUNDS[kind]}",
                lambda k=kind: _weighted(bounds.boosting_error(product, k, num_classes=tally.num_classes)),  # type: ignore[misc]
            )
    return None


def _output_codes(found: Found, tally: Tally, report: Rounds, idle: list[int], decoder: Any, asked: Asked) -> None:
    """AdaBoost.MO: the error, and the distribution of the margins."""
    assert tally.code is not None
    code, product, exponential = tally.code.code, report.bound[-1], _is_exponential(decoder)
    silent = (code == 0).double()
    silent[:, idle] = 1.0
    shares = silent.mean(1)
    ignored = float(shares.max() if product <= 1 else shares.min())  # the worst that any shares of the classes can be
    name = "AdaBoost.MO, (L/ρ)(q + (1 − q) Π Z)"
    if exponential:
        found.try_(
            name,
            "error on the training rows",
            lambda: _weighted(bounds.coded_error(product, code, "exponential", ignored=ignored)),
        )
    else:
        found.gap(name, "it is of loss-based decoding by the exponential loss.")
    if report.kind != report.kind.split()[0]:
        return found.gap(THEOREM_6, "the base classifiers' votes are real numbers; it is of votes of -1 and +1.")
    if idle:
        return found.gap(THEOREM_6, f"{len(idle)} columns have rows of one sign, or none; it is of columns that vote.")
    total = sum(report.alphas)
    if not total > 0:
        return found.gap(THEOREM_6, "no base classifier has a vote.")
    margins = THETAS if asked.margin is None or not exponential else (asked.margin / (2 * total),)
    for theta in margins:
        found.try_(
            f"{THEOREM_6}, θ = {number(theta)}",
            "share of the training rows with a margin of AdaBoost.MO ≤ θ",
            lambda at=theta: _theorem_6(tally, product, total, at, exponential and asked.held_out is False),  # type: ignore[misc]
        )
    return None


def _theorem_6(tally: Tally, product: float, total: float, theta: float, measured: bool) -> Bound:
    """With what it is a bound of, where these are the training rows."""
    assert tally.code is not None
    best = bounds.code_margin(product, tally.code.code, margin=theta, total_weight=total)
    terms = {**best.terms, "(eta)": total}
    rho = tally.margin()
    if measured and rho is not None:  # the decoder's scores are eta nu, but for a constant
        terms["(share here)"] = float((rho / (2 * total) <= theta).mean())
    return _weighted(Bound(best.value, terms, best.assumptions))


def _is_exponential(decoder: Any) -> bool:
    """Whether it compares sums of exponentials."""
    return (
        isinstance(decoder, LossBasedDecoder) and not isinstance(decoder, VOTES) and decoder.loss.name == "exponential"
    )


def _weighted(one: Bound) -> Bound:
    return Bound(one.value, one.terms, (*one.assumptions, WEIGHTED), one.trivial)


# ---------------------------------------------------------------------- online learners
def taught(found: Found, tally: Tally, space: Space | None, report: Mistakes, asked: Asked) -> None:
    """How many updates there can be, from the margin that the weights have on the rows that they were taught."""
    name = "mistakes, R²/γ²" if report.rule != "all" else "mistakes, K R²/(2 γ²)"
    if report.rule in OTHER_RULES:
        return found.gap("mistakes", OTHER_RULES[report.rule])
    if not report.equal_steps:
        return found.gap(name, "the rows have steps of different lengths, by their weights; it is of equal ones.")
    if tally.kind == "sequences":
        return found.gap(name, "it needs the margin over all labellings of each sequence, which is not worked out.")
    if asked.held_out is not False:
        these = "these are not (held_out=True)" if asked.held_out else "these may not be (held_out=None)"
        return found.gap(name, f"it is of the rows that were taught, which {these}.")
    rho = tally.margin()
    if space is None or rho is None or tally.squares is None or tally.kind != "classes":
        return found.gap(name, "the margins of the rows, or their lengths, are not known.")
    length = math.sqrt(2 * float(space.norms.square().sum()))
    least = float(np.min(rho))
    if not least > 0:
        return found.gap(
            name,
            f"the smallest margin on these rows is {number(least)}: the weights do not put each row's class first, and "
            "it is of rows that some weights separate.",
        )

    def bound() -> Bound:
        best = bounds.mistakes(tally.largest, least / length, rule=report.rule, num_classes=tally.num_classes)
        made = float(report.preference_updates if report.rule == "all" else report.updates)
        fitted = "γ is that of these weights; weights of a larger one would give a smaller bound"
        return Bound(best.value, {**best.terms, "(made)": made}, (*best.assumptions, fitted), best.trivial)

    return found.try_(name, "updates over these rows, whatever their order and however many passes", bound)
