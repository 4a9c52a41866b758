"""Names that are typed, in whatever spelling the library takes them; the library is not imported for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ["MEANT", "one_of"]

MEANT = {
    "cost": "what each mistake costs is taken by svm fit --cost, and by classify fit --model.head.loss M3NLoss "
    "--model.head.loss.cost MATRIX; boost takes --weight for each class",
    "weight": "a weight for each class is taken by svm and boost (--weight '{cat: 2, dog: 1}'), by classify "
    "(--model.head.weight '[2, 1]', in the order of the classes) and by tag (--model.loss.weight '[2, 1]')",
}
"""Options that are asked for where they have no meaning, and which recipe has them."""


@cache
def rule() -> ModuleType:
    """The library's own, out of its file."""
    package = importlib.util.find_spec("torch_multiclass")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "checks" / "spelling.py"
    spec = importlib.util.spec_from_file_location("spelling", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one_of(argument: str, given: str, accepted: Iterable[str]) -> str:
    """The one of the accepted names that is given: ``one-vs-all`` is also ``one_vs_all`` or ``one_vs_rest``."""
    accepted = list(accepted)
    spelled = rule().spelling
    found = [name for name in accepted if name == given] or [
        name for name in accepted if spelled(name) == spelled(str(given))
    ]
    if not found:
        raise SystemExit(f"error: {argument}: got {given}; accepted are {', '.join(accepted)}")
    return found[0]
