"""The online learners under their common contract."""

import pytest

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
