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
from .start import stopped

__all__ = ["BestAndLast", "WholeFiles", "from_all_processes", "go_on", "save", "unended", "write_whole"]

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
