"""The command line that every recipe shares: what it shows, keeps, and says when something is wrong."""

from __future__ import annotations

import logging
import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import yaml
from jsonargparse import get_loader, set_loader
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

import torch_multiclass as tm
from torch_multiclass.solvers import Interrupted
from torch_multiclass.solvers.report import Step

from . import yaml_files
from .checkpoints import BestAndLast
from .files import checkpoint, write_atomically
from .start import first_cause, one_line, program

__all__ = ["Progress", "RecipeCLI", "bar", "quiet", "write_atomically"]

# Lightning's advice that does not concern data sets held in memory and short runs.
IRRELEVANT = (
    ".*does not have many workers",
    ".*The number of training batches .* is smaller than the logging interval",
    ".*Checkpoint directory .* exists and is not empty",
    ".*LeafSpec.*is deprecated",  # between Lightning and torch
    ".*it is recommended to use `Trainer\\(devices=1",
    ".*The dirpath has changed",  # of a checkpoint that was moved
    ".*`max_epochs` was not set",  # the tagger sets it
)


def quiet() -> None:
    """Drop Lightning's advice that does not concern these recipes; real warnings stay."""
    for words in IRRELEVANT:
        warnings.filterwarnings("ignore", words)
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="lightning|jsonargparse")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)


class ShortParser(LightningArgumentParser):
    """A parser whose errors are the error, without the two pages of options before it."""

    known: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Which classes an option accepts, by the option's last name."""
    command = ""
    """How the command is written."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say what is wrong, in one line; of a class that does not exist, also which there are."""
        raise SystemExit(f"error: {shortly(message, self.known)}; the options are listed by: {self.command} --help")


def shortly(message: str, known: Mapping[str, Sequence[str]]) -> str:
    """The parser's account of an option that has the wrong value, as one line."""
    key = re.search(r'Parser key "(?:\w+\.)*?(\w+)":', message)
    if key is None:
        return one_line(ValueError(message))
    name, accepted = key[1], ", ".join(known.get(key[1], ()))
    missing = re.search(r"Expected a (?:path but|dot import path string:) (\S+)", message)
    if missing and accepted:
        return f"{name}: there is no class {missing[1]}; accepted are {accepted} or the dotted path of another"
    reasons = re.findall(r"^ *- (.+)$", message, re.MULTILINE) or [message.split(":", 1)[1]]
    given = re.search(r"^ *Given value: (.+)$", message, re.MULTILINE)
    got = f"got {given[1]}: " if given else ""
    return f"{name}: {got}{one_line(ValueError('; or '.join(dict.fromkeys(reasons))))}"


def load_yaml(text: str) -> Any:
    """What jsonargparse loads, but for texts that would fill the memory."""
    try:
        yaml_files.check(text)
    except ValueError as problem:
        raise yaml.YAMLError(str(problem)) from problem
    return plain_yaml(text)


plain_yaml = get_loader("yaml")
set_loader("yaml", load_yaml, (yaml.YAMLError,))


class Progress(RichProgressBar):
    """Lightning's bar without the version of the log."""

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict:
        """The metrics shown beside the bar."""
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}


KINDS = ("Head", "Loss", "Decoder")


class RecipeCLI(LightningCLI):
    """Lightning's command line with the best and last checkpoints, a CSV log, and a test of the best after a fit.

    Args:
        model: the module to train.
        args: the command line; default: that of the process.
    """

    name = ""
    """The recipe's."""
    known: Mapping[str, Sequence[str]] = MappingProxyType(
        {kind.lower(): [name for name in tm.__all__ if name.endswith(kind) and name != kind] for kind in KINDS}
    )
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Values of options that need not be given."""

    def __init__(self, model: type[LightningModule], args: list[str] | None = None) -> None:
        quiet()
        logger = {"save_dir": "runs", "name": "default"}
        try:
            super().__init__(
                model,
                LightningDataModule,
                subclass_mode_data=True,
                auto_configure_optimizers=False,
                parser_class=type("Parser", (ShortParser,), {"known": self.known, "command": program(self.name)}),
                parser_kwargs={"prog": program(self.name)},
                seed_everything_default=0,
                save_config_kwargs={"overwrite": True},
                trainer_defaults={
                    "max_epochs": 20,
                    "callbacks": [],
                    "enable_model_summary": False,
                    "logger": {"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": logger},
                },
                args=args,
            )
        except (ValueError, TypeError, OSError) as problem:
            raise SystemExit(f"error: {one_line(first_cause(problem))}") from problem
        except (RuntimeError, LookupError, AttributeError) as problem:
            path = getattr(self, "config", {}).get(getattr(self, "subcommand", ""), {}).get("ckpt_path")
            if path is None or not while_loading(problem):
                raise
            what = one_line(problem, 300)
            what = f"has no {what}" if isinstance(problem, KeyError) and " " not in what else what
            raise SystemExit(f"error: ckpt_path: {path} does not fit together: {what}") from problem

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add ``--output`` and the defaults."""
        parser.add_argument("--output", type=str, default="labels.txt", help="the file that predict writes")
        parser.set_defaults(self.defaults)

    def parse_arguments(self, parser: LightningArgumentParser, args: list[str] | None) -> None:
        """Parse ``args`` whatever the process itself was called with, and look at the checkpoint first."""
        self.config = parser.parse_args(args)
        path = self.config[self.config.subcommand].get("ckpt_path")
        if path is not None:
            checkpoint(Path(path), self.name)

    def option(self, name: str) -> Any:
        """The value of an option of the subcommand that runs."""
        return self.config[self.subcommand][name]

    def before_instantiate_classes(self) -> None:
        """Take up where a checkpoint left off; evaluate only trained weights, and keep no log of it."""
        path = self.option("ckpt_path")
        if path is None and self.subcommand != "fit":
            raise ValueError(f"ckpt_path: got none; {self.subcommand} needs the file of trained weights")
        callbacks = self.trainer_defaults["callbacks"]
        callbacks.append(BestAndLast(None if path is None else Path(path).parent, *self.best_by()))
        if self.option("trainer.enable_progress_bar") is not False:
            callbacks.append(Progress())
        if self.subcommand != "fit":
            self.save_config_callback = None
            self.option("trainer")["logger"] = False
        else:
            own_version(self.option("trainer")["logger"])

    def best_by(self) -> tuple[str, str]:
        """The logged value by which a checkpoint is best, and whether by its minimum or maximum."""
        return "val_loss", "min"

    def after_fit(self) -> None:
        """Test the best checkpoint; without a progress bar, silently."""
        best = self.trainer.checkpoint_callback.best_model_path
        if not best:
            return
        shown = self.option("trainer.enable_progress_bar") is not False
        self.trainer.test(datamodule=self.datamodule, ckpt_path=best, verbose=shown)
        if shown and self.trainer.is_global_zero:
            print(f"best weights: {best}")


def while_loading(problem: BaseException) -> bool:
    """Whether an exception was raised by what restores a checkpoint."""
    frames = traceback.extract_tb(problem.__traceback__)
    return any(re.match("_?(restore|load|on_load|migrate)", frame.name) for frame in frames)


def own_version(logger: Any) -> None:
    """Take the next free folder of the log for this run alone, so that runs started at once do not share one."""
    options = getattr(logger, "init_args", None)
    if options is None or not str(logger.class_path).endswith("CSVLogger") or options.get("version") is not None:
        return
    if int(os.environ.get("LOCAL_RANK", 0)) or int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0))):
        return
    folder = Path(options.save_dir) / (options.get("name") or "")
    taken = [path.name.removeprefix("version_") for path in folder.glob("version_*")]
    number = max((int(name) for name in taken if name.isdigit() and len(name) < 10), default=-1) + 1
    while True:
        try:
            (folder / f"version_{number}").mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            options.version = number
            return


@contextmanager
def bar(name: str, total: int | None, wanted: bool | None = None) -> Iterator[Callable[[Step], None]]:
    """A bar of the steps of a solver that are done, on standard error; by default on a terminal.

    Ctrl-C is for the recipe to speak of, in its one line.
    """
    console = Console(stderr=True)
    parts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    off = not (console.is_terminal if wanted is None else wanted)
    with warnings.catch_warnings(), Bar(*parts, console=console, transient=wanted is None, disable=off) as shown:
        warnings.simplefilter("ignore", Interrupted)
        task = shown.add_task(name, total=total)
        yield lambda step: shown.update(task, completed=step.iteration)
