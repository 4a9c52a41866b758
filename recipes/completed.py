"""What a command leaves out and its files tell: the configuration of a run, and the kind of its data."""

from __future__ import annotations

from pathlib import Path

from .early import LIGHTNING
from .early_files import exists
from .given import COMMANDS, options
from .start import note

__all__ = ["completed"]


def completed(recipe: str, args: list[str]) -> list[str]:
    """The command with ``--config`` of the run whose checkpoint it names, else with ``--data`` of its file's kind."""
    at = next((n for n, word in enumerate(args, 1) if word in COMMANDS), 0)
    if recipe not in LIGHTNING or not at or any(option in ("-h", "--help") for option in args):
        return args
    given = options(args)
    if recipe == "tag" and (args[at - 1] == "predict" or (args[at - 1] != "fit" and any("data." in o for o in given))):
        return args  # a checkpoint knows all that tagging needs; its run's own files may be gone
    path = given.get("ckpt_path")
    kept = run_of(Path(path)) if isinstance(path, str) and exists("ckpt_path", path) else None
    if kept is not None and not {"config", "data"} & {*given}:
        note(f"with --config {kept}")
        args = [*args[:at], "--config", str(kept), *args[at:]]
    elif recipe == "classify" and isinstance(given.get("data.path"), str) and "data" not in given:
        args = [*args[:at], "--data", kind(given["data.path"]), *args[at:]]
    return args


def run_of(checkpoint: Path) -> Path | None:
    """The configuration that a fit wrote beside the folder of its checkpoints."""
    path = checkpoint.parent.parent / "config.yaml"
    return path if path.is_file() else None


def kind(path: str) -> str:
    """The data module of a file."""
    return "Npz" if path.endswith(".npz") else "Table"
