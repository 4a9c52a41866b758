"""Hostile values: anything that is no good argument."""

from __future__ import annotations

import contextlib
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import torch_multiclass as tm

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
ODD = [torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2]
SHAPES = [(), (0,), (1,), (2,), (3,), (0, 3), (2, 0), (2, 3), (3, 3), (1, 1), (3, 2, 3), (2, 3, 3), (0, 0, 0)]
FORMS = ["sparse", "csr", "nested", "jagged", "meta", "grad", "strided", "expanded", "parameter"]


def scalar(r: random.Random) -> Any:
    """Anything that is no tensor and no array."""
    return r.choice(
        [None, "", "x", "mean", "hinge", "é", b"ab", True, False, 0, 1, -1, 2, 3, 5, -100, 255, 2**63, -(2**63),
         10**30, 10**400, 0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e-308, 5e-324, 1e-45, 1e38, 1e300, math.nan, math.inf,
         -math.inf, 1j, np.float32(1), np.float64("nan"), np.int64(2), np.bool_(True), Fraction(1, 3), object(), int,
         ..., {}, {1: 2}, {1, 2}, (), [], [[]], [0, 1, 2], [1.0, [2.0]], [[1, 2], [3]], ["a"], ["O", "B-X"],
         [None], [math.nan] * 3, [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [[0.0, -1.0], [1.0, 0.0]], [10**30], range(3),
         slice(2), torch.float32, torch.int64, torch.Size([2]), torch.Generator(), np.random.default_rng(0),
         "cpu", torch.device("meta"), nn.Linear(2, 2), tm.CRFLoss(), tm.ArgmaxDecoder(), tm.costs.ZeroOne()]
    )  # fmt: skip


def array(r: random.Random) -> Any:
    """A numpy array of any dtype."""
    kind = r.choice(["f2", "f4", "f8", ">f8", "g", "i1", "u1", "u2", ">i4", "i8", "u8", "?", "c8", "O", "U1", "M8[s]"])
    return np.zeros(r.choice(SHAPES), dtype=kind)


def tensor(r: random.Random) -> Tensor:
    """A tensor of any dtype, shape, layout and device that is at hand."""
    dtype, shape = r.choice(FLOATS * 3 + INTEGERS + ODD), r.choice(SHAPES)
    fill = r.choice([0.0, 1.0, 2.0, -1.0, 300.0, 1e4, 1e30, 1e-40, math.nan, math.inf, -math.inf, None, None, None])
    base = torch.randn(shape) * 2 if fill is None else torch.full(shape, fill)
    if dtype in INTEGERS:
        # Around zero these are counts that fit, and much work that is asked for.
        least = 0 if dtype in (torch.uint16, torch.uint32) else -300
        base = base.nan_to_num(0.0, 100.0, -100.0).clamp(least, 300).long()
    made = base.to(dtype)
    form = r.choice(["plain"] * 8 + FORMS)
    with contextlib.suppress(RuntimeError, ValueError, NotImplementedError, TypeError, IndexError):
        if form == "sparse":
            return made.to_sparse()
        if form == "csr":
            return made.to_sparse_csr()
        if form in ("nested", "jagged"):
            layout = torch.jagged if form == "jagged" else torch.strided
            return torch.nested.nested_tensor([made, made], layout=layout)
        if form == "meta":
            return made.to("meta")
        if form == "grad":
            return made.requires_grad_()
        if form == "strided":
            return made.movedim(0, -1)
        if form == "expanded":
            return made[:1].expand(3, *made.shape[1:])
        if form == "parameter":
            return nn.Parameter(made)
    return made


def hostile(r: random.Random) -> Any:
    """Any value at all."""
    return r.choice([scalar, scalar, array, tensor, tensor, tensor])(r)
