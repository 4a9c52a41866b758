"""From scores to labels."""

from torch_multiclass.checks import lacks
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.decoders.chain import KBestDecoder, PosteriorDecoder, ViterbiDecoder
from torch_multiclass.decoders.coded import HammingDecoder, LossBasedDecoder, TournamentDecoder, VotingDecoder
from torch_multiclass.decoders.flat import ArgmaxDecoder, ExpectedCostDecoder
from torch_multiclass.decoders.multilabel import SignDecoder
from torch_multiclass.decoders.ranking import RankingDecoder

__all__ = [
    "ArgmaxDecoder",
    "Decoder",
    "ExpectedCostDecoder",
    "HammingDecoder",
    "KBestDecoder",
    "LossBasedDecoder",
    "PosteriorDecoder",
    "RankingDecoder",
    "SignDecoder",
    "TournamentDecoder",
    "ViterbiDecoder",
    "VotingDecoder",
]


lacks(__name__)
