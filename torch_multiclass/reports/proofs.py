"""Every bound that applies, with its numbers; and of those that do not, why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_multiclass import bounds
from torch_multiclass.bounds import Bound
from torch_multiclass.bounds.margins import BALL
from torch_multiclass.decoders import Decoder, HammingDecoder, LossBasedDecoder, TournamentDecoder, VotingDecoder
from torch_multiclass.reports.blocks import Block, Gap, Table, Text, number, percent
from torch_multiclass.reports.found import Asked, Found
from torch_multiclass.reports.margins import ramp
from torch_multiclass.reports.model import VOTES
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.space import Space
from torch_multiclass.reports.tally import Tally
from torch_multiclass.reports.training import WEIGHTED, boosted, rounds_of, taught
from torch_multiclass.solvers.online.learner import Mistakes
from torch_multiclass.solvers.reduction.report import ColumnsReport

__all__ = ["proofs"]

MEANING = {
    "empirical": "what was measured on these examples: the share of wrong ones, or their margin or hinge loss",
    "confidence": "added because these examples are a sample: the larger, the fewer they are and the smaller δ is",
    "complexity": "added because the weights were fitted: the larger, the smaller the margin and the fewer the rows",
    "scales": "added because the margin was chosen after the fit",
    "columns": "how many binary questions the code asks, L",
    "row_distance": "ρ, in how many columns the two classes with the most similar codes differ; a column that does not "
    "ask both of them counts one half",
    "loss_at_zero": "l(0), what an undecided column costs; 1 where wrong signs are counted",
    "mean_loss": "the mean loss of a row and a column; where signs are read, the share of wrong ones among those asked",
    "ignored": "q, the share of pairs of a row and a column that does not ask its class and so cannot help it",
    "rivals": "K − 1, the other classes, each of which is asked against the true one",
    "pair_error": "r, the largest error of a column on the rows of its own two classes",
    "half_the_classes": "½ K: two of the K labels of a row with the wrong class count at least 1",
    "columns_by_distance": "L/ρ, the columns of the code over its smallest row distance",
    "product": "Π Z, the product of the normalisers of all rounds: what is left of the weights",
    "stretch": "exp(η θ), for asking that the margin be above θ",
    "(margin)": "ρ, at which the margin bound is the smallest, or the one asked for",
    "(norm)": "the largest norm of a class's weights",
    "(radius)": "what no row's norm is above",
    "(eta)": "η, the sum of the weights of all votes",
    "radius": "R, the largest norm of a row",
    "margin": "γ, by how much the weights tell every pair of labels apart",
    "(made)": "how many mistakes there were",
    "(share here)": "the share that was measured on these rows",
}
"""What the terms of a bound are; those in brackets are not added."""

SCALED = "the scores are taken over the largest norm of a class's weights, so that the norm, 1, is known beforehand"


def proofs(tally: Tally, decoder: Decoder, space: Space | None, fit: Any, asked: Asked, wrong: int, of: int) -> Section:
    """All of them, for a head that has ``wrong`` of ``of`` examples wrong."""
    found = Found()
    if asked.held_out:
        unit = "sequences" if tally.kind == "sequences" else "rows"
        found.try_("Clopper–Pearson", f"error of new {unit}", lambda: _held_out(wrong, of, unit, asked.delta))
    elif asked.held_out is None:
        found.gap("Clopper–Pearson", "whether these examples took part in training is not known (held_out=None).")
    else:
        found.gap("Clopper–Pearson", "these examples took part in training (held_out=False).")
    if tally.kind == "classes" and tally.code is None:
        _margins(found, tally, space, asked)
    elif tally.kind == "sets":
        _sets(found, tally, space, asked)
    else:
        coded = "counts of votes" if isinstance(decoder, VOTES) else "distances to rows of a code"
        what = "labels of sequences" if tally.kind == "sequences" else coded
        found.gap("margin bounds", f"they are of scores that are linear in fixed features; these are {what}.")
    if tally.code is not None:
        _codes(found, tally, decoder)
    rounds = rounds_of(fit)
    if rounds is not None:
        boosted(found, tally, rounds, fit.idle if isinstance(fit, ColumnsReport) else [], decoder, asked)
    if isinstance(fit, Mistakes):
        taught(found, tally, space, fit, asked)
    return _section(found, asked, tally.rows)


def _held_out(wrong: int, of: int, unit: str, delta: float) -> Bound:
    """Of rows, or of whole sequences."""
    one = bounds.held_out_error(wrong, of, delta=delta)
    return Bound(one.value, one.terms, tuple(text.replace("rows", unit) for text in one.assumptions), one.trivial)


# ---------------------------------------------------------------------- margins
def _margins(found: Found, tally: Tally, space: Space | None, asked: Asked) -> None:
    name = "margin bound, uniform in the margin"
    rho = tally.margin()
    if space is None:
        return found.gap(
            name,
            "the norm of the weights is not known: the scorer is neither linear nor a kernel machine. "
            "Every margin bound needs it.",
        )
    if rho is None:
        return found.gap(name, "the decoder counts votes.")
    norm, radius = float(space.norms.max()), _radius(space, asked)
    if radius is None:
        return found.gap(
            name,
            "radius: not given; accepted is a number that no row's norm is above, new rows' included, known beforehand "
            f"(the longest here is {number(_longest(tally, space))}). Every margin bound needs it.",
        )
    if tally.squares is not None and tally.largest > radius * (1 + 1e-6):
        longest = number(_longest(tally, space))
        return found.gap(name, f"radius: got {asked.radius:g}, but a row here has the norm {longest}.")
    if norm == 0:
        return found.gap(name, "all weights are 0.")
    given = {"num_classes": tally.num_classes, "radius": radius, "norm": 1.0, "rows": len(rho), "delta": asked.delta}
    for suffix, trace in (("", None), (", empirical form", tally.squares)):
        if suffix and trace is None:
            found.gap(name + suffix, "the features of the rows are not known.")
            continue
        found.try_(name + suffix, "error of new rows", lambda t=trace: _best(rho / norm, asked, norm, given, t))  # type: ignore[misc]
    _fixed(found, tally, rho, norm, radius, asked)
    return None


def _best(rho: np.ndarray[Any, Any], asked: Asked, norm: float, given: dict[str, Any], trace: float | None) -> Bound:
    """At the margin asked for, else at the one where the bound is smallest; of scores over their norm."""
    reach = given["radius"]

    def at(margin: float) -> Bound:
        return bounds.uniform_margin_error(ramp(rho, margin), margin=margin, trace=trace, **given)

    if asked.margin is not None:
        if asked.margin / norm > reach:
            raise ValueError(
                f"margin: got {asked.margin:g}; accepted are margins up to radius * norm = {reach * norm:g}"
            )
        best = at(asked.margin / norm)
        chosen = asked.margin
    else:
        tried = np.unique(np.concatenate([reach / 2.0 ** np.arange(24), np.quantile(rho, np.linspace(0.02, 0.98, 49))]))
        best, chosen = min(
            ((at(float(m)), float(m) * norm) for m in tried if 0 < m <= reach), key=lambda pair: pair[0].value
        )
    numbers = {"margin": chosen, "norm": norm, "radius": reach}
    assumptions = [SCALED if one == BALL else one for one in best.assumptions]
    if asked.learned:
        assumptions.append("here the features were learned: it holds only if by other rows than these")
    return Bound(best.value, {**best.terms, **{f"({k})": v for k, v in numbers.items()}}, tuple(assumptions), 1.0)


def _fixed(found: Found, tally: Tally, rho: np.ndarray[Any, Any], norm: float, radius: float, asked: Asked) -> None:
    """The bounds for a norm, and a margin, that were fixed before."""
    name = "margin bound at margin 1 (slack)"
    if asked.norm is None:
        found.gap(
            name, "norm: not given; accepted is a bound on the norms of the weights that was fixed before the fit."
        )
        return
    if norm > asked.norm * (1 + 1e-6):
        found.gap(name, f"norm: got {asked.norm:g}, but a class's weights have the norm {number(norm)}.")
        return
    given: dict[str, Any] = {"num_classes": tally.num_classes, "radius": radius, "norm": asked.norm}
    given |= {"rows": len(rho), "delta": asked.delta}
    for form, loss in (("hinge", float(np.clip(1 - rho, 0, None).mean())), ("ramp", ramp(rho, 1.0))):
        if math.isfinite(loss):
            found.try_(f"{name}, {form}", "error of new rows", lambda e=loss: bounds.slack_error(e, **given))  # type: ignore[misc]
    if asked.margin is not None:
        margin = asked.margin
        found.try_(
            "margin bound, margin fixed before",
            "error of new rows",
            lambda: bounds.kernel_margin_error(ramp(rho, margin), margin=margin, **given),
        )


def _sets(found: Found, tally: Tally, space: Space | None, asked: Asked) -> None:
    """For sets of labels, with the complexity's own bound ``Lambda sqrt(trace)/m``."""
    name = "margin bound of sets of labels"
    if asked.norm is None or asked.margin is None:
        found.gap(name, "norm, margin: not given; accepted are numbers that were fixed before the fit.")
    elif asked.radius is None:
        found.gap(name, "radius: not given; accepted is a number that no row's norm is above.")
    elif space is None:
        found.gap(name, "the norm of the weights is not known: the scorer is neither linear nor a kernel machine.")
    elif float(space.norms.max()) > asked.norm * (1 + 1e-6):
        found.gap(
            name, f"norm: got {asked.norm:g}, but a label's weights have the norm {number(float(space.norms.max()))}."
        )
    else:
        rho, rows, margin = tally.margin(), tally.rows, asked.margin
        assert rho is not None
        loss = ramp(rho, margin) * len(rho) / rows
        complexity = asked.norm * (_radius(space, asked) or asked.radius) / math.sqrt(rows)
        found.try_(
            name,
            "wrong labels of a new row",
            lambda: bounds.multilabel_margin_error(
                loss, num_labels=tally.num_classes, margin=margin, complexity=complexity, rows=rows, delta=asked.delta
            ),
        )


def _radius(space: Space, asked: Asked) -> float | None:
    """What was given, of the features without the constant one of a bias, or what the kernel says, if that is less."""
    if asked.radius is None:
        return space.radius
    given = math.hypot(asked.radius, 1.0) if space.bias else asked.radius
    return given if space.radius is None else min(given, space.radius)


def _longest(tally: Tally, space: Space) -> float:
    return math.sqrt(max(0.0, tally.largest**2 - space.bias))


# ---------------------------------------------------------------------- codes
def _codes(found: Found, tally: Tally, decoder: Decoder) -> None:
    assert tally.code is not None
    assert tally.binary is not None
    code, of = tally.code.code, "error on these rows"
    true = tally.labels()[0]
    absent = tally.code.absent.cpu().numpy() if tally.code.absent is not None else np.zeros(len(code), bool)
    if (true >= len(code)).any() or absent[true[true < len(code)]].any():
        return found.gap("bounds of the code", "there are rows of classes that cannot be predicted.")
    if code.numel() > 10_000_000:
        return found.gap("bounds of the code", f"{code.numel():,} entries are too many to compare.")
    pairs, length = int(tally.binary.count.sum()), code.shape[1]
    ignored = 1 - pairs / (len(true) * length)
    if isinstance(decoder, (HammingDecoder, VotingDecoder)):
        share = float(tally.binary.total.sum()) / max(pairs, 1)
        found.try_(
            "Corollary 2 of Allwein, Schapire and Singer, of signs",
            of,
            lambda: bounds.hamming_error(share, code, None, ignored=ignored),
        )
    elif isinstance(decoder, LossBasedDecoder):
        mean = tally.binary_loss / len(true)  # which counts the loss at 0 where a column does not ask
        found.try_(
            "Theorem 1 of Allwein, Schapire and Singer", of, lambda: bounds.coded_error(mean, code, decoder.loss)
        )
    pairwise = isinstance(decoder, HammingDecoder) and tally.code.name == "one_vs_one"  # which is the vote there
    if pairwise or isinstance(decoder, (VotingDecoder, TournamentDecoder)):
        largest = float((tally.binary.total / tally.binary.count.clamp(min=1)).max())
        found.try_("one-versus-one, (K - 1) r", of, lambda: bounds.one_vs_one_error(largest, num_classes=len(code)))
    return None


# ---------------------------------------------------------------------- what is shown
def _value(one: Bound, value: float | None = None) -> str:
    """A share in per cent, else a number."""
    value = one.value if value is None else value
    if one.trivial != 1:
        return number(value)
    return percent(value) if 1e-4 <= value < 10 else f"{number(100 * value)} %"


def _none(of: str, one: Bound, rows: int, asked: Asked) -> str:
    """That a share of the rows at hand which is below one of them is none, where that is so."""
    here = of == "error on these rows" or (asked.held_out is False and "on the training rows" in of)
    if not here or "labels" in of or one.trivial != 1 or not one.value < 1 / rows:
        return ""
    alike = ", where they weigh alike" if WEIGHTED in one.assumptions else ""
    return f": 0 of these {rows:,} rows, for it is below one of them{alike}"


def _section(found: Found, asked: Asked, rows: int) -> Section:
    facts = {
        "delta": asked.delta,
        "held_out": asked.held_out,
        "bounds": [
            {
                "name": name,
                "of": of,
                "value": one.value,
                "trivial": one.trivial,
                "vacuous": one.vacuous,
                "terms": dict(one.terms),
                "assumptions": list(one.assumptions),
            }
            for name, of, one in found.bounds
        ],
        "gaps": [{"name": name, "why": why} for name, why in found.gaps],
    }
    blocks: list[Block] = []
    if found.bounds:
        lines = [
            [name, of, _value(one) + _none(of, one, rows, asked),
             f"no: vacuous (≥ {_value(one, one.trivial)})" if one.vacuous else "yes",
             "; ".join(f"{part.replace('_', ' ')} {number(value)}" for part, value in one.terms.items())]
            for name, of, one in found.bounds
        ]  # fmt: skip
        blocks.append(Table(["bound", "what is at most the value", "value", "says anything", "made of"], lines))
        blocks.append(
            Text(
                f"Bounds of new rows or sequences hold with probability {1 - asked.delta:g} over the samples, each by "
                "itself; those of these rows, or of the training rows, hold for certain."
            )
        )
        if any(name == "Clopper–Pearson" for name, _, _ in found.bounds):
            blocks.append(
                Text(
                    f"Clopper–Pearson is one-sided here, with all of δ = {asked.delta:g} above it: smaller than the "
                    "upper end of the two-sided interval of the error, which has half of δ on each side."
                )
            )
        terms = dict.fromkeys(term for _, _, one in found.bounds for term in one.terms)
        if said := [[term.strip("()").replace("_", " "), MEANING[term]] for term in terms if term in MEANING]:
            blocks.append(Table(["made of", "which is"], said))
        resting = [[name, "; ".join(one.assumptions)] for name, _, one in found.bounds]
        blocks.append(Table(["bound", "rests on"], resting))
    blocks += [Gap(name, why) for name, why in found.gaps]
    return Section("bounds", "Bounds", facts, blocks)
