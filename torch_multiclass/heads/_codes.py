"""The coding matrix of a head, from a matrix or the name of a construction."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import codes
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes.names import NAMES


def written_code(code: str | CodeLike, num_classes: int | None, generator: torch.Generator | None) -> Tensor:
    """The coding matrix itself, of the right number of classes."""
    check.generator(generator)
    if num_classes is not None:
        num_classes = check.whole("num_classes", num_classes, least=2)
    if isinstance(code, str):
        code = check.named("code", code, NAMES)
        if num_classes is None:
            raise ValueError(f"num_classes: got None with the code {code!r}; accepted is the number of classes")
        return codes.by_name(code, num_classes, generator)
    matrix = codes.as_code(code)
    if num_classes is not None and num_classes != len(matrix):
        raise ValueError(f"code: has {len(matrix)} rows; accepted are {num_classes}, one for each class")
    return matrix
