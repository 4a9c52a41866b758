"""The command that runs every recipe."""

import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from rich.console import Console

import recipes
import torch_multiclass_recipes
from recipes import functions, minimal, progress, start
from recipes.data.letters import Batch
from recipes.readers import METHODS


def test_every_recipe_is_listed(capsys):
    torch_multiclass_recipes.main([])
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in start.RECIPES)


def test_no_such_recipe_is_one_line():
    with pytest.raises(SystemExit, match=r"error: there is no recipe clasify; accepted are classify, tag"):
        torch_multiclass_recipes.main(["clasify", "fit"])


def test_interrupts_and_bad_input_are_one_line(capsys):
    def interrupted():
        raise KeyboardInterrupt

    def wrong():
        raise ValueError("further up") from TypeError("path: got 3; accepted is a path")

    with pytest.raises(SystemExit) as ended:
        start.main(interrupted)
    assert (ended.value.code, capsys.readouterr().err) == (130, "stopped\n")
    with pytest.raises(SystemExit, match=r"^error: path: got 3; accepted is a path$"):
        start.main(wrong)


def test_a_warning_is_a_line_that_says_so_whoever_formats_warnings(monkeypatch, capsys):
    """Lightning's format, which it sets when it is imported, is a path where the warning is of one of its lines."""
    pytest.importorskip("lightning")
    from lightning.fabric.utilities.warnings import _custom_format_warning

    start.run([])
    monkeypatch.setattr(warnings, "formatwarning", _custom_format_warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn_explicit("output: a was there", UserWarning, "lightning/pytorch/trainer/call.py", 228)
        start.warn("output: b was there")
    assert capsys.readouterr().err == "warning: output: a was there\nwarning: output: b was there\n"


def test_what_is_loaded_late_is_listed():
    assert {"Fitted", "load"} <= {*dir(recipes)}


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("path: a.parquet needs pyarrow; pip install pyarrow, or save it as CSV", ""),
        ("No module named 'rich'", "; install what recipes need: pip install 'torch_multiclass[recipes]'"),
    ],
)
def test_what_to_install_is_said_once(said, more):
    def missing():
        raise ImportError(said)

    with pytest.raises(SystemExit) as ended:
        start.main(missing)
    assert str(ended.value) == f"error: {said}{more}"


def test_a_class_in_the_working_folder_is_found_by_the_installed_command(tmp_path, monkeypatch):
    """As by ``python -m``; what is installed goes before it."""
    (tmp_path / "my_own_encoder.py").write_text("class Mine: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])
    monkeypatch.setattr(start, "run", lambda args: __import__("my_own_encoder"))
    torch_multiclass_recipes.main([])
    assert sys.path[-1] == ""


@pytest.mark.parametrize("train", [METHODS["flat-linear"].train, METHODS["m3n-linear"].train])
def test_a_machine_that_the_keyboard_ended_is_not_taken_for_a_whole_one(train, monkeypatch):
    """A run that would keep it, or choose by it, ends."""
    features, labels = torch.eye(4).expand(5, 4, 4), torch.arange(4).expand(5, 4)

    def pressed(*unused):
        raise KeyboardInterrupt

    words = Batch(features, labels, torch.full((5,), 4))
    train({"C": 1.0, "s": 2.0}, words, 0.1)
    monkeypatch.setattr("torch_multiclass.solvers.monitor._Progress.show", pressed)
    with pytest.raises(KeyboardInterrupt):
        train({"C": 1.0, "s": 2.0}, words, 0.1)


def test_a_bar_is_for_terminals():
    assert progress.line(Console(file=io.StringIO())).disable
    assert not progress.line(Console(file=io.StringIO(), force_terminal=True)).disable


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "Parser key \"model.encoder\":\n  Errors:\n    - Type X expects a function: No module named 'mine'\n"
            "    - Expected a <class 'NoneType'>\n  Given value: mine.Plane",
            "encoder: got mine.Plane: No module named 'mine'; accepted is the dotted path of a class, as FILE.CLASS of "
            "a file of this folder",
        ),
        (
            "Parser key \"model.encoder\":\n  Errors:\n    - Type X: module 'mine' has no attribute 'Plane'\n"
            "  Given value: mine.Plane",
            "encoder: got mine.Plane: module 'mine' has no attribute 'Plane'; accepted is the dotted path of a class, "
            "as FILE.CLASS of a file of this folder",
        ),
        (
            'Parser key "model.optimizer":\n  - Expected a path but Adamm either not accessible or invalid',
            "optimizer: there is no class Adamm; accepted are Adam, SGD or the dotted path of another",
        ),
    ],
)
def test_a_class_that_is_not_there(message, said):
    assert functions.shortly(message, {"optimizer": ["Adam", "SGD"]}) == said


def test_an_option_that_a_class_does_not_have_names_the_class():
    given = {"model.encoder": "recipes.models.ConvolutionEncoder", "model.encoder.widht": "3"}
    said = functions.misnamed("Option 'widht' is not accepted", given, "torch-multiclass tag fit")
    assert said == (
        "model.encoder.widht: ConvolutionEncoder has no option widht; those it has are listed by: "
        "torch-multiclass tag fit --model.encoder.help ConvolutionEncoder"
    )
    assert functions.misnamed("Option 'other' is not accepted", given, "") == ""
    assert functions.misnamed("something else", given, "") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"model.encoder": "torch.nn.LSTM", "model.column": "NER"},
            "encoder: torch.nn.LSTM needs size, more, as in --model.encoder.size VALUE; accepted are BiLSTMEncoder, "
            "ConvolutionEncoder or the dotted path of a module with num_features that is made from a vocabulary",
        ),
        (
            {"model.schedule": "StepLR", "model.optimizer": "SGD"},
            "optimizer: SGD needs size, more, as in --model.optimizer.size VALUE or schedule: StepLR needs size, more, "
            "as in --model.schedule.size VALUE",
        ),
        ({"model.schedule": "linear"}, ""),
    ],
)
def test_an_option_that_a_class_needs_names_the_class(given, said):
    assert functions.needed("the following arguments are required: size, more", given) == said
    assert functions.needed("the following arguments are required: data.path", given) == ""


def test_a_published_configuration_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(start.configured(["fit", "--config", "digits_ecoc", "--config=recipes/configs/pos_crf.yaml", "--x=1"]))
    assert [found[0], found[1], found[4]] == ["fit", "--config", "--x=1"]
    assert found[2].endswith("/recipes/configs/digits_ecoc.yaml")
    assert found[3].startswith("--config=/")
    (tmp_path / "digits_ecoc").write_text("")
    assert list(start.configured(["--config", "digits_ecoc"])) == ["--config", "digits_ecoc"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["tag", "fit", "--data.train", "none.conll"], "error: train: there is no file none.conll"),
        (
            ["tag", "fit", "--data.train=a.conll", "--model.column", "NER"],
            "error: column: got 'NER'; accepted",
        ),
        (["classify", "predict", "--ckpt_path=none.ckpt"], "error: ckpt_path: there is no file none.ckpt"),
        (["svm", "fit", "--path", "none.csv"], "error: path: there is no file none.csv"),
    ],
)
def test_files_are_looked_at_before_anything_slow_is_imported(tmp_path, args, message):
    (tmp_path / "a.conll").write_text("a X\n")
    script = (
        "import sys, torch_multiclass_recipes as command\n"
        "try:\n    command.main(sys.argv[1:])\n"
        "except SystemExit as end:\n    print(end)\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    checkout = str(Path(torch_multiclass_recipes.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": checkout}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    said, imported = done.stdout.splitlines()
    assert said.startswith(message)
    assert imported == "False False"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*many workers", "ignore:.*logging interval")
def test_the_file_to_copy_learns(capsys):
    assert minimal.main(epochs=5) < 0.1
