"""Features near the largest numbers there are: a scorer whose scores say so, or an error, and no warning of NumPy."""

import warnings

import pytest
import torch

from torch_multiclass import codes, solvers
from torch_multiclass.ops import _native

TREES = {
    "AdaBoostMH": lambda: solvers.AdaBoostMH(rounds=3),
    "AdaBoostMR": lambda: solvers.AdaBoostMR(rounds=3),
    "AdaBoostMO": lambda: solvers.AdaBoostMO(rounds=3, code=codes.one_vs_all(3)),
    "DecisionTree": solvers.DecisionTree,
    "RandomForest": lambda: solvers.RandomForest(trees=3),
}
LINEAR = {
    "Perceptron": solvers.Perceptron,
    "PassiveAggressive": solvers.PassiveAggressive,
    "ConstraintClassifier": solvers.ConstraintClassifier,
    "BalancedWinnow": solvers.BalancedWinnow,
    "Pegasos": solvers.Pegasos,
}


TOO_LARGE = "features: so large that the weights of these rows overflow {}; accepted are smaller ones"


@pytest.fixture(params=["library", "numpy"], autouse=True)
def computed_by(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip("no native library")


def huge(dtype):
    """Rows of three classes, one column of which spans all numbers of the dtype."""
    generator = torch.Generator().manual_seed(0)
    largest = torch.tensor(torch.finfo(dtype).max, dtype=dtype)
    features = torch.randn(30, 3, dtype=dtype, generator=generator)
    features[:, 0] = torch.where(features[:, 0] > 0, largest, -largest)
    features[::4, 1] = largest / 2
    return features, torch.arange(30) % 3


def fitted(make, dtype):
    features, target = huge(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        return make().fit(features, target).scorer, features


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", TREES)
def test_trees_compare_and_never_subtract(name, dtype):
    scorer, features = fitted(TREES[name], dtype)
    scores = scorer(features)
    assert bool(getattr(scores, "margins", scores).isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_linear_learners_have_finite_weights_or_say_what_is_wrong(name, dtype):
    scorer, said = None, None
    try:
        scorer, _ = fitted(LINEAR[name], dtype)
    except ValueError as error:
        said = str(error)
    if scorer is None:
        assert said == TOO_LARGE.format(str(dtype)[6:])
    else:
        assert all(bool(part.isfinite().all()) for part in scorer.parameters())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_that_overflow_are_an_error():
    largest = torch.finfo(torch.float32).max
    features = torch.where(torch.randn(40, 4, generator=torch.Generator().manual_seed(0)) > 0, largest, -largest)
    with pytest.raises(ValueError, match=f"^{TOO_LARGE.format('float32')}$"):
        solvers.Perceptron(max_passes=5).fit(features, torch.arange(40) % 3)
