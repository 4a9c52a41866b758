"""A type checker refuses a keyword that no constructor or function has, or a value of the wrong type."""

import inspect
import re
import subprocess
import sys

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.options import FACTORY, FRAME, LOSS_OPTIONS

LOSSES = [name for name in tm.__all__ if name.endswith("Loss") and name != "Loss"]
MODULES = [
    name for name in tm.__all__ if name.endswith(("Head", "Scorer", "Scaling")) and name not in ("Head", "Scorer")
]
FUNCTIONS = [name for name in tm.functional.__all__ if name.endswith("_loss") and name != "binary_loss"]
NEEDED = {
    "in_features": "3", "num_classes": "2", "num_tags": "2", "num_columns": "2", "num_kinds": "2", "max_length": "3",
    "num_labels": "2", "num_features": "4", "rho": "1.0", "tree": "leaf", "trees": "[leaf]",
    "scorers": "[tm.LinearScorer(3, 2)]", "network": "torch.nn.Linear(3, 2)",
    "code": "[[1, -1], [-1, 1]]", "support": "torch.zeros(2, 3)", "margins": "3",
    "features": "tm.NystromFeatures(torch.eye(2, 3), 'linear')",
}  # fmt: skip
VALUES = {"weight": "[1.0, 2.0]", "ignore_index": "0", "reduction": '"sum"', "class_dim": "-1", "validate_args": "None",
          "device": '"cpu"', "dtype": "torch.float64"}  # fmt: skip


def needed(name):
    """The arguments without which this is not to be made, as text."""
    words = []
    for n, p in inspect.signature(getattr(tm, name)).parameters.items():
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD:
            words.append(NEEDED[n])
        elif n in ("num_classes", "num_labels") and p.default is None:  # needed where the code is a name
            words.append(f"{n}={NEEDED[n]}")
    return words


def call(name, *words):
    return f"tm.{name}({', '.join(words)})"


def options(names):
    return [f"{name}={VALUES[name]}" for name in names]


def calls():
    """Good calls, and bad ones that differ in one keyword."""
    good, bad = [], []
    for name in LOSSES:
        good.append(call(name, *needed(name), *options(LOSS_OPTIONS)))
        bad += [call(name, *needed(name), word) for word in ('reductoin="sum"', "weight=1", "reduction=2")]
    for name in MODULES:
        factory = [k for k in FACTORY if k in inspect.signature(getattr(tm, name)).parameters]
        good.append(call(name, *needed(name), *options(factory)))
        bad += [call(name, *needed(name), word) for word in ('devise="cpu"', 'dtype="float64"')]
    for name in FUNCTIONS:
        scores = "c" if name in ("coded_loss", "average_binary_loss") else "s"
        start = [scores, "y", *(["rho=1.0"] if name == "margin_ramp_loss" else [])]
        good.append(call(f"functional.{name}", *start, *options((*FRAME, "weight", "reduction"))))
        words = ('reductoin="sum"', 'ignore_index="0"', "clas_dim=1")
        bad += [call(f"functional.{name}", *start, word) for word in words]
    return good, bad


HEAD = """import torch
import torch_multiclass as tm
from torch_multiclass.ops.splits.tree import single
s, y = torch.zeros(1, 2), torch.tensor([0])
c = tm.CodedScores(torch.zeros(1, 2), tm.codes.one_vs_all(2))
leaf = single(torch.zeros(2).double().numpy(), features=3)
"""


@pytest.mark.slow
def test_a_type_checker_tells_good_calls_from_bad_ones(tmp_path):
    pytest.importorskip("mypy")
    good, bad = calls()
    snippet = tmp_path / "snippet.py"
    snippet.write_text(HEAD + "\n".join([*good, *bad]) + "\n")
    package = re.sub(r"/torch_multiclass/__init__\.py$", "", tm.__file__)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", str(snippet)],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": package, "PATH": ""}, check=False,
    )  # fmt: skip
    refused = {int(number) for number in re.findall(r"^[^:\n]*snippet\.py:(\d+): error", checked.stdout, re.M)}
    first = HEAD.count("\n") + 1
    lines = dict(enumerate([*good, *bad], first))
    assert [lines[n] for n in sorted(refused) if n < first + len(good)] == [], checked.stdout
    assert [line for n, line in lines.items() if n >= first + len(good) and n not in refused] == []


def test_the_good_calls_run_and_the_bad_ones_are_refused():
    space = {}
    exec(HEAD, space)
    good, bad = calls()
    for line in good:
        eval(line, space)
    for line in bad:
        with pytest.raises((TypeError, ValueError)):
            eval(line, space)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_a_keyword_that_it_does_not_have(name):
    function = getattr(tm.functional, name)
    coded = name in ("coded_loss", "average_binary_loss")
    scores = tm.CodedScores(torch.zeros(1, 2), tm.codes.one_vs_all(2)) if coded else torch.zeros(1, 2)
    extra = {"rho": 1.0} if name == "margin_ramp_loss" else {}
    for target in [torch.tensor([0])] + [torch.tensor([[1, -1]])] * (name == "adaboost_loss"):
        with pytest.raises(
            TypeError, match=rf"^reductoin: is no argument of {name}; accepted are scores, target, .*reduction"
        ):
            function(scores, target, reductoin="sum", **extra)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_names_a_keyword_that_it_does_not_have(name):
    extra = {"rho": 1.0} if name == "MarginRampLoss" else {}
    with pytest.raises(TypeError, match=rf"^reductoin: is no argument of {name}; accepted are .*weight.*"):
        getattr(tm, name)(reductoin="sum", **extra)


def test_the_names_are_those_of_the_signatures():
    assert set(LOSS_OPTIONS) == set(inspect.signature(tm.Loss.__init__).parameters) - {"self"}
    assert set(FRAME) < set(LOSS_OPTIONS)
