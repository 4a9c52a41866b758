"""Train a tagger on a treebank, measure it, and tag files.

::

    python -m recipes.tag fit --config recipes/configs/pos_crf.yaml --model.loss M3NLoss
    python -m recipes.tag test --ckpt_path runs/tag/best.ckpt
    python -m recipes.tag predict --ckpt_path runs/tag/best.ckpt --data.predict in.conllu --data.output out.conllu
"""

from __future__ import annotations

import copy
from typing import Any, Literal

import lightning
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

import torch_multiclass as tm
from recipes.bilstm import BiLSTMEncoder
from recipes.data.treebank import Batch, Treebank
from recipes.data.vocabulary import Vocabulary
from torch_multiclass.metrics import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy


class TaggingNetwork(nn.Module):
    """From a batch of words to the scores of its tag sequences: a BiLSTM and a chain on top."""

    def __init__(self, vocabulary: Vocabulary, **encoder: Any):
        super().__init__()
        self.encoder = BiLSTMEncoder(vocabulary, **encoder)
        self.scorer = tm.ChainScorer(self.encoder.num_features, len(vocabulary.tags))

    def forward(self, batch: Batch):
        """The scores of every tag sequence of every sentence."""
        return self.scorer(self.encoder(batch), mask=batch.mask)


class Tagger(lightning.LightningModule):
    """A BiLSTM tagger under any chain loss, evaluated with the running average of its weights."""

    def __init__(
        self,
        loss,
        column: str = "UPOS",
        learning_rate: float = 3e-3,
        averaging: float = 0.998,
        hidden: int = 192,
        layers: int = 2,
        characters: int = 64,
        dropout: float = 0.4,
        word_dropout: float = 0.5,
        weight_decay: float = 0.0,
        schedule='linear',
        betas=(0.9, 0.99),
        least=2,
    ):
        super().__init__()
        self.loss = loss
        self.decoder = tm.ViterbiDecoder()
        self.column, self.learning_rate, self.averaging = column, learning_rate, averaging
        self.schedule, self.betas, self.least = schedule, betas, least
        self.weight_decay = weight_decay
        self.encoder_options = dict(hidden=hidden, layers=layers, characters=characters, dropout=dropout, word_dropout=word_dropout)
        self.vocabulary: Vocabulary | None = None

    def setup(self, stage):
        if self.vocabulary is None and stage == "fit":
            self.build(Vocabulary.learn(self.trainer.datamodule.sentences["train"], self.column, self.least))

    def build(self, vocabulary):
        self.vocabulary = vocabulary
        self.network = TaggingNetwork(vocabulary, **self.encoder_options)
        self.average = AveragedModel(self.network, multi_avg_fn=self._average).requires_grad_(False)
        self.metrics = nn.ModuleDict({"accuracy": TokenAccuracy(), "sentence_accuracy": SentenceAccuracy(), "unknown_accuracy": UnknownWordAccuracy()})

    def _average(self, averages, currents, steps):
        torch._foreach_lerp_(averages, currents, max(1 - self.averaging, 9 / (9 + float(steps))))

    def training_step(self, batch, _):
        loss = self.loss(self.network(batch), batch.tags)
        self.log("loss", loss.detach(), prog_bar=True, batch_size=len(batch.lengths))
        return loss

    def on_train_batch_end(self, *args):
        self.average.update_parameters(self.network)

    def validation_step(self, batch, _):
        tags = self.decoder(self.average(batch))
        self.metrics["accuracy"].update(tags, batch.tags)
        self.metrics["sentence_accuracy"].update(tags, batch.tags)
        self.metrics["unknown_accuracy"].update(tags, batch.tags, batch.unknown)
        for n, m in self.metrics.items():
            self.log(f"val/{n}", m, prog_bar=True, batch_size=1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=self.learning_rate, betas=self.betas, weight_decay=self.weight_decay, fused=True)
        steps = max(1, self.trainer.estimated_stepping_batches)
        import math
        warm = min(100, steps // 10 + 1)
        f = {'linear': lambda n: min((n+1)/warm, max(1e-3, 1 - n/steps)), 'cos': lambda n: min((n+1)/warm, .5*(1+math.cos(math.pi*min(1,n/steps)))),
             'const': lambda n: min(1,(n+1)/warm)}[self.schedule]
        sch = torch.optim.lr_scheduler.LambdaLR(optimizer, f)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": sch, "interval": "step"}}
