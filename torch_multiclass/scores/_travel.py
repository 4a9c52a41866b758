"""What every score class can do as a bundle of tensors: move, detach, be indexed and put together, be seen through."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.fx._pytree import register_pytree_flatten_spec
from torch.utils import _pytree as pytree
from typing_extensions import Self

from torch_multiclass.checks import numbers, shown
from torch_multiclass.scores._cat import CAT, cat


class Travels:
    """Moves like a tensor: ``to``, ``cpu``, ``cuda``, ``float``, ``detach``, ``device``, ``dtype``, ``shape``,
    ``[rows]``, and ``torch.cat``, which pads sequences to the longest.

    What carries dictionaries of tensors only (a gather over processes, the evaluation loop of a trainer) carries
    `as_rows`, which `with_rows` reads. A subclass is a dataclass whose fields are tensors, None or numbers, and says
    which of its fields have a row for each example.
    """

    leading: ClassVar[str]
    """The field that says the shape, the device and the dtype."""
    field_names: ClassVar[tuple[str, ...]]
    """All fields, kept by `registered`; a subclass that computes what its base holds names its own."""

    def _own_dims(self) -> dict[str, int]:
        """The fields with a row for each example, and how many dimensions each has behind those of the batch."""
        raise NotImplementedError

    def _with(self, **changes: Any) -> Self:
        """The same scores with other fields, which are not checked again."""
        new = object.__new__(type(self))
        if torch.compiler.is_compiling():
            for name in self.field_names:
                setattr(new, name, changes[name] if name in changes else getattr(self, name))
        else:
            vars(new).update(vars(self), **changes)
        return new

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        own = {name: getattr(self, name) for name in self.field_names}
        return self._with(**{name: change(part) for name, part in own.items() if isinstance(part, Tensor)})

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """On another device or in another floating dtype, with the arguments of `torch.Tensor.to`."""
        try:
            device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        except (TypeError, RuntimeError) as error:
            given = ", ".join([*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())])
            raise TypeError(
                f"to: got {given}; accepted are a device, a floating dtype or a tensor that has both"
            ) from error
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"to: got {dtype}; accepted are floating dtypes")

        def move(part: Tensor) -> Tensor:
            return part.to(device, dtype if part.is_floating_point() else None, non_blocking)

        return self._map(move)

    def cpu(self) -> Self:
        """In the memory of the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | torch.device | None = None) -> Self:
        """In the memory of a GPU."""
        return self._map(lambda part: part.cuda(device))

    def detach(self) -> Self:
        """Without history."""
        return self._map(Tensor.detach)

    def float(self) -> Self:
        """In float32."""
        return self.to(torch.float32)

    def double(self) -> Self:
        """In float64."""
        return self.to(torch.float64)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """``torch.cat`` of scores of one kind along the first dimension of the batch; nothing else of torch."""
        if func in CAT:
            return cat(*args, **(kwargs or {}))
        raise TypeError(_no_tensor(cls, getattr(func, "__name__", str(func))))

    if not TYPE_CHECKING:  # a checker refuses what there is not

        def __getattr__(self, name: str) -> Any:
            """Of what a tensor has and scores have not, say what is meant; else Python's own error."""
            if torch.compiler.is_compiling():  # which follows none of what is below
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if hasattr(Tensor, name) and not hasattr(type(self), name):
                raise AttributeError(_no_tensor(type(self), name), name=name, obj=self)
            return object.__getattribute__(self, name)

    def _alike(self, steps: int, masked: bool) -> Self:
        """The same scores with so many positions, the new ones masked, and a mask if asked for: to be put together."""
        return self

    @property
    def _steps(self) -> int:
        """How many positions a structure has that may be padded."""
        return 0

    def _batch_shape(self) -> torch.Size:
        lead = self._lead()
        return lead.shape[: lead.ndim - self._own_dims()[self.leading]]

    def _each(self) -> dict[str, Tensor]:
        """The tensors that have a row for each example, with the whole shape of the batch."""
        batch, each = self._batch_shape(), {}
        for name, dims in self._own_dims().items():
            part = getattr(self, name)
            if isinstance(part, Tensor):
                each[name] = part.expand(*batch, *part.shape[part.ndim - dims :])
        return each

    def as_rows(self) -> dict[str, Tensor]:
        """The tensors with a row for each example, without what examples share, such as transitions or a code.

        Of sequences always the mask, as int8 with 1 where a position counts, so that whoever pads the second dimension
        of each, with 0 or with -100, masks what it adds.

        Example:
            >>> import torch
            >>> from torch_multiclass import ChainScorer
            >>> scorer = ChainScorer(4, 3)
            >>> rows = scorer(torch.randn(2, 5, 4)).as_rows()
            >>> {name: tuple(part.shape) for name, part in rows.items()}
            {'emissions': (2, 5, 3), 'mask': (2, 5)}
            >>> scorer(torch.randn(1, 1, 4)).with_rows(rows).decode().labels.shape
            torch.Size([2, 5])
        """
        each = self._alike(self._steps, True)._each()
        return {name: part.to(torch.int8) if part.dtype == torch.bool else part for name, part in each.items()}

    def with_rows(self, rows: Mapping[str, Any]) -> Self:
        """What `as_rows` gave, perhaps put together of several batches, as scores that share what these share.

        Args:
            rows: tensors or NumPy arrays, by the names of `as_rows`.

        Raises:
            ValueError: other names, or what the scores refuse.
        """
        base = self._alike(self._steps, True)
        each = base._each()
        if not isinstance(rows, Mapping) or set(rows) != set(each):
            given = ", ".join(map(str, rows)) if isinstance(rows, Mapping) else shown(rows)
            raise ValueError(f"rows: got {given}; accepted are {', '.join(each)}, as `as_rows` gives them")
        lead, changes = self._lead(), {}
        for name, own in each.items():
            part = numbers(name, rows[name], "numbers, as `as_rows` gives them", booleans=True).to(lead.device)
            changes[name] = part == 1 if own.dtype == torch.bool else part.clamp(min=-1) if name == "parents" else part
        new = base._with(**changes)
        new._check_again()
        return new

    def _check_again(self) -> None:
        self.__post_init__()  # type: ignore[attr-defined]

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        return self._lead().device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the scores as given."""
        return self._lead().dtype

    @property
    def shape(self) -> torch.Size:
        """The shape of the scores as given."""
        return self._lead().shape

    def _lead(self) -> Tensor:
        lead: Tensor = getattr(self, self.leading)
        return lead

    def __getitem__(self, rows: Any) -> Self:
        """The scores of some rows: whatever indexes a tensor of the shape of the batch."""
        own, lead, batch = self._own_dims(), self._lead(), self._batch_shape()
        count = math.prod(batch)  # `numel` would make a dynamic batch a constant
        number = torch.arange(count, device=lead.device).view(batch)
        try:
            chosen = number[rows]
        except (IndexError, TypeError, ValueError, RuntimeError) as error:
            raise IndexError(
                f"rows: got {shown(rows)} for a batch of shape {tuple(batch)}; accepted is an index of it"
            ) from error

        def pick(part: Tensor, dims: int) -> Tensor:
            tail = part.shape[part.ndim - dims :]
            return part.expand(*batch, *tail).reshape(count, *tail)[chosen]

        named = {name: (getattr(self, name), dims) for name, dims in own.items()}
        return self._with(
            **{name: pick(part, dims) for name, (part, dims) in named.items() if isinstance(part, Tensor)}
        )


def _no_tensor(kind: type, asked: str) -> str:
    """What is said where scores are taken for a tensor."""
    return (
        f"{asked}: got {kind.__name__}, the scores of a structure and no tensor; accepted are "
        "head.predict(scores) for labels, head.predict_proba(scores) for probabilities and "
        "head.loss(scores, target) for the loss"
    )


def _refusal(operator: str) -> Callable[..., Any]:
    def refuse(self: Travels, *_: object) -> Any:
        raise TypeError(_no_tensor(type(self), f"the operator {operator}"))

    return refuse


_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "matmul": "@", "pow": "**"}
for _name, _operator in _OPERATORS.items():
    setattr(Travels, f"__{_name}__", _refusal(_operator))
    setattr(Travels, f"__r{_name}__", _refusal(_operator))
for _name, _operator in {"neg": "-", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Travels, f"__{_name}__", _refusal(_operator))


def _are_numbers(part: object) -> bool:
    """Whether a field holds sizes, which are not of the data."""
    return isinstance(part, tuple) and all(type(entry) is int for entry in part)


T = TypeVar("T", bound=Travels)


def registered(kind: type[T]) -> type[T]:
    """A decorator: the class is a pytree of its tensors, for export, functorch and whoever moves trees of tensors, and
    is loaded as tensors are."""
    title = f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    own = kind.field_names = vars(kind).get("field_names", tuple(defaults))

    def flatten(scores: T) -> tuple[list[Any], Any]:
        held, rest, values = [], [], []
        for name in own:
            part = getattr(scores, name)
            said = part is None or isinstance(part, (bool, str)) or _are_numbers(part)
            if said or (isinstance(part, float) and part == defaults.get(name)):
                rest.append((name, part))
            else:  # a tensor, or what a utility put in its place
                held.append(name)
                values.append(part)
        return values, (tuple(held), tuple(rest))

    def unflatten(values: Iterable[Any], context: Any) -> T:
        names, rest = context
        new = object.__new__(kind)  # not checked: what utilities put in place of tensors may be anything
        for name, part in [*zip(names, values, strict=True), *rest]:
            setattr(new, name, part)
        return new

    def with_keys(scores: T) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(scores)
        return [(pytree.GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    pytree.register_pytree_node(
        kind,
        flatten,
        unflatten,
        serialized_type_name=title,
        to_dumpable_context=lambda context: [list(context[0]), [list(pair) for pair in context[1]]],
        from_dumpable_context=lambda dumped: (
            tuple(dumped[0]),
            tuple((name, tuple(part) if isinstance(part, list) else part) for name, part in dumped[1]),
        ),
        flatten_with_keys_fn=with_keys,
    )
    torch.serialization.add_safe_globals([kind])  # for `torch.load(..., weights_only=True)`
    # exported programs of torch 2.6 flatten their inputs by this
    register_pytree_flatten_spec(kind, lambda scores, spec: [getattr(scores, name) for name in spec.context[0]])
    return kind
