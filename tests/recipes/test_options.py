"""What a configuration may change of a recipe: its optimiser, its schedule, its encoder or backbone, its bias."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("lightning")
pytest.importorskip("jsonargparse")

from recipes import boost, classify, load, ocr, svm, tag
from recipes.models.optimisation import factor
from tests.recipes.resuming import QUIET, handwriting, treebank

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

SHORT = [*QUIET, "--trainer.max_epochs=2", "--trainer.limit_train_batches=2"]


class MLP(nn.Module):
    """Of the same name as the recipe's own, as torchvision's is."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 3 + i / 100:.2f},{'ab'[i % 2]},{['low', 'mid', 'high'][i % 3]}" for i in range(90)]
    Path("a.csv").write_text("\n".join(["size,kind,label", *rows]))
    treebank(Path("train.conllu"))
    np.savez("letters.npz", **handwriting())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("one_cycle", [0.05, 0.05 + 0.95 * 0.4, 1, 0.5, 0]),
        ("linear", [1 / 11, 1 - 0.1, 1 - 0.25, 0.375, 0]),
        ("cosine", [1, 0.975528, 0.853553, 0.308658, 0]),
        ("constant", [1, 1, 1, 1, 1]),
    ],
)
def test_the_schedules(name, values):
    assert [factor(name, step, 100) for step in (0, 10, 25, 62.5, 100)] == pytest.approx(values, abs=1e-5)


def rates(cli):
    (optimizer,) = cli.trainer.optimizers
    return optimizer, [group["lr"] for group in optimizer.param_groups]


def test_a_classifier_by_its_yaml():
    Path("a.yaml").write_text(
        "data: {class_path: Table, init_args: {path: a.csv, label: label}}\n"
        "model:\n  backbone: {class_path: MLP, init_args: {hidden: [8]}}\n"
        "  optimizer: {class_path: SGD, init_args: {lr: 0.5, momentum: 0.5}}\n"
        "  schedule: {class_path: StepLR, init_args: {step_size: 1, gamma: 0.1}}\n"
    )
    cli = classify.main(["fit", "--config=a.yaml", *SHORT])
    optimizer, (rate,) = rates(cli)
    assert type(optimizer) is torch.optim.SGD
    assert rate == pytest.approx(0.005)  # once an epoch
    assert type(cli.model.backbone).__module__ == "recipes.models.mlp"
    assert cli.model.backbone.num_features == 8
    assert len(load("runs").predict("a.csv")) == 90
    again = ["fit", "--config=a.yaml", *SHORT, "--ckpt_path=runs/default/version_0/checkpoints/last.ckpt"]
    assert rates(classify.main([*again, "--trainer.max_epochs=3"]))[1] == pytest.approx([0.0005])
    for option in ("head.loss=CrammerSingerLoss", "optimizer.lr=0.25", "backbone.hidden=[9]"):
        with pytest.raises(SystemExit, match=f"error: model.{option.partition('=')[0]}: got .* was trained with"):
            classify.main([*again, f"--model.{option}"])


def test_a_rate_beside_an_optimiser_is_its_rate():
    options = ["--data=Table", "--data.path=a.csv", "--model.backbone=MLP", "--model.schedule=constant"]
    cli = classify.main(["fit", *SHORT, *options, "--model.optimizer=Adagrad", "--model.learning_rate=0.25"])
    optimizer, found = rates(cli)
    assert (type(optimizer), found) == (torch.optim.Adagrad, [0.25])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model.schedule=constan"], "schedule: got constan: "),
        (["--model.backbone=Nope"], "backbone: there is no class Nope; accepted are ConvNet, MLP or the dotted path"),
        (["--model.backbone=no.where.Nope"], "backbone: got no.where.Nope: .*No module named 'no'"),
        (["--model.backbone.depth=3"], "model.backbone.depth: MLP has no option depth; those it has are listed by: "),
        (["--trainer.max_epochs=abc"], "max_epochs: got abc; accepted is int"),
        (["--model.learning_rate=-1"], "learning_rate: got -1.0; accepted is a finite number > 0"),
    ],
)
def test_a_wrong_value_is_one_line(options, message):
    with pytest.raises(SystemExit) as said:
        classify.main(["fit", *SHORT, "--data=Table", "--data.path=a.csv", "--model.backbone=MLP", *options])
    assert re.match(f"error: {message}", str(said.value))
    assert "\n" not in str(said.value)


def test_another_encoder_travels_in_the_checkpoint():
    small = ["--model.encoder=ConvolutionEncoder", "--model.encoder.width=8", "--model.encoder.characters=4"]
    other = ["--model.optimizer=AdamW", "--model.schedule=cosine"]
    cli = tag.main(["fit", *SHORT, *small, *other, "--data.train=train.conllu"])
    assert type(cli.trainer.optimizers[0]) is torch.optim.AdamW
    assert cli.model.network.encoder.num_features == 8
    best = "runs/default/version_0/checkpoints/best.ckpt"
    tag.main(["predict", *QUIET, f"--ckpt_path={best}", "--data.predict=train.conllu", "--output=out.conllu"])
    assert len(load("runs").predict("train.conllu")) == 40
    with pytest.raises(
        SystemExit, match=r"error: model.encoder: got .*BiLSTMEncoder; .* was trained with .*Convolution"
    ):
        tag.main(["test", *QUIET, f"--ckpt_path={best}", "--model.encoder=BiLSTMEncoder"])
    with pytest.raises(SystemExit, match="hidden: got 8, which is the BiLSTM's, beside another encoder"):
        tag.main(["fit", *SHORT, *small, "--data.train=train.conllu", "--model.hidden=8"])


def test_runs_started_at_once_have_folders_of_their_own(folder):
    """The folder of a log is taken when a run begins, not when it first writes."""
    command = [sys.executable, "-m", "recipes.classify", "fit", *SHORT, "--data=Table", "--data.path=a.csv"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    runs = [subprocess.Popen([*command, "--model.backbone=MLP"], env=environment) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    kept = (folder / "runs/default").glob("*/checkpoints/best.ckpt")
    assert sorted(path.parts[-3] for path in kept) == ["version_0", "version_1"]


def test_a_fit_that_did_not_end_is_named_to_whoever_begins_it_again(capsys):
    table = ["fit", *SHORT, "--data=Table", "--data.path=a.csv", "--model.backbone=MLP"]

    def said(*options):
        classify.main([*table, *options])
        return [line for line in capsys.readouterr().err.splitlines() if "not ended" in line]

    assert said() == said() == []
    log = Path("runs/default/version_1/metrics.csv")
    whole = log.read_text()
    log.write_text(re.sub("test_", "val_", whole))  # as before its test
    assert said("--model.learning_rate=0.5") == []
    os.utime("runs/default/version_1")  # the newest run again
    assert said() == [
        "note: runs/default/version_1 was begun with the same model and data and has not ended; to go on: "
        "--ckpt_path runs/default/version_1/checkpoints/last.ckpt"
    ]
    log.write_text(whole)
    os.utime("runs/default/version_1")
    assert said() == []
    log.unlink()
    os.utime("runs/default/version_1")
    assert said("--ckpt_path=runs/default/version_1/checkpoints/last.ckpt", "--trainer.max_epochs=3") == []


def test_a_bias_of_a_machine():
    for more in ([], ["--gamma=0.5"], ["--gamma=0.5", "--landmarks=8"]):
        svm.main(["fit", "--path=a.csv", "--bias=true", *more])
        model = load("runs/svm").model
        assert any(name.endswith("bias") and part.any() for name, part in model.state_dict().items())
        assert len(load("runs/svm").predict("a.csv")) == 90
    svm.main(["tune", "--path=a.csv", "--bias=true", "--Cs=[1]"])


@pytest.mark.parametrize("more", [[], ["--gamma=0.5"]])
def test_a_bias_that_costs_nothing(more, capsys):
    """Not more than one that is regularised."""
    facts = {
        bias: svm.main(["fit", "--path=a.csv", f"--bias={bias}", "--tol=1e-5", *more]) for bias in ("true", "free")
    }
    assert facts["free"]["bias"] == "free"
    assert facts["free"]["converged"]
    assert facts["free"]["dual"] < facts["true"]["dual"] - 1e-3
    assert len(load("runs/svm").predict("a.csv")) == 90
    svm.main(["tune", "--path=a.csv", "--bias=free", "--Cs=[1]", "--folds=2"])
    assert "--bias free" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["m3n-linear", "m3n-quadratic", "crf", "perceptron", "flat-linear", "flat-quadratic"])
def test_words_are_read_by_what_was_kept(name, capsys):
    options = ["fit", f"--name={name}", "--path=letters.npz"]
    settings = {key: values[0] for key, values in ocr.METHODS[name].grid.items()}
    facts = ocr.main([*options, f"--settings={json.dumps(settings)}", "--bias=true"])
    fitted, given = load("runs/ocr"), handwriting()
    texts = fitted.predict("letters.npz")
    bits = np.unpackbits(given["images_packed"], axis=1)[:, :12].reshape(-1, 4, 3)
    assert fitted.predict([bits[given["word_id"] == i] for i in range(60)]) == texts
    assert [len(text) for text in texts] == np.bincount(given["word_id"]).tolist()
    wrong = np.mean([ord(a) - ord("a") != b for a, b in zip("".join(texts), given["letter"], strict=True)])
    assert wrong == pytest.approx(facts["training_letter_error"])
    assert any(key.endswith("bias") and part.any() for key, part in fitted.model.state_dict().items())
    unread = {key: value for key, value in given.items() if key not in ("letter", "fold")}
    np.savez("new.npz", **unread)
    ocr.main(["predict", "--path=new.npz", "--output=words.txt"])
    assert Path("words.txt").read_text().split() == texts
    with pytest.raises(FileNotFoundError, match=r"^words: there is no file none\.npz"):
        fitted.predict("none.npz")
    with pytest.raises(SystemExit, match="settings: got X; accepted are"):
        ocr.main([*options, "--settings={X: 1}"])


def test_words_as_features_of_trees():
    facts = boost.main(["fit", "--path=a.csv", "--label=kind", "--rounds=5", "--leaves=4"])
    assert facts["num_classes"] == 2
    boost.main(["fit", "--path=a.csv", "--rounds=5", "--leaves=4"])
    fitted = load("runs/boost")
    assert fitted.classes == ["high", "low", "mid"]
    Path("new.csv").write_text("kind,size\na,0.5\nz,2.4\n")
    unseen = "column 'kind' of new.csv has 'z' in 1 of 2 rows, which training did not show: it counts as missing"
    with pytest.warns(UserWarning, match=unseen):
        boost.main(["predict", "--path=new.csv", "--output=labels.txt"])
    with pytest.warns(UserWarning, match=unseen):
        assert Path("labels.txt").read_text().split() == fitted.predict("new.csv") == ["low", "high"]
    boost.main(["predict", "--output=labels.txt"])
    assert len(Path("labels.txt").read_text().split()) == 23
