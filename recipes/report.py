"""Write the report of any head that a recipe trained: HTML, Markdown and JSON.

::

    python -m recipes.report runs/digits_ecoc/version_0/checkpoints/best.ckpt
    python -m recipes.report runs/svm --output svm_report
    python -m recipes.report runs/boost/fit.pt --part train

The checkpoint is that of `recipes.classify` or `recipes.tag`, the folder that `recipes.svm fit` writes, or the fit.pt
of `recipes.boost`. The data are those that it was trained on, of which the test part is reported; or those of
``--data path.npz``, for a tagger ``--data path.conllu``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
import yaml

import torch_multiclass as tm
from torch_multiclass.reports import HeadReport

from . import boost, classify, svm, tag
from .console import RecipeCLI

__all__ = ["main", "write"]

Part = Literal["test", "validation", "train"]


def write(
    checkpoint: str,
    data: str | None = None,
    part: Part = "test",
    cost: str | None = None,
    radius: float | None = None,
    delta: float = 0.05,
    output: str | None = None,
) -> str:
    """Report on a trained head.

    Args:
        checkpoint: a .ckpt of `classify` or `tag`, the folder or the scorer.pt of `svm fit`, the fit.pt of `boost fit`.
        data: other data than it was trained on: an .npz file, for `tag` a .conllu file.
        part: which part of the data; the training part has no held-out bound.
        cost: a file with a row of numbers for each true class, a cost for each label; without it every mistake costs 1.
        radius: what no row's norm is above, for the margin bounds of linear machines.
        delta: intervals and bounds hold with probability 1 - delta.
        output: the folder to write; by default `report` beside the checkpoint.
    """
    path = Path(checkpoint)
    options: dict[str, Any] = {"held_out": part == "test", "delta": delta, "radius": radius}
    if cost is not None:
        options["cost"] = costs(cost)
    made = kind(path)(path, data, part, options)
    folder = Path(output) if output else (path if path.is_dir() else path.parent) / "report"
    made.save(folder)
    print(f"{made.title}\nwritten: {folder / 'report.html'}, report.md, report.json")
    return str(folder)


def costs(path: str) -> list[list[float]]:
    """Numbers between commas or blanks, a line a class."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [[float(entry) for entry in line.replace(",", " ").split()] for line in lines if line.strip()]
    except (OSError, ValueError) as problem:
        raise SystemExit(f"error: cost: {path}: {problem}; accepted is a file of numbers, a line a class") from None


def kind(path: Path) -> Any:
    """Whose the checkpoint is."""
    if path.is_dir() or path.name == "scorer.pt":
        return of_svm
    if not path.is_file():
        raise SystemExit(f"error: checkpoint: there is no file {path}; accepted is what a recipe wrote")
    try:
        kept = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except Exception:
        kept = None
    for makes, key in ((of_tagger, "tagger"), (of_classifier, "state_dict"), (of_ensemble, "setting")):
        if isinstance(kept, dict) and key in kept:
            return makes
    raise SystemExit(f"error: checkpoint: {path} is no file of a recipe; accepted are .ckpt, scorer.pt and fit.pt")


# ---------------------------------------------------------------------- networks
def loaded(main_of: Any, path: Path, *options: str) -> RecipeCLI:
    """The model with its weights, and its data: the recipe's own test of the checkpoint, silently."""
    given = path.resolve().parent.parent / "config.yaml"
    own: list[str] = []
    if given.is_file() and not any(option.startswith("--data=") for option in options):
        config = yaml.safe_load(given.read_text(encoding="utf-8")).get("data")
        own = [f"--data={json.dumps(config)}"] if config else []
    quiet = ["--verbose=false", "--trainer.enable_progress_bar=false"]
    return main_of(["test", f"--ckpt_path={path}", *quiet, *own, *options])


def of_classifier(path: Path, data: str | None, part: Part, options: dict[str, Any]) -> HeadReport:
    """Any head on any backbone."""
    given = [] if data is None else ["--data=recipes.data.npz.Npz", f"--data.path={data}"]
    cli = loaded(classify.main, path, *given)
    model, rows = cli.model.eval().cpu(), cli.datamodule.parts[part]
    head = type(model.head).__name__
    return tm.report(
        model.head,
        (rows.features, rows.labels),
        backbone=model.backbone,
        names=cli.datamodule.classes,
        title=f"{head}: {len(rows)} rows of the {part} part",
        **options,
    )


def of_tagger(path: Path, data: str | None, part: Part, options: dict[str, Any]) -> HeadReport:
    """A tagger, whose scores are those of its averaged weights."""
    given = [] if data is None else [f"--data.test={data}"]
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
        title=f"{type(model.loss).__name__} tagger: sentences of the {part} part",
        **options,
    )


# ---------------------------------------------------------------------- machines
def chosen(part: Part, train: Any, test: Any) -> Any:
    """Row numbers of a part."""
    if part == "validation":
        raise SystemExit("error: part: got validation, which this recipe has not; accepted are test and train")
    return test if part == "test" else train


def of_svm(path: Path, data: str | None, part: Part, options: dict[str, Any]) -> HeadReport:
    """A support vector machine."""
    folder = path if path.is_dir() else path.parent
    scorer, facts = svm.load(folder)
    x, y, train, test = svm.rows(data or facts["path"], None, facts["label"], facts["scaling"])
    rows = chosen(part, train, test)
    title = f"Support vector machine (C = {facts['C']:g}): {len(rows)} rows of the {part} part"
    names = svm.class_names(data or facts["path"])
    return tm.report(scorer, (x[rows], y[rows]), names=names, title=title, **options)


def of_ensemble(path: Path, data: str | None, part: Part, options: dict[str, Any]) -> HeadReport:
    """A boosted ensemble, a tree or a forest."""
    kept = boost.load(str(path), "checkpoint")
    setting = kept["setting"]
    x, y, names, train, test = boost.table(data or setting["path"], setting["label"])
    rows, scorer, fit = chosen(part, train, test), boost.restored(kept), boost.rounds_of(kept)
    kinds = {"tree": "decision tree", "forest": "random forest", "averaged": "AdaBoost, averaged"}
    kind = kinds.get(setting["model"], f"AdaBoost.{setting['model'].upper()}")
    return tm.report(
        scorer if fit is None else tm.solvers.Fit(scorer, fit),
        (x[rows], y[rows]),
        decoder=tm.LossBasedDecoder("exponential") if setting["model"] == "mo" else None,
        names=names if len(names) >= len(setting["names"]) else setting["names"],
        title=f"{kind}: {len(rows)} rows of the {part} part",
        **options,
    )


def main(args: list[str] | None = None) -> str:
    """Run the command line."""
    from jsonargparse import auto_cli

    try:
        return auto_cli(write, args=args, as_positional=True, description=__doc__.split("\n")[0])
    except (ValueError, TypeError, OSError) as problem:
        raise SystemExit(f"error: {problem}") from problem


if __name__ == "__main__":
    main(sys.argv[1:])
