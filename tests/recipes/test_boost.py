"""The recipe of boosting."""

import importlib
import json
import signal

import numpy as np
import pytest
import torch

from recipes import boost, ensembles

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
    rounds = ["--rounds", "20"] if model in boost.BOOSTED else []
    facts = boost.main(["fit", "--path", path, "--model", model, *rounds, "--output", str(out)])
    assert json.loads((out / "report.json").read_text()) == pytest.approx(facts)
    assert facts["test_error"] < 0.5
    assert (out / "rounds.png").exists() == (model in boost.BOOSTED)
    args = ["predict", "--folder", str(out / "fit.pt"), "--path", path, "--output", str(out / "labels.txt")]
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


def interrupted_after(monkeypatch, solver, rounds):
    """As from the keyboard, while a later round is under way."""
    steps = solver.steps

    def until(self, problem, monitor):
        for number, _ in enumerate(steps(self, problem, monitor)):
            if number == rounds:
                signal.raise_signal(signal.SIGINT)
            yield

    monkeypatch.setattr(solver, "steps", until)


@pytest.mark.filterwarnings("error")
def test_the_keyboard_keeps_the_rounds_done_and_says_so_in_one_line(files, monkeypatch, capsys):
    path, whole, part = str(files / "table.csv"), files / "whole", files / "part"
    options = ["fit", "--path", path, "--leaves", "3", "--rounds", "9"]
    with monkeypatch.context() as context:
        interrupted_after(context, boost.AdaBoostMH, 4)
        facts = boost.main([*options, "--output", str(part)])
    shown = capsys.readouterr()
    assert (facts["rounds_kept"], facts["ending"]) == (4, "interrupted")
    assert shown.out.splitlines()[2:] == [  # after the label column and the errors
        f"ended from the keyboard: this is the rounds done; to go on: --resume {part / 'fit.pt'}"
    ]
    assert shown.err == f"note: {path}: 1 of 360 values are missing, in 1 of 90 rows\n"
    more = boost.main([*options, "--output", str(part), "--resume", str(part / "fit.pt")])
    assert more["product"] == boost.main([*options, "--output", str(whole)])["product"]


@pytest.mark.parametrize(("model", "kind"), [("tree", "DecisionTree"), ("forest", "RandomForest")])
def test_the_keyboard_keeps_what_has_grown(files, monkeypatch, capsys, model, kind):
    interrupted_after(monkeypatch, getattr(boost, kind), 2)
    path, out = str(files / "table.csv"), str(files / "out")
    assert boost.main(["fit", "--path", path, "--model", model, "--output", out])["test_error"] < 0.5
    assert f"ended from the keyboard: this is the {model} so far" in capsys.readouterr().out


def test_the_keyboard_between_two_fits_is_one_line(files, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(boost, "save", stop)
    with pytest.raises(SystemExit, match=r"^130$"):
        boost.main(["fit", "--path", str(files / "table.csv"), "--rounds", "3"])
    assert "stopped\n" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["mh", "tree", "forest"])
def test_a_bar_counts_the_steps(files, capsys, model):
    options = ["fit", "--path", str(files / "table.csv"), "--model", model]
    options += {"mh": ["--rounds", "7"], "tree": [], "forest": ["--trees", "7"]}[model]
    boost.main([*options, "--output", str(files / "out"), "--progress", "true"])
    shown = capsys.readouterr().err
    assert f"{model}:" in shown
    assert ("7/7" in shown) == (model != "tree")
    boost.main([*options, "--output", str(files / "other")])
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error")
def test_a_perfect_fit_is_drawn(tmp_path):
    np.savez(tmp_path / "easy.npz", X=np.repeat([[0.0], [1.0]], 20, 0), y=np.repeat([0, 1], 20))
    facts = boost.fit(path=str(tmp_path / "easy.npz"), rounds=3, output=str(tmp_path))
    assert (facts["train_error"], facts["test_error"]) == (0.0, 0.0)


def test_tune_keeps_its_folds(files, monkeypatch, capsys):
    options = ["tune", "--path", str(files / "table.csv"), "--leaves", "[2,3]", "--rounds", "8"]
    options += ["--output", str(files / "tune")]
    best = boost.main(options)
    assert len(json.loads((files / "tune" / "folds.json").read_text())["errors"]) == 6
    monkeypatch.setattr(boost, "solver", None)  # nothing is left to train
    assert boost.main(options) == best
    assert "train it by: python -m recipes.boost fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "forest"], "model: got forest, which has no rounds; accepted are mh, mr"),
        (["--folds", "1"], "folds: got 1; accepted is a whole number >= 2"),
        (["--leaves", "[]"], "leaves: got none; accepted is a list of some"),
        (["--leaves", "[2,1]"], "leaves: got 1; accepted is a whole number >= 2"),
    ],
)
def test_what_tune_cannot_compare(options, words):
    with pytest.raises(SystemExit, match=f"^error: {words}"):
        boost.main(["tune", *options])


def test_an_option_of_another_model_is_refused():
    with pytest.raises(SystemExit, match=r"^error: rounds: model forest does not read it; accepted is with mh, mr, av"):
        boost.fit(model="forest", rounds=3)
    with pytest.raises(SystemExit, match=r"^error: patience: model tree does not read it"):
        boost.main(["fit", "--model", "tree", "--patience", "3"])


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2,a\n1,b\n")
    with pytest.raises(SystemExit, match="is no table"):
        boost.main(["fit", "--path", str(tmp_path / "bad.csv")])
    with pytest.raises(SystemExit, match="resume: there is no file"):
        boost.main(["fit", "--resume", str(tmp_path / "none.pt")])
    for option, given, least in (("rounds", 0, 1), ("leaves", 1, 2)):
        with pytest.raises(SystemExit, match=f"error: {option}: got {given}; accepted is a whole number >= {least}"):
            boost.main(["fit", f"--{option}={given}", "--output", str(tmp_path)])


@pytest.mark.parametrize(
    ("recipe", "options", "words"),
    [
        ("boost", ["--model", "foo"], "model: got foo; accepted is 'mh', 'mr', 'averaged', 'mo', 'tree', 'forest'"),
        ("boost", ["--rounds", "abc"], "rounds: got abc; accepted is int"),
        ("boost", ["--bins", "abc"], "bins: .*abc"),
        ("svm", ["--C", "abc"], "C: got abc; accepted is float or 'inf'"),
        ("ocr", ["--tol", "abc"], "tol: got abc; accepted is float"),
    ],
)
def test_a_value_of_another_kind_is_one_line(recipe, options, words, capsys):
    main = importlib.import_module(f"recipes.{recipe}").main
    with pytest.raises(
        SystemExit, match=f"^error: {words}.*; the options are listed by: .*{recipe} fit --help$"
    ) as raised:
        main(["fit", *options])
    assert "\n" not in str(raised.value)
    assert capsys.readouterr().err == ""


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


@pytest.mark.parametrize(("product", "zero"), [(0.004, True), (0.005, False), (0.0, True)])
def test_less_than_one_row_is_none(product, zero):
    said = boost.said("mh", boost.proved("mh", product, 4), 100)
    assert said.startswith("training error proved 0 of 100: <= 0" if zero else "training error proved <= 0.01")
    assert boost.said("mh", boost.proved("mh", product, 4)).startswith("training error proved <= ")


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"^error: path: there is no file .*none\.csv; accepted is a "):
        boost.main(["fit", "--path", str(tmp_path / "none.csv"), "--output", str(tmp_path)])


class Killed(BaseException):
    """Nothing in the recipe answers it."""


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "mh"],
        ["--model", "mh", "--real", "false"],
        ["--model", "mr"],
        ["--model", "averaged"],
        ["--model", "mo"],
        ["--model", "mh", "--patience", "6"],
    ],
)
def test_a_fit_that_was_killed_goes_on(files, monkeypatch, capsys, options):
    """It ends with the votes of a fit that nobody killed, and what it had kept on the way is gone."""
    given = ["fit", "--path", str(files / "table.csv"), "--leaves", "3", "--rounds", "25", *options, "--output"]
    boost.main([*given, str(files / "whole")])
    monkeypatch.setattr(ensembles, "PERIOD", 0.0)
    monkeypatch.setattr(ensembles, "SHARE", 0.0)
    keep, rounds = ensembles.save, []

    def save(path, setting, trained):
        keep(path, setting, trained)
        if path.name == "unfinished.pt":
            rounds.append(len(trained.report.alphas))
            if len(rounds) == 2:
                raise Killed

    monkeypatch.setattr(ensembles, "save", save)
    with pytest.raises(Killed):
        boost.main([*given, str(files / "killed")])
    assert [path.name for path in (files / "killed").iterdir()] == ["unfinished.pt"]
    monkeypatch.setattr(ensembles, "PERIOD", 1e9)
    capsys.readouterr()
    boost.main([*given, str(files / "killed")])
    assert f"went on after {rounds[-1]} rounds" in capsys.readouterr().out
    assert sorted(path.name for path in (files / "killed").iterdir()) == ["fit.pt", "report.json", "rounds.png"]
    one, other = (torch.load(files / name / "fit.pt", weights_only=True) for name in ("whole", "killed"))
    assert one["scorer"].keys() == other["scorer"].keys()
    assert all(torch.equal(part, other["scorer"][name]) for name, part in one["scorer"].items())
    assert one["rounds"]["Z"] == other["rounds"]["Z"]
    assert one["rounds"]["ending"] == other["rounds"]["ending"]


@pytest.mark.parametrize("written", ["fit.pt", "rounds.png", "report.json"])
def test_a_fit_that_was_killed_while_it_wrote_goes_on(files, monkeypatch, capsys, written):
    """Whatever is there by then: the same command writes all of it."""
    given = ["fit", "--path", str(files / "table.csv"), "--rounds", "9", "--output", str(files / "killed")]
    monkeypatch.setattr(ensembles, "PERIOD", 0.0)
    monkeypatch.setattr(ensembles, "SHARE", 0.0)

    def killed(*_):
        raise Killed

    after = {
        "fit.pt": (boost, "wrong"),
        "rounds.png": (boost, "write_atomically"),
        "report.json": (ensembles.Keeper, "done"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*after[written], killed)
        with pytest.raises(Killed):
            boost.main(given)
    assert {written, "unfinished.pt"} <= {path.name for path in (files / "killed").iterdir()}
    (files / "killed" / written).unlink()
    capsys.readouterr()
    facts = boost.main(given)
    assert "went on after 9 rounds" in capsys.readouterr().out
    assert facts["rounds_kept"] == 9
    assert sorted(path.name for path in (files / "killed").iterdir()) == ["fit.pt", "report.json", "rounds.png"]


def test_what_another_fit_left_is_no_beginning(files, monkeypatch, capsys):
    """Of another setting, of other rows under the same name, or of no fit at all."""
    monkeypatch.setattr(ensembles, "PERIOD", 0.0)
    monkeypatch.setattr(ensembles.Keeper, "done", lambda keeper: None)
    path, out = files / "table.csv", str(files / "out")
    given = ["fit", "--path", str(path), "--rounds", "9", "--output", out]
    boost.main([*given, "--leaves", "3"])
    boost.main([*given, "--leaves", "4"])
    path.write_text(path.read_text().replace("\n", "\n0.5,0.5,0.5,0.5,x\n", 1))
    boost.main([*given, "--leaves", "4"])
    (files / "out/unfinished.pt").write_bytes(b"half a file")
    boost.main([*given, "--leaves", "4"])
    assert "went on" not in capsys.readouterr().out
    boost.main([*given, "--leaves", "4"])
    assert "went on" in capsys.readouterr().out


def test_a_last_round_is_not_kept_as_one_to_go_on_from(tmp_path, monkeypatch):
    """The first tree is never wrong, which ends a fit; going on would add more."""
    monkeypatch.setattr(ensembles, "PERIOD", 0.0)
    monkeypatch.setattr(ensembles.Keeper, "done", lambda keeper: None)
    np.savez(tmp_path / "a.npz", X=np.arange(40.0)[:, None], y=np.arange(40) // 20)
    boost.main(["fit", "--path", str(tmp_path / "a.npz"), "--model", "mr", "--output", str(tmp_path / "out")])
    assert torch.load(tmp_path / "out/fit.pt", weights_only=True)["rounds"]["ending"] == "perfect"
    assert not (tmp_path / "out/unfinished.pt").exists()
