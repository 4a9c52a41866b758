"""Coding matrices: how a class becomes a row of binary questions, and how far apart the rows are.

A code is an int8 tensor ``M`` of shape ``(K, L)`` with entries -1, 0 and +1: row `r` is the code word of
class `r`, column `s` a binary problem that ignores the classes with a 0 (Allwein, Schapire and Singer (2000),
section 3; Mohri, Rostamizadeh and Talwalkar, Foundations of Machine Learning, section 9.4.3).
"""

from torch_multiclass.checks import lacks
from torch_multiclass.codes.checks import CodeLike as CodeLike
from torch_multiclass.codes.checks import as_code as as_code
from torch_multiclass.codes.checks import check
from torch_multiclass.codes.constructions import complete, hadamard, minimal, one_vs_all, one_vs_one
from torch_multiclass.codes.names import by_name, name_of
from torch_multiclass.codes.properties import correctable, min_row_distance, row_distances
from torch_multiclass.codes.search import dense_random, sparse_random
from torch_multiclass.ops.coding import OneVsAll, OneVsOne

__all__ = [
    "OneVsAll",
    "OneVsOne",
    "by_name",
    "check",
    "complete",
    "correctable",
    "dense_random",
    "hadamard",
    "min_row_distance",
    "minimal",
    "name_of",
    "one_vs_all",
    "one_vs_one",
    "row_distances",
    "sparse_random",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
