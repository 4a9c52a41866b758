"""Every decoder passes the suite of decoders."""

import copy

import pytest
import torch

import torch_multiclass as tm
from tests.contracts.decoder import DecoderContract
from torch_multiclass import codes, decoders


class TestArgmax(DecoderContract):
    decoder = tm.ArgmaxDecoder()

    def scores(self, values):
        return values


class TestArgmaxOfFlatScores(DecoderContract):
    decoder = tm.ArgmaxDecoder()

    def scores(self, values):
        return tm.FlatScores(values)


class TestExpectedCost(DecoderContract):
    decoder = tm.ExpectedCostDecoder([[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]])

    @pytest.fixture(autouse=True)
    def beside_the_scores(self, device):
        self.decoder = copy.deepcopy(self.decoder).to(device)

    def test_shapes_without_values(self):
        self.decoder = copy.deepcopy(self.decoder).to("meta")
        super().test_shapes_without_values()

    def scores(self, values):
        return values


class TestExpectedZeroOneCost(DecoderContract):
    decoder = tm.ExpectedCostDecoder("zero_one")

    def scores(self, values):
        return tm.FlatScores(values)

    def test_it_is_the_argmax(self, device):
        values = self.values(200, device=device)
        assert torch.equal(self.decoder(values), tm.ArgmaxDecoder()(values))


class CodedDecoderContract(DecoderContract):
    """Margins of the one-versus-one code of four classes."""

    shape = (6,)
    refused = (torch.zeros(3, 6), tm.FlatScores(torch.zeros(3, 6)), "text", None)

    def scores(self, values):
        return tm.CodedScores(values, codes.one_vs_one(4).to(values.device))


class TestLossBased(CodedDecoderContract):
    decoder = tm.LossBasedDecoder("logistic")


class TestExponentialLossBased(CodedDecoderContract):
    decoder = tm.LossBasedDecoder("exponential")


class TestHamming(CodedDecoderContract):
    decoder = tm.HammingDecoder()


class TestVoting(CodedDecoderContract):
    decoder = tm.VotingDecoder()


class TestTournament(CodedDecoderContract):
    decoder = tm.TournamentDecoder()


class TestHammingOfAnErrorCorrectingCode(CodedDecoderContract):
    decoder = tm.HammingDecoder()
    shape = (7,)

    def scores(self, values):
        return tm.CodedScores(values, codes.complete(4).to(values.device))


class ChainDecoderContract(DecoderContract):
    """Emissions of five steps; the second to last step of every sequence is masked out."""

    shape = (5, 4)
    labels_shape = (5,)
    class_shape = (5, 4)
    decides_by_class_scores = False
    refused = (torch.zeros(3, 4), "text", None)

    def scores(self, values):
        transitions = torch.arange(16, device=values.device).view(4, 4).to(values.dtype) / 8 - 1  # exact in any dtype
        mask = torch.tensor([True, True, True, False, True], device=values.device)
        return tm.ChainScores(values, transitions, mask=mask.expand(values.shape[:-1]))

    def test_masked_positions_have_no_label(self, device):
        labels = self.decoder(self.scores(self.values(9, device=device)))
        assert bool((labels[..., 3] == -100).all())
        assert bool((labels[..., [0, 1, 2, 4]] >= 0).all())


class TestViterbi(ChainDecoderContract):
    decoder = tm.ViterbiDecoder()


class TestPosterior(ChainDecoderContract):
    decoder = tm.PosteriorDecoder()


class TestPosteriorOfEachPositionAlone(ChainDecoderContract):
    decoder = tm.PosteriorDecoder(legal=False)


class TestKBest(ChainDecoderContract):
    decoder = tm.KBestDecoder(3)
    labels_shape = (3, 5)


class TestSign(DecoderContract):
    decoder = tm.SignDecoder()
    labels_shape = (4,)
    decides_by_class_scores = False
    refused = (torch.zeros(3, 4), tm.FlatScores(torch.zeros(3, 4)), "text", None)

    def scores(self, values):
        return tm.MultilabelScores(values)

    def test_labels_are_classes(self, device):
        values = self.values(50, device=device)
        assert torch.equal(self.decoder(self.scores(values)), torch.where(values > 0, 1, -1))


def test_every_decoder_passes_it():
    tested = [kind for name, kind in globals().items() if name.startswith("Test")]
    assert {type(kind.decoder).__name__ for kind in tested} == set(decoders.__all__) - {"Decoder"}


class TestRanking(DecoderContract):
    decoder, labels_shape, decides_by_class_scores = tm.RankingDecoder(), (4,), False

    def scores(self, values):
        return values

    def test_the_first_is_the_argmax(self, device):
        values = self.values(50, device=device).round()
        ranking = self.decoder(values)
        assert torch.equal(ranking[:, 0], tm.ArgmaxDecoder()(values))
        assert torch.equal(ranking.sort(1).values, torch.arange(4, device=device).expand(50, 4))

    def test_ties_go_to_the_low_label_first(self, device):
        values = torch.tensor([[1.0, 2, 1, 2], [0, 0, 0, 0], [3, 2, 1, 0]], device=device)
        expected = [[1, 3, 0, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
        assert self.decoder(values).tolist() == expected
        assert self.decoder(tm.FlatScores(values)).tolist() == expected
