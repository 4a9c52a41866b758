"""Libraries that no longer install beside a current torch: one module of them, without what their package imports."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def allennlp_crf() -> ModuleType:
    """The module of allennlp's CRF; the rest of allennlp 2.10 asks for torch < 1.13.

    Its three imports from ``allennlp.common.util`` are of no use to it, and stand for nothing here.
    """
    spec = find_spec("allennlp")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("allennlp: pip install --no-deps allennlp", name="allennlp")
    root = Path(spec.submodule_search_locations[0])
    for folder in ("", "common", "modules", "nn"):
        package = ModuleType(".".join(["allennlp", folder]) if folder else "allennlp")
        package.__path__ = [str(root / folder)]
        sys.modules[package.__name__] = package
    unused = ModuleType("allennlp.common.util")
    vars(unused).update(dict.fromkeys(("int_to_device", "is_distributed", "is_global_primary")))
    sys.modules[unused.__name__] = unused
    from allennlp.modules import conditional_random_field

    return conditional_random_field
