"""The module that trains a chain on a BiLSTM under any structured loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import lightning
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torchmetrics import Metric

import torch_multiclass as tm
from torch_multiclass import checks as check
from torch_multiclass.losses import coded, flat, structured
from torch_multiclass.metrics import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy
from torch_multiclass.tags import Constraints

from ..data.costs import check_size, costs
from ..data.tagging import Tags, look
from ..data.tagging import check as check_tags
from ..data.treebank import Batch, Treebank
from ..data.vocabulary import Vocabulary
from .encoders import BiLSTMEncoder, Encoder
from .fitting import check_features, fitting
from .optimisation import MakeOptimizer, MakeSchedule, Schedule, optimised

BILSTM = {"hidden": 192, "layers": 2, "characters": 64, "dropout": 0.4, "word_dropout": 0.5}
"""The options of the default encoder."""

Scheme = Literal[
    "BIO", "IOB2", "BIOES", "IOB1", "IOBES", "BILOU", "BILUO", "BMES", "BMESO", "BMEWO", "IOE1", "IOE2", "IO"
]
"""Of `torch_multiclass.tag_constraints`."""


COSTED = "CRFLoss, M3NLoss or SVMStructLoss"
"""The losses that take a cost."""


class TaggingNetwork(nn.Module):
    """From the words of a batch to the scores of their tag sequences.

    Args:
        vocabulary: of words and tags.
        constraints: which tags may follow which; None lets all.
        transitions: whether neighbouring tags have a score of their own; without it, each token is on its own.
        encoder: makes the encoder from the vocabulary; by default a `BiLSTMEncoder`.
        options: of that.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        constraints: Constraints | None,
        transitions: bool,
        encoder: Callable[[Vocabulary], nn.Module] | None = None,
        **options: Any,
    ):
        super().__init__()
        own = partial(BiLSTMEncoder, **options)
        self.encoder = own(vocabulary) if encoder is None else fitting("encoder", encoder, vocabulary)
        self.scorer = tm.ChainScorer(self.encoder.num_features, len(vocabulary.tags), constraints)
        if not transitions:
            for parameter in self.scorer.chain.parameters():
                nn.init.zeros_(parameter).requires_grad_(False)

    def forward(self, batch: Batch) -> tm.ChainScores:
        """The scores of all tag sequences of all sentences."""
        shape = (*batch.words.shape, self.encoder.num_features)
        if not len(batch.words):  # what a process draws when another has one batch more
            return self.scorer(self.scorer.emissions.weight.new_zeros(shape), mask=batch.mask)
        features = self.encoder(batch)
        check_features(self.encoder, features, shape)
        return self.scorer(features, mask=batch.mask)


class Prediction(NamedTuple):
    """A tagged sentence: its place in the file, the numbers of its tags, their probabilities; the next best taggings
    with their log-probabilities, and that of the best."""

    index: int
    tags: list[int]
    probabilities: list[float] | None
    others: list[tuple[list[int], float]]
    log_probability: float | None


def predictions(
    scores: tm.ChainScores, decoder: tm.Decoder, batch: Batch, probabilities: bool, k_best: int
) -> list[Prediction]:
    """The best tags of each sentence, on request the marginal probability of each tag and the next best sequences."""
    tags = decoder(scores)
    chosen = scores.marginals().gather(2, tags.clamp(min=0).unsqueeze(2)).squeeze(2) if probabilities else None
    best = scores.top(k_best) if k_best > 1 else None
    total = scores.log_partition() if best is not None else None
    rows = []
    for n, (i, length) in enumerate(zip(batch.index.tolist(), batch.lengths, strict=True)):
        ranked = []
        if best is not None:
            found = zip(best.labels[n, :, :length].tolist(), (best.score[n] - total[n]).tolist(), strict=True)
            ranked = [(labels, p) for labels, p in found if min(labels) >= 0]
        shares = None if chosen is None else chosen[n, :length].tolist()
        rows.append(Prediction(i, tags[n, :length].tolist(), shares, ranked[1:], ranked[0][1] if ranked else None))
    return rows


class Tagger(lightning.LightningModule):
    """A BiLSTM tagger trained with any chain loss; what is measured and kept is the running average of its weights.

    The vocabulary is learned from the training sentences when a fit begins, and travels in the checkpoint.

    Args:
        loss: any structured loss; by default the CRF's.
        column: where the tags are: in CoNLL-U UPOS, XPOS, any other, or ``MISC:KEY``; in a file of columns their number
            from 2 or ``last``; in JSON lines their key. By default UPOS, the last, and ``tags``. ``test``, ``validate``
            and ``predict`` take it of their own file, else as in the fit.
        scheme: the tags are spans in this scheme, and are measured as spans; IOB2, IOBES, BILUO and BMESO are other
            names of BIO, BIOES, BILOU and BMES.
        constrained: with a scheme, whether training and decoding forbid ill-formed spans.
        transitions: whether neighbouring tags have a score; without, CRFLoss is the soft-max of each token.
        hidden: width of each direction of the LSTM.
        layers: of the LSTM.
        characters: width of the character convolution.
        dropout: around and between the layers.
        word_dropout: hides words that training showed c times with probability word_dropout / (word_dropout + c).
        learning_rate: the peak; by default 3e-3, or that of ``optimizer``.
        averaging: the running average forgets at the rate ``1 - averaging`` a step, faster at first.
        encoder: another encoder than the BiLSTM: ``ConvolutionEncoder``, or the dotted path of any module with
            ``num_features`` that is made from a `Vocabulary` (see `Encoder`); the five widths and rates above are the
            BiLSTM's.
        optimizer: another optimiser than Adam, by the name or the dotted path of its class.
        schedule: of the learning rate: over the steps of the run ``linear`` (after a short rise), ``one_cycle``,
            ``cosine`` or ``constant``, or a class of `torch.optim.lr_scheduler`, which steps once an epoch.
        cost: what each mistake costs the loss, by the names of the tags: a file with a row for each true tag, the names
            before the rows and above the columns, or `{B-LOC: {O: 5}}`, 1 where it is not named. A matrix without
            names, in the file or as ``loss.cost``, has rows and columns in alphabetical order, as `load(...).classes`.
    """

    vocabulary: Vocabulary | None
    constraints: Constraints | None

    def __init__(
        self,
        loss: tm.Loss | None = None,
        column: str | None = None,
        scheme: Scheme | None = None,
        constrained: bool = True,
        transitions: bool = True,
        hidden: int = 192,
        layers: int = 2,
        characters: int = 64,
        dropout: float = 0.4,
        word_dropout: float = 0.5,
        learning_rate: float | None = None,
        averaging: float = 0.998,
        encoder: Callable[[Vocabulary], Encoder] | Callable[[Vocabulary], nn.Module] | None = None,
        optimizer: MakeOptimizer | None = None,
        schedule: Schedule | MakeSchedule = "linear",
        cost: str | dict[str, dict[str, float]] | None = None,
    ):
        super().__init__()
        if type(loss).__module__ in (flat.__name__, coded.__name__):
            raise TypeError(f"loss: got {type(loss).__name__}; accepted are {', '.join(structured.__all__)}")
        for name, size in (("hidden", hidden), ("layers", layers), ("characters", characters)):
            check.whole(name, size)
        for name, share in (("dropout", dropout), ("averaging", averaging)):
            if not 0 <= share < 1:
                raise ValueError(f"{name}: got {share}; accepted is a number from 0 to below 1")
        check.positive("word_dropout", word_dropout, zero=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Attribute 'loss' is an instance of `nn.Module`")
            self.save_hyperparameters(logger=False)
        for name in ("loss", "encoder", "optimizer", "schedule"):  # the command line keeps their configuration instead
            if callable(self.hparams.get(name)):
                del self.hparams[name]
        self.loss = tm.CRFLoss() if loss is None else loss
        if cost is not None and getattr(self.loss, "cost", self) is not None:
            has = "a cost of its own" if hasattr(self.loss, "cost") else "no costs"
            raise ValueError(f"cost: {type(self.loss).__name__} has {has}; accepted is {COSTED} without one")
        self.cost = cost
        self.decoder = tm.ViterbiDecoder()
        self.column, self.scheme, self.constrained = column, scheme, constrained
        self.learning_rate, self.averaging = learning_rate, averaging
        self.optimizer, self.schedule, self.encoder = optimizer, schedule, encoder
        self.options = {
            "transitions": transitions,
            "hidden": hidden,
            "layers": layers,
            "characters": characters,
            "dropout": dropout,
            "word_dropout": word_dropout,
        }
        for name, default in BILSTM.items() if encoder is not None else ():
            if self.options[name] != default:
                raise ValueError(
                    f"{name}: got {self.options[name]}, which is the BiLSTM's, beside another encoder; accepted is an "
                    "option of that encoder"
                )
        self.vocabulary = self.constraints = None
        self.probabilities, self.k_best = False, 1  # what predict_step adds
        self.reading: dict[str, str | None] = {}  # the column of files that are measured or tagged, if another

    def build(self, vocabulary: Vocabulary) -> None:
        """Make the network of a vocabulary."""
        self.vocabulary = vocabulary
        constrained = self.scheme is not None and self.constrained
        self.constraints = tm.tag_constraints(vocabulary.tags, self.scheme) if constrained else None
        self.network = TaggingNetwork(vocabulary, self.constraints, encoder=self.encoder, **self.options)
        self.average = AveragedModel(self.network, multi_avg_fn=self._average).requires_grad_(False)
        self.val_metrics, self.test_metrics = nn.ModuleDict(), nn.ModuleDict()

    def _average(self, averages: list[Tensor], currents: list[Tensor], steps: Tensor | int) -> None:
        torch._foreach_lerp_(averages, currents, max(1 - self.averaging, 9 / (9 + int(steps))))

    def setup(self, stage: str) -> None:
        """Learn the vocabulary of the training sentences, unless a checkpoint brought one."""
        if stage == "fit" and self.vocabulary is None:
            sentences = self._treebank().sentences
            if self.scheme is not None:
                check_tags(
                    {part: Tags(held, self.column) for part, held in sentences.items()}, self.scheme, self.constrained
                )
            vocabulary = Vocabulary.learn(sentences["train"], self.column)
            self.price(vocabulary.tags)
            self.build(vocabulary)

    def price(self, tags: Sequence[str]) -> None:
        """Give the loss the costs that were named; raise for a matrix of another number of tags."""
        if self.cost is not None:
            self.loss.cost = tm.costs.as_cost(costs(self.cost, tags))
        cost = getattr(self.loss, "cost", None)
        if isinstance(cost, tm.costs.Matrix):
            check_size(cost.matrix.shape[-1], tags)

    def _look(self, part: str) -> None:
        """Refuse or say, of sentences that a trained model is measured by, what a fit does of its own."""
        treebank = self._treebank()
        if self.trainer.state.fn != "fit" and isinstance(treebank, Treebank):
            own = treebank.files.get(part) is not None  # what was held out of the training file was judged with it
            tags = Tags(treebank.sentences[part], self.vocabulary.column)
            look(part, tags, self.vocabulary.tags, self.scheme if own else None, self.constrained)

    def _treebank(self) -> Treebank:
        return self.trainer.datamodule

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what the network is built from."""
        checkpoint["tagger"] = self.facts(getattr(self._treebank(), "train_file", None))

    def facts(self, learned_from: str | None) -> dict[str, Any]:
        """What the network is built from, and the file that taught it the words, None for the embedded treebank."""
        return {
            "learned_from": learned_from,
            "vocabulary": self.vocabulary.state(),
            "scheme": self.scheme,
            "constrained": self.constrained,
            "options": self.options,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Build the network that the weights belong to."""
        kept = checkpoint["tagger"]
        if self._trainer is not None:
            self._treebank().check_source(kept.get("learned_from"), self.trainer.state.fn)
        self.scheme, self.constrained, self.options = kept["scheme"], kept["constrained"], kept["options"]
        self.build(Vocabulary(**kept["vocabulary"] | self.reading))

    def forward(self, batch: Batch) -> tm.ChainScores:
        """The scores of all tag sequences, by the weights in training and by their average otherwise."""
        return self.network(batch) if self.training else self.average(batch)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch."""
        loss = self.loss(self(batch), batch.tags)
        self.log("train_loss", loss, prog_bar=True, batch_size=len(batch.lengths))
        return loss

    def on_train_batch_end(self, *unused: Any) -> None:
        """Average the weights."""
        self.average.update_parameters(self.network)

    def _new_metrics(self) -> nn.ModuleDict:
        metrics: dict[str, Metric] = {
            "accuracy": TokenAccuracy(),
            "sentence_accuracy": SentenceAccuracy(),
            "unknown_accuracy": UnknownWordAccuracy(),
        }
        if self.scheme is not None:
            metrics["span_f1"] = SpanF1([*self.vocabulary.tags, *self.vocabulary.unseen_tags])
        return nn.ModuleDict(metrics).to(self.device)

    def _measure(self, stage: str, batch: Batch) -> None:
        tags = self.decoder(self(batch))
        metrics = getattr(self, f"{stage}_metrics")
        for name, metric in metrics.items():
            metric.update(tags, batch.tags, *([batch.unknown] if name == "unknown_accuracy" else []))
            self.log(
                f"{stage}_{name}", metric, prog_bar=True, batch_size=len(batch.lengths),
                metric_attribute=f"{stage}_metrics.{name}",
            )  # fmt: skip

    def on_validation_start(self) -> None:
        """Make the metrics once the development sentences, and so their tags, are known."""
        self._look("dev")
        self.val_metrics = self._new_metrics()

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Count a batch."""
        self._measure("val", batch)

    def on_test_start(self) -> None:
        """Make the metrics once the test sentences, and so their tags, are known."""
        self._look("test")
        self.test_metrics = self._new_metrics()

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Count a batch."""
        self._measure("test", batch)

    def predict_step(self, batch: Batch, batch_idx: int) -> list[Prediction]:
        """Each sentence's place in the file, the numbers of its tags, and what else is asked for."""
        return predictions(self(batch), self.decoder, batch, self.probabilities, self.k_best)

    def configure_optimizers(self) -> dict[str, Any]:
        """The optimiser and its schedule."""
        return optimised(
            self, self.network.parameters(), adam, self.optimizer, self.learning_rate, self.schedule, "val_accuracy"
        )


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The tagger's own."""
    return torch.optim.Adam(parameters, lr=3e-3, betas=(0.9, 0.99), fused=True)
