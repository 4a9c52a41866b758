"""Write the report of any head that a recipe trained: HTML, Markdown and JSON.

::

    python -m recipes.report runs/digits_ecoc                        # the newest best.ckpt below it
    python -m recipes.report runs/svm --output svm_report
    python -m recipes.report runs/boost/fit.pt --part train
    python -m recipes.report runs/svm --data new.csv --held_out true    # all rows of the file

Reported on are the test part of the data that the head was trained on, or the rows of ``--data``.
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("report")

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

import torch_multiclass as tm
from torch_multiclass.reports import HeadReport

from . import boost, classify, ocr, svm, tag, yaml_files
from .answers import AS_THEY_ARE, UNCALIBRATED, Predicted, tempered
from .completed import run_of
from .console import RecipeCLI
from .data.costs import costs, read
from .data.encoding import Encoder
from .data.letters import Words
from .data.new import new_features
from .data.table import labels_of, laid_out, of_fit, spelled
from .ensembles import class_scores
from .files import model_file, whose
from .fitted import load
from .functions import command_line
from .machine import certificate, scaled
from .names import listed
from .start import main as in_one_line

__all__ = ["main", "write"]

Part = Literal["test", "validation", "train", "all"]


def write(
    checkpoint: str,
    data: str | None = None,
    part: Part | None = None,
    held_out: bool | None = None,
    label: str | None = None,
    cost: str | dict[str, dict[str, float]] | None = None,
    radius: float | None = None,
    delta: float = 0.05,
    output: str | None = None,
) -> str:
    """Report on a trained head.

    Args:
        checkpoint: the output folder of a recipe, or the .../checkpoints/best.ckpt of `classify` or `tag`, the
            scorer.pt of `svm` or `ocr`, the fit.pt of `boost`.
        data: other data than it was trained on: a file of any kind that the recipe reads.
        part: which part of the data; the training part has no held-out bound. By default the test part of the head's
            own data, and `all` of other data.
        held_out: whether the rows of ``data`` took no part in training or choosing; not known unless it is said, and
            then there is no held-out bound.
        label: the column of the labels in ``data``; by default as in the fit.
        cost: a file with a row of numbers for each true class, a cost for each label, with or without the names of the
            classes before the rows and above the columns, or `{cat: {dog: 5}}`, 1 where it is not named; without it
            every mistake costs 1.
        radius: what no row's norm is above, for the margin bounds of linear machines.
        delta: intervals and bounds hold with probability 1 - delta.
        output: the folder to write; by default `report` beside the checkpoint.
    """
    path = model_file(Path(checkpoint), "checkpoint")
    part = part or ("test" if data is None else "all")
    if data is None and part == "all":
        raise ValueError("part: got all; accepted of the data of the fit are test, validation and train")
    options: dict[str, Any] = {"held_out": part == "test", "delta": delta, "radius": radius}
    if data is not None:
        options["held_out"] = held_out
    elif held_out is not None:
        raise ValueError("held_out: is said of other data; accepted is with --data")
    if cost is not None:
        named, table = (True, []) if isinstance(cost, dict) else read(cost)[1:]
        options["cost"] = table if named is None else costs(cost, load(path).classes)
    makes = {"tag": of_tagger, "classify": of_classifier, "boost": of_ensemble, "svm": of_svm, "ocr": of_reader}
    made = makes[whose(path)](path, Asked(data, part, label), options)
    folder = Path(output) if output else path.parent / "report"
    made.save(folder)
    print(f"{made.title}\nwritten: {folder / 'report.html'}, report.md, report.json, pictures/")
    return str(folder)


class Asked(NamedTuple):
    """Which rows are reported on: a part of the data of the fit, or other data, whose labels are in a column."""

    data: str | None
    part: Part
    label: str | None

    @property
    def rows(self) -> str:
        """In words."""
        if self.data is None:
            return f"rows of the {self.part} part"
        return f"rows of {self.data}" + ("" if self.part == "all" else f", the {self.part} part")

    def tempered(
        self, found: float | None, class_scores: Callable[[Any], torch.Tensor] = lambda scores: scores
    ) -> Predicted | None:
        """The probabilities at the temperature that was kept, if one was."""
        if found is None:
            return None
        if found == UNCALIBRATED:
            return Predicted(lambda scores: tempered(class_scores(scores), found), AS_THEY_ARE)
        same = self.data is None and self.part == "test"
        where = "these same rows: of new ones they may be less right" if same else "the test rows of its own data"
        told = f"the soft-max of the scores over the temperature {found:.4g}, which fit chose on {where}"
        return Predicted(lambda scores: tempered(class_scores(scores), found), told)

    def chosen(self, train: Any, test: Any) -> Any:
        """Row numbers of the part."""
        if self.part == "validation":
            raise ValueError("part: got validation, which these data have not; accepted are test and train")
        return test if self.part == "test" else train

    def others(self, schema: dict[str, Any], label: str | None) -> tuple[np.ndarray, torch.Tensor, list[str]]:
        """Features of the other data, labels as the model numbers them, and names, those unknown to it last."""
        assert self.data is not None
        found, classes, split = labels_of(self.data, self.label or label)
        if not {*classes} & {*schema["classes"]}:
            column = self.label or label or "that is the last"
            raise ValueError(
                f"label: column {column} of {self.data} holds {listed(classes, 5)}; accepted is the one that holds "
                f"classes of the model, {listed(schema['classes'], 12)}"
            )
        names = [*schema["classes"], *(name for name in classes if name not in schema["classes"])]
        labels = torch.tensor([names.index(name) for name in classes])[found]
        features = new_features(self.data, schema, "data")
        if self.part != "all" and split is None:
            raise ValueError(f"part: got {self.part}, but {self.data} is one whole; accepted is all")
        rows = slice(None) if self.part == "all" else self.chosen(*split)
        return features[rows], labels[rows], names


# ---------------------------------------------------------------------- networks
def own_data(path: Path) -> dict[str, Any]:
    """The configuration of the data beside a checkpoint."""
    given = run_of(path.resolve())
    return {} if given is None else yaml_files.read(given).get("data") or {}


def loaded(main_of: Any, path: Path, *options: str) -> RecipeCLI:
    """The model with its weights, and its data: the recipe's own test of the checkpoint, silently."""
    config = None if any(option.startswith("--data=") for option in options) else own_data(path)
    own = [f"--data={json.dumps(config)}"] if config else []
    quiet = ["--verbose=false", "--trainer.enable_progress_bar=false"]
    return main_of(["test", f"--ckpt_path={path}", *quiet, *own, *options])


def of_classifier(path: Path, asked: Asked, options: dict[str, Any]) -> HeadReport:
    """Any head on any backbone."""
    if asked.data is None:
        cli = loaded(classify.main, path)
        model, rows, names = cli.model, cli.datamodule.parts[asked.part], cli.datamodule.classes
        features, labels = rows.features, rows.labels
    else:
        fitted = load(path)
        model, facts = fitted.model, fitted.facts
        given, labels, names = asked.others(facts["schema"], own_data(path).get("init_args", {}).get("label"))
        features = Encoder.from_state(facts["encoder"])(given)
    model = model.eval().cpu()
    return tm.report(
        model.head,
        (features, labels),
        backbone=model.backbone,
        names=names,
        title=f"{type(model.head).__name__}: {len(labels)} {asked.rows}",
        **options,
    )


def of_tagger(path: Path, asked: Asked, options: dict[str, Any]) -> HeadReport:
    """A tagger, whose scores are those of its averaged weights."""
    part = "test" if asked.data is not None else asked.part
    given = [] if asked.data is None else [f"--data.test={asked.data}"]
    given += [] if asked.label is None else [f"--model.column={asked.label}"]
    cli = loaded(tag.main, path, *given)
    model, treebank = cli.model.eval().cpu(), cli.datamodule
    if part != "test":
        treebank.setup("fit")
    loader = {
        "test": treebank.test_dataloader,
        "validation": treebank.val_dataloader,
        "train": treebank.train_dataloader,
    }

    def scored() -> Iterator[tuple[tm.ChainScores, torch.Tensor]]:
        for batch in loader[part]():
            yield model(batch), batch.tags

    tags = [*model.vocabulary.tags, *model.vocabulary.unseen_tags]
    return tm.report(
        model.average.module.scorer,
        scored(),
        decoder=model.decoder,
        names=tags,
        title=f"{type(model.loss).__name__} tagger: sentences of {asked.data or f'the {part} part'}",
        **options,
    )


# ---------------------------------------------------------------------- machines
def of_svm(path: Path, asked: Asked, options: dict[str, Any]) -> HeadReport:
    """A support vector machine."""
    scorer, facts = svm.load(path.parent)
    names = facts["schema"]["classes"]
    if asked.data is None:
        x, y, train, test = svm.rows(facts)
        rows = asked.chosen(train, test)
        x, y = x[rows], y[rows]
    else:
        given, y, names = asked.others(facts["schema"], facts["label"])
        x = scaled(given, facts["scaling"])
    title = f"Support vector machine (C = {facts['C']:g}): {len(y)} {asked.rows}"
    model = scorer if (found := certificate(facts)) is None else tm.solvers.Fit(scorer, found)
    return tm.report(
        model, (x, y), probabilities=asked.tempered(facts.get("temperature")), names=names, title=title, **options
    )


def of_reader(path: Path, asked: Asked, options: dict[str, Any]) -> HeadReport:
    """What reads handwritten words: a chain, or a machine of single letters."""
    scorer, facts = ocr.load(path.parent, "ocr")
    words = Words.read(asked.data or facts["path"], name="data" if asked.data else "path")
    own = torch.isin(words.fold, torch.tensor(facts["folds"]))
    every = torch.arange(len(own))
    rows = every if asked.data is not None else asked.chosen(every[own], every[~own])
    if len(rows) == 0:
        raise ValueError("part: got test, but all folds were trained on; accepted is train, or other --data")
    batch = words.batch(rows)
    chain = isinstance(scorer, tm.ChainScorer)
    data = (batch.features, batch.labels, {"lengths": batch.lengths}) if chain else batch.letters
    title = f"{facts['method']}: {len(rows)} words of {asked.data or f'the {asked.part} part'}"
    return tm.report(scorer, data, names=list(facts["alphabet"]), title=title, **options)


def of_ensemble(path: Path, asked: Asked, options: dict[str, Any]) -> HeadReport:
    """A boosted ensemble, a tree or a forest."""
    kept = boost.load(str(path), "checkpoint")
    setting = kept["setting"]
    names = setting["names"]
    if asked.data is None:
        x, y, _, train, test = laid_out(
            of_fit(setting["path"], setting["label"], kept.get("data"), setting.get("ignore"))
        )
        rows = asked.chosen(train, test)
        x, y = x[rows], y[rows]
    else:
        given, y, names = asked.others(setting["schema"], setting["label"])
        x = spelled(given, setting["schema"]["categories"])
    scorer, fit = boost.restored(kept), boost.rounds_of(kept)
    model = setting["model"]
    if model in ("tree", "forest"):
        shares: Any = Predicted(lambda scores: scores, "the shares of the training rows at the leaves")
    else:
        shares = asked.tempered(kept.get("temperature"), partial(class_scores, model))
    kinds = {"tree": "decision tree", "forest": "random forest", "averaged": "AdaBoost, averaged"}
    kind = kinds.get(model, f"AdaBoost.{model.upper()}")
    return tm.report(
        scorer if fit is None else tm.solvers.Fit(scorer, fit),
        (x, y),
        decoder=tm.LossBasedDecoder("exponential") if model == "mo" else None,
        probabilities=shares,
        names=names,
        title=f"{kind}: {len(y)} {asked.rows}",
        **options,
    )


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    return in_one_line(lambda: command_line("report", write, args, __doc__.split("\n")[0]))
