"""The chain recursions as operators of torch: one node each for compile and export, differentiable twice.

``value`` is differentiated by ``gradient``, and ``gradient`` by ``curvature``; the others by nothing. An operator takes
tensors, so this is the one place that spells the parts of a `Chain`; what it computes is decided inside it. Autocast is
off there, or products would come in half precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from torch_multiclass.ops.chain import kbest, partial, slack
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain, work_dtype
from torch_multiclass.ops.chain.threads import on_one_thread
from torch_multiclass.ops.chain.viterbi import best_labels as decode
from torch_multiclass.ops.operators import differentiate, map_by, operator, without_derivative
from torch_multiclass.ops.precision import no_autocast

Result = TypeVar("Result")

_CHAIN = "Tensor emissions, Tensor transitions, Tensor start, Tensor end, Tensor? lengths"


def within(chain: Chain, run: Callable[[], Result]) -> Result:
    """What ``run`` returns, computed in full precision and on as many threads as serve a chain of this size."""
    with no_autocast(chain.emissions):
        return on_one_thread(chain.emissions, run)


def plain_value(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    """``log Z`` of each sequence; less ``s(labels)``, or the log-sum over the labellings in sets ``(B, T, K)``."""
    chain = Chain(emissions, transitions, start, end, lengths)
    solution = within(chain, lambda: partial.solve(chain, labels, method))
    return solution.value.to(work_dtype(emissions.dtype), copy=True)


def _fake_value(emissions: Tensor, *_: Any) -> Tensor:
    return emissions.new_empty(emissions.shape[0], dtype=work_dtype(emissions.dtype))


value = operator(f"chain_value({_CHAIN}, Tensor? labels, str method) -> Tensor", plain_value, _fake_value)


def plain_gradient(
    grad: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradient of ``sum(grad * value)`` for emissions, transitions, start and end."""
    chain = Chain(emissions, transitions, start, end, lengths)
    return fresh(within(chain, lambda: partial.solve(chain, labels, method).gradient(grad)), chain)


def fresh(parts: Gradients, chain: Chain) -> Gradients:
    """Each part in the dtype and dense layout of the input it belongs to, sharing memory with nothing."""
    made = (torch.empty_like(own, memory_format=torch.contiguous_format) for own in chain[:4])
    return tuple(new.copy_(part) for new, part in zip(made, parts, strict=True))  # type: ignore[return-value]


def _fake_gradient(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in inputs[:4])  # type: ignore[return-value]


gradient = operator(
    f"chain_gradient(Tensor grad, {_CHAIN}, Tensor? labels, str method) -> (Tensor, Tensor, Tensor, Tensor)",
    plain_gradient,
    _fake_gradient,
)


def plain_curvature(
    grad: Tensor,
    along_emissions: Tensor,
    along_transitions: Tensor,
    along_start: Tensor,
    along_end: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradient of ``<gradient(grad), along>`` for ``grad``, emissions, transitions, start and end."""
    chain = Chain(emissions, transitions, start, end, lengths)
    along = (along_emissions, along_transitions, along_start, along_end)
    by_grad, parts = within(chain, lambda: partial.curvature(grad, along, chain, labels))
    return by_grad.to(grad.dtype, copy=True), *fresh(parts, chain)


def _fake_curvature(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in (grad, *inputs[4:8]))  # type: ignore[return-value]


curvature = operator(
    "chain_curvature(Tensor grad, Tensor along_emissions, Tensor along_transitions, Tensor along_start, "
    f"Tensor along_end, {_CHAIN}, Tensor? labels) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    plain_curvature,
    _fake_curvature,
)


def plain_best_labels(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    allowed: Tensor | None,
) -> Tensor:
    """The best labelling of each sequence, -100 past its length; with sets of labels, ``(B, 2, T)``: and the best in
    the sets."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    if allowed is None:
        return within(chain, lambda: decode(chain)).contiguous()
    return within(chain, lambda: partial.best_labels(chain, allowed))


def _fake_best_labels(emissions: Tensor, *rest: Any) -> Tensor:
    return _labels_like(emissions, rest[-1])


best_labels = operator(f"chain_best_labels({_CHAIN}, Tensor? allowed) -> Tensor", plain_best_labels, _fake_best_labels)


def _labels_like(emissions: Tensor, allowed: Tensor | None) -> Tensor:
    batch, steps, _ = emissions.shape
    return emissions.new_empty((batch, steps) if allowed is None else (batch, 2, steps), dtype=torch.long)


def plain_k_best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """The ``k`` best labellings of each sequence ``(B, k, T)`` and their scores ``(B, k)``."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    return within(chain, lambda: kbest.k_best(chain, k))


def _fake_k_best(emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    (batch, steps, _), k = emissions.shape, rest[-1]
    scores = emissions.new_empty((batch, k), dtype=work_dtype(emissions.dtype))
    return emissions.new_empty((batch, k, steps), dtype=torch.long), scores


k_best = operator(f"chain_k_best({_CHAIN}, int k) -> (Tensor, Tensor)", plain_k_best, _fake_k_best)


def plain_slack_labels(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    costs: Tensor,
    most: int,
    allowed: Tensor | None,
) -> Tensor:
    """A labelling of each sequence that attains ``max_y c(y) [1 + d(y)]_+``.

    ``d`` is the score itself; with sets of labels it is measured from the best labelling in them, which comes too,
    ``(B, 2, T)``. Costs are whole numbers up to ``most``, or below 0 any multiples of a unit that is looked for here.
    """
    if most < 0:
        unit, most = slack.common_unit(costs)
        costs = (costs / unit).round().long()
    chain = Chain(emissions, transitions, start, end, lengths).work()
    if allowed is None:
        return within(chain, lambda: slack.best_labels(chain, costs, most))
    d, gold = within(chain, lambda: partial.measured(chain, allowed))
    return torch.stack([within(d, lambda: slack.best_labels(d, costs, most)), gold], 1)


def _fake_slack_labels(emissions: Tensor, *rest: Any) -> Tensor:
    return _labels_like(emissions, rest[-1])


slack_labels = operator(
    f"chain_slack_labels({_CHAIN}, Tensor costs, int most, Tensor? allowed) -> Tensor",
    plain_slack_labels,
    _fake_slack_labels,
)


def plain_slack_search(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    costs: Tensor,
    allowed: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A labelling of each sequence, as `slack_labels` has it, that a search finds; its value and an upper bound."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    d, gold = chain, None
    if allowed is not None:
        d, gold = within(chain, lambda: partial.measured(chain, allowed))
    found = within(d, lambda: slack.search(d, costs))
    labels = found.labels.contiguous() if gold is None else torch.stack([found.labels, gold], 1)
    lower = (found.cost * (1 + found.score)).clamp(min=0)
    return labels, lower, torch.maximum(lower, slack.upper_bound(found))


def _fake_slack_search(emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    value = emissions.new_empty(emissions.shape[0], dtype=work_dtype(emissions.dtype))
    return _labels_like(emissions, rest[-1]), value, torch.empty_like(value)


slack_search = operator(
    f"chain_slack_search({_CHAIN}, Tensor costs, Tensor? allowed) -> (Tensor, Tensor, Tensor)",
    plain_slack_search,
    _fake_slack_search,
)


# --------------------------------------------------------------------------------------------------------- derivatives


def keep_value(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """What the derivative of `value` needs."""
    *tensors, ctx.method = inputs
    ctx.save_for_backward(*tensors)


def _value_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *gradient(grad.contiguous(), *ctx.saved_tensors, ctx.method), None, None, None


def keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: Gradients) -> None:
    """What the derivative of `gradient` needs."""
    *tensors, _ = inputs
    ctx.save_for_backward(*tensors)


def gradient_backward(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
    """The derivative of `gradient`."""
    grad, *rest = ctx.saved_tensors
    return *curvature(grad, *(part.contiguous() for part in along), *rest), None, None, None


differentiate(value, _value_backward, keep_value)
differentiate(gradient, gradient_backward, keep_gradient)
for made in (curvature, best_labels, k_best, slack_labels, slack_search):
    without_derivative(made)


def one_by_one(operator: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """A rule for vmap: the operator on each element of the mapped axis, which keeps each on its fast path."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        found = [
            operator(*(x if dim is None else x.select(dim, i) for x, dim in zip(inputs, in_dims, strict=True)))
            for i in range(info.batch_size)
        ]
        if isinstance(found[0], Tensor):
            return torch.stack(found), 0
        return tuple(map(torch.stack, zip(*found, strict=True))), (0,) * len(found[0])

    return rule


for made in (value, gradient, curvature, best_labels, k_best, slack_labels, slack_search):
    map_by(made, one_by_one(made))
