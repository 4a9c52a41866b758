"""What is wrong with files that options name, without torch where that can be."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data.costs import costs
from .data.costs import read as read_costs
from .given import words
from .signatures import loaded
from .start import heard

if TYPE_CHECKING:
    from .data.table import Table

__all__ = ["DEFAULTS", "KEPT", "contents", "exists", "fitted", "lengths", "reported", "unnamed"]

DEFAULTS = {"model.backbone": "ConvNet", "model.head": "MulticlassHead", "model.loss": "CRFLoss"}
"""The classes of options that need not be given."""

KEPT = {"svm": ("folder", "runs/svm"), "ocr": ("folder", "runs/ocr"), "boost": ("folder", "runs/boost")}
"""Of recipes whose `predict` takes what a fit kept: the option, and its default."""


def exists(name: str, value: str) -> bool:
    """Whether there is such a file."""
    try:
        return Path(value).exists()
    except (OSError, ValueError) as problem:
        raise ValueError(f"{name.removeprefix('data.')}: {problem}; accepted is the path of a file") from None


def contents(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """Read the files of rows or sentences; what they held is kept for the recipe."""
    with heard({"fit", "tune"} & {*args} != set()):
        look_through(recipe, args, given)


def look_through(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """The same."""
    predicts = "predict" in args
    if recipe == "tag":
        from .data.sentences import read

        kind = given.get("data.format")
        parts = {part: given.get(f"data.{part}") for part in (("predict",) if predicts else ("train", "dev", "test"))}
        held = {
            part: read(path, kind, untagged=predicts, split=given.get("data.split_text") not in ("false", False))
            for part, path in parts.items()
            if isinstance(path, str)
        }
        if "train" in held:
            tags(held, given)
        if "fit" in args and isinstance(cost := loaded(given.get("model.cost")), (str, int, float)):
            read_costs(str(cost))
    elif recipe == "classify" and str(given.get("data", "")).endswith(("Table", "Npz")) and not predicts:
        held = table(given, "data.")
        if held is not None:
            sizes(given, len(held.classes))
        net = str(given.get("model.backbone", DEFAULTS["model.backbone"])).rpartition(".")[2]
        if (
            held is not None
            and held.features.ndim == 2
            and net == "ConvNet"
            and "fit" in args
            and "ckpt_path" not in given
        ):
            raise ValueError(
                f"backbone: ConvNet takes images; {given['data.path']} has rows of shape {held.features.shape[1:]}; "
                "accepted for a table is --model.backbone MLP"
            )
    elif recipe in ("svm", "boost") and not predicts:
        if isinstance(cost := loaded(given.get("cost")), (str, int, float)):
            read_costs(str(cost))
        held = table(given)
        if held is not None and given.get("cost") is not None:
            costs(loaded(given["cost"]), held.classes)


def sizes(given: dict[str, Any], classes: int) -> None:
    """Costs and weights of a head must be of as many classes as there are."""
    for name in ("model.head.loss.cost", "model.head.loss.weight", "model.head.weight"):
        value = loaded(given.get(name))
        shape = [len(value)] if isinstance(value, list) else []
        if shape and all(isinstance(row, list) for row in value):
            shape += sorted({len(row) for row in value})
        wanted = [classes] * (2 if name.endswith("cost") else 1)
        if shape and shape != wanted:
            last = name.rpartition(".")[2]
            raise ValueError(
                f"{last}: got {' x '.join(map(str, shape))} numbers; accepted are {' x '.join(map(str, wanted))}, as "
                f"there are {classes} classes"
            )


def lengths(given: dict[str, Any], kept: dict[str, Any] | None) -> None:
    """Raise for a training of no length, and for one that is shorter than what a checkpoint has behind it."""
    for name in ("trainer.max_epochs", "trainer.max_steps"):
        value = loaded(given.get(name))
        if isinstance(value, int) and not isinstance(value, bool) and (value == 0 or value < -1):
            raise ValueError(f"{name}: got {value}; accepted is a whole number >= 1, or -1 for no end")
    most = loaded(given.get("trainer.max_epochs"))
    if kept is not None and isinstance(most, int) and most > 0:
        batches = kept.get("loops", {}).get("fit_loop", {}).get("epoch_loop.batch_progress", {})
        done = kept.get("epoch", 0) + bool(batches.get("is_last_batch"))
        if most < done:
            raise ValueError(
                f"trainer.max_epochs: got {most}, but {given['ckpt_path']} has {done} epochs behind it; accepted is a "
                f"whole number above {done}, or a fit without --ckpt_path, which begins anew"
            )


def unnamed(given: dict[str, Any]) -> None:
    """Raise for costs by names, or in a file, where a loss takes a matrix."""
    for name in ("model.loss.cost", "model.head.loss.cost"):
        value = loaded(given.get(name))
        named = isinstance(value, dict) or (name not in given and any(one.startswith(f"{name}.") for one in given))
        if named or (isinstance(value, str) and Path(value).suffix and exists(name, value)):
            order = "the alphabetical order of the tags" if name == "model.loss.cost" else "the order of the classes"
            also = "; costs by the names of the tags, typed or in a file, are --model.cost" * ("head" not in name)
            raise ValueError(
                f"{name}: got {'a mapping' if named else value}; accepted is a matrix, [[0, 1], [2, 0]], its rows the "
                f"true ones, in {order}{also}"
            )


def tags(held: dict[str, list[Any]], given: dict[str, Any]) -> None:
    """Look at the tags of a training file and of those beside it."""
    from .data.tagging import Tags, check, notes

    scheme = loaded(given.get("model.scheme"))
    parts = {name: Tags(sentences, given.get("model.column")) for name, sentences in held.items()}
    check(parts, scheme, loaded(given.get("model.constrained")) is not False)
    notes(parts, scheme, resumed="ckpt_path" in given)


def written_over(given: dict[str, Any]) -> None:
    """Raise where answers would be written over the rows or sentences that they are of."""
    output = given.get("output")
    if not isinstance(output, str) or not Path(output).is_file():
        return
    for name in ("path", "data.path", "data.predict"):
        read = given.get(name)
        if isinstance(read, str) and Path(read).is_file() and Path(output).samefile(read):
            raise ValueError(f"output: got {output}, the file of --{name}, which is read; accepted is another")


def no_folder(name: str, given: dict[str, Any]) -> None:
    """Raise where the folder to write, the option ``name``, is a file, or within one."""
    folder = given.get(name)
    for path in () if not isinstance(folder, str) else (Path(folder), *Path(folder).parents):
        if path.is_file():
            raise NotADirectoryError(f"{name.rpartition('.')[2]}: {path} is a file; accepted is the path of a folder")


def fitted(recipe: str, given: dict[str, Any]) -> None:
    """What a fit kept, which `predict` is asked to use."""
    from .files import facts_of, model_file, whose

    name, default = KEPT[recipe]
    try:
        path = model_file(Path(str(given.get(name, default))), name)
    except FileNotFoundError as problem:
        raise FileNotFoundError(f"{problem}; --{name} FOLDER names it") from None
    found = {"fit.pt": "boost", "best.ckpt": "classify or tag"}.get(path.name, recipe)
    found = whose(path, name) if path.name == "scorer.pt" else found
    if found != recipe:
        said = f"{name}: {path} is of {found}; accepted is the output folder of {recipe} fit"
        raise ValueError(f"{said}, as --{name} FOLDER")
    rows = given.get("path")
    if recipe in ("svm", "boost") and isinstance(rows, str) and Path(rows).is_file():
        from .data.new import check_columns

        schema: Any = None
        with suppress(ValueError):  # a fit that was kept without
            schema = facts_of(path, name, "").get("schema")
        if isinstance(schema, dict) and {"columns", "shape", "categories"} <= {*schema}:
            check_columns(rows, schema)
            from .data.kept import kept

            kept(rows, schema, loaded(given.get("keep")))


def reported(args: list[str], given: dict[str, Any]) -> None:
    """What is reported on, the other data and the costs."""
    from .files import MODELS, model_file, whose

    named = [*([str(given["checkpoint"])] if "checkpoint" in given else []), *words(args)]
    if len(named) != 1:
        raise SystemExit(f"error: checkpoint: got {', '.join(named) or 'none'}; accepted is one, {MODELS}")
    whose(model_file(Path(named[0]), "checkpoint"))
    files = {name: loaded(given.get(name)) for name in ("data", "cost")}
    for name, value in files.items():
        if isinstance(value, str) and not exists(name, value):
            raise FileNotFoundError(f"{name}: there is no file {value}")
    if isinstance(files["cost"], str):
        read_costs(files["cost"])


def table(given: dict[str, Any], prefix: str = "") -> Table | None:
    """Read a table with labels."""
    path, label, ignore = (given.get(f"{prefix}{name}") for name in ("path", "label", "ignore"))
    if not isinstance(path, str):
        return None
    from .data.table import Table

    return Table.read(path, label, loaded(ignore))
