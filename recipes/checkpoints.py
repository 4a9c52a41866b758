"""What a training keeps, whole at any moment, and with all that a resumed run needs to end where it would have."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from . import yaml_files
from .files import save, write_whole
from .given import flat
from .signatures import loaded
from .start import stopped

__all__ = [
    "BestAndLast",
    "WholeFiles",
    "from_all_processes",
    "go_on",
    "refuse_changes",
    "save",
    "unended",
    "write_whole",
]

Item = TypeVar("Item")


class WholeFiles(TorchCheckpointIO):
    """Lightning's files, but whole or not at all also where the temporary folder is on another file system."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Replace the file, if it is one of this machine."""
        if "://" in str(path) or storage_options is not None:
            super().save_checkpoint(checkpoint, path, storage_options)
        else:
            save(Path(path), checkpoint)


class BestAndLast(ModelCheckpoint):
    """Keeps ``best.ckpt`` and ``last.ckpt``; a resumed run goes on in the same folder, with the same random numbers.

    Args:
        folder: where to keep them; default: the folder of the log.
        monitor: the logged value that says which is best.
        mode: whether the lowest (``"min"``) or the highest (``"max"``) value is best.
    """

    def __init__(self, folder: Path | None = None, monitor: str = "val_loss", mode: str = "min") -> None:
        super().__init__(
            folder, filename="best", monitor=monitor, mode=mode, save_last=True, enable_version_counter=False
        )
        self.random: list[list[torch.Tensor]] = []

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Know the folder by its full name, so that a resumed run recognises it."""
        super().setup(trainer, pl_module, stage)
        self.dirpath = os.path.realpath(self.dirpath)
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = WholeFiles()

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Keep where the random numbers of each process are: they shuffle the rows and drop units out."""
        states = [torch.get_rng_state()]
        if pl_module.device.type == "cuda":
            states.append(torch.cuda.get_rng_state(pl_module.device))
        checkpoint["random"] = from_all_processes([states])

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Remember where they were."""
        self.random = checkpoint.get("random", [])

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on from there, if there are as many processes as there were."""
        super().on_train_start(trainer, pl_module)
        if len(self.random) != trainer.world_size:
            return
        processor, *accelerator = self.random[trainer.global_rank]
        torch.set_rng_state(processor.cpu())
        if accelerator and pl_module.device.type == "cuda":
            torch.cuda.set_rng_state(accelerator[0].cpu(), pl_module.device)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the best and, whether it is that or not, the last, where it is the end of a validation."""
        super().on_validation_end(trainer, pl_module)
        if not self._should_save_on_train_epoch_end(trainer):
            self.keep_last(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The same, where it is the end of an epoch."""
        super().on_train_epoch_end(trainer, pl_module)
        if self._should_save_on_train_epoch_end(trainer):
            self.keep_last(trainer)

    def keep_last(self, trainer: Trainer) -> None:
        """Write ``last.ckpt`` also where the step was not the best: Lightning's newer versions do not."""
        if not self._should_skip_saving_checkpoint(trainer):
            self._save_last_checkpoint(trainer, self._monitor_candidates(trainer))

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Say how a training that was ended from the keyboard goes on."""
        super().on_exception(trainer, pl_module, exception)
        if isinstance(exception, KeyboardInterrupt) and self.last_model_path and trainer.is_global_zero:
            stopped(f"to go on: --ckpt_path {self.last_model_path}")


def unended(folder: Path, begun: Mapping[str, Any]) -> Path | None:
    """The last checkpoint of the newest other run beside ``folder``, if it was begun alike and did not end."""
    runs = [path for path in folder.parent.glob("version_*") if path != folder and (path / "config.yaml").is_file()]
    run = max(runs, key=lambda path: path.stat().st_mtime, default=folder)
    last, log = run / "checkpoints" / "last.ckpt", run / "metrics.csv"
    if not last.is_file() or (log.is_file() and "test_" in log.read_text(encoding="utf-8").partition("\n")[0]):
        return None  # a fit ends with its test
    kept = yaml_files.read(run / "config.yaml")
    alike = isinstance(kept, Mapping) and all(kept.get(part) == value for part, value in begun.items())
    return last if alike else None


TRAINING = ("learning_rate", "weight_decay", "optimizer", "schedule", "averaging")
"""Options of a model that play no part once it is trained."""
READING = ("column",)
"""Options of a model that say how a file is read, which need not be as those of the training were."""


def refuse_changes(
    typed: Mapping[str, Any], asked: Mapping[str, Any], kept: Mapping[str, Any], path: str, fit: bool
) -> None:
    """Raise for a typed option of the model that is not as a checkpoint has it, by whose options the model is made.

    Args:
        typed: the options of the command line and of its files.
        asked: the configuration of the model that they make.
        kept: that of the checkpoint.
        path: of the checkpoint.
        fit: whether it is trained further; else what is for training alone, and how a file is read, may be anything.
    """
    ours, theirs = (
        {name.replace(".dict_kwargs", ""): value for name, value in flat(part, "model").items()}
        for part in (asked, kept)
    )
    for option, given in typed.items():
        part = option.partition(".")[2].partition(".")[0]
        if not option.startswith("model.") or part not in kept or (part in (*TRAINING, *READING) and not fit):
            continue
        for name in flat(loaded(given), option.replace(".dict_kwargs", "")):
            if name in ours and ours[name] != theirs.get(name):
                raise ValueError(changed(name, ours[name], theirs.get(name), path, fit))


def changed(name: str, given: Any, kept: Any, path: str, fit: bool) -> str:
    """The words for an option that is not as a checkpoint has it."""
    got, had = ("the default" if one is None else str(one) for one in (given, kept))
    how = f"accepted is to leave --{name} out, or a fit of its own without --ckpt_path"
    if name.startswith("model.head.decoder"):
        how += ", or in Python load(FOLDER).model.head.decoder = ..."
    so = "a fit that goes on keeps" if fit else "the model keeps"
    return f"{name}: got {got}; {path} was trained with {had}, which {so}; {how}"


def go_on(logger: CSVLogger, step: int) -> None:
    """Keep what a run had logged before the step of its checkpoint, which Lightning takes away when it is resumed."""
    path = Path(logger.log_dir) / "metrics.csv"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    whole = text[: text.rfind("\n") + 1]  # a killed run may have been writing its last line
    rows = list(csv.DictReader(io.StringIO(whole)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Experiment logs directory .* exists and is not empty")
        writer = logger.experiment
    before = [row for row in rows if (row.get("step") or "").isdigit() and int(row["step"]) < step]
    if before:
        writer.metrics_keys = list(rows[0])
        lines = io.StringIO()
        table = csv.DictWriter(lines, writer.metrics_keys)
        table.writeheader()
        table.writerows(before)
        write_whole(path, lines.getvalue().encode())


def from_all_processes(items: list[Item]) -> list[Item]:
    """The items of every process, in every process."""
    if not torch.distributed.is_initialized():
        return items
    shares: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(shares, items)
    return [item for share in shares for item in share]
