"""Columns that a fit leaves out are left out by all that follows it."""

from pathlib import Path

import numpy as np
import pytest

from recipes import boost, classify, load, report, svm
from recipes.early import look

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
@pytest.mark.filterwarnings("ignore:column 'name'")
def test_machines_and_ensembles(recipe, capsys):
    kind = recipe.__name__.rpartition(".")[2]
    more = ["--rounds=5"] if recipe is boost else []
    with pytest.warns(UserWarning, match="column 'name' has another word in each of 60 rows: it is left out"):
        recipe.main(["fit", "--path=t.csv", "--ignore=id", *more])
    command = f"predict --{'fit' if more else 'folder'} runs/{kind} --path FILE"
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"kept in runs/{kind}; to label rows: ")
    assert last.endswith(command)
    fitted = load(f"runs/{kind}")
    schema = fitted.facts["schema"]
    assert (schema["columns"], schema["categories"], schema["kept"], schema["width"]) == (["a", "b"], {}, [2, 3], 4)
    recipe.main(["predict"])
    own = Path("labels.txt").read_text()
    assert fitted.predict("new.csv") == ["x", "y"]
    assert len(fitted.predict("t.csv")) == 60
    report.main([f"runs/{kind}", "--output=own"])
    capsys.readouterr()
    report.main([f"runs/{kind}", "--data=t.csv", "--output=other"])
    assert "missing" not in capsys.readouterr().err
    recipe.main(["tune", "--path=t.csv", "--ignore=[id]", *(["--leaves=[2]"] if more else ["--Cs=[1.0]"]), *more])
    assert """--ignore '["id"]'""" in capsys.readouterr().out
    assert own.split()


def test_networks(capsys):
    options = ["--data=Table", "--data.path=t.csv", "--data.ignore=id", "--model.backbone=MLP"]
    with pytest.warns(UserWarning, match="column 'name' has another word in each of 60 rows: it is left out"):
        cli = classify.main(["fit", *options, "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false"])
    assert cli.datamodule.schema["columns"] == ["a", "b"]
    assert "label kind (the last column): 3 classes, 45 rows for training + 15 for testing\n" in capsys.readouterr().out
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
