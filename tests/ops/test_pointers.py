"""Nothing but what the loops read gets to the native library."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.ops import _native, differences
from torch_multiclass.ops.chain import native
from torch_multiclass.ops.chain.structure import Chain

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
