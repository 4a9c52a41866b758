"""Sparse rows against the same rows written out."""

import pytest
import scipy.sparse
import torch

from torch_multiclass.kernels import Gaussian
from torch_multiclass.ops.sparse_rows import as_csr, take_rows, transposed
from torch_multiclass.solvers import BinaryLogistic, DualSVM

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


def problem(rows=60, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, 30, generator=generator, dtype=dtype)
    x *= torch.rand(rows, 30, generator=generator) < 0.1
    x[:, :3] += torch.eye(3, dtype=dtype)[y]
    x[5] = 0
    return x, y


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"loss": "weston_watkins"}, {"C": 100.0}, {"p": 1.5}])
@pytest.mark.parametrize(
    "sparse", [torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse, lambda x: scipy.sparse.coo_matrix(x.numpy())]
)
def test_the_machine_of_the_dense_rows(options, sparse):
    x, y = problem()
    own = DualSVM(tol=1e-6, **options).fit(x, y)
    scorer, report = DualSVM(tol=1e-6, **options).fit(sparse(x), y)
    assert report.converged
    assert abs(report.primal - own.report.primal) <= 2e-6 * max(1, report.primal)
    torch.testing.assert_close(scorer(x), own.scorer(x).to(scorer.weight.dtype), rtol=0, atol=5e-3)
    torch.testing.assert_close(scorer(as_csr(sparse(x))), scorer(x))


def test_left_out_rows_and_other_learners():
    x, y = problem()
    asked = y.clone()
    asked[::5] = -100
    a, b = (DualSVM(tol=1e-6).fit(rows, asked).report.primal for rows in (x, x.to_sparse_csr()))
    assert abs(a - b) <= 2e-6 * max(1, a)
    a, b = (BinaryLogistic(tol=1e-6).fit(rows, (y == 0).long()).report.primal for rows in (x, x.to_sparse_csr()))
    assert abs(a - b) <= 2e-6 * max(1, a)


@pytest.mark.parametrize("rows", [60, 300])
def test_the_length_of_rows_is_that_of_the_first(rows):
    x, y = problem(rows)
    solver = DualSVM()
    found = solver.squared_lengths(solver.problem(x.to_sparse_csr(), y))
    assert float(found.mean()) == pytest.approx(float(x[:256].square().sum(1).mean()))


def test_rows_and_transposes():
    x, _ = problem()
    matrix, rows = x.to_sparse_csr(), torch.tensor([7, 5, 0, 59])
    assert torch.equal(take_rows(matrix, rows).to_dense(), x[rows])
    assert torch.equal(take_rows(matrix, rows[:0]).to_dense(), x[:0])
    assert torch.equal(transposed(matrix).to_dense(), x.mT)


def test_what_takes_no_sparse_rows_says_so():
    x, y = problem()
    with pytest.raises(ValueError, match="sparse with kernel"):
        DualSVM(kernel=Gaussian(0.1)).fit(x.to_sparse_csr(), y)
    with pytest.raises(ValueError, match="landmarks"):
        DualSVM(landmarks=5).fit(x.to_sparse_csr(), y)
    x[3, 3] = torch.inf
    with pytest.raises(ValueError, match="not finite"):
        DualSVM().fit(x.to_sparse_csr(), y)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_features_that_are_no_matrix():
    nested = torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(1, 2)], layout=torch.jagged)
    for features in (torch.zeros(0, 0, 0).to_sparse(), torch.zeros(2, 3, 4).to_sparse(), nested):
        with pytest.raises((TypeError, ValueError), match="features: "):
            DualSVM().fit(features, torch.tensor([0, 1]))
