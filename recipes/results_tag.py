"""Train every tagger of the published table and write the table into the recipes' README.

::

    python -m recipes.results_tag --data FOLDER --jobs 4

``FOLDER`` holds ``pos/en_ewt-{train,dev,test}.conllu.gz`` (English EWT) and ``chunk/wnut17-{train,dev,test}.conllu.gz``
(WNUT-17); without it only the embedded treebank is measured. ``--other NAME=TRAIN,DEV,TEST`` adds a treebank, and of a
single file holds out the ninth and tenth of each ten sentences. A finished run is kept in ``recipes/results`` and not
repeated while its configuration stays the same, so the command can be stopped, started again, and spread over machines.
"""

from __future__ import annotations

if __name__ == "__main__":
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    parser = ArgumentParser("python -m recipes.results_tag", None, __doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of English EWT and WNUT-17")
    parser.add_argument("--other", action="append", default=[], metavar="NAME=FILES", help="another treebank")
    parser.add_argument("--porttinari", metavar="FILE", help="the embedded treebank, if not installed")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at once")
    options = parser.parse_args()

import hashlib
import json
import multiprocessing
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from .console import write_atomically
from .crfsuite import measure
from .data.treebank import Treebank
from .models.tagger import Tagger
from .results import HERE, KEPT, README, put
from .tag import train

TAGGERS = {
    "CRF": "pos_crf",
    "M3N": "pos_m3n",
    "SVMStruct": "pos_svmstruct",
    "structured perceptron": "pos_perceptron",
    "soft-max of each token": "pos_softmax",
}
SPANS = {"CRF, ill-formed spans forbidden": "ner_crf", "CRF, all sequences allowed": "ner_crf_free"}
CRFSUITE = "crfsuite, hand-made features"
SEVERAL = ("CRF", "M3N", "SVMStruct")
"""What is run with three seeds on the embedded treebank."""


@dataclass(frozen=True)
class Run:
    """One number of the table: a data set, a method, and the seed."""

    data: str
    method: str
    seed: int
    files: tuple[tuple[str, str], ...] = ()
    """Names and paths of the files: ``train``, ``dev``, ``test``."""

    @property
    def spans(self) -> bool:
        """Whether spans are measured."""
        return self.data == "WNUT-17"

    @property
    def record(self) -> Path:
        """Where the result is kept; the name changes with all that decides the result."""
        name = {**TAGGERS, **SPANS}.get(self.method)
        decides = CRFSUITE
        if name is not None:
            defaults = f"{signature(Tagger)} {signature(Treebank)}"
            decides = (HERE / "configs" / f"{name}.yaml").read_text(encoding="utf-8") + defaults
        version = hashlib.sha256(decides.encode()).hexdigest()[:12]
        return KEPT / f"{self.data.replace(' ', '_')}-{name or 'crfsuite'}-seed{self.seed}-{version}.json"


def perform(run: Run, threads: int) -> dict[str, Any]:
    """Train and test, keep the result, and return it."""
    torch.set_num_threads(threads)
    if run.method == CRFSUITE:
        result: dict[str, Any] = {**_crfsuite(run), "device": "cpu"}
    else:
        result = _tagger(run)
    write_atomically(run.record, json.dumps(result))
    return result


def _crfsuite(run: Run) -> dict[str, float]:
    treebank = Treebank(**dict(run.files))
    treebank.setup("fit")
    treebank.setup("test")
    column = "MISC:NER" if run.spans else "UPOS"
    return measure(treebank.sentences["train"], treebank.sentences["test"], column, spans=run.spans)


def _tagger(run: Run) -> dict[str, Any]:
    config = {**TAGGERS, **SPANS}[run.method]
    log = "--trainer.logger.init_args."
    cli, seconds = train(
        f"--config={HERE / 'configs' / config}.yaml",
        f"--seed_everything={run.seed}",
        *(f"--data.{part}={path}" for part, path in run.files),
        f"{log}name=results",
        f"{log}version={run.record.stem}",
    )
    metrics = {name: float(value) for name, value in cli.trainer.callback_metrics.items()}
    return {**metrics, "seconds": seconds, "device": str(cli.trainer.strategy.root_device)}


def plan(data: Path | None, others: Sequence[tuple[str, str]], porttinari: str | None = None) -> list[Run]:
    """All runs of the table."""
    files: tuple[tuple[str, str], ...] = (("train", porttinari),) if porttinari else ()
    runs = [
        Run("Porttinari", method, seed, files) for method in TAGGERS for seed in range(3 if method in SEVERAL else 1)
    ]
    runs.append(Run("Porttinari", CRFSUITE, 0, files))
    if data is not None:
        for name, stem, methods in (("English EWT", "pos/en_ewt", TAGGERS), ("WNUT-17", "chunk/wnut17", SPANS)):
            files = tuple((part, str(data / f"{stem}-{part}.conllu.gz")) for part in ("train", "dev", "test"))
            runs += [Run(name, method, 0, files) for method in (*methods, CRFSUITE)]
    for name, path in others:
        files = tuple(zip(("train", "dev", "test"), path.split(","), strict=False))
        runs += [Run(name, method, 0, files) for method in ("CRF", CRFSUITE)]
    return runs


def _percent(values: Sequence[float]) -> str:
    mean = f"{100 * statistics.mean(values):.2f}"
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def table(runs: Sequence[Run]) -> str:
    """One line for each data set and method, the mean and standard deviation where there are several seeds."""
    lines = [
        "| test part of | tagger | seeds | tokens, % | sentences, % | unknown words, % | spans, F1 % | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    done = [run for run in runs if run.record.exists()]
    for data, method in dict.fromkeys((run.data, run.method) for run in done):
        results = [json.loads(run.record.read_text()) for run in done if (run.data, run.method) == (data, method)]
        cells = [
            _percent([result[f"test_{name}"] for result in results]) if f"test_{name}" in results[0] else ""
            for name in ("accuracy", "sentence_accuracy", "unknown_accuracy", "span_f1")
        ]
        seconds = f"{statistics.median(result['seconds'] for result in results):.0f} ({results[0]['device']})"
        lines.append(f"| {' | '.join([data, method, str(len(results)), *cells, seconds])} |")
    return "\n".join(lines)


def main(data: str | None = None, other: Sequence[str] = (), porttinari: str | None = None, jobs: int = 1) -> None:
    """Run what is missing and write the table."""
    folder = None if data is None else Path(data)
    runs = plan(folder, [tuple(one.split("=", 1)) for one in other], porttinari)
    missing = [run for run in runs if not run.record.exists()]
    print(f"{len(runs)} runs, {len(missing)} of them to do", flush=True)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {pool.submit(perform, run, threads): run for run in missing}
        for future in as_completed(futures):
            run, result = futures[future], future.result()
            print(
                f"{run.data}, {run.method}, seed {run.seed}: tokens {result['test_accuracy']:.2%}, "
                f"{result['seconds']:.0f} s",
                flush=True,
            )
    write_atomically(README, put(README.read_text(encoding="utf-8"), "tagging", table(runs)))
    print(f"results written to {README}")


if __name__ == "__main__":
    main(**vars(options))
