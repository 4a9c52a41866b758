"""The classification recipe as its user runs it, on a table small enough for seconds."""

import csv
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("jsonargparse")
pytest.importorskip("matplotlib")

import yaml

from benchmarks import heads
from recipes import classify, load, results
from recipes.completed import completed
from recipes.console import write_atomically
from recipes.metrics import ErrorRate, MeanLoss
from recipes.models import Classifier

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "recipes/configs").glob("digits_*.yaml"))
CLASSES = ["low", "middling", "high"]


# Lightning, jsonargparse and torch warn about each other; what the recipe itself warns about stays an error.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file of 3 overlapping classes with 25 test rows, which two processes cannot share evenly."""
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    features = np.eye(3)[labels] + 0.5 * generator.standard_normal((120, 3))
    rows = generator.permutation(120)
    path = tmp_path_factory.mktemp("data") / "table.npz"
    np.savez(path, X=features, y=labels, classes=np.array(CLASSES), train_idx=rows[25:], test_idx=rows[:25])
    return path


@pytest.fixture
def run(table, tmp_path, monkeypatch, device):
    """Run a subcommand in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(subcommand, *options, bar="false"):
        accelerator = "gpu" if device.type == "cuda" else "cpu"
        common = [f"--data.path={table}", f"--trainer.accelerator={accelerator}", "--trainer.devices=1"]
        backbone = ["--model.backbone=MLP", "--model.backbone.hidden=[16]"] if subcommand == "fit" else []
        return classify.main(
            [subcommand, "--data=Npz", *common, *backbone, f"--trainer.enable_progress_bar={bar}", *options]
        )

    return run


def checkpoint(name, version=0):
    return f"runs/default/version_{version}/checkpoints/{name}.ckpt"


def log(version=0):
    with open(f"runs/default/version_{version}/metrics.csv") as file:
        return list(csv.DictReader(file))


def test_fit_test_and_predict(run, table, capfd):
    fitted = run("fit", "--trainer.max_epochs=3", "--model.head.loss=CrammerSingerLoss", bar="true")
    shown = capfd.readouterr()
    for word in ("Epoch", "train_loss", "val_error", "test error", "best weights"):
        assert word in shown.out
    assert "Warning" not in shown.err
    assert "v_num" not in shown.out

    chosen_by = [float(row["val_loss"]) for row in log() if row["val_loss"]]
    assert len(chosen_by) == 3
    assert float(fitted.trainer.checkpoint_callback.best_model_score) == pytest.approx(min(chosen_by))

    tested = run("test", f"--ckpt_path={checkpoint('best')}")
    metrics = [float(cli.trainer.callback_metrics["test_error"]) for cli in (fitted, tested)]
    assert metrics[0] == metrics[1]

    predicted = run("predict", f"--ckpt_path={checkpoint('best')}", "--output=out/labels.txt")
    labels = Path("out/labels.txt").read_text().splitlines()
    rows = predicted.datamodule.parts["test"]
    true = [CLASSES[label] for label in rows.labels]
    assert set(labels) <= set(CLASSES)
    wrong = sum(a != b for a, b in zip(labels, true, strict=True)) / len(true)
    assert wrong == pytest.approx(metrics[0], abs=1e-6)
    assert os.listdir("out") == ["labels.txt"]
    capfd.readouterr()
    run("predict", f"--ckpt_path={checkpoint('best')}", "--probabilities=true", "--output=out/labels.csv")
    assert f"labels written to out/labels.csv, each with the probabilities of {', '.join(CLASSES)}" in (
        capfd.readouterr().out
    )
    heading, *lines = [line.split(",") for line in Path("out/labels.csv").read_text().splitlines()]
    assert heading == ["label", *CLASSES]
    assert [line[0] for line in lines] == labels
    shares = np.array([line[1:] for line in lines], float)
    assert shares.sum(1) == pytest.approx(np.ones(len(labels)), abs=1e-4)
    assert [CLASSES[best] for best in shares.argmax(1)] == labels
    with np.load(table) as arrays:
        given = arrays["X"][arrays["test_idx"]]
    np.testing.assert_allclose(load("runs").predict_proba(given), shares, atol=1e-5)
    os.remove("out/labels.csv")
    assert len(os.listdir("runs/default")) == 1, "only a fit keeps a log"
    # the run's own configuration, found beside its checkpoint, does as well
    alone = completed("classify", ["predict", f"--ckpt_path={checkpoint('best')}", "--output=out/again.txt"])
    assert "--config" in alone
    classify.main(alone)
    assert Path("out/again.txt").read_text().splitlines() == labels


def test_checkpoints_hold_nothing_but_weights_and_plain_values(run):
    fitted = run("fit", "--trainer.max_epochs=1", "--model.head.loss=WestonWatkinsLoss", "--model.head.loss.margin=2")
    torch.load(checkpoint("last"), weights_only=True)
    loaded = Classifier.load_from_checkpoint(checkpoint("best"), weights_only=True, map_location="cpu")
    assert loaded.head.criterion.margin == 2
    for name, value in fitted.model.cpu().state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value)


def test_resuming_goes_on_in_the_same_folder(run, recwarn):
    first = run("fit", "--trainer.max_epochs=1")
    again = run("fit", "--trainer.max_epochs=3", f"--ckpt_path={checkpoint('last')}")
    assert again.trainer.global_step == 3 * first.trainer.global_step > 0
    assert [row["epoch"] for row in log(1) if row["val_loss"]] == ["1", "2"]
    assert sorted(os.listdir("runs/default/version_0/checkpoints")) == ["best.ckpt", "last.ckpt"]
    assert torch.load(checkpoint("last"), weights_only=True)["epoch"] == 2
    assert not [warning for warning in recwarn if "dirpath" in str(warning.message)]


def test_balanced_classes_are_counted_by_the_fit_and_kept(run, table):
    fitted = run("fit", "--trainer.max_epochs=1", "--model.head.weight=balanced")
    labels = fitted.datamodule.parts["train"].labels
    weight = len(labels) / (3 * torch.bincount(labels))
    torch.testing.assert_close(fitted.model.head.criterion.weight.cpu(), weight)
    assert torch.load(checkpoint("last"), weights_only=True)["class_counts"] == torch.bincount(labels).tolist()
    torch.testing.assert_close(load("runs").model.head.criterion.weight, weight)
    tested = run("test", f"--ckpt_path={checkpoint('best')}", "--model.head.weight=balanced")
    for name in ("test_loss", "test_error"):
        assert tested.trainer.callback_metrics[name] == fitted.trainer.callback_metrics[name]
    again = run("fit", "--trainer.max_epochs=2", f"--ckpt_path={checkpoint('last')}", "--model.head.weight=balanced")
    torch.testing.assert_close(again.model.head.criterion.weight.cpu(), weight)
    run("predict", f"--ckpt_path={checkpoint('best')}", "--model.head.weight=balanced")


def test_a_cost_matrix_is_nested_lists(run):
    cost = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    fitted = run("fit", "--trainer.max_epochs=1", "--model.head.loss=M3NLoss", f"--model.head.loss.cost={cost}")
    criterion = fitted.model.head.criterion
    assert criterion.cost(torch.arange(3, device=fitted.model.device), 3).tolist() == cost


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_published_configurations_run_and_need_no_command_line(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli, _ = classify.train(config, "--trainer.max_epochs=1", "--trainer.limit_train_batches=2")
    assert 0 <= float(cli.trainer.callback_metrics["test_error"]) <= 1
    written = yaml.safe_load(config.read_text())
    made = heads.maker(written["model"]["head"])(128, 10)
    # the scale is of the code drawn
    said, expected = (re.sub(r", scale=[.0-9]+", "", repr(head)) for head in (cli.model.head, made))
    assert said.replace("1.0", "1") == expected.replace("1.0", "1")


ONE_OF_TWO = """
import sys
from recipes.classify import main
tested = main(["test", *sys.argv[1:]])
print({name: float(value) for name, value in tested.trainer.callback_metrics.items()})
main(["predict", "--output=two.txt", *sys.argv[1:]])
"""


def test_two_processes_count_every_row_once(run, table):
    run("fit", "--trainer.max_epochs=1")
    alone = run("test", f"--ckpt_path={checkpoint('best')}").trainer.callback_metrics
    run("predict", f"--ckpt_path={checkpoint('best')}", "--output=one.txt")

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    options = ["--data=Npz", f"--data.path={table}", f"--ckpt_path={checkpoint('best')}"]
    options += ["--trainer.accelerator=cpu", "--trainer.strategy=ddp", "--trainer.devices=2"]
    shared = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_OF_TWO, "--trainer.enable_progress_bar=false", *options],
            env=os.environ | shared | {"WORLD_SIZE": "2", "NODE_RANK": "0", "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]
    try:
        shown = [process.communicate(timeout=250) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for (out, err), process in zip(shown, processes, strict=True):
        assert process.returncode == 0, err
        assert "Warning" not in err
        for name, value in alone.items():
            found = re.search(rf"'{name}': ([\d.e-]+)", out)
            assert float(found[1]) == pytest.approx(float(value), abs=1e-6)
    assert Path("two.txt").read_text() == Path("one.txt").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model.head=NoHead"], r"error: head: there is no class NoHead; accepted are .*MulticlassHead"),
        (["--model.head=torch_multiclass.ChainHead"], "error: head: got ChainHead; accepted is a head of one"),
        (["--model.head.loss=NoLoss"], "error: loss: got 'NoLoss'; accepted are 'crf', .*'crammer_singer'"),
        (["--model.backbone=NoNet"], "error: backbone: there is no class NoNet; accepted are ConvNet, MLP"),
        (["--data=NoData"], "error: data: there is no class NoData; accepted are Digits, Npz"),
        (["--data.path=nowhere.npz"], r"error: path: there is no file nowhere\.npz"),
        (["--data.validation=2"], r"error: validation: got 2\.0; accepted is a fraction"),
        (["--data.batch_size=0"], "error: batch_size: got 0; accepted is a whole number >= 1"),
        (["--model.backbone=ConvNet"], r"error: backbone: ConvNet got rows of shape \(3,\)"),
        (["--model.head.loss=M3NLoss", "--model.head.loss.cost=[[0,1],[1,0]]"], "error: cost: is 2 x 2"),
        (["--model.head.loss=M3NLoss", "--model.head.loss.cost=none_such"], "error: cost: got 'none_such'"),
        (
            ["--model.head.weight={low: 3}"],
            "error: model.head.weight: got a mapping with low; accepted is balanced, or",
        ),
        (["--trainer.accelerator=tpu"], r"error: accelerator: got tpu; accepted here are (.*, )?cpu, (gpu, )?auto$"),
        (["--trainer.accelerator=cpu", "--trainer.devices=0"], r"error: .*devices='0'"),
        (["--ckpt_path=nowhere.ckpt"], r"error: ckpt_path: there is no file nowhere\.ckpt"),
        (["--learning_rate=1"], "error: .*learning_rate"),
    ],
)
def test_bad_input_is_one_line_that_names_it(run, options, message):
    with pytest.raises(SystemExit, match=message):
        run("fit", "--trainer.max_epochs=1", *options)


def test_evaluating_needs_weights_of_the_same_classes(run, table, tmp_path):
    with pytest.raises(SystemExit, match="error: ckpt_path: got none; predict needs the file of trained weights"):
        run("predict")
    run("fit", "--trainer.max_epochs=1")
    other = tmp_path / "other.npz"
    with np.load(table) as arrays:
        np.savez(other, **{**arrays, "classes": np.array(["high", "middling", "low"])})
    with pytest.raises(SystemExit, match="error: ckpt_path: the weights were trained with classes"):
        run("predict", f"--ckpt_path={checkpoint('best')}", f"--data.path={other}")
    assert not Path("labels.txt").exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "labels.txt"
    write_atomically(path, "old\n")

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new\n")
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["labels.txt"]


def test_error_rate_leaves_ignored_rows_out():
    error = ErrorRate(3)
    error.update(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, -100]))
    error.update(torch.tensor([2, 2]), torch.tensor([2, 0]))
    assert float(error.compute()) == pytest.approx(2 / 5)


def test_mean_loss_weighs_by_rows_and_keeps_nan():
    mean = MeanLoss()
    mean.update(torch.tensor(2.0), torch.tensor(3))
    mean.update(torch.tensor(0.0), torch.tensor(0))
    mean.update(torch.tensor(6.0), torch.tensor(1))
    assert float(mean.compute()) == 3
    mean.update(torch.tensor(torch.nan), torch.tensor(1))
    assert torch.isnan(mean.compute())


def test_results_are_not_computed_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "KEPT", tmp_path)
    calls = []

    class Done:
        class trainer:
            callback_metrics = {"test_error": torch.tensor(0.004)}

    monkeypatch.setattr(classify, "train", lambda *arguments: calls.append(arguments) or (Done, 7.0))
    first, second = results.digits_table(), results.digits_table()
    assert first == second
    assert len(calls) == 5 * len(results.DIGITS)
    assert first.count("| 0.40 ± 0.00 % | 0.40, 0.40, 0.40, 0.40, 0.40 |") == len(results.DIGITS)
    text = "a\n<!-- digits: begin -->\nold\n<!-- digits: end -->\nz\n"
    assert results.put(text, "digits", "new") == "a\n<!-- digits: begin -->\nnew\n<!-- digits: end -->\nz\n"
