"""Boosted stumps and trees: fit an ensemble, choose its rounds and leaves, label new rows; a tree or a forest likewise.

::

    python -m recipes.boost fit  --config recipes/configs/boost_digits.yaml
    python -m recipes.boost fit  --model forest --trees 100
    python -m recipes.boost fit  --rounds 500 --resume runs/boost/fit.pt
    python -m recipes.boost tune --leaves '[2,4,8]' --rounds 200
    python -m recipes.boost predict --folder runs/boost --path new.csv --probabilities true

Ctrl-C keeps the rounds that are done: the file that it leaves can be resumed. A fit that was killed goes on from what
it kept when the same command is given again. Tuning keeps every finished fold.
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("boost")

import json
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass import plots
from torch_multiclass.solvers import (
    AdaBoostAveraged,
    AdaBoostMH,
    AdaBoostMO,
    AdaBoostMR,
    DecisionTree,
    RandomForest,
    Rounds,
)

from .answers import note, temperature, write
from .data.encoding import stratified_split
from .data.kept import kept
from .data.remarks import remark
from .data.table import asked, laid_out, of_fit, read_or_digits
from .ensembles import Keeper, Model, chances, class_scores, decided, earlier, labelled, load, restored, rounds_of, save
from .files import locked, write_atomically
from .folds import Folds, check_compared, stratified, told_of_absent
from .functions import command_line, typed, unlike
from .names import BOOSTED, READ, check_read
from .plots import INK, MUTED, RIGHT, panels
from .progress import bar, percent
from .start import main as in_one_line
from .start import program
from .weights import Weight, of_rows

__all__ = ["decided", "fit", "load", "main", "predict", "restored", "rounds_of", "tune"]


# ---------------------------------------------------------------------- models
def solver(model: Model, classes: int, rounds: int, real: bool, leaves: int, bins: int | None, trees: int, **more: Any):
    """What trains the model."""
    options = {"rounds": rounds, "leaves": leaves, "bins": bins, **more}
    if model == "mh":
        return AdaBoostMH(real=real, **options)
    if model == "mo":
        return AdaBoostMO(tm.codes.one_vs_one(classes), real=real, **options)
    if model in ("mr", "averaged"):
        return {"mr": AdaBoostMR, "averaged": AdaBoostAveraged}[model](**options)
    return DecisionTree(prune="cv", **more) if model == "tree" else RandomForest(trees, bins=bins, **more)


def wrong(model: Model, scores: Tensor | tm.CodedScores, labels: Tensor) -> float:
    """The share of rows with another class."""
    return float((decided(model, scores) != labels).double().mean())


def proved(model: Model, product: float, classes: int) -> tm.bounds.Bound:
    """What the normalisers prove of the training error; of `averaged`, of the rows with a label sum <= 0."""
    if model != "mo":
        return tm.bounds.boosting_error(product, model, num_classes=classes)
    code = tm.codes.one_vs_one(classes)
    return tm.bounds.coded_error(product, code, "exponential", ignored=float((code == 0).double().mean()))


def said(model: Model, bound: tm.bounds.Bound, rows: int | None = None) -> str:
    """The bound in words; of so many rows that count alike, one that is below the share of one row is none of them."""
    if bound.vacuous:
        return f"the bound of {bound.value:.3g} is vacuous: nothing is proved"
    what = "share of training rows with a label sum <= 0" if model == "averaged" else "training error"
    if rows is not None and bound.value < 1 / rows:
        return f"{what} proved 0 of {rows}: <= {bound.value:.3g}, less than one row"
    return f"{what} proved <= {bound.value:.3g}"


def by_round(model: Model, report: Rounds, classes: int, x: Tensor, y: Tensor) -> list[float]:
    """The error after each round."""
    total, errors = torch.zeros(len(x), report.trees[0].values.shape[1]), []
    code = tm.codes.one_vs_one(classes) if model == "mo" else None
    for tree, alpha in zip(report.trees, report.alphas, strict=True):
        total = total + tm.EnsembleScorer([tree], [alpha])(x)
        errors.append(wrong(model, total if code is None else tm.CodedScores(total, code), y))
    return errors


# ---------------------------------------------------------------------- commands
def fit(
    path: str | None = None,
    model: Model = "mh",
    rounds: int = 200,
    real: bool = True,
    leaves: int = 8,
    bins: int | None = None,
    trees: int = 100,
    patience: int | None = None,
    validation: float = 0.15,
    resume: str | None = None,
    progress: bool | None = None,
    output: str = "runs/boost",
    label: str | None = None,
    weight: Weight | None = None,
    ignore: list[str] | str | None = None,
) -> dict[str, Any]:
    """Train one model, test it, draw error and bound against the rounds, and keep it.

    Args:
        path: a .csv, .tsv, .parquet or .npz file, the last with X and y (and train_idx and test_idx, else a quarter is
            for testing); default: digits. Each value of a column of words becomes a column.
        model: AdaBoost by `mh`, `mr`, `averaged`, `mo` (one-versus-one); or a `tree`, pruned by cross-validation, or a
            `forest`.
        rounds: of boosting.
        real: votes with a confidence (`mh`, `mo`), in place of ±1.
        leaves: of each boosted tree; 2 for stumps.
        bins: ranges of values of each feature; without it every threshold is tried.
        trees: of a forest.
        patience: end after so many rounds without a smaller error on a part of the training rows, and keep the best.
        validation: the fraction of the training rows for that.
        resume: the fit.pt of a shorter fit of the same setting, whose rounds are the first.
        progress: a bar on standard error; by default on a terminal.
        output: the folder for fit.pt, report.json and rounds.png.
        label: the column of the labels in a table; by default the last.
        weight: of the rows of each class, as `{cat: 2, dog: 1}`, 1 where it is not named; or `balanced`, which has
            every class count the same in all, however few rows it has.
        ignore: columns to leave out, in a list, by their names or, without a heading, their numbers.
    """
    check_read(model, unlike(fit, locals()))
    table = read_or_digits(path, label, ignore)
    x, y, names, train, test = laid_out(table)
    remark(table, train, test, weighted=weight is None)
    seen, held = train, None
    more: dict[str, Any] = {"progress": False}
    setting = {"path": path, "model": model, "rounds": rounds, "real": real, "leaves": leaves, "bins": bins}
    setting |= {"trees": trees, "patience": patience, "names": names, "features": x.shape[1]}
    setting |= {"label": label, "schema": table.schema(), "weight": weight}
    setting |= {"ignore": [*asked(ignore)]} if ignore else {}
    given: dict[str, Any] = {}
    if model in BOOSTED:
        if resume is not None:
            given["resume"] = earlier(resume, setting)
        if patience is not None:
            first, second = stratified_split(y[train].numpy(), validation, 0)
            seen, held = train[first], train[second]
            given["validation"], more["patience"] = (x[held], y[held]), patience
    start = time.process_time()
    total = {"tree": None, "forest": trees}.get(model, rounds)
    with bar(f"{model}:", total, progress) as advance:
        keeper = Keeper(Path(output), setting, advance)
        keeper.tell(resume)
        trainer = solver(model, len(names), rounds, real, leaves, bins, trees, on_step=keeper, **more)
        if model in BOOSTED:
            keeper.watch(trainer)
        given["weight"] = of_rows(weight, y[seen], names)
        trained = resumed(trainer, keeper, given, (x[seen], y[seen]), len(names))
    seconds, shown = time.process_time() - start, ""
    with torch.no_grad():
        tested = trained.scorer(x[test])
    shares = temperature(class_scores(model, tested), y[test]) if model in BOOSTED else None
    with locked(Path(output)):
        save(Path(output) / "fit.pt", setting, trained, temperature=shares, data=table.digest())
    facts: dict[str, Any] = {**{n: v for n, v in setting.items() if n not in ("names", "features", "schema")}}
    facts |= {"rows": len(seen), "num_classes": len(names), "cpu_seconds": seconds}
    with torch.no_grad():
        facts["train_error"] = wrong(model, trained.scorer(x[seen]), y[seen])
        facts["test_error"] = wrong(model, tested, y[test])
    if isinstance(trained.report, Rounds) and trained.report.trees:
        report = trained.report
        facts |= {"rounds_kept": report.rounds, "ending": report.ending, "product": report.bound[-1]}
        bound = proved(model, report.bound[-1], len(names))
        facts |= {"bound": bound.value, "bound_is_vacuous": bound.vacuous}
        shown = f"; {report.rounds} rounds, {said(model, bound, None if weight else len(seen))}"
        curves = {
            part: by_round(model, report, len(names), x[r], y[r]) for part, r in (("train", seen), ("test", test))
        }
        draw(Path(output) / "rounds.png", model, report, curves, len(names))
    write_atomically(Path(output) / "report.json", json.dumps(facts, indent=1) + "\n")
    keeper.done()  # last of all: a fit that is killed while it writes goes on as well
    print(
        f"{model}: training error {percent(facts['train_error'])}, test error {percent(facts['test_error'])} "
        f"in {seconds:.1f} s of CPU time{shown}"
    )
    if trained.report.interrupted:
        what = f"rounds done; to go on: --resume {Path(output) / 'fit.pt'}" if model in BOOSTED else f"{model} so far"
        print(f"ended from the keyboard: this is the {what}")
    else:
        print(f"kept in {output}; to label rows: {program('boost')} predict --folder {shlex.quote(output)} --path FILE")
    return facts


def resumed(trainer: Any, keeper: Keeper, given: dict[str, Any], rows: tuple[Tensor, Tensor], classes: int) -> Any:
    """Trained from the rounds that are given, else from those that a killed fit of the same rows left."""
    found = keeper.rounds() if "resume" not in given else None
    if found is not None:
        try:
            trained = trainer.fit(*rows, num_classes=classes, **given, resume=found)
        except ValueError:  # of other rows under the same name: from the start
            found = None
        else:
            print(f"went on after {found.rounds} rounds that an unfinished fit had left")
            return trained
    return trainer.fit(*rows, num_classes=classes, **given)


def draw(path: Path, model: Model, report: Rounds, curves: dict[str, list[float]], classes: int) -> None:
    """Error and bound against the rounds, and the votes' weighted error and edge."""
    bound = [proved(model, product, classes).value for product in report.bound]
    with panels(path, ["error", "base"], f"AdaBoost, {model}: {report.rounds} rounds", (4.6, 3.4)) as axes:
        plots.rounds(bound, axes["error"], errors={"test": curves["test"], "training": curves["train"]})
        axes["error"].set_title("error and bound")
        axis = axes["base"]
        ts = np.arange(1, report.rounds + 1)
        axis.plot(ts, report.errors, color=RIGHT, label="weighted error of the round")
        axis.plot(ts, report.Z, color=MUTED, label="Z of the round")
        top = min(1.05, 1.15 * max(*report.errors, *report.Z))
        axis.set(xlabel="rounds", title="the base classifiers", ylim=(-0.03 * top, top))
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.legend(frameon=False, labelcolor=INK)


def tune(
    path: str | None = None,
    model: Model = "mh",
    rounds: int = 200,
    reals: list[bool] = [True],  # noqa: B006 - a default on the command line, never changed
    leaves: list[int] = [2, 4, 8],  # noqa: B006
    bins: int | None = None,
    folds: int = 3,
    output: str = "runs/boost_tune",
    label: str | None = None,
    weight: Weight | None = None,
    ignore: list[str] | str | None = None,
) -> dict[str, Any]:
    """Choose rounds, leaves and the kind of votes by cross-validation on the training rows; finished folds are kept.

    Args:
        path: as for fit.
        model: one of boosting.
        rounds: the most to try; every smaller number is tried with it.
        reals: votes with a confidence or not, to try.
        leaves: the numbers to try.
        bins: as for fit.
        folds: how many.
        output: the folder for folds.json.
        label: as for fit.
        weight: as for fit, of the rows in training; errors count every row the same.
        ignore: as for fit.
    """
    if model not in BOOSTED:
        raise SystemExit(f"error: model: got {model}, which has no rounds; accepted are {', '.join(BOOSTED)}")
    check_read(model, unlike(tune, locals()))
    check_compared(folds, leaves=leaves, reals=reals)
    AdaBoostMH(leaves=min(leaves))  # refuses what no tree can have before any is trained
    table = read_or_digits(path, label, ignore)
    x, y, names, train, test = laid_out(table)
    remark(table, train, test, weighted=weight is None)
    order = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(0)).numpy()]
    part = stratified(y[order].numpy(), folds, names)
    done = Folds(Path(output), (model, rounds, bins, folds, weight), x[order], y[order], part)
    done.tell(f"{real} {size} {fold}" for real in reals for size in leaves for fold in range(folds))
    means: dict[tuple[bool, int], np.ndarray] = {}
    for real in reals:
        for size in leaves:
            for fold in range(folds):
                if (key := f"{real} {size} {fold}") in done:
                    continue
                seen, held = order[part != fold], order[part == fold]
                others = x[held], y[held]
                given = of_rows(weight, y[seen], names)
                with bar(f"real {real}, {size} leaves, fold {fold + 1}:", rounds) as on_step, told_of_absent():
                    trainer = solver(model, len(names), rounds, real, size, bins, 0, progress=False, on_step=on_step)
                    report = trainer.fit(
                        x[seen], y[seen], weight=given, num_classes=len(names), validation=others
                    ).report
                if report.interrupted:
                    raise SystemExit("stopped; the folds that are finished are kept")
                errors = report.validation_errors
                done[key] = errors + errors[-1:] * (rounds - len(errors))
            means[real, size] = np.mean([done[f"{real} {size} {fold}"] for fold in range(folds)], 0)
            least = int(means[real, size].argmin())
            print(f"real {real}, {size} leaves: error {percent(means[real, size][least])} after {least + 1} rounds")
    real, size = min(means, key=lambda pair: means[pair].min())
    best = {"path": path, "model": model, "rounds": int(means[real, size].argmin()) + 1, "real": real, "leaves": size}
    best = {name: value for name, value in best.items() if model in READ.get(name, BOOSTED)}
    best |= {"bins": bins, "label": label, "weight": weight, "ignore": [*asked(ignore)] or None}
    options = " ".join(f"--{name} {shlex.quote(typed(value))}" for name, value in best.items() if value is not None)
    print(f"train it by: {program('boost')} fit {options}")
    return {**best, "error": float(means[real, size].min())}


def predict(
    folder: str = "runs/boost",
    path: str | None = None,
    output: str | None = None,
    probabilities: bool = False,
    keep: list[str] | str | None = None,
) -> list[str]:
    """Label rows by a model that `fit` kept, in their order, one name a line, or a table where columns go along.

    Args:
        folder: the output folder of fit, or the fit.pt in it.
        path: a file of rows like those of fit, with or without labels; by default the test rows of fit's own.
        output: the file to write; by default labels.txt, where it is a table labels.csv.
        probabilities: write a CSV table, of each row the label and the probability of each class: of boosting the
            soft-max of the scores over a temperature that `fit` fitted to the test rows, which no training saw; of a
            tree or a forest the share of the training rows at the leaves.
        keep: columns of the rows that go into the file before the label, in a list, by their names or, without a
            heading, their numbers; by default those that `fit` left out, as an id. The file is then a CSV table.
    """
    found = load(folder, "folder")
    setting = found["setting"]
    rows: Any = path
    if path is None:
        held = of_fit(setting["path"], setting["label"], found.get("data"), setting.get("ignore"))
        tested = laid_out(held)[4]
        rows, known = held.features[tested], kept(setting["path"], setting["schema"], keep, tested.tolist())
    else:
        known = kept(path, setting["schema"], keep)
    labels = labelled(found, rows)
    note(found.get("temperature") if probabilities else None)
    write(output, labels, setting["names"], chances(found, rows) if probabilities else None, known)
    return labels


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    commands = {"fit": fit, "tune": tune, "predict": predict}
    return in_one_line(lambda: command_line("boost", commands, args, __doc__.split("\n")[0]))
