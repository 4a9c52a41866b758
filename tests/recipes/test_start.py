"""The command that runs every recipe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torch_multiclass_recipes
from recipes import minimal, start


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
