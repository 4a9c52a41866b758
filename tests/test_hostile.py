"""Whatever comes in, a value of the right type or a named error goes out."""

import os
import random
import signal
import time

import pytest
import torch

import torch_multiclass as tm
from tests import hostile
from tests.hostile import frames

CALLS = int(os.environ.get("HOSTILE_CALLS", "3000"))


@pytest.mark.timeout(60 + CALLS // 50)
def test_hostile_calls():
    calls, faults = hostile.run(CALLS, seed=CALLS)
    assert calls >= CALLS
    assert not faults, "\n" + hostile.report(faults)


@pytest.mark.parametrize("name", hostile.subjects())
def test_a_good_value_is_known_for_every_argument(name):
    """So that a new function or class is called here from its first day."""
    thing = hostile.subjects()[name]
    r = random.Random(0)
    for _ in range(3):
        hostile.arguments(thing, hostile.World(r, hostile.kind_of(name, r)), 0.0)


def test_what_counts_as_a_fault():
    names = {"target"}
    assert hostile.complaint(ValueError("target: label 7 is outside 0..2 (3 classes)"), names) is None
    assert hostile.complaint(TypeError("target: got None; accepted is a torch.Tensor"), names) is None
    assert hostile.complaint(TypeError("expected Tensor as element 0"), names)
    assert hostile.complaint(ValueError("target: wrong"), names)
    assert hostile.complaint(ValueError("labels: got 3; accepted is 2"), names)
    assert hostile.complaint(RuntimeError("target: got 3; accepted is 2"), names)

    def nan(target):
        return target * float("nan")

    def clobber(target):
        return target.zero_()

    def poke(target):
        target.numpy()[0] = 3.0  # no new version

    for function, what in [(poke, "changed an argument"), (nan, "NaN in the value"), (clobber, "changed an argument")]:
        given = {"target": torch.ones(2)}
        assert hostile.judge("a test", function, given, names)[1].what == what


@pytest.mark.filterwarnings("ignore")
def test_what_was_asked_before_counts():
    """A loss that was told to weigh by NaN answers NaN, and so does one scaled afterwards."""
    r = random.Random(0)
    names = hostile.argument_names()
    for _ in range(150):
        story = hostile.story("torch_multiclass.CRFLoss", tm.CRFLoss, r, names)
        assert not [fault for fault in story if fault]


def test_a_busy_machine_is_no_hang(monkeypatch):
    monkeypatch.setattr(hostile.verdict, "SECONDS", 0.2)
    old = signal.signal(signal.SIGALRM, hostile.verdict.ring)
    try:
        waited = hostile.judge("a test", time.sleep, {}, set())  # refused at once: without an argument
        assert waited[1] is not None
        assert hostile.judge("a test", lambda: time.sleep(0.5), {}, set())[1] is None

        def busy():
            while True:
                pass

        assert hostile.judge("a test", busy, {}, set())[1].what.startswith("hangs")
    finally:
        signal.signal(signal.SIGALRM, old)


def test_every_public_name_is_called_or_says_why_not():
    """Of every module that users import, those of other libraries where they are installed."""
    records = ("Report", "Bound", "Certificate", "Interrupted", "Mistakes", "Rounds")  # and an error
    missing = [
        name
        for name in hostile.public()
        if name not in hostile.subjects() and name.split(".")[1] not in hostile.LEFT_OUT and not name.endswith(records)
    ]
    assert not missing
    assert {"scores.as_scores", "margins.register", "scorers.Chain", "solvers.planes"} <= set(hostile.subjects())


@pytest.mark.parametrize("name", frames.FRAMES)
def test_what_is_set_around_a_call(name):
    """It is set within the call alone, and a fault says what it was."""
    found = []

    def call():
        found.append((torch.is_autocast_enabled("cpu"), torch.empty(0).device.type, torch.get_default_dtype()))
        raise RuntimeError("no")

    fault = hostile.judge("call", call, {}, set(), within=name)[1]
    ours = {"autocast": (True, "cpu", torch.float32), "meta": (False, "meta", torch.float32)}
    ours |= {"float64": (False, "cpu", torch.float64), "float16": (False, "cpu", torch.float16)}
    assert found == [ours.get(name, (False, "cpu", torch.float32))]
    assert fault.what == "RuntimeError: no" + (f" (within {name})" if name else "")
    assert torch.empty(0).device.type == "cpu"
    assert torch.get_default_dtype() == torch.float32


def test_every_frame_is_drawn_and_mostly_none():
    r = random.Random(0)
    names = [frames.drawn(r) for _ in range(4000)]
    assert set(names) == set(frames.FRAMES)
    assert names.count("") > 3600
    assert "meta" not in {frames.drawn(r, made=True) for _ in range(4000)}
