"""Columns that a fit leaves out are left out by all that follows it."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from recipes import boost, classify, load, report, svm
from recipes.answers import write
from recipes.data.kept import Kept, kept
from recipes.data.table import Table
from recipes.early import look
from recipes.files import save
from recipes.machine import parts

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _rows(tmp_path, monkeypatch):
    """An id as words, one as numbers, two columns that matter, and the label."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    rows = generator.normal(size=(60, 2)) + 3 * np.eye(3, 2)[labels]
    lines = [
        f"W{i},{1000 + i},{a:.2f},{b:.2f},{'xyz'[k]}" for i, ((a, b), k) in enumerate(zip(rows, labels, strict=True))
    ]
    Path("t.csv").write_text("\n".join(["name,id,a,b,kind", *lines]) + "\n")
    Path("new.csv").write_text("b,a\n0.1,3.1\n3.2,0.1\n")


@pytest.mark.parametrize("recipe", [svm, boost])
def test_machines_and_ensembles(recipe, capsys):
    kind = recipe.__name__.rpartition(".")[2]
    more = ["--rounds=5"] if recipe is boost else []
    recipe.main(["fit", "--path=t.csv", "--ignore=id", *more])
    command = f"predict --folder runs/{kind} --path FILE"
    shown = capsys.readouterr()
    assert "note: column 'name' has another word in each of 60 rows: it is left out" in shown.err
    last = shown.out.splitlines()[-1]
    assert last.startswith(f"kept in runs/{kind}; to label rows: ")
    assert last.endswith(command)
    fitted = load(f"runs/{kind}")
    schema = fitted.facts["schema"]
    assert (schema["columns"], schema["categories"], schema["kept"], schema["width"]) == (["a", "b"], {}, [2, 3], 4)
    recipe.main(["predict"])
    own = Path("labels.csv").read_text()
    assert fitted.predict("new.csv") == ["x", "y"]
    assert len(fitted.predict("t.csv")) == 60
    report.main([f"runs/{kind}", "--output=own"])
    capsys.readouterr()
    report.main([f"runs/{kind}", "--data=t.csv", "--output=other"])
    assert "missing" not in capsys.readouterr().err
    recipe.main(["tune", "--path=t.csv", "--ignore=[id]", *(["--leaves=[2]"] if more else ["--Cs=[1.0]"]), *more])
    assert """--ignore '["id"]'""" in capsys.readouterr().out
    assert own.split()


def fitted(recipe, *options):
    """A model of the table, the rows of which were for testing, and the beginning of its ``predict``."""
    if recipe is classify:
        net = ["--data=Table", "--model.backbone=MLP", "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false"]
        data = [f"--data.{option.removeprefix('--')}" for option in options]
        cli = classify.main(["fit", *net, *data])
        path = cli.trainer.checkpoint_callback.best_model_path
        own = ["--data=Table", *data, "--model.backbone=MLP"]
        return cli.datamodule.split[1], ["predict", "--trainer.enable_progress_bar=false", f"--ckpt_path={path}", *own]
    recipe.main(["fit", *options, *(["--rounds=5"] if recipe is boost else [])])
    held = Table.read(*[option.partition("=")[2] for option in options if "path" in option])
    return parts(held)[1], ["predict"]


def read(path="labels.csv"):
    with Path(path).open(encoding="utf-8") as file:
        return [*csv.reader(file)]


@pytest.mark.parametrize("recipe", [svm, boost, classify])
def test_the_columns_left_out_go_with_the_labels(recipe, capsys):
    """First, of the right rows: those of the fit that were for testing, those of another file in its order."""
    test, predict = fitted(recipe, "--path=t.csv", "--ignore=id")
    names = [("--data.predict" if recipe is classify else "--path"), "new.csv"]
    recipe.main(predict)
    heading, *rows = read()
    assert heading == ["name", "id", "label"]
    assert [row[:2] for row in rows] == [[f"W{i}", str(1000 + i)] for i in test]
    assert f"{len(rows)} labels written to labels.csv, after the columns name, id\n" in capsys.readouterr().out
    Path("new.csv").write_text('b,id,name,a\n0.1,8,"Ann, B.",3.1\n3.2,7,W1,0.1\n')
    recipe.main([*predict, "=".join(names), "--probabilities=true"])
    heading, *rows = read()
    assert heading == ["name", "id", "label", "x", "y", "z"]
    assert [row[:2] for row in rows] == [["Ann, B.", "8"], ["W1", "7"]]
    recipe.main([*predict, "=".join(names), "--keep=[b, id]"])
    assert [row[:2] for row in read()] == [["b", "id"], ["0.1", "8"], ["3.2", "7"]]
    recipe.main([*predict, "=".join(names), "--keep=[]"])
    assert [len(line.split(",")) for line in Path("labels.txt").read_text().splitlines()] == [1, 1]
    with pytest.raises(SystemExit, match=r"keep: new\.csv has no column 'c'; it has b, id, name, a"):
        recipe.main([*predict, "=".join(names), "--keep=c"])
    Path("new.csv").write_text("b,a\n0.1,3.1\n")
    Path("labels.txt").unlink()
    recipe.main([*predict, "=".join(names)])  # which has neither
    assert len(Path("labels.txt").read_text().splitlines()) == 1


def test_columns_to_keep_without_a_heading():
    lines = Path("t.csv").read_text().splitlines()[1:]
    Path("bare.csv").write_text("\n".join(lines))
    svm.main(["fit", "--path=bare.csv", "--ignore=2"])
    Path("new.csv").write_text("A,1,0.1,3.1\nB,2,3.2,0.1\n")
    svm.main(["predict", "--path=new.csv"])
    assert [row[:2] for row in read()] == [["1", "2"], ["A", "1"], ["B", "2"]]
    Path("new.csv").write_text("0.1,3.1\n3.2,0.1\n")
    svm.main(["predict", "--path=new.csv"])
    assert len(Path("labels.txt").read_text().splitlines()) == 2
    svm.main(["predict", "--path=new.csv", "--keep=2"])
    assert [row[0] for row in read()] == ["2", "3.1", "0.1"]


def test_arrays_to_keep(capsys):
    labels = np.arange(40) % 4
    np.savez("t.npz", X=np.eye(4)[labels], y=labels, id=np.array([f"W{i}" for i in range(40)]))
    svm.main(["fit", "--path=t.npz"])
    svm.main(["predict", "--keep=id"])
    test = parts(Table.read("t.npz"))[1]
    assert [row[0] for row in read()] == ["id", *(f"W{i}" for i in test)]
    with pytest.raises(SystemExit, match=r"keep: t\.npz has no column 'X'; it has y, id"):
        svm.main(["predict", "--keep=X"])


def test_headings_that_are_taken():
    write(None, ["x"], ["x", "y"], np.array([[0.9, 0.1]]), Kept(["label", "y"], [["1"], ["2"]]))
    assert read() == [["label", "y", "predicted label", "x", "predicted y"], ["1", "2", "x", "0.9", "0.1"]]


def test_a_column_to_keep_that_is_not_there_is_said_early():
    schema = Table.read("t.csv", None, ["name"]).schema()
    save(Path("own/scorer.pt"), {"weight": torch.zeros(1)}, {"recipe": "svm", "schema": schema})
    with pytest.raises(ValueError, match=r"keep: t\.csv has no column 'idd'"):
        look("svm", ["predict", "--folder=own", "--path=t.csv", "--keep=[name, idd]"])


def test_networks(capsys):
    options = ["--data=Table", "--data.path=t.csv", "--data.ignore=id", "--model.backbone=MLP"]
    cli = classify.main(["fit", *options, "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false"])
    assert cli.datamodule.schema["columns"] == ["a", "b"]
    shown = capsys.readouterr()
    assert "note: column 'name' has another word in each of 60 rows: it is left out" in shown.err
    assert "label kind (the last column): 3 classes, 45 rows for training + 15 for testing\n" in shown.out
    assert len(load("runs/default").predict("new.csv")) == 2


@pytest.mark.parametrize("recipe", ["svm", "boost", "classify"])
def test_a_column_that_is_not_there_is_said_early(recipe):
    prefix = "data." if recipe == "classify" else ""
    args = ["fit", f"--{prefix}path=t.csv", f"--{prefix}ignore=[idd]", *(["--data=Table"] if prefix else [])]
    with pytest.raises(ValueError, match=r"ignore: 'idd' is no column of t\.csv; accepted are name, id, a, b"):
        look(recipe, args)


def test_a_class_without_a_training_row_is_said_of_arrays(capsys):
    labels = np.arange(40) % 4
    train = np.flatnonzero(labels[:30] != 2)
    np.savez("t.npz", X=np.eye(4)[labels], y=labels, train_idx=train, test_idx=np.arange(30, 40))
    classify.main(
        ["fit", "--data=Npz", "--data.path=t.npz", "--model.backbone=MLP", "--trainer.max_epochs=1",
         "--trainer.enable_progress_bar=false"]
    )  # fmt: skip
    assert "note: label y: no training row is of class 2; 3 test rows are\n" in capsys.readouterr().err


def test_columns_are_told_apart_whatever_is_in_their_names():
    Path("c.csv").write_text('id,"height, cm",kind\n1,2,x\n2,3,y\n')
    with pytest.raises(ValueError, match=r"ignore: 'idd' is no column of c\.csv; accepted are id, 'height, cm'$"):
        Table.read("c.csv", ignore=["idd"])
    schema = Table.read("c.csv", ignore=["id"]).schema()
    with pytest.raises(ValueError, match=r"keep: c\.csv has no column 'idd'; it has id, 'height, cm', kind$"):
        kept("c.csv", schema, ["idd"])
    np.savez("c.npz", X=np.eye(2), y=["a", "c"], classes=["a", "b, c"])
    with pytest.raises(ValueError, match=r"y in c\.npz has 'c'; accepted are a, 'b, c'$"):
        Table.read("c.npz")
