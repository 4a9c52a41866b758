"""A small tagger in plain PyTorch: what a word looks like, alone or with its two neighbours, under a chain."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import lightning
import torch
from torch import Tensor, nn

import torch_multiclass as tm

from ..data.sentences import Sentence
from ..data.treebank import Batch, LengthBuckets, TaggedSentences
from ..data.vocabulary import Vocabulary
from ..files import save
from ..models.bilstm import Encoder, WordEncoder
from ..models.tagger import Tagger, TaggingNetwork


class SmallEncoder(Encoder):
    """Words to what they look like.

    Args:
        vocabulary: of words and tags.
        neighbours: whether a word's features are mixed with those of the words beside it.
    """

    def __init__(self, vocabulary: Vocabulary, neighbours: bool = True) -> None:
        super().__init__()
        self.words = WordEncoder(vocabulary, characters=32, word_dropout=0.5)
        width = self.words.num_features
        self.mix = nn.Conv1d(width, 128, 3, padding=1) if neighbours else None
        self.dropout = nn.Dropout(0.3)
        self.num_features = 128 if neighbours else width

    def forward(self, batch: Batch) -> Tensor:
        """The features of a batch."""
        features = self.dropout(self.words(batch.features, batch.characters)[batch.words] * batch.mask[..., None])
        if self.mix is not None:
            features = self.dropout(torch.relu(self.mix(features.mT).mT))
        return features


def keep(network: TaggingNetwork, vocabulary: Vocabulary, folder: Path) -> None:
    """A checkpoint of `recipes.tag`: of a network with neighbours that the embedded treebank taught by CRFLoss."""
    model = Tagger(encoder=SmallEncoder)
    model.build(vocabulary)
    for part in (model.network, model.average.module):
        part.load_state_dict(network.state_dict())
    kept = {
        "state_dict": model.state_dict(),
        "tagger": model.facts(None),
        "hyper_parameters": {
            "loss": {"class_path": "torch_multiclass.CRFLoss"},
            "encoder": {"class_path": f"{SmallEncoder.__module__}.SmallEncoder"},
            "_instantiator": "lightning.pytorch.cli.instantiate_module",
        },
        "epoch": 0,
        "global_step": 0,
        "pytorch-lightning_version": lightning.__version__,
    }
    save(folder / "checkpoints" / "best.ckpt", kept)


class Corpus:
    """Sentences for training, for choosing and for testing, as numbers of the vocabulary that the first teach."""

    def __init__(self, train: Sequence[Sentence], dev: Sequence[Sentence], test: Sequence[Sentence]) -> None:
        self.vocabulary = Vocabulary.learn(train, None)
        self.train = TaggedSentences(train, self.vocabulary, train=True)
        self.dev, self.test = (TaggedSentences(part, self.vocabulary) for part in (dev, test))
        self.test_sentences = test


def trained(
    corpus: Corpus, loss: tm.Loss, *, neighbours: bool, transitions: bool, epochs: int, step: Callable[[], None]
) -> TaggingNetwork:
    """By Adam, with a learning rate that warms up and then falls to 0; ``step`` is called after each epoch."""
    torch.manual_seed(0)
    encoder = functools.partial(SmallEncoder, neighbours=neighbours)
    tagger = TaggingNetwork(corpus.vocabulary, None, transitions, encoder)
    batches = LengthBuckets(corpus.train.lengths, 640, train=True)
    parameters = [parameter for parameter in tagger.parameters() if parameter.requires_grad]
    optimizer, steps = torch.optim.Adam(parameters, 3e-3, betas=(0.9, 0.99), fused=True), epochs * len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / 50, 1 - n / steps))
    for epoch in range(epochs):
        batches.set_epoch(epoch)
        for rows in batches:
            batch = corpus.train[rows]
            optimizer.zero_grad()
            loss(tagger(batch), batch.tags).backward()
            nn.utils.clip_grad_norm_(parameters, 5.0)
            optimizer.step()
            schedule.step()
        step()
    return tagger.eval()


@torch.no_grad()
def scored(tagger: TaggingNetwork, data: TaggedSentences) -> tuple[tm.ChainScores, Tensor]:
    """Scores and gold tags of all sentences, in their order."""
    batch = data[list(range(len(data.rows)))]
    return tagger(batch), batch.tags


def right(scores: tm.ChainScores, tags: Tensor) -> tuple[Tensor, float]:
    """Of each sentence whether all its tags are right, and the share of tokens that are."""
    known, same = tags >= 0, tm.ViterbiDecoder()(scores) == tags
    return (same | ~known).all(1), float(same[known].float().mean())
