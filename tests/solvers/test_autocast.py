"""What trains without a graph does so in the dtype of the features and where they are, whatever is set around it."""

import inspect

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import solvers

pytestmark = pytest.mark.filterwarnings("ignore:.*max_passes")  # online learners of rows that are not separable

CODE = tm.codes.one_vs_one(3)
FITS = {
    "AdaBoostMO": lambda: solvers.AdaBoostMO(CODE, 5),
    "BinaryLearner": lambda: solvers.BinaryLearner("squared_hinge"),
    "CodedReduction": lambda: solvers.CodedReduction(CODE, solvers.DualSVM(binary=True)),
    "CodedReduction of forests": lambda: solvers.CodedReduction(CODE, solvers.RandomForest(trees=3)),
    "DualSVM with a kernel": lambda: solvers.DualSVM(kernel="gaussian"),
    "DualSVM in pairs": lambda: solvers.DualSVM(loss="weston_watkins"),
    "DualSVM by norms": lambda: solvers.DualSVM(p=1.5),
    "DualSVM with a free bias": lambda: solvers.DualSVM(bias="free"),
    "DualSVM of signs": lambda: solvers.DualSVM(binary=True),
    "RandomForest": lambda: solvers.RandomForest(trees=5),
    "RandomTrees": lambda: solvers.RandomTrees(trees=5),
    "Bagging": lambda: solvers.Bagging(3, solvers.DualSVM()),
}
KINDS = [
    name
    for name in solvers.__all__
    if inspect.isclass(kind := getattr(solvers, name))
    and issubclass(kind, solvers.Solver)
    and kind is not solvers.Solver
]
BINARY = {"AdaBoost", "BinaryLearner", "BinaryLeastSquares", "BinaryLogistic", "DualSVM of signs"}


def data(dtype, binary=False, rows=40):
    generator = torch.Generator().manual_seed(0)
    target = torch.arange(rows) % (2 if binary else 3)
    features = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    features[:, :3] += torch.eye(3, dtype=torch.float64)[target]
    return features.to(dtype), target


def both(call, made=False):
    """What it gives outside of autocast, and within; and what beside another default device."""
    found = [call()]
    if not made:  # what is made there stays there
        with torch.device("meta"):
            found.append(call())
    for narrow in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", narrow):
            found.append(call())
    return found


def scored(scorer, x):
    scores = scorer(x)
    return scores if isinstance(scores, torch.Tensor) else scores.margins


def same(found, scores):
    """The same scorers to the last bit."""
    outside, *within = found
    for other in within:
        torch.testing.assert_close(scores(other.scorer), scores(outside.scorer), rtol=0, atol=0)
        assert other.report.iterations == outside.report.iterations


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", sorted({*KINDS, *FITS}))
def test_fits_are_the_same(name, dtype):
    make = FITS.get(name) or getattr(solvers, name)
    x, y = data(dtype, name in BINARY)
    same(both(lambda: make().fit(x, y)), lambda scorer: scored(scorer, x))


@pytest.mark.parametrize("name", ["Perceptron", "PassiveAggressive", "BalancedWinnow", "ConstraintClassifier"])
def test_going_on_is_the_same(name):
    x, y = data(torch.float32)
    make = getattr(solvers, name)

    def fit():
        solver = make()
        solver.partial_fit(x, y, num_classes=3)
        return solver.partial_fit(x, y)

    same(both(fit), lambda scorer: scorer(x))


def test_streams_and_the_confidence_are_the_same():
    x, y = data(torch.float32)
    stream = lambda: solvers.Pegasos(regularisation=0.1, batch_size=4).fit_stream([(x, y), (x, y)], 4, 3)  # noqa: E731
    same(both(stream), lambda scorer: scorer(x))
    found = both(lambda: solvers.boost_confidence(solvers.DualSVM(), x, y, delta=0.2, success=0.5))
    same(found, lambda scorer: scorer(x))
    assert found[0].report.errors == found[1].report.errors


@pytest.mark.parametrize("options", [{}, {"kernel": "gaussian"}, {"binary": True}])
def test_paths_are_the_same(options):
    x, y = data(torch.float32, binary=bool(options.get("binary")))
    found = both(lambda: list(solvers.DualSVM(**options).path(x, y, [0.1, 1.0]))[-1])
    same(found, lambda scorer: scored(scorer, x))


@pytest.mark.parametrize("name", ["FrankWolfe", "CuttingPlane", "Perceptron"])
def test_chains_are_the_same(name):
    x, y = data(torch.float32)
    x, y = x.view(8, 5, 4), y.view(8, 5)
    same(both(lambda: getattr(solvers, name)().fit(x, y)), lambda scorer: scorer(x).emissions)


def test_planes_and_calibrations_are_the_same():
    x, y = data(torch.float32)
    scorer = tm.LinearScorer(4, 3)
    coded = tm.CodedScores(x[:, :3].contiguous(), CODE)
    for call in (
        lambda: tuple(solvers.planes(scorer, tm.M3NLoss(), x, y)),
        lambda: tuple(tm.TemperatureScaling().fit(x, y).state_dict().values()),
        lambda: tuple(tm.PlattScaling(3).fit(coded, y).state_dict().values()),
    ):
        first, *rest = both(call, made=True)
        for other in rest:
            torch.testing.assert_close(other, first, rtol=0, atol=0)


def test_a_solver_of_ones_own_too():
    """Whether it brings a `fit` or not."""
    products = []

    class Own(solvers.DualSVM):
        def fit(self, features, target, **options):
            products.append((features @ features.mT).dtype)
            return super().fit(features, target, **options)

    class Plain(solvers.DualSVM):
        fit = solvers.Solver.fit

        def problem(self, features, target, weight=None, num_classes=None):
            products.append((features @ features.mT).dtype)
            return super().problem(features, target, weight, num_classes)

    x, y = data(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        Own().fit(x, y)
        Plain().fit(x, y)
        assert (x @ x.mT).dtype == torch.bfloat16
    assert products == [torch.float32] * 2
