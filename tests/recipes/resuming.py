"""Kill a training at random moments, let it go on, and compare with one that nobody killed: bit for bit.

``python -m tests.recipes.resuming --kills 50`` does so with each recipe. A kill is a SIGKILL to a real process, at any
moment from its first step to its end; what was not yet kept then is trained again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recipes import boost, classify, ensembles, ocr, svm, tag

FOLDER = "runs/default/version_0/checkpoints"
QUIET = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
EPOCHS = 4
WORDS = {"D": "bu cu du fu", "N": "bota cota dota fota", "V": "bira cira dira fira"}


def treebank(path: Path) -> None:
    """Forty sentences of determiner, noun, verb."""
    draw, text = random.Random(0), ""
    for _ in range(40):
        for n, name in enumerate(["D", "N", "V"] * draw.randint(1, 3), 1):
            text += f"{n}\t{draw.choice(WORDS[name].split())}\t_\t{name}\t_\t_\t0\t_\t_\t_\n"
        text += "\n"
    path.write_text(text)


def classified(resume: list[str]) -> None:
    """Train a convolutional network on digits."""
    classify.main(["fit", *QUIET, f"--trainer.max_epochs={EPOCHS}", "--trainer.limit_train_batches=6", *resume])


def tagged(resume: list[str]) -> None:
    """Train a tagger, which drops out units and words."""
    treebank(Path("train.conllu"))
    size = ["--model.hidden=8", "--model.layers=1", "--model.characters=4", "--data.batch_tokens=60"]
    tag.main(["fit", *QUIET, *size, f"--trainer.max_epochs={EPOCHS}", "--data.train=train.conllu", *resume])


def machines(resume: list[str]) -> None:
    """Cross-validate machines, and fit one."""
    svm.main(["tune", "--rows_at_most=150", "--folds=3", "--Cs=[0.1, 1]"])
    svm.main(["fit", "--tol=0.01"])


def boosted(resume: list[str]) -> None:
    """Cross-validate ensembles, and fit one."""
    ensembles.PERIOD = 0.0
    boost.main(["tune", "--leaves=[2, 4]", "--rounds=5"])
    boost.main(["fit", "--rounds=600", "--leaves=4"])


def handwriting() -> dict[str, np.ndarray]:
    """Sixty words of four letters, in ten folds."""
    draw = np.random.default_rng(0)
    pictures = draw.random((4, 12)) < 0.5
    lengths = draw.integers(1, 5, 60)
    label = draw.integers(4, size=lengths.sum())
    bits = pictures[label] ^ (draw.random((len(label), 12)) < 0.05)
    bits[:, 0] = True
    word = np.repeat(np.arange(60), lengths)
    packed = np.packbits(bits, axis=1)
    return {
        "images_packed": packed,
        "image_shape": np.array((4, 3)),
        "letter": label,
        "word_id": word,
        "fold": word % 10,
    }


def read(resume: list[str]) -> None:
    """Train readers of words on a few folds, and one to keep."""
    np.savez("letters.npz", **handwriting())
    ocr.main(["run", "--methods=[m3n-linear, flat-linear]", "--folds=[0, 1, 2]", "--output=runs/ocr_folds"])
    ocr.main(["fit", "--settings={C: 1.0, s: 2.0}"])


Recipe = Callable[[list[str]], None]
RECIPES: dict[str, Recipe] = {
    "classify": classified, "tag": tagged, "svm": machines, "boost": boosted, "ocr": read,
}  # fmt: skip


def started(recipe: str, folder: Path) -> int:
    """The process that trains in a folder, going on where another stopped."""
    folder.mkdir(exist_ok=True)
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.chdir(folder)
        with (folder / "log").open("a") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            last = Path(FOLDER, "last.ckpt")
            RECIPES[recipe]([f"--ckpt_path={last}"] if last.is_file() else ["--trainer.logger.version=0"])
        status = 0
    finally:
        os._exit(status)


def kept(folder: Path) -> dict[str, object]:
    """What a training left."""
    left: dict[str, object] = {
        f"{path.name} {name}": value
        for path in folder.glob(f"{FOLDER}/*.ckpt")
        for name, value in torch.load(path, weights_only=True)["state_dict"].items()
    }
    for path in folder.glob("runs/*/*.pt"):
        weights = torch.load(path, weights_only=True)
        left |= {f"{path.parent.name} {name}": value for name, value in weights.get("scorer", weights).items()}
    for path in [*folder.glob("runs/*_tune/*.json"), *folder.glob("runs/ocr_folds/*.json")]:
        left[f"{path.parent.name} {path.name}"] = untimed(json.loads(path.read_text()))
    return left


def untimed(facts: Any) -> Any:
    """What was kept, but for how long it took."""
    if not isinstance(facts, dict):
        return facts
    return {name: untimed(value) for name, value in facts.items() if not name.endswith("seconds")}


def same(left: dict[str, object], right: dict[str, object]) -> bool:
    """Whether two trainings left the same, to the last bit."""

    def equal(a: object, b: object) -> bool:
        return torch.equal(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a == b

    return bool(left) and left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)


def trial(recipe: str, kills: int, folder: Path, seed: int = 0) -> list[float]:
    """The moments, as fractions of a whole training, at which a kill changed what was left in the end."""
    draw, whole = random.Random(seed), folder / f"{recipe}_whole"
    start = time.perf_counter()
    assert os.waitpid(started(recipe, whole), 0)[1] == 0, (whole / "log").read_text()
    seconds, expected, bad = time.perf_counter() - start, kept(whole), []
    for i in range(kills):
        place, moment = folder / f"{recipe}_{i}", (i + draw.random()) / kills
        child = started(recipe, place)
        time.sleep(moment * seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert os.waitpid(started(recipe, place), 0)[1] == 0, (place / "log").read_text()
        if not same(expected, kept(place)):
            bad.append(moment)
    return bad


def main() -> int:
    """Try every recipe, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for recipe in asked.recipes:
            bad = trial(recipe, asked.kills, Path(folder), asked.seed)
            failed += len(bad)
            print(f"{recipe}: {asked.kills} kills, {len(bad)} changed the weights {bad or ''}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
