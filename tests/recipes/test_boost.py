"""The recipe of boosting."""

import json

import numpy as np
import pytest

from recipes import boost

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = generator.normal(size=(90, 4)) + 2 * np.eye(3, 4)[labels]
    np.savez(tmp_path / "table.npz", X=features, y=labels, train_idx=np.arange(60), test_idx=np.arange(60, 90))
    lines = [
        "a,b,c,d,kind",
        *(",".join([*map(repr, map(float, row)), "xyz"[k]]) for row, k in zip(features, labels, strict=True)),
    ]
    (tmp_path / "table.csv").write_text("\n".join(lines).replace(lines[1].split(",")[0], "", 1))
    return tmp_path


@pytest.mark.parametrize("model", ["mh", "mr", "averaged", "mo", "tree", "forest"])
def test_fit_and_predict(files, model):
    out, path = files / model, str(files / "table.npz")
    facts = boost.main(["fit", "--path", path, "--model", model, "--rounds", "20", "--output", str(out)])
    assert json.loads((out / "report.json").read_text()) == pytest.approx(facts)
    assert facts["test_error"] < 0.5
    assert (out / "rounds.png").exists() == (model in boost.BOOSTED)
    args = ["predict", "--fit", str(out / "fit.pt"), "--path", path, "--output", str(out / "labels.txt")]
    labels = boost.main(args)
    assert (out / "labels.txt").read_text().split() == labels
    held = np.load(path)["y"][60:]
    assert np.mean(np.array(labels[60:]) != held.astype(str)) == pytest.approx(facts["test_error"])


def test_going_on_is_a_longer_fit(files):
    options = ["fit", "--path", str(files / "table.csv"), "--leaves", "3"]
    short = boost.main([*options, "--rounds", "5", "--output", str(files / "short")])
    more = boost.main(
        [*options, "--rounds", "9", "--output", str(files / "more"), "--resume", str(files / "short/fit.pt")]
    )
    whole = boost.main([*options, "--rounds", "9", "--output", str(files / "whole")])
    assert (short["rounds_kept"], more["rounds_kept"]) == (5, 9)
    assert more["product"] == whole["product"]
    with pytest.raises(SystemExit, match="resume: was fitted with leaves 3; got 4"):
        boost.main([*options[:-1], "4", "--rounds", "9", "--resume", str(files / "short/fit.pt")])


def test_tune_keeps_its_folds(files, monkeypatch, capsys):
    options = ["tune", "--path", str(files / "table.csv"), "--leaves", "[2,3]", "--rounds", "8"]
    options += ["--output", str(files / "tune")]
    best = boost.main(options)
    assert len(json.loads((files / "tune" / "folds.json").read_text())["errors"]) == 6
    monkeypatch.setattr(boost, "solver", None)  # nothing is left to train
    assert boost.main(options) == best
    assert "train it by: python -m recipes.boost fit" in capsys.readouterr().out


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2,a\n1,b\n")
    with pytest.raises(SystemExit, match="is no table"):
        boost.main(["fit", "--path", str(tmp_path / "bad.csv")])
    with pytest.raises(SystemExit, match="resume: there is no file"):
        boost.main(["fit", "--resume", str(tmp_path / "none.pt")])


@pytest.mark.parametrize(
    ("model", "product", "words"),
    [
        ("mh", 0.5, "the bound of 1.25 is vacuous: nothing is proved"),
        ("mh", 0.1, "training error proved <= 0.25"),
        ("mr", 0.25, "the bound of 1 is vacuous"),
        ("averaged", 0.1, "share of training rows with a label sum <= 0 proved <= 0.1"),
        ("mo", 0.0, "the bound of 1.09 is vacuous"),  # one-versus-one ignores 6 of 10 pairs, and L/rho is 10/5.5
    ],
)
def test_a_vacuous_bound_proves_nothing(model, product, words):
    assert boost.said(model, boost.proved(model, product, 5)).startswith(words)
