"""Names that are typed, in whatever spelling the library takes them; the library is not imported for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ["BOOSTED", "FILE", "MEANT", "NETWORKS", "apart", "check_read", "listed", "networks", "one_of"]

_KEPT = "what a fit kept is named by --ckpt_path FILE in classify and tag, by --folder FOLDER in svm, boost and ocr"
MEANT = {
    **dict.fromkeys(("ckpt_path", "fit", "folder", "checkpoint"), _KEPT),
    "cost": "what each mistake costs is taken by svm fit --cost, by tag fit --model.cost, and by classify fit "
    "--model.head.loss M3NLoss --model.head.loss.cost MATRIX; boost takes --weight for each class",
    "weight": "a weight for each class is taken by svm and boost (--weight '{cat: 2, dog: 1}'), by classify "
    "(--model.head.weight '[2, 1]', in the order of the classes, or balanced); a sentence of tag holds many classes: "
    "--model.cost says what each mistake costs",
}
"""Options that are asked for where they have no meaning, and which recipe has them."""

FILE = ("csv", "data", "dataset", "file", "filename", "input", "table", "train")
"""What the option of the file of rows is called elsewhere."""

NETWORKS = {
    "encoder": (("BiLSTMEncoder", "ConvolutionEncoder"), "a vocabulary"),
    "backbone": (("ConvNet", "MLP"), "the shape of a row"),
}
"""Arguments that make a network: the recipes' own, and what each is made from."""


BOOSTED = ("mh", "mr", "averaged", "mo")
"""The models of `boost` that are boosted."""
CONFIDENT = ("mh", "mo")
"""Those whose votes may have a confidence."""
READ = {
    **dict.fromkeys(("rounds", "leaves", "patience", "validation", "resume"), BOOSTED),
    **dict.fromkeys(("real", "reals"), CONFIDENT),
    "bins": (*BOOSTED, "forest"),
    "trees": ("forest",),
}
"""Which models of `boost` read an option; the others are read by all."""


def check_read(model: str, given: Iterable[str]) -> None:
    """Refuse options that a model of `boost` does not read."""
    idle = [name for name in READ if name in {*given} and model not in READ[name]]
    if idle:
        said = [f"{name}: model {model} does not read it; accepted is with {', '.join(READ[name])}" for name in idle]
        raise SystemExit(f"error: {'; '.join(said)}")


def networks(argument: str) -> str:
    """What one of `NETWORKS` accepts, in words."""
    own, source = NETWORKS[argument]
    return f"{', '.join(own)} or the dotted path of a module with num_features that is made from {source}"


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


def apart(name: object) -> str:
    """A name as a sentence holds it: in quotes where its own comma or blanks would part it."""
    text = str(name)
    return repr(text) if "," in text or text != text.strip() or not text else text


def listed(names: Iterable[object], most: int | None = None) -> str:
    """``cat, dog, 'fish, raw'``; at most so many, and that there are more."""
    words = [*map(apart, names)]
    return ", ".join([*words[:most], *(["..."] if most is not None and len(words) > most else [])])
