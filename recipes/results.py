"""Train every published configuration and write the table of results into the recipes' README.

::

    python -m recipes.results

A finished run is kept in ``recipes/results`` and not repeated while its configuration stays the same, so the command
can be stopped and started again.
"""

from __future__ import annotations

if __name__ == "__main__":
    from argparse import ArgumentParser

    ArgumentParser(usage="python -m recipes.results", description=__doc__.split("\n")[0]).parse_args()

import hashlib
import json
import re
import statistics
from pathlib import Path

import torch

from . import classify
from .console import write_atomically
from .progress import percent

HERE = Path(__file__).parent
README = HERE / "README.md"
KEPT = HERE / "results"
SEEDS = range(5)
DIGITS = {
    "soft-max": "digits_softmax",
    "Crammer–Singer": "digits_crammer_singer",
    "Weston–Watkins": "digits_weston_watkins",
    "M3N with a cost matrix": "digits_m3n",
    "one-versus-all": "digits_one_vs_all",
    "one-versus-one": "digits_one_vs_one",
    "error-correcting": "digits_ecoc",
}


def run(config: Path, seed: int) -> dict[str, float]:
    """The metrics and seconds of one training run, from its record if there is one."""
    version = hashlib.sha256(config.read_bytes()).hexdigest()[:12]
    record = KEPT / f"{config.stem}-seed{seed}-{version}.json"
    if not record.exists():
        cli, seconds = classify.train(config, f"--seed_everything={seed}")
        metrics = {name: float(value) for name, value in cli.trainer.callback_metrics.items()}
        write_atomically(record, json.dumps({**metrics, "seconds": seconds}))
        print(f"{config.stem}, seed {seed}: test error {percent(metrics['test_error'])}, {seconds:.0f} s", flush=True)
    return json.loads(record.read_text())


def digits_table() -> str:
    """The digits: one line a head, mean and standard deviation over the seeds."""
    lines = [
        "| head | configuration | test error, mean of 5 seeds | of each seed |",
        "|---|---|---|---|",
    ]
    for head, name in DIGITS.items():
        runs = [run(HERE / "configs" / f"{name}.yaml", seed) for seed in SEEDS]
        errors = [100 * each["test_error"] for each in runs]
        lines.append(
            f"| {head} | `{name}.yaml` | {statistics.mean(errors):.2f} ± {statistics.stdev(errors):.2f} % "
            f"| {', '.join(f'{error:.2f}' for error in errors)} |"
        )
    return "\n".join(lines)


def put(text: str, name: str, table: str) -> str:
    """The text with the table between its two markers."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{table}\n{end}", text, flags=re.DOTALL)


def main() -> None:
    """Run what is missing and write the tables."""
    torch.set_num_threads(1)  # networks this small gain little from a second, and lose much on a busy machine
    table = digits_table()  # first: the text may be edited meanwhile
    write_atomically(README, put(README.read_text(encoding="utf-8"), "digits", table))
    print(f"results written to {README.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
