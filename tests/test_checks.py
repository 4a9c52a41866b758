"""What a user gets wrong about the kind of an argument is named, with what came and what is accepted."""

import re
from fractions import Fraction

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import codes, metrics

SCORES, TARGET = torch.randn(2, 3), torch.tensor([0, 1])
LOSSES = [
    tm.CrammerSingerLoss(),
    tm.WestonWatkinsLoss(),
    tm.MarginRampLoss(1.0),
    tm.AdaBoostLoss(),
    tm.M3NLoss(),
    tm.SVMStructLoss(),
    tm.CRFLoss(),
    tm.StructuredPerceptronLoss(),
]


def named(error, argument, *words):
    """The message starts with the argument, says what came and what is accepted."""
    return pytest.raises(error, match=rf"^{argument}: .*{'.*'.join(map(re.escape, words))}.*; accepted (is|are) ")


# -------------------------------------------------------------------------------------------------------- codes

BAD_CODES = {
    "a string": ("+-", TypeError, "'+-'"),
    "strings": ([["1", "-1"], ["-1", "1"]], TypeError, "str"),
    "nothing": (None, TypeError, "None"),
    "a number": (3, TypeError, "3"),
    "a set": ({1, -1}, TypeError, "set"),
    "ragged": ([[1, -1], [1]], ValueError, "rows of different lengths"),
    "a hole": ([[1, None], [-1, 1]], TypeError, "NoneType"),
    "bool": (torch.tensor([[True, False], [False, True]]), TypeError, "torch.bool"),
    "bool array": (np.eye(2, dtype=bool), TypeError, "torch.bool"),
    "complex": (torch.tensor([[1, -1], [-1, 1]]) * 1j, TypeError, "complex64"),
    "complex array": (np.array([[1j, 1], [1, 1]]), TypeError, "complex128"),
    "sparse": (torch.tensor([[1, -1], [-1, 1]]).to_sparse(), TypeError, "sparse_coo"),
    "unsigned": (np.array([[1, 2], [2, 1]], dtype=np.uint16), ValueError, "2"),
}
TAKERS = {
    "check": codes.check,
    "row_distances": codes.row_distances,
    "min_row_distance": codes.min_row_distance,
    "correctable": codes.correctable,
    "CodedScorer": lambda code: tm.CodedScorer(4, code),
    "ECOCHead": lambda code: tm.ECOCHead(4, code=code),
    "ContinuousCodeHead": lambda code: tm.ContinuousCodeHead(4, code=code),
}


@pytest.mark.parametrize("kind", BAD_CODES)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_bad_code_is_named(taker, kind):
    given, error, word = BAD_CODES[kind]
    if isinstance(given, str) and "Head" in taker:
        error, word = ValueError, "'+-'"  # there a string is the name of a construction
    with named(error, "code", word):
        TAKERS[taker](given)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float16, np.longdouble, ">i4", ">f8"])
def test_codes_of_any_real_dtype(dtype):
    rows = [[1, 0], [0, 1]]
    assert codes.row_distances(np.array(rows, dtype=dtype)).tolist() == codes.row_distances(rows).tolist()


def test_codes_in_rows():
    rows = [torch.tensor([1, -1]), torch.tensor([-1, 1])]
    assert codes.check(rows).tolist() == codes.check(np.stack(rows)[::-1][::-1]).tolist() == [[1, -1], [-1, 1]]


@pytest.mark.parametrize("code", ["one_vs_all", [[1, -1, -1]] * 3, np.eye(3), torch.eye(3), torch.eye(3) > 0])
def test_scores_take_a_code_of_integers(code):
    with named(TypeError, "code"):
        tm.CodedScores(SCORES, code)


# -------------------------------------------------------------------------------------------------------- scores

BAD_SCORES = {
    "float8": (SCORES.to(torch.float8_e4m3fn), "float8_e4m3fn"),
    "sparse": (SCORES.to_sparse(), "sparse_coo"),
    "integers": (SCORES.long(), "int64"),
    "complex": (SCORES + 0j, "complex64"),
    "a list": (SCORES.tolist(), "list"),
    "an array": (SCORES.numpy(), "ndarray"),
}


@pytest.mark.parametrize("kind", BAD_SCORES)
def test_bad_scores_are_named(kind):
    given, word = BAD_SCORES[kind]
    for loss in LOSSES:
        with named(TypeError, "scores", word):
            loss(given, TARGET)
    for decode in (tm.ArgmaxDecoder(), tm.FlatScores, tm.TemperatureScaling()):
        with named(TypeError, "scores", word):
            decode(given)
    with named(TypeError, "margins", word):
        tm.CodedScores(given, codes.one_vs_all(3))
    with named(TypeError, "emissions", word):
        tm.ChainScores(given, torch.zeros(3, 3))
    with named(TypeError, "transitions", word):
        tm.ChainScores(SCORES, given)


def test_sparse_features_stay_welcome():
    features = torch.eye(3)
    scorer = tm.LinearScorer(3, 2)
    assert torch.equal(scorer(features.to_sparse()), scorer(features))


def test_sparse_targets_and_masks_are_named():
    with named(TypeError, "target", "sparse_coo"):
        tm.CRFLoss()(SCORES, TARGET.to_sparse())
    with named(TypeError, "target", "sparse_coo"):
        tm.AdaBoostLoss()(SCORES, torch.ones(2, 3).to_sparse())
    with named(TypeError, "mask", "sparse_coo"):
        tm.ChainScores(SCORES, torch.zeros(3, 3), mask=(TARGET == 0).to_sparse())


# ------------------------------------------------------------------------------------------------ other arguments


@pytest.mark.parametrize("given", [None, "-1", 1.5, True, torch.tensor(-100)], ids=repr)
def test_ignore_index_is_an_integer(given):
    makers = [type(loss) for loss in LOSSES if not isinstance(loss, tm.MarginRampLoss)]
    makers += [tm.CodedLoss, metrics.AverageBinaryLoss, metrics.CalibrationError, metrics.MulticlassHinge]
    makers += [metrics.TokenAccuracy, metrics.SentenceAccuracy, metrics.UnknownWordAccuracy]
    makers += [lambda **given: tm.MarginRampLoss(1.0, **given), lambda **given: metrics.BitError(3, **given)]
    makers += [lambda **given: metrics.SpanF1(["O"], **given)]
    for make in makers:
        with named(TypeError, "ignore_index", repr(given)):
            make(ignore_index=given)
    for function in (tm.functional.crf_loss, tm.functional.adaboost_loss, tm.functional.margin):
        for target in (TARGET, torch.ones(2, 3, dtype=torch.long)):
            if target is TARGET or function is tm.functional.adaboost_loss:
                with named(TypeError, "ignore_index", repr(given)):
                    function(SCORES, target, ignore_index=given)


def test_ignore_index_of_numpy():
    assert tm.CRFLoss(ignore_index=np.int64(0))(SCORES, torch.tensor([0, 0])) == 0


@pytest.mark.parametrize(
    "given", [0, "seed", np.random.default_rng(0), torch.Generator], ids=["0", "str", "numpy", "type"]
)
def test_a_generator_is_a_generator_of_torch(given):
    draws = [
        lambda: tm.FlatScores(SCORES).sample(generator=given),
        lambda: tm.ChainScores(SCORES, torch.zeros(3, 3)).sample(generator=given),
        lambda: codes.dense_random(5, generator=given),
        lambda: codes.sparse_random(5, generator=given),
        lambda: tm.ECOCHead(4, 5, generator=given),
        lambda: tm.ECOCHead(4, 5, code="hadamard", generator=given),
        lambda: tm.ContinuousCodeHead(4, 5, generator=given),
    ]
    for draw in draws:
        with named(TypeError, "generator", repr(given)):
            draw()


@pytest.mark.parametrize("given", ["O", "BIO", None, 3, ["O", 3], ["O", None]], ids=repr)
@pytest.mark.parametrize("taker", [tm.tag_constraints, metrics.SpanF1])
def test_tags_are_a_sequence_of_strings(taker, given):
    with named(TypeError, "tags"):
        taker(given)


@pytest.mark.parametrize("taker", [tm.tag_constraints, metrics.SpanF1])
def test_no_tags(taker):
    with named(ValueError, "tags", "is empty"):
        taker([])
    assert taker(np.array(["O", "B-X", "I-X"])) is not None


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ("0, -1", TypeError, "'0, -1'"),
        (None, TypeError, "None"),
        ([3.5, 3.5, -1.0], ValueError, "float"),
        ([[1], [-1]], ValueError, "(2, 1)"),
        (["a", -1], TypeError, "str"),
    ],
)
def test_a_bad_hierarchy_is_named(given, error, word):
    with named(error, "parents", word):
        tm.costs.hierarchy(given)


@pytest.mark.parametrize("given", ["ab", [["a"]], [[0, 1], [1]], torch.eye(2).to_sparse(), torch.eye(2) * 1j])
def test_a_bad_graph_is_named(given):
    with named((TypeError, ValueError), "adjacency"):
        tm.costs.graph(given)


def test_a_graph_of_booleans():
    assert tm.costs.graph(torch.tensor([[False, True], [True, False]])).matrix.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "given", ["balanced", 2.0, [1.0, "a"], [1.0, None], torch.ones(3).to_sparse(), np.ones(3) * 1j]
)
def test_a_bad_weight_is_named(given):
    with named(TypeError, "weight"):
        tm.CRFLoss(weight=given)
    with named(TypeError, "weight"):
        tm.functional.crf_loss(SCORES, TARGET, weight=given)


@pytest.mark.parametrize("given", [1e-40, 5e-324, 1e-21, 1e21, 1e300])
def test_a_temperature_beyond_the_floats_is_named(given):
    with named(ValueError, "temperature", repr(given)):
        tm.CRFLoss(temperature=given)
    with named(ValueError, "temperature", repr(given)):
        tm.functional.crf_loss(SCORES, TARGET, temperature=given)


@pytest.mark.parametrize("temperature", [1e-20, 1e20])
def test_the_last_temperatures(temperature):
    chain = tm.ChainScores(10 * torch.randn(4, 3), torch.randn(3, 3), start=torch.randn(3))
    for scores, target in ((100 * SCORES, TARGET), (chain, torch.tensor([0, 1, -100, 2]))):
        loss = tm.CRFLoss(temperature=temperature)(scores, target)
        assert loss.isfinite()
        if temperature < 1:
            torch.testing.assert_close(loss, tm.StructuredPerceptronLoss()(scores, target))


def test_a_factor_is_positive_and_finite():
    for scores in (tm.FlatScores(SCORES), tm.ChainScores(SCORES, torch.zeros(3, 3))):
        for factor in (0.0, -1.0, float("inf"), float("nan")):
            with named(ValueError, "factor", repr(factor)):
                scores.scale(factor)


# ------------------------------------------------------------------------------------------------------------- numbers


def losses(number):
    target = torch.tensor([2, 0])
    scores = tm.CodedScores(SCORES, codes.one_vs_all(3))
    return [
        tm.CodedLoss(label_smoothing=number)(scores, target),
        tm.CRFLoss(label_smoothing=number, temperature=number)(SCORES, target),
        tm.functional.crf_loss(SCORES, target, label_smoothing=number, temperature=number),
        tm.functional.coded_loss(scores, target, label_smoothing=number),
        tm.CRFLoss().scaled(number)(SCORES, target),
        tm.ChainScores(SCORES, torch.eye(3), factor=number).log_partition(),
        tm.FlatScores(SCORES).scale(number).relative_to(target, temperature=number).log_partition(),
        tm.MulticlassHead(2, 3, loss="cross_entropy", label_smoothing=number).loss(SCORES, target),
    ]


@pytest.mark.parametrize("kind", [Fraction, np.float64, np.float32])
def test_a_number_is_one_of_any_type(kind):
    for found, wanted in zip(losses(kind(0.25)), losses(0.25), strict=True):
        assert torch.equal(found, wanted)
    code = codes.one_vs_all(3)
    assert type(tm.ContinuousCodeScorer(2, code, similarity="gaussian", gamma=kind(0.25)).gamma) is float
    assert type(tm.solvers.DualSVM(tol=kind(0.25)).tol) is float
    assert type(tm.solvers.FrankWolfe(tol=kind(0.25)).tol) is float
    options = tm.solvers.trees.options.TreeOptions(min_leaf=kind(0.25), min_decrease=kind(0.25))
    assert type(options.min_leaf) is type(options.min_decrease) is float


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_a_whole_number_is_one_of_any_type(kind):
    two = kind(2)
    scorer = tm.KernelScorer(torch.eye(5), two, chunk=two)
    assert scorer.class_norms().shape == (2,)
    assert scorer(torch.eye(5)).shape == (5, 2)
    options = tm.solvers.trees.options.TreeOptions(max_leaves=two, max_depth=two, bins=two, draws=two)
    given = [options.max_leaves, options.max_depth, options.bins, options.draws]
    given += [scorer.num_classes, scorer.chunk, tm.LinearScorer(two, two).in_features, tm.KBestDecoder(two).k]
    given += [tm.ChainScorer(two, two).num_classes, metrics.TokenAccuracy(ignore_index=two).ignore_index]
    given += [tm.solvers.Pegasos(epochs=two, batch_size=two).epochs, tm.solvers.AdaBoostMH(two).rounds]
    assert {type(number) for number in given} == {int}
