"""Train, test and use a classifier: any backbone, any head, any loss, on digits, a table (CSV, TSV, Parquet) or arrays.

::

    python -m recipes.classify fit --config recipes/configs/digits_crammer_singer.yaml
    python -m recipes.classify predict --ckpt_path runs/.../best.ckpt --output labels.txt
    python -m recipes.classify predict --ckpt_path runs/.../best.ckpt --probabilities true
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("classify")

import contextlib
import io
import time
from pathlib import Path
from types import MappingProxyType

import numpy as np
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import BasePredictionWriter
from lightning.pytorch.cli import LightningArgumentParser

from .answers import write
from .checkpoints import from_all_processes
from .classes import ours
from .console import RecipeCLI
from .data.digits import Digits
from .data.files import Table
from .data.kept import Kept
from .data.npz import Npz
from .data.rows import RowsDataModule
from .models import MLP, Classifier, ConvNet

__all__ = ["MLP", "Classifier", "ClassifyCLI", "ConvNet", "Digits", "Npz", "Table", "WriteLabels", "main", "train"]


class WriteLabels(BasePredictionWriter):
    """Write the predicted labels by their original names, one a line, in the order of the rows; with probabilities,
    if the model gives them, or columns of the rows, a CSV table.
    """

    def __init__(self, output: str | None, classes: list[str], kept: Kept | None = None) -> None:
        super().__init__("epoch")
        self.output, self.classes, self.kept = output, classes, kept

    def write_on_epoch_end(
        self, trainer: Trainer, pl_module: LightningModule, predictions: list, batch_indices: list
    ) -> None:
        """Collect the rows of all processes and write the file once."""
        rows = [row for batch in batch_indices[0] for row in batch]
        answers = [answer for batch in predictions for answer in batch]
        labelled = sorted(from_all_processes(list(zip(rows, answers, strict=True))))
        if trainer.is_global_zero:
            labels = [self.classes[label] for _, (label, *_) in labelled]
            shares = np.array([share for _, (_, *share) in labelled]) if pl_module.probabilities else None
            write(self.output, labels, self.classes, shares, self.kept)


class ClassifyCLI(RecipeCLI):
    """The recipe's command line: the names of the classes and the shape of a row come from the data."""

    name = "classify"
    known = RecipeCLI.known | {
        "data": ["Digits", "Npz", "Table"],
        "backbone": ["ConvNet", "MLP"],
        "head": ours("model.head"),
    }
    defaults = MappingProxyType(
        {
            "data": {"class_path": f"{Digits.__module__}.Digits"},
            "model.backbone": {"class_path": f"{ConvNet.__module__}.ConvNet"},
            "model.head": {"class_path": "torch_multiclass.MulticlassHead"},
        }
    )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Link the model to the data."""
        super().add_arguments_to_parser(parser)
        parser.add_argument("--probabilities", type=bool, default=False, help="predict writes those of the classes")
        parser.add_argument("--keep", type=list[str] | str | None, default=None, help="columns that predict writes")
        for name in ("classes", "input_shape"):
            parser.link_arguments(f"data.{name}", f"model.{name}", apply_on="instantiate")

    def before_fit(self) -> None:
        """Say what is worth a line about the file."""
        if self.trainer.is_global_zero and isinstance(self.datamodule, RowsDataModule):
            self.datamodule.remark(weighted=not self.model.weighted)

    def before_predict(self) -> None:
        """Have the labels written."""
        self.model.probabilities = self.option("probabilities")
        data, known = self.datamodule, None
        if isinstance(data, RowsDataModule):
            known = data.kept(self.option("keep"))
        self.trainer.callbacks.append(WriteLabels(self.option("output"), data.classes, known))


def main(args: list[str] | None = None) -> ClassifyCLI:
    """Run the command line."""
    return ClassifyCLI(Classifier, args)


def train(config: str | Path, *options: str) -> tuple[ClassifyCLI, float]:
    """Fit and test a configuration silently; the command line, its model holding the best weights, and the seconds."""
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        cli = main(["fit", f"--config={config}", "--trainer.enable_progress_bar=false", *options])
    return cli, time.perf_counter() - start
