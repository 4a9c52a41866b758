"""What should agree with the papers, how far it does, and where it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import figure3, published, table2
from .estimate import Estimates, facts_of
from .pages import boosted, machines
from .sets import CODES, SETS, by_name


def checks(folder: Path) -> list[str]:
    """A line for each, of tables that were begun; a cell that is not done makes it open."""
    lines: list[str] = []
    if found := boosted(folder):
        lines += [
            within(found, ("satimage", "pendigits"), CODES, lambda code: 1.5),
            within(found, ("letter",), ("one-vs-all", "all-pairs"), lambda code: 1.0),
            within(found, ("letter",), ("dense", "sparse"), lambda code: 3.0),
            decodings(found),
        ]
    if trained := machines(folder, "table3"):
        lines += [one_versus_all(trained), not_reproduced(folder)]
    if (folder / "figure3").is_dir():
        lines += rings(folder)
    return [f"- {line}" for line in lines] or ["Nothing is trained yet that the papers say something of."]


def verdict(holds: bool, open_: int) -> str:
    """Yes, no, or not known yet."""
    return f"open, {open_} missing" if open_ else "holds" if holds else "**does not hold**"


def within(found: Estimates, names: tuple[str, ...], codes: tuple[str, ...], limit: Callable[[str], float]) -> str:
    """Whether cells of table 2 are as near to the paper as that."""
    far, missing = [], 0
    largest: float | None = None
    for name in names:
        for code in (code for code in codes if code in by_name(name).codes):
            for decoding in table2.DECODERS:
                cell = found.get((name, code, decoding))
                printed = published.published(published.BOOSTED, decoding, by_name(name).paper, code)
                if cell is None or cell.missing or printed is None:
                    missing += 1
                    continue
                away = abs(cell.percent - printed)
                largest = max(largest or 0.0, away)
                if away > limit(code):
                    far.append(f"{name} {code} {decoding} {cell.percent:.1f} against {printed:.1f}")
    said = f"table 2, {' and '.join(names)}, {', '.join(codes)}: within {limit(codes[0])} points of the paper"
    most = "" if largest is None else f", at most {largest:.1f}"
    return f"{said}: {verdict(not far, missing)}{most}{'; ' + '; '.join(far) if far else ''}"


def decodings(found: Estimates) -> str:
    """Whether the exponential loss decodes as well as Hamming does, by the mean over the codes."""
    better, worst, missing, said = 0, ("", 0.0), 0, []
    for one in SETS:
        pairs = [
            (found.get((one.name, code, "hamming")), found.get((one.name, code, "exponential"))) for code in one.codes
        ]
        done = [(a, b) for a, b in pairs if a is not None and b is not None and not a.missing]
        if len(done) < len(pairs):
            missing += 1
            continue
        change = sum(b.percent - a.percent for a, b in done) / len(done)
        said.append(f"{one.paper} {change:+.1f}".replace("-", "−"))
        better += change <= 0
        worst = max(worst, (one.name, change), key=lambda pair: pair[1])
    holds = better >= 8 and worst[1] <= 1.0
    listed = f": {better} sets ({', '.join(said)})" if said else ""
    return (
        "table 2, exponential at or below Hamming, mean over the codes, on eight sets or more, nowhere more than 1.0 "
        f"above: {verdict(holds, missing)}{listed}"
    )


def one_versus_all(found: Estimates) -> str:
    """Pendigits, one-versus-all."""
    cells = [found.get(("pendigits", "one-vs-all", decoding)) for decoding in ("hamming", "hinge")]
    got = [cell.percent for cell in cells if cell is not None]
    missing = 2 - len(got)
    holds = not missing and abs(got[0] - 3.9) <= 0.6 and abs(got[1] - 2.5) <= 0.6
    values = f": {' and '.join(f'{value:.1f}' for value in got)}" if got else ""
    return f"table 3, pendigits one-vs-all 3.9 and 2.5 within 0.6: {verdict(holds, missing)}{values}"


def not_reproduced(folder: Path) -> str:
    """The printed figures that machines solved to a small gap do not give."""
    found, said = machines(folder, "table3"), []
    for (name, code, decoding), printed in published.NOT_REPRODUCED.items():
        if (name, code, decoding) in found:
            gap = max(fact["gap"] for fact in facts_of(folder, "table3", name, code))
            ours = found[name, code, decoding].percent
            said.append(f"{name} {code} {decoding} {printed:.1f} (ours {ours:.1f}, gap {gap:.0e})")
    if not said:
        missing = len(published.NOT_REPRODUCED)
        return f"table 3, printed and not reproduced by machines with a certificate: {verdict(False, missing)}"
    away = [
        f"{name} {code} {decoding} {published.published(published.MACHINES, decoding, name, code):.1f}"
        for name, code, decoding in published.NOT_TRIED
    ]
    return (
        f"table 3, printed and not reproduced by machines with a certificate: {', '.join(said)}; as strange, and of a "
        f"set that is not at hand: {', '.join(away)}"
    )


def rings(folder: Path) -> list[str]:
    """Figure 3."""
    mean: dict[tuple[int, str, str], float] = {}
    for classes in figure3.CLASSES:
        for code in ("complete", "one-vs-all"):
            facts = facts_of(folder, "figure3", f"k{classes}", code)
            for decoding in figure3.DECODERS if facts else ():
                rows = sum(fact["rows"] for fact in facts)
                mean[classes, code, decoding] = sum(fact["wrong"][decoding] for fact in facts) / rows
            if facts:
                mean[classes, code, "binary"] = sum(fact["binary_error"] for fact in facts) / len(facts)
    missing = 2 * len(figure3.CLASSES) - sum(key[2] == "binary" for key in mean)
    if missing:
        return [f"figure 3: {verdict(False, missing)}"]
    hamming = min(mean[k, "one-vs-all", "hamming"] for k in figure3.CLASSES)
    loss = max(mean[k, "one-vs-all", "exponential"] for k in figure3.CLASSES)
    above = [k for k in figure3.CLASSES if mean[k, "complete", "binary"] > mean[k, "one-vs-all", "binary"]]
    return [
        f"figure 3, one-vs-all: Hamming error at least .3 and exponential at most .02 for every K: "
        f"{verdict(hamming >= 0.3 and loss <= 0.02, 0)}: {hamming:.2f} and more, {loss:.3f} and less",
        f"figure 3, average binary error of complete above that of one-vs-all from K = 5: "
        f"{verdict(set(range(5, 9)) <= set(above), 0)}: at K = {', '.join(map(str, above))}",
    ]
