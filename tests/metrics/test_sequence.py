import random

import pytest
import torch

from tests.processes import available, in_two_processes
from tests.references.sequence import span_counts, spans
from torch_multiclass.metrics import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy

TAGS = {
    "BIO": ["O", "B-a", "I-a", "B-b", "I-b"],
    "BIOES": ["O", "B-a", "I-a", "E-a", "S-a", "B-b", "I-b", "E-b", "S-b"],
    "IOB1 of one type": ["I-x", "B-x", "O"],
}


def batch(tags, seed, holes=False, size=40, longest=9):
    """Ragged random sentences as padded tensors and as lists, the labelled positions only."""
    rng = random.Random(seed)
    preds, target = torch.full((2, size, longest), -100)
    lists = ([], [])
    for i in range(size):
        guess, truth = [], []
        for t in range(rng.randrange(longest + 1)):
            p, g = rng.randrange(len(tags)), rng.randrange(len(tags))
            p = g if rng.random() < 0.6 else p
            preds[i, t] = p
            if holes and rng.random() < 0.2:
                continue
            target[i, t] = g
            guess.append(tags[p])
            truth.append(tags[g])
        lists[0].append(guess)
        lists[1].append(truth)
    return preds, target, *lists


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-a I-a O B-b", [(0, 2, "a"), (3, 4, "b")]),
        ("O I-a I-a O", [(1, 3, "a")]),  # I without B starts a span
        ("I-a I-b", [(0, 1, "a"), (1, 2, "b")]),
        ("B-a I-b", [(0, 1, "a"), (1, 2, "b")]),
        ("I-a I-a B-a", [(0, 2, "a"), (2, 3, "a")]),  # IOB1: B parts neighbours of one type
        ("B-a E-a S-a E-a", [(0, 2, "a"), (2, 3, "a"), (3, 4, "a")]),
        ("B-a", [(0, 1, "a")]),
        ("O O", []),
    ],
)
def test_spans_by_hand(tags, expected):
    tags = tags.split()
    assert spans(tags) == expected
    names = sorted(set(tags) | {"O"})
    row = torch.tensor([[names.index(tag) for tag in tags]])
    metric = SpanF1(names)
    metric.update(row, row)
    assert int(metric.gold.sum()) == int(metric.correct.sum()) == len(expected)
    assert metric.compute() == (1 if expected else 0)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("scheme", TAGS)
def test_span_f1_is_the_shared_tasks(scheme, holes, device):
    tags = TAGS[scheme]
    metric = SpanF1(tags).to(device)
    counts = [0, 0, 0]
    for seed in range(5):
        preds, target, guess, truth = batch(tags, seed, holes)
        metric.update(preds.to(device), target.to(device))
        counts = [a + b for a, b in zip(counts, span_counts(guess, truth), strict=True)]
    assert [int(s.sum()) for s in (metric.correct, metric.predicted, metric.gold)] == counts
    assert float(metric.compute()) == pytest.approx(2 * counts[0] / (counts[1] + counts[2]), abs=1e-12)
    rows = metric.by_type().values()
    assert [sum(row[name] for row in rows) for name in ("predicted", "gold")] == counts[1:]


def test_a_wrong_end_or_type_is_no_match():
    tags = TAGS["BIO"]
    metric = SpanF1(tags)
    metric.update(torch.tensor([[1, 2, 2, 0, 3]]), torch.tensor([[1, 2, 0, 0, 1]]))
    assert (int(metric.correct.sum()), metric.predicted.tolist(), metric.gold.tolist()) == (0, [1, 1], [2, 0])


@pytest.mark.parametrize("holes", [False, True])
def test_accuracies_count(holes, device):
    metrics = token, sentence, unknown = TokenAccuracy(), SentenceAccuracy(), UnknownWordAccuracy()
    for metric in metrics:
        metric.to(device)
    right = total = whole = sentences = new_right = new_total = 0
    for seed in range(4):
        preds, target, guess, truth = batch(TAGS["BIO"], seed, holes, size=15)
        new = (torch.arange(target.numel()) % 3 == 0).view_as(target)
        token.update(preds.to(device), target.to(device))
        sentence.update(preds.to(device), target.to(device))
        unknown.update(preds.to(device), target.to(device), new.to(device))
        for p, g in zip(guess, truth, strict=True):
            right += sum(a == b for a, b in zip(p, g, strict=True))
            total += len(g)
            whole += bool(g) and p == g
            sentences += bool(g)
        for p, g, n in zip(preds.flatten().tolist(), target.flatten().tolist(), new.flatten().tolist(), strict=True):
            new_right += n and g != -100 and p == g
            new_total += n and g != -100
    assert float(token.compute()) == pytest.approx(right / total, abs=1e-12)
    assert float(sentence.compute()) == pytest.approx(whole / sentences, abs=1e-12)
    assert float(unknown.compute()) == pytest.approx(new_right / new_total, abs=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (2, 4)])
def test_nothing_to_count_is_zero(shape):
    nothing = torch.full(shape, -100)
    for metric, more in ((TokenAccuracy(), ()), (SentenceAccuracy(), ()), (UnknownWordAccuracy(), (nothing == 0,))):
        metric.update(nothing, nothing, *more)
        assert metric.compute() == 0
    metric = SpanF1(TAGS["BIO"])
    metric.update(nothing, nothing)
    assert metric.compute() == 0


def test_errors_name_the_argument():
    row = torch.zeros(1, 2, dtype=torch.long)
    with pytest.raises(ValueError, match=r"tags: got 'NOUN'; accepted are 'O'"):
        SpanF1(["O", "NOUN"])
    with pytest.raises(ValueError, match=r"preds: label 7 is outside 0\.\.4 \(5 classes\)"):
        SpanF1(TAGS["BIO"]).update(row + 7, row)
    with pytest.raises(ValueError, match=r"preds: got shape \(1, 2\)"):
        TokenAccuracy().update(row, row[:, :1])
    with pytest.raises(TypeError, match=r"target: got dtype torch.float32"):
        SentenceAccuracy().update(row, row.float())
    with pytest.raises(TypeError, match=r"unknown: got dtype torch.int64"):
        UnknownWordAccuracy().update(row, row, row)


SHARDS = (slice(0, 3), slice(3, 40))


def on_a_shard(rank):
    preds, target, _, _ = batch(TAGS["BIO"], 0)
    metrics = [TokenAccuracy(), SentenceAccuracy(), UnknownWordAccuracy(), SpanF1(TAGS["BIO"])]
    for metric in metrics:
        more = (preds == 1,) if isinstance(metric, UnknownWordAccuracy) else ()
        metric.update(preds[SHARDS[rank]], target[SHARDS[rank]], *(m[SHARDS[rank]] for m in more))
    return torch.stack([metric.compute() for metric in metrics])


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs gloo")
def test_two_processes_with_uneven_shards(tmp_path):
    preds, target, _, _ = batch(TAGS["BIO"], 0)
    whole = [TokenAccuracy(), SentenceAccuracy(), UnknownWordAccuracy(), SpanF1(TAGS["BIO"])]
    for metric in whole:
        metric.update(preds, target, *((preds == 1,) if isinstance(metric, UnknownWordAccuracy) else ()))
    expected = torch.stack([metric.compute() for metric in whole])
    for measured in in_two_processes(on_a_shard, tmp_path):
        torch.testing.assert_close(measured, expected, atol=1e-12, rtol=0)


def test_a_tag_given_twice_is_named():
    with pytest.raises(ValueError, match="tags: 'O' is given twice"):
        SpanF1(["O", "O"])
