"""The coding matrix of a head, from a matrix or the name of a construction."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import codes
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes.names import NAMES


def written_code(code: str | CodeLike, num_classes: object, generator: torch.Generator | None) -> Tensor:
    """The coding matrix itself, of the right number of classes."""
    check.generator(generator)
    count = None
    if num_classes is not None:
        if isinstance(num_classes, (list, tuple)) or getattr(num_classes, "ndim", 0) == 2:
            raise ValueError(
                f"num_classes: got {check.shown(num_classes)}; accepted is a whole number; a code is code=..."
            )
        count = check.whole("num_classes", num_classes, least=2)
    if isinstance(code, str):
        code = check.named("code", code, NAMES)
        if count is None:
            raise ValueError(f"num_classes: got None with the code {code!r}; accepted is the number of classes")
        return codes.by_name(code, count, generator)
    matrix = codes.as_code(code)
    if count is not None and count != len(matrix):
        raise ValueError(f"code: has {len(matrix)} rows; accepted are {count}, one for each class")
    return matrix
