"""Scorers on kernels, exact and approximate, against the expansion written out."""

import copy
import pickle

import pytest
import torch
from torch import nn

import torch_multiclass as tm
from torch_multiclass import kernels

ALL = [kernels.Linear(), kernels.Polynomial(3, 0.5, 2.0), kernels.Gaussian(0.7), kernels.Laplacian(0.7)]


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


def test_norms_of_a_new_scorer_have_a_gradient():
    scorer = tm.KernelScorer(torch.randn(5, 3), 2, tm.kernels.Gaussian(0.5))
    torch.nn.init.zeros_(scorer.coefficients)
    norms = scorer.class_norms()
    norms.sum().backward()
    assert (norms == 0).all()
    assert scorer.coefficients.grad.isfinite().all()


def test_landmarks_at_the_origin_and_beyond_the_numbers():
    flat = tm.NystromFeatures(torch.zeros(2, 3), "linear")
    assert (flat(torch.randn(4, 3)) == 0).all()
    with pytest.raises(ValueError, match=r"^kernel: .*not finite; accepted are finite entries"):
        tm.NystromFeatures(torch.full((2, 3), 1e4, dtype=torch.float16), tm.kernels.Polynomial(2))
    assert tm.kernels.Gaussian(1.0).diagonal(torch.zeros(2, 0)).tolist() == [1, 1]


def test_features_whose_kernel_is_beyond_half_precision_are_within_it():
    landmarks, rows = torch.tensor([[-1.0], [-7], [-9], [-11]]), torch.tensor([[0.0], [-26], [11], [5]])
    kernel = tm.kernels.Polynomial(2)  # 287^2 = 82,369 of the last landmark and the second row
    half = tm.NystromFeatures(landmarks.half(), kernel)
    found = half(rows.half())
    assert found.dtype == torch.float16
    wide = kernel(rows, landmarks) @ half.root.float()
    torch.testing.assert_close(found.float(), wide, rtol=2e-3, atol=2e-3)


def test_features_without_an_entry_for_every_index_are_named():
    features = tm.NystromFeatures(torch.eye(3), tm.kernels.Gaussian(1.0))
    with pytest.raises(TypeError, match="features: got a tensor of layout"):
        features(torch.eye(3).to_sparse())


def test_norms_in_half_precision_do_not_overflow():
    """The kernel of points of length 400 is beyond float16, the norms of small coefficients are not."""
    points = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)) * 200
    for dtype, close in ((torch.float16, 2e-2), (torch.bfloat16, 5e-2)):
        half = tm.KernelScorer(points.to(dtype), 3, kernels.Polynomial(2, 1.0, 1.0), chunk=2)
        with torch.no_grad():
            half.coefficients.mul_(1e-3)
        wide = tm.KernelScorer(half.support.double(), 3, kernels.Polynomial(2, 1.0, 1.0))
        wide = wide.double()
        with torch.no_grad():
            wide.coefficients.copy_(half.coefficients)
        norms = half.class_norms()
        assert norms.dtype == dtype
        torch.testing.assert_close(norms.double(), wide.class_norms(), rtol=close, atol=0)


@pytest.mark.parametrize("size", [1, 16])
def test_weights_are_drawn_within_one_over_the_root_of_their_number(size):
    bound = size**-0.5
    kernel, linear = tm.KernelScorer(torch.zeros(size, 3), 2000), tm.LinearScorer(size, 2000)
    for drawn in (kernel.coefficients.detach(), linear.weight.detach()):
        assert -bound <= float(drawn.min()) < -0.99 * bound
        assert 0.99 * bound < float(drawn.max()) <= bound


def test_norms_of_a_kernel_that_is_not_definite():
    """What rounding leaves below 0 has the norm 0; what is no number has none."""
    scorer = tm.KernelScorer(torch.eye(3), 2, lambda x, z: -(x @ z.mT))
    assert scorer.class_norms().tolist() == [0.0, 0.0]
    with torch.no_grad():
        scorer.coefficients[0, 0] = torch.nan
    norms = scorer.class_norms()
    assert norms[0].isnan()
    assert norms[1] == 0


@pytest.mark.parametrize("value", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("given", [torch.float32, torch.float64])
@pytest.mark.parametrize("named", [True, False])
def test_the_ridge_is_ten_roundings_of_the_mean_square(value, given, named):
    """Of one landmark ``1 / sqrt(z^2 + ridge)``; a function computes in the landmarks' dtype, a kernel in any."""
    kernel = "linear" if named else lambda x, z: x @ z.mT
    root = tm.NystromFeatures(torch.tensor([[value]], dtype=given), kernel, dtype=torch.float64).root
    rounding = 1e-10 if named or given == torch.float64 else 10 * torch.finfo(given).eps
    expected = (value**2 + rounding * (value**2 or 1.0)) ** -0.5
    assert float(root) == pytest.approx(expected, rel=1e-12)


def test_scores_whose_kernel_is_beyond_half_precision_are_within_it():
    support, rows = torch.tensor([[300.0], [-290.0]]), torch.tensor([[1.0], [2.0]])
    scorer = tm.KernelScorer(support.half(), 1, tm.kernels.Polynomial(2), bias=False, dtype=torch.float16)
    with torch.no_grad():
        scorer.coefficients.copy_(torch.tensor([[1.0], [-1.0]]))
    found = scorer(rows.half())
    assert found.dtype == torch.float16
    assert found.flatten().tolist() == [7080, 25952]  # 301^2 - 289^2, and 601^2 - 579^2 = 25,960 to 11 bits
