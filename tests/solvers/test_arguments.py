"""Solvers say what they were made with, and can be made with something else."""

import copy
import inspect
import pickle

import pytest
import torch
from sklearn.base import clone

import torch_multiclass as tm
from torch_multiclass import solvers

NEEDED = {
    solvers.AdaBoostMO: {"code": [[1], [-1]]},
    solvers.CodedReduction: {"code": [[1], [-1]], "learner": solvers.BinaryLogistic()},
    solvers.BinaryLearner: {"loss": "logistic"},
}
KINDS = [
    kind
    for kind in (getattr(solvers, name) for name in solvers.__all__)
    if inspect.isclass(kind) and issubclass(kind, solvers.Solver) and kind is not solvers.Solver
]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"bias": "free"}, ", bias='free'"),
        ({"p": 1.5, "weight": [1, 2.0]}, ", p=1.5, weight=[1, 2.0]"),
        ({"p": 2.0}, ""),
    ],
)
def test_what_is_not_as_usual_is_shown(options, shown):
    found = repr(solvers.DualSVM(**options))
    assert found == f"DualSVM(C=1, kernel=Linear(), tol=0.001{shown}, loss='crammer_singer', binary=False)"


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_by_its_name(kind):
    """Made anew of all that it says, it is the same; also after a copy of any kind."""
    solver = kind(**NEEDED.get(kind, {}), progress=False)
    given = solver.get_params(deep=False)
    assert given["progress"] is False
    again = kind(**given)
    assert repr(again) == repr(solver)
    for twin in (again, clone(solver), copy.deepcopy(solver), copy.copy(solver), pickle.loads(pickle.dumps(solver))):
        assert list(twin.get_params()) == list(solver.get_params())
        assert twin.set_params(progress=None).progress is None
    assert solver.progress is False
    named = [p.name for p in inspect.signature(kind).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert named == list(given)[: len(named)]


def test_arguments_by_position_and_options():
    solver = solvers.DualSVM(3.0, "gaussian", bias=True)
    assert {name: solver.get_params()[name] for name in ("C", "kernel", "tol", "bias")} == {
        "C": 3.0, "kernel": "gaussian", "tol": 1e-3, "bias": True,
    }  # fmt: skip
    assert solvers.BinaryLogistic(2.0, max_passes=7).get_params()["max_passes"] == 7


def test_what_is_held_follows_what_holds_it():
    reduction = solvers.CodedReduction(tm.codes.one_vs_one(3), solvers.DualSVM(binary=True))
    reduction.set_params(learner=solvers.BinaryLogistic(), learner__C=2.0, jobs=2)
    assert (reduction.decoder.loss.name, reduction.learner.C, reduction.jobs) == ("logistic", 2.0, 2)


def test_what_is_refused_changes_nothing():
    solver = solvers.DualSVM(2.0)
    for bad, words in (
        ({"C": -1}, "C: got -1"),
        ({"depth": 2}, "set_params: got 'depth'; accepted are 'C', 'kernel'"),
        ({"C__x": 2}, "C: is 2.0, whose x is not changed by name; accepted is another C: search C over a list"),
    ):
        with pytest.raises(ValueError, match=words):
            solver.set_params(**bad)
    assert solver.C == solver.get_params()["C"] == 2.0


def test_a_clone_keeps_what_was_set():
    solver = solvers.Pegasos(generator=torch.Generator().manual_seed(3))
    solver.epochs = 7
    twin = clone(solver)
    assert twin.epochs == 7
    assert torch.equal(twin.generator.get_state(), solver.generator.get_state())
    assert twin.generator is not solver.generator
