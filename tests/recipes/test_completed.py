"""What a command leaves out and its files tell, and how a file was read."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from recipes import early
from recipes.completed import completed
from recipes.data.arrays import checked_features
from recipes.data.table import Table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs/a/checkpoints").mkdir(parents=True)
    for name in ("runs/a/config.yaml", "runs/a/checkpoints/best.ckpt", "alone.ckpt"):
        Path(name).write_text("")
    Path("a.yaml").write_text("model: {backbone: {class_path: MLP}}")
    Path("b.yaml").write_text("data: {class_path: recipes.data.files.Table, init_args: {path: b.csv}}")
    np.savez("b.npz", X=np.eye(6), y=np.arange(6) % 2)
    np.savez("images.npz", X=np.ones((6, 1, 2, 3)), y=np.arange(6) % 2)
    Path("text.npz").write_text("no arrays")


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt", "--config runs/a/config.yaml"),
        ("test --ckpt_path=runs/a/checkpoints/best.ckpt --data.predict b.npz", "--config runs/a/config.yaml"),
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt --config a.yaml", ""),
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt --data Npz --data.path b.npz", ""),
        ("predict --ckpt_path alone.ckpt", ""),
        ("predict --ckpt_path alone.ckpt --data.path b.npz", "--data Npz"),
        ("fit --data.path b.npz", "--data Npz --model.backbone MLP"),
        ("fit --data.path images.npz", "--data Npz"),
        ("fit --data.path text.npz", "--data Npz"),
        ("fit --data.path none.npz", "--data Npz"),
        ("fit --data Npz", ""),
        ("fit --data.path b.csv --model.backbone.hidden [9]", "--data Table --model.backbone MLP"),
        ("fit --data.path b.csv --model.backbone ConvNet", "--data Table"),
        ("fit --data.path b.csv --model my.yaml", "--data Table"),
        ("fit --data Table --data.path b.csv", "--model.backbone MLP"),
        ("fit --config b.yaml", "--model.backbone MLP"),
        ("fit --data.path=b.csv.gz --config a.yaml", "--data Table"),
        ("fit --data.path b.parquet", "--data Table --model.backbone MLP"),
        ("fit --data Table --data.path b.npz", "--model.backbone MLP"),
        ("fit --data.path b.npz --help", ""),
        ("fit", ""),
        ("", ""),
    ],
)
def test_what_the_files_tell(line, more, capsys):
    word, *rest = line.split() or [""]
    assert completed("classify", line.split()) == [one for one in (word, *more.split(), *rest) if one]
    said = capsys.readouterr().err
    assert said.startswith("note: with --config") is more.startswith("--config")
    assert said.startswith("note: with --model.backbone MLP, for rows of numbers") is more.endswith("MLP")
    assert completed("svm", line.split()) == line.split()


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("fit --ckpt_path runs/a/checkpoints/best.ckpt", True),
        ("fit --ckpt_path runs/a/checkpoints/best.ckpt --data.train b.conllu --trainer.max_epochs 9", True),
        ("test --ckpt_path runs/a/checkpoints/best.ckpt", True),
        ("test --ckpt_path runs/a/checkpoints/best.ckpt --data.test b.conllu", False),
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt --data.predict b.conllu", False),
        ("fit --ckpt_path runs/a/checkpoints/best.ckpt --config a.yaml", False),
        ("fit --data.train b.conllu", False),
        ("fit", False),
    ],
)
def test_a_tagger_goes_on_with_the_configuration_of_its_run(line, taken):
    word, *rest = line.split()
    more = ["--config", "runs/a/config.yaml"] if taken else []
    assert completed("tag", line.split()) == [word, *more, *rest]


def test_a_table_is_not_for_the_convolutions():
    given = ["fit", "--data.path", "b.npz", "--model.backbone"]
    with pytest.raises(ValueError, match=r"backbone: ConvNet takes images; b.npz has rows of shape \(6,\); .* MLP"):
        early.look("classify", completed("classify", [*given, "ConvNet"]))
    early.look("classify", completed("classify", given[:-1]))


@pytest.mark.parametrize(
    ("recipe", "line", "file"),
    [
        ("classify", "predict --ckpt_path runs --data.predict b.npz", "runs/b/version_1/checkpoints/best.ckpt"),
        ("classify", "test --ckpt_path=runs/a", "runs/a/checkpoints/best.ckpt"),
        ("classify", "validate --ckpt_path runs/b/version_0/checkpoints", "runs/b/version_0/checkpoints/best.ckpt"),
        ("classify", "fit --ckpt_path runs/b", "runs/b/version_1/checkpoints/last.ckpt"),
        ("tag", "predict --ckpt_path runs/a --data.predict b.txt", "runs/a/checkpoints/best.ckpt"),
        ("tag", "fit --config folder.yaml", "runs/b/version_1/checkpoints/last.ckpt"),
    ],
)
def test_a_checkpoint_by_its_folder_is_the_newest(recipe, line, file, capsys):
    """The best, to go on from the last; its run's configuration goes with it."""
    for n in range(2):
        place = Path(f"runs/b/version_{n}")
        (place / "checkpoints").mkdir(parents=True)
        for name in ("config.yaml", "checkpoints/best.ckpt", "checkpoints/last.ckpt"):
            (place / name).write_text("")
            os.utime(place / name, (2e9 + n, 2e9 + n))
    Path("folder.yaml").write_text("ckpt_path: runs/b")
    found = completed(recipe, line.split())
    assert found[-2:] == ["--ckpt_path", file]
    assert f"note: with --ckpt_path {file}\n" in capsys.readouterr().err
    config = str(Path(file).parent.parent / "config.yaml")
    assert (config in found) is (recipe == "classify")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "runs/none",
            r"there is no file runs/none \(beside it: runs/c, runs/d\); accepted is a checkpoint of classify",
        ),
        (
            "none.ckpt",
            r"there is no file none.ckpt; accepted is a checkpoint of classify, or a folder with its",
        ),
        ("empty", r"there is no best.ckpt in empty; accepted is a checkpoint of classify, or a folder with"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_what_is_wrong(path, said):
    for name in ("runs/c/version_0/checkpoints/best.ckpt", "runs/d/best.ckpt", "empty/scorer.pt"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text("")
    with pytest.raises(FileNotFoundError, match=f"^ckpt_path: {said}"):
        completed("classify", ["predict", "--ckpt_path", path, "--data.predict", "b.csv"])


@pytest.mark.parametrize(
    ("features", "lines"),
    [
        (np.zeros((5, 1, 8, 9)), [r"a: read as 5 images of 1 channel of 8 x 9"]),
        (np.zeros((5, 3, 8, 1)), [r"a: read as 5 images of 3 channels of 8 x 1"]),
        (
            np.zeros((5, 8, 9, 1)),
            [r"a: read as 5 images of 8 channels of 9 x 1; were .*transpose\(0, 3, 1, 2\) .*"],
        ),
        (np.zeros((5, 8, 9, 3), np.uint8), [r"a: read as 5 images of 8 channels of 9 x 3; were the channels last.*"]),
        (np.full((2, 1, 2, 2), np.nan), ["a: read as.*", r"a: 8 of 8 values are missing, in 2 of 2 rows"]),
        (np.array([[1, np.nan], [np.nan, np.nan], [0, 1]]), [r"a: 3 of 6 values are missing, in 2 of 3 rows"]),
        (np.eye(3), []),
    ],
)
def test_how_rows_were_read_is_a_line(features, lines, capsys, tmp_path):
    checked_features(f"{tmp_path}/a", "path", features)
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == len(lines)
    assert all(re.fullmatch(f"note: {tmp_path}/{line}", one) for line, one in zip(lines, shown, strict=True))


def test_missing_entries_of_a_table_are_counted(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,,x\n,3,y\n,4,x\n")
    Table.read(str(path))
    assert capsys.readouterr().err == f"note: {path}: 3 of 6 values are missing, in 3 of 3 rows\n"
