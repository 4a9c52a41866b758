"""The classical tagger to compare with: python-crfsuite on hand-made features."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from torch_multiclass.metrics import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy

from .data.conllu import Column, Sentence
from .data.vocabulary import lowered, shape


def word_features(forms: Sequence[str]) -> list[list[str]]:
    """Word, affixes, shape and cased form of each word, and word, shape and ending of the two on either side."""
    words, shapes = [lowered(form) for form in forms], [shape(form) for form in forms]
    rows = []
    for t, (form, word) in enumerate(zip(forms, words, strict=True)):
        row = ["bias", f"w={word}", f"f={form}", f"s={shapes[t]}"]
        row += [f"p{n}={word[:n]}" for n in (1, 2, 3, 4)] + [f"e{n}={word[-n:]}" for n in (1, 2, 3, 4, 5)]
        for offset in (-2, -1, 1, 2):
            if 0 <= t + offset < len(words):
                near = words[t + offset]
                row += [f"{offset}w={near}", f"{offset}s={shapes[t + offset]}", f"{offset}e={near[-3:]}"]
            else:
                row.append(f"{offset}=none")
        for offset in (-1, 1):
            if 0 <= t + offset < len(words):
                row.append(f"{offset}&={word}|{words[t + offset]}")
        rows.append(row)
    return rows


def measure(
    train: Sequence[Sentence], test: Sequence[Sentence], column: str, *, spans: bool = False
) -> dict[str, float]:
    """Train on some sentences and count on others; the metrics by the names of the recipe, and the seconds."""
    import pycrfsuite

    start = time.perf_counter()
    where = Column.parse(column)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.1, "c2": 0.01, "max_iterations": 100, "feature.possible_transitions": True})
    known, tags = set(), set()
    for sentence in train:
        known.update(map(lowered, sentence.forms))
        gold = sentence.tags(where)
        if gold and None not in gold:
            tags.update(gold)
            trainer.append(word_features(sentence.forms), gold)
    numbers = {tag: i for i, tag in enumerate(sorted(tags | {t for s in test for t in s.tags(where) if t}))}
    metrics = {
        "test_accuracy": TokenAccuracy(),
        "test_sentence_accuracy": SentenceAccuracy(),
        "test_unknown_accuracy": UnknownWordAccuracy(),
    }
    if spans:
        metrics["test_span_f1"] = SpanF1(list(numbers))
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger.open(path)
        for sentence in test:
            if not sentence.words:
                continue
            guess = torch.tensor([numbers[tag] for tag in tagger.tag(word_features(sentence.forms))])
            truth = torch.tensor([-100 if tag is None else numbers[tag] for tag in sentence.tags(where)])
            unknown = torch.tensor([lowered(form) not in known for form in sentence.forms])
            for name, metric in metrics.items():
                metric.update(guess, truth, *([unknown] if name == "test_unknown_accuracy" else []))
        tagger.close()
    measured = {name: float(metric.compute()) for name, metric in metrics.items()}
    return {**measured, "seconds": time.perf_counter() - start}
