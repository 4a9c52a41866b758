"""The chain recursions as operators of torch: one node each for compile and export, differentiable twice.

``value`` is differentiated by ``gradient``, and ``gradient`` by ``curvature``; the others by nothing. An operator takes
tensors, so this is the one place that spells the parts of a `Chain`; what it computes is decided inside it. Autocast is
off there, or products would come in half precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from torch_multiclass.ops.chain import kbest, native, partial, slack
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain, work_dtype
from torch_multiclass.ops.chain.threads import on_one_thread
from torch_multiclass.ops.chain.viterbi import best_labels as decode
from torch_multiclass.ops.chain.viterbi import best_path as decode_path
from torch_multiclass.ops.chain.viterbi import legal_labels as decode_legal
from torch_multiclass.ops.precision import no_autocast

Result = TypeVar("Result")


def within(chain: Chain, run: Callable[[], Result]) -> Result:
    """What ``run`` returns, computed in full precision and on as many threads as serve a chain of this size."""
    with no_autocast(chain.emissions):
        return on_one_thread(chain.emissions, run)


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
    """``log Z`` of each sequence; less ``s(labels)``, or the log-sum over the labellings in sets ``(B, T, K)``."""
    chain = Chain(emissions, transitions, start, end, lengths)
    solution = within(chain, lambda: partial.solve(chain, labels, method))
    return solution.value.to(work_dtype(emissions.dtype), copy=True)


@value.register_fake
def _(emissions: Tensor, *_: Any) -> Tensor:
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
    return fresh(within(chain, lambda: partial.solve(chain, labels, method).gradient(grad)), chain)


def fresh(parts: Gradients, chain: Chain) -> Gradients:
    """Each part in the dtype and dense layout of the input it belongs to, sharing memory with nothing."""
    made = (torch.empty_like(own, memory_format=torch.contiguous_format) for own in chain[:4])
    return tuple(new.copy_(part) for new, part in zip(made, parts, strict=True))  # type: ignore[return-value]


@gradient.register_fake
def _(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in inputs[:4])  # type: ignore[return-value]


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
    by_grad, parts = within(chain, lambda: partial.curvature(grad, along, chain, labels))
    return by_grad.to(grad.dtype, copy=True), *fresh(parts, chain)


@curvature.register_fake
def _(grad: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in (grad, *inputs[4:8]))  # type: ignore[return-value]


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


best_labels = torch.library.custom_op("torch_multiclass::chain_best_labels", plain_best_labels, mutates_args=())


@best_labels.register_fake
def _(emissions: Tensor, *rest: Any) -> Tensor:
    return _labels_like(emissions, rest[-1])


def _labels_like(emissions: Tensor, allowed: Tensor | None) -> Tensor:
    batch, steps, _ = emissions.shape
    return emissions.new_empty((batch, steps) if allowed is None else (batch, 2, steps), dtype=torch.long)


@torch.library.custom_op("torch_multiclass::chain_k_best", mutates_args=())
def k_best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """The ``k`` best labellings of each sequence ``(B, k, T)`` and their scores ``(B, k)``."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    return within(chain, lambda: kbest.k_best(chain, k))


@k_best.register_fake
def _(emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    (batch, steps, _), k = emissions.shape, rest[-1]
    scores = emissions.new_empty((batch, k), dtype=work_dtype(emissions.dtype))
    return emissions.new_empty((batch, k, steps), dtype=torch.long), scores


@torch.library.custom_op("torch_multiclass::chain_slack_labels", mutates_args=())
def slack_labels(
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
    ``(B, 2, T)``.
    """
    chain = Chain(emissions, transitions, start, end, lengths).work()
    if allowed is None:
        return within(chain, lambda: slack.best_labels(chain, costs, most))
    d, gold = within(chain, lambda: partial.measured(chain, allowed))
    return torch.stack([within(d, lambda: slack.best_labels(d, costs, most)), gold], 1)


@slack_labels.register_fake
def _(emissions: Tensor, *rest: Any) -> Tensor:
    return _labels_like(emissions, rest[-1])


@torch.library.custom_op("torch_multiclass::chain_slack_search", mutates_args=())
def slack_search(
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


@slack_search.register_fake
def _(emissions: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    value = emissions.new_empty(emissions.shape[0], dtype=work_dtype(emissions.dtype))
    return _labels_like(emissions, rest[-1]), value, torch.empty_like(value)


# --------------------------------------------------------------------------------------------------------- derivatives


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


for operator in (value, gradient, curvature, best_labels, k_best, slack_labels, slack_search):
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
    """`value` outside of compile and transforms: the same, but the gradient goes on from what the value computed.

    The native library computes the gradient of the sum beside the value, which most losses ask for next, but for a
    factor that all rows share.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """The value."""
        *tensors, method = inputs
        ctx.save_for_backward(*tensors)
        ctx.method = method
        chain, labels = Chain(*tensors[:5]), tensors[5]
        run = native.vouched(chain, labels, any(ctx.needs_input_grad)) if method == "auto" else None
        if run is not None:
            ctx.solution = run.parts
            return run.hand_over()
        with torch._C._AutoDispatchBelowAutograd():  # nothing in here is to be recorded
            ctx.solution = solution = within(chain, lambda: partial.solve(chain, labels, method))
        return solution.value.to(work_dtype(chain.emissions.dtype), copy=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient for emissions, transitions, start and end."""
        solution, ctx.solution = ctx.solution, None
        tensors = ctx.saved_tensors
        if solution is None or torch.is_grad_enabled():
            return *gradient(grad.contiguous(), *tensors, ctx.method), None, None, None
        if isinstance(solution, tuple):
            factor = shared_by_all(grad)
            if factor is not None:
                if factor != 1:
                    torch._foreach_mul_(solution, factor)
                return *in_dtypes(solution, tensors), None, None, None
            solution = None
        chain, labels = Chain(*tensors[:5]), tensors[5]

        def run() -> tuple[Tensor, ...]:
            found = partial.solve(chain, labels, ctx.method) if solution is None else solution
            return tuple(part.contiguous() for part in in_dtypes(found.gradient(grad), tensors))

        with torch._C._AutoDispatchBelowAutograd():
            return *within(chain, run), None, None, None


def shared_by_all(grad: Tensor) -> float | None:
    """The entry of which all others are equal; None where they differ."""
    if grad.stride(0) == 0:
        return grad[0].item()
    low, high = (bound.item() for bound in grad.aminmax())
    return low if low == high else None


def in_dtypes(parts: Gradients, of: Sequence[Tensor]) -> list[Tensor]:
    """Each part in the dtype of the tensor it belongs to."""
    return [part.to(own.dtype) for part, own in zip(parts, of, strict=False)]


def watched() -> bool:
    """Whether a transform, compile, export or a fake mode looks on, and is to see one operator."""
    return (
        torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )


def legal_labels(chain: Chain) -> Tensor:
    """The best labelling ``(B, T)``, -100 past its length and where none is legal; where nobody looks on."""
    chain = chain.work()
    path = native.best_path(chain)
    if path is not None and path.unsound == 0:
        return path.labels
    with torch._C._AutoDispatchBelowAutograd():
        return within(chain, lambda: decode_legal(chain)).contiguous()


def best_path(chain: Chain) -> tuple[Tensor, Tensor]:
    """The same, and its score in float64, ``(B,)``, -inf where no labelling is legal."""
    chain = chain.work()
    path = native.best_path(chain)
    if path is not None and path.unsound == 0:
        return path.labels, path.score
    with torch._C._AutoDispatchBelowAutograd():
        labels, score = within(chain, lambda: decode_path(chain))
    return labels.contiguous(), score


def labels_of_best(chain: Chain, allowed: Tensor | None) -> Tensor:
    """`best_labels`, without the operator's way through the dispatcher where nobody looks on."""
    if watched():
        labels: Tensor = best_labels(*chain, allowed)
        return labels
    with torch._C._AutoDispatchBelowAutograd():
        return plain_best_labels(*chain, allowed)


def differentiable_value(chain: Chain, labels: Tensor | None, method: str) -> Tensor:
    """`value` in the form that whoever looks on can follow: a transform, compile, export, a fake mode, nobody."""
    compute: Callable[..., Tensor] = value
    if not torch.compiler.is_compiling():
        if torch._C._functorch.peek_interpreter_stack() is not None:
            compute = apply(MappedValue)
        elif torch._C._len_torch_dispatch_stack() == 0:
            compute = apply(Value)
    return compute(*chain, labels, method)


def differentiable_gradient(grad: Tensor, chain: Chain, method: str) -> Gradients:
    """`gradient` of ``log Z`` likewise."""
    mapped = not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None
    compute: Callable[..., Gradients] = apply(MappedGradient) if mapped else gradient
    return compute(grad, *chain, None, method)
