"""Faults in words."""

from __future__ import annotations

import collections
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from tests.hostile.verdict import Fault, plain

PACKAGE = str(Path(tm.__file__).parent)


def describe(value: Any) -> str:
    """An argument in a line."""
    if isinstance(value, Tensor):
        numbers = value.detach().flatten().tolist() if plain(value) and value.numel() <= 12 else ""
        shape = "nested" if value.is_nested else tuple(value.shape)
        form = "" if value.layout == torch.strided else value.layout
        return f"<{str(value.dtype)[6:]} {shape} {form} {value.device.type}{' grad' * value.requires_grad} {numbers}>"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(f'{n}={describe(v)}' for n, v in fields if v is not None)})"
    if isinstance(value, np.ndarray):
        return f"<array {value.dtype} {value.shape}>"
    try:
        return repr(value)[:200]
    except ValueError:
        return f"<{type(value).__name__}>"


def report(faults: list[Fault]) -> str:
    """The faults, those alike together, the most frequent first."""
    alike = collections.defaultdict(list)
    for fault in faults:
        alike[fault.subject, re.sub(r"[\d.]+", "#", fault.what)[:90]].append(fault)
    lines = []
    for group in sorted(alike.values(), key=len, reverse=True):
        first = group[0]
        places = re.findall(rf'File "{re.escape(PACKAGE)}/([^"]+)", line (\d+)', first.trace)
        where = " < ".join(f"{file}:{line}" for file, line in places[::-1][:3])
        lines.append(f"{len(group):4d} {first.subject}: {first.what[:240]}   [{where}]")
        for given in [*first.earlier, first.given]:
            lines.append("        " + ", ".join(f"{name}={describe(value)}" for name, value in given.items())[:700])
    return "\n".join(lines)
