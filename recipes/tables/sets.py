"""Which sets, codes and splits the tables are about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

FOLDS = 10
"""Of cross-validation, and how many random codes of a kind are drawn: each fold has its own."""

CODES = ("one-vs-all", "complete", "all-pairs", "dense", "sparse")


@dataclass(frozen=True)
class Set:
    """A row of the tables.

    Args:
        name: of the file.
        paper: what the paper calls it.
        official: whether its official split is used, and not cross-validation.
        codes: those that the paper has a figure for.
        machines: whether it is in the table of support vector machines.
        note: what differs from the paper's set.
    """

    name: str
    paper: str
    official: bool = False
    codes: tuple[str, ...] = CODES
    machines: bool = True
    note: str = ""

    def numbers(self, code: str) -> range:
        """The trainings of a cell: by fold, and by draw of a random code."""
        return range(1 if self.official and not drawn(code) else FOLDS)


MANY = ("one-vs-all", "dense", "sparse")
SETS = (
    Set("dermatology", "dermatology"),
    Set("satimage", "satimage", official=True),
    Set("glass", "glass", note="six classes; the paper counts a seventh that has no example"),
    Set("segmentation", "segmentation", machines=False),
    Set("ecoli", "ecoli"),
    Set("pendigits", "pendigits", official=True),
    Set("soybean", "soybean", official=True, codes=("one-vs-all", "all-pairs", "dense", "sparse")),
    Set("thyroid", "thyroid", codes=MANY, machines=False),
    Set(
        "audiology",
        "audiology",
        codes=("one-vs-all", "all-pairs", "dense", "sparse"),
        machines=False,
        note="10-fold cross-validation of 226 rows; the paper's figures are multiples of 1/26",
    ),
    Set("isolet1", "isolet", codes=MANY, machines=False, note="a fifth of the rows, and cross-validated"),
    Set("letter", "letter", official=True, codes=("one-vs-all", "all-pairs", "dense", "sparse"), machines=False),
)


PAIR = ("one-vs-all", "all-pairs")
"""The codes that are tuned with a Gaussian kernel."""
TOO_MANY = {("complete", "pendigits")}
"""Where C is not chosen: 511 machines, each of which would be fitted ten times more."""


def by_name(name: str) -> Set:
    """The set of that name."""
    return next(one for one in SETS if one.name == name)


def drawn(code: str) -> bool:
    """Whether there are many codes of that name."""
    return code in ("dense", "sparse")


def codes_of(table: str, one: Set) -> tuple[str, ...]:
    """Which codes a set is tried with in a table."""
    if table == "table2":
        return one.codes
    wanted = {
        "table3": one.codes,
        "table3_tuned": [code for code in one.codes if (code, one.name) not in TOO_MANY],
        "gaussian": [code for code in one.codes if code in PAIR],
    }
    return tuple(wanted[table]) if one.machines else ()


@cache
def code_of(name: str, classes: int, seed: int = 0) -> Tensor:
    """The code of that name; the paper's rule rejects no more than the paper does."""
    import torch

    import torch_multiclass as tm

    if drawn(name):
        draw = tm.codes.dense_random if name == "dense" else tm.codes.sparse_random
        return draw(classes, rule="paper", generator=torch.Generator().manual_seed(seed), progress=False)
    make = {"one-vs-all": tm.codes.one_vs_all, "complete": tm.codes.complete, "all-pairs": tm.codes.one_vs_one}
    return make[name](classes)
