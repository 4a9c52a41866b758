"""Bars keep to one line of a terminal of 80 columns, and a fit says its result with and without one."""

import io
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("jsonargparse")
pytest.importorskip("rich")

from rich.console import Console

from recipes import classify
from recipes.progress import fitting, line, result, spoken

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ESCAPES = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


def lines_of(text):
    """What stood on the terminal at any moment."""
    return [row.rstrip() for row in CONTROL.sub("", text).replace("\r", "\n").split("\n") if row.strip()]


def test_words_are_whole_or_left_out():
    assert fitting(["ab", "cd", "efg", "h"], 5) == "ab cd"
    assert fitting(["ab", "cd", "efg", "h"], 9) == "ab cd efg"
    assert fitting(["abcdef"], 5) == ""


@pytest.mark.parametrize(("seconds", "words"), [(12.4, "12 s"), (180, "3 min"), (9000, "2.5 h")])
def test_times(seconds, words):
    assert spoken(seconds) == words


@pytest.mark.parametrize("total", [7, 123456])
def test_a_long_name_keeps_the_bar_on_one_line(total):
    shown = io.StringIO()
    with line(Console(file=shown, force_terminal=True, width=80)) as bar:
        task = bar.add_task("; ".join(f"satimage one-vs-one fold {i}" for i in range(5)), total=total)
        bar.advance(task, total // 2)
    rows = lines_of(shown.getvalue())
    assert all("━" in row and f"{total // 2}/{total}" in row.replace(" ", "") for row in rows[-1:])
    assert max(map(len, rows)) <= 80
    assert all(row.startswith("satimage one-vs-one") for row in rows), "wrapped"


def test_what_was_measured():
    metrics = {"test_loss": 0.07873, "test_unknown_accuracy": 0.5, "val_loss": 1.0, "test_error": 0.015555}
    assert result(metrics, "test") == "test unknown accuracy 50.00 %, error 1.56 %, loss 0.07873"


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """A short fit in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rows = np.random.default_rng(0).standard_normal((60, 3))
    np.savez("table.npz", X=rows, y=np.arange(60) % 3)

    def run(*options):
        where = ["--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.max_epochs=2"]
        data = ["--data=Npz", "--data.path=table.npz", "--model.backbone=MLP", "--model.backbone.hidden=[8]"]
        return classify.main(["fit", *data, *where, *options])

    return run


RESULT = (
    r"label y: 3 classes, 45 rows for training \+ 15 for testing\ntest error [\d.]+ %, loss [\d.]+\n"
    r"best weights: {}/default/version_0/checkpoints/best.ckpt\n"
)


@pytest.mark.slow
@ESCAPES
@pytest.mark.parametrize("bar", [(), ("--trainer.enable_progress_bar=false",)], ids=["no terminal", "no bar"])
def test_a_fit_says_its_result_without_a_bar(fit, capfd, bar):
    fit(*bar)
    assert re.fullmatch(RESULT.format("runs"), capfd.readouterr().out)


@pytest.mark.slow
@ESCAPES
def test_the_folder_that_is_asked_for(fit, capfd):
    fit("--trainer.default_root_dir=mine")
    assert re.fullmatch(RESULT.format("mine"), capfd.readouterr().out)
    assert not Path("runs").exists()
    assert Path("mine/default/version_0/metrics.csv").is_file()


@pytest.mark.slow
@ESCAPES
def test_the_bar_of_a_training(fit, capfd, monkeypatch):
    """With more values than fit: the line is whole, and so is every word of it."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    step = classify.Classifier.training_step

    def verbose(self, batch, index):
        self.log_dict({f"quite_a_long_name_{i}": 0.5 for i in range(5)}, prog_bar=True)
        return step(self, batch, index)

    monkeypatch.setattr(classify.Classifier, "training_step", verbose)
    fit("--trainer.enable_progress_bar=true")
    shown = lines_of(capfd.readouterr().out)
    assert max(map(len, shown[:-1])) <= 80
    bars = [row for row in shown if "━" in row or "╸" in row]
    word = r"(\w+_loss|\w+_error|quite_a_long_name_\d) \d\.\d{3}"
    whole = rf"(Sanity Checking|Epoch [12]/2|Validation|Testing) +\S+ \d+/\d+( \d+ s left)?( {word})*"
    assert [row for row in bars if not re.fullmatch(whole, row)] == []
    assert any("quite_a_long_name_0" in row for row in bars)
    assert any(row.startswith("test error") for row in shown)
