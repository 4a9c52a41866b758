"""The chain recursions as the rest of the package calls them: whoever looks on sees one operator, else it is left out.

An operator's way through torch's dispatcher costs as much as a small chain, and its first call imports the compiler,
which takes a second. A transform, compile, export or a fake mode needs it; plain code does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from torch_multiclass.checks import captured, forward_mode, transformed
from torch_multiclass.ops.chain import native, operators, partial, steps
from torch_multiclass.ops.chain.arrays import in_dtype
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.operators import one_by_one, within
from torch_multiclass.ops.chain.structure import Chain, work_dtype
from torch_multiclass.ops.chain.viterbi import best_path as decode_path
from torch_multiclass.ops.chain.viterbi import legal_labels as decode_legal

Result = TypeVar("Result")


def apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The function's ``apply``, which torch leaves without types."""
    return function.apply


class MappedValue(torch.autograd.Function):
    """`value` for the transforms of `torch.func`, which do not look into the autograd of operators."""

    forward = staticmethod(operators.value)
    setup_context = staticmethod(operators.keep_value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """As `value`'s."""
        return *apply(MappedGradient)(grad, *ctx.saved_tensors, ctx.method), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        """One by one."""
        return one_by_one(apply(MappedValue))(info, in_dims, *inputs)


class MappedGradient(torch.autograd.Function):
    """`gradient` for the transforms of `torch.func`, whose derivatives go on to any order."""

    forward = staticmethod(operators.gradient)
    setup_context = staticmethod(operators.keep_gradient)

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
        """In plain steps."""
        grad, *parts, labels = ctx.saved_tensors
        return *steps.curvature(grad, along, Chain(*parts), labels), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        """One by one."""
        return one_by_one(apply(MappedGradient))(info, in_dims, *inputs)


class Gradient(torch.autograd.Function):
    """`gradient` outside of compile and transforms."""

    setup_context = staticmethod(operators.keep_gradient)

    @staticmethod
    def forward(*inputs: Any) -> Gradients:
        """The gradient."""
        with torch._C._AutoDispatchBelowAutograd():
            return operators.plain_gradient(*inputs)

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
        """As `gradient`'s; the operator, which has no derivative, where one is asked for."""
        if torch.is_grad_enabled():
            return operators.gradient_backward(ctx, *along)
        grad, *rest = ctx.saved_tensors
        with torch._C._AutoDispatchBelowAutograd():
            found = operators.plain_curvature(grad, *(part.contiguous() for part in along), *rest)
        return *found, None, None, None


NO_MORE = (None,) * 4
"""The gradients for what `Value` is given beside emissions, transitions, start and end."""


class Value(torch.autograd.Function):
    """`value` outside of compile and transforms: the same, but the gradient goes on from what the value computed.

    The native library computes the gradient of the sum beside the value, which most losses ask for next, but for a
    factor that all rows share; without being asked, where its input is followed and gradients are ``recorded``.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """The value."""
        *tensors, method, recorded = inputs
        ctx.save_for_backward(*tensors)
        ctx.method = method
        chain, labels = Chain(*tensors[:5]), tensors[5]
        followed = recorded and any(ctx.needs_input_grad)
        run = native.vouched(chain, labels, followed) if method == "auto" else None
        if run is not None:
            ctx.solution = run.parts
            return run.hand_over()
        with torch._C._AutoDispatchBelowAutograd():  # nothing in here is to be recorded
            ctx.solution = solution = within(chain, lambda: partial.solve(chain, labels, method))
        return in_dtype(solution.value, work_dtype(chain.emissions.dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient for emissions, transitions, start and end."""
        solution, ctx.solution = ctx.solution, None
        tensors = ctx.saved_tensors
        if solution is None or torch.is_grad_enabled() or batched(grad):
            ctx.solution = solution
            return *gradient(grad.contiguous(), *tensors, ctx.method), *NO_MORE
        if isinstance(solution, tuple):
            factor = shared_by_all(grad)
            if factor is not None:
                if factor != 1:
                    torch._foreach_mul_(solution, factor)
                return *in_dtypes(solution, tensors), *NO_MORE
            solution = None
        chain, labels = Chain(*tensors[:5]), tensors[5]

        def run() -> tuple[Tensor, ...]:
            found = partial.solve(chain, labels, ctx.method) if solution is None else solution
            return tuple(part.contiguous() for part in in_dtypes(found.gradient(grad), tensors))

        with torch._C._AutoDispatchBelowAutograd():
            return *within(chain, run), *NO_MORE


def batched(grad: Tensor) -> bool:
    """Whether these are many gradients at once, ``is_grads_batched``, of which operators alone know."""
    return torch._C._functorch.is_legacy_batchedtensor(grad)


def shared_by_all(grad: Tensor) -> float | None:
    """The entry of which all others are equal; None where they differ."""
    if grad.stride(0) == 0:
        return grad[0].item()
    low, high = (bound.item() for bound in grad.aminmax())
    return low if low == high else None


def in_dtypes(parts: Gradients, of: Sequence[Tensor]) -> list[Tensor]:
    """Each part in the dtype of the tensor it belongs to."""
    return [part if part.dtype == own.dtype else part.to(own.dtype) for part, own in zip(parts, of, strict=False)]


def watched() -> bool:
    """Whether a transform, compile, export or a fake mode looks on, and is to see operators."""
    return captured() or torch._C._len_torch_dispatch_stack() > 0


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


def plainly(plain: Callable[..., Result], operator: Callable[..., Result]) -> Callable[..., Result]:
    """The ``operator`` where somebody looks on, else the function that it runs."""

    def call(*given: Any) -> Result:
        if watched():
            return operator(*given)
        with torch._C._AutoDispatchBelowAutograd():
            return plain(*given)

    return call


best_labels: Callable[..., Tensor] = plainly(operators.plain_best_labels, operators.best_labels)
k_best: Callable[..., tuple[Tensor, Tensor]] = plainly(operators.plain_k_best, operators.k_best)
slack_labels: Callable[..., Tensor] = plainly(operators.plain_slack_labels, operators.slack_labels)
slack_search: Callable[..., tuple[Tensor, Tensor, Tensor]] = plainly(
    operators.plain_slack_search, operators.slack_search
)


def value(chain: Chain, labels: Tensor | None, method: str) -> Tensor:
    """``log Z`` of each sequence, less the score of labels or the log-sum over sets of them; differentiable."""
    compute: Callable[..., Tensor] = operators.value
    if not torch.compiler.is_compiling():
        if forward_mode():
            return steps.value(chain, labels)
        if transformed():
            compute = apply(MappedValue)
        elif (
            torch._C._len_torch_dispatch_stack() == 0
        ):  # inside a function of autograd nothing tells whether it records
            found: Tensor = apply(Value)(*chain, labels, method, torch.is_grad_enabled())
            return found
    return compute(*chain, labels, method)


def gradient(grad: Tensor, *given: Any) -> Gradients:
    """The gradient of ``sum(grad * value)`` for emissions, transitions, start and end; differentiable."""
    compute: Callable[..., Gradients] = operators.gradient
    if not torch.compiler.is_compiling():
        if forward_mode():
            *parts, labels, _ = given
            return steps.gradient(grad, Chain(*parts), labels)
        if transformed():
            compute = apply(MappedGradient)
        elif torch._C._len_torch_dispatch_stack() == 0 and not batched(grad):
            compute = apply(Gradient)
    return compute(grad, *given)
