"""Kernels and the scorers built on them, against formulas written out and against scikit-learn."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise
from torch import nn

import torch_multiclass as tm
from torch_multiclass import kernels
from torch_multiclass.kernels import check_definite, gram
from torch_multiclass.ops.norms import dual_exponent, group_norm, shrink_group_norm, shrink_group_norm_slope
from torch_multiclass.ops.simplex import project_coupled_box, project_simplex

ALL = [kernels.Linear(), kernels.Polynomial(3, 0.5, 2.0), kernels.Gaussian(0.7), kernels.Laplacian(0.7)]


@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        (kernels.Linear(), pairwise.linear_kernel),
        (kernels.Polynomial(3, 0.5, 2.0), lambda a, b: pairwise.polynomial_kernel(a, b, 3, 0.5, 2.0)),
        (kernels.Gaussian(0.7), lambda a, b: pairwise.rbf_kernel(a, b, 0.7)),
        (kernels.Laplacian(0.7), lambda a, b: np.exp(-0.7 * pairwise.euclidean_distances(a, b))),
    ],
)
def test_against_scikit_learn(kernel, peer, device):
    a, b = torch.randn(7, 4, device=device).double(), torch.randn(5, 4, device=device).double()
    expected = torch.as_tensor(peer(a.cpu().numpy(), b.cpu().numpy())).to(device)
    torch.testing.assert_close(kernel(a, b), expected, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(kernel.diagonal(a), kernel(a, a).diagonal(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_blocks_make_the_gram_matrix_which_is_definite(kernel):
    x = torch.randn(50, 3).double()
    matrix = gram(kernel, x, chunk=7)
    torch.testing.assert_close(matrix, kernel(x, x))
    assert torch.linalg.eigvalsh(matrix)[0] > -1e-9 * matrix.diagonal().amax()
    check_definite(kernel, x)


def test_gaussian_far_from_the_origin_does_not_cancel():
    x = torch.randn(20, 3)
    torch.testing.assert_close(
        kernels.Gaussian(1.0)(x + 1000, x + 1000), kernels.Gaussian(1.0)(x, x), rtol=0, atol=2e-3
    )


def test_a_gram_matrix_that_would_not_fit_is_refused_with_its_size_and_a_proposal():
    x = torch.zeros(1, 2).expand(2_000_000, 2)
    with pytest.raises(MemoryError, match=r"2000000 x 2000000 Gram matrix takes 14901\.2 GiB.*landmarks"):
        gram(kernels.Linear(), x)


def test_a_kernel_that_is_not_definite_is_told():
    x = torch.randn(30, 2)
    with pytest.raises(ValueError, match=r"not positive semi-definite .*eigenvalue -"):
        check_definite(kernels.Function(lambda a, b: -(a @ b.T)), x)
    with pytest.raises(ValueError, match="not symmetric"):
        check_definite(kernels.Function(lambda a, b: a[:, :1] + 0 * b[:, 0]), x)
    with pytest.raises(ValueError, match="not finite"):
        check_definite(kernels.Function(lambda a, b: (a @ b.T).sqrt()), x)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="gamma: got 0"):
        kernels.Gaussian(0)
    with pytest.raises(ValueError, match="degree: got 0"):
        kernels.Polynomial(0)
    with pytest.raises(ValueError, match="kernel: got 'rbf'; accepted are 'linear'"):
        kernels.as_kernel("rbf")
    with pytest.raises(TypeError, match="kernel: got 3"):
        kernels.as_kernel(3)
    with pytest.raises(ValueError, match=r"kernel: got shape \(2, 2\); accepted is \(2, 3\)"):
        kernels.Function(lambda a, b: a @ a.T)(torch.randn(2, 2), torch.randn(3, 2))


class TestKernelScorer:
    @pytest.mark.parametrize("kernel", ALL, ids=repr)
    def test_is_the_expansion(self, kernel, device):
        points, x = torch.randn(6, 3, device=device), torch.randn(2, 4, 3, device=device)
        scorer = tm.KernelScorer(points, 5, kernel)
        nn.init.normal_(scorer.bias)
        got = scorer(x)
        assert got.shape == (2, 4, 5)
        for b in range(2):
            for t in range(4):
                for k in range(5):
                    value = scorer.bias[k] + sum(
                        scorer.coefficients[i, k] * kernel(points[i : i + 1], x[b, t][None])[0, 0] for i in range(6)
                    )
                    torch.testing.assert_close(got[b, t, k], value, rtol=1e-5, atol=1e-5)

    def test_chunks_change_nothing(self):
        scorer = tm.KernelScorer(torch.randn(6, 3), 5, kernels.Gaussian(0.3), chunk=4)
        x = torch.randn(11, 3)
        with torch.no_grad():
            torch.testing.assert_close(scorer(x), scorer(x.clone().requires_grad_()).detach())
            assert scorer(x[:0]).shape == (0, 5)
        torch.testing.assert_close(
            scorer.class_norms(),
            (scorer.coefficients.T @ scorer.kernel(scorer.support, scorer.support) @ scorer.coefficients)
            .diagonal()
            .sqrt(),
        )

    @pytest.mark.parametrize(
        "kernel",
        [kernels.Polynomial(2), kernels.Gaussian(0.7, learn=True), kernels.Laplacian(0.7, learn=True)],
        ids=repr,
    )
    def test_gradients_behind_a_network(self, kernel):
        """Of the features, the points, the coefficients and the width."""
        scorer = tm.KernelScorer(torch.randn(3, 2).double(), 2, kernel.double(), learn_support=True)
        names = [name for name, _ in scorer.named_parameters()]
        assert {"support", "coefficients", "bias"} <= set(names)
        x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
        values = tuple(p.detach().clone().requires_grad_() for _, p in scorer.named_parameters())

        def scores(x, *parameters):
            return torch.func.functional_call(scorer, dict(zip(names, parameters, strict=True)), (x,))

        assert torch.autograd.gradcheck(scores, (x, *values))

    def test_trains_as_a_deep_kernel(self):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(60, 2, generator=generator)
        y = ((x.norm(dim=1) > 1.1).long() + (x.norm(dim=1) > 1.7)).long()
        net = nn.Sequential(nn.Linear(2, 4), nn.Tanh())
        scorer = tm.KernelScorer(torch.randn(20, 4, generator=generator), 3, kernels.Gaussian(0.5, learn=True))
        optimiser = torch.optim.Adam([*net.parameters(), *scorer.parameters()], 0.05)
        loss = tm.CrammerSingerLoss()
        before = float(loss(scorer(net(x)), y).detach())
        for _ in range(200):
            optimiser.zero_grad()
            loss(scorer(net(x)), y).backward()
            optimiser.step()
        assert float(loss(scorer(net(x)), y).detach()) < before / 3

    def test_copies_and_reloads(self):
        scorer = tm.KernelScorer(torch.randn(6, 3), 5, kernels.Gaussian(0.3, learn=True))
        x = torch.randn(4, 3)
        assert sorted(scorer.state_dict()) == ["bias", "coefficients", "kernel.log_gamma", "support"]
        for twin in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
            assert torch.equal(twin(x), scorer(x))
        assert "Gaussian(gamma=0.3, learn=True)" in repr(scorer)

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match=r"support: got shape \(3,\)"):
            tm.KernelScorer(torch.randn(3), 2)
        with pytest.raises(ValueError, match=r"features: got shape \(4, 2\); accepted is \(\*, 3\)"):
            tm.KernelScorer(torch.randn(5, 3), 2)(torch.randn(4, 2))


class TestApproximations:
    def test_nystrom_is_exact_between_landmarks_and_close_elsewhere(self):
        x = torch.randn(200, 2).double()
        kernel = kernels.Gaussian(0.2)
        phi = tm.NystromFeatures(x[:80], kernel)
        torch.testing.assert_close(phi(x[:80]) @ phi(x[:80]).T, kernel(x[:80], x[:80]), rtol=0, atol=1e-5)
        assert float((phi(x) @ phi(x).T - kernel(x, x)).square().mean().sqrt()) < 0.002
        assert tm.NystromScorer(phi, 3)(x.reshape(2, 100, 2)).shape == (2, 100, 3)

    def test_nystrom_survives_repeated_landmarks(self):
        x = torch.randn(10, 2).repeat(3, 1)
        phi = tm.NystromFeatures(x, kernels.Gaussian(1.0))
        assert phi.num_features == 30
        torch.testing.assert_close(phi(x) @ phi(x).T, kernels.Gaussian(1.0)(x, x), rtol=0, atol=1e-3)

    def test_random_fourier_features_converge_to_the_kernel(self):
        x = torch.randn(30, 3)
        kernel, errors = kernels.Gaussian(0.4)(x, x), []
        for size in (100, 10_000):
            phi = tm.RandomFourierFeatures(3, size, 0.4, generator=torch.Generator().manual_seed(0))(x)
            errors.append(float((phi @ phi.T - kernel).square().mean().sqrt()))
        assert errors[1] < 0.02
        assert errors[1] < errors[0] / 4  # the error falls as one over the root of the size

    def test_random_fourier_scorer(self):
        scorer = tm.RandomFourierScorer(3, 5, 64, 0.4, generator=torch.Generator().manual_seed(0))
        assert scorer(torch.randn(2, 3)).shape == (2, 5)
        with pytest.raises(ValueError, match="num_features: got 3"):
            tm.RandomFourierFeatures(2, 3)


norm_vectors = st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(lambda v: max(v) > 1e-3)


@given(norms=norm_vectors, weight=st.floats(0.01, 20), p=st.sampled_from([1.0, 1.2, 1.5, 2.0, 3.0, 8.0, math.inf]))
def test_shrinking_a_group_norm_satisfies_moreau(norms, weight, p):
    """``r - u`` must be ``weight`` times a sub-gradient of half the squared norm at ``u``: its dual norm is
    ``weight N(u)`` and its product with ``u`` is ``weight N(u)^2``."""
    r = torch.tensor(norms, dtype=torch.float64)
    u = shrink_group_norm(r, weight, p)
    assert bool((u >= 0).all())
    assert bool((u <= r + 1e-9).all())
    size, scale = float(group_norm(u, p)), float(r.amax())
    away = (r - u) / weight
    assert float(group_norm(away, dual_exponent(p))) == pytest.approx(size, rel=1e-5, abs=1e-6 * scale)
    assert float((away * u).sum()) == pytest.approx(size**2, rel=1e-5, abs=1e-6 * scale**2)


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 3.0, 8.0, math.inf])
@pytest.mark.parametrize("weight", [0.05, 1.0, 20.0])
def test_the_slope_of_shrinking_is_its_derivative(p, weight):
    r = torch.tensor([3.0, 0.4, 2.0, 2.9, 0.05], dtype=torch.float64)
    slope = shrink_group_norm_slope(r, shrink_group_norm(r, weight, p), weight, p)
    for k, move in enumerate(1e-6 * torch.eye(5, dtype=torch.float64)):
        change = (shrink_group_norm(r + move, weight, p) - shrink_group_norm(r - move, weight, p)) / 2e-6
        torch.testing.assert_close(slope[:, k], change, rtol=1e-5, atol=1e-6)


rows = st.lists(st.lists(st.floats(-20, 20), min_size=3, max_size=3), min_size=1, max_size=4)


@given(rows=rows, total=st.floats(0.1, 10), start=st.floats(-30, 30))
def test_projection_onto_the_simplex_satisfies_its_conditions(rows, total, start):
    v = torch.tensor(rows, dtype=torch.float64)
    totals = torch.full((len(v), 1), total, dtype=torch.float64)
    for begin in (None, torch.full_like(totals, start)):
        b, threshold = project_simplex(v, totals, begin)
        torch.testing.assert_close(b.sum(1, keepdim=True), totals, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(b, (v - threshold).clamp_min(0))


@given(rows=rows, upper=st.floats(0.1, 10), offset=st.floats(0, 1))
def test_projection_onto_the_coupled_box_satisfies_its_conditions(rows, upper, offset):
    v = torch.tensor(rows, dtype=torch.float64)
    caps = torch.full((len(v), 1), upper, dtype=torch.float64)
    offsets = caps * offset * v.shape[1]
    b = project_coupled_box(v, caps, offsets)
    shift = b.sum(1, keepdim=True) - offsets
    torch.testing.assert_close(b, torch.minimum((v - shift).clamp_min(0), caps), rtol=1e-7, atol=1e-7)


def test_group_norm_of_one_and_infinity():
    norms = torch.tensor([1.0, 2.0, 3.0])
    assert float(group_norm(norms, 1)) == 6
    assert float(group_norm(norms, math.inf)) == 3
    with pytest.raises(ValueError, match=r"p: got 0\.5"):
        group_norm(norms, 0.5)
