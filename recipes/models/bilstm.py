"""A bidirectional LSTM over what words look like: form, affixes, shape and characters."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..data.treebank import Batch
from ..data.vocabulary import FEATURES, PADDING, UNKNOWN, Vocabulary

WIDTHS = {"word": 96, "form": 32, "shape": 16, **{name: 24 for name in FEATURES if name[-1].isdigit()}}
"""Width of each feature's embedding."""


class Encoder(nn.Module):
    """Made from a `Vocabulary`, turns a `Batch` of B sentences of at most T words into (B, T, ``num_features``).

    Any module that does the same serves as well; what it writes into the padding is not used. A batch has a sentence.
    """

    num_features: int


class WordEncoder(nn.Module):
    """One vector a form: its features' embeddings beside a convolution over its characters.

    Word dropout hides a word that training showed c times, and its cased form, with probability
    ``word_dropout / (word_dropout + c)``, so that affixes, shape and characters learn to stand in for it.

    Shape: (U, F) and (U, C) numbers to (U, ``num_features``).
    """

    def __init__(self, vocabulary: Vocabulary, characters: int, word_dropout: float):
        super().__init__()
        sizes = vocabulary.sizes()
        self.embeddings = nn.ModuleDict({name: nn.Embedding(sizes[name], WIDTHS[name]) for name in FEATURES})
        self.characters = nn.Embedding(len(vocabulary.characters) + 2, 32, padding_idx=PADDING)
        self.convolution = nn.Conv1d(32, characters, 3, padding=1)
        counts = torch.tensor([math.inf, math.inf, *vocabulary.counts])
        self.register_buffer("hide", word_dropout / (word_dropout + counts), persistent=False)
        self.num_features = sum(WIDTHS.values()) + characters
        for embedding in (*self.embeddings.values(), self.characters):
            nn.init.normal_(embedding.weight, std=0.3)
        nn.init.zeros_(self.characters.weight[PADDING])

    def forward(self, features: Tensor, characters: Tensor) -> Tensor:
        """The vectors of U forms."""
        numbers = dict(zip(FEATURES, features.unbind(1), strict=True))
        if self.training:
            hidden = torch.rand_like(self.hide[numbers["word"]]) < self.hide[numbers["word"]]
            for name in ("word", "form"):
                numbers[name] = numbers[name].masked_fill(hidden, UNKNOWN)
        parts = [embedding(numbers[name]) for name, embedding in self.embeddings.items()]
        padding = (characters == PADDING).unsqueeze(1)
        # Zero as beyond the longest word, whatever a checkpoint holds there: a word's vector is its own.
        seen = self.characters(characters).transpose(1, 2).masked_fill(padding, 0)
        convolved = self.convolution(seen)
        parts.append(convolved.masked_fill(padding, -math.inf).amax(2).clamp(min=0))
        return torch.cat(parts, 1)


class SharedDropout(nn.Module):
    """Dropout that zeroes the same features at all positions of a sentence.

    Shape: (B, T, D) to (B, T, D).
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"

    def forward(self, x: Tensor) -> Tensor:
        """The features, thinned out in training."""
        if not self.training or self.p == 0:
            return x
        kept = x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.p)
        return x * (kept / (1 - self.p))


class BiLSTMLayer(nn.Module):
    """A layer of a bidirectional LSTM: one LSTM reads each sentence forwards, the other backwards.

    Both read on into the padding, which stands behind the words either way and so cannot reach them. On a CPU this
    trains up to twice as fast as packed sequences, whose every step writes a gradient as large as the batch.

    Shape: (B, T, D) features and (B,) lengths to (B, T, 2 ``hidden``); anything in the padding.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.forwards = nn.LSTM(width, hidden, batch_first=True)
        self.backwards = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The features of both directions, side by side."""
        positions = torch.arange(x.shape[1], device=x.device)
        mirrored = lengths[:, None] - 1 - positions
        mirrored = torch.where(mirrored < 0, positions, mirrored)[..., None]

        def mirror(features: Tensor) -> Tensor:
            return features.gather(1, mirrored.expand(-1, -1, features.shape[2]))

        return torch.cat([self.forwards(x)[0], mirror(self.backwards(mirror(x))[0])], 2)


class BiLSTMEncoder(Encoder):
    """Features of each word in its sentence.

    Args:
        vocabulary: the numbers of words, affixes, shapes and characters.
        hidden: width of each direction.
        layers: of the LSTM.
        characters: width of the character convolution.
        dropout: between the layers, before the first and after the last.
        word_dropout: see `WordEncoder`.

    Shape: a batch of B sentences of at most T words to (B, T, ``num_features``); anything in the padding.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        hidden: int = 192,
        layers: int = 2,
        characters: int = 64,
        dropout: float = 0.4,
        word_dropout: float = 0.5,
    ):
        super().__init__()
        self.words = WordEncoder(vocabulary, characters, word_dropout)
        widths = [self.words.num_features, *[2 * hidden] * (layers - 1)]
        self.layers = nn.ModuleList(BiLSTMLayer(width, hidden) for width in widths)
        self.dropout = SharedDropout(dropout)
        self.num_features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        """The features of a batch."""
        lengths = batch.mask.sum(1)
        x = self.words(batch.features, batch.characters)[batch.words]
        for layer in self.layers:
            x = layer(self.dropout(x), lengths)
        return self.dropout(x)
