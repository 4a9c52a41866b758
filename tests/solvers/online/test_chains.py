"""The structured perceptron against enumeration."""

import copy
import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.contracts.online import OUT_OF_PASSES
from tests.references import online as naive
from torch_multiclass.solvers import Perceptron
from torch_multiclass.tags import Constraints

KNOWN = [
    ([[1, 0], [0, 1], [1, 1]], [0, 1, 1]),
    ([[0, 1], [1, 0]], [1, 0]),
    ([[1, -1], [-1, 1], [0, 1]], [0, 1, 0]),
    ([[2, 0]], [0]),
]


def padded(sequences, dtype=torch.float64):
    longest = max(len(labels) for _, labels in sequences)
    features = torch.full((len(sequences), longest, len(sequences[0][0][0])), math.nan, dtype=dtype)
    target = torch.full((len(sequences), longest), -100)
    for i, (x, labels) in enumerate(sequences):
        features[i, : len(labels)], target[i, : len(labels)] = torch.tensor(x), torch.tensor(labels)
    return features, target


def parts(scorer):
    chain = scorer.chain
    found = scorer.emissions.weight, chain.transitions, chain.start_transitions, chain.end_transitions
    return [part.detach() for part in found]


def drawn(seed, count=12, steps=5, width=3, classes=3, whole=False):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, steps, width, generator=g).double()
    x = x.round() if whole else x
    y = torch.randint(classes, (count, steps), generator=g)
    lengths = torch.randint(1, steps + 1, (count,), generator=g)
    return x, y, lengths


def sequences_of(x, y, lengths):
    return [(x[i, :n].numpy(), y[i, :n].tolist()) for i, n in enumerate(lengths.tolist())]


def test_known_answer():
    x, y = padded(KNOWN)
    for positions in ({}, {"mask": y != -100}, {"lengths": (y != -100).sum(1)}):
        scorer, report = Perceptron().fit(x, y, **positions)
        assert isinstance(scorer, tm.ChainScorer)
        assert scorer.emissions.bias is None
        assert report.mistakes == [3, 2, 3, 2, 3, 1, 0]
        assert report.converged
        expected = [[-1, -3], [1, 3]], [[-2, 1], [2, -1]], [1, -1], [2, -2]
        for part, known in zip(parts(scorer), expected, strict=True):
            assert part.tolist() == known
    guess = tm.ViterbiDecoder()(scorer(x.nan_to_num(0), mask=y != -100))
    assert torch.equal(guess, y)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4), st.booleans(), st.booleans())
def test_is_what_enumeration_gives(seed, steps, classes, averaged, whole):
    x, y, lengths = drawn(seed, 8, steps, 2, classes, whole)
    last, mean, passes = naive.structured_perceptron(sequences_of(x, y, lengths), classes, 4)
    scorer, report = Perceptron(averaged=averaged, max_passes=4).fit(x, y, lengths=lengths, num_classes=classes)
    assert report.mistakes == passes
    for part, expected in zip(parts(scorer), mean if averaged else last, strict=True):
        torch.testing.assert_close(part, torch.tensor(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_masks_of_any_shape_join_what_they_keep():
    x, y, _ = drawn(0)
    mask = torch.rand(12, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[3] = False
    holes = Perceptron(bias=True).fit(x, y, mask=mask)
    closed = [(x[i][mask[i]].tolist(), y[i][mask[i]].tolist()) for i in range(12) if mask[i].any()]
    aligned = Perceptron(bias=True).fit(*padded(closed))
    assert holes.report.mistakes == aligned.report.mistakes
    for name, part in holes.scorer.state_dict().items():
        assert torch.equal(part, aligned.scorer.state_dict()[name])


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_a_bias_is_a_constant_feature():
    x, y, lengths = drawn(1)
    constant = torch.cat([x, torch.ones(12, 5, 1).double()], 2)
    fit, explicit = Perceptron(bias=True).fit(x, y, lengths=lengths), Perceptron().fit(constant, y, lengths=lengths)
    emissions = fit.scorer.emissions
    together = torch.cat([emissions.weight, emissions.bias[:, None]], 1)
    torch.testing.assert_close(together, explicit.scorer.emissions.weight)
    for part, other in zip(parts(fit.scorer)[1:], parts(explicit.scorer)[1:], strict=True):
        torch.testing.assert_close(part, other)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_a_weight_multiplies_the_step():
    x, y, lengths = drawn(2)
    weight = torch.ones(12)
    weight[5] = 0
    without = torch.arange(12) != 5
    fit = Perceptron().fit(x, y, lengths=lengths, weight=2 * weight)
    expected = Perceptron(learning_rate=2).fit(x[without], y[without], lengths=lengths[without])
    for part, other in zip(parts(fit.scorer), parts(expected.scorer), strict=True):
        assert torch.equal(part, other)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_constraints_hold_while_training():
    tags = ["O", "B-X", "I-X"]
    constraints = tm.tag_constraints(tags)
    g = torch.Generator().manual_seed(0)
    y = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 0], [0, 0, 1, 1], [1, 1, 2, 0]])
    x = torch.randn(4, 4, 3, generator=g).double() + torch.eye(3).double()[y]
    scorer, report = Perceptron(constraints=constraints).fit(x, y)
    assert report.converged
    assert scorer.chain.constrained
    assert torch.equal(tm.ViterbiDecoder()(scorer(x)), y)
    assert Perceptron(constraints=constraints).fit(x[:, :2], y[:, :2]).scorer.num_tags == 3
    bad = y.clone()
    bad[2] = torch.tensor([0, 2, 2, 0])
    with pytest.raises(ValueError, match="target: sequence 2 has labels that the constraints forbid"):
        Perceptron(constraints=constraints).fit(x, bad)
    for name, place in (("start", 1), ("end", 0), ("transitions", (2, 2))):  # which only the last sequence has
        parts_of = {"transitions": torch.zeros(3, 3), "start": torch.zeros(3), "end": torch.zeros(3)}
        parts_of[name][place] = -math.inf
        free, given = torch.tensor([[0, 2, 0, 1], [1, 2, 2, 0]]), Constraints(**parts_of)
        with pytest.raises(ValueError, match="target: sequence 1 has labels that the constraints forbid"):
            Perceptron(constraints=given).fit(x[:2], free)
    with pytest.raises(ValueError, match=r"constraints.transitions: got shape \(3, 3\); accepted is \(4, 4\)"):
        Perceptron(constraints=constraints).fit(x, y, num_classes=4)
    with pytest.raises(TypeError, match="constraints: got list; accepted is what tag_constraints"):
        Perceptron(constraints=tags)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_a_pass_in_pieces_is_a_pass():
    x, y, lengths = drawn(3)
    whole = Perceptron(averaged=True, max_passes=1).fit(x, y, lengths=lengths)
    learner = Perceptron(averaged=True)
    for rows in torch.arange(12).split(5):
        if len(rows) == 2:
            learner = copy.deepcopy(learner)
        steps = int(lengths[rows].max())
        fit = learner.partial_fit(x[rows, :steps], y[rows, :steps], lengths=lengths[rows], num_classes=3)
    for part, other in zip(parts(fit.scorer), parts(whole.scorer), strict=True):
        assert torch.equal(part, other)
    assert Perceptron().partial_fit(x[:0], y[:0], lengths=lengths[:0]).scorer.num_tags == 2
    with pytest.raises(ValueError, match="features: got 2 a row; accepted are 3, as in the first batch"):
        learner.partial_fit(x[:, :, :2], y, lengths=lengths)
    with pytest.raises(ValueError, match=r"target: label 7 is outside 0\.\.2"):
        learner.partial_fit(x, torch.full_like(y, 7), lengths=lengths)
    with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2 \(3 classes\)$"):  # 0 came before
        learner.partial_fit(x[:, :3], torch.arange(1, 4).expand(len(x), 3))
    with pytest.raises(ValueError, match="features: are rows, but the stream began with sequences; accepted"):
        learner.partial_fit(x[:, 0], y[:, 0])


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_fits_leave_the_global_generator_and_the_inputs_alone():
    x, y, lengths = drawn(4)
    state, before = torch.get_rng_state(), x.clone()
    Perceptron(shuffle=True).fit(x, y, lengths=lengths)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, before)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_scorer_has_the_dtype_of_the_features(dtype):
    x, y, lengths = drawn(5)
    scorer = Perceptron().fit(x.to(dtype), y, lengths=lengths).scorer
    assert all(part.dtype == torch.promote_types(dtype, torch.float32) for part in parts(scorer))


def test_bad_input():
    x, y, lengths = drawn(6)
    marked = y.clone()
    marked[2, 0] = -100
    bad = x.clone()
    bad[4, 0, 1] = math.inf
    for arguments, message in (
        ((x, marked, {"lengths": torch.full((12,), 5)}), r"target: sequence 2 has a position without a label \(-100\)"),
        ((bad, y, {}), "features: sequence 4 has an entry that is not finite at position 0"),
        ((x, y, {"lengths": lengths + 9}), r"lengths: \d+ is outside 0\.\.5"),
        ((x, y, {"mask": torch.ones(12, 5)}), r"mask: got dtype torch\.float32"),
        ((x, y[:, :4], {}), r"target: got shape \(12, 4\); accepted is \(12, 5\)"),
        ((x[:, :, :0], y, {}), r"features: got shape \(12, 5, 0\)"),
        ((x[:, 0], y[:, 0], {"lengths": lengths}), r"features: got shape \(12, 3\); accepted is \(N, T, D\)"),
        ((x, torch.full_like(y, -100), {}), "features: there are no rows"),
        ((x, y, {"lengths": lengths * 0}), "features: there are no rows: none of the 12 sequences has a position that"),
        ((x, y, {"mask": y < -1}), r"there are no rows: none of the 12 sequences .* counts \(mask, lengths\), a label"),
        ((x, y, {"weight": [1.0] * 11}), r"weight: got shape \(11,\)"),
        ((x.to("meta"), y.to("meta"), {}), "features: are on the meta device"),
        ((x, y.double(), {}), r"target: got dtype torch\.float64"),
        ((x, y, {"num_classes": 2}), r"target: label 2 is outside 0\.\.1"),
    ):
        features, target, options = arguments
        with pytest.raises((TypeError, ValueError), match=message):
            Perceptron().fit(features, target, **options)
    with pytest.warns(UserWarning, match="Perceptron: 2 updates in the last of 3 passes"):
        Perceptron(max_passes=3).fit(torch.ones(2, 1, 1), torch.tensor([[0], [1]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Perceptron().fit(torch.ones(2, 1, 1), torch.tensor([[1], [1]]))
