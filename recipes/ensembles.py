"""A boosted ensemble, a tree or a forest that is kept: its file, its rounds, and the labels it gives."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass.ops.splits.tree import Tree
from torch_multiclass.solvers import Fit, Rounds
from torch_multiclass.solvers.report import Step

from .answers import named, probabilities
from .data.new import features_of
from .data.table import spelled
from .files import check_weights, model_file, read, refitted
from .files import save as save_whole
from .start import one_line

__all__ = ["Keeper", "Model", "chances", "class_scores", "decided", "earlier", "labelled", "load", "restored"]
__all__ += ["rounds_of", "save"]

Model = Literal["mh", "mr", "averaged", "mo", "tree", "forest"]
PERIOD, SHARE = 10.0, 20.0
"""Seconds between two times that the rounds of a fit are kept; and at least so many times what the keeping took."""
SETTING = ("model", "names", "features", "schema", "path", "label")
"""What is known of every fit."""


def decided(model: Model, scores: Tensor | tm.CodedScores) -> Tensor:
    """The class of each row."""
    return tm.LossBasedDecoder("exponential")(scores) if model == "mo" else scores.argmax(-1)


def class_scores(model: Model, scores: Tensor | tm.CodedScores) -> Tensor:
    """A score for each class; of a tree and a forest its share of the votes."""
    return tm.LossBasedDecoder("exponential").class_scores(scores) if model == "mo" else scores


def save(path: Path, setting: dict[str, Any], trained: Fit[Any, Any], **more: float | str | None) -> None:
    """The scorer and, of an ensemble that can go on, its rounds; `torch.load(weights_only=True)` reads it."""
    kept: dict[str, Any] = {"setting": setting, "scorer": trained.scorer.state_dict(), **more}
    if isinstance(trained.report, Rounds):
        facts = {f.name: getattr(trained.report, f.name) for f in dataclasses.fields(Rounds)}
        kept["trees"] = [{n: torch.from_numpy(v) for n, v in arrays(tree).items()} for tree in facts.pop("trees")]
        kept["rounds"] = facts
    save_whole(path, kept, {"recipe": "boost", "schema": setting["schema"]})


class Keeper:
    """Keeps the rounds of a fit while it goes on, in a file beside the one that it ends in.

    So a fit that was killed goes on from there when the same command is given again; the last one's file stays whole.

    Args:
        folder: where the file is.
        setting: of the fit.
        shown: is called after every round as well.
    """

    def __init__(self, folder: Path, setting: dict[str, Any], shown: Callable[[Step], None]) -> None:
        self.path, self.setting, self.shown = folder / "unfinished.pt", setting, shown
        self.due = time.perf_counter() + PERIOD
        self.so_far: Callable[[], Fit[Any, Any] | None] = lambda: None

    def tell(self, resume: str | None) -> None:
        """Say that the fit in the folder is replaced, unless this one goes on from it or from an unfinished one."""
        folder = self.path.parent
        own = resume is not None and Path(resume).resolve() in (folder.resolve(), (folder / "fit.pt").resolve())
        if not own and self.rounds() is None:
            refitted(folder, "fit.pt")

    def watch(self, trainer: Any) -> None:
        """Look on at a fit of boosting."""
        begin = trainer.monitor

        def monitor(problem: Any) -> Any:
            watched = begin(problem)

            def so_far() -> Fit[Any, Any] | None:
                if watched.found[-1].last:  # a fit that goes on would not know that it ends here
                    return None
                return Fit(trainer.scorer(problem, watched), trainer.report(problem, watched))

            self.so_far = so_far
            return watched

        trainer.monitor = monitor

    def __call__(self, step: Step) -> None:
        """After a round: keep all rounds, if the last time is long enough ago."""
        self.shown(step)
        start = time.perf_counter()
        if start >= self.due and (found := self.so_far()) is not None:
            save(self.path, self.setting, found)
            end = time.perf_counter()
            self.due = end + max(PERIOD, SHARE * (end - start))

    def rounds(self) -> Rounds | None:
        """Those that a killed fit of the same setting left; None where there are none."""
        try:
            kept = read(self.path, "output", "what an unfinished fit left")
            return rounds_of(kept) if kept["setting"] == self.setting else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
            return None

    def done(self) -> None:
        """The fit is over, and kept."""
        self.path.unlink(missing_ok=True)


def arrays(tree: Tree) -> dict[str, np.ndarray]:
    """The arrays of a tree that asks for thresholds."""
    names = ("feature", "threshold", "missing", "yes", "no", "values")
    return {name: getattr(tree, name) for name in names}


def load(path: str, argument: str) -> dict[str, Any]:
    """What `save` wrote, by its file or folder."""
    try:
        file = model_file(Path(path), argument) if Path(path).is_dir() else Path(path)
        kept = read(file, argument, "a fit.pt of this recipe")
    except (OSError, ValueError) as problem:
        raise SystemExit(f"error: {problem}") from None
    setting = kept.get("setting")
    missing = [name for name in SETTING if not isinstance(setting, dict) or name not in setting]
    if missing or not isinstance(kept.get("scorer"), dict):
        what = missing[0] if missing else "scorer"
        raise SystemExit(f"error: {argument}: {path} has no {what}; accepted is a fit.pt of this recipe")
    return kept


def restored(kept: dict[str, Any]) -> tm.Scorer:
    """The scorer of what `load` read."""
    setting = kept["setting"]
    classes, model = len(setting["names"]), setting["model"]
    code = tm.codes.one_vs_one(classes) if model == "mo" else None
    kind = tm.TreeScorer if model == "tree" else tm.EnsembleScorer
    try:
        scorer = kind.from_state_dict(kept["scorer"], "" if code is None else "margins.")
        whole = scorer if code is None else tm.CodedScorer(scorer, code)
        whole.load_state_dict(kept["scorer"])
    except (RuntimeError, LookupError, AttributeError, TypeError) as problem:
        raise ValueError(f"fit: its weights do not fit together: {one_line(problem, 300)}") from None
    votes = {name: part for name, part in kept["scorer"].items() if name.endswith(("values", "alphas"))}
    check_weights(votes, Path("fit.pt"), "fit")
    return whole


def rounds_of(kept: dict[str, Any]) -> Rounds | None:
    """How boosting went, of what `load` read; None of a tree or a forest."""
    if "rounds" not in kept:
        return None
    trees = [
        Tree(**{n: v.numpy() for n, v in one.items()}, features=kept["setting"]["features"]) for one in kept["trees"]
    ]
    return Rounds(**kept["rounds"], trees=trees)


def earlier(path: str, setting: dict[str, Any]) -> Rounds:
    """The rounds to go on from."""
    kept = load(path, "resume")
    for name, value in setting.items():
        if name != "rounds" and kept["setting"].get(name) != value:
            raise SystemExit(f"error: resume: was fitted with {name} {kept['setting'].get(name)}; got {value}")
    found = rounds_of(kept)
    assert found is not None
    return found


def scores_of(kept: dict[str, Any], rows: Any, argument: str) -> Tensor | tm.CodedScores:
    """The scores of a file, which was given as ``argument``, a data frame or features."""
    setting, scorer = kept["setting"], restored(kept)
    schema = setting["schema"]
    x = spelled(features_of(rows, schema, argument), schema["categories"])
    if x.shape[1] != setting["features"]:
        raise ValueError(f"{argument}: has {x.shape[1]} features; accepted are {setting['features']}")
    with torch.no_grad():
        return scorer(x)


def labelled(kept: dict[str, Any], rows: Any, argument: str = "path") -> list[str]:
    """The labels of rows, by name."""
    setting = kept["setting"]
    return named(setting["names"], decided(setting["model"], scores_of(kept, rows, argument)))


def chances(kept: dict[str, Any], rows: Any, argument: str = "path") -> np.ndarray:
    """The probability of each class, for each row; of trees and forests the share at the leaves."""
    model = kept["setting"]["model"]
    scores = class_scores(model, scores_of(kept, rows, argument))
    if model not in ("tree", "forest"):
        return probabilities(scores, kept.get("temperature"))
    shares = scores.double().numpy()
    return shares / shares.sum(1, keepdims=True)  # of a mean of float32, it is 1 but for the last digits
