"""Kernels and the scorers built on them, against formulas written out and against scikit-learn."""

import os
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import pairwise

from torch_multiclass import kernels
from torch_multiclass.kernels import check_definite, gram
from torch_multiclass.kernels.gram import available_bytes

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


def test_a_fraction_is_a_number():
    x = torch.randn(3, 2)
    half, third = Fraction(1, 2), Fraction(1, 3)
    wanted = kernels.Polynomial(2, 0.5, 1 / 3)(x, x)
    torch.testing.assert_close(kernels.Polynomial(2, half, third)(x, x), wanted)
    torch.testing.assert_close(kernels.Gaussian(half)(x, x), kernels.Gaussian(0.5)(x, x))


@pytest.mark.parametrize(
    ("kernel", "given", "made"),
    [
        (kernels.Gaussian(0.5), {"gamma": 2}, kernels.Gaussian(2.0)),
        (kernels.Laplacian(0.5, learn=True), {"gamma": 2.0}, kernels.Laplacian(2.0, learn=True)),
        (kernels.Gaussian(0.5, learn=True), {"learn": False}, kernels.Gaussian(0.5)),
        (kernels.Polynomial(3), {"c": 0.0, "degree": 2}, kernels.Polynomial(2, c=0.0)),
    ],
)
def test_what_a_kernel_was_made_with_is_changed_by_name(kernel, given, made):
    before, after = repr(kernel), kernel.set_params(**given)
    assert repr(after) == repr(made)
    assert after.get_params() == pytest.approx(made.get_params())
    assert repr(kernel) == before
    assert repr(clone(kernel, safe=False)) == before
    with pytest.raises(ValueError, match=r"sigma: is not changed by name in .*; accepted are "):
        kernel.set_params(sigma=1.0)


def test_a_kernel_without_numbers_has_nothing_to_change():
    for kernel in (kernels.Linear(), kernels.Precomputed(torch.arange(3)), kernels.Function(torch.add)):
        with pytest.raises(ValueError, match=r"gamma: is not changed by name in .*; accepted is another kernel"):
            kernel.set_params(gamma=1.0)


def test_the_memory_that_is_left(monkeypatch):
    """As the system says; all there is where it says no more; without a limit where it says nothing."""
    assert 0 < available_bytes(torch.device("cpu")) < 1 << 62

    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_bytes(torch.device("cpu")) == 3 * 4096
    monkeypatch.setattr(os, "sysconf", refuse)
    assert available_bytes(torch.device("cpu")) == 1 << 62


def test_a_power_beyond_the_numbers_has_no_gradient():
    left = torch.tensor([[20.0], [0.5]], requires_grad=True)
    right = torch.tensor([[15.0], [-8.0]])
    kernel = kernels.Polynomial(255, 1.0, 0.0)
    block = kernel(left, right)
    assert block[0].tolist() == [float("inf"), -float("inf")]
    block.sum().backward()
    assert left.grad[0].item() == 0.0
    rows = left.detach()[1:].double().requires_grad_()
    kernel(rows, right.double()).sum().backward()
    assert left.grad[1].isfinite() or rows.grad.abs().max() > 3e38
    own = torch.tensor([[20.0], [0.5]], requires_grad=True)
    kernel.diagonal(own).sum().backward()
    assert own.grad[0].item() == 0.0
    assert not bool(own.grad.isnan().any())
