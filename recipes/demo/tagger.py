"""A small tagger in plain PyTorch: what a word looks like, alone or with its two neighbours, under a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

import torch_multiclass as tm

from ..data.sentences import Sentence
from ..data.treebank import Batch, LengthBuckets, TaggedSentences
from ..data.vocabulary import Vocabulary
from ..models.bilstm import WordEncoder


class SmallTagger(nn.Module):
    """Words to the scores of their tag sequences.

    Args:
        vocabulary: of words and tags.
        neighbours: whether a word's features are mixed with those of the words beside it.
        transitions: whether neighbouring tags have a score; without, CRFLoss is the soft-max of each token.
    """

    def __init__(self, vocabulary: Vocabulary, neighbours: bool, transitions: bool) -> None:
        super().__init__()
        self.words = WordEncoder(vocabulary, characters=32, word_dropout=0.5)
        width = self.words.num_features
        self.mix = nn.Conv1d(width, 128, 3, padding=1) if neighbours else None
        self.dropout = nn.Dropout(0.3)
        self.scorer = tm.ChainScorer(128 if neighbours else width, len(vocabulary.tags))
        if not transitions:
            for parameter in self.scorer.chain.parameters():
                nn.init.zeros_(parameter).requires_grad_(False)

    def forward(self, batch: Batch) -> tm.ChainScores:
        """The scores of a batch."""
        features = self.dropout(self.words(batch.features, batch.characters)[batch.words] * batch.mask[..., None])
        if self.mix is not None:
            features = self.dropout(torch.relu(self.mix(features.mT).mT))
        return self.scorer(features, mask=batch.mask)


class Corpus:
    """Sentences for training, for choosing and for testing, as numbers of the vocabulary that the first teach."""

    def __init__(self, train: Sequence[Sentence], dev: Sequence[Sentence], test: Sequence[Sentence]) -> None:
        self.vocabulary = Vocabulary.learn(train, None)
        self.train = TaggedSentences(train, self.vocabulary, train=True)
        self.dev, self.test = (TaggedSentences(part, self.vocabulary) for part in (dev, test))
        self.test_sentences = test


def trained(
    corpus: Corpus, loss: tm.Loss, *, neighbours: bool, transitions: bool, epochs: int, step: Callable[[], None]
) -> SmallTagger:
    """By Adam, with a learning rate that warms up and then falls to 0; ``step`` is called after each epoch."""
    torch.manual_seed(0)
    tagger = SmallTagger(corpus.vocabulary, neighbours, transitions)
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
def scored(tagger: SmallTagger, data: TaggedSentences) -> tuple[tm.ChainScores, Tensor]:
    """Scores and gold tags of all sentences, in their order."""
    batch = data[list(range(len(data.rows)))]
    return tagger(batch), batch.tags


def right(scores: tm.ChainScores, tags: Tensor) -> tuple[Tensor, float]:
    """Of each sentence whether all its tags are right, and the share of tokens that are."""
    known, same = tags >= 0, tm.ViterbiDecoder()(scores) == tags
    return (same | ~known).all(1), float(same[known].float().mean())
