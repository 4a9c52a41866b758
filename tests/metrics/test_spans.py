"""Spans of every scheme, lenient and strict, and their averages, against answers of seqeval 1.2.2."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.processes import available, in_two_processes
from torch_multiclass.metrics import SpanF1
from torch_multiclass.tags import SCHEMES

CASES = json.loads((Path(__file__).parents[1] / "references" / "seqeval.json").read_text())
"""Random sentences; precision, recall and F1 of the micro, macro and weighted averages by seqeval, where a division by
nothing is 0 (also the macro average over no type, NaN there); of BILOU, whose letters its lenient mode does not know,
strict alone."""


def padded(rows, names):
    out = torch.full((len(rows), max(map(len, rows))), -100)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor([names.index(tag) for tag in row])
    return out


def of_case(case, **options):
    gold, pred = ([row.split() for row in case[which].split(" | ")] for which in ("gold", "pred"))
    names = sorted({"O"} | {tag for row in gold + pred for tag in row})
    metric = SpanF1(names, **options)
    metric.update(padded(pred, names), padded(gold, names))
    return metric, gold, pred


@pytest.mark.parametrize("strict", [False, True])
def test_every_average_is_that_of_seqeval(strict):
    for case in CASES:
        answers = case["strict" if strict else "lenient"]
        if answers is None:
            continue
        options = {"scheme": case["scheme"], "strict": True} if strict else {}
        metric, gold, pred = of_case(case, **options)
        for (average, row), expected in zip(metric.averages().items(), answers, strict=True):
            assert [row["precision"], row["recall"], row["f1"]] == pytest.approx(expected, abs=1e-9), (case, average)
            metric.average, metric._computed = average, None
            assert float(metric.compute()) == pytest.approx(expected[2], abs=1e-9)
        found = [[set(tm.tag_spans(row, **options)) for row in rows] for rows in (gold, pred)]
        assert sum(map(len, found[0])) == int(metric.gold.sum())
        assert sum(map(len, found[1])) == int(metric.predicted.sum())
        assert sum(len(g & p) for g, p in zip(*found, strict=True)) == int(metric.correct.sum())


def test_one_number_for_each_type():
    metric, _, _ = of_case(CASES[2], average=None)
    assert metric.compute().tolist() == [row["f1"] for row in metric.by_type().values()]


def test_nothing_is_zero():
    for average in ("micro", "macro", "weighted"):
        metric = SpanF1(["O", "B-x"], average=average)
        metric.update(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long))
        assert metric.compute() == 0
        assert set(metric.averages()) == {"micro", "macro", "weighted"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sentences_and_ignored_positions_do_not_touch(scheme):
    letters = SCHEMES[scheme].letters
    names = ["O", *(f"{letter}-x" for letter in letters)]
    rng = random.Random(0)
    for strict in (False, True):
        rows = [[rng.choice(names) for _ in range(rng.randrange(7))] for _ in range(50)]
        metric = SpanF1(names, scheme=scheme, strict=strict)
        whole = padded(rows, names)
        metric.update(whole, whole)
        count = sum(len(tm.tag_spans(row, scheme, strict=strict)) for row in rows)
        assert int(metric.gold.sum()) == int(metric.correct.sum()) == count
        assert count > 10
        holes = torch.rand(whole.shape, generator=torch.Generator().manual_seed(1)) < 0.3
        kept = [
            [tag for tag, hole in zip(row, gone, strict=False) if not hole]
            for row, gone in zip(rows, holes.tolist(), strict=True)
        ]
        metric = SpanF1(names, scheme=scheme, strict=strict)
        metric.update(whole, torch.where(holes, -100, whole))
        assert int(metric.gold.sum()) == sum(len(tm.tag_spans(row, scheme, strict=strict)) for row in kept)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="scheme: got None with strict=True; accepted there are 'BIO'"):
        SpanF1(["O", "B-x"], strict=True)
    with pytest.raises(ValueError, match="average: got 'mean'; accepted are 'micro', 'macro', 'weighted' and None"):
        SpanF1(["O", "B-x"], average="mean")
    with pytest.raises(ValueError, match="tags: 'S-x' is not a BIO tag"):
        SpanF1(["O", "S-x"], scheme="BIO")
    with pytest.raises(TypeError, match="strict: got"):
        SpanF1(["O", "B-x"], scheme="BIO", strict=1)


def metrics_of(rows):
    names = ["O", "B-x", "I-x", "B-y", "I-y", "B-z"]
    g = torch.Generator().manual_seed(0)
    gold = torch.randint(6, (30, 7), generator=g)
    pred = torch.where(torch.rand(30, 7, generator=g) < 0.7, gold, torch.randint(6, (30, 7), generator=g))
    found = []
    for average in ("micro", "macro", "weighted", None):
        for options in ({}, {"scheme": "BIO", "strict": True}):
            metric = SpanF1(names, average=average, **options)
            metric.update(pred[rows], gold[rows])
            found.append(metric.compute().view(-1))
    return torch.cat(found)


def on_a_shard(rank):
    return metrics_of([slice(0, 4), slice(4, 30)][rank])


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs gloo")
def test_two_processes_with_uneven_shards(tmp_path):
    for measured in in_two_processes(on_a_shard, tmp_path):
        torch.testing.assert_close(measured, metrics_of(slice(0, 30)), atol=1e-12, rtol=0)


def test_an_array_without_dimensions_is_no_sequence():
    for call in (tm.tag_spans, lambda given: tm.spans_to_tags(given, 3)):
        with pytest.raises(TypeError, match=r"^(tags|spans): got array"):
            call(np.array("B-x"))
