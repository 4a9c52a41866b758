"""Train a tagger on a treebank, measure it, and tag files.

::

    python -m recipes.tag fit --config recipes/configs/pos_crf.yaml --model.loss M3NLoss
    python -m recipes.tag test --ckpt_path runs/tag/.../best.ckpt
    python -m recipes.tag predict --ckpt_path runs/tag/.../best.ckpt --data.predict in.conllu --output out.conllu
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import BasePredictionWriter
from lightning.pytorch.cli import LightningArgumentParser

from recipes.console import RecipeCLI, from_all_processes, write_atomically
from recipes.data.conllu import Sentence
from recipes.data.treebank import Treebank
from recipes.data.vocabulary import Vocabulary
from recipes.models.tagger import Tagger

__all__ = ["TagCLI", "Tagger", "Treebank", "WriteTags", "main", "tagged"]

DEFAULTS = {
    "data": {"class_path": "recipes.data.treebank.Treebank"},
    "model.loss": {"class_path": "torch_multiclass.CRFLoss"},
    "output": "tagged.conllu",
    "trainer.max_epochs": 10,
    "trainer.gradient_clip_val": 5.0,
    # The treebank's own sampler gives each process its share.
    "trainer.use_distributed_sampler": False,
}


def tagged(
    sentences: Sequence[Sentence], rows: Sequence[tuple[int, list[int]]], vocabulary: Vocabulary
) -> list[Sentence]:
    """The sentences with the predicted tags, given as (place of the sentence, numbers of its tags), written in."""
    result = list(sentences)
    for i, numbers in rows:
        result[i] = sentences[i].tagged(vocabulary.column, [vocabulary.tags[number] for number in numbers])
    return result


class WriteTags(BasePredictionWriter):
    """Write the sentences, with their predicted tags and all else as it was."""

    def __init__(self, path: Path, sentences: Sequence[Sentence]) -> None:
        super().__init__("epoch")
        self.path, self.sentences = path, sentences

    def write_on_epoch_end(
        self, trainer: Trainer, pl_module: LightningModule, predictions: Sequence[Any], batch_indices: Sequence[Any]
    ) -> None:
        """Collect the sentences of all processes and write the file once."""
        rows = from_all_processes([row for batch in predictions for row in batch])
        if trainer.is_global_zero:
            sentences = tagged(self.sentences, rows, pl_module.vocabulary)
            write_atomically(self.path, "".join(map(str, sentences)))
            print(f"{len(self.sentences)} sentences written to {self.path}")


class TagCLI(RecipeCLI):
    """The recipe's command line."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """One seed for weights and order; the best checkpoint by spans where there are any, else by tokens."""
        super().add_arguments_to_parser(parser)

    def before_predict(self) -> None:
        """Have the tags written."""
        self.datamodule.setup("predict")
        self.trainer.callbacks.append(WriteTags(Path(self.option("output")), self.datamodule.sentences["predict"]))


def main(args: list[str] | None = None) -> TagCLI:
    """Run the command line."""
    return TagCLI(Tagger, DEFAULTS, args)


if __name__ == "__main__":
    main()
