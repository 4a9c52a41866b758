"""What every part checks about its arguments, and the words it uses to say so.

Messages read ``argument: what came; what is accepted``. Checks of shapes and dtypes always run; checks of values
read the tensor, so they run by default on the CPU only (`validate_args=True` asks for them on any device), and never
while a graph is being captured, where there is no value to read.
"""

from __future__ import annotations

from torch_multiclass.checks.calls import caller, told
from torch_multiclass.checks.targets import (
    Target,
    all_labels,
    class_indices,
    label_range,
    labels,
    usual_labels,
)
from torch_multiclass.checks.tensors import (
    FLOATING,
    INTEGERS,
    boolean,
    broadcasts,
    dense,
    floating,
    generator,
    integers,
    is_tensor,
    numbers,
    same_device,
    shape,
    signed,
    with_values,
)
from torch_multiclass.checks.values import (
    IGNORE,
    captured,
    choice,
    flag,
    forward_mode,
    integer,
    keywords,
    label_names,
    maker,
    named,
    plain,
    positive,
    real,
    share,
    shown,
    temperature,
    transformed,
    values_readable,
    whole,
)

__all__ = [
    "FLOATING",
    "IGNORE",
    "INTEGERS",
    "Target",
    "all_labels",
    "boolean",
    "broadcasts",
    "caller",
    "captured",
    "choice",
    "class_indices",
    "dense",
    "flag",
    "floating",
    "forward_mode",
    "generator",
    "integer",
    "integers",
    "is_tensor",
    "keywords",
    "label_names",
    "maker",
    "named",
    "label_range",
    "labels",
    "numbers",
    "plain",
    "positive",
    "real",
    "same_device",
    "shape",
    "share",
    "shown",
    "temperature",
    "signed",
    "told",
    "transformed",
    "usual_labels",
    "values_readable",
    "whole",
    "with_values",
]
