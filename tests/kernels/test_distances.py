"""Kernels of the distance: right to the dtype wherever the rows are, to second derivatives, in every dtype."""

import math

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import kernels
from torch_multiclass.kernels import gram
from torch_multiclass.kernels.distances import distances, squared_distances
from torch_multiclass.solvers import DualSVM

RADIAL = [kernels.Gaussian(0.3), kernels.Laplacian(1.0)]


def exact(left, right):
    return (left.double()[:, None] - right.double()[None]).square().sum(-1)


def clusters(rows, dimensions, apart, dtype):
    """Two clusters of width 1, as far from each other and from the origin as asked."""
    x = torch.randn(rows, dimensions, dtype=torch.float64)
    x[::2] += apart
    x[1::2] -= apart
    return x.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dimensions", [1, 3, 16, 17, 64, 300])
@pytest.mark.parametrize("apart", [0.0, 30.0, 1e4, 1e8])
def test_every_distance_is_right_to_the_dtype(dtype, dimensions, apart):
    x = clusters(80, dimensions, apart, dtype)
    got, wanted = squared_distances(x, x).double(), exact(x, x)
    assert float(((got - wanted).abs() / wanted.clamp_min(1e-300)).max()) < 40 * torch.finfo(dtype).eps
    assert bool((got.diagonal() == 0).all())


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("rows", [5, 26, 60])
@pytest.mark.parametrize("dimensions", [5, 40])
def test_the_diagonal_is_one_however_many_rows_there_are(kernel, rows, dimensions):
    x = 30 * torch.randn(rows, dimensions)
    assert bool((kernel(x, x).diagonal() == 1).all())


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("dimensions", [5, 40])
@pytest.mark.parametrize("apart", [0.0, 1e3])
def test_a_row_does_not_depend_on_its_batch(kernel, dimensions, apart):
    points = clusters(50, dimensions, apart, torch.float32)
    scorer = tm.KernelScorer(points, 3, kernel)
    x = clusters(64, dimensions, apart, torch.float32) + 0.01
    together = scorer(x)
    for number in (0, 1, 33):
        torch.testing.assert_close(scorer(x[number : number + 1])[0], together[number], rtol=1e-5, atol=1e-6)
    some = kernel(x, points[:3])
    torch.testing.assert_close(some, kernel(x, points)[:, :3], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", [kernels.Laplacian(0.5), kernels.Gaussian(0.5)], ids=repr)
@pytest.mark.parametrize("apart", [0.0, 1e3])
@pytest.mark.parametrize("dimensions", [5, 30])
def test_a_certificate_of_many_rows_is_true(kernel, apart, dimensions):
    """In float64, as an oracle with the differences written out sees it."""
    x = clusters(90, dimensions, apart, torch.float32)
    y = torch.arange(90) % 3
    scorer, report = DualSVM(10.0, kernel, 1e-7).fit(x, y)
    squared = exact(x, scorer.support)
    own = exact(scorer.support, scorer.support)
    values, matrix = (
        torch.exp(-kernel.gamma * (d if isinstance(kernel, kernels.Gaussian) else d.sqrt())) for d in (squared, own)
    )
    alpha = scorer.coefficients.detach().double()
    losses = tm.functional.crammer_singer_loss(values @ alpha, y, reduction="sum")
    primal = 0.5 * float((alpha * (matrix @ alpha)).sum()) + 10 * float(losses)
    assert report.converged
    assert primal == pytest.approx(report.primal, rel=1e-9)


@pytest.mark.parametrize("function", [squared_distances, distances])
@pytest.mark.parametrize("dimensions", [3, 20])
def test_derivatives_to_the_second(function, dimensions):
    a = torch.randn(3, dimensions, dtype=torch.float64, requires_grad=True)
    b = torch.randn(4, dimensions, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (a, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (a, b))


@pytest.mark.parametrize("dimensions", [3, 20])
@pytest.mark.parametrize("kernel", [kernels.Gaussian(0.3, learn=True), kernels.Laplacian(0.3, learn=True)], ids=repr)
def test_a_row_that_is_a_point_has_finite_derivatives(kernel, dimensions):
    x = torch.randn(30, dimensions, requires_grad=True)
    (first,) = torch.autograd.grad(kernel(x, x.detach()).sum(), x, create_graph=True)
    assert bool(first.isfinite().all())
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert bool(second.isfinite().all())
    assert torch.func.hessian(lambda rows: kernel(rows, rows).sum())(x.detach()[:4]).isfinite().all()


@pytest.mark.parametrize("kernel", [*RADIAL, kernels.Polynomial(2, 0.1), kernels.Linear()], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(kernel, dtype):
    """Computed in float32, and in the rows' dtype again."""
    a, b = torch.randn(30, 5).to(dtype), torch.randn(40, 5).to(dtype)
    block = kernel(a, b)
    assert block.dtype == dtype
    torch.testing.assert_close(
        block.double(), kernel(a.double(), b.double()), rtol=2 * torch.finfo(dtype).eps, atol=1e-2
    )
    assert kernel.diagonal(a).dtype == dtype
    leaf = a.clone().requires_grad_()
    kernel(leaf, b).sum().backward()
    assert bool(leaf.grad.isfinite().all())
    assert gram(kernel, a, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("dimensions", [3, 40])
def test_compile_export_vmap_and_meta(kernel, dimensions):
    a, b = torch.randn(2, 30, dimensions), torch.randn(4, dimensions)
    expected = kernel(a[0], b)
    torch.testing.assert_close(torch.vmap(kernel, in_dims=(0, None))(a, b)[0], expected)
    torch.testing.assert_close(torch.compile(kernel, backend="eager", fullgraph=True)(a[0], b), expected)
    torch.testing.assert_close(torch.export.export(kernel, (a[0], b), strict=False).module()(a[0], b), expected)
    assert kernel(a[0].to("meta"), b.to("meta")).shape == (30, 4)


def test_under_autocast_distances_keep_their_digits():
    x = torch.randn(30, 40) + 100
    expected = RADIAL[0](x, x)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(RADIAL[0](x, x), expected)
        assert tm.KernelScorer(x, 3, RADIAL[0])(x.bfloat16()).shape == (30, 3)


def test_entries_that_are_not_finite():
    x = torch.randn(30, 20)
    x[3], x[4, 0] = 1e30, math.nan
    matrix = RADIAL[0](x, x)
    assert float(matrix[3, 0]) == 0
    assert bool(matrix[4].isnan().all())
    assert bool(matrix[5, 6:].isfinite().all())


def hostile():
    x, y = torch.randn(4, 3), torch.randn(5, 3)
    yield (x, y[:, :2]), r"right: got shape \(5, 2\); accepted is \(B, 3\)"
    yield (x[0], y), r"left: got shape \(3,\); accepted is \(A, D\)"
    yield (x, y[None]), r"right: got shape \(1, 5, 3\)"
    yield (x, y.double()), r"right: is torch\.float64, but left is torch\.float32"
    yield (x.half(), y), r"right: is torch\.float32, but left is torch\.float16"
    yield (x.long(), y), r"left: got dtype torch\.int64"
    yield (x, y > 0), r"right: got dtype torch\.bool"
    yield (x, y.to(torch.complex64)), r"right: got dtype torch\.complex64"
    yield (x, y.to("meta")), "right: is on meta, but left is on cpu"
    yield (x.to_sparse(), y), r"left: got a tensor of layout torch\.sparse_coo"
    yield (torch.nested.nested_tensor([x, y], layout=torch.jagged), y), "left: got a nested tensor"
    yield (x.numpy(), y), "left: got ndarray; accepted is a torch.Tensor"
    yield ([[1.0]], y), "left: got list; accepted is a torch.Tensor"
    yield (None, y), "left: got NoneType"


@pytest.mark.parametrize("kernel", [*RADIAL, kernels.Polynomial(2), kernels.Linear(), kernels.Function(torch.matmul)])
@pytest.mark.parametrize(("rows", "message"), list(hostile()))
def test_rows_that_do_not_fit_are_named(kernel, rows, message):
    for call in (kernel, lambda left, right: gram(kernel, left, right)):
        with pytest.raises((TypeError, ValueError), match=message):
            call(*rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk": 0}, "chunk: got 0"),
        ({"chunk": 2.5}, r"chunk: got 2\.5"),
        ({"limit": -1}, "limit: got -1"),
        ({"limit": "1GB"}, "limit: got '1GB'"),
        ({"dtype": torch.int32}, r"dtype: got torch\.int32"),
        ({"dtype": "float32"}, "dtype: got 'float32'"),
    ],
)
def test_options_of_a_gram_matrix_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        gram(kernels.Linear(), torch.randn(4, 3), **options)


def test_a_gram_matrix_of_whatever_is_a_kernel():
    x = torch.randn(4, 3)
    torch.testing.assert_close(gram("linear", x), x @ x.mT)
    torch.testing.assert_close(gram(lambda a, b: a @ b.mT, x), x @ x.mT)
    with pytest.raises(ValueError, match="kernel: got 'rbf'"):
        gram("rbf", x)
    for empty in (x[:0], x[:, :0]):
        for kernel in RADIAL:
            assert kernel(empty, empty).shape == (len(empty), len(empty))
