"""Trees against enumeration, and against the chain where they are chains."""

import pytest
import torch

from tests.ops.structures import THOROUGH, RecordContract, forbid
from tests.references.structures import enumerate_tree
from torch_multiclass.ops import chain as chains
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.forest import depths, joined
from torch_multiclass.ops.tree import Tree


def draw_parents(g, steps):
    """A random forest whose nodes are in a random order."""
    order = torch.randperm(steps, generator=g).tolist()
    parents = [-1] * steps
    for n in range(1, steps):
        above = int(torch.randint(-1, n, (), generator=g))
        parents[order[n]] = order[above] if above >= 0 else -1
    return parents


class TestTree(RecordContract):
    def draw(self, g, *, dtype=torch.float64):
        batch, steps, k = (int(torch.randint(low, high, (), generator=g)) for low, high in [(1, 4), (1, 6), (1, 4)])
        parents = torch.tensor([draw_parents(g, steps) for _ in range(batch)])
        lead = [(), (1, steps), (batch, steps)][int(torch.randint(0, 3, (), generator=g))]
        mask = torch.rand(batch, steps, generator=g) < 0.7 if torch.rand((), generator=g) < 0.5 else None
        parts = [forbid(g, torch.randn(s, generator=g, dtype=dtype)) for s in [(batch, steps, k), (*lead, k, k)]]
        return Tree(*parts, parents if mask is None else joined(parents, mask), mask)

    def leaves(self, record):
        return list(record[:2])

    def rebuild(self, record, leaves):
        return Tree(*leaves, *record[2:])

    def rows(self, record):
        emissions, transitions, parents, _ = record
        moves = [transitions] * len(parents) if transitions.ndim == 2 else transitions.expand(len(parents), -1, -1, -1)
        return [
            enumerate_tree(emissions[b], moves[b], parents[b].tolist(), record.inside()[b]) for b in range(len(parents))
        ]

    def extended(self, record, extra, junk):
        e, transitions, parents, _ = record
        e = torch.cat([e, e.new_full((len(e), extra, e.shape[2]), junk)], 1)
        if transitions.ndim == 4:
            more = transitions.new_full((len(transitions), extra, *transitions.shape[2:]), junk)
            transitions = torch.cat([transitions, more], 1)
        parents = torch.nn.functional.pad(parents, (0, extra), value=0)
        return Tree(e, transitions, parents, torch.nn.functional.pad(record.inside(), (0, extra)))


def test_masked_nodes_are_taken_out():
    parents = torch.tensor([-1, 0, 1, 2, 1, -1])
    mask = torch.tensor([True, False, False, True, True, True])
    assert joined(parents, mask)[mask].tolist() == [-1, 0, 0, -1]


def test_depths_and_cycles():
    assert depths(torch.tensor([-1, 0, 1, 0, -1, 2])).tolist() == [0, 1, 2, 1, 0, 3]
    assert depths(torch.tensor([-1, 2, 1, 2, 0])).tolist() == [0, -1, -1, -1, 1]
    assert depths(torch.tensor([0])).tolist() == [-1]
    path = torch.arange(-1, 999)
    assert torch.equal(depths(path), torch.arange(1000))
    assert depths(path.roll(0).index_fill(0, torch.tensor([0]), 999)).tolist() == [-1] * 1000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("per_step", [False, True])
def test_parents_in_a_row_make_a_chain(dtype, ties, per_step):
    for seed in range(60 if THOROUGH else 12):
        g = torch.Generator().manual_seed(seed)
        batch, steps, k = 4, 1 + seed % 9, 1 + seed % 5
        shape = (batch, steps, k, k) if per_step else (k, k)
        e, moves = (torch.randn(s, generator=g, dtype=dtype) for s in [(batch, steps, k), shape])
        if ties:
            e, moves = e.round() / 10, moves.round() / 10
        lengths = torch.randint(0, steps + 1, (batch,), generator=g)
        mask = torch.arange(steps) < lengths[:, None]
        chain = Chain.of(e, moves[:, 1:] if per_step else moves, lengths=lengths)
        parents = torch.arange(-1, steps - 1).expand(batch, -1)
        record = Tree(e, moves, parents, mask)
        assert torch.equal(record.best_labels(), chains.best_labels(chain))
        torch.testing.assert_close(record.log_partition(), chains.log_partition(chain), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(record.marginals(), chains.marginals(chain), rtol=1e-5, atol=1e-6)


def test_ties_go_to_the_lowest_last_label_wherever_it_hangs():
    """All 3^6 labellings of a star are as good when its leaves agree with its middle, in pairs."""
    parents = torch.tensor([[2, 2, -1, 2, 3, 0]])
    same = torch.eye(3)
    assert Tree(torch.zeros(1, 6, 3), same, parents, None).best_labels().tolist() == [[0] * 6]
    differ = 1 - torch.eye(2)
    expected = enumerate_tree(torch.zeros(6, 2), differ, parents[0].tolist()).best()[0]
    assert torch.equal(Tree(torch.zeros(1, 6, 2), differ, parents, None).best_labels()[0], expected)
    # Of two labellings of a root and its leaves that differ, that with 0 at the last leaf has 1 at the root.
    star = torch.tensor([[-1, 0, 0], [-1, -1, 0]])
    for moves in (differ, differ.log()):  # the latter forbids what agrees, and all that is left is 0
        assert Tree(torch.zeros(2, 3, 2), moves, star, None).best_labels().tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize("unit", [1.0, 1e-20])
def test_what_rounding_parts_is_a_tie_at_any_scale(unit):
    """Of 0.1 + 0.2 and 0.3 that with the lower last label is the best, of 0.1 + 0.2 and 0.2 the former."""
    away = torch.tensor([[-torch.inf, 0.0], [0.0, -torch.inf]], dtype=torch.float64)
    star = torch.tensor([[-1, 0, 0]])
    for of_root, expected in ((0.3, [1, 0, 0]), (0.2, [0, 1, 1])):
        emissions = torch.tensor([[[0.0, of_root], [0.0, 0.1], [0.0, 0.2]]], dtype=torch.float64)
        assert Tree(unit * emissions, away, star, None).best_labels().tolist() == [expected]
