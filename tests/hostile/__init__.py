"""Calls of everything public with good arguments and hostile ones, mixed at random, and a verdict on each.

A call may end in a value of the right type, or in a `TypeError`, `ValueError` or `MemoryError` of ours that starts with
the argument's name and says what is accepted. Anything else is a fault: an error of torch's or Python's own, NaN in a
value or a gradient of moderate numbers, an argument that was changed, a call that hangs. A small share of calls
is within autocast, a default device without numbers, or another default dtype. `python -m tests.hostile --calls 100000`
prints the faults of a long run.
"""

from __future__ import annotations

import importlib
import inspect
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from tests.hostile import verdict
from tests.hostile.calls import LEFT_OUT, SLOW, argument_names, arguments, kind_of, methods, public, subjects
from tests.hostile.frames import drawn
from tests.hostile.report import report
from tests.hostile.verdict import Fault, calm, complaint, judge
from tests.hostile.world import World

__all__ = [
    "LEFT_OUT",
    "World",
    "arguments",
    "argument_names",
    "complaint",
    "judge",
    "kind_of",
    "public",
    "report",
    "run",
    "story",
    "subjects",
]


def run(
    calls: int, seed: int = 0, only: str = "", told: Callable[[int, Fault | None], None] | None = None
) -> tuple[int, list[Fault]]:
    """That many calls, and the faults among them; ``told`` of each as it comes."""
    r = random.Random(seed)
    torch.manual_seed(seed)
    names, chosen = argument_names(), {name: thing for name, thing in subjects().items() if re.search(only, name)}
    slow = {name for name in chosen if name.startswith(SLOW)}
    faults, made_calls = [], 0
    old = signal.signal(signal.SIGALRM, verdict.ring)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            while made_calls < calls:
                name = r.choice(list(chosen))
                if name in slow and len(slow) < len(chosen) and r.random() < 0.8:
                    continue
                for fault in story(name, chosen[name], r, names):
                    made_calls += 1
                    if fault:
                        faults.append(fault)
                    if told is not None:
                        told(made_calls, fault)
    finally:
        signal.signal(signal.SIGALRM, old)
    return made_calls, faults


def story(name: str, thing: Any, r: random.Random, names: set[str]) -> Iterator[Fault | None]:
    """One call of a function; or an object is made and asked two things."""
    world = World(r, kind_of(name, r))
    asked_later = inspect.isclass(thing) and r.random() < 0.8
    made_of = arguments(thing, world, 0.03 if asked_later else 0.25)
    result, fault = judge(name, thing, made_of, names, within=drawn(r, made=inspect.isclass(thing)))
    quiet = calm(made_of)
    yield fault
    if world.kind == "plots":
        importlib.import_module("matplotlib.pyplot").close("all")
    if not inspect.isclass(thing) or result is None:
        return
    earlier = [made_of]
    if name.startswith("sklearn."):  # its verbs ask for a fit
        given = arguments(result.fit, world, 0.03)
        fitted, fault = judge(f"{name}().fit", result.fit, given, names, earlier=earlier, within=drawn(r))
        yield fault
        if fitted is None:
            return
    for method in r.sample(methods(result), min(2, len(methods(result)))):
        call = getattr(result, method)
        try:
            given = arguments(call, world, 0.25)
        except LookupError:  # not for users, or not known here yet
            continue
        # A verb that has no meaning for this object names itself.
        asked = result if method == "forward" else call
        _, fault = judge(f"{name}().{method}", asked, given, names | {method}, quiet, earlier, drawn(r))
        earlier.append(given)
        quiet = quiet and calm(given)  # for what comes after: `weigh` and `update` keep them
        yield fault
        if method == "update" and fault is None:
            yield judge(f"{name}().compute", result.compute, {}, names, quiet, earlier)[1]
