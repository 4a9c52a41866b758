"""Semi-Markov segments against enumeration of tags, and against the chain where no segment is longer than 1."""

import pytest
import torch

from tests.ops.structures import INF, THOROUGH, RecordContract, forbid, lengths_of
from tests.references.structures import enumerate_segments
from torch_multiclass.ops import chain as chains
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.segments import Segments


class TestSegments(RecordContract):
    def draw(self, g, *, dtype=torch.float64):
        batch, steps, most, k = (
            int(torch.randint(low, high, (), generator=g)) for low, high in [(1, 4), (1, 6), (1, 5), (1, 3)]
        )
        longest = torch.randint(1, most + 1, (k,), generator=g).tolist()
        longest[0] = most
        shapes = [(batch, steps, most, k), (k, k), (k,), (batch, k)]
        parts = [forbid(g, torch.randn(s, generator=g, dtype=dtype)) for s in shapes]
        return Segments(*parts, lengths_of(g, batch, steps), tuple(longest))

    def leaves(self, record):
        return list(record[:4])

    def rebuild(self, record, leaves):
        return Segments(*leaves, record.lengths, record.longest)

    def rows(self, record):
        scores, transitions, start, end, _, longest = record
        kept = record.inside()
        return [enumerate_segments(scores[b], transitions, start, end[b], kept[b], longest) for b in range(len(scores))]

    def extended(self, record, extra, junk):
        scores = record.scores
        scores = torch.cat([scores, scores.new_full((len(scores), extra, *scores.shape[2:]), junk)], 1)
        begun = torch.arange(scores.shape[2]) <= torch.arange(scores.shape[1])[:, None]
        scores = torch.where(begun[..., None], scores, junk)  # segments that begin before the first position
        return record._replace(scores=scores, lengths=record.inside().sum(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ties", [False, True])
def test_segments_of_length_one_are_the_chain(dtype, ties):
    for seed in range(60 if THOROUGH else 12):
        g = torch.Generator().manual_seed(seed)
        batch, steps, k = 4, 1 + seed % 9, 1 + seed % 5
        parts = [torch.randn(s, generator=g, dtype=dtype) for s in [(batch, steps, k), (k, k), (k,), (k,)]]
        parts = [(2 * p).round() / 2 if ties else p for p in parts]
        chain = Chain(*parts, torch.randint(0, steps + 1, (batch,), generator=g) if seed % 2 else None)
        record = Segments(chain.emissions[:, :, None], *chain[1:], (1,) * k)
        assert torch.equal(record.best_labels(), chains.best_labels(chain))
        torch.testing.assert_close(record.log_partition(), chains.log_partition(chain))
        torch.testing.assert_close(record.marginals(), chains.marginals(chain))


def test_what_is_no_segmentation_is_forbidden():
    record = Segments(torch.zeros(1, 4, 3, 2), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2), None, (3, 2))
    labels = [[0, 2, 2, 1], [0, 2, 2, 2], [2, 0, 0, 0], [0, 3, 0, 0], [1, 3, 3, 0], [1, 3, 1, 3], [0, 1, 2, 0]]
    scores = record.terms(torch.tensor([labels])).sum(2)[0]
    assert scores.tolist() == [0, -INF, -INF, -INF, -INF, 0, -INF]


def test_memory_grows_with_the_positions_alone():
    """The tape of a long sequence is that of a short one, so many times over."""

    def saved(steps):
        parts = [torch.randn(s, dtype=torch.float64) for s in [(1, steps, 3, 2), (2, 2), (2,), (2,)]]
        total = 0

        def pack(x):
            nonlocal total
            total += x.numel()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            Segments(*(p.requires_grad_() for p in parts), None, (3, 3)).log_partition()
        return total

    assert saved(200) < 2.2 * saved(100)
