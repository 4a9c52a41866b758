import copy
import errno
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger

from recipes.checkpoints import BestAndLast, WholeFiles, go_on, refuse_changes, save, write_whole
from recipes.console import quiet

KILLED = """
import os, signal
from pathlib import Path
import torch
from recipes.checkpoints import WholeFiles
from recipes.console import quiet
os.fsync = os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
WholeFiles().save_checkpoint({"epoch": torch.ones(9)}, Path("last.ckpt"))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_run_ends_with_the_weights_of_the_uninterrupted_one():
    asked = ["--kills", "2", "--recipes", "classify", "tag"]
    done = subprocess.run([sys.executable, "-m", "tests.recipes.resuming", *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("2 kills, 0 changed the weights") == 2


@pytest.mark.slow
def test_a_kill_while_a_checkpoint_is_replaced_leaves_the_one_that_was_there(tmp_path):
    save(tmp_path / "last.ckpt", {"epoch": torch.zeros(9)})
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.getcwd()})
    assert done.returncode == -signal.SIGKILL
    assert torch.load(tmp_path / "last.ckpt", weights_only=True)["epoch"].tolist() == [0.0] * 9


def test_a_full_disk_leaves_the_checkpoint_that_was_there_and_nothing_else(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    save(tmp_path / "last.ckpt", {"epoch": 1})
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        WholeFiles().save_checkpoint({"epoch": 2}, tmp_path / "last.ckpt")
    assert torch.load(tmp_path / "last.ckpt", weights_only=True) == {"epoch": 1}
    assert os.listdir(tmp_path) == ["last.ckpt"]


def test_a_file_is_first_written_into_its_own_folder(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("os.fsync", lambda _: seen.extend(os.listdir(tmp_path / "deep")))
    monkeypatch.setenv("TMPDIR", "/nowhere")
    write_whole(tmp_path / "deep" / "weights.pt", b"all")
    assert seen == [f".weights.pt.{os.getpid()}"]
    assert (tmp_path / "deep" / "weights.pt").read_bytes() == b"all"


def test_every_training_saves_that_way_unless_told_another(tmp_path):
    trainer = Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
    keeps = BestAndLast(tmp_path)
    keeps.setup(trainer, LightningModule(), "fit")
    own = trainer.strategy.checkpoint_io
    assert type(own) is WholeFiles

    class Theirs(WholeFiles):
        pass

    trainer.strategy.checkpoint_io = theirs = Theirs()
    keeps.setup(trainer, LightningModule(), "fit")
    assert trainer.strategy.checkpoint_io is theirs


class GetsWorse(LightningModule):
    """One weight, and a validation that is worse each time."""

    def __init__(self):
        super().__init__()
        self.weight, self.validated, self.steps = torch.nn.Parameter(torch.ones(())), 0, 0

    def training_step(self, batch, batch_idx):
        self.steps += 1
        return self.weight * batch.mean()

    def validation_step(self, batch, batch_idx):
        if not self.trainer.sanity_checking:
            self.validated += 1
            self.log("val_loss", float(self.validated))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


@pytest.mark.parametrize(
    ("options", "best"),
    [({}, (0, 4)), ({"val_check_interval": 0.5}, (0, 2)), ({"check_val_every_n_epoch": 2}, (1, 8))],
)
def test_the_last_checkpoint_is_the_last_also_where_each_is_worse_than_the_one_before(tmp_path, options, best):
    quiet()
    rows = torch.utils.data.DataLoader(torch.ones(4, 1))
    silent = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False}

    def trained(path=None):
        model = GetsWorse()
        trainer = Trainer(max_epochs=4, callbacks=[BestAndLast(tmp_path)], **silent, **options)
        trainer.fit(model, rows, rows, ckpt_path=path, weights_only=True)
        return model.steps

    def at(name):
        kept = torch.load(tmp_path / name, weights_only=True)
        return kept["epoch"], kept["global_step"]

    assert trained() == 16
    assert (at("best.ckpt"), at("last.ckpt")) == (best, (3, 16))
    assert trained(tmp_path / "last.ckpt") == 0
    assert {*os.listdir(tmp_path)} == {"best.ckpt", "last.ckpt"}


class Mischief:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_a_checkpoint_that_holds_code_is_refused_and_the_code_not_run(tmp_path, monkeypatch):
    from recipes import boost, classify, svm, tag

    monkeypatch.chdir(tmp_path)
    made, bad = tmp_path / "made", tmp_path / "bad.ckpt"
    torch.save({"state_dict": {}, "tagger": Mischief(made), "setting": Mischief(made)}, bad)
    (tmp_path / "scorer.pt").write_bytes(pickle.dumps(Mischief(made), protocol=2))
    (tmp_path / "report.json").write_text("{}")
    for recipe, words in ((classify, "ckpt_path: "), (tag, "ckpt_path: ")):
        with pytest.raises(SystemExit, match=words):
            recipe.main(["test", f"--ckpt_path={bad}"])
    with pytest.raises(SystemExit, match="resume: "):
        boost.load(str(bad), "resume")
    with pytest.raises((SystemExit, ValueError), match="checkpoint: "):
        svm.load(tmp_path)
    assert not made.exists()


def test_yaml_that_holds_code_is_refused_and_the_code_not_run(tmp_path, monkeypatch):
    from recipes import classify

    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("trainer:\n  max_epochs: !!python/object/apply:os.mkdir [made]\n")
    with pytest.raises(SystemExit):
        classify.main(["fit", "--config=bad.yaml"])
    assert not (tmp_path / "made").exists()


def test_the_log_of_a_run_that_goes_on_keeps_what_was_before_its_checkpoint(tmp_path, recwarn):
    log = CSVLogger(tmp_path, name="", version="")
    path = Path(log.log_dir) / "metrics.csv"
    path.write_text("epoch,step,val_loss\n0,9,0.5\n1,19,0.25\n2,29,0.125\n2,29,0.1")
    go_on(log, 20)
    log.log_metrics({"epoch": 2, "test_loss": 1.0}, 29)
    log.save()
    assert path.read_text().splitlines() == ["epoch,step,test_loss,val_loss", "0,9,,0.5", "1,19,,0.25", "2,29,1.0,"]
    assert not recwarn


def test_a_run_that_goes_on_without_a_log_begins_one(tmp_path):
    log = CSVLogger(tmp_path, name="", version="")
    go_on(log, 20)
    log.log_metrics({"loss": 1.0}, 20)
    log.save()
    assert (Path(log.log_dir) / "metrics.csv").read_text().splitlines() == ["loss,step", "1.0,20"]


KEPT = {
    "head": {"class_path": "tm.MulticlassHead", "init_args": {"loss": None, "weight": [1.0, 2.0]}},
    "backbone": {"class_path": "recipes.MLP", "init_args": {"hidden": [8]}, "dict_kwargs": {"bias": True}},
    "learning_rate": 0.1,
}


@pytest.mark.parametrize(
    ("option", "given", "asked", "fit", "message"),
    [
        ("head.loss", "CRFLoss", {"class_path": "tm.CRFLoss"}, True, "head.loss: got tm.CRFLoss; a.ckpt was trained"),
        ("head.loss", "CRFLoss", {"class_path": "tm.CRFLoss"}, False, "with the default, which the model keeps; accep"),
        ("head.decoder", "D", {"class_path": "tm.D"}, False, r"out, .* or in Python load\(FOLDER\).model.head"),
        ("head.weight", "[1, 3]", [1.0, 3.0], True, r"got \[1.0, 3.0\]; a.ckpt was trained with \[1.0, 2.0\]"),
        ("head.weight", "[1, 2]", [1.0, 2.0], True, None),
        ("head", "{class_path: MulticlassHead, init_args: {weight: [3]}}", None, True, None),
        ("head", "{class_path: MulticlassHead, init_args: {loss: A}}", {"init_args": {"loss": "A"}}, True, "head.loss"),
        ("backbone", "MLP", None, True, None),
        ("backbone.bias", "true", None, True, None),
        ("backbone.dict_kwargs.bias", "false", {"dict_kwargs": {"bias": False}}, True, "backbone.bias: got False"),
        ("learning_rate", "1e-1", 0.1, True, None),
        ("learning_rate", "0.5", 0.5, True, "learning_rate: got 0.5; .* to leave --model.learning_rate out, or a"),
        ("learning_rate", "0.5", 0.5, False, None),
        ("unknown", "1", 1, True, None),
    ],
)  # fmt: skip
def test_an_option_that_is_not_as_the_checkpoint_has_it_is_refused(option, given, asked, fit, message):
    """Lightning would have the checkpoint's without a word."""
    ours = copy.deepcopy(KEPT)
    first, _, rest = option.partition(".")
    if asked is not None and first == option:
        ours[first] = {**ours[first], **asked} if isinstance(asked, dict) else asked
    elif isinstance(asked, dict) and rest.startswith("dict_kwargs"):
        ours[first] |= asked
    elif asked is not None:
        ours[first]["init_args"][rest] = asked
    if message is None:
        return refuse_changes({f"model.{option}": given}, ours, KEPT, "a.ckpt", fit)
    with pytest.raises(ValueError, match=message) as said:
        refuse_changes({f"model.{option}": given}, ours, KEPT, "a.ckpt", fit)
    assert str(said.value).startswith("model.")
