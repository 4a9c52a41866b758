"""The codes that go by a name: making one, and recognising one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass import checks as validate
from torch_multiclass.codes.constructions import MOST_COMPLETE, complete, hadamard, minimal, one_vs_all, one_vs_one
from torch_multiclass.codes.search import dense_random, sparse_random, usual_columns
from torch_multiclass.codes.words import count_splits
from torch_multiclass.ops.coding import KNOWN

__all__ = ["NAMES", "by_name", "name_of"]

FIXED: dict[str, Callable[[int], Tensor]] = {
    "one_vs_all": one_vs_all,
    "one_vs_one": one_vs_one,
    "complete": complete,
    "minimal": minimal,
    "hadamard": hadamard,
}
"""Constructions with one code for each number of classes."""

DRAWN: dict[str, tuple[Callable[..., Tensor], int, int]] = {
    "dense_random": (dense_random, 10, 2),
    "sparse_random": (sparse_random, 15, 3),
}
"""Constructions that draw one; the columns they take for a bit of the classes, and the symbols they use."""

NAMES = (*FIXED, *DRAWN)


def by_name(name: str, k: int, generator: torch.Generator | None = None) -> Tensor:
    """The code of that name for ``k`` classes; ``generator`` is for the random ones.

    See `torch_multiclass.codes`, where each is described.

    Shape:
        the code is ``(K, L)``, int8.

    Example:
        >>> by_name("one_vs_one", 3).shape
        torch.Size([3, 3])
    """
    name = validate.named("code", name, NAMES)
    if name in FIXED:
        return FIXED[name](k)
    k = validate.whole("k", k, least=2)
    draw, factor, symbols = DRAWN[name]
    columns = min(usual_columns(k, factor), count_splits(k, symbols))  # all there are, without a word
    return draw(k, columns, generator=generator)


def name_of(code: Tensor) -> str | None:
    """The fixed construction that gives this very matrix, or None.

    The shape rules nearly all out, and the rest is compared once: who keeps a code keeps its name (`CodedScorer`).
    See `torch_multiclass.codes`.

    Shape:
        a code ``(K, L)``.

    Example:
        >>> name_of(one_vs_one(5)), name_of(-one_vs_one(5))
        ('one_vs_one', None)
    """
    validate.integers("code", code, "-1, 0 and +1")
    if code.ndim != 2:
        raise ValueError(f"code: got shape {tuple(code.shape)}; accepted is (K, L)")
    if not validate.values_readable(code, True):
        return None
    k, columns = code.shape
    bits = (k - 1).bit_length()
    wide = {"one_vs_one": k * (k - 1) // 2, "one_vs_all": k, "minimal": bits, "hadamard": 2**bits - 1}
    if k <= MOST_COMPLETE:
        wide["complete"] = 2 ** (k - 1) - 1
    for name, width in wide.items():
        same = (
            KNOWN[name](k).equals
            if name in KNOWN
            else lambda code, name=name: torch.equal(code, FIXED[name](k).to(code))
        )
        if columns == width and same(code):
            return name
    return None
