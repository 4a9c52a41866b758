"""Linear systems: outright, and by conjugate gradients in any inner product."""

import torch

from torch_multiclass.solvers.systems import conjugate_gradient, solve_positive


def system(size=12):
    root = torch.randn(size, size, dtype=torch.float64)
    return root @ root.mT + torch.eye(size, dtype=torch.float64), torch.randn(size, dtype=torch.float64)


def test_both_solve_a_positive_system():
    matrix, right = system()
    expected = torch.linalg.solve(matrix, right)
    torch.testing.assert_close(solve_positive(matrix, right), expected)
    got, solved = conjugate_gradient(lambda v: matrix @ v, right, torch.dot, goal=1e-24, steps=100)
    assert solved
    torch.testing.assert_close(got, expected)


def test_a_matrix_that_is_symmetric_in_another_product():
    """``A = S M`` is symmetric in ``<u, M v>``."""
    metric, right = system()
    matrix = system()[0] @ metric
    got, solved = conjugate_gradient(lambda v: matrix @ v, right, lambda u, v: u @ metric @ v, goal=1e-16, steps=300)
    assert solved
    torch.testing.assert_close(got, torch.linalg.solve(matrix, right), rtol=1e-4, atol=1e-6)


def test_out_of_steps_and_of_curvature():
    matrix, right = system()
    assert not conjugate_gradient(lambda v: matrix @ v, right, torch.dot, goal=1e-24, steps=2)[1]
    assert not conjugate_gradient(lambda v: -(matrix @ v), right, torch.dot, goal=1e-24, steps=99)[1]
    nothing, solved = conjugate_gradient(lambda v: matrix @ v, 0 * right, torch.dot, goal=0.0, steps=9)
    assert solved
    assert not bool(nothing.any())


def test_a_singular_matrix_has_a_least_squares_answer():
    matrix = torch.ones(3, 3, dtype=torch.float64)
    torch.testing.assert_close(matrix @ solve_positive(matrix, matrix[0]), matrix[0])
