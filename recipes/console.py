"""The command line that every recipe shares: what it shows, keeps, and says when something is wrong."""

from __future__ import annotations

import gzip
import logging
import os
import pickle
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import torch
from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI

import torch_multiclass as tm

from .checkpoints import BestAndLast, write_whole
from .progress import Progress, on_terminal, result

# Lightning's advice that does not concern data sets held in memory and short runs.
IRRELEVANT = (
    ".*does not have many workers",
    ".*The number of training batches .* is smaller than the logging interval",
    ".*Checkpoint directory .* exists and is not empty",
    ".*LeafSpec.*is deprecated",  # between Lightning and torch
    ".*it is recommended to use `Trainer\\(devices=1",
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

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say what is wrong; of a class that does not exist, also which there are."""
        for key, name in re.findall(r'Parser key "(?:\w+\.)*(\w+)":\s+- Expected a path but (\S+) ', message):
            accepted = ", ".join(self.known.get(key, ()))
            message = f"{key}: there is no class {name}; accepted are {accepted} or the dotted path of another"
        raise SystemExit(f"error: {message}\nthe options are listed by: {self.prog} --help")


RUNS = "runs"
"""Where a fit is kept, unless ``--trainer.default_root_dir`` or a logger of the user's own names another folder."""
KINDS = ("Head", "Loss", "Decoder")


class RecipeCLI(LightningCLI):
    """Lightning's command line with the best and last checkpoints, a CSV log, and a test of the best after a fit.

    Args:
        model: the module to train.
        args: the command line; default: that of the process.
    """

    known: Mapping[str, Sequence[str]] = MappingProxyType(
        {kind.lower(): [name for name in tm.__all__ if name.endswith(kind) and name != kind] for kind in KINDS}
    )
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Values of options that need not be given."""

    def __init__(self, model: type[LightningModule], args: list[str] | None = None) -> None:
        quiet()
        logger = {"save_dir": RUNS, "name": "default"}
        try:
            super().__init__(
                model,
                LightningDataModule,
                subclass_mode_data=True,
                auto_configure_optimizers=False,
                parser_class=type("Parser", (ShortParser,), {"known": self.known}),
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
            raise SystemExit(f"error: {first_cause(problem)}") from problem

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add ``--output`` and the defaults."""
        parser.add_argument("--output", type=str, default="labels.txt", help="the file that predict writes")
        parser.set_defaults(self.defaults)

    def parse_arguments(self, parser: LightningArgumentParser, args: list[str] | None) -> None:
        """Parse ``args`` whatever the process itself was called with, and look at the checkpoint first."""
        self.config = parser.parse_args(args)
        path = self.config[self.config.subcommand].get("ckpt_path")
        if path is not None:
            self._check_checkpoint(Path(path))

    def _check_checkpoint(self, path: Path) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"ckpt_path: there is no file {path}")
        try:
            checkpoint = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
        except (pickle.UnpicklingError, EOFError, RuntimeError, OSError):
            checkpoint = None
        if not isinstance(checkpoint, dict) or not self.is_ours(checkpoint):
            raise ValueError(f"ckpt_path: {path} is no checkpoint of this recipe; accepted is a file that it wrote")

    @staticmethod
    def is_ours(checkpoint: dict[str, Any]) -> bool:
        """Whether a checkpoint is of this recipe."""
        return "state_dict" in checkpoint and "tagger" not in checkpoint

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

    def best_by(self) -> tuple[str, str]:
        """The logged value by which a checkpoint is best, and whether by its minimum or maximum."""
        return "val_loss", "min"

    def after_fit(self) -> None:
        """Test the best checkpoint, and say what came of it."""
        best = self.trainer.checkpoint_callback.best_model_path
        if not best:
            return
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
            print(result(self.trainer.callback_metrics, part), flush=True)


def shown(path: str) -> str:
    """A path as short as it can be typed here."""
    short = os.path.relpath(path)
    return path if short.startswith("..") else short


def first_cause(problem: BaseException) -> BaseException:
    """What an exception began with, out of those that report it further up."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem


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
