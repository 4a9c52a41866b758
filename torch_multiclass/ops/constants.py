"""Buffers that follow from a module's arguments, and hold whatever happens to their storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self


class Constants(nn.Module):
    """A module with constants: buffers that no checkpoint need bring, because the constructor knows them.

    A module built on the meta device and given storage by ``to_empty`` holds garbage until a `state_dict` is loaded,
    and what is not in the `state_dict` would hold it for ever. Constants are written anew when they get storage, when
    a checkpoint is loaded with ``assign=True``, and by `reset_parameters`.
    """

    _constants: dict[str, Tensor] = {}  # noqa: RUF012 - never written to: `register_constant` makes a new one

    def register_constant(self, name: str, buffer: Tensor | None, value: Tensor | None = None) -> None:
        """Register a buffer outside the `state_dict` that holds ``value``, by default what it holds now."""
        self.register_buffer(name, buffer, persistent=False)
        self.know_buffer(name, buffer if value is None else value)

    def know_buffer(self, name: str, value: Tensor | None) -> None:
        """Let a buffer hold ``value`` whenever it is written anew; one of the `state_dict`, until another is loaded."""
        known = {key: kept for key, kept in self._constants.items() if key != name}
        self._constants = known if value is None else {**known, name: value.detach().clone()}

    def reset_parameters(self) -> None:
        """Write the constants anew."""
        for name, value in self._constants.items():
            self._write(name, value)

    def _write(self, name: str, value: Tensor) -> None:
        buffer = self._buffers.get(name)
        if buffer is not None and not buffer.is_meta and not value.is_meta:
            with torch.no_grad():
                buffer.copy_(value)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        before = {name: self._buffers.get(name) for name in self._constants}
        super()._apply(fn, *args, **kwargs)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            if old is not None and self._buffers.get(name) is not old:  # given other storage, perhaps an empty one
                self._write(name, self._constants[name] if old.is_meta else old)
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *args: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)
        for name, value in self._constants.items():
            buffer = self._buffers.get(name)
            if name not in self._non_persistent_buffers_set:
                self.know_buffer(name, buffer)
            elif buffer is not None and buffer.is_meta and local_metadata.get("assign_to_params_buffers", False):
                device = next(
                    (entry.device for entry in state_dict.values() if isinstance(entry, Tensor)), value.device
                )
                self._buffers[name] = value.to(device, buffer.dtype)


def home() -> torch.device:
    """The default device, for what is written down; the CPU where that is the meta device, which holds no values."""
    device = torch.empty(0).device
    return torch.device("cpu") if device.type == "meta" else device
