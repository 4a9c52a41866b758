"""What mistakes cost and how much classes count, by the names of the classes."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from recipes import boost, early, load, svm
from recipes.data.costs import costs
from recipes.weights import of_rows

NAMES = ["cat", "dog", "emu"]
MATRIX = [[0.0, 5.0, 1.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    rows = [(draw.normal() + i % 3, draw.normal() - i % 3, NAMES[i % 3]) for i in range(150)]
    Path("a.csv").write_text("x,y,label\n" + "".join(f"{x:.3f},{y:.3f},{name}\n" for x, y, name in rows))
    Path("b.csv").write_text("0 1\n1 0\n")
    Path("cost.csv").write_text("true,dog,emu,cat\ncat,5,1,0\nemu,1,0,2\ndog,0,1,1\n")  # in another order


@pytest.mark.parametrize(
    "text",
    [
        "true,dog,emu,cat\ncat,5,1,0\nemu,1,0,2\ndog,0,1,1\n",
        "dog;cat;emu\ndog; 0;1;1\n\ncat;5;0;1\nemu;1;2;0",
        "\ufeff\tcat\tdog\temu\ncat\t0\t5\t1\ndog\t1\t0\t1\nemu\t2\t1\t0\n",
        "0 5 1\n1 0 1\n2 1 0\n",
        "0,5,1\n1,0,1\n2,1,0\n",
        "0, 5, 1\n1 0 1\n2 1,0\n",
    ],
)
def test_a_file_of_costs(text):
    Path("some.csv").write_text(text)
    assert costs("some.csv", NAMES) == MATRIX


def test_costs_that_are_typed():
    assert costs({"cat": {"dog": 5}, "emu": {"cat": 2, "emu": 0}}, NAMES) == MATRIX
    assert costs({1: {2: 3}}, ["1", "2"]) == [[0, 3], [1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line|0 lines"),
        ("true,cat,dog\ncat,0,1\ndog,1,0\n", "cost.csv has no line emu"),
        ("true,cat,dog,emu,fox\n" + "".join(f"{n},0,0,0,0\n" for n in [*NAMES, "fox"]), "cost.csv has fox; the class"),
        ("true,cat,dog,emu\ncat,0,1\ndog,1,0,1\nemu,1,1,0\n", "line 1 has 2 numbers, there are 3"),
        ("true,cat,cat,emu\ncat,0,1,1\ndog,1,0,1\nemu,1,1,0\n", "cat is there twice"),
        ("true,cat,dog,emu\ncat,0,x,1\ndog,1,0,1\nemu,1,1,0\n", "could not convert string to float: 'x'"),
        ("0 1\n1 0\n", "has 2 lines; accepted are 3"),
        ("0 -1 1\n1 0 1\n1 1 0\n", "-1 is no cost"),
        ("0 nan 1\n1 0 1\n1 1 0\n", "nan is no cost"),
    ],
)
def test_a_file_of_no_costs_is_one_line(text, message):
    Path("cost.csv").write_text(text)
    with pytest.raises(SystemExit, match=f"^error: cost: .*({message})"):
        costs("cost.csv", NAMES)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cow": {"dog": 1}}, "got cow; the classes are cat, dog, emu"),
        ({"cat": {"cow": 1}}, "got cow; the classes are cat, dog, emu"),
        ({"cat": 3}, "got 3 for cat; accepted is as in {cat: {dog: 5}}"),
        ({"cat": {"dog": -3}}, "-3 is no cost; accepted are numbers >= 0"),
    ],
)
def test_no_costs_that_are_typed_are_one_line(given, message):
    with pytest.raises(SystemExit, match=f"^error: cost: {message}$"):
        costs(given, NAMES)


def test_weights_of_classes():
    labels = torch.tensor([0, 1, 2, 0])
    assert of_rows(None, labels, NAMES) is None
    assert of_rows({"dog": 3, "emu": 0}, labels, NAMES).tolist() == [1, 3, 0, 1]
    with pytest.raises(SystemExit, match=r"^error: weight: got cow; the classes are cat, dog, emu$"):
        of_rows({"cow": 3}, labels, NAMES)
    with pytest.raises(SystemExit, match=r"^error: weight: got -1 for cat; accepted is a number >= 0$"):
        of_rows({"cat": -1}, labels, NAMES)


@pytest.mark.slow
def test_a_machine_of_costs_and_weights(capsys):
    options = ["--path=a.csv", "--tol=1e-6", "--weight={cat: 2, dog: 0.5}"]
    facts = svm.main(["fit", "--cost=cost.csv", *options])
    assert facts["cost"] == MATRIX
    fitted = load("runs/svm")
    held = svm.rows(fitted.facts)
    x, y, train, test = held
    weight = torch.tensor([2, 0.5, 1])[y[train]]
    expected = tm.solvers.DualSVM(1.0, tol=1e-6, cost=torch.tensor(MATRIX, dtype=torch.float64))
    scorer = expected.fit(x[train], y[train], weight=weight, num_classes=3).scorer
    torch.testing.assert_close(fitted.model.weight, scorer.weight, atol=1e-3, rtol=1e-3)
    found = scorer(x[test]).argmax(1)
    assert facts["test_cost"] == pytest.approx(float(torch.tensor(MATRIX)[y[test], found].mean()))
    assert "mean cost" in capsys.readouterr().out
    assert svm.main(["fit", *options])["dual"] != pytest.approx(facts["dual"], rel=1e-2)
    typed = svm.main(["fit", "--cost={cat: {dog: 5}, emu: {cat: 2}}", *options])
    assert typed["dual"] == pytest.approx(facts["dual"], rel=1e-5)
    capsys.readouterr()
    best = svm.main(["tune", "--cost={cat: {dog: 5}}", *options, "--Cs=[1]", "--folds=2"])
    shown = capsys.readouterr().out
    assert f"mean cost {best['error']:.4g}" in shown
    words = shlex.split(shown.splitlines()[-1])
    assert json.loads(words[words.index("--cost") + 1]) == {"cat": {"dog": 5}}
    early.look("svm", words[words.index("fit") :])
    svm.main(words[words.index("fit") :])


@pytest.mark.slow
def test_an_ensemble_of_weights():
    plain = boost.main(["fit", "--path=a.csv", "--rounds=5"])
    facts = boost.main(["fit", "--path=a.csv", "--rounds=5", "--weight={cat: 50}"])
    assert facts["weight"] == {"cat": 50}
    assert facts["product"] != plain["product"]
    assert load("runs/boost").predict("a.csv").count("cat") > 50
    boost.main(["tune", "--path=a.csv", "--rounds=3", "--leaves=[2]", "--folds=2", "--weight={cat: 50}"])


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        (
            "boost",
            "fit --cost cost.csv",
            "no option --cost here; what each mistake costs is taken by svm fit --cost, by tag fit --model.cost, and",
        ),
        ("ocr", "fit --weight balanced", "no option --weight here; a weight for each class is taken by svm and boost"),
        ("classify", "fit --weight 3", "no option --weight here; .*by classify .--model.head.weight"),
        ("tag", "fit --cost 3", "no option --cost here"),
        ("svm", "fit --cost none.csv", "cost: .*none.csv"),
        ("svm", "fit --cost 3", "cost: .*3"),
        (
            "svm",
            "fit --path a.csv --cost b.csv",
            "b.csv has 2 lines; accepted are 3, one a class, in the order cat, dog,",
        ),
        ("svm", "fit --weight 3", "weight: got 3; accepted is balanced or a mapping"),
    ],
)
def test_where_they_have_no_meaning_or_are_none(recipe, line, message):
    with pytest.raises(SystemExit, match=message):
        early.look(recipe, line.split())
