"""Scores of trees."""

import pytest
import torch

import torch_multiclass as tm
from tests.ops.test_tree import draw_parents
from tests.references.structures import enumerate_tree
from tests.scores.structures import Numbers, StructureContract
from tests.scores.test_second_order import expanded
from torch_multiclass.ops import tree as tree_ops


class TestTreeScores(StructureContract):
    parts = ("emissions", "transitions")
    exact_slack = False

    def draw(self, seed):
        n = Numbers(seed)
        steps, k = n.whole(1, 6), n.whole(1, 4)
        where, kept = n.positions(steps)
        shared = seed % 3 == 0
        count = 1 if shared else torch.Size(n.batch).numel()
        parents = torch.tensor([draw_parents(n.g, steps) for _ in range(count)])
        parents = parents[0] if shared else parents.view(*n.batch, steps)
        moves = n.scores(*n.batch, steps, k, k) if seed % 2 else n.scores(k, k)
        return tm.TreeScores(n.junk(n.scores(*n.batch, steps, k), kept), moves, parents, **where)

    def rows(self, scores):
        steps, k = scores.emissions.shape[-2:]
        e, parents = expanded(scores.emissions, scores, steps, k), expanded(scores.parents, scores, steps)
        moves = expanded(scores.transitions, scores, *((steps, k, k) if scores.transitions.ndim > 2 else (k, k)))
        kept = self.flat(scores, self.kept(scores))
        return [enumerate_tree(e[b], moves[b], parents[b].tolist(), kept[b]) for b in range(len(e))]

    def test_exact_slack_rescaling_is_refused_by_name(self):
        scores = self.draw(1)
        with pytest.raises(ValueError, match="accepted is exact=False"):
            tm.SVMStructLoss()(scores, self.golds(scores, 1)[1])


def test_parents_in_a_row_are_the_chain():
    for seed in range(10):
        g = torch.Generator().manual_seed(seed)
        e, moves = (torch.randn(s, generator=g) for s in [(8, 12, 5), (5, 5)])
        mask = torch.rand(8, 12, generator=g) < 0.7
        chain = tm.ChainScores(e, moves, mask=mask)
        scores = tm.TreeScores(e, moves, torch.arange(-1, 11), mask=mask)
        assert torch.equal(scores.decode().labels, chain.decode().labels)
        target = torch.randint(5, (8, 12), generator=g)
        for loss in [tm.CRFLoss(), tm.M3NLoss(), tm.StructuredPerceptronLoss()]:
            torch.testing.assert_close(loss(scores, target), loss(chain, target), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        (torch.tensor([-1, 2, 1, 0]), "parents: node 1 hangs on a cycle"),
        (torch.tensor([0, 0, 1, 2]), "parents: node 0 hangs on a cycle"),
        (torch.tensor([-1, 0, 9, 0]), "parents: node 2 has parent 9; accepted are -1, for a root, and 0..3"),
        (torch.tensor([-1, 0, 4, 0]), "parents: node 2 has parent 4; accepted are -1, for a root, and 0..3"),
        (torch.tensor([-2, 0, 0, 0]), "parents: node 0 has parent -2"),
        (torch.tensor([-1, 0]), "parents: got shape"),
        (torch.tensor([-1.0, 0, 0, 0]), "parents: got dtype torch.float32"),
    ],
)
def test_bad_parents(parents, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tm.TreeScores(torch.zeros(2, 4, 3), torch.zeros(3, 3), parents)


@pytest.mark.parametrize("anything", [77, 4, -2])
def test_parents_of_masked_nodes_may_be_anything(anything):
    mask = torch.tensor([True, True, False, False])
    scores = tm.TreeScores(torch.zeros(4, 2), torch.eye(2), torch.tensor([-1, 0, anything, 2]), mask=mask)
    assert scores.decode().labels.tolist() == [0, 0, -100, -100]


def test_many_ties_are_decided_in_few_passes(monkeypatch):
    """Two nodes that tie, among many that do not, cost two passes more rather than one for each node."""
    g = torch.Generator().manual_seed(0)
    e, moves = torch.randn(1, 40, 3, generator=g).double(), torch.zeros(3, 3).double()
    e[0, 7] = e[0, 30] = 5.0
    passes, beliefs = [], tree_ops._beliefs
    monkeypatch.setattr(tree_ops, "_beliefs", lambda *given: passes.append(1) or beliefs(*given))
    parents = torch.tensor([-1, *(max(0, t - 2) for t in range(1, 40))])
    labels = tm.TreeScores(e, moves, parents).decode().labels
    assert torch.equal(labels[0], e[0].argmax(1))
    assert len(passes) <= 6
