"""The online learners under their common contract."""

import pytest
import torch

from tests.contracts.online import OUT_OF_PASSES, OnlineContract
from torch_multiclass.solvers import BalancedWinnow, ConstraintClassifier, PassiveAggressive, Perceptron

pytestmark = pytest.mark.filterwarnings(OUT_OF_PASSES)


class TestPerceptron(OnlineContract):
    solver, constant = Perceptron, "learning_rate"


class TestAveraged(OnlineContract):
    solver, options, constant = Perceptron, {"averaged": True, "shuffle": True}, "learning_rate"


class TestPassiveAggressive(OnlineContract):
    solver, options = PassiveAggressive, {"C": 0.1, "averaged": True}


class TestConstraintClassifier(OnlineContract):
    solver, options, constant = ConstraintClassifier, {"averaged": True}, "learning_rate"


class TestAllViolated(OnlineContract):
    solver, options, constant = ConstraintClassifier, {"rule": "all", "averaged": True}, "learning_rate"


class TestUniform(OnlineContract):
    solver, options, constant = ConstraintClassifier, {"rule": "uniform", "averaged": True}, "learning_rate"


class TestWinnow(OnlineContract):
    solver, options, constant = BalancedWinnow, {"ratio": 1.2}, "ratio"
    averages = False


class TestBinaryWinnow(TestWinnow):
    options, binary = {"ratio": 1.2, "binary": True}, True


@pytest.mark.parametrize(
    ("learner", "advised"),
    [
        (Perceptron(max_passes=2), True),
        (PassiveAggressive(max_passes=2), True),
        (Perceptron(max_passes=2, averaged=True), False),
        (ConstraintClassifier(max_passes=2, averaged=True), False),
        (BalancedWinnow(max_passes=2), False),  # which has no mean
    ],
)
def test_a_mean_is_advised_where_there_is_one_that_is_not_asked_for(learner, advised):
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="updates in the last of 2 passes") as told:
        learner.fit(x, torch.arange(30) % 3)
    assert [("averaged=True" in str(one.message)) for one in told] == [advised]
