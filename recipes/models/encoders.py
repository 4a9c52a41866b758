"""What a tagger's encoder is, and one of convolutions."""

from __future__ import annotations

from torch import Tensor, nn

from ..data.treebank import Batch
from ..data.vocabulary import Vocabulary
from .bilstm import BiLSTMEncoder, Encoder, SharedDropout, WordEncoder

__all__ = ["BiLSTMEncoder", "ConvolutionEncoder", "Encoder", "WordEncoder"]


class ConvolutionEncoder(Encoder):
    """Convolutions over the words of a sentence, each reaching twice as far as the one before, added to what they read.

    Args:
        vocabulary: the numbers of words, affixes, shapes and characters.
        width: of each layer.
        layers: how many; the features of a word know of ``2^layers`` words to each side.
        characters: width of the character convolution.
        dropout: before the first layer and after each.
        word_dropout: see `WordEncoder`.

    Shape: a batch of B sentences of at most T words to (B, T, ``num_features``); anything in the padding.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        width: int = 256,
        layers: int = 3,
        characters: int = 64,
        dropout: float = 0.3,
        word_dropout: float = 0.5,
    ):
        super().__init__()
        self.words = WordEncoder(vocabulary, characters, word_dropout)
        self.first = nn.Linear(self.words.num_features, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=2**layer, dilation=2**layer) for layer in range(layers)
        )
        self.dropout = SharedDropout(dropout)
        self.num_features = width

    def forward(self, batch: Batch) -> Tensor:
        """The features of a batch."""
        inside = batch.mask.unsqueeze(2)
        x = self.first(self.dropout(self.words(batch.features, batch.characters)[batch.words]))
        for layer in self.layers:
            x = x.masked_fill(~inside, 0)  # as beyond the longest sentence: a row is its own
            x = x + self.dropout(layer(x.transpose(1, 2)).transpose(1, 2).relu())
        return x
