"""What every public docstring shows: an example that runs, the shapes of a module, and where a formula is from."""

import importlib
import inspect
import re

import pytest
from torch import nn

import torch_multiclass as tm

SUBMODULES = ("codes", "costs", "decoders", "functional", "heads", "kernels", "losses", "metrics", "scorers", "scores")
SUBMODULES += ("bounds", "ops.margins", "plots", "preferences", "reports", "solvers", "spans", "tags")
SUBMODULES += ("integrations.checkpoints", "integrations.onnx", "integrations.sklearn")
ABSTRACT = {"Cost", "Decoder", "Head", "Loss", "CodedHead", "Scorer", "Answers"}
"""Modules that are not called by themselves: their shapes are those of what derives from them."""

NO_EXAMPLE = {"CodedHead", "to_onnx"}
"""A base class whose heads show it; and what needs packages that may not be there."""


def public():
    """Every public class and function, once, by its module and name."""
    found = {}
    for module in [tm, *(importlib.import_module(f"torch_multiclass.{name}") for name in SUBMODULES)]:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(f"{thing.__module__}.{thing.__qualname__}", thing)
    return found


PUBLIC = public()


def test_what_is_public_is_found():
    names = {path.rpartition(".")[2] for path in PUBLIC}
    assert {"ECOCHead", "SpanF1", "row_distances", "tag_constraints", "DualSVM", "Gaussian", "margin"} <= names


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_shows_an_example(path):
    assert ">>> " in (PUBLIC[path].__doc__ or "") or PUBLIC[path].__name__ in NO_EXAMPLE


MODULES = [
    path
    for path, thing in PUBLIC.items()
    if inspect.isclass(thing)
    and issubclass(thing, nn.Module)
    and thing.__name__ not in ABSTRACT
    and "forward" in dir(thing)
]


@pytest.mark.parametrize("path", MODULES)
def test_every_module_names_its_shapes(path):
    assert "Shape:" in PUBLIC[path].__doc__


UNCHECKED = {"Hamming", "ZeroOne"}
"""Modules without an option or a check of their own."""

FUNCTIONS = [path for path, thing in PUBLIC.items() if inspect.isfunction(thing)]
OF_TENSORS = [path for path in FUNCTIONS if re.search("Tensor|Scores", str(PUBLIC[path].__annotations__))]


@pytest.mark.parametrize("path", OF_TENSORS)
def test_every_function_of_tensors_names_their_shapes(path):
    assert "Shape:" in PUBLIC[path].__doc__


NOTHING_TO_REFUSE = {"backends", "names"}


@pytest.mark.parametrize("path", [path for path in FUNCTIONS if PUBLIC[path].__name__ not in NOTHING_TO_REFUSE])
def test_every_function_names_what_it_raises(path):
    assert "Raises:" in PUBLIC[path].__doc__ or "See `torch_multiclass." in PUBLIC[path].__doc__


@pytest.mark.parametrize("path", [path for path in MODULES if PUBLIC[path].__name__ not in UNCHECKED])
def test_every_module_names_what_it_raises(path):
    assert "Raises:" in PUBLIC[path].__doc__


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_names_its_source(path):
    """Functional losses point to their modules, which do."""
    assert "Reference: " in PUBLIC[path].__doc__ or "See `torch_multiclass." in PUBLIC[path].__doc__
