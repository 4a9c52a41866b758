"""Where the finished columns of a reduction are kept."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from pickle import PicklingError, UnpicklingError
from typing import Any

import torch

from torch_multiclass.solvers.reduction.origin import check_origin
from torch_multiclass.solvers.reduction.report import Column

_PARTS = {
    "torch._utils": {"_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_device_tensor_from_numpy"},
    "numpy": {"_reconstruct", "scalar", "__bit_generator_ctor", "__randomstate_ctor", "__generator_ctor"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "__builtin__": {"bytes", "bytearray", "complex", "set", "frozenset", "xrange", "slice", "object"},
    "copy_reg": {"_reconstructor"},
    "_codecs": {"encode"},
}
"""What tensors, arrays and containers are made by, in a module or a package, as pickles of protocol 2 name them."""


class Folder:
    """A file for each finished column: objects of this package and of the learner's, and nothing else."""

    def __init__(self, path: str | os.PathLike[str], origin: Mapping[str, str], learner: Any) -> None:
        self.path, self.origin = Path(path), origin
        self.packages = {"torch_multiclass", *_packages(learner)}
        self.path.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict[int, Column]:
        """The columns that are there."""
        found = {}
        for file in sorted(self.path.glob("column_*.pt")):
            origin, column, fit = self._read(file)
            check_origin(origin, self.origin, str(self.path))
            found[column] = fit
        return found

    def keep(self, column: int, fit: Column) -> None:
        """Write one: whole, or not at all."""
        file = self.path / f"column_{column:06d}.pt"
        new = file.with_suffix(f".{os.getpid()}")
        try:
            torch.save((self.origin, column, fit), new)
        except (AttributeError, TypeError, PicklingError) as problem:
            new.unlink(missing_ok=True)
            raise ValueError(
                f"resume: column {column} cannot be written: {problem}; accepted are learners whose scorers and "
                "reports can be pickled, or no folder"
            ) from problem
        os.replace(new, file)

    def _read(self, file: Path) -> tuple[Mapping[str, str], int, Column]:
        """A pickle can call anything: this one makes objects of known classes and calls nothing else."""
        try:
            origin, column, fit = torch.load(file, pickle_module=_Pickles(self.packages), weights_only=False)
        except (OSError, EOFError, RuntimeError, UnpicklingError, TypeError, ValueError, AttributeError) as problem:
            raise ValueError(
                f"resume: {file} cannot be read: {str(problem).splitlines()[0]}; accepted is what a fit wrote there"
            ) from problem
        return origin, column, fit


class _Pickles:
    """In place of the module ``pickle``: reads objects of the classes of some packages, of tensors and of arrays."""

    __name__ = "pickle"

    def __init__(self, packages: set[str]) -> None:
        class Reader(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                if name not in _PARTS.get(module, _PARTS.get(_root(module), ())):
                    kind = super().find_class(module, name)
                    ours = isinstance(kind, type) and (
                        _root(kind.__module__) in {*packages, "numpy"} or kind.__module__.startswith("torch.nn.")
                    )
                    if not (ours or (module == "torch" and isinstance(kind, (type, torch.dtype)))):
                        raise UnpicklingError(f"it would call {module}.{name}")
                    return kind
                return super().find_class(module, name)

        self.Unpickler = Reader

    def load(self, file: Any, **options: Any) -> Any:
        return self.Unpickler(file, **options).load()


def _packages(learner: Any) -> set[str]:
    """Where the learner's class comes from, and what it was given, such as the function that makes a network."""
    modules = (getattr(part, "__module__", None) for part in (learner, *getattr(learner, "__dict__", {}).values()))
    found = {_root(module) for module in modules if isinstance(module, str)}
    return found - {"torch", *sys.stdlib_module_names}


def _root(module: str) -> str:
    return module.split(".", 1)[0]
