"""Lightning's bar, on one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.callbacks.progress.rich_progress import CustomBarColumn
from rich.progress import ProgressColumn, Task, TextColumn
from rich.text import Text

from .progress import WIDTH, fitting, spoken

__all__ = ["Progress"]


class Facts(ProgressColumn):
    """Batches that are done, time left, and as many measured values as there is room for."""

    def __init__(self, callback: Progress, console_width: Callable[[], int]) -> None:
        self.callback, self.console_width = callback, console_width
        super().__init__()

    def render(self, task: Task) -> Text:
        """The rest of the line, behind the task's name and its bar."""
        total = f"{task.total:.0f}" if task.total is not None and task.total < float("inf") else "?"
        words = [f"{int(task.completed)}/{total}"]
        if task.time_remaining:
            words.append(f"{spoken(task.time_remaining)} left")
        if task.id == self.callback.train_progress_bar_id:
            words += [f"{name} {value:.3f}" for name, value in self.callback.measured.items()]
        name = max(len(task.description), len(self.callback.validation_description))
        return Text(fitting(words, self.console_width() - name - WIDTH - 3))


class Progress(RichProgressBar):
    """Lightning's bar on one line: what does not fit is left out, never cut or wrapped."""

    measured: Mapping[str, float]

    def __init__(self) -> None:
        super().__init__()
        self.measured = {}

    def configure_columns(self, trainer: Trainer) -> list[ProgressColumn]:
        """The parts of the line."""
        color = self.theme.progress_bar
        line = CustomBarColumn(bar_width=WIDTH, complete_style=color, finished_style=color, pulse_style=color)
        return [TextColumn("{task.description}"), line, Facts(self, lambda: self._console.width)]

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict:
        """Nothing for Lightning's own column; the values are kept for `Facts`."""
        metrics = super().get_metrics(trainer, pl_module)
        self.measured = {n: value for n, value in metrics.items() if n != "v_num" and isinstance(value, float)}
        return {}

    def _get_train_description(self, current_epoch: int) -> str:
        """Epochs counted from 1, as wide as the name of the validation's bar, which comes and goes below."""
        most = self.trainer.max_epochs
        name = f"Epoch {current_epoch + 1}" + (f"/{most}" if most is not None and most > 0 else "")
        return name.ljust(len(self.validation_description))
