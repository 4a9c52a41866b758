"""What ``make demo`` shows: one backbone, several heads, one table and a few pictures in ``demo/``."""

from __future__ import annotations

import contextlib
import io
import shutil
import time
from pathlib import Path

import numpy as np
import torch

import torch_multiclass as tm
from torch_multiclass.metrics import BitError

from . import boost, plots, tag
from .classify import ClassifyCLI, train
from .results import DIGITS, HERE

PICTURES = Path("demo")


def table_row(name: str, error: float, seconds: float) -> None:
    """Print one line of the table as soon as it is known."""
    print(f"{name:<32}{error:>12.2%}{seconds:>10.1f}", flush=True)


@torch.inference_mode()
def test_rows(cli: ClassifyCLI) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Labels, predicted labels and margins of the test rows, in mean spreads of a row's scores; none of votes."""
    rows, model = cli.datamodule.parts["test"], cli.model.eval()
    scores = model(rows.features.to(model.device))
    every = model.head.class_scores(scores).cpu()
    predicted = model.head.predict(scores).cpu()
    if isinstance(model.head.decoder, (tm.VotingDecoder, tm.TournamentDecoder)):
        return rows.labels, predicted, None
    return rows.labels, predicted, tm.functional.margin(every, rows.labels) / (every.amax(1) - every.amin(1)).mean()


@torch.inference_mode()
def column_errors(cli: ClassifyCLI) -> np.ndarray:
    """Share of wrong answers of each column of a code, over the test rows."""
    rows, model = cli.datamodule.parts["test"], cli.model.eval()
    scores = model(rows.features.to(model.device))
    error = BitError(scores.num_columns).to(model.device)
    error.update(scores, rows.labels.to(model.device))
    return error.compute().cpu().numpy()


def digits() -> None:
    """Train one convolutional backbone with each head on the digits."""
    labels, margins = {}, {}
    for head, config in DIGITS.items():
        cli, seconds = train(HERE / "configs" / f"{config}.yaml")
        table_row(f"digits, {head}", float(cli.trainer.callback_metrics["test_error"]), seconds)
        target, predicted, margin = test_rows(cli)
        labels[head], margins[head] = (target.numpy(), predicted.numpy()), None if margin is None else margin.numpy()
        if config == "digits_ecoc":
            code = cli.model.head.scorer.coding_matrix.cpu().numpy()
            plots.code(
                PICTURES / "code.png", code, column_errors(cli), cli.datamodule.classes, f"Digits: the code of {head}"
            )
    plots.confusion(PICTURES / "confusion.png", labels, cli.datamodule.classes, "Digits: true and predicted class")
    plots.margins(PICTURES / "margins.png", margins, "Digits: margin of the true class over its best rival")


def tagger() -> None:
    """Train a small CRF tagger on the embedded treebank and draw what it learned of neighbouring tags."""
    small = ("--model.hidden=128", "--model.layers=1", "--trainer.max_epochs=4")
    cli, seconds = tag.train(f"--config={HERE / 'configs' / 'pos_crf.yaml'}", *small)
    table_row("Portuguese treebank, CRF", 1 - float(cli.trainer.callback_metrics["test_accuracy"]), seconds)
    chain = cli.model.average.module.scorer.chain
    learned = (chain.transitions, chain.start_transitions, chain.end_transitions)
    plots.transitions(
        PICTURES / "transitions.png",
        *(scores.detach().cpu().numpy() for scores in learned),
        cli.model.vocabulary.tags,
        "Portuguese: learned scores of neighbouring tags",
    )


def boosted() -> None:
    """Boost trees of 8 leaves on the digits, and draw error and bound against the rounds."""
    start, kept = time.perf_counter(), Path("runs/demo_boost")
    with contextlib.redirect_stdout(io.StringIO()):
        facts = boost.fit(rounds=100, output=str(kept))
    table_row("digits, boosted trees", facts["test_error"], time.perf_counter() - start)
    shutil.copyfile(kept / "rounds.png", PICTURES / "boosting.png")


def main() -> None:
    """Every step, then where the pictures are."""
    torch.set_num_threads(1)  # networks this small gain little from a second, and lose much on a busy machine
    print(f"{'data, head':<32}{'test error':>12}{'seconds':>10}", flush=True)
    digits()
    boosted()
    tagger()
    print("pictures: " + ", ".join(str(path) for path in sorted(PICTURES.glob("*.png"))))


if __name__ == "__main__":
    main()
