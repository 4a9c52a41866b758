"""Pictures, a function for each thing that people look at; matplotlib is imported by the one that draws.

Each takes numbers (tensors, arrays or lists), draws into the axes given, or into new ones, and returns them.
"""

from torch_multiclass.checks import lacks
from torch_multiclass.plots.calibration import reliability
from torch_multiclass.plots.codes import code
from torch_multiclass.plots.examples import marginals, misread
from torch_multiclass.plots.labels import confusion, errors
from torch_multiclass.plots.margins import margin_distribution, margins
from torch_multiclass.plots.regions import regions
from torch_multiclass.plots.sequences import transitions
from torch_multiclass.plots.solvers import gap, rounds
from torch_multiclass.plots.trees import tree

__all__ = [
    "code",
    "confusion",
    "errors",
    "gap",
    "margin_distribution",
    "margins",
    "marginals",
    "misread",
    "regions",
    "reliability",
    "rounds",
    "transitions",
    "tree",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
