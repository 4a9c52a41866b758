"""What every public docstring shows: an example that runs, the shapes of a module, and where a formula is from."""

import importlib
import inspect

import pytest
from torch import nn

import torch_multiclass as tm

SUBMODULES = ("codes", "costs", "decoders", "functional", "heads", "kernels", "losses", "metrics", "scorers", "scores")
SUBMODULES += ("plots", "preferences", "solvers", "spans", "tags", "integrations.sklearn")
ABSTRACT = {"Cost", "Decoder", "Head", "Loss", "Scores", "CodedHead", "Kernel", "Solver", "Certificate"}
ABSTRACT |= {"Interrupted", "Scorer"}
"""Classes that are not made by themselves, shown by those that derive from them."""


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


def concrete(thing):
    """Whether it is used by itself: no base class, and no record that another function returns."""
    record = inspect.isclass(thing) and (issubclass(thing, tuple) or thing.__name__.endswith("Report"))
    return thing.__name__ not in ABSTRACT and not record


def test_what_is_public_is_found():
    names = {path.rpartition(".")[2] for path in PUBLIC}
    assert {"ECOCHead", "SpanF1", "row_distances", "tag_constraints", "DualSVM", "Gaussian", "margin"} <= names


@pytest.mark.parametrize("path", [path for path, thing in PUBLIC.items() if concrete(thing)])
def test_every_public_name_shows_an_example(path):
    assert ">>> " in (PUBLIC[path].__doc__ or "")


MODULES = [
    path
    for path, thing in PUBLIC.items()
    if inspect.isclass(thing) and issubclass(thing, nn.Module) and concrete(thing) and hasattr(thing, "forward")
]


@pytest.mark.parametrize("path", MODULES)
def test_every_module_names_its_shapes(path):
    assert "Shape:" in PUBLIC[path].__doc__


UNCHECKED = (tm.costs.ZeroOne, tm.kernels.Linear)
"""Modules without an option or a check of their own."""


@pytest.mark.parametrize("path", [path for path in MODULES if not issubclass(PUBLIC[path], UNCHECKED)])
def test_every_module_names_what_it_raises(path):
    assert "Raises:" in PUBLIC[path].__doc__


@pytest.mark.parametrize("path", [path for path, thing in PUBLIC.items() if concrete(thing)])
def test_every_public_name_names_its_source(path):
    """Functional losses point to their modules, which do; a conversion has none."""
    conversion = path.rpartition(".")[2].startswith("as_")
    assert conversion or "Reference: " in PUBLIC[path].__doc__ or "See `torch_multiclass." in PUBLIC[path].__doc__
