r"""The empirical Rademacher complexity of linear functions of bounded norm in a feature space."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import positive
from torch_multiclass.ops.precision import undisturbed

EXACT_ROWS = 16


class RademacherComplexity(NamedTuple):
    """The complexity, how exactly it is known, and its simple upper bound.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), Theorem 6.12 and Proposition 9.3.

    Example:
        >>> import torch
        >>> from torch_multiclass.bounds import rademacher_complexity
        >>> found = rademacher_complexity(torch.eye(4), norm=1.0)
        >>> found.value <= found.bound, found.standard_error
        (True, 0.0)
    """

    value: float
    """``(Lambda/m) E sqrt(sigma^T K sigma)``."""
    standard_error: float
    """Of the mean over random signs; 0 where all of them were taken."""
    bound: float
    """``Lambda sqrt(trace K)/m``, by Jensen."""


@check.told
@undisturbed
def rademacher_complexity(
    gram: Tensor, norm: float, *, draws: int = 10_000, generator: torch.Generator | None = None
) -> RademacherComplexity:
    r"""``(Lambda/m) E_sigma sqrt(sigma^T K sigma)``, of the functions ``w.Phi(x)``, ``||w|| <= Lambda``, on a sample.

    Exact over all ``2^m`` sign vectors up to 16 rows, else the mean over random ones, with its standard error.

    Args:
        gram: ``K(x_i, x_j)``.
        norm: ``Lambda``.
        draws: sign vectors beyond 16 rows.
        generator: draws them.

    Shape:
        gram ``(m, m)``.

    Raises:
        ValueError: a Gram matrix that is none (not square, not symmetric, an indefinite form), a norm that is not > 0.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), Theorem 6.12 and Proposition 9.3.

    Example:
        >>> gram = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]])
        >>> found = rademacher_complexity(gram, 2.0)
        >>> round(found.value, 6), found.standard_error, round(found.bound, 6)
        (1.133005, 0.0, 1.154701)
    """
    check.is_tensor("gram", gram)
    check.dense("gram", gram)
    check.with_values("gram", gram)
    if gram.dim() != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] == 0:
        raise ValueError(f"gram: got shape {tuple(gram.shape)}; accepted is (m, m) with m >= 1")
    form, norm, rows = gram.detach().double().cpu(), positive("norm", norm), gram.shape[0]
    size = float(form.abs().max())
    if not math.isfinite(size) or float((form - form.T).abs().max()) > 1e-4 * size:
        raise ValueError("gram: is not symmetric and finite; accepted is the Gram matrix of a kernel")
    if rows <= EXACT_ROWS:
        counter = torch.arange(2 ** (rows - 1))  # the other half are the negatives of these
        bits = counter[:, None] >> torch.arange(rows) & 1
    else:
        check.generator(generator)
        bits = torch.randint(2, (check.whole("draws", draws, least=2), rows), generator=generator)
    signs = bits.double() * 2 - 1
    squares = ((signs @ form) * signs).sum(1)
    if float(squares.min()) < -1e-6 * rows**2 * size:
        raise ValueError("gram: its form is negative for some signs; accepted is the Gram matrix of a kernel")
    roots = squares.clamp(min=0).sqrt() * (norm / rows)
    error = 0.0 if rows <= EXACT_ROWS else float(roots.std() / math.sqrt(len(roots)))
    return RademacherComplexity(float(roots.mean()), error, norm * math.sqrt(float(form.trace())) / rows)
