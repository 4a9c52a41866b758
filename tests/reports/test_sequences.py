"""Reports of label sequences against loops over them."""

import collections

import numpy as np
import pytest
import torch

import torch_multiclass as tm

TAGS = ["O", "B-<x>", "I|x"]


def drawn(rows=40, steps=9, tags=3):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, steps, 4, generator=g)
    y = (x[..., :tags] + torch.randn(rows, steps, tags, generator=g)).argmax(-1)
    lengths = torch.randint(0, steps + 1, (rows,), generator=g)
    mask = torch.arange(steps) < lengths[:, None]
    y = torch.where(torch.rand(rows, steps, generator=g) < 0.1, -100, y)  # some positions are not observed
    return x, y, mask


def head_of(tags=3):
    head = tm.ChainHead(4, tags)
    with torch.no_grad():
        head.scorer.emissions.weight.copy_(torch.eye(tags, 4))
    return head


def by_loop(given, y, mask):
    """Lengths, wrong labels and neighbours, a sequence at a time."""
    lengths, wrong, moves = [], [], collections.Counter()
    for i in range(len(y)):
        kept = [t for t in range(y.shape[1]) if mask[i, t] and y[i, t] != -100]
        if kept:
            lengths.append(len(kept))
            wrong.append(sum(int(given[i, t] != y[i, t]) for t in kept))
        for t in kept:
            if t - 1 in kept:
                moves[tuple(int(v) for v in (y[i, t - 1], y[i, t], given[i, t - 1], given[i, t]))] += 1
    return np.array(lengths), np.array(wrong), moves


def arrow(first, second, names=TAGS):
    return f"{names[first]} → {names[second]}"


def test_numbers():
    x, y, mask = drawn()
    head = head_of()
    found = tm.report(head, (x, y, {"mask": mask}), names=TAGS, batch_size=7).as_dict()
    with torch.no_grad():
        given = head.predict(head(x, mask=mask))
    lengths, wrong, moves = by_loop(given, y, mask)

    assert found["error"]["sequences"]["wrong"] == (wrong > 0).sum()
    assert found["error"]["sequences"]["of"] == len(lengths)
    labels = found["error"]["labels"]
    assert (labels["wrong"], labels["of"]) == (wrong.sum(), lengths.sum())
    share = wrong.sum() / lengths.sum()
    spread = np.sqrt(((wrong - share * lengths) ** 2).sum() * len(wrong) / (len(wrong) - 1)) / lengths.sum()
    assert labels["interval"] == pytest.approx([share - 1.959964 * spread, share + 1.959964 * spread], abs=1e-6)
    assert found["error"]["ignored"] == int((mask & (y == -100)).sum())

    for one in found["sequences"]["transitions"]:
        pair = next(pair for pair in [(a, b) for a in range(3) for b in range(3)] if arrow(*pair) == one["true"])
        assert one["count"] == sum(n for quad, n in moves.items() if quad[:2] == pair)
        assert one["wrong"] == sum(n for quad, n in moves.items() if quad[:2] == pair and quad[2:] != pair)
    confused = found["sequences"]["confused"]
    assert confused[0]["count"] == max(n for quad, n in moves.items() if quad[:2] != quad[2:])
    told = {(one["true"], one["given"]): one["count"] for one in confused}
    expected = {(arrow(*quad[:2]), arrow(*quad[2:])): n for quad, n in moves.items() if quad[:2] != quad[2:]}
    assert told.items() <= expected.items()

    for one in found["sequences"]["lengths"]:
        part = (lengths >= one["from"]) & (lengths <= one["to"])
        assert one["sequences"] == part.sum()
        assert one["label_error"] == pytest.approx(wrong[part].sum() / lengths[part].sum())
        assert one["sequence_error"] == pytest.approx((wrong[part] > 0).mean())
    assert sum(one["sequences"] for one in found["sequences"]["lengths"]) == len(lengths)


def test_the_marginals_are_the_probabilities():
    x, y, mask = drawn()
    head = head_of()
    found = tm.report(head, (x, y, {"mask": mask})).as_dict()["calibration"]
    with torch.no_grad():
        p = head.predict_proba(head(x, mask=mask))[mask & (y != -100)].double()
    true = y[mask & (y != -100)]
    assert found["confidence"] == pytest.approx(float(p.amax(-1).mean()), abs=1e-6)
    assert found["log_loss"] == pytest.approx(float(-p.gather(1, true[:, None]).log().mean()), abs=1e-6)


def test_scores_in_the_place_of_features():
    """As a network gives them that is no head."""
    x, y, mask = drawn()
    head = head_of()
    with torch.no_grad():
        batches = [(head(x[i : i + 9], mask=mask[i : i + 9]), y[i : i + 9]) for i in range(0, 40, 9)]
    found = tm.report(head, batches, names=TAGS)
    whole = tm.report(head, (x, y, {"mask": mask}), names=TAGS)
    one, other = found.as_dict(), whole.as_dict()  # sums of probabilities may round with the size of a batch
    assert one["calibration"].pop("probabilities") == other["calibration"].pop("probabilities")
    curves = [part["calibration"].pop("bins") for part in (one, other)]
    assert len(curves[0]) == len(curves[1])
    for mine, theirs in zip(*curves, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6)
    assert one.pop("calibration") == pytest.approx(other.pop("calibration"), rel=1e-6)
    assert one == other


def test_labels_that_the_head_does_not_know():
    x, y, mask = drawn()
    y[mask & (y == 2)] = torch.where(torch.arange(int((mask & (y == 2)).sum())) % 3 == 0, 3, 2)
    count = int((mask & (y == 3)).sum())
    found = tm.report(head_of(), (x, y, {"mask": mask}), names=[*TAGS, "NEW"])
    assert found.gaps["labels that the head does not know"] == f"NEW ({count}): counted as wrong, and in no margin."
    facts = found.as_dict()
    assert facts["error"]["unseen"] == {"NEW": count}
    assert facts["classes"]["labels"][3]["error"] == 1.0
    assert sum(map(sum, facts["confusion"]["counts"])) == facts["error"]["labels"]["of"]
    with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2 \(3 classes\)"):
        tm.report(head_of(), (x, y, {"mask": mask}))


def test_where_no_labelling_is_possible():
    """A transition that is always forbidden: longer sequences have no label."""
    scorer = tm.ChainScorer(4, 3)
    x, y, mask = drawn()
    with torch.no_grad():
        scorer.chain.transitions.fill_(-torch.inf)
    found = tm.report(scorer, (x, y.clamp(min=0), {"mask": mask}))
    lengths = mask.sum(1)
    count = int(lengths[lengths > 1].sum())
    assert f"{count:,}: every labelling is forbidden" in found.gaps["labels where none is possible"]
    assert any("none" in one["given"] for one in found.as_dict()["sequences"]["confused"])


def test_neighbours_of_a_tree_are_parents():
    g = torch.Generator().manual_seed(0)
    parents = torch.tensor([-1, 0, 0, 1, 1])
    x, y = torch.randn(20, 5, 4, generator=g), torch.randint(3, (20, 5), generator=g)
    head = tm.LabelTreeHead(4, 3)
    found = tm.report(head, (x, y, {"parents": parents}), batch_size=6).as_dict()
    with torch.no_grad():
        given = head.predict(head(x, parents=parents))
    count = collections.Counter(
        (int(y[i, parents[t]]), int(y[i, t])) for i in range(20) for t in range(5) if parents[t] >= 0
    )
    names = ["0", "1", "2"]
    for one in found["sequences"]["transitions"]:
        pair = next(pair for pair in count if arrow(*pair, names) == one["true"])
        assert one["count"] == count[pair]
    assert found["error"]["labels"]["wrong"] == int((given != y).sum())


def test_single_labels_have_no_transition():
    x, y, _ = drawn()
    found = tm.report(head_of(), (x[:, :1], y[:, :1]))
    assert found.gaps["transitions"] == "no two neighbours have labels."
    found.html()
