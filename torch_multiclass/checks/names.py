"""What is said of a name that a module of the package lacks. Nothing is imported for it: sources are read."""

from __future__ import annotations

import ast
import sys
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

PACKAGE = __name__.partition(".")[0]
INTERNAL = ("checks", "integrations", "ops", "options")
"""Modules whose names are not what a user means."""
ELSEWHERE = {"margins": "ops.margins", "integrations.sklearn": "integrations.sklearn"}
"""Where modules are that a user knows by these names."""


OTHER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("crf", "crfhead", "linearchaincrf"), ("ChainHead",)),
    **dict.fromkeys(("crossentropyloss", "nllloss"), ("CRFLoss",)),
    **dict.fromkeys(("linearsvc", "linearsvm", "multiclasssvm", "nusvc", "svc", "svm"), ("solvers.DualSVM",)),
    **dict.fromkeys(("ssvm", "structuredsvm"), ("solvers.FrankWolfe", "solvers.CuttingPlane")),
    **dict.fromkeys(("f1", "f1score"), ("metrics.SpanF1",)),
    **dict.fromkeys(("hammingdistance", "hammingloss"), ("metrics.HammingError",)),
    **dict.fromkeys(("rbf", "rbfkernel"), ("kernels.Gaussian",)),
    **dict.fromkeys(("hingeloss", "multimarginloss"), ("CrammerSingerLoss", "margins.Hinge")),
    "adaboostclassifier": ("solvers.AdaBoostMH", "solvers.AdaBoost"),
    "baggingclassifier": ("solvers.Bagging",),
    "bcewithlogitsloss": ("margins.Logistic",),
    "decisiontreeclassifier": ("solvers.DecisionTree",),
    "ece": ("metrics.CalibrationError",),
    "extratreesclassifier": ("solvers.RandomTrees", "solvers.RandomForest"),
    "logisticregression": ("MulticlassHead", "solvers.BinaryLogistic"),
    "onevsoneclassifier": ("OneVsOneHead", "solvers.CodedReduction"),
    "onevsrestclassifier": ("OneVsAllHead", "solvers.CodedReduction"),
    "outputcodeclassifier": ("ECOCHead", "solvers.CodedReduction"),
    "randomforestclassifier": ("solvers.RandomForest",),
    "sgdclassifier": ("solvers.Pegasos",),
}
"""What other libraries call it, by its letters."""


def lacks(module: str) -> None:
    """Have a module say, of a name that it lacks, which of the package may be meant; called at its end."""

    def __getattr__(name: str) -> Any:
        raise lacking(module, name)

    vars(sys.modules[module]).setdefault("__getattr__", __getattr__)


def lacking(module: str, name: str) -> AttributeError:
    """The error of a name that a module lacks, with those that may be meant, wherever they are."""
    words = f"module {module!r} has no attribute {name!r}"
    meant = near(name) if name.isidentifier() and not name.startswith("_") else []
    return AttributeError(f"{words}; meant may be {', '.join(meant)}" if meant else words)


def near(name: str) -> list[str]:
    """Where the names of the package are that are spelled like this one, at most three; of those that are the same up
    to case only these.

    Example:
        >>> near("SpanF1")
        ['torch_multiclass.metrics.SpanF1']
    """
    known, key = _known(), _key(name)
    if key in OTHER:
        return [f"{PACKAGE}.{place}" for place in OTHER[key]]
    keys = [key] if key in known else get_close_matches(key, known, cutoff=0.65)
    places = [place for one in keys for place in known[one]]
    return [place for place in places if place.endswith(f".{name}")] or places[:3]


def _key(name: str) -> str:
    return name.replace("_", "").lower()


@cache
def _known() -> dict[str, list[str]]:
    """The public names by their letters, each with its places."""
    package = sys.modules[PACKAGE]
    top = list(package.__all__)
    places = [(name, f"{PACKAGE}.{name}") for name in top]
    own = [one.name for one in iter_modules(package.__path__) if not one.name.startswith("_")]
    for shown, module in ({name: name for name in own if name not in INTERNAL} | ELSEWHERE).items():
        places += [(name, f"{PACKAGE}.{shown}.{name}") for name in _public(f"{PACKAGE}.{module}") if name not in top]
    known: dict[str, list[str]] = {}
    for name, place in places:
        known.setdefault(_key(name), []).append(place)
    return known


def _public(module: str) -> list[str]:
    """The names in ``__all__`` of a module, and of its own classes; none where its source cannot be read."""
    spec = find_spec(module)
    read = getattr(spec.loader, "get_source", None) if spec else None
    found = []
    for line in ast.parse((read(module) if read else None) or "").body:
        if isinstance(line, ast.ClassDef) and not line.name.startswith("_"):
            found.append(line.name)
        elif isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            found += ast.literal_eval(line.value)
    return list(dict.fromkeys(found))
