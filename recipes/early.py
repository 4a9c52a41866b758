"""What can be said of a command line before anything slow is imported: options, files, and what the files hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from .classes import CLASSES, ours, package, public
from .early_classes import fits, inner, loss_meant
from .early_files import KEPT, contents, exists, fitted, lengths, no_folder, reported, unnamed, written_over
from .given import COMMANDS, options, words
from .names import FILE, MEANT, NETWORKS, check_read, networks
from .ranges import within
from .signatures import OTHERS, found, loaded, parameters
from .start import renamed

HERE = Path(__file__).parent

PARTS = ("path", "train", "dev", "test", "predict")
FILES = ("ckpt_path", "config", "path", "resume", *(f"data.{part}" for part in PARTS))
"""Options that name a file to read."""

LIGHTNING = {
    "classify": ("models/classifier.py", "Classifier", {"Digits": "digits", "Npz": "npz", "Table": "files"}),
    "tag": ("models/tagger.py", "Tagger", {"Treebank": "treebank"}),
}
"""Of the recipes that Lightning runs: file and name of the module, and the data modules, the first by default."""

FUNCTIONS = {
    "svm": ("fit", "tune", "cost", "predict"),
    "boost": ("fit", "tune", "predict"),
    "ocr": ("run", "report", "fit", "predict"),
    "tables": ("run", "report"),
    "report": (),
}
"""The subcommands of the recipes where they are functions; of `report` there are none."""

WITHIN = {"tables": "tables/__main__.py"}
"""The file of a recipe that is a folder."""

OTHERWISE = {
    "lr": ("model.learning_rate", "model.optimizer.lr"),
    "epochs": ("trainer.max_epochs",),
}
"""What options are called elsewhere, and what they are here."""

LINKED = {"model.classes", "model.input_shape", "data.dict_kwargs"}
"""What no signature lists: what the command line takes from the data, and what it passes on."""

COMMON = {"help", "config", "print_config", "seed_everything", "ckpt_path", "output", "verbose", "weights_only"}
COMMON |= {"return_predictions", "trainer", "model", "data", "probabilities", "print_shtab"}
OWN = {"classify": {"keep"}, "tag": {"k_best"}}
"""Beside these, those of one recipe."""
OF_COMMAND = {"verbose": ("validate", "test"), "return_predictions": ("predict",), "output": ("predict",)}
OF_COMMAND |= dict.fromkeys(("probabilities", "keep", "k_best"), ("predict",))
"""Of those, the ones that mean something to some of the subcommands alone."""


def look(recipe: str, args: list[str]) -> None:
    """Raise for a command that names what is not there."""
    if any(option in ("-h", "--help") or option.endswith(".help") for option in args):
        return  # which the parser answers, of a class
    args = renamed(recipe, args)
    given = options(args)
    if recipe in LIGHTNING:
        names(recipe, args, given)
    elif recipe in FUNCTIONS:
        functions(recipe, args, given)
    if recipe == "demo":
        from .demo import asked

        asked(args)
    if recipe == "tables":
        from .tables import wanted

        if "run" in args:
            wanted.look(given)
        return
    if recipe == "report":
        reported(args, given)
    if "predict" in args:
        written_over(given)
    else:
        no_folder("trainer.default_root_dir" if recipe in LIGHTNING else "output", given)
    if "predict" in args and recipe in KEPT:
        fitted(recipe, given)
    for name in FILES:
        value = given.get(name)
        if isinstance(value, str) and not value.startswith(("{", "[")) and not exists(name, value):
            unset = f"; --{name} null unsets it" if value.lower() == "none" else ""
            raise FileNotFoundError(f"{name.removeprefix('data.')}: there is no file {value}{unset}")
    kept = with_weights(recipe, "fit", given) if recipe in LIGHTNING else None
    if recipe in LIGHTNING and "fit" in args:
        lengths(given, kept)
        unnamed(given)
    contents(recipe, args, given)


def complete(recipe: str, args: list[str]) -> None:
    """Raise for a command that Lightning runs without the weights or the file that it needs."""
    given = options(args)
    if recipe not in LIGHTNING or any(re.match(r"-h$|--print_config|--.*help$", option) for option in args):
        return
    with_weights(recipe, subcommand(args, COMMANDS), given)
    kind = given.get("data")
    if isinstance(kind, str) and kind.rpartition(".")[2] in ("Table", "Npz") and given.get("data.path") is None:
        raise ValueError("path: got none; accepted is the file of rows, --data.path FILE")


def with_weights(recipe: str, command: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """The checkpoint, None where none is named; raise where a command needs one, or for a file that is none."""
    path = given.get("ckpt_path")
    if command != "fit" and path is None:
        raise ValueError(
            f"ckpt_path: got none; {command} needs the file of trained weights, --ckpt_path .../checkpoints/best.ckpt"
        )
    if not isinstance(path, str):
        return None
    from .files import checkpoint

    return checkpoint(Path(path), recipe)


# ---------------------------------------------------------------------- names
def names(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """The subcommand, the options, their values and the classes of a recipe that Lightning runs."""
    command = subcommand(args, COMMANDS)
    refuse_bare(recipe, command, args)
    typed = options([option for option in args if not option.startswith(("--config", "-c"))])
    file, module, data = LIGHTNING[recipe]
    kind = str(given.get("data", next(iter(data)))).rpartition(".")[2]
    places = {
        "model": (HERE / file, module),
        "trainer": (trainer(), "Trainer"),
    }
    if kind in data:
        places["data"] = (HERE / "data" / f"{data[kind]}.py", kind)
    elif "." not in str(given.get("data", "")) and not Path(str(given["data"])).exists():
        unknown("data", str(given["data"]), [*data])
    known = {first: parameters(*place) for first, place in places.items()}
    for name, value in given.items():
        first, _, rest = name.partition(".")
        common = COMMON | OWN[recipe]
        if not rest and name not in common:
            inner_ones = {f"{one}.{name}" for one in known if name in known[one]}
            inner_ones |= {f"data.{name}" for one in data if name in parameters(HERE / "data" / f"{data[one]}.py", one)}
            inner_ones |= {file_of(recipe, command)} if name in FILE else set()
            inner_ones |= {*OTHERWISE.get(name, ())}
            refuse(name, common, sorted(inner_ones))
        if name in typed and command not in OF_COMMAND.get(name, (command,)):
            refuse_here(name, command, OF_COMMAND[name])
        second, _, third = rest.partition(".")
        second = second.removesuffix("+")
        closed = known.get(first) and OTHERS not in known[first] and f"{first}.{second}" not in LINKED
        if rest and closed and second not in known[first]:
            if first == "data":
                with_weights(recipe, command, given)
                elsewhere(second, kind, data)
            refuse(f"{first}.{second}", {f"{first}.{one}" for one in known[first]}, OTHERWISE.get(second, ()))
        if rest and not third:
            fits(second, value, known.get(first, {}), places[first][0] if first in places else HERE)
        if not third and (not rest or closed):
            within(second or first, loaded(value))
    for name in CLASSES:
        value = given.get(name)
        if isinstance(value, str) and value.isidentifier() and value[0].isupper():
            known_ones = ours(name)
            if value not in known_ones:
                unknown(name.rpartition(".")[2], value, known_ones, loss_meant(name, value, given, known_ones))
    for name, (own, _) in NETWORKS.items():
        value = given.get(f"model.{name}")
        if isinstance(value, str) and value.isidentifier() and value[0].isupper() and value not in own:
            raise SystemExit(f"error: {name}: {misfit(value)}; accepted are {networks(name)}")
    inner(given, recipe, command)


def elsewhere(name: str, kind: str, data: dict[str, str]) -> None:
    """Say of which data module it is an option, where it is one of another."""
    theirs = [one for one in data if one != kind and name in parameters(HERE / "data" / f"{data[one]}.py", one)]
    if theirs:
        ways = " or ".join(f"--data {one}" for one in theirs)
        raise SystemExit(
            f"error: there is no option --data.{name} of {kind}; accepted is {ways} beside it, or --config with the "
            "config.yaml of a run"
        )


def functions(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """The subcommand, the options and their values of a recipe whose subcommands are functions."""
    file = HERE / WITHIN.get(recipe, f"{recipe}.py")
    chosen = "write" if recipe == "report" else subcommand(args, FUNCTIONS[recipe])
    accepted = parameters(file, chosen)
    if recipe != "report":
        refuse_bare(recipe, chosen, args)
    for name, value in given.items() if accepted else ():
        first = name.partition(".")[0].removesuffix("+")
        if first not in {*accepted, "config", "print_config"}:
            theirs = [one for one in FUNCTIONS[recipe] if first in parameters(file, one)]
            if theirs:
                refuse_here(name, chosen, theirs, accepted)
            refuse(name, accepted, [file_of(recipe, chosen)] * (name in FILE))
        if name == first:
            fits(name, value, accepted, file)
    if recipe == "boost" and chosen != "predict":
        typed = options([option for option in args if not option.startswith(("--config", "-c"))])
        check_read(str(given.get("model", "mh")), typed)


def subcommand(args: list[str], accepted: Any) -> str:
    """The first word that is no option."""
    word = next((word for word in args[:1] if not word.startswith("-")), None)
    if word is None and args:  # options before the subcommand: for the parser
        word = next((word for word in args if word in accepted), None)
    if word not in accepted:
        got = "none" if word is None else word
        raise SystemExit(f"error: there is no subcommand {got}; accepted are {', '.join(accepted)}")
    return str(word)


def refuse(name: str, accepted: Iterable[str], inner: Sequence[str] = ()) -> NoReturn:
    """Say that there is no such option, and which are like it, of which part it is one, or what does the same."""
    if name in MEANT:
        raise SystemExit(f"error: there is no option --{name} here; {MEANT[name]}")
    if any(inner):
        raise SystemExit(f"error: there is no option --{name}; it is --{' or --'.join(inner)}")
    like = get_close_matches(name, [*accepted], 3, 0.5)
    hint = f"; like it are {', '.join(f'--{one}' for one in like)}" if like else ""
    raise SystemExit(f"error: there is no option --{name}{hint}; all are listed by --help")


def file_of(recipe: str, command: str) -> str:
    """The option that names the file of rows or sentences; nothing where a command reads none."""
    if recipe in LIGHTNING and command == "predict":
        return "data.predict"
    if recipe in LIGHTNING:
        return "data.path" if recipe == "classify" else "data.train" if command == "fit" else "data.test"
    return "path" if "path" in parameters(HERE / WITHIN.get(recipe, f"{recipe}.py"), command) else ""


def refuse_bare(recipe: str, command: str, args: list[str]) -> None:
    """Refuse a word behind the subcommand that follows no option, and say which may be meant."""
    model = "ckpt_path" if recipe in LIGHTNING else "folder" if command == "predict" else ""
    for word in words(args)[1:]:
        ending = Path(word).suffix
        option = "config" if ending in (".yaml", ".yml") else file_of(recipe, command)
        option = model if model and (ending in (".ckpt", ".pt") or Path(word).is_dir()) else option
        how = f"as --{option} {word}" if option else "listed by --help"
        raise SystemExit(f"error: got {word} by itself; accepted are options, {how}")


def refuse_here(name: str, command: str, theirs: Sequence[str], accepted: Iterable[str] = ()) -> NoReturn:
    """Say of which other subcommands an option is, and which of this one means one where it means several."""
    named = " and ".join(filter(None, (", ".join(theirs[:-1]), theirs[-1])))
    like = [one for one in accepted if one in (f"{name}s", name.removesuffix("s"))]
    also = f"; like it is --{like[0]}" if like else ""
    said = f"error: there is no option --{name} of {command}{also}; it is an option of {named}"
    folder = f"; the folder of a {command} is --trainer.default_root_dir FOLDER"
    raise SystemExit(said + (folder if (name, command) == ("output", "fit") else ""))


def unknown(name: str, value: str, accepted: list[str], more: str = "") -> NoReturn:
    """Say that there is no such class, or none that fits."""
    raise SystemExit(
        f"error: {name}: {misfit(value)}; accepted are {', '.join(accepted)} or the dotted path of another{more}"
    )


def misfit(value: str) -> str:
    """Of a class that is not among those accepted: whether there is one."""
    known = value in public() or found(value, package("torch").parent / "nn/modules/__init__.py") is not None
    return f"{value} does not fit" if known else f"there is no class {value}"


def trainer() -> Path:
    """The file of Lightning's trainer."""
    return package("lightning").parent / "pytorch/trainer/trainer.py"
