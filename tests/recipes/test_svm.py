"""The recipe of certified machines."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from recipes import svm

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = 15 * (generator.normal(size=(90, 4)) + 2 * np.eye(3, 4)[labels])
    np.savez(tmp_path / "table.npz", X=features, y=labels, train_idx=np.arange(60), test_idx=np.arange(60, 90))
    return str(tmp_path / "table.npz")


def test_fit_writes_a_certificate_and_weights(table, tmp_path, capsys):
    out = tmp_path / "out"
    facts = svm.main(["fit", "--path", table, "--divide_by", "15", "--gamma", "0.1", "--output", str(out)])
    kept = json.loads((out / "report.json").read_text())
    assert kept == pytest.approx(facts)
    assert kept["gap"] <= 1e-3
    assert kept["test_error"] < 0.3
    assert "support" in torch.load(out / "scorer.pt", weights_only=True)
    assert "rows support it" in capsys.readouterr().out


def test_fit_by_a_configuration(table, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("C: 0.5\ntol: 1.0e-4\ndivide_by: 15\n")
    facts = svm.main(["fit", "--config", str(config), "--path", table, "--output", str(tmp_path / "out")])
    assert facts["gap"] <= 1e-4


def test_a_hard_margin(table, tmp_path):
    """Of rows that can be separated; the report and the command that `tune` prints take it as well."""
    with np.load(table) as held:
        np.savez(table, **{**held, "X": 3.0 * np.eye(3)[held["y"]] + held["X"][:, :3] / 100})
    out = tmp_path / "out"
    facts = svm.main(["fit", "--path", table, "--C", "inf", "--output", str(out)])
    assert facts["C"] == np.inf
    assert facts["test_error"] == 0
    assert svm.load(out)[1]["C"] == np.inf
    best = svm.main(["tune", "--path", table, "--Cs", "[inf]", "--output", str(tmp_path / "tune")])
    assert best["C"] == np.inf


def test_tune_picks_the_least_error_and_resumes(table, tmp_path, monkeypatch, capsys):
    options = ["tune", "--path", table, "--divide_by", "15", "--Cs", "[0.01,1.0]", "--gammas", "[0.01,0.2]"]
    options += ["--output", str(tmp_path / "tune")]
    best = svm.main(options)
    errors = json.loads((tmp_path / "tune" / "folds.json").read_text())["errors"]
    assert len(errors) == 2 * 2 * 3
    means = {key: np.mean([errors[f"{key} {fold}"] for fold in range(3)]) for key in ("0.01 0.01", "0.2 1.0")}
    assert best["error"] == pytest.approx(min(*means.values(), best["error"]))
    with monkeypatch.context() as context:
        context.setattr(svm, "solver", None)  # nothing is left to train
        capsys.readouterr()
        assert svm.main(options) == best
    shown = capsys.readouterr().out
    assert "12 of 12 trainings kept from before" in shown
    assert f"train it by: python -m recipes.svm fit --path {table} --divide_by 15" in shown
    kept, starts, path = tmp_path / "tune" / "folds.json", [], svm.tm.solvers.DualSVM.path
    killed = json.loads(kept.read_text())
    del killed["errors"]["0.01 1.0 1"]  # as if a run had been killed on a path of warm starts
    kept.write_text(json.dumps(killed))
    with monkeypatch.context() as context:
        context.setattr(
            svm.tm.solvers.DualSVM,
            "path",
            lambda machine, x, y, Cs, **options: (starts.append([*Cs]), path(machine, x, y, Cs, **options))[1],
        )
        assert svm.main(options) == best
    assert starts == [[0.01, 1.0]]
    assert json.loads(kept.read_text())["errors"] == errors
    capsys.readouterr()
    held = dict(np.load(table))
    np.savez(table, **{**held, "X": held["X"][::-1]})  # another table under the same name
    svm.main(options)
    assert "kept from before" not in capsys.readouterr().out
    assert json.loads((tmp_path / "tune" / "folds.json").read_text())["errors"] != errors


def test_the_command_that_is_printed_can_be_typed(table, tmp_path, monkeypatch, capsys):
    """By its own name where it is installed, and with a path of two words."""
    spaced = tmp_path / "two words.npz"
    spaced.write_bytes(Path(table).read_bytes())
    monkeypatch.setattr("sys.argv", ["/usr/bin/torch-multiclass", "svm"])
    svm.main(["tune", "--path", str(spaced), "--Cs", "[1.0]", "--folds", "2", "--weight", "balanced",
              "--output", str(tmp_path / "tune")])  # fmt: skip
    said = capsys.readouterr().out.split("train it by: ")[1]
    words = shlex.split(said)
    assert words[:3] == ["torch-multiclass", "svm", "fit"]
    assert words[words.index("--path") + 1] == str(spaced)
    assert words[words.index("--weight") + 1] == "balanced"
    svm.main([*words[2:], "--output", str(tmp_path / "out")])


def test_balanced_is_the_weight_of_every_row(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], [50, 10])
    features = generator.normal(size=(60, 2)) + labels[:, None]
    np.savez(tmp_path / "a.npz", X=features, y=labels, train_idx=np.arange(0, 60, 2), test_idx=np.arange(1, 60, 2))
    options = ["fit", "--path", str(tmp_path / "a.npz"), "--divide_by", "1", "--tol", "1e-6"]
    svm.main([*options, "--weight", "balanced", "--output", str(tmp_path / "out")])
    scorer, _ = svm.load(tmp_path / "out")
    x, y = torch.tensor(features[::2], dtype=torch.float32), torch.tensor(labels[::2])
    weight = torch.where(y == 0, 30 / 2 / 25, 30 / 2 / 5)
    expected = tm.solvers.DualSVM(1.0, tm.kernels.Linear(), 1e-6).fit(x, y, weight=weight).scorer
    torch.testing.assert_close(scorer.weight, expected.weight, atol=1e-3, rtol=1e-3)
    plain = tm.solvers.DualSVM(1.0, tm.kernels.Linear(), 1e-6).fit(x, y).scorer
    assert (scorer.weight - plain.weight).abs().max() > 0.05


def test_cost_draws_and_fits_exponents(tmp_path):
    exponents = svm.main(["cost", "--classes", "[2,4]", "--rows_total", "64", "--output", str(tmp_path)])
    assert set(exponents) == {f"one-versus-{a} {b}" for a in ("all", "one") for b in ("train", "predict")}
    assert (tmp_path / "times.png").stat().st_size > 1000


def test_a_table_with_holes_is_refused(tmp_path):
    np.savez(tmp_path / "holes.npz", X=np.array([[1.0], [np.nan], [2.0], [3.0]]), y=np.array([0, 1, 0, 1]))
    with pytest.raises(SystemExit, match="error: path: has missing values"):
        svm.main(["fit", "--path", str(tmp_path / "holes.npz"), "--divide_by", "1"])
