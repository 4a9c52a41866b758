"""Train a tagger on a treebank, measure it, and tag files.

::

    python -m recipes.tag fit --config recipes/configs/pos_crf.yaml --model.loss M3NLoss
    python -m recipes.tag test --ckpt_path runs/.../best.ckpt
    python -m recipes.tag predict --ckpt_path runs/.../best.ckpt --data.predict in.conllu --output out.conllu
    python -m recipes.tag predict --ckpt_path runs/.../best.ckpt --data.predict notes.txt --k_best 3

Files are CoNLL-U, CoNLL of two to five columns, or JSON lines with ``tokens`` and ``tags``; plain text can be tagged.
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("tag")

import contextlib
import io
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.cli import LightningArgumentParser

import torch_multiclass as tm

from .checkpoints import from_all_processes
from .classes import ours
from .console import RecipeCLI, write_atomically
from .data.columns import ColumnSentence
from .data.sentences import Sentence
from .data.treebank import Treebank
from .data.vocabulary import Vocabulary
from .files import replacing
from .given import options
from .models.encoders import ConvolutionEncoder
from .models.tagger import Prediction, Tagger
from .names import listed
from .ranges import within
from .start import note

__all__ = ["ConvolutionEncoder", "TagCLI", "Tagger", "Treebank", "WriteTags", "main", "tagged", "train"]


def tagged(sentences: Sequence[Sentence], rows: Sequence[Sequence[Any]], vocabulary: Vocabulary) -> list[Sentence]:
    """The sentences with what was predicted of them written in: `Prediction` rows, or their first two entries."""
    result = list(sentences)

    def named(numbers: list[int]) -> list[str]:
        return [vocabulary.tags[number] for number in numbers]

    for i, numbers, *more in rows:
        if min(numbers) < 0:
            raise ValueError(
                f"{sentences[i].place(0)}: no sequence of {len(numbers)} of the tags {listed(vocabulary.tags)} is "
                "well formed; accepted is a model trained with --model.constrained false"
            )
        probabilities, others, best = more or (None, [], None)
        others = [(named(labels), p) for labels, p in others]
        result[i] = sentences[i].tagged(vocabulary.written(sentences[i]), named(numbers), probabilities, others, best)
    return result


class WriteTags(Callback):
    """Write the sentences, with their predicted tags and all else as it was, once all are tagged."""

    def __init__(self, path: Path, sentences: Sequence[Sentence]) -> None:
        self.path, self.sentences = path, sentences
        self.rows: list[Prediction] = []

    def on_predict_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:  # fmt: skip
        """Keep the tags of a batch."""
        self.rows += outputs

    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Collect the sentences of all processes and write the file."""
        rows = from_all_processes(self.rows)
        if trainer.is_global_zero:
            sentences = tagged(self.sentences, rows, pl_module.vocabulary)
            text = "".join(map(str, sentences))
            replacing(self.path, text)
            write_atomically(self.path, text)
            print(closing(sentences, self.path, pl_module))
            if pl_module.scheme is not None:
                print(spans_found([[pl_module.vocabulary.tags[k] for k in row[1]] for row in rows]))
            first = next((sentence for sentence in self.sentences if sentence.words), None)
            if isinstance(first, ColumnSentence) and (said := first.replaced(pl_module.vocabulary.written(first))):
                note(f"{first.path}: {said}; a file without that column keeps all it has")


TAB = "\t"


def closing(sentences: Sequence[Sentence], path: Path, model: Tagger) -> str:
    """What was written, and what stands where in it."""
    kept = [sentence for sentence in sentences if sentence.words]
    count = f"{len(kept)} sentence{'s' * (len(kept) != 1)}"
    where = kept[0].layout(model.vocabulary.written(kept[0]), model.probabilities, model.k_best)
    by = kept[0].mark if isinstance(kept[0], ColumnSentence) else ""
    return f"{count} written to {path}: {where}" + (f", parted by {'tabs' if by == TAB else 'blanks'}" if by else "")


def spans_found(tags: Sequence[Sequence[str]]) -> str:
    """How many spans the tags of sentences hold, and of none that there is none."""
    count = sum(len(tm.tag_spans(row)) for row in tags)
    said = f"{count} span{'s' * (count != 1)} in {len(tags)} sentence{'s' * (len(tags) != 1)}"
    return said if count else f"{said}: every token is O"


def epochs(words: int, batch_tokens: int) -> int:
    """Ten passes over a treebank; over a small one as many as make 2,000 steps, up to forty."""
    return min(max(math.ceil(2000 * batch_tokens / max(words, 1)), 10), 40)


def unfound(measured: Mapping[str, Any], passes: int | None) -> str:
    """What to do where no span was found, however many words outside them are right; else nothing."""
    if measured.get("test_span_f1", 1.0) != 0:
        return ""
    given = f"; --trainer.max_epochs was {passes}" if passes else ""
    return f"no span of the test part was found, whatever the accuracy: a longer training may find some{given}"


class TagCLI(RecipeCLI):
    """The recipe's command line: one seed rules the weights and the order of the sentences."""

    name = "tag"
    known = RecipeCLI.known | {
        "data": ["Treebank"],
        "loss": ours("model.loss"),
        "encoder": ["BiLSTMEncoder", "ConvolutionEncoder"],
    }
    defaults = MappingProxyType(
        {
            "data": {"class_path": f"{Treebank.__module__}.Treebank"},
            "model.loss": {"class_path": "torch_multiclass.CRFLoss"},
            "output": "tagged.conllu",
            "trainer.max_epochs": None,  # see before_fit
            "trainer.gradient_clip_val": 5.0,
            "trainer.use_distributed_sampler": False,  # the treebank's own sampler gives each process its share
        }
    )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Link the data to the seed."""
        super().add_arguments_to_parser(parser)
        parser.link_arguments("seed_everything", "data.init_args.seed", compute_fn=int)
        parser.add_argument("--probabilities", type=bool, default=False, help="predict writes one for each token")
        parser.add_argument("--k_best", type=int, default=1, help="predict writes so many taggings of each sentence")

    def best_by(self) -> tuple[str, str]:
        """By spans where there are any, else by tokens."""
        return "val_accuracy" if self.option("model.scheme") is None else "val_span_f1", "max"

    def parse_arguments(self, parser: LightningArgumentParser, args: list[str] | None) -> None:
        """Remember a column that is typed for other files than the training's: Lightning takes the checkpoint's."""
        super().parse_arguments(parser, args)
        typed = self.config.subcommand != "fit" and "model.column" in options([*parser.typed])
        self.reading = {"column": self.config[self.config.subcommand]["model.column"]} if typed else {}

    def instantiate_classes(self) -> None:
        """Make model and data, and have the model read the files as it was asked to."""
        super().instantiate_classes()
        self.model.reading = self.reading

    def before_fit(self) -> None:
        """Say which sentences are for what; unless told how long, train as long as the treebank's size suggests."""
        self.datamodule.setup("fit")
        train = self.datamodule.sentences["train"]
        self.model.price(sorted({tag for one in train for tag in one.tags(self.model.column) if tag is not None}))
        if self.trainer.is_global_zero:
            print(self.datamodule.told("train", "dev", "test"), flush=True)
        if self.option("trainer.max_epochs") is None and self.trainer.max_steps == -1:
            words = sum(len(sentence.words) for sentence in train)
            self.trainer.fit_loop.max_epochs = epochs(words, self.datamodule.batch_tokens)

    def after_fit(self) -> None:
        """Test the best weights; of spans none of which was found, say what to do."""
        super().after_fit()
        if self.trainer.is_global_zero and (said := unfound(self.trainer.callback_metrics, self.trainer.max_epochs)):
            note(said)

    def say(self, part: str) -> None:
        """One line of what was measured, after one of the sentences, where a fit has not said which."""
        if self.subcommand != "fit" and self.trainer.is_global_zero:
            print(self.datamodule.told({"val": "dev"}.get(part, part)), flush=True)
        super().say(part)

    def measured(self, part: str) -> Mapping[str, Any]:
        """All but the share of unknown words that were tagged right, where no word was unknown."""
        data = getattr(self.trainer, f"{part}_dataloaders").dataset
        found = super().measured(part)
        without = () if bool(data.unknown.any()) else (f"{part}_unknown_accuracy",)
        return {name: value for name, value in found.items() if name not in without}

    def before_predict(self) -> None:
        """Have the tags written."""
        within("k_best", self.option("k_best"))
        self.model.probabilities, self.model.k_best = self.option("probabilities"), self.option("k_best")
        self.datamodule.setup("predict")
        self.trainer.callbacks.append(WriteTags(Path(self.option("output")), self.datamodule.sentences["predict"]))


def main(args: list[str] | None = None) -> TagCLI:
    """Run the command line."""
    return TagCLI(Tagger, args)


def train(*options: str) -> tuple[TagCLI, float]:
    """Fit and test silently; the command line, its model holding the best weights, and the seconds."""
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        cli = main(["fit", "--trainer.enable_progress_bar=false", *options])
    return cli, time.perf_counter() - start
