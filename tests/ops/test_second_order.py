"""Second-order chains against enumeration, and against the chain where there is nothing of second order."""

import pytest
import torch

from tests.ops.structures import THOROUGH, RecordContract, forbid, lengths_of
from tests.references.structures import enumerate_second_order
from torch_multiclass.ops import chain as chains
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.second_order import SecondOrder


class TestSecondOrder(RecordContract):
    def draw(self, g, *, dtype=torch.float64):
        batch, steps, k = (int(torch.randint(low, high, (), generator=g)) for low, high in [(1, 4), (1, 6), (1, 4)])
        per_step = bool(torch.rand((), generator=g) < 0.5)
        lengths = lengths_of(g, batch, steps)
        shape = (batch, steps - 1, k, k) if per_step else (k, k)
        shapes = [(batch, steps, k), shape, (k,), (batch, k)]
        parts = [forbid(g, torch.randn(s, generator=g, dtype=dtype)) for s in shapes]
        return SecondOrder(Chain(*parts, lengths), forbid(g, torch.randn(k, k, k, generator=g, dtype=dtype)))

    def leaves(self, record):
        return [*record.chain[:4], record.second]

    def rebuild(self, record, leaves):
        return SecondOrder(Chain(*leaves[:4], record.chain.lengths), leaves[4])

    def rows(self, record):
        emissions, transitions, start, end, _ = record.chain
        batch = len(emissions)
        kept = record.chain.inside()
        moves = transitions if transitions.ndim == 4 else [transitions] * batch
        return [
            enumerate_second_order(emissions[b], moves[b], record.second, start, end[b], kept[b]) for b in range(batch)
        ]

    def extended(self, record, extra, junk):
        e, transitions, start, end, lengths = record.chain
        e = torch.cat([e, e.new_full((len(e), extra, e.shape[2]), junk)], 1)
        if transitions.ndim == 4:
            more = transitions.new_full((len(e), extra, *transitions.shape[2:]), junk)
            transitions = torch.cat([transitions, more], 1)
        lengths = record.chain.inside().sum(1) if lengths is None else lengths
        return record._replace(chain=Chain(e, transitions, start, end, lengths))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ties", [False, True])
def test_without_a_second_order_it_is_the_chain(dtype, ties):
    for seed in range(60 if THOROUGH else 12):
        g = torch.Generator().manual_seed(seed)
        batch, steps, k = 4, 1 + seed % 9, 1 + seed % 5
        parts = [torch.randn(s, generator=g, dtype=dtype) for s in [(batch, steps, k), (k, k), (k,), (k,)]]
        parts = [(2 * p).round() / 2 if ties else p for p in parts]
        chain = Chain(*parts, torch.randint(0, steps + 1, (batch,), generator=g) if seed % 2 else None)
        record = SecondOrder(chain, torch.zeros(k, k, k, dtype=dtype))
        assert torch.equal(record.best_labels(), chains.best_labels(chain))
        torch.testing.assert_close(record.log_partition(), chains.log_partition(chain))
