"""Press Ctrl-C at random moments of each recipe, from its first import on: it must end, and say so in one line.

``python -m tests.recipes.interrupting --times 20`` starts real processes, each in a folder of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.recipes.resuming import QUIET, handwriting, treebank

SMALL = ["--trainer.max_epochs=3", *QUIET]
TABLES = ["--path=.", "--output=runs/tables"]
RECIPES = {
    "classify": ["classify", "fit", *SMALL],
    "tag": ["tag", "fit", *SMALL, "--model.hidden=8", "--model.layers=1", "--data.train=train.conllu"],
    "svm": ["svm", "fit"],
    "gram": ["svm", "fit", "--path=large.npz", "--gamma=0.1", "--output=runs/gram"],
    "tune": ["svm", "tune", "--Cs=[1, 10]"],
    "boost": ["boost", "fit", "--rounds=50"],
    "forest": ["boost", "fit", "--model=forest", "--trees=20"],
    "ocr": ["ocr", "run", "--path=letters.npz", "--output=runs/ocr"],
    "report": ["report", "runs/svm"],
    "tables": ["tables", "run", "--tables=[table2]", "--sets=[glass]", "--codes=[dense]", "--rounds=3", *TABLES],
    "demo": ["demo", "regions"],
}
START = 0.15
"""Seconds until Python itself has started; before, there is no program that could answer."""
SAID = re.compile(r"^(stopped|ended from the keyboard|.*: this is the best so far)")


def files(folder: Path) -> None:
    """What the recipes read."""
    treebank(folder / "train.conllu")
    np.savez(folder / "letters.npz", **handwriting())
    draw = np.random.default_rng(0)
    np.savez(folder / "glass.npz", X=draw.normal(size=(60, 4)), y=np.arange(60) % 6)
    np.savez(folder / "large.npz", X=draw.normal(size=(5000, 20)), y=draw.integers(5, size=5000))


def outcome(options: list[str], folder: Path, moment: float | None) -> tuple[float, str]:
    """The seconds that a recipe took, and what was wrong with how it ended; nothing where all is well."""
    checkout = str(Path(__file__).parents[2])
    name, *rest = options
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", f"recipes.{name}", *rest], cwd=folder, env=os.environ | {"PYTHONPATH": checkout},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        if moment is None:
            text = child.communicate(timeout=900)[0]
            return time.perf_counter() - start, "" if child.returncode == 0 else text
        try:
            text = child.communicate(timeout=moment)[0]  # it ended before, as on a machine that has less to do by now
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            text = child.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        return time.perf_counter() - start, f"went on for a minute: {child.communicate()[0][-500:]}"
    lines = [line for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    noise = [line for line in lines if re.search("Traceback|Error|Exception|^ +File ", line)]
    over = child.returncode in (0, -signal.SIGINT) and bool(lines)  # the interpreter's own end needs no word
    well = over or (SAID.match(last) and sum(bool(SAID.match(line)) for line in lines) == 1)
    return (
        time.perf_counter() - start,
        "" if well and not noise else f"rc {child.returncode}: {text[-700:] or 'silence'}",
    )


def main() -> int:
    """Try every recipe, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    asked = parser.parse_args()
    draw, failed = random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files(folder)
        if "report" in asked.recipes:
            outcome(RECIPES["svm"], folder, None)  # which it is of
        for recipe in asked.recipes:
            seconds, wrong = outcome(RECIPES[recipe], folder, None)
            assert not wrong, f"{recipe}: {wrong}"
            bad = []
            for i in range(asked.times):
                moment = START + (i + draw.random()) / asked.times * (seconds - START)
                wrong = outcome(RECIPES[recipe], folder, moment)[1]
                bad += [f"\n  after {moment:.2f} s: {wrong}"] if wrong else []
            failed += len(bad)
            print(f"{recipe}: {asked.times} interrupts in {seconds:.1f} s, {len(bad)} badly{''.join(bad)}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
