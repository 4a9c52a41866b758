"""What reads handwritten words: flat and structured machines, their settings and how they are chosen."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

import torch_multiclass as tm

from .data.letters import Batch, Words
from .names import one_of
from .progress import whole

Settings = dict[str, float]
Trained = tuple[nn.Module, dict[str, float]]
TOLERANCE = 1e-2  # the gap of the machine that is tested
ROUGHLY = 5e-2  # and of those that choose its settings


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
            settings["C"],
            loss=loss,
            kernel=kernel,
            transition_scale=settings["s"],
            tol=tol,
            max_passes=200,
            bias="bias" in settings,
        )
        scorer, certificate = whole(solver, words.features, words.labels, lengths=words.lengths)
        names = ("primal", "dual", "gap", "iterations")
        return scorer, {name: float(getattr(certificate, name)) for name in names}

    return train


def flat(degree: int) -> Callable[[Settings, Batch, float], Trained]:
    """Every letter by itself."""
    kernel = "linear" if degree == 1 else tm.kernels.Polynomial(degree, 1.0, 0.0)

    def train(settings: Settings, words: Batch, tol: float) -> Trained:
        solver = tm.solvers.DualSVM(settings["C"], kernel, tol, bias="bias" in settings)
        scorer, certificate = whole(solver, *words.letters)
        return scorer, {name: float(getattr(certificate, name)) for name in ("primal", "dual", "gap", "iterations")}

    return train


def crf(settings: Settings, words: Batch, tol: float) -> Trained:
    """The conditional random field with the machines' regulariser, by L-BFGS on all words."""
    scorer = tm.ChainScorer(words.features.shape[-1], 26, bias="bias" in settings)
    for part in scorer.parameters():
        nn.init.zeros_(part)
    loss = tm.CRFLoss(reduction="sum")
    optimiser = torch.optim.LBFGS(scorer.parameters(), max_iter=150, history_size=20, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimiser.zero_grad()
        own = sum(part.square().sum() for part in scorer.emissions.parameters())
        neighbours = sum(part.square().sum() for part in scorer.chain.parameters()) / settings["s"] ** 2
        total = 0.5 * (own + neighbours) / settings["C"]
        total = total + loss(scorer(words.features, lengths=words.lengths), words.labels)
        total.backward()
        return total

    return scorer, {"objective": float(optimiser.step(objective).detach())}


def perceptron(settings: Settings, words: Batch, tol: float) -> Trained:
    """The averaged structured perceptron."""
    solver = tm.solvers.Perceptron(
        averaged=True, shuffle=True, max_passes=int(settings["passes"]), bias="bias" in settings
    )
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Perceptron: .* updates in the last"
        )  # how many passes there are is a setting
        scorer, mistakes = whole(solver, words.features, words.labels, lengths=words.lengths)
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


def choose(row: Method, words: Words, own: Tensor) -> tuple[Settings, dict[str, float]]:
    """The settings with the lowest error on held-out halves of the training fold, the first among equals."""
    candidates = row.settings()
    if len(candidates) == 1:
        return candidates[0], {}
    half = torch.randperm(len(own), generator=torch.Generator().manual_seed(0)) % 2
    errors = {}
    for settings in candidates:
        held = []
        for number in range(row.halves):
            seen, unseen = words.batch(own[half != number]), words.batch(own[half == number])
            held.append(letter_error(row.train(settings, seen, ROUGHLY)[0], unseen))
        errors[" ".join(f"{name}={value:g}" for name, value in settings.items())] = sum(held) / len(held)
    best = min(range(len(candidates)), key=list(errors.values()).__getitem__)
    return candidates[best], errors


def one_fold(row: Method, words: Words, fold: int) -> dict:
    """Everything about one fold."""
    own, others = ((words.fold == fold).nonzero().squeeze(1), (words.fold != fold).nonzero().squeeze(1))
    start = time.process_time()
    settings, validation = choose(row, words, own)
    middle = time.process_time()
    scorer, facts = row.train(settings, words.batch(own), TOLERANCE)
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


def method(name: str, bias: bool) -> Method:
    """A row of the table, each letter with a constant feature beside its pixels or without."""
    own = METHODS[one_of("methods", name, METHODS)]
    return replace(own, name=f"{own.name}, bias", grid={**own.grid, "bias": (1.0,)}) if bias else own
