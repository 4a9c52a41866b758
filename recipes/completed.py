"""What a command leaves out and its files tell: the configuration of a run, and the kind of its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .early import LIGHTNING
from .early_files import exists
from .files import model_file
from .given import COMMANDS, options
from .start import note

__all__ = ["completed"]


def completed(recipe: str, args: list[str]) -> list[str]:
    """The command with ``--config`` of the run whose checkpoint it names, else with ``--data`` of its file's kind, and
    of a table with a network that takes rows of numbers, which a checkpoint has itself.
    """
    at = next((n for n, word in enumerate(args, 1) if word in COMMANDS), 0)
    if recipe not in LIGHTNING or not at or any(option in ("-h", "--help") for option in args):
        return args
    given = options(args)
    path = given.get("ckpt_path")
    if isinstance(path, str) and (file := weights(recipe, args[at - 1], path)) != path:
        note(f"with --ckpt_path {file}")
        path, args = file, [*args, "--ckpt_path", file]
    if recipe == "tag" and (args[at - 1] == "predict" or (args[at - 1] != "fit" and any("data." in o for o in given))):
        return args  # a checkpoint knows all that tagging needs; its run's own files may be gone
    kept = run_of(Path(path)) if isinstance(path, str) else None
    more = []
    if kept is not None and not {"config", "data"} & {*given}:
        note(f"with --config {kept}")
        more = ["--config", str(kept)]
    elif recipe == "classify":
        if isinstance(given.get("data.path"), str) and "data" not in given:
            more = ["--data", given.setdefault("data", kind(given["data.path"]))]
        if path is None and of_numbers(given) and not {"model", "model.backbone"} & {*given}:
            note("with --model.backbone MLP, for rows of numbers")
            more += ["--model.backbone", "MLP"]
    return [*args[:at], *more, *args[at:]]


def weights(recipe: str, command: str, path: str) -> str:
    """The checkpoint that is named, of a folder the newest: the last to go on from (``fit``), else the best."""
    exists("ckpt_path", path)  # or it is no path at all
    name = "last.ckpt" if command == "fit" else "best.ckpt"
    return str(model_file(Path(path), "ckpt_path", (name,), f"a checkpoint of {recipe}, or a folder with its {name}"))


def run_of(checkpoint: Path) -> Path | None:
    """The configuration that a fit wrote beside the folder of its checkpoints."""
    path = checkpoint.parent.parent / "config.yaml"
    return path if path.is_file() else None


def of_numbers(given: dict[str, Any]) -> bool:
    """Whether the data are rows of numbers: all tables are, and arrays of two dimensions."""
    name, path = str(given.get("data")).rpartition(".")[2], given.get("data.path")
    if name == "Npz" and isinstance(path, str):
        from .data.arrays import dimensions

        return dimensions(path) == 2
    return name == "Table"


def kind(path: str) -> str:
    """The data module of a file."""
    return "Npz" if path.endswith(".npz") else "Table"
