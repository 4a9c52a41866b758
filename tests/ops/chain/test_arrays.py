"""What the recursions in NumPy are made of, and the recursions of torch that other devices run."""

import sys

import numpy as np
import pytest
import torch

from torch_multiclass.ops.chain import Chain, masks, maxplus
from torch_multiclass.ops.chain.arrays import least

INF = np.inf


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 96, 100])
def test_the_least_of_each_column(rows):
    values = np.random.default_rng(rows).standard_normal((rows, 3))
    assert (least(values) == values.min(0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("counts", [[4, 4], [3, 2, 1], [64, 64, 64], [85, 70, 33, 1], [16, 16], [21, 12, 5]])
@pytest.mark.parametrize("k", [1, 2, 17, 50, 100])
def test_max_products_of_every_layout(k, counts, dtype):
    draw = np.random.default_rng(k)
    transitions = draw.standard_normal((k, k)).astype(dtype)
    transitions[draw.random((k, k)) < 0.2] = -INF
    step = maxplus.MaxProduct(transitions, np.array(counts))
    values = draw.standard_normal((counts[0], k)).astype(dtype)
    block = step.block(values.copy())
    for count in counts:
        found = step.rows(step(block, count), count)
        assert (found == (values[:count, :, None] + transitions).max(1)).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_masks_are_counted(share):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        mask = torch.rand(4, 5, generator=generator) < share
        if seed % 2:
            mask = mask.sort(1, descending=True).values
        counts, whole, left = masks.mask_lengths(mask)
        assert torch.equal(counts, mask.sum(1))
        assert whole == bool(mask.all())
        assert left == torch.equal(mask, torch.arange(5) < mask.sum(1)[:, None])
        labels = torch.randint(0, 3, (4, 5), generator=generator)
        assert torch.equal(masks.mask_labels(mask, labels, 3), labels * mask)
        if bool(mask.any()):
            assert masks.mask_labels(mask, torch.where(mask, -100, labels), 3) is None
            assert masks.mask_labels(mask, torch.where(mask, 3, labels), 3) is None


@pytest.mark.parametrize("own_ends", [False, True])
@pytest.mark.parametrize("size", [(5, 7, 4), (40, 9, 20), (3, 130, 3), (2, 1, 2), (17, 30, 24)])
def test_viterbi_of_other_devices_is_that_of_the_cpu(by_torch, size, own_ends, monkeypatch):
    viterbi = sys.modules["torch_multiclass.ops.chain.viterbi"]
    batch, steps, k = size
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        ends = (2, batch, k) if own_ends else (2, k)
        parts = [torch.randn(*shape, generator=generator).double() for shape in (size, (k, k), ends)]
        if seed % 2:  # ties, and what is forbidden
            parts = [part.round() for part in parts]
            parts[1][torch.rand(k, k, generator=generator) < 0.3] = -INF
        lengths = torch.randint(0, steps + 1, (batch,), generator=generator) if seed % 3 else None
        record = Chain(parts[0], parts[1], *parts[2], lengths)
        labels, top = viterbi.max_path(record)
        with monkeypatch.context() as patch:
            patch.setattr(maxplus, "takes", lambda chain: False)
            wanted, best = viterbi.max_path(record)
        legal = best != -INF
        assert torch.equal(top == -INF, best == -INF)
        assert torch.equal(labels[legal], wanted[legal])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_meet_where_their_values_differ_by_a_constant(dtype):
    left = np.array([[3.0, -7.0, -np.inf], [1.0, 2.0, 4.0]], dtype)
    noise = 4 * np.finfo(dtype).eps * np.array([[1, -1, 0], [-1, 1, 1]], dtype)
    with np.errstate(invalid="ignore"):
        assert maxplus.agreed(left + 8, left)
        assert maxplus.agreed(left + noise, left)
        assert not maxplus.agreed(left + 1e4 * noise, left)
        assert not maxplus.agreed(np.where(np.isfinite(left), left, 0), left)
        assert maxplus.agreed(np.full((1, 2), -np.inf), np.full((1, 2), -np.inf))


def test_labels_that_rounding_cannot_tell_apart():
    scores = np.array([[1.0, 0.5, 0.0], [1.0, 1.0, -np.inf], [2.0, 1.9, 1.0], [-np.inf, 0.0, 3.0]])
    assert maxplus.rivalled(scores, 0.0).tolist() == [1]
    assert maxplus.rivalled(scores, 0.2).tolist() == [1, 2]
    assert maxplus.rivalled(scores, 0.5).tolist() == [0, 1, 2]
    assert maxplus.rivalled(scores[:, :1], 0.5).tolist() == []
    assert maxplus.top_of(np.array([[1.0, -5.0], [-np.inf, np.inf]])) == 5.0
