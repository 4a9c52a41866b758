"""What recipes keep: written whole or not at all, by one run at a time, and looked through before it is used."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data.packed import check_entries
from .names import listed
from .start import note, warn

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["checkpoint", "locked", "model_file", "read", "save", "whose", "write_atomically", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: beside it under another name first, then renamed.

    So a kill or a full disk at any moment leaves the file that was there. A link stays a link, and the mode stays.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a file, gzipped if its name says so, whole or not at all; into a pipe or a device as it is."""
    data = text.encode("utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    if path.is_dir():
        raise IsADirectoryError(f"output: {path} is a folder; accepted is the path of a file")
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    write_whole(path, data)


def replacing(path: Path, text: str) -> None:
    """Say that a file with other contents is about to be replaced."""
    with suppress(OSError, ValueError):
        if path.suffix != ".gz" and path.is_file() and path.read_text(encoding="utf-8") != text:
            warn(f"output: {path} was there, with other contents, and is replaced; --output names another file")


def refitted(folder: Path, name: str) -> None:
    """Say that what an earlier fit kept in a folder, a model in a file of this name, is about to be replaced."""
    with suppress(OSError):
        if (folder / name).is_file():
            date = datetime.fromtimestamp((folder / name).stat().st_mtime).strftime("%Y-%m-%d %H:%M")
            note(f"{folder} holds a fit of {date}, which this one replaces")


FACTS = "facts.json"


def save(path: Path, kept: object, facts: dict[str, Any] | None = None) -> None:
    """`torch.save`, whole or not at all; facts go into the same file, of which `torch.load` reads the rest."""
    import torch

    data = io.BytesIO()
    torch.save(kept, data)
    if facts is not None:
        with zipfile.ZipFile(data, "a") as archive:
            folder = archive.namelist()[0].partition("/")[0]  # torch reads archives of one folder
            archive.writestr(f"{folder}/{FACTS}", json.dumps(facts))
    write_whole(path, data.getbuffer())


def facts_of(path: Path, argument: str, accepted: str) -> dict[str, Any]:
    """The facts that `save` put into a file."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(str(path), argument, archive)
            folder = archive.namelist()[0].partition("/")[0]
            facts = json.loads(archive.read(f"{folder}/{FACTS}").decode("utf-8"))
        if not isinstance(facts, dict):
            raise TypeError(f"they are {type(facts).__name__}")
    except (
        OSError,
        LookupError,
        ValueError,
        TypeError,
        RecursionError,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as problem:
        raise ValueError(f"{argument}: {path} tells nothing of its model ({problem}); accepted is {accepted}") from None
    return facts


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only run that writes into a folder, where the system knows locks; they end with their process."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read(path: Path, argument: str, accepted: str = "a file that a recipe wrote") -> dict[str, Any]:
    """What `save` wrote, mapped into memory: no code is run, and a false header finds the end of the file.

    Raises:
        FileNotFoundError: no file.
        ValueError: a file of another kind.
    """
    if not path.is_file():
        what = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise FileNotFoundError(f"{argument}: {what}; accepted is {accepted}")
    try:
        with zipfile.ZipFile(path) as held:
            check_entries(str(path), argument, held)
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in held.infolist()):
                raise ValueError("its entries are packed")
        import torch

        kept = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
        if not isinstance(kept, dict):
            raise TypeError(f"it holds {type(kept).__name__}")
    except MemoryError:
        raise
    except Exception as problem:  # what a reader raises for chance bytes is of any kind
        why = (str(problem).split(". ")[0].splitlines() or [""])[0][:200] or type(problem).__name__
        raise ValueError(f"{argument}: {path} cannot be read ({why}); accepted is {accepted}") from None
    return kept


def check_weights(state: dict[str, Tensor], path: Path, argument: str) -> None:
    """Refuse weights that are no numbers."""
    for name, value in state.items():
        if value.is_floating_point() and not value.isfinite().all() and value.isnan().any():
            raise ValueError(f"{argument}: {name} in {path} is NaN; accepted are weights without NaN")


MODELS = "the output folder of a recipe, or its .../checkpoints/best.ckpt, scorer.pt or fit.pt"


KEPT = ("scorer.pt", "fit.pt", "best.ckpt")
"""The files of models."""
PLACES = ("*", "*/version_*/checkpoints")
"""Where they are below a folder of output folders."""


def model_file(path: Path, argument: str, names: Sequence[str] = KEPT, accepted: str = MODELS) -> Path:
    """The file of the model in the output folder of a recipe, else the newest in a folder below it.

    That other output folders below it have some too is said.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        near = {output(file) for name in names for place in PLACES for file in path.parent.glob(f"{place}/{name}")}
        there = f" (beside it: {listed(sorted(near), 6)})" if near else ""
        raise FileNotFoundError(f"{argument}: there is no file {path}{there}; accepted is {accepted}")
    found = [file for name in names if (file := path / name).is_file()][:1]
    if not found:
        below = [file for name in names for file in path.rglob(name) if file.is_file()]
        found = sorted(below, key=lambda file: file.stat().st_mtime)
    if not found:
        what = "model" if names is KEPT else " or ".join(names)
        raise FileNotFoundError(f"{argument}: there is no {what} in {path}; accepted is {accepted}")
    taken = output(found[-1])
    others = sorted({*map(output, found)} - {taken})
    if others:
        note(f"{argument}: of {path} the newest model is taken, {taken}; there are also {listed(others, 6)}")
    return found[-1]


def output(file: Path) -> Path:
    """The output folder that a file of a model is in, above the folders of the versions of a log."""
    folder = file.parent.parent if file.parent.name == "checkpoints" else file.parent
    return folder.parent if folder.name.startswith("version_") else folder


def whose(path: Path, argument: str = "checkpoint") -> str:
    """Which recipe wrote a file of a model: ``classify``, ``tag``, ``boost``, ``svm`` or ``ocr``."""
    if path.name == "scorer.pt":
        return str(facts_of(path, argument, "the scorer.pt of svm fit or ocr fit").get("recipe"))
    kept = read(path, argument, MODELS)
    for recipe, key in (("tag", "tagger"), ("classify", "state_dict"), ("boost", "setting")):
        if key in kept:
            return recipe
    raise ValueError(f"{argument}: {path} is no file of a recipe; accepted is {MODELS}")


VOCABULARY = ("column", "tags", "features", "characters", "counts", "rare")


def check_vocabulary(vocabulary: Any, path: Path, argument: str) -> None:
    """Refuse a tagger's vocabulary that lacks parts, or whose tags are no distinct words."""
    missing = [name for name in VOCABULARY if not isinstance(vocabulary, dict) or name not in vocabulary]
    if missing:
        raise ValueError(f"{argument}: the vocabulary of {path} has no {missing[0]}; accepted is a whole checkpoint")
    tags = vocabulary["tags"]
    if not isinstance(tags, list) or not tags or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(f"{argument}: the vocabulary of {path} has no tags; accepted is a whole checkpoint")
    if len({*tags}) < len(tags):
        doubled = next(tag for tag in tags if tags.count(tag) > 1)
        raise ValueError(f"{argument}: the vocabulary of {path} has {doubled!r} twice; accepted are distinct tags")


def checkpoint(path: Path, recipe: str | None = None, argument: str = "ckpt_path") -> dict[str, Any]:
    """A checkpoint of `classify` or `tag`, or of one of the two, looked through."""
    import torch

    accepted = f"a checkpoint of {recipe or 'classify or tag'}"
    kept = read(path, argument, accepted)
    state = kept.get("state_dict")
    tagger = kept.get("tagger")
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError(
            f"{argument}: {path} is no checkpoint of this recipe (it has no weights); accepted is {accepted}"
        )
    if recipe is not None and (recipe == "tag") != (tagger is not None):
        raise ValueError(f"{argument}: {path} is no checkpoint of this recipe; accepted is {accepted}")
    for name, part in (("tagger", tagger), ("hyper_parameters", kept.get("hyper_parameters", {}))):
        if not isinstance(part, (dict, type(None))):
            raise ValueError(f"{argument}: {name} in {path} is {type(part).__name__}; accepted is {accepted}")
    if tagger is not None:
        for name in ("vocabulary", "scheme", "constrained", "options"):
            if name not in tagger:
                raise ValueError(f"{argument}: {path} has no {name}; accepted is a whole checkpoint")
        check_vocabulary(tagger["vocabulary"], path, argument)
    check_weights(state, path, argument)
    return kept
