"""Scorers of codes against their definition."""

import copy

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import codes


def test_similarities_against_the_definition():
    code = codes.hadamard(4)
    features = torch.randn(5, 6, dtype=torch.float64)
    for similarity in ("inner_product", "gaussian"):
        scorer = tm.ContinuousCodeScorer(6, code, similarity, gamma=0.3, dtype=torch.float64)
        margins = features @ scorer.margins.weight.T + scorer.margins.bias
        for y in range(4):
            expected = margins @ code[y].double()
            if similarity == "gaussian":
                expected = torch.exp(-0.3 * ((margins - code[y]) ** 2).sum(-1))
            torch.testing.assert_close(scorer(features)[:, y], expected)


# ------------------------------------------------------------------------------------- margins of any scorer


class Stump(tm.Scorer):
    """A learner of one's own: a threshold on one feature for each output."""

    def __init__(self, in_features, num_classes):
        super().__init__()
        self.in_features, self.num_classes = in_features, num_classes
        self.register_buffer("feature", torch.arange(num_classes) % in_features)
        self.threshold = torch.nn.Parameter(torch.empty(num_classes))
        self.reset_parameters()

    def reset_parameters(self):
        super().reset_parameters()
        torch.nn.init.zeros_(self.threshold)

    def forward(self, features):
        return features[..., self.feature] - self.threshold


def scorers(columns):
    support = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))
    return {
        "linear": tm.LinearScorer(6, columns),
        "kernel": tm.KernelScorer(support, columns, tm.kernels.Gaussian(0.1)),
        "nystrom": tm.NystromScorer(tm.NystromFeatures(support, tm.kernels.Gaussian(0.1)), columns),
        "fourier": tm.RandomFourierScorer(6, columns, 32, 0.1),
        "stump": Stump(6, columns),
    }


def blobs(rows=160):
    generator = torch.Generator().manual_seed(0)
    target = torch.arange(rows) % 4
    return 2 * torch.randn(4, 6, generator=generator)[target] + torch.randn(rows, 6, generator=generator), target


@pytest.mark.parametrize("name", scorers(2))
def test_the_margins_of_any_scorer_are_fitted_decoded_saved_and_copied(name, tmp_path):
    features, target = blobs()
    code = codes.one_vs_one(4)
    head = tm.ECOCHead(scorers(6)[name], code=code, loss="squared_hinge")
    assert isinstance(head.scorer, tm.CodedScorer)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    before = head.loss(head(features), target)
    for _ in range(80):
        optimizer.zero_grad()
        head.loss(head(features), target).backward()
        optimizer.step()
    scores = head(features)
    assert head.loss(scores, target) < before
    if name != "stump":
        assert (head.predict(scores) == target).float().mean() > 0.9
        assert head.scorer.class_norms().shape == (6,)
    torch.save(head.state_dict(), tmp_path / "state.pt")
    torch.save(head, tmp_path / "head.pt")
    other = tm.ECOCHead(scorers(6)[name], code=code, loss="squared_hinge")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True), strict=True)
    whole = torch.load(tmp_path / "head.pt", weights_only=False)
    for twin in (other, whole, copy.deepcopy(head)):
        torch.testing.assert_close(twin(features).margins, scores.margins)
        assert torch.equal(twin.predict(twin(features)), head.predict(scores))
        assert twin.scorer.name == "one_vs_one"


@pytest.mark.parametrize("name", scorers(2))
def test_continuous_codes_over_any_margins(name):
    features, target = blobs()
    head = tm.ContinuousCodeHead(scorers(3)[name].double(), code=codes.hadamard(4))
    scores = head(features.double())
    assert scores.dtype == head.scorer.codewords.dtype == torch.float64
    head.loss(scores, target).backward()
    assert head.scorer.codewords.grad is not None


def test_a_certified_machine_behind_a_code():
    """What a solver returns is a scorer, so it can be read by a code as it is."""
    features, target = blobs()
    machine, _ = tm.solvers.DualSVM(kernel=tm.kernels.Gaussian(0.1), C=1.0).fit(features, target)
    scorer = tm.CodedScorer(machine, codes.one_vs_all(4))
    assert torch.equal(tm.LossBasedDecoder("hinge")(scorer(features)), machine(features).argmax(-1))


def test_what_cannot_give_margins_is_named():
    code = codes.one_vs_one(4)
    with pytest.raises(ValueError, match="margins: has 5 outputs; accepted are 6, one for each column"):
        tm.CodedScorer(tm.LinearScorer(6, 5), code)
    with pytest.raises(TypeError, match="margins: got Linear; accepted is a Scorer, such as LinearScorer"):
        tm.CodedScorer(torch.nn.Linear(6, 6), code)
    with pytest.raises(TypeError, match="scorer: got Linear; accepted is a torch_multiclass scorer"):
        tm.heads.Head(torch.nn.Linear(6, 6), tm.CRFLoss(), tm.ArgmaxDecoder())
    with pytest.raises(TypeError, match="scorer: Stump has no weight vectors"):
        tm.CodedScorer(Stump(6, 6), code).class_norms()
    with pytest.raises(ValueError, match="target: holds no label"):
        tm.CodedScorer(6, code).leave_out_absent(torch.tensor([-100]))


@pytest.mark.parametrize("name", codes.names.FIXED)
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_a_scorer_knows_the_name_of_its_code(name, k):
    scorer = tm.CodedScorer(3, codes.by_name(name, k))
    assert torch.equal(codes.by_name(scorer.name, k), scorer.coding_matrix)
    assert k == 2 or scorer.name == name
    assert f"code={scorer.name}" in repr(scorer)
    assert f"code={scorer.name}({k})" in repr(scorer(torch.zeros(1, 3)))


def test_a_known_name_is_not_compared_again(monkeypatch):
    """Voting on a scorer's scores reads no matrix, which on a GPU would stop the queue."""
    scores = tm.CodedScorer(3, codes.one_vs_one(5))(torch.randn(4, 3))

    def never(*_):
        raise AssertionError("the code was compared")

    monkeypatch.setattr("torch_multiclass.decoders.coded.name_of", never)
    assert tm.VotingDecoder()(scores).shape == tm.TournamentDecoder()(scores).shape == (4,)
    other = tm.CodedScorer(3, codes.one_vs_all(3))(torch.randn(4, 3))  # as many columns as pairs
    with pytest.raises(ValueError, match=r"is not codes.one_vs_one\(3\)"):
        tm.VotingDecoder()(other)


def test_a_loaded_code_brings_its_name():
    scorer = tm.CodedScorer(3, codes.one_vs_all(3))
    scorer.load_state_dict(tm.CodedScorer(3, codes.one_vs_one(3)).state_dict())
    assert scorer.name == "one_vs_one"
    scorer.load_state_dict(tm.CodedScorer(3, codes.one_vs_one(3).flip(1)).state_dict())
    assert scorer.name is None


def with_columns(code, *columns):
    return torch.cat([code, torch.tensor(columns).mT], 1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (codes.one_vs_one(3), None),  # two of three columns ask a class
        (codes.one_vs_one(4), [[0, 1, 2], [0, 3, 4], [1, 3, 5], [2, 4, 5]]),  # half of them
        # The classes that the last column ignores are filled up with the first that ignores them as well.
        (
            with_columns(codes.one_vs_one(5), [1, 1, -1, 0, 0]),
            [[0, 1, 2, 3, 10], [0, 4, 5, 6, 10], [1, 4, 7, 8, 10], [2, 5, 7, 9, 0], [3, 6, 8, 9, 0]],
        ),
    ],
)
def test_the_columns_that_ask_a_class_are_kept_where_they_are_half_at_most(code, expected):
    active = tm.CodedScorer(3, code).active
    assert (None if active is None else active.tolist()) == expected


def test_shares_by_hand():
    code = with_columns(codes.one_vs_one(4), [1, 1, -1, 0], [1, -1, -1, -1])
    asked, share = tm.CodedScorer(3, code).shares()
    assert asked == (6 * 2 + 3 + 4) / 4
    assert share.tolist() == [1 / 2] * 6 + [2 / 3, 1 / 4]


@pytest.mark.parametrize("margins", [0.0, 1.0])
def test_a_gaussian_of_margins_of_several_batch_dimensions(margins):
    """``|F - M_y|^2`` is the number of entries that differ, times 4; of margins of 0 it is that of columns."""
    scorer = tm.ContinuousCodeScorer(6, codes.hadamard(4), "gaussian", gamma=0.3)
    torch.nn.init.zeros_(scorer.margins.weight)
    torch.nn.init.constant_(scorer.margins.bias, margins)
    squares = (margins - codes.hadamard(4).float()).square().sum(1)
    torch.testing.assert_close(scorer(torch.zeros(2, 5, 6)), torch.exp(-0.3 * squares).expand(2, 5, 4))
