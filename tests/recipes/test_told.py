"""What recipes say early, where they keep what they make, and of whose line a warning is."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from recipes.answers import write
from recipes.data.new import features_of
from recipes.data.remarks import remark
from recipes.data.sentences import read
from recipes.data.table import Table
from recipes.data.tagging import Tags, check
from recipes.early import complete, look
from recipes.files import save
from recipes.tables import wanted


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b,kind\n" + "".join(f"{i},{i % 5},{'xyz'[i % 3]}\n" for i in range(12)))
    Path("less.csv").write_text("a,kind\n1,x\n")


def kept(recipe, folder):
    """As `fit` keeps it, but for the weights."""
    schema = Table.read("t.csv").schema()
    name = "fit.pt" if recipe == "boost" else "scorer.pt"
    save(Path(folder) / name, {"weight": torch.zeros(1)}, {"recipe": recipe, "schema": schema})


@pytest.mark.parametrize(("recipe", "option", "other"), [("svm", "folder", "boost"), ("boost", "fit", "svm")])
def test_what_predict_lacks_is_said_before_anything_slow(recipe, option, other):
    with pytest.raises(
        FileNotFoundError, match=f"^{option}: there is no .* runs/{recipe}.*; --{option} FOLDER names it$"
    ):
        look(recipe, ["predict", "--path", "t.csv"])
    kept(other, "out")
    message = rf"^{option}: out/.* is of {other}; accepted is the output folder of {recipe} fit, as --{option} FOLDER$"
    with pytest.raises(ValueError, match=message):
        look(recipe, ["predict", f"--{option}=out"])
    kept(recipe, "own")
    with pytest.raises(FileNotFoundError, match=r"path: there is no file none\.csv"):
        look(recipe, ["predict", f"--{option}=own", "--path=none.csv"])
    with pytest.raises(ValueError, match=r"path: less\.csv has no column b; it has a, kind"):
        look(recipe, ["predict", f"--{option}=own", "--path=less.csv"])
    look(recipe, ["predict", f"--{option}=own", "--path=t.csv"])
    for facts in (None, {"recipe": recipe}, {"recipe": recipe, "schema": None}, {"recipe": recipe, "schema": {}}):
        if recipe == "boost" or facts is not None:  # of a fit that kept less, all is left to the recipe
            save(Path("old") / ("fit.pt" if recipe == "boost" else "scorer.pt"), {"weight": torch.zeros(1)}, facts)
            look(recipe, ["predict", f"--{option}=old", "--path=less.csv"])


@pytest.mark.parametrize(
    ("recipe", "args", "message"),
    [
        ("classify", ["predict"], r"^ckpt_path: got none; predict needs the file of trained weights, --ckpt_path "),
        ("tag", ["test"], r"^ckpt_path: got none; test needs the file of trained weights, --ckpt_path "),
        ("classify", ["fit", "--data=Table"], r"^path: got none; accepted is the file of rows, --data.path FILE$"),
    ],
)
def test_what_a_network_lacks_is_said_before_anything_slow(recipe, args, message):
    with pytest.raises(ValueError, match=message):
        complete(recipe, args)
    complete(recipe, [*args, "--print_config"])


def test_the_network_of_a_classifier_is_not_that_of_a_machine():
    Path("net").mkdir()
    Path("net/best.ckpt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"folder: net/best.ckpt is of classify or tag; accepted is"):
        look("svm", ["predict", "--folder=net"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--model.head.loss.cost=[[0,1],[1,0]]", "cost: got 2 x 2 numbers; accepted are 3 x 3, as there are 3 classes"),
        ("--model.head.weight=[1,2]", "weight: got 2 numbers; accepted are 3, as there are 3 classes"),
    ],
)
def test_costs_of_another_number_of_classes_are_said_before_anything_slow(option, message):
    more = ["--model.head.loss=M3NLoss"] if "loss" in option else []
    options = ["fit", "--data=Table", "--data.path=t.csv", "--model.backbone=MLP", *more]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        look("classify", [*options, option])
    look(
        "classify", [*options, option.replace("[[0,1],[1,0]]", "[[0,1,2],[1,0,1],[1,1,0]]").replace("[1,2]", "[1,2,3]")]
    )
    Path("c.csv").write_text("0 1\n1 0\n")
    with pytest.raises(SystemExit, match=r"cost: c\.csv has 2 lines; accepted are 3, one a class"):
        look("svm", ["fit", "--path=t.csv", "--cost=c.csv"])


def test_a_file_of_labels_is_replaced_with_a_word(capsys):
    write(None, ["x"], "xy", None)
    write(None, ["x"], "xy", None)
    assert capsys.readouterr().err == ""
    write(None, ["y"], "xy", None)
    shown = capsys.readouterr()
    assert shown.err == (
        "note: output: labels.txt was there, with other contents, and is replaced; --output names another file\n"
    )
    assert (Path("labels.txt").read_text(), shown.out) == ("y\n", "1 labels written to labels.txt\n")


def test_a_warning_is_of_the_line_that_called():
    schema = Table.read("t.csv").schema() | {"categories": {"1": ["u"]}}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        features_of(np.array([["1", "w"], ["2", "w"]]), schema)
        features_of(np.array([["", "u"], ["", "u"]]), schema)
    assert [one.filename for one in said] == [__file__, __file__]


def test_a_warning_of_a_table_is_of_the_line_that_called():
    Path("e.csv").write_text("a,b,kind\n1,,x\n2,,y\n3,,x\n4,,y\n")
    with pytest.warns(UserWarning, match="column 'b' is empty") as said:
        remark(Table.read("e.csv"), np.arange(4), np.arange(4))
    assert said[0].filename == __file__


# ---------------------------------------------------------------------- sentences
def test_columns_of_the_input_are_kept_or_said_to_be_replaced():
    Path("two.conll").write_text("EU NNP\nrejects VBZ\n")
    (two,) = read("two.conll", untagged=True)
    assert (str(two.tagged("3", ["A", "B"])), two.replaced("3")) == ("EU NNP A\nrejects VBZ B\n\n", "")
    assert two.layout("3", True, 1) == "columns word, 2, tag, its probability"
    assert str(two.tagged("UPOS", ["A", "B"])) == "EU NNP A\nrejects VBZ B\n\n"
    assert str(two.tagged(None, ["A", "B"])) == "EU A\nrejects B\n\n"
    assert two.replaced(None) == "the tags replace what stood in column 2"
    Path("two.conll").write_text("EU _\nrejects _\n")
    assert read("two.conll", untagged=True)[0].replaced(None) == ""
    Path("one.txt").write_text("EU\nrejects\n")
    assert read("one.txt", "columns", untagged=True)[0].replaced(None) == ""


def test_that_no_span_was_found_is_said():
    from recipes.tag import unfound

    assert unfound({"test_accuracy": 0.88, "test_span_f1": torch.tensor(0.0)}, 5).endswith("--trainer.max_epochs was 5")
    assert unfound({"test_span_f1": torch.tensor(0.0)}, None).endswith("may find some")
    assert unfound({"test_span_f1": torch.tensor(0.01)}, 5) == unfound({"test_accuracy": 0.0}, 5) == ""


def test_a_slip_in_a_tag_does_not_hide_the_scheme_that_fits():
    lines = [f"w{i} {'I-PER' if i % 2 else 'O'}\n\n" for i in range(300)] + ["w I_PER\n\n"] * 2
    Path("typo.conll").write_text("".join(lines))
    tags = {"train": Tags(read("typo.conll"), None)}
    with pytest.raises(ValueError, match=r"; did you mean I-PER\?$"):
        check(tags, "IOB1", True)
    with pytest.raises(ValueError, match=r"would fit --model\.scheme \w+, but for I_PER \(2\); did you mean I-PER\?$"):
        check(tags, "BIOES", True)


# ---------------------------------------------------------------------- tables
def test_figures_are_asked_for_by_their_numbers():
    folder = Path("uci")
    folder.mkdir()
    for one in wanted.SETS:
        np.savez(folder / f"{one.name}.npz", X=np.zeros((2, 1)), y=np.arange(2))
    assert wanted.check(tables=["figure4", "figure7", "figure3"])[0] == ["table2", "figure3"]
    assert wanted.check(tables=["figure5"])[0] == ["table3"]


def test_a_bar_is_for_terminals_alone(capsys):
    from recipes.tables.cells import all_of

    all_of([], "uci", Path("out"), 1)
    shown = capsys.readouterr()
    assert shown.out == "0 trainings kept in out; the tables and pictures of them: " + shown.out.split(": ")[1]
    assert shown.out.endswith("tables report --output out\n")
    assert shown.err == ""
