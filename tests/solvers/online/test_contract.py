"""The online learners under their common contract."""

import pytest

from tests.contracts.online import OUT_OF_PASSES, OnlineContract
from torch_multiclass.solvers import PassiveAggressive, Perceptron

pytestmark = pytest.mark.filterwarnings(OUT_OF_PASSES)


class TestPerceptron(OnlineContract):
    solver, constant = Perceptron, "learning_rate"


class TestAveraged(OnlineContract):
    solver, options, constant = Perceptron, {"averaged": True, "shuffle": True}, "learning_rate"


class TestPassiveAggressive(OnlineContract):
    solver, options = PassiveAggressive, {"averaged": True}
