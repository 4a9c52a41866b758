"""What rows of a reduction may be like: sparse ones, and those of a Gram matrix."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import kernels
from torch_multiclass.solvers import BinaryLogistic, CodedReduction, DecisionTree, DualSVM, Pegasos, Perceptron

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
CODES = {"all": tm.codes.one_vs_all(3), "one": tm.codes.one_vs_one(3)}
GAUSSIAN = kernels.Gaussian(0.5)


def problem(rows=60):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    x[:, :3] += 2 * torch.eye(3, dtype=torch.float64)[y]
    y[::9] = -100
    return x * (torch.rand(rows, 5, generator=generator) < 0.7), y, 0.5 + torch.rand(rows, generator=generator)


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("bias", [False, True, "free"])
def test_sparse_rows(code, bias):
    x, y, weight = problem()
    for learner in (DualSVM(binary=True, tol=1e-9, bias=bias), BinaryLogistic(tol=1e-11, bias=bias)):
        dense, sparse = (
            CodedReduction(code, learner).fit(rows, y, weight=weight).scorer for rows in (x, x.to_sparse_csr())
        )
        torch.testing.assert_close(dense(x).margins, sparse(x).margins, rtol=0, atol=1e-3)


@pytest.mark.parametrize("learner", [Pegasos(), Perceptron(max_passes=3)], ids=repr)
@pytest.mark.filterwarnings("ignore:Perceptron")
def test_sparse_rows_of_learners_of_mistakes(learner):
    x, y, _ = problem()
    dense, sparse = (CodedReduction(CODES["one"], learner).fit(rows, y).scorer for rows in (x, x.to_sparse_csr()))
    torch.testing.assert_close(dense(x).margins, sparse(x).margins, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "reduction",
    [CodedReduction(CODES["one"], DecisionTree()), CodedReduction(CODES["one"], BinaryLogistic(), call="single")],
    ids=["a tree", "a single call"],
)
def test_sparse_rows_that_are_not_taken(reduction):
    x, y, _ = problem()
    with pytest.raises(TypeError, match=r"features: got a tensor of layout torch\.sparse_csr; accepted are dense"):
        reduction.fit(x.to_sparse_csr(), y)


def test_columns_of_other_sparse_rows_are_not_resumed():
    x, y, _ = problem()
    reduction = CodedReduction(CODES["one"], BinaryLogistic())
    fit = reduction.fit(x.to_sparse_csr(), y)
    assert reduction.fit(x.to_sparse_csr(), y, resume=fit).report.fits.keys() == fit.report.fits.keys()
    with pytest.raises(ValueError, match="resume: the report has columns of other rows"):
        reduction.fit((2 * x).to_sparse_csr(), y, resume=fit)


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", [False, True, "free"])
def test_a_gram_matrix(code, weighted, bias):
    """A column that asks some rows only takes their columns of the matrix too."""
    x, y, weight = problem()
    weight[::5] = 0
    weight = weight if weighted else None
    gram = GAUSSIAN(x, x)
    known, read = (
        CodedReduction(code, DualSVM(binary=True, kernel=kernel, bias=bias, tol=1e-9)).fit(rows, y, weight=weight)
        for kernel, rows in ((GAUSSIAN, x), ("precomputed", gram))
    )
    torch.testing.assert_close(known.scorer(x).margins, read.scorer(gram).margins, rtol=0, atol=1e-3)
    assert not read.report.failed
