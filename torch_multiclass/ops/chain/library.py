"""The chain recursions as operators of torch: one node each for compile and export, differentiable twice.

``value`` is differentiated by ``gradient``, and ``gradient`` by ``curvature``; ``best_labels`` by nothing. What an
operator computes is decided inside it, by `engine`; autocast is off there, or products would come in half precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.ops.chain import best_path, engine, logspace
from torch_multiclass.ops.chain.logspace import Chain, Gradients
from torch_multiclass.ops.chain.threads import on_one_thread
from torch_multiclass.ops.precision import no_autocast


def work_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype results come in: float64 stays, everything shorter is float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@torch.library.custom_op("torch_multiclass::chain_value", mutates_args=())
def value(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    """``log Z``, or ``log Z - s(labels)``, of each sequence."""
    chain = Chain(emissions, transitions, start, end, lengths)
    with no_autocast(chain.emissions):
        solution = on_one_thread(emissions, lambda: engine.solve(chain, labels, method))
    return solution.value.to(work_dtype(emissions.dtype), copy=True)


@value.register_fake
def _(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    return emissions.new_empty(emissions.shape[0], dtype=work_dtype(emissions.dtype))


@torch.library.custom_op("torch_multiclass::chain_gradient", mutates_args=())
def gradient(
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
    with no_autocast(chain.emissions):
        return fresh(on_one_thread(emissions, lambda: engine.solve(chain, labels, method).gradient(grad)), chain)


def fresh(parts: Gradients, chain: Chain) -> Gradients:
    """Each part in the dtype and dense layout of the input it belongs to, sharing memory with nothing."""
    made = (torch.empty_like(own, memory_format=torch.contiguous_format) for own in chain[:4])
    return tuple(new.copy_(part) for new, part in zip(made, parts, strict=True))  # type: ignore[return-value]


@gradient.register_fake
def _(
    grad: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    parts = (emissions, transitions, start, end)
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in parts)  # type: ignore[return-value]


@torch.library.custom_op("torch_multiclass::chain_curvature", mutates_args=())
def curvature(
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
    with no_autocast(chain.emissions):
        by_grad, parts = on_one_thread(emissions, lambda: logspace.curvature(grad, along, chain, labels))
    return by_grad.to(grad.dtype, copy=True), *fresh(parts, chain)


@curvature.register_fake
def _(
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
    parts = (grad, emissions, transitions, start, end)
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in parts)  # type: ignore[return-value]


@torch.library.custom_op("torch_multiclass::chain_best_labels", mutates_args=())
def best_labels(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None) -> Tensor:
    """The best labelling of each sequence, -100 past its length."""
    chain = Chain(emissions, transitions, start, end, lengths).to(work_dtype(emissions.dtype))
    with no_autocast(emissions):
        return on_one_thread(emissions, lambda: best_path.best_labels(chain)).contiguous()


@best_labels.register_fake
def _(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None) -> Tensor:
    return emissions.new_empty(emissions.shape[:2], dtype=torch.long)


def _keep_value(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.method = inputs
    ctx.save_for_backward(*tensors)


def _value_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *gradient(grad.contiguous(), *ctx.saved_tensors, ctx.method), None, None, None


def _keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: Gradients) -> None:
    *tensors, _ = inputs
    ctx.save_for_backward(*tensors)


def _gradient_backward(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
    grad, *rest = ctx.saved_tensors
    return *curvature(grad, *(part.contiguous() for part in along), *rest), None, None, None


value.register_autograd(_value_backward, setup_context=_keep_value)
gradient.register_autograd(_gradient_backward, setup_context=_keep_gradient)


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


for operator in (value, gradient, curvature, best_labels):
    operator.register_vmap(one_by_one(operator))


def apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The function's ``apply``, which torch leaves without types."""
    return function.apply


class MappedValue(torch.autograd.Function):
    """`value` for the transforms of `torch.func`, which do not look into the autograd of operators."""

    forward = staticmethod(value)
    setup_context = staticmethod(_keep_value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """As `value`'s."""
        return *apply(MappedGradient)(grad, *ctx.saved_tensors, ctx.method), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        """One by one."""
        return one_by_one(apply(MappedValue))(info, in_dims, *inputs)


class MappedGradient(torch.autograd.Function):
    """`gradient` for the transforms of `torch.func`."""

    forward = staticmethod(gradient)
    setup_context = staticmethod(_keep_gradient)
    backward = staticmethod(_gradient_backward)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        """One by one."""
        return one_by_one(apply(MappedGradient))(info, in_dims, *inputs)


class Value(torch.autograd.Function):
    """`value` outside of compile and transforms: the same, but the gradient goes on from what the value computed."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """The value."""
        *tensors, ctx.method = inputs
        e, transitions, start, end, lengths, labels = tensors
        ctx.save_for_backward(*tensors)
        with no_autocast(e), torch._C._AutoDispatchBelowAutograd():  # nothing in here is to be recorded
            chain = Chain(e, transitions, start, end, lengths)
            solution = on_one_thread(e, lambda: engine.solve(chain, labels, ctx.method))
        ctx.solution = solution
        return solution.value.to(work_dtype(e.dtype), copy=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient for emissions, transitions, start and end."""
        solution, ctx.solution = ctx.solution, None
        tensors = ctx.saved_tensors
        if solution is None or torch.is_grad_enabled():
            return *gradient(grad.contiguous(), *tensors, ctx.method), None, None, None
        with no_autocast(grad), torch._C._AutoDispatchBelowAutograd():
            parts = on_one_thread(tensors[0], lambda: solution.gradient(grad))
        return *(part.to(own.dtype) for part, own in zip(parts, tensors, strict=False)), None, None, None


def differentiable_value(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    """`value` in the form that whoever looks on can follow: a transform, compile, export, a fake mode, nobody."""
    compute: Callable[..., Tensor] = value
    if not torch.compiler.is_compiling():
        if torch._C._functorch.peek_interpreter_stack() is not None:
            compute = apply(MappedValue)
        elif torch._C._len_torch_dispatch_stack() == 0:
            compute = apply(Value)
    return compute(emissions, transitions, start, end, lengths, labels, method)


def differentiable_gradient(
    grad: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Gradients:
    """`gradient` likewise."""
    mapped = not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None
    compute: Callable[..., Gradients] = apply(MappedGradient) if mapped else gradient
    return compute(grad, emissions, transitions, start, end, lengths, labels, method)
