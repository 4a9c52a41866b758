"""Tables of any kind in, and models rebuilt from their folders."""

import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from recipes import boost, classify, load, report, svm
from recipes.data.arrays import read
from recipes.data.encoding import stratified_split
from recipes.data.new import new_features
from recipes.data.table import Table
from recipes.files import facts_of, model_file, save
from recipes.fitted import OF_TAGS, Fitted, without

KINDS = ("small", "middling", "large")


def rows(seed=0, count=60):
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    return 100 * np.eye(3)[labels] + 30 * generator.normal(size=(count, 3)) + 1000, labels


@pytest.fixture
def csv(tmp_path):
    features, labels = rows()
    lines = ["size,a,b,c,colour"]
    for i, (row, label) in enumerate(zip(features, labels, strict=True)):
        a, b, c = (f"{value:.3f}" for value in row)
        lines.append(f"{KINDS[label]},{a if i else ''},{b},{c},{['red', 'blue'][i % 2]}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.tsv").write_text("\n".join(lines).replace(",", "\t"))
    (tmp_path / "new.csv").write_text("colour,c,b,a\nred,1000,1000,1100\ngreen,1100,1000,\n")
    return tmp_path / "a.csv"


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_table_of_text(csv, suffix):
    held = Table.read(str(csv.with_suffix(suffix)), "size")
    assert held.classes == ["large", "middling", "small"]
    assert held.columns == ["a", "b", "c", "colour"]
    assert held.nominal.tolist() == [False, False, False, True]
    assert np.isnan(held.features[0, 0])
    assert held.features[:2, 3].tolist() == [1, 0]
    assert [held.classes[label] for label in held.labels[:3]] == list(KINDS)
    with pytest.warns(UserWarning, match=r"column 'colour' of .*new.csv has 'green' in 1 of 2 rows"):
        new = new_features(str(csv.with_name("new.csv")), held.schema())
    np.testing.assert_array_equal(new, [[1100, 1000, 1000, 1], [np.nan, 1000, 1100, np.nan]])


def test_parquet(csv):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = __import__("pyarrow.csv").csv.read_csv(csv)
    parquet.write_table(table, csv.with_suffix(".parquet"))
    ours, theirs = (Table.read(str(csv.with_suffix(kind)), "size") for kind in (".parquet", ".csv"))
    np.testing.assert_array_equal(ours.features, theirs.features)
    assert ours.schema() == theirs.schema()


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        ("a,b\n1,x\n2,y\n", "c", r"label: .* has no column 'c'; accepted are a, b"),
        ('"a, x",b\n1,x\n2,y\n', "c", r"has no column 'c'; accepted are 'a, x', b$"),
        ("1,x\n2,y\n", "c", r"accepted are none: the first line is no heading"),
        ("a,a\n1,x\n2,y\n", None, r"has two columns 'a'; accepted are distinct names"),
        ("a,b\n1,x\n2\n", None, r"is no table: line 3 has 1 entries, the first 2; accepted are lines .* by commas$"),
        ("a;b\n1;x;2\n", None, r"is no table: line 2 has 3 entries, the first 2; accepted are .* by semicolons$"),
        ("a|b\n1|x\n2|y\n", None, r"has one column; accepted are features and a label, parted by commas, semic"),
        ('a,"b, c"\n1,x\n2,x\n', None, r"the label of .*, column 'b, c' \(the last column\), has one class"),
        ('"a, b",c\ninf,x\n2,y\n', None, r"column 'a, b' of .* has 'inf' in row 1; accepted are finite numbers"),
        ("a,b\n1,x\n2,x\n", None, r"the label of .*, column b \(the last column\), has one class"),
        ("a,b\n1,x\n2,\n", None, r"row 2 of .* has no label in column b \(the last column\)"),
        ("a,b\ninf,x\n2,y\n", None, r"column a of .* has 'inf' in row 1; accepted are finite numbers"),
        ("a,b\n1,x\0\n2,y\n", None, r"a.csv:2: got a NUL byte"),
        ('a,b\n"1,x\n', None, r"is no table"),
        ("", None, r"a.csv is empty; accepted is a table with rows"),
        ("\n\n", None, r"a.csv is empty"),
        ("a,b,y\n", None, r"a.csv has one line, 'a,b,y', and no row below it; accepted is a table with rows"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, content, label, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        Table.read(str(tmp_path / "a.csv"), label)


def test_a_file_of_another_kind_is_one_line(tmp_path):
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"a.xlsx ends in .xlsx; accepted are .npz, .csv, .tsv, .parquet"):
        Table.read(str(tmp_path / "a.xlsx"))


def npz(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(f"{name}.npy", content)


def header(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def test_bombs_and_false_headers_are_refused_unread(tmp_path):
    path = tmp_path / "a.npz"
    npz(path, X=header((10**6, 10**6)) + bytes(64))
    with pytest.raises(ValueError, match=r"path: X.npy in .* claims 8000000000000 bytes; it holds 192"):
        read(str(path), "path", ("X",))
    npz(path, X=header((10**8,)) + bytes(8 * 10**8 // 10))
    with pytest.raises(ValueError, match=r"path: X.npy in .* unpacks \d+ bytes to \d+; accepted is at most 500 times"):
        read(str(path), "path", ("X",))


def test_strings_and_doubled_names_in_an_npz(tmp_path):
    path = str(tmp_path / "a.npz")
    np.savez(path, X=np.eye(3), y=np.array(["b", "a", "b"]))
    held = Table.read(path)
    assert (held.classes, held.labels.tolist()) == (["a", "b"], [1, 0, 1])
    np.savez(path, X=np.eye(3), y=np.array([0, 1, 0]), classes=np.array(["a", "a"]))
    with pytest.raises(ValueError, match=r"classes in .* has a twice; accepted are distinct names"):
        Table.read(path)


@pytest.mark.parametrize("more", [(), ("--gamma", "0.1"), ("--gamma", "0.1", "--landmarks", "10"), ("--C", "0.5")])
def test_a_machine_is_rebuilt_from_its_folder(csv, tmp_path, more, capsys):
    out = str(tmp_path / "out")
    facts = svm.main(["fit", "--path", str(csv), "--label", "size", "--output", out, *more])
    assert facts["test_error"] < 0.3  # the columns are far from 0 and of unlike scales
    fitted = load(out)
    held = Table.read(str(csv), "size")
    test = fitted.facts["split"]["test"]
    predicted = fitted.predict(held.features[test])
    wrong = np.mean([label != held.classes[k] for label, k in zip(predicted, held.labels[test], strict=True)])
    assert wrong == pytest.approx(facts["test_error"])
    with pytest.warns(UserWarning, match="'green'"):
        assert fitted.predict(csv.with_name("new.csv")) == ["small", "large"]
    for use in (fitted.predict, fitted.predict_proba):
        with pytest.raises(FileNotFoundError, match=r"^rows: there is no file none.csv"):
            use("none.csv")
    labels = tmp_path / "labels.txt"
    svm.main(["predict", "--folder", out, "--output", str(labels)])
    assert labels.read_text().split() == predicted


@pytest.mark.parametrize(("recipe", "more"), [(svm, ()), (boost, ("--rounds=2",)), (boost, ("--model=tree",))])
def test_a_fit_that_is_replaced_is_a_line(csv, tmp_path, capsys, recipe, more):
    out = str(tmp_path / "out")
    said = rf"^note: {re.escape(out)} holds a fit of \d{{4}}-\d\d-\d\d \d\d:\d\d, which this one replaces$"
    for held in (False, True):
        recipe.main(["fit", "--path", str(csv), "--label", "size", "--output", out, *more])
        assert (re.search(said, capsys.readouterr().err, re.MULTILINE) is not None) == held


@pytest.mark.parametrize("goes_on", ["the folder", "the file", "what a killed fit left"])
def test_a_fit_that_goes_on_replaces_nothing(csv, tmp_path, capsys, goes_on):
    options = ["fit", "--path", str(csv), "--label=size", "--output", str(tmp_path / "out")]
    boost.main([*options, "--rounds=2"])
    file = tmp_path / "out" / "fit.pt"
    if goes_on == "what a killed fit left":
        kept = torch.load(file, weights_only=True)
        torch.save({**kept, "setting": {**kept["setting"], "rounds": 3}}, file.with_name("unfinished.pt"))
    more = {"the folder": ["--resume", str(file.parent)], "the file": ["--resume", str(file)]}.get(goes_on, [])
    boost.main([*options, "--rounds=3", *more])
    shown = capsys.readouterr()
    assert "replaces" not in shown.err
    assert ("went on after 2 rounds" in shown.out) == (not more)


def test_what_is_wrong_with_a_folder_is_one_line(csv, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder: there is no model in"):
        load(tmp_path)
    out = tmp_path / "out"
    svm.main(["fit", "--path", str(csv), "--label", "size", "--output", str(out)])
    state = torch.load(out / "scorer.pt", weights_only=True)
    facts = facts_of(out / "scorer.pt", "folder", "")
    save(out / "scorer.pt", {name: torch.full_like(value, torch.nan) for name, value in state.items()}, facts)
    with pytest.raises(ValueError, match=r"folder: weight in .*scorer.pt is NaN"):
        load(out)
    save(out / "scorer.pt", {**state, "more": torch.zeros(2)}, facts)
    with pytest.raises(ValueError, match=r"folder: .* does not fit together"):
        load(out)
    with pytest.raises(SystemExit, match=r"error: path: there is no file none.csv"):
        svm.main(["fit", "--path", "none.csv"])


@pytest.mark.slow
def test_a_classifier_is_rebuilt_from_its_folder(csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--data=Table", f"--data.path={csv}", "--data.label=size", "--trainer.accelerator=cpu"]
    options += ["--model.backbone=MLP", "--trainer.max_epochs=2", "--trainer.enable_progress_bar=false"]
    cli = classify.main(["fit", *options])
    fitted = load(tmp_path / "runs")
    part = cli.datamodule.parts["test"]
    with torch.no_grad():
        expected = cli.model.cpu().eval().head.predict(cli.model(part.features))
    held = Table.read(str(csv), "size")
    ours = fitted.predict(held.features)
    assert fitted.classes == held.classes
    assert [ours[row] for row in stratified_split(held.labels, 0.25, 0)[1]] == [held.classes[k] for k in expected]
    best = next((tmp_path / "runs").rglob("best.ckpt"))
    kept = torch.load(best, weights_only=True)
    name = next(iter(kept["state_dict"]))
    torch.save({**kept, "state_dict": {**kept["state_dict"], name: torch.zeros(2, 2)}}, best)
    with pytest.raises(ValueError, match=r"folder: .*best.ckpt does not fit together"):
        load(best)
    json.dumps(fitted.facts)
    shares = fitted.predict_proba(held.features)
    assert [fitted.classes[k] for k in shares.argmax(1)] == ours
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    assert repr(fitted) == f"Fitted(recipe='classify', classes={held.classes})"
    with pytest.raises(ValueError, match="rows: got 3 columns; accepted are 4, as in training: a, b, c"):
        fitted.predict(held.features[:, :3])


@pytest.mark.slow
def test_an_ensemble_is_rebuilt_from_its_folder(tmp_path):
    features, labels = rows()
    path = tmp_path / "a.npz"
    np.savez(path, X=features, y=labels, classes=np.array(KINDS))
    out = str(tmp_path / "out")
    boost.main(["fit", "--path", str(path), "--rounds", "5", "--output", out])
    labels = boost.main(["predict", "--folder", f"{out}/fit.pt", "--path", str(path), "--output", f"{out}/labels.txt"])
    assert load(out).predict(path) == load(out).predict(features) == labels
    with pytest.raises(FileNotFoundError, match=r"^rows: there is no file none.npz"):
        load(out).predict("none.npz")
    assert boost.main(["predict", "--folder", out, "--path", str(path), "--output", f"{out}/labels.txt"]) == labels


def shares_of(path):
    """The labels, the columns and the probabilities of a table that was written."""
    heading, *lines = (line.split(",") for line in path.read_text().splitlines())
    return [line[0] for line in lines], heading, np.array([[float(share) for share in line[1:]] for line in lines])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "more"),
    [(svm, ["--gamma", "0.1"]), *[(boost, ["--model", model]) for model in ("mh", "mr", "mo", "tree", "forest")]],
)
def test_probabilities_are_of_the_held_out_rows_and_of_the_labels(csv, tmp_path, monkeypatch, recipe, more):
    monkeypatch.chdir(tmp_path)
    more = [*more, *(["--rounds", "9"] if more[1] in boost.BOOSTED else [])]
    lines = csv.read_text().splitlines()  # some of another class, so that held-out rows are wrong
    csv.write_text("\n".join(line.replace("small", "large") if n % 5 == 1 else line for n, line in enumerate(lines)))
    recipe.main(["fit", "--path", str(csv), "--label", "size", "--output", "out", *more])
    where = "--folder" if recipe is svm else "--fit"
    file = "out/scorer.pt" if recipe is svm else "out/fit.pt"
    labels = recipe.main(["predict", where, file, "--probabilities", "true"])
    found, heading, shares = shares_of(tmp_path / "labels.csv")
    assert heading == ["label", "large", "middling", "small"]
    assert found == labels
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    held = Table.read(str(csv), "size")
    test = stratified_split(held.labels, 0.25, 0)[1]
    np.testing.assert_allclose(load("out").predict_proba(held.features[test]), shares, atol=1e-5)
    if more[1] not in ("tree", "forest"):
        assert [heading[1 + k] for k in shares.argmax(1)] == labels
        likelihood = np.log(shares[np.arange(len(test)), held.labels[test]]).mean()
        for power in (0.7, 1.5):  # no other temperature is more likely on these rows
            other = shares**power / (shares**power).sum(1, keepdims=True)
            assert np.log(other[np.arange(len(test)), held.labels[test]]).mean() <= likelihood + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "where"), [(svm, "--folder"), (boost, "--fit")])
def test_probabilities_of_held_out_rows_without_an_error_are_those_of_the_scores(
    tmp_path, monkeypatch, capsys, recipe, where
):
    """Not 0 and 1; and it is said, by the fit, with the probabilities and in the report."""
    monkeypatch.chdir(tmp_path)
    labels = np.arange(60) % 3
    np.savez("easy.npz", X=100 * np.eye(3)[labels] + np.random.default_rng(0).normal(size=(60, 3)), y=labels)
    said = "not calibrated, for no test row of the fit is wrong: they are the soft-max of the scores as they are"
    recipe.main(["fit", "--path=easy.npz", "--output=out", *(["--rounds=9"] if recipe is boost else [])])
    assert f"probabilities are {said}\n" in capsys.readouterr().out
    recipe.main(["predict", where, "out", "--path=easy.npz", "--probabilities", "true"])
    assert f"probabilities are {said}\n" in capsys.readouterr().out
    shares = shares_of(tmp_path / "labels.csv")[2]
    assert shares.min() > 0
    report.main(["out", "--output=told"])
    assert json.loads((tmp_path / "told" / "report.json").read_text())["calibration"]["probabilities"].endswith(said)
    assert recipe.main(["predict", where, "out", "--path=easy.npz"]) == [str(label) for label in labels]
    assert "probabilities" not in capsys.readouterr().out


@pytest.mark.slow
def test_one_address_for_every_command(csv, tmp_path, monkeypatch, capsys):
    """Folder or file, of what the recipe fitted; another recipe's is named as such."""
    monkeypatch.chdir(tmp_path)
    svm.main(["fit", "--path", str(csv), "--label", "size", "--output", "machine"])
    for place in ("machine", "machine/scorer.pt"):
        svm.main(["predict", "--folder", place])
        assert "15 labels written to labels.txt" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"error: folder: machine has no .*accepted is a fit.pt of this recipe"):
        boost.main(["predict", "--folder", "machine"])
    with pytest.raises(SystemExit, match=r"error: folder: there is no file nowhere; accepted is"):
        boost.main(["predict", "--folder", "nowhere"])
    csv.write_text(csv.read_text().replace("7", "8"))
    with pytest.raises(SystemExit, match=r"error: path: .*a.csv has other rows by now"):
        svm.main(["predict", "--folder", "machine"])


def test_what_was_kept_is_shown_in_a_few_lines_and_is_all_there():
    rows = list(range(260))
    kept = {"split": {"train": rows, "test": rows[:2]}, "text": "x" * 500, "mean": torch.zeros(500), "rate": 0.5}
    found = Fitted("svm", torch.nn.Identity(), ["a"], kept, list, without(OF_TAGS))
    with pytest.raises(TypeError, match=r"predict_proba: a tagger .* have .probabilities, or .* --probabilities true"):
        found.predict_proba([])
    assert found.facts == kept
    assert len(repr(found.facts)) < 400
    assert all(repr(name) in repr(found.facts) for name in kept)
    assert "'train': [0, 1, 2, 3, 4, 5, ...]" in repr(found.facts)
    assert json.loads(json.dumps(found.facts["split"])) == kept["split"]


def test_the_newest_of_several_models_is_taken_and_said(tmp_path, monkeypatch, capsys):
    """Of a log's versions nothing is said: they are of the same fit, again."""
    monkeypatch.chdir(tmp_path)
    files = ["svm/scorer.pt", "boost/fit.pt", *(f"default/version_{n}/checkpoints/best.ckpt" for n in range(3))]
    for time, name in enumerate(files):
        path = tmp_path / "runs" / name
        path.parent.mkdir(parents=True)
        path.write_text("")
        os.utime(path, (2e9 + time, 2e9 + time))
    runs = Path("runs")
    assert model_file(runs / "default", "folder") == runs / files[-1]
    assert capsys.readouterr().err == ""
    assert model_file(runs, "folder") == runs / files[-1]
    said = "note: folder: of runs the newest model is taken, runs/default; there are also runs/boost, runs/svm\n"
    assert capsys.readouterr().err == said
    os.utime(runs / files[0], (2e9 + 9, 2e9 + 9))
    assert model_file(runs, "folder") == runs / files[0]
    assert "is taken, runs/svm; there are also runs/boost, runs/default\n" in capsys.readouterr().err
    with pytest.raises(
        FileNotFoundError,
        match=r"^folder: there is no file runs/classify \(beside it: runs/boost, runs/default, runs/svm\); accepted is",
    ):
        load("runs/classify")
