"""The command line that every recipe shares: what it shows, keeps, and says when something is wrong."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import yaml
from jsonargparse import Namespace, get_loader, set_loader
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.accelerators import AcceleratorRegistry
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from torch import optim

import torch_multiclass as tm

from . import yaml_files
from .checkpoints import BestAndLast, go_on, refuse_changes, unended
from .epochs import Progress
from .files import checkpoint, write_atomically
from .functions import called, misnamed, needed, shortly
from .given import COMMANDS, options
from .progress import on_terminal, result
from .start import first_cause, heard, note, one_line, program

__all__ = ["RecipeCLI", "quiet", "write_atomically"]

# Lightning's advice that does not concern data sets held in memory and short runs.
IRRELEVANT = (
    ".*does not have many workers",
    ".*The number of training batches .* is smaller than the logging interval",
    ".*Checkpoint directory .* exists and is not empty",
    ".*LeafSpec.*is deprecated",  # between Lightning and torch
    ".*it is recommended to use `Trainer\\(devices=1",
    ".*The dirpath has changed",  # of a checkpoint that was moved
    ".*`max_epochs` was not set",  # the tagger sets it
    "\\s*(By default only one JsonargparseDeprecation|skip_none parameter)",  # whose other name older versions lack
)


def check_accelerator(given: Any) -> None:
    """Raise for a device that is not here."""
    known = AcceleratorRegistry.available_accelerators()
    here = [one for one in known if AcceleratorRegistry[one]["accelerator"].is_available()]
    here += ["gpu"] * bool({"cuda", "mps"} & {*here}) + ["auto"]
    if isinstance(given, str) and given not in here:
        raise ValueError(f"accelerator: got {given}; accepted here are {', '.join(here)}")


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
    typed: Sequence[str] = ()
    """The command line."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say what is wrong, in one line; of a class that does not exist, also which there are."""
        given: Mapping[str, Any] = {}
        with suppress(ValueError, OSError):  # of a file that names what cannot be read
            given = options([*self.typed])
        said = f"{shortly(message, self.known)}; the options are listed by: {self.command} --help"
        raise SystemExit(f"error: {misnamed(message, given, self.command) or needed(message, given) or said}")


def load_yaml(text: str) -> Any:
    """What jsonargparse loads, but for texts that would fill the memory."""
    try:
        yaml_files.check(text)
    except ValueError as problem:
        raise yaml.YAMLError(str(problem)) from problem
    return plain_yaml(text)


plain_yaml = get_loader("yaml")
set_loader("yaml", load_yaml, (yaml.YAMLError,))


RUNS = "runs"
"""Where a fit is kept, unless ``--trainer.default_root_dir`` or a logger of the user's own names another folder."""
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
        | {"optimizer": [name for name, one in vars(optim).items() if isinstance(one, type) and name != "Optimizer"]}
    )
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Values of options that need not be given."""

    def __init__(self, model: type[LightningModule], args: list[str] | None = None) -> None:
        quiet()
        self.made: list[Path] = []
        logger = {"save_dir": RUNS, "name": "default"}
        typed = sys.argv[1:] if args is None else args
        parser = {"known": self.known, "command": called(self.name, typed, COMMANDS), "typed": typed}
        try:
            super().__init__(
                model,
                LightningDataModule,
                subclass_mode_data=True,
                auto_configure_optimizers=False,
                parser_class=type("Parser", (ShortParser,), parser),
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
        except SystemExit:
            unmade(self.made)
            raise
        except (ValueError, TypeError, OSError, MisconfigurationException) as problem:
            unmade(self.made)
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
        parser.add_argument("--output", type=str | None, default=None, help="the file that predict writes")
        parser.set_defaults(self.defaults)

    def parse_arguments(self, parser: LightningArgumentParser, args: list[str] | None) -> None:
        """Parse ``args`` whatever the process itself was called with, and look at the checkpoint first: Lightning lays
        its options of the model over those that were typed.
        """
        self.config = parser.parse_args(args)
        path = self.config[self.config.subcommand].get("ckpt_path")
        if path is not None:
            kept = checkpoint(Path(path), self.name)
            self.step = int(kept.get("global_step", 0))
            typed, asked = options([*parser.typed]), self.asked().get("model") or {}
            fit = self.config.subcommand == "fit"
            refuse_changes(typed, asked, kept.get("hyper_parameters", {}), str(path), fit)

    def asked(self) -> dict[str, Any]:
        """The configuration of the subcommand that runs, as a file has it."""
        command = self.config.subcommand
        return yaml.safe_load(self._parser(command).dump(self.config[command], skip_none=False))

    def option(self, name: str) -> Any:
        """The value of an option of the subcommand that runs."""
        return self.config[self.subcommand][name]

    def before_instantiate_classes(self) -> None:
        """Take up where a checkpoint left off; evaluate only trained weights, and keep no log of it."""
        path = self.option("ckpt_path")
        if path is None and self.subcommand != "fit":
            raise ValueError(f"ckpt_path: got none; {self.subcommand} needs the file of trained weights")
        check_accelerator(self.option("trainer.accelerator"))
        callbacks = self.trainer_defaults["callbacks"]
        callbacks.append(BestAndLast(None if path is None else Path(path).parent, *self.best_by()))
        bar = self.option("trainer.enable_progress_bar")
        self.option("trainer").enable_progress_bar = on_terminal() if bar is None else bar
        if self.option("trainer.enable_progress_bar"):
            callbacks.append(Progress())
        folder, logger = self.option("trainer.default_root_dir"), self.option("trainer.logger")
        if folder is not None and isinstance(logger, Namespace) and logger.init_args.get("save_dir") == RUNS:
            logger.init_args.save_dir = str(folder)
        if self.subcommand != "fit":
            self.save_config_callback = None
            self.option("trainer")["logger"] = False
        else:
            self.made = own_version(self.option("trainer")["logger"])
            if path is None and self.made:
                self.remind(self.made[0])

    def remind(self, folder: Path) -> None:
        """Say of a fit that was begun alike, and was killed perhaps, how it would go on."""
        asked = self.asked()
        last = unended(folder, {part: asked.get(part) for part in ("model", "data", "seed_everything")})
        if last is not None:
            note(
                f"{shown(last.parent.parent)} was begun with the same model and data and has not ended; "
                f"to go on: --ckpt_path {last}"
            )

    def instantiate_classes(self) -> None:
        """Make model and data; what is worth a line of the data of a fit was said by the fit."""
        with heard(self.subcommand == "fit"):
            super().instantiate_classes()
        if self.subcommand == "fit" and self.option("ckpt_path") is not None and self.trainer.is_global_zero:
            for logger in self.trainer.loggers:
                if isinstance(logger, CSVLogger):
                    go_on(logger, self.step)

    def best_by(self) -> tuple[str, str]:
        """The logged value by which a checkpoint is best, and whether by its minimum or maximum."""
        return "val_loss", "min"

    def after_fit(self) -> None:
        """Test the best checkpoint, of whose data the fit said what is worth a line, and say what came of it."""
        best = self.trainer.checkpoint_callback.best_model_path
        if not best:
            return
        with heard(False):
            self.trainer.test(datamodule=self.datamodule, ckpt_path=best, verbose=False)
        self.say("test")
        if self.trainer.is_global_zero:
            print(f"best weights: {shown(best)}", flush=True)

    def before_test(self) -> None:
        """Have the result said in one line, in place of Lightning's table."""
        options = self.config_init[self.subcommand]
        self.verbose, options["verbose"] = options["verbose"], False

    def after_test(self) -> None:
        """Say the result."""
        if self.verbose:
            self.say("test")

    before_validate = before_test

    def after_validate(self) -> None:
        """Say the result."""
        if self.verbose:
            self.say("val")

    def say(self, part: str) -> None:
        """One line of what was measured, with or without a progress bar."""
        if self.trainer.is_global_zero:
            print(result(self.measured(part), part), flush=True)

    def measured(self, part: str) -> Mapping[str, Any]:
        """What there is to say of a part."""
        return self.trainer.callback_metrics


def while_loading(problem: BaseException) -> bool:
    """Whether an exception was raised by what restores a checkpoint."""
    frames = traceback.extract_tb(problem.__traceback__)
    return any(re.match("_?(restore|load|on_load|migrate)", frame.name) for frame in frames)


def own_version(logger: Any) -> list[Path]:
    """Take the next free folder of the log for this run alone, so that runs started at once do not share one.

    Returns:
        The folders that were made for it, the innermost first.
    """
    options = getattr(logger, "init_args", None)
    if options is None or not str(logger.class_path).endswith("CSVLogger") or options.get("version") is not None:
        return []
    if int(os.environ.get("LOCAL_RANK", 0)) or int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0))):
        return []
    folder = Path(options.save_dir) / (options.get("name") or "")
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    taken = [path.name.removeprefix("version_") for path in folder.glob("version_*")]
    number = max((int(name) for name in taken if name.isdigit() and len(name) < 10), default=-1) + 1
    while True:
        try:
            (folder / f"version_{number}").mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            options.version = number
            return [folder / f"version_{number}", *new]


def unmade(folders: Sequence[Path]) -> None:
    """Take back the folders of a run that failed before it kept anything."""
    if folders and {path.name for path in folders[0].glob("*")} <= {"config.yaml", "hparams.yaml"}:
        for path in folders[0].glob("*"):
            path.unlink()
        for folder in folders:
            with suppress(OSError):  # which is not empty
                folder.rmdir()


def shown(path: str) -> str:
    """A path as short as it can be typed here."""
    short = os.path.relpath(path)
    return path if short.startswith("..") else short
