"""What is called: everything public, and with which arguments."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import pkgutil
import random
import re
import types
from collections.abc import Callable
from typing import Any

import torch_multiclass as tm
from tests.hostile.values import hostile
from tests.hostile.world import World
from torch_multiclass.options import FRAME, LOSS_OPTIONS

CODED = ("CodedLoss", "coded_loss", "average_binary_loss", "HammingDecoder", "LossBasedDecoder", "VotingDecoder",
         "TournamentDecoder", "AverageBinaryLoss", "BitError", "PlattScaling", "CodedScores", "OneVsAllHead",
         "OneVsOneHead", "ECOCHead")  # fmt: skip
CHAIN = ("ChainScores", "ViterbiDecoder", "PosteriorDecoder", "KBestDecoder", "ChainScorer", "ChainHead",
         "TokenAccuracy", "SentenceAccuracy", "UnknownWordAccuracy", "SpanF1",
         "ChainForTokenClassification")  # fmt: skip
EITHER = ("M3NLoss", "SVMStructLoss", "CRFLoss", "StructuredPerceptronLoss", "m3n_loss", "svmstruct_loss", "crf_loss",
          "structured_perceptron_loss", "svmstruct_bounds")  # fmt: skip
LEFT_OUT = {
    **dict.fromkeys(
        ["CodedHead", "Cost", "Decoder", "Function", "Head", "Kernel", "Loss", "Scorer", "Scores", "Solver"],
        "what others are made from",
    ),
    "MarginLoss": "what others are made from, elementwise and unchecked",
    **dict.fromkeys(
        [
            "Constraints",
            "Decoded",
            "Fit",
            "HeadReport",
            "Planes",
            "RademacherComplexity",
            "Scheme",
            "Section",
            "Span",
            "Tag",
        ],
        "a record of answers",
    ),
}
"""What is not called, and why; nor are reports and other records of solvers and bounds, and errors."""
INSIDE = {"checks", "functional.adaboost", "functional.flat", "integrations", "ops", "options"}
"""Modules that are not for users, or hold others."""
BRIDGES = {
    "integrations.duality_gap": "lightning",
    "integrations.huggingface": "transformers",
    "integrations.network": "lightning",
    "integrations.onnx": "onnxscript",
    "integrations.sklearn": "sklearn",
    "plots": "matplotlib",
}
"""What needs another library, and is called where that is."""
SLOW = ("solvers.", "plots.", "onnx.", "huggingface.", "network.", "sklearn.")
INNER = {"reference", "costs", "base", "offset", "path_score", "absent", "active", "name"}
INNER |= {"backbone"}  # fields that verbs fill, and modules of the user's
# what verbs ask of one another, and moves
NO_CALL = {
    "extra_repr",
    "plot",
    "of",
    "check_target",
    "labelled",
    "example_weight",
    "all_labelled",
    "row_losses",
    "of_rival",
    "of_label",
    "knock_out",
    "CodedScores.at",
    "CodedScores.rows",
    "Precomputed.at",
    "check_square",
    "CodedScores.columns",
    "in_parts",
    "without_absent",
    "whole",
    "cuda",
    "to",
    "steps",
    "scorer",
    "on_fit_start",
    "on_train_epoch_end",
    "primal",
}
CALLED = {"label_of", "on_step", "probabilities"}  # functions of the user's: what they raise is the user's
LEARNERS = ("torch_multiclass.solvers", "torch_multiclass.integrations.network")
FITS = {"fit", "fit_stream", "partial_fit", "path"}  # what users ask of a solver


def spaces() -> dict[str, types.ModuleType]:
    """The modules that are for users and can be imported here, by name."""
    found = {"": tm} | {name: thing for name in tm.__all__ if inspect.ismodule(thing := getattr(tm, name))}
    for inside in (tm, tm.integrations):
        for module in pkgutil.iter_modules(inside.__path__, f"{inside.__name__}."):
            name = module.name.removeprefix(f"{tm.__name__}.")
            if name not in INSIDE and importlib.util.find_spec(BRIDGES.get(name, "torch")) is not None:
                found[name] = importlib.import_module(module.name)
    return {name: space for name, space in found.items() if hasattr(space, "__all__")}


def public() -> dict[str, Any]:
    """Every public callable, by its name in the first module that has it."""
    found: dict[str, Any] = {}
    for space in spaces().values():
        for name in space.__all__:
            thing = getattr(space, name)
            if callable(thing) and inspect.getmodule(thing) and thing not in found.values():
                found[f"{space.__name__.split('.')[-1]}.{name}"] = thing
    return found


@functools.cache
def subjects() -> dict[str, Any]:
    """What is called of that."""

    def record(name: str, thing: Any) -> bool:
        space, short = name.split(".")
        within = space in ("solvers", "bounds", "network", "sklearn") and dataclasses.is_dataclass(thing)
        return within or short.endswith("Report") or (inspect.isclass(thing) and issubclass(thing, BaseException))

    return {
        name: thing
        for name, thing in public().items()
        if name.split(".")[1] not in LEFT_OUT and not record(name, thing)
    }


def kind_of(name: str, r: random.Random) -> str:
    """The structure that the scores of this subject have."""
    space, short = name.split(".")
    if short in World.OWN:
        return short
    if space in ("solvers", "plots", "network", "sklearn"):
        return {"solvers": "solver", "network": "solver"}.get(space, space)
    if short in CODED:
        return "coded"
    if short in CHAIN:
        return "chain"
    return r.choice(["flat", "chain"]) if short in EITHER else "flat"


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter | None]:
    """The keyword arguments of a callable, with None for those of an unpacked dictionary."""
    found: dict[str, inspect.Parameter | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is not parameter.VAR_KEYWORD:
            found[name] = parameter
            continue
        shared = re.match(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if shared:
            inner = function.__init__ if inspect.isclass(function) else function
            found |= dict.fromkeys(inspect.unwrap(inner).__globals__[shared[1]].__annotations__)
    return found


def arguments(function: Callable[..., Any], world: World, share: float) -> dict[str, Any]:
    """Keyword arguments: those that are needed and some of the others, a ``share`` of them hostile."""
    given = {}
    for name, parameter in parameters(function).items():
        needed = parameter is not None and parameter.default is parameter.empty
        if name in INNER and not needed and (name, world.kind) != ("base", "solver"):
            continue
        if needed or world.r.random() < 0.3:
            if world.r.random() < share:
                given[name] = hostile(world.r)
                if name in CALLED and callable(given[name]):
                    given[name] = None
                continue
            try:
                given[name] = world.good(name)
            except KeyError:
                if needed:
                    raise LookupError(f"say in tests/hostile.py how a good {name!r} looks") from None
    return given


def methods(made: Any) -> list[str]:
    """What an object can be asked, `forward` by a call; the machinery of modules is left out."""
    return [
        name
        for name, member in inspect.getmembers(type(made), inspect.isfunction)
        if not name.startswith("_")
        and hasattr(made, name)
        and not {name, f"{type(made).__name__}.{name}"} & NO_CALL
        and (name in FITS or not member.__module__.startswith(LEARNERS))
        and member.__module__.startswith("torch_multiclass")
        and not member.__module__.startswith("torch_multiclass.ops")
    ]


def argument_names() -> set[str]:
    """The names of all arguments there are."""
    found = {*FRAME, *LOSS_OPTIONS, "scores", "margins", "cost", "emissions"}
    for thing in subjects().values():
        found |= set(parameters(thing))
        if inspect.isclass(thing):
            for _, member in inspect.getmembers(thing, inspect.isfunction):
                if member.__module__.startswith("torch_multiclass"):
                    found |= set(parameters(member))
    return found
