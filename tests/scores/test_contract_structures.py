"""Every structure beyond the chain passes the suite of scores."""

import itertools
from unittest import mock

import pytest
import torch

import torch_multiclass as tm
from tests.contracts.scores import LOSSES, MODULES, ScoresContract
from tests.references.structures import enumerate_second_order, enumerate_segments, enumerate_tree

read = tm.MultilabelScores._read_target


class RecordedContract(ScoresContract):
    """Rows are enumerated one at a time, all in one order."""

    def numbers(self, dtype, device):
        g = torch.Generator().manual_seed(0)
        return lambda *shape: torch.randn(shape, generator=g, dtype=torch.float64).to(device, dtype)

    def rows(self, scores):
        raise NotImplementedError

    def enumerated(self, scores):
        rows = self.rows(scores.detach())
        return rows[0].labels, torch.stack([row.scores for row in rows])


class TestSecondOrder(RecordedContract):
    def draw(self, dtype=torch.float64, device="cpu"):
        n = self.numbers(dtype, device)
        return tm.SecondOrderScores(n(2, 4, 3), n(3, 3), n(3, 3, 3), start=n(3), end=n(2, 3))

    def rows(self, s):
        parts = [part.double() for part in (s.emissions, s.transitions, s.trans2, s.start, s.end)]
        return [enumerate_second_order(parts[0][b], *parts[1:4], parts[4][b]) for b in range(len(parts[0]))]


class TestSegments(RecordedContract):
    def draw(self, dtype=torch.float64, device="cpu"):
        n = self.numbers(dtype, device)
        return tm.SegmentScores(n(2, 4, 3, 2), n(2, 2), start=n(2), end=n(2, 2), longest=(1, 3))

    def rows(self, s):
        return [
            enumerate_segments(s.segments[b], s.transitions, s.start, s.end[b], None, s.longest)
            for b in range(len(s.segments))
        ]


class TestTree(RecordedContract):
    exact_slack = False

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", [loss for loss in MODULES if not isinstance(loss, tm.SVMStructLoss)], ids=repr)
    def test_compile(self, loss):
        super().test_compile(loss)

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", [loss for loss in MODULES if not isinstance(loss, tm.SVMStructLoss)], ids=repr)
    def test_export_saved_and_loaded(self, loss):
        super().test_export_saved_and_loaded(loss)

    @pytest.mark.parametrize("missing", [0.0, 0.4])
    @pytest.mark.parametrize("name", [name for name in LOSSES if name != "svmstruct"])
    def test_without_validation_no_value_is_read(self, name, missing):
        super().test_without_validation_no_value_is_read(name, missing)  # the search stops where it is done

    def draw(self, dtype=torch.float64, device="cpu"):
        n = self.numbers(dtype, device)
        return tm.TreeScores(n(2, 5, 3), n(3, 3), torch.tensor([2, 2, -1, 1, -1], device=device))

    def rows(self, s):
        return [enumerate_tree(e, s.transitions, s.parents.tolist()) for e in s.emissions]


class TestMultilabel(RecordedContract):
    def draw(self, dtype=torch.float64, device="cpu"):
        return tm.MultilabelScores(self.numbers(dtype, device)(2, 4))

    def test_marginals(self):
        scores = self.draw()
        labellings, values = self.enumerated(scores)
        holds = torch.einsum("bn,nt->bt", values.softmax(1), (labellings > 0).double())
        self.close(scores.marginals(), torch.stack([1 - holds, holds], -1))
        self.close(scores.probabilities(), holds)

    @pytest.mark.parametrize("name", LOSSES)
    def test_labels_are_checked_once(self, name):
        scores, seen = self.draw(), []
        with mock.patch.object(tm.MultilabelScores, "_read_target", lambda *a: seen.append(a) or read(*a)):
            self.loss(name, scores, self.target(scores))
        assert len(seen) == 1

    def test_bad_targets_are_named(self):
        scores = self.draw()
        target = self.target(scores)
        for verb in (scores.relative_to, scores.labelled, lambda y: tm.functional.crf_loss(scores, y)):
            with pytest.raises(ValueError, match="target: got the entry 0; accepted are -1 and"):
                verb(torch.zeros_like(target))
            with pytest.raises(ValueError, match="target: got shape"):
                verb(target[:1])
            with pytest.raises(ValueError, match="target: is on meta"):
                verb(target.to("meta"))
        for verb in (scores.relative_to, scores.labelled, lambda y: tm.functional.m3n_loss(scores, y)):
            with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
                verb(target.float())
        with pytest.raises(ValueError, match="target: got the entry 2; accepted are mean signs from -1"):
            tm.functional.crf_loss(scores, 2 * target.float().abs())

    @pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
    def test_any_integer_labels(self, dtype):
        super().test_any_integer_labels(dtype)

    def enumerated(self, scores):
        every = torch.tensor([y[::-1] for y in itertools.product((-1, 1), repeat=scores.sites[-1])])
        return every, scores.values.double() @ every.double().t()
