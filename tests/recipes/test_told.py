"""What recipes say early, where they keep what they make, and of whose line a warning is."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from recipes import start
from recipes.answers import write
from recipes.data.new import features_of
from recipes.data.remarks import remark
from recipes.data.sentences import read
from recipes.data.table import Table
from recipes.data.tagging import Tags, check
from recipes.data.vocabulary import Vocabulary
from recipes.early import complete, look
from recipes.early_files import lengths
from recipes.files import save
from recipes.given import options
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


@pytest.mark.parametrize(("recipe", "option", "other"), [("svm", "folder", "boost"), ("boost", "folder", "svm")])
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


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        (
            "tag",
            "--trainer.max_epochs 0",
            "trainer.max_epochs: got 0; accepted is a whole number >= 1, or -1 for no end",
        ),
        ("classify", "--trainer.max_epochs -5", "trainer.max_epochs: got -5; accepted is a whole number >= 1, or -1"),
        ("tag", "--trainer.max_steps 0", "trainer.max_steps: got 0; accepted is a whole number >= 1, or -1 for no end"),
        ("tag", "--model.loss.cost {B:{O:5}}", "model.loss.cost: got a mapping; .*alphabetical.* are --model.cost$"),
        ("tag", "--config c.yaml", "model.loss.cost: got a mapping; .*alphabetical.* are --model.cost$"),
        ("tag", "--model.loss.cost t.csv", "model.loss.cost: got t.csv; .*alphabetical.* are --model.cost$"),
        (
            "classify",
            "--model.head.loss.cost {x:{y:5}}",
            "model.head.loss.cost: got a mapping; .* order of the classes$",
        ),
        ("tag", "--data.dev none", "dev: there is no file none; --data.dev null unsets it$"),
    ],
)
def test_values_that_no_fit_can_have_are_said_before_anything_slow(recipe, line, message):
    Path("c.yaml").write_text("model: {loss: {class_path: M3NLoss, init_args: {cost: {B-LOC: {O: 5}}}}}\n")
    loss = {"tag": "--model.loss=M3NLoss", "classify": "--model.head.loss=M3NLoss"}[recipe]
    with pytest.raises((ValueError, FileNotFoundError), match=f"^{message}"):
        look(recipe, ["fit", loss, *line.split()])


def test_a_training_shorter_than_its_checkpoint():
    whole = {"epoch": 3, "loops": {"fit_loop": {"epoch_loop.batch_progress": {"is_last_batch": True}}}}
    given = {"trainer.max_epochs": "3", "ckpt_path": "a.ckpt"}
    with pytest.raises(
        ValueError, match=r"^trainer.max_epochs: got 3, but a.ckpt has 4 epochs behind it; accepted is "
    ):
        lengths(given, whole)
    lengths(given, {"epoch": 3})  # which was kept within an epoch
    for other in ("4", "-1", "null"):
        lengths(given | {"trainer.max_epochs": other}, whole)


def test_null_takes_back_a_file_of_a_configuration():
    Path("c.yaml").write_text("data: {class_path: Treebank, init_args: {dev: none.conll}}\n")
    with pytest.raises(FileNotFoundError, match=r"dev: there is no file none.conll"):
        look("tag", ["fit", "--config", "c.yaml"])
    look("tag", ["fit", "--config", "c.yaml", "--data.dev", "null"])
    assert options(["--config", "c.yaml", "--data.dev=null"])["data.dev"] is None


def test_a_file_of_labels_is_replaced_with_a_word(capsys):
    write(None, ["x"], "xy", None)
    write(None, ["x"], "xy", None)
    assert capsys.readouterr().err == ""
    with pytest.warns(UserWarning, match="was there") as said:
        write(None, ["y"], "xy", None)
    shown = capsys.readouterr()
    assert [str(one.message) for one in said] == [
        "output: labels.txt was there, with other contents, and is replaced; --output names another file"
    ]
    assert (Path("labels.txt").read_text(), shown.out) == ("y\n", "1 labels written to labels.txt\n")


def test_a_warning_is_of_the_line_that_called():
    schema = Table.read("t.csv").schema() | {"categories": {"1": ["u"]}}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        features_of(np.array([["1", "w"], ["2", "w"]]), schema)
        features_of(np.array([["", "u"], ["", "u"]]), schema)
    assert [one.filename for one in said] == [__file__, __file__]


def test_a_warning_of_a_table_is_of_the_line_that_called():
    Path("e.csv").write_text("a,b,kind\n1,,1.5\n2,,2.5\n3,,3.5\n4,,4.5\n")
    with pytest.warns(UserWarning, match="4 of 4 rows are alone in their class") as said:
        remark(Table.read("e.csv"), np.arange(4), np.arange(4))
    assert said[0].filename == __file__


# ---------------------------------------------------------------------- sentences
def test_columns_of_the_input_are_kept_or_said_to_be_replaced():
    Path("two.conll").write_text("EU NNP\nrejects VBZ\n")
    (two,) = read("two.conll", untagged=True)
    assert (str(two.tagged("3", ["A", "B"])), two.replaced("3")) == ("EU NNP A\nrejects VBZ B\n\n", "")
    assert two.layout("3", True, 1) == "columns word, column 2, tag, its probability"
    assert str(two.tagged("UPOS", ["A", "B"])) == "EU NNP A\nrejects VBZ B\n\n"
    assert str(two.tagged(None, ["A", "B"])) == "EU A\nrejects B\n\n"
    assert two.replaced(None) == "the tags replace what stood in column 2"
    Path("two.conll").write_text("EU _\nrejects _\n")
    assert read("two.conll", untagged=True)[0].replaced(None) == ""
    Path("one.txt").write_text("EU\nrejects\n")
    assert read("one.txt", "columns", untagged=True)[0].replaced(None) == ""


@pytest.mark.parametrize(
    ("column", "learned", "written"),
    [
        (None, "EU NNP I O", "EU NNP A"),
        ("last", "EU NNP O", "EU NNP A"),
        ("last", "EU O", "EU A"),
        ("2", "EU O X", "EU A"),
    ],
)
def test_tags_of_a_file_of_fewer_columns_are_a_new_last_one(column, learned, written):
    Path("train.conll").write_text(f"{learned}\n")
    Path("new.conll").write_text("EU NNP\n")
    vocabulary = Vocabulary.learn(read("train.conll"), column)
    (sentence,) = read("new.conll", untagged=True)
    assert str(sentence.tagged(Vocabulary(**vocabulary.state()).written(sentence), ["A"])) == f"{written}\n\n"


def test_words_alone_are_written_with_tabs():
    """Whatever the file of the training had; columns that are there keep what parts them."""
    Path("words.txt").write_text("EU\nrejects\n\nNew\n")
    first, second = read("words.txt", "columns", untagged=True)
    assert str(first.tagged(None, ["A", "B"], [0.5, 1.0])) == "EU\tA\t0.5\nrejects\tB\t1\n\n"
    assert str(second.tagged("4", ["A"])) == "New\tA\n\n"
    for mark in ("\t", " "):
        Path("two.conll").write_text(f"EU{mark}NNP\n")
        assert str(read("two.conll", untagged=True)[0].tagged("3", ["A"])) == f"EU{mark}NNP{mark}A\n\n"


@pytest.mark.slow
def test_which_sentences_are_for_what_is_said():
    pytest.importorskip("lightning")
    from recipes.data.treebank import Treebank

    Path("a.conll").write_text("".join(f"w{i}\tO\n\n" for i in range(43)))
    Path("b.conll").write_text("w\tO\n\n# nothing\n\n")
    held = Treebank(train="a.conll")
    held.setup("fit")
    assert held.told("train", "dev", "test") == (
        "35 sentences of a.conll for training + 4 of a.conll, the ninth of each ten, for choosing the best weights "
        "+ 4 of a.conll, the tenth of each ten, for testing"
    )
    held = Treebank(train="a.conll", test="b.conll")
    held.setup("test")
    assert held.told("test") == "1 sentence of b.conll for testing"
    held.setup("fit")
    assert held.told("train", "dev", "test") == (
        "39 sentences of a.conll for training + 4 of a.conll, the ninth of each ten, for choosing the best weights "
        "+ 1 of b.conll for testing"
    )


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


# ---------------------------------------------------------------------- once
COLUMNS = "id,a,b,kind"


def spoken(capsys, call):
    """What is said of files while something is called: notes, and warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    return notes, [str(one.message) for one in said if "was there" not in str(one.message)]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["svm", "boost", "classify"])
def test_what_a_fit_said_is_not_said_again(recipe, capsys):
    """A warning for what is lost, notes for the rest; of another file one line, and of the fit's own none."""
    pytest.importorskip("lightning")
    from recipes import boost, classify, report, svm

    own = {"svm": svm, "boost": boost, "classify": classify}[recipe]
    rows = [f"P{i};{i % 3 + i / 40:.2f};{(i * 7) % 11 + 0.5};{'xyz'[i % 3]}".replace(".", ",") for i in range(40)]
    rows[3], rows[5] = "P3;4,O12;1,5;x", "P5;;2,5;z"
    Path("own.csv").write_text("\n".join([COLUMNS.replace(",", ";"), *rows]) + "\n")
    Path("new.csv").write_text("\n".join(["id;a;b", "N1;1,5;2", "N2;1l;2", "N3;;2"] + ["N4;1;2"] * 20) + "\n")
    quiet = ["--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--trainer.logger=true"]
    data = ["--data=Table", "--data.path=own.csv", "--model.backbone=MLP"]
    fit = [*data, *quiet, "--trainer.default_root_dir=kept"] if recipe == "classify" else ["--path=own.csv"]
    fit += {"svm": ["--output=kept"], "boost": ["--output=kept", "--rounds=3"], "classify": []}[recipe]
    notes, lost = spoken(capsys, lambda: own.main(["fit", *fit]))
    assert [line.split(": ")[2] for line in notes if "own.csv" in line] == [
        "in column 'a' '0,00' is read as 0.00, and likewise in 1 other column",
        "2 of 80 values are missing, in 2 of 40 rows",
    ]
    assert "column 'id' has another word in each of 40 rows" in notes[-1]
    assert [line for line in lost if "own.csv" in line] == [
        "own.csv: column 'a' is numbers but for 1 entry, which counts as missing: '4,O12' (line 5)"
    ]
    start.printed.cache_clear()
    Table._read.cache_clear()
    assert spoken(capsys, lambda: report.main(["kept", "--output=own"])) == ([], [])
    path = str(next(Path("kept").rglob("best.ckpt"))) if recipe == "classify" else "kept"
    named = {"svm": "--folder=kept", "boost": "--folder=kept", "classify": f"--ckpt_path={path}"}[recipe]
    predict = ["predict", named, *(["--trainer.enable_progress_bar=false", *data] if recipe == "classify" else [])]
    Table._read.cache_clear()
    assert spoken(capsys, lambda: own.main(predict)) == ([], [])
    only = (
        "new.csv: column 'a' is numbers but for 1 entry, which counts as missing: '1l' (line 3); 2 of 46 values are "
        "missing, in 2 of 23 rows; in column 'a' '1,5' is read as 1.5"
    )
    new = "--data.predict=new.csv" if recipe == "classify" else "--path=new.csv"
    assert spoken(capsys, lambda: own.main([*predict, new])) == ([], [only])
    if recipe == "classify":
        assert spoken(capsys, lambda: own.main(["test", *predict[1:]])) == ([], [])
