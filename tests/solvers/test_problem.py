"""What a solver, a kernel scorer and the callback refuse by name, and odd features that they take."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import torch_multiclass as tm
from torch_multiclass.integrations.duality_gap import DualityGap
from torch_multiclass.kernels import Gaussian
from torch_multiclass.solvers import BinaryLeastSquares, BinaryLogistic, DualSVM, Pegasos

X = torch.rand(60, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(60) % 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": "2"}, "p: got '2'"),
        ({"p": None}, "p: got None"),
        ({"weight": "balanced"}, "weight: got 'balanced'"),
        ({"weight": {0: 1.0}}, "weight: holds dict"),
        ({"weight": [1.0, float("inf"), 1.0]}, "weight: has the entry inf"),
        ({"weight": [1.0, 0.0, 1.0]}, "weight: has the entry 0"),
        ({"generator": 0}, "generator: got 0"),
        ({"generator": np.random.default_rng(0)}, "generator: got Generator"),
        ({"on_step": 3}, "on_step: got 3"),
        ({"bias": "yes"}, "bias: got 'yes'"),
        ({"kernel": Gaussian}, "kernel: got the class Gaussian"),
        ({"kernel": "rbf"}, "kernel: got 'rbf'"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DualSVM(**options)


def test_weights_count_with_the_strength():
    with pytest.raises(ValueError, match="C times weight: got 2"):
        DualSVM(2.0, weight=[1e30] * 3).fit(X, Y)


def test_a_label_out_of_all_proportion_is_refused_before_allocating():
    with pytest.raises(MemoryError, match="60 rows and 1000000000001 classes"):
        DualSVM().fit(X, Y.index_fill(0, torch.tensor([5]), 10**12))


def test_a_stream_of_the_wrong_kind_is_named():
    stream = Pegasos(regularisation=0.01)
    with pytest.raises(TypeError, match="batches: got int"):
        stream.fit_stream(3, 8, 3)
    with pytest.raises(TypeError, match="batches: batch 0 is a Tensor"):
        stream.fit_stream([X], 8, 3)
    with pytest.raises(ValueError, match=r"num_classes: got 1\.5"):
        Pegasos().fit(X, Y, num_classes=1.5)
    with pytest.raises(TypeError, match="generator: got 0"):
        Pegasos(generator=0)


def test_scorers_name_what_does_not_fit():
    with pytest.raises(TypeError, match=r"features: are torch.float64, but the weights torch.float32"):
        tm.KernelScorer(X, 3)(X.double())
    with pytest.raises(TypeError, match="features: got Tensor"):
        tm.NystromScorer(X, 3)
    features = tm.scorers.NystromFeatures(X[:10], Gaussian(0.1))
    with pytest.raises(ValueError, match="linear: maps 10 features to 5 scores; accepted is one from 10 to 3"):
        tm.NystromScorer(features, 3, linear=tm.LinearScorer(10, 5))
    with pytest.raises(TypeError, match="generator: got 3"):
        tm.RandomFourierScorer(8, 3, 16, generator=3)


@pytest.fixture(scope="module")
def digits():
    rows, labels = load_digits(return_X_y=True)
    return torch.tensor(rows[:300] / 16, dtype=torch.float32), torch.tensor(labels[:300])


def test_a_large_constant_feature_does_no_harm(digits):
    x, y = digits
    report = DualSVM().fit(torch.cat([x, torch.full((300, 1), 1e6)], 1), y).report
    assert report.converged
    assert 0 <= report.primal - report.dual <= 1e-3 * max(1.0, report.primal)


@pytest.mark.filterwarnings("ignore:Binary.*the gap is:UserWarning")
@pytest.mark.parametrize("learner", [BinaryLogistic, BinaryLeastSquares])
def test_collinear_features_leave_a_certificate(learner):
    scorer, report = learner().fit((X + 1e7).repeat(1, 2), Y % 2)
    rows, signs = (X + 1e7).repeat(1, 2).double(), (2 * (Y % 2) - 1).double()
    weight = scorer.weight.detach().double()
    losses = learner().loss.value(signs[:, None] * (rows @ weight.mT))
    primal = 0.5 * float(weight.square().sum()) + float(losses.sum())
    assert report.dual <= report.primal == pytest.approx(primal, rel=1e-6)


def test_a_weight_too_long_to_square_in_single_precision_is_scaled_back(digits):
    x, y = digits
    assert float(Pegasos().fit(x * 1e19, y).scorer.weight.detach().abs().max()) > 0


@pytest.mark.parametrize(("options", "name"), [({"tol": -1.0}, "tol"), ({"loss": "hinge"}, "loss"), ({"C": 1e35}, "C")])
def test_the_callback_checks_its_options(options, name):
    with pytest.raises(ValueError, match=f"{name}: got"):
        DualityGap(**{"C": 1.0, **options})


def test_weights_that_leave_no_row_are_said():
    with pytest.raises(ValueError, match="no rows with a label and a weight above 0"):
        tm.solvers.DualSVM().fit(torch.eye(2), torch.tensor([0, 1]), weight=torch.zeros(2))
