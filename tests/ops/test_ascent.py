"""The library's row-wise ascent against torch, a row at a time, and against what a row's step must do."""

import pytest
import torch

from torch_multiclass.ops import _native
from torch_multiclass.ops.ascent import RowAscent, loops_for
from torch_multiclass.ops.differences import squared_differences
from torch_multiclass.solvers.space import LinearSpace
from torch_multiclass.solvers.svm.ascent import _Blocks
from torch_multiclass.solvers.svm.duals import BinaryHinge, CrammerSinger, WestonWatkins

pytestmark = pytest.mark.skipif(_native.library() is None, reason=_native.backends()["native"])

CLOSE = {torch.float32: 1e-3, torch.float64: 1e-10}


def rows(kind, classes, dtype, count=40, features=21, zeros=0.0, costs=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, features, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(count, features, generator=generator) >= zeros)
    y = torch.randint(classes, (count,), generator=generator)
    upper = (torch.rand(count, 1, generator=generator, dtype=torch.float64) + 0.1).to(dtype)
    cost = 3 * torch.rand(count, classes, generator=generator, dtype=torch.float64)
    cost = cost.scatter(1, y[:, None], 0.0).to(dtype) if costs else None
    if kind is BinaryHinge:
        return x.to(dtype), BinaryHinge((2 * (y % 2) - 1).to(dtype), upper)
    return x.to(dtype), kind(y, classes, upper, cost)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("kind", "classes", "costs"),
    [
        *(
            (kind, classes, costs)
            for kind in (CrammerSinger, WestonWatkins)
            for classes in (3, 17, 150)
            for costs in (False, True)
        ),
        (BinaryHinge, 2, False),
    ],
)
@pytest.mark.parametrize("kept", ["dense", "sparse", "gram"])
class TestASweep:
    def both(self, kind, classes, costs, kept, dtype, skip=-1.0, passes=2):
        x, hinge = rows(kind, classes, dtype, zeros=0.8 if kept == "sparse" else 0.0, costs=costs)
        order = torch.cat([torch.randperm(40, generator=torch.Generator().manual_seed(i)) for i in range(passes)])
        space, damp = LinearSpace(x), 0.4
        squares = space.squared_norms.clamp_min(0.5) * damp
        theirs, beta = space.zero(hinge.outputs), hinge.start()
        blocks = _Blocks(space, hinge)
        blocks.size = 1
        expected = blocks.sweep(theirs, beta, order, squares, damp, skip)
        values = x @ x.mT if kept == "gram" else x
        ascent = RowAscent(loops_for(values), hinge.polytopes(), values, kept == "gram")
        assert (ascent.starts is not None) == (kept == "sparse")
        start = torch.zeros(2, 40, hinge.outputs, dtype=dtype) if kept == "gram" else space.zero(hinge.outputs)
        laid, ours = ascent.lay(start), hinge.start().contiguous()
        gap, moved = ascent.sweep(laid, ours, order, squares, damp, skip)
        return hinge, space, (theirs, beta, *expected), (ascent.lift(laid, hinge.outputs), ours, gap, moved)

    def test_is_torch_s_row_by_row(self, kind, classes, costs, kept, dtype):
        _, space, (weight, beta, gap, moved), (own, ours, own_gap, own_moved) = self.both(
            kind, classes, costs, kept, dtype
        )
        close = CLOSE[dtype]
        torch.testing.assert_close(ours, beta, rtol=close, atol=close)
        assert own_gap == pytest.approx(gap, rel=close)
        assert torch.equal(own_moved, moved)
        if kept == "gram":
            torch.testing.assert_close(own[1], space.scores(weight), rtol=close, atol=10 * close)
            torch.testing.assert_close(space.image(own[0]), weight, rtol=close, atol=10 * close)
        else:
            torch.testing.assert_close(own, weight, rtol=close, atol=10 * close)

    def test_beta_is_feasible_and_the_weight_its_image(self, kind, classes, costs, kept, dtype):
        hinge, space, _, (own, ours, _, _) = self.both(kind, classes, costs, kept, dtype)
        torch.testing.assert_close(hinge.project(ours), ours, rtol=1e-5, atol=1e-5)
        image = 0.4 * space.image(hinge.alpha(ours))
        own = space.image(own[0]) if kept == "gram" else own
        torch.testing.assert_close(own, image, rtol=1e-3, atol=1e-3)

    def test_rows_below_the_threshold_stay(self, kind, classes, costs, kept, dtype):
        hinge, _, _, (own, ours, gap, moved) = self.both(kind, classes, costs, kept, dtype, skip=1e9, passes=1)
        assert not bool(moved.any())
        assert torch.equal(ours, hinge.start())
        assert not bool(own.any())
        assert gap == pytest.approx(float(hinge.loss(hinge.margins(torch.zeros_like(ours))).sum()), rel=1e-5)


@pytest.mark.parametrize("kind", [CrammerSinger, WestonWatkins, BinaryHinge])
def test_a_step_leaves_nothing_to_gain_in_its_row(kind):
    x, hinge = rows(kind, 6, torch.float64)
    space = LinearSpace(x)
    ascent = RowAscent(loops_for(x), hinge.polytopes(), x, False)
    laid, beta = ascent.lay(space.zero(hinge.outputs)), hinge.start().contiguous()
    for row in torch.arange(40)[:, None]:
        ascent.sweep(laid, beta, row, space.squared_norms, 1.0, 0.0)
        margins = hinge.margins(space.scores(ascent.lift(laid, hinge.outputs), row), row)
        gap = hinge.loss(margins, row) - (beta[row] * margins).sum(1)
        assert float(gap) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (13, 40, 19), (64, 33, 64)])
def test_squared_differences(shape, dtype):
    left, right, features = shape
    a, b = (1000 + torch.randn(n, features).to(dtype) for n in (left, right))
    expected = (a.double()[:, None] - b.double()).square().sum(2)
    close = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(squared_differences(a, b).double(), expected, rtol=close, atol=0)
    assert squared_differences(torch.zeros(2, 65), torch.zeros(2, 65)) is None
