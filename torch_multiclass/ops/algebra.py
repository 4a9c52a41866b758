"""The two ways to add up labellings, and how one of them is picked: what the recursions over structures are written in.

A recursion over messages ``a`` and scores ``w`` is the same for the sum of all labellings and for the best one: only
what `total` and `product` mean differs. `SUM` gives ``log sum exp``, `BEST` the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_multiclass.checks import captured, values_readable

Choose = Callable[[Tensor], Tensor]
"""``(*, C)`` scores of alternatives to the one taken, ``(*)``."""


class Algebra(NamedTuple):
    """How alternatives are put together."""

    total: Callable[[Tensor, int], Tensor]
    """Over one dimension."""
    product: Callable[[Tensor, Tensor], Tensor]
    """Messages ``(*, N, J)`` through scores ``(*, J, K)`` to messages ``(*, N, K)``, the total over ``j``."""


def log_sum_exp(x: Tensor, dim: int) -> Tensor:
    """``log sum exp`` over ``dim``; ``-inf`` with zero gradient where everything is ``-inf``. Differentiable twice."""
    if captured():
        best = x.detach().amax(dim, keepdim=True)
        top = torch.where(best == -torch.inf, 0.0, best)
        # the best adds 1 to the sum; what is less has no term that counts
        return (x - top).exp().sum(dim).clamp_min(1).log() + best.squeeze(dim)
    return _apply(_LogSumExp, x, dim)


def log_product(a: Tensor, w: Tensor) -> Tensor:
    r"""``log \sum_j \exp(a_{nj} + w_{jk})``, a matrix product in log space, to the last digits of its dtype.

    Large products go through `torch.matmul` of exponentials, each row of ``a`` and column of ``w`` less its best. What
    underflows there counts for nothing beside an entry of the product that is not tiny; where a possible entry is tiny,
    the sum is taken term by term instead.
    """
    many = a.shape[-2] * a.shape[-1] * w.shape[-1] * a.shape[:-2].numel() > _TERM_BY_TERM
    if many and a.dtype == torch.float64 and not captured() and values_readable(a):
        return _apply(_LogProduct, a, w)
    return _term_by_term(a, w)


SUM = Algebra(log_sum_exp, log_product)
BEST = Algebra(lambda x, dim: x.amax(dim), lambda a, w: (a.unsqueeze(-1) + w.unsqueeze(-3)).amax(-2))

_TERM_BY_TERM = 4096
"""Terms of a product up to which they are added one by one."""

_TINY = 1e-250
"""What a product of exponentials of float64 may not fall below: a term lost in it is below 1e-58 of the sum."""


def lowest(scores: Tensor) -> Tensor:
    """The best alternative, of equal ones the lowest."""
    return scores.argmax(-1)


def drawn(generator: torch.Generator | None) -> Choose:
    """An alternative drawn with probability in proportion to the exponential of its score (the Gumbel trick)."""

    def choose(scores: Tensor) -> Tensor:
        u = torch.rand(scores.shape, generator=generator, dtype=torch.float64, device=scores.device)
        return (scores - (-(u.clamp(1e-300, 1 - 1e-16)).log()).log()).argmax(-1)

    return choose


def scaled(factor: float | Tensor) -> Callable[[Tensor], Tensor]:
    """``factor * scores``, with no NaN in the gradient of the factor where scores are ``-inf``."""

    def scale(scores: Tensor) -> Tensor:
        if not isinstance(factor, Tensor):
            return scores * factor
        dead = scores == -torch.inf
        return torch.where(dead, scores, torch.where(dead, 0.0, scores) * factor)

    return scale


def bans(scores: Tensor) -> Tensor:
    """0, and ``-inf`` where forbidden."""
    return torch.where(scores == -torch.inf, scores, 0.0)


def _apply(function: type[torch.autograd.Function], *given: Any) -> Tensor:
    result: Tensor = function.apply(*given)  # type: ignore[no-untyped-call]
    return result


def _term_by_term(a: Tensor, w: Tensor) -> Tensor:
    return log_sum_exp(a.unsqueeze(-1) + w.unsqueeze(-3), -2)


def _finite(best: Tensor) -> Tensor:
    return torch.where(best == -torch.inf, 0.0, best)


class _LogSumExp(torch.autograd.Function):
    """`torch.logsumexp`, whose gradient where everything is ``-inf`` would be NaN."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        value = torch.logsumexp(x, dim)
        ctx.dim = dim
        ctx.save_for_backward(x, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, value = ctx.saved_tensors
        return grad.unsqueeze(ctx.dim) * (x - _finite(value).unsqueeze(ctx.dim)).exp(), None


class _LogProduct(torch.autograd.Function):
    """`log_product` by a product of exponentials."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, w: Tensor) -> Tensor:
        row, column = _finite(a.amax(-1, keepdim=True)), _finite(w.amax(-2, keepdim=True))
        left, right = (a - row).exp(), (w - column).exp()
        product = left @ right
        if bool(product.numel() and product.min() < _TINY):
            possible = (a != -torch.inf).double() @ (w != -torch.inf).double() > 0
            if bool((possible & (product < _TINY)).any()):
                value = _term_by_term(a, w)
                ctx.save_for_backward(a, w, value)
                return value
        value = product.log() + row + column
        ctx.save_for_backward(a, w, value, left, right, product)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, w, value, *exponentials = ctx.saved_tensors
        if torch.is_grad_enabled() or not exponentials:
            share = (a.unsqueeze(-1) + w.unsqueeze(-3) - _finite(value).unsqueeze(-2)).exp() * grad.unsqueeze(-2)
            return _like(share.sum(-1), a), _like(share.sum(-3), w)
        left, right, product = exponentials
        weight = torch.where(product > 0, grad / product, 0.0)
        return _like(left * (weight @ right.mT), a), _like(right * (left.mT @ weight), w)


def _like(gradient: Tensor, x: Tensor) -> Tensor:
    """The gradient summed over the dimensions along which ``x`` was broadcast."""
    return gradient if gradient.shape == x.shape else gradient.sum_to_size(x.shape)
