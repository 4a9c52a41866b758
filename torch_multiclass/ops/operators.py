"""A recursion as operators of torch: one node for compile and export, whatever the number of its steps.

``value`` is what the recursion computes, and its derivative is ``gradient``, which is differentiated by the recursion
itself. Outside of a capture nothing of this is needed: the recursion runs as it is, on the tape of autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch._ops import OpOverload

from torch_multiclass.checks import captured, forward_mode, transformed
from torch_multiclass.ops.precision import no_autocast

Recursion = Callable[..., Tensor]

_LIBRARY: Any = torch.library.Library("torch_multiclass", "FRAGMENT")  # type: ignore[no-untyped-call]


def operator(schema: str, kernel: Callable[..., Any], fake: Callable[..., Any]) -> OpOverload:
    """The operator ``torch.ops.torch_multiclass.NAME`` of a schema ``"NAME(Tensor x, int k) -> Tensor"``.

    With `differentiate` or `without_derivative` it is what `torch.library.custom_op` makes, in a tenth of the time,
    which every import of the package would take.

    Args:
        schema: of the operator, which changes no argument and returns none.
        kernel: computes it, on every device.
        fake: makes what ``kernel`` returns without values.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, _disable_dynamo(lambda *given: kernel(*given)), "CompositeExplicitAutograd")
    torch.library.register_fake(f"torch_multiclass::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.torch_multiclass, name).default  # type: ignore[no-any-return]


def differentiate(made: OpOverload, backward: Callable[..., Any], keep: Callable[..., None] | None = None) -> None:
    """Give an operator the derivative ``backward(ctx, *grads)``, which finds in ``ctx`` what ``keep`` left there."""
    torch.library.register_autograd(made._schema.name, backward, setup_context=keep, lib=_LIBRARY)


class _Final(torch.autograd.Function):
    """What an operator computes, where nobody may go back through it."""

    @staticmethod
    def forward(ctx: Any, made: OpOverload, *given: Any) -> Any:
        ctx.made = made
        with torch._C._AutoDispatchBelowAutograd():
            return made(*given)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise NotImplementedError(f"{ctx.made._schema.name}: has no derivative")


def without_derivative(made: OpOverload) -> None:
    """Let an operator return labels, or numbers whose derivative raises; in forward mode these are constants."""

    def call(*given: Any) -> Any:
        if forward_mode():
            given = tuple(part.detach() if isinstance(part, Tensor) else part for part in given)
        elif not transformed():
            return _Final.apply(made, *given)  # type: ignore[no-untyped-call]
        with torch._C._AutoDispatchBelowAutograd():  # a transform takes no function of autograd inside an operator
            found = made(*given)
        recorded = torch.is_grad_enabled() and any(isinstance(part, Tensor) and part.requires_grad for part in given)
        if recorded and any(part.is_floating_point() for part in (found if isinstance(found, tuple) else [found])):
            raise NotImplementedError(f"{made._schema.name}: has no derivative")
        return found

    _LIBRARY.impl(made._schema.name, call, "Autograd")


def map_by(made: OpOverload, rule: Callable[..., tuple[Any, Any]]) -> None:
    """Give an operator its rule for `torch.vmap`."""
    torch.library.register_vmap(made._schema.name, rule, lib=_LIBRARY)


class Differentiable:
    """``log Z`` of each row of a batch, as a recursion over tensors.

    Args:
        name: of the operators.
        recursion: scores, then what is not differentiated, to values ``(B,)`` in the dtype of the scores.
        scores: the names of the tensors that are differentiated; their first dimension of the first is the batch.
        others: the schema of the other arguments, such as ``"Tensor? lengths"``.
    """

    def __init__(self, name: str, recursion: Recursion, scores: tuple[str, ...], others: str) -> None:
        self.recursion, self.count = recursion, len(scores)
        arguments = ", ".join([*(f"Tensor {score}" for score in scores), others])
        gradients = ", ".join(["Tensor"] * self.count)
        self.value = operator(
            f"{name}_value({arguments}) -> Tensor", self._value, lambda first, *_: first.new_empty(first.shape[0])
        )
        self.gradient = operator(
            f"{name}_gradient(Tensor grad, {arguments}) -> ({gradients})",
            self._gradient,
            lambda grad, *given: tuple(
                torch.empty_like(part, memory_format=torch.contiguous_format) for part in given[: self.count]
            ),
        )
        differentiate(self.value, self._value_backward, _keep)
        differentiate(self.gradient, self._gradient_backward, _keep)

    def __call__(self, *given: Any) -> Tensor:
        """The value."""
        if torch.compiler.is_compiling():
            value: Tensor = self.value(*given)
            return value
        with no_autocast(given[0]):
            return self.recursion(*given)

    def gradients(self, *given: Any) -> tuple[Tensor, ...]:
        """The derivative of the summed values for each of the scores; differentiable."""
        if torch.compiler.is_compiling():
            return self.gradient(given[0].new_ones(given[0].shape[0]), *given)  # type: ignore[no-any-return]
        return self._differentiated(None, *given)

    def _value(self, *given: Any) -> Tensor:
        with no_autocast(given[0]):
            return self.recursion(*given)

    def _gradient(self, grad: Tensor, *given: Any) -> tuple[Tensor, ...]:
        plain = (part.detach() if isinstance(part, Tensor) else part for part in given)  # the operator is what records
        with _tape():
            found = self._differentiated(grad.detach(), *plain)
            return tuple(part.clone(memory_format=torch.contiguous_format) for part in found)

    def _differentiated(self, grad: Tensor | None, *given: Any) -> tuple[Tensor, ...]:
        recorded = torch.is_grad_enabled() and any(score.requires_grad for score in given[: self.count])
        if captured():  # a transform of torch.func

            def total(*scores: Tensor) -> Tensor:
                return self.recursion(*scores, *given[self.count :]).sum()

            gradients: tuple[Tensor, ...] = torch.func.grad(total, argnums=tuple(range(self.count)))(
                *given[: self.count]
            )
            return gradients
        with torch.inference_mode(False), torch.enable_grad(), no_autocast(given[0]):
            given = tuple(map(_normal, given))
            scores = [score if recorded and score.requires_grad else score.detach() for score in given[: self.count]]
            scores = [score if score.requires_grad else score.requires_grad_() for score in scores]
            value = self.recursion(*scores, *given[self.count :])
            grad = torch.ones_like(value) if grad is None else grad
            if not value.requires_grad:
                return tuple(map(torch.zeros_like, scores))
            return torch.autograd.grad(value, scores, grad, create_graph=recorded, materialize_grads=True)

    def _value_backward(self, ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        given = ctx.given()
        return *self.gradient(grad.contiguous(), *given), *[None] * (len(given) - self.count)

    def _gradient_backward(self, ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
        grad, *given = ctx.given()
        with torch.enable_grad():
            inputs = [part.detach().requires_grad_() for part in (grad, *given[: self.count])]
            value = self.recursion(*inputs[1:], *given[self.count :])
            first = torch.autograd.grad(value, inputs[1:], inputs[0], create_graph=True, materialize_grads=True)
            second = torch.autograd.grad(first, inputs, along, materialize_grads=True)
        return *second, *[None] * (len(given) - self.count)


def _normal(given: Any) -> Any:
    """A tensor that autograd may keep, where it was made in inference mode."""
    return given.clone() if isinstance(given, Tensor) and given.is_inference() else given


@contextmanager
def _tape() -> Iterator[None]:
    """Autograd as usual, inside of an operator, where it is off."""
    include, exclude = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    with torch._C._ForceDispatchKeyGuard(include, exclude - exclude), torch.enable_grad():
        yield


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    at = [i for i, given in enumerate(inputs) if isinstance(given, Tensor)]
    ctx.save_for_backward(*(inputs[i] for i in at))
    rest = [None if i in at else given for i, given in enumerate(inputs)]

    def given() -> list[Any]:
        found = list(rest)
        for i, tensor in zip(at, ctx.saved_tensors, strict=True):
            found[i] = tensor
        return found

    ctx.given = given
