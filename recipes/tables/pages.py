"""The tables in Markdown, beside the figures of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import figure3, growth, published, table2, table3
from .cells import read
from .estimate import Estimate, Estimates, by_draw, estimates, facts_of, slope
from .sets import CODES, SETS, Set, codes_of

NAMES = {
    "hamming": "Hamming decoding",
    "sigmoid": "loss-based decoding, 1/(1 + exp(2yf))",
    "exponential": "loss-based decoding, exponential",
    "hinge": "loss-based decoding, hinge",
}


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def boosted(folder: Path) -> Estimates:
    """Table 2, as far as it is done."""
    return estimates(folder, "table2", lambda one, code: len(one.numbers(code)))


def machines(folder: Path, table: str) -> Estimates:
    """Table 3, or one of those beside it."""
    return estimates(folder, table, lambda one, code: 1 if one.official else len(one.numbers(code)))


def shown(cell: Estimate | None, printed: float | None = None, open_: str = "") -> str:
    """``ours ± binomial (paper)``; a star where trainings are missing, a dot, or ``open_``, where all are."""
    paper = "" if printed is None else f" ({printed:.1f})"
    if cell is None:
        return f"·{paper}" if printed is not None else open_
    return f"{cell.percent:.1f} ± {cell.binomial:.1f}{'*' if cell.missing else ''}{paper}"


def by_decoding(found: Estimates, figures: dict[str, published.Figures], sets: list[Set]) -> list[str]:
    """A table for each decoding."""
    lines = []
    for decoding, printed in figures.items():
        rows = []
        for one in sets:
            values = dict(zip(published.CODES, printed[one.paper], strict=True))
            rows.append([one.paper, *(shown(found.get((one.name, code, decoding)), values[code]) for code in CODES)])
        lines += [f"**{NAMES[decoding]}**", "", *markdown(["set", *CODES], rows)]
    return lines


def draws(found: Estimates) -> list[str]:
    """How much depends on the draw of a random code."""
    keys = sorted({key[:2] for key in by_draw(found)})
    rows = []
    for name, code in keys:
        cells = [found[name, code, decoding] for decoding in table2.DECODERS]
        rows.append([name, code, *(f"{cell.lowest:.1f} to {cell.highest:.1f}" for cell in cells)])
    return markdown(["set", "code", *table2.DECODERS], rows) if rows else []


def certificates(folder: Path) -> list[str]:
    """What the machines of table 3 are proved to be, beside the paper's figures that they do not give."""
    rows = []
    for one in SETS:
        for code in CODES:
            facts = facts_of(folder, "table3", one.name, code)
            if not facts:
                continue
            cells = machines(folder, "table3")
            values = [cells[one.name, code, decoding] for decoding in table3.DECODERS]
            keys = [(one.name, code, decoding) for decoding in table3.DECODERS]
            strange = [
                f"{published.NOT_REPRODUCED[key]:.1f} ({key[2]})" for key in keys if key in published.NOT_REPRODUCED
            ]
            rows.append(
                [
                    one.paper,
                    code,
                    str(facts[0]["columns"]),
                    " / ".join(f"{value.percent:.1f}" for value in values),
                    f"{max(fact['gap'] for fact in facts):.1e}",
                    f"{sum(fact['primal'] for fact in facts):.5g}",
                    f"{sum(fact['dual'] for fact in facts):.5g}",
                    ", ".join(strange),
                ]
            )
    head = ["set", "code", "machines", "Hamming / hinge", "largest gap", "primal", "dual", "printed, not reproduced"]
    return markdown(head, rows)


def at_the_end(fact: dict[str, Any]) -> bool:
    """Whether a larger C, had it been tried, might have been better."""
    tried = [float(words.split()[0].removeprefix("C=")) for words in fact["validation"]]
    return bool(tried) and fact["settings"]["C"] >= max(tried)


def settings(folder: Path, table: str) -> list[str]:
    """Which settings were chosen."""
    rows = []
    for one in SETS:
        for code, trainings in read(folder / table / f"{one.name}.json").items():
            chosen: dict[str, int] = {}
            for fact in trainings.values():
                words = " ".join(f"{name}={value:g}" for name, value in fact["settings"].items())
                words += ", the largest tried" if at_the_end(fact) else ""
                chosen[words] = chosen.get(words, 0) + 1
            rows.append([one.paper, code, ", ".join(f"{words} ({count})" for words, count in chosen.items())])
    return markdown(["set", "code", "chosen (times)"], rows)


def tuned(folder: Path) -> list[str]:
    """Machines with and without tuning, by code; a dash where nothing is tuned."""
    kinds = {
        "degree 4, C = 1": "table3",
        "degree 4, C chosen": "table3_tuned",
        "Gaussian, C and width chosen": "gaussian",
    }
    rows = []
    for one in (one for one in SETS if one.machines):
        for code in one.codes:
            cells = [
                shown(machines(folder, table).get((one.name, code, "hinge")), open_="·")
                if code in codes_of(table, one)
                else "–"
                for table in kinds.values()
            ]
            printed = published.published(published.MACHINES, "hinge", one.paper, code)
            rows.append([one.paper, code, *cells, "" if printed is None else f"{printed:.1f}"])
    return markdown(["set", "code", *kinds, "paper"], rows)


def rings(folder: Path) -> list[str]:
    """Figure 3 in numbers: means over the samples."""
    rows = []
    for classes in figure3.CLASSES:
        row = [str(classes)]
        for code in ("complete", "one-vs-all"):
            facts = facts_of(folder, "figure3", f"k{classes}", code)
            if facts:
                row.append(f"{sum(fact['binary_error'] for fact in facts) / len(facts):.3f}")
                row += [
                    f"{sum(fact['wrong'][name] for fact in facts) / sum(fact['rows'] for fact in facts):.3f}"
                    for name in figure3.DECODERS
                ]
        rows.append(row)
    columns = [f"{code}, {what}" for code in ("complete", "one-vs-all") for what in ("binary", *figure3.DECODERS)]
    return markdown(["K", *columns], [row for row in rows if len(row) == 7])


def growing(folder: Path) -> list[str]:
    """Table 9.1 with what it says and what was measured."""
    lines = []
    for learner in growth.LEARNERS:
        curves = {
            code: read(folder / "growth" / f"{learner}.json").get(code, {}) for code in ("one-vs-all", "all-pairs")
        }
        counts = sorted(set(curves["one-vs-all"]) & set(curves["all-pairs"]), key=int)
        single = read(folder / "growth" / f"{learner}.json").get("binary", {})
        if len(counts) < 2 or len(single) < 2:
            continue
        rows = [[count, *(f"{curves[code][count][what]:.3g}" for code in curves for what in TIMES)] for count in counts]
        head = ["K", *(f"{code}, {what.split('_')[0]} (s)" for code in curves for what in TIMES)]
        alpha = slope([float(n) for n in single], [single[n]["training_seconds"] for n in single])
        fitted = {
            (code, what): slope([float(k) for k in counts], [curves[code][k][what] for k in counts])
            for code in curves
            for what in TIMES
        }
        rows.append(["exponent of K", *(f"**{value:.2f}**" for value in fitted.values())])
        rows.append(["by table 9.1", "1", "1", f"2 − α = {2 - alpha:.2f}", "2"])
        lines += [f"**{learner}**: α = {alpha:.2f} for a binary problem of {min(map(int, single)):,} to "]
        lines[-1] += f"{max(map(int, single)):,} rows"
        lines += ["", *markdown(head, rows)]
    return lines


TIMES = ("training_seconds", "testing_seconds")
