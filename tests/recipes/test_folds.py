"""Folds of cross-validation, and what is kept of them."""

import numpy as np
import pytest
import torch

from recipes.folds import Folds, stratified
from recipes.weights import balanced


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_every_class_is_spread_evenly(folds):
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [40, 7, 2]))
    part = stratified(labels, folds, ["a", "b", "c"])
    counts = np.array([[((labels == k) & (part == fold)).sum() for fold in range(folds)] for k in range(3)])
    assert (counts.max(1) - counts.min(1) <= 1).all()
    assert counts.sum(0).max() - counts.sum(0).min() <= 1


def test_a_class_that_folds_are_trained_without_is_named(capsys):
    stratified(np.array([0, 0, 0, 1, 1, 2]), 3, ["a", "b", "Barbera", "Barolo"])
    assert capsys.readouterr().out.splitlines() == [
        "warning: Barbera has a single row among those for training: one fold is trained without it",
        "warning: Barolo has no row among those for training: every fold is trained without it",
    ]


@pytest.mark.parametrize("other", ["setting", "values", "labels", "dtype", "broken"])
def test_what_is_kept_is_of_the_same_setting_and_data(tmp_path, capsys, other):
    x, y = torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 0])
    first = Folds(tmp_path, (3, None), x, y)
    first["a 0"] = 0.25
    again = Folds(tmp_path, (3, None), x.clone(), y.clone())
    assert "a 0" in again
    assert again["a 0"] == 0.25
    assert again.tell(["a 0", "a 1"]) == 1
    assert capsys.readouterr().out.startswith("1 of 2 trainings kept from before (")
    if other == "broken":
        (tmp_path / "folds.json").write_text("{")
    given = {"setting": ((4, None), x, y), "values": ((3, None), x + 1, y), "labels": ((3, None), x, 1 - y)}
    given |= {"dtype": ((3, None), x.double(), y), "broken": ((3, None), x, y)}
    anew = Folds(tmp_path, *given[other])
    assert anew.tell(["a 0"]) == 0
    assert capsys.readouterr().out == ""


def test_balanced_weights_give_every_class_the_same_sum():
    labels = torch.tensor([0, 0, 0, 2, 2, 5])
    weight = balanced(labels)
    assert weight.mean() == pytest.approx(1)
    sums = torch.zeros(6, dtype=weight.dtype).index_add(0, labels, weight)
    assert sums[[0, 2, 5]].tolist() == pytest.approx([2, 2, 2])
