"""Machines on Gram matrices: those of the kernel itself."""

import pickle

import pytest
import torch
from sklearn.svm import SVC

import torch_multiclass as tm
from torch_multiclass.kernels import Gaussian, Precomputed
from torch_multiclass.solvers import BinaryLogistic, CodedReduction, DualSVM

KERNEL = Gaussian(0.3)


def problem(rows=60, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, 4, generator=generator, dtype=dtype)
    x[:, :3] += torch.eye(3, dtype=dtype)[y]
    return x, y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_machine_of_the_kernel(dtype, bias):
    x, y = problem(dtype=dtype)
    new = x[:7] + 0.1
    own = DualSVM(kernel=KERNEL, bias=bias, tol=1e-7).fit(x, y)
    scorer, report = DualSVM(kernel="precomputed", bias=bias, tol=1e-7).fit(KERNEL(x, x), y)
    assert report.converged
    assert abs(report.primal - own.report.primal) <= 2e-7 * report.primal
    # whichever float32 cannot take to the tolerance comes back in float64
    alike = {"rtol": 0, "atol": 2e-3, "check_dtype": False}
    torch.testing.assert_close(scorer(KERNEL(new, x)), own.scorer(new), **alike)
    torch.testing.assert_close(scorer.class_norms(), own.scorer.class_norms(), **alike)


def test_left_out_rows_keep_their_columns():
    """Rows without a label or a weight count for nothing; whatever stands at them, too, once fitted."""
    x, y = problem()
    weight = torch.ones(len(y))
    weight[3] = 0
    asked = y.clone()
    asked[::7] = -100
    kept = (asked >= 0) & (weight > 0)
    scorer, report = DualSVM(kernel="precomputed", tol=1e-6).fit(KERNEL(x, x), asked, weight=weight)
    own = DualSVM(kernel=KERNEL, tol=1e-6).fit(x[kept], y[kept])
    assert abs(report.primal - own.report.primal) <= 2e-6 * report.primal
    assert bool(kept[report.support].all())
    spoilt = KERNEL(x, x)
    spoilt[:, ~kept] = torch.nan
    torch.testing.assert_close(scorer(spoilt), own.scorer(x), rtol=0, atol=1e-2)


def test_a_binary_machine_is_libsvms():
    """With the constant feature in the matrix, libsvm without one is not to be had: compared by the primal at its
    solution, whose intercept is held at 0 by a symmetric problem."""
    x, _ = problem()
    both, signs = torch.cat([x, -x]), torch.cat([torch.ones(len(x)), -torch.ones(len(x))]).long()
    matrix = both @ both.mT
    peer = SVC(kernel="precomputed", C=0.5, tol=1e-8).fit(matrix.numpy(), signs.numpy())
    assert abs(peer.intercept_[0]) < 1e-6
    scorer, report = DualSVM(0.5, kernel="precomputed", binary=True, tol=1e-7).fit(matrix, signs)
    scores = torch.from_numpy(peer.decision_function(matrix.numpy()))
    torch.testing.assert_close(scorer(matrix).squeeze(1), scores, rtol=0, atol=1e-3)
    assert report.converged


def test_saved_copied_and_behind_a_code():
    x, y = problem()
    matrix = KERNEL(x, x)
    scorer, _ = DualSVM(kernel="precomputed").fit(matrix, y)
    assert torch.equal(pickle.loads(pickle.dumps(scorer))(matrix), scorer(matrix))
    again = tm.KernelScorer(torch.zeros_like(scorer.support), 3, Precomputed(scorer.kernel.columns * 0), bias=False)
    again.double().load_state_dict(scorer.state_dict())
    assert torch.equal(again(matrix), scorer(matrix))
    coded = CodedReduction(tm.codes.one_vs_all(3), learner=DualSVM(kernel="precomputed", binary=True))
    peer = CodedReduction(tm.codes.one_vs_all(3), learner=DualSVM(kernel=KERNEL, binary=True))
    torch.testing.assert_close(
        coded.fit(matrix, y).scorer(matrix).margins, peer.fit(x, y).scorer(x).margins, rtol=0, atol=5e-2
    )


def test_other_learners_and_paths():
    x, y = problem()
    matrix = KERNEL(x, x)
    own = BinaryLogistic(kernel=KERNEL, tol=1e-6).fit(x, (y == 0).long())
    given = BinaryLogistic(kernel="precomputed", tol=1e-6).fit(matrix, (y == 0).long())
    assert abs(own.report.primal - given.report.primal) <= 1e-5
    fits = list(DualSVM(kernel="precomputed").path(matrix, y, [0.1, 1.0]))
    assert [fit.report.converged for fit in fits] == [True, True]
    warm = DualSVM(kernel="precomputed").fit(matrix, y, warm_start=fits[-1])
    assert warm.report.converged


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda k: k[:, :50], r"accepted is their Gram matrix, \(60, 60\)"),
        (lambda k: torch.cat([k, k], 1), r"accepted is their Gram matrix, \(60, 60\)"),
        (lambda k: k.triu(), "symmetric"),
        (lambda k: -k, "not positive semi-definite"),
    ],
)
def test_no_gram_matrix(spoil, words):
    x, y = problem()
    with pytest.raises(ValueError, match=words):
        DualSVM(kernel="precomputed").fit(spoil(KERNEL(x, x)), y)


def test_no_landmarks():
    with pytest.raises(ValueError, match="landmarks"):
        DualSVM(kernel="precomputed", landmarks=3)


def test_as_many_points_as_columns():
    with pytest.raises(ValueError, match="right"):
        Precomputed(torch.tensor([0, 2]))(torch.zeros(4, 5), torch.zeros(3, 5))
