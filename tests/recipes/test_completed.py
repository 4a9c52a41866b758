"""What a command leaves out and its files tell, and how a file was read."""

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
    for name in ("runs/a/config.yaml", "runs/a/checkpoints/best.ckpt", "alone.ckpt", "a.yaml"):
        Path(name).write_text("")


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt", "--config runs/a/config.yaml"),
        ("test --ckpt_path=runs/a/checkpoints/best.ckpt --data.predict b.npz", "--config runs/a/config.yaml"),
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt --config a.yaml", ""),
        ("predict --ckpt_path runs/a/checkpoints/best.ckpt --data Npz --data.path b.npz", ""),
        ("predict --ckpt_path alone.ckpt", ""),
        ("predict --ckpt_path none.ckpt", ""),
        ("predict --ckpt_path alone.ckpt --data.path b.npz", "--data Npz"),
        ("fit --data.path b.npz", "--data Npz"),
        ("fit --data.path=b.csv.gz --config a.yaml", "--data Table"),
        ("fit --data.path b.parquet", "--data Table"),
        ("fit --data Table --data.path b.npz", ""),
        ("fit --data.path b.npz --help", ""),
        ("fit", ""),
        ("", ""),
    ],
)
def test_what_the_files_tell(line, more, capsys):
    word, *rest = line.split() or [""]
    assert completed("classify", line.split()) == [one for one in (word, *more.split(), *rest) if one]
    assert capsys.readouterr().err.startswith("note: with --config") is more.startswith("--config")
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
    np.savez("b.npz", X=np.eye(6), y=np.arange(6) % 2)
    with pytest.raises(ValueError, match=r"backbone: ConvNet takes images; b.npz has rows of shape \(6,\); .* MLP"):
        early.look("classify", completed("classify", ["fit", "--data.path", "b.npz"]))
    early.look("classify", completed("classify", ["fit", "--data.path", "b.npz", "--model.backbone", "MLP"]))


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
