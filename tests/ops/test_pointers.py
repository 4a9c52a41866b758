"""Nothing but what the loops read gets to the native library."""

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.ops import _native, differences
from torch_multiclass.ops.chain import native
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.splits.native import address

library = pytest.mark.skipif(_native.library() is None, reason="without the native library")


def test_where_a_tensor_begins():
    numbers = torch.zeros(3, 4)
    assert _native.pointer(None, torch.float32) == 0
    assert _native.pointer(numbers, torch.float32) == numbers.data_ptr()
    assert _native.pointer(numbers[1:], torch.float32) == numbers.data_ptr() + 16


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (torch.zeros(3, 4, dtype=torch.bfloat16), r"torch.bfloat16 \(3, 4\) on cpu; the loops read torch.float32"),
        (torch.zeros(3, 4, dtype=torch.float64), "torch.float64"),
        (torch.zeros(3, 4, dtype=torch.int32), "torch.int32"),  # of the same size
        (torch.zeros(3, 4).mT, "cpu, not contiguous"),
        (torch.zeros(1, 4).expand(3, 4), "cpu, not contiguous"),
        (torch.zeros(3, 4, device="meta"), "on meta"),
    ],
)
def test_nothing_else_is_read(part, words):
    with pytest.raises(TypeError, match=f"native: got .*{words}"):
        _native.pointer(part, torch.float32)


@library
@pytest.mark.parametrize("place", range(4))
def test_parts_of_several_dtypes_never_reach_the_loops(place):
    """What holds them together is the chain's own work; a pass over anything else ends."""
    parts = [torch.zeros(2, 3, 4), torch.zeros(4, 4), torch.zeros(4), torch.zeros(4)]
    loops = native.loops_for(Chain.of(*parts))
    assert loops is not None
    native.Run(loops, Chain.of(*parts), None)
    parts[place] = parts[place].bfloat16()
    with pytest.raises(TypeError, match=r"native: got torch\.bfloat16"):
        native.Run(loops, Chain.of(*parts), None)
    with pytest.raises(TypeError, match=r"native: got torch\.bfloat16"):
        native.Path(loops, Chain.of(*parts))


@library
def test_distances_of_two_dtypes():
    with pytest.raises(TypeError, match=r"native: got torch\.bfloat16"):
        differences.squared_differences(torch.zeros(2, 3), torch.zeros(4, 3).bfloat16())


@library
def test_a_forest_whose_parts_were_moved_apart():
    x, y = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 2
    scorer = tm.solvers.RandomForest(trees=3).fit(x, y).scorer
    before = scorer(x)
    scorer.weights = scorer.weights.double().repeat_interleave(2)[::2]
    with pytest.raises(TypeError, match=r"native: got torch\.float64"):
        scorer(x)
    scorer.weights = scorer.weights.float().repeat_interleave(2)[::2]
    torch.testing.assert_close(scorer(x), before, rtol=0, atol=0)


def test_where_an_array_begins():
    numbers = np.zeros((3, 4))
    assert address(None, np.float64) == 0
    assert address(numbers, np.float64) == numbers.ctypes.data
    assert address(numbers[1:], np.float64) == numbers.ctypes.data + 32
    assert address(numbers[:, :3], np.float64, row=4) == numbers.ctypes.data


@pytest.mark.parametrize(
    ("part", "row", "words"),
    [
        (np.zeros((3, 4), np.float32), None, r"float32 \(3, 4\) .*; the loops read float64, contiguous"),
        (np.zeros((3, 4), np.int64), None, "int64"),  # of the same size
        (np.zeros((3, 4), ">f8"), None, ">f8"),
        (np.zeros((3, 4)).T, None, "contiguous"),
        (np.zeros((3, 4))[:, :3], None, "contiguous"),
        (np.zeros((3, 4)), 8, "in lines of 8"),
    ],
)
def test_no_other_array_is_read(part, row, words):
    with pytest.raises(TypeError, match=f"native: got .*{words}"):
        address(part, np.float64, row)


def test_memory_for_the_loops_is_on_the_cpu():
    with torch.device("meta"):
        made = _native.room(2, 3, dtype=torch.int32)
    assert (made.device.type, made.dtype, made.shape) == ("cpu", torch.int32, (2, 3))


CHAIN = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(15).view(3, 5) % 4
CALLS = {
    "crammer_singer": lambda: tm.functional.crammer_singer_loss(CHAIN[0], LABELS[0]),
    "svmstruct": lambda: tm.functional.svmstruct_loss(CHAIN[0], LABELS[0], cost=COST),
    "crf": lambda: tm.functional.crf_loss(chain(), LABELS),
    "m3n": lambda: tm.functional.m3n_loss(chain(), LABELS),
    "svmstruct of chains": lambda: tm.functional.svmstruct_loss(chain(), LABELS, cost="hamming"),
    "viterbi": lambda: tm.ViterbiDecoder()(chain()),
    "posterior": lambda: tm.PosteriorDecoder()(chain()),
    "marginals": lambda: chain().marginals(),
    "segments": lambda: tm.SegmentScores(CHAIN[:, :, None].expand(3, 5, 2, 4), TRANSITIONS).decode().labels,
}
COST = 1 - torch.eye(4)
TRANSITIONS = CHAIN[0, :4]
MASK = torch.ones(3, 5, dtype=torch.bool)


def chain():
    return tm.ChainScores(CHAIN.clone().requires_grad_(), TRANSITIONS, mask=MASK)


@pytest.mark.parametrize("computed_by", ["library", "torch"])
@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_the_cpu_are_computed_there_whatever_the_default_device(name, computed_by, monkeypatch):
    if computed_by == "torch":
        monkeypatch.setattr(_native, "library", lambda: None)
    expected = CALLS[name]()
    with torch.device("meta"):
        found = CALLS[name]()
        if found.requires_grad:
            found.sum().backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
