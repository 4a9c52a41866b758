"""The report of what each recipe trained says what the recipe's own test said."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("jsonargparse")
pytest.importorskip("matplotlib")

import recipes
from recipes import boost, classify, ocr, report, svm, tag
from recipes.machine import certificate
from tests.recipes.resuming import handwriting
from tests.recipes.test_tag import corpus

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

QUIET = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.max_epochs=2"]
NAMES = ["low", "middling", "high"]


def likewise(*given):
    """A case of which the others show as much."""
    return pytest.param(*given, marks=pytest.mark.exhaustive)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = generator.normal(size=(90, 4)) + 2 * np.eye(3, 4)[labels]
    split = {"train_idx": np.arange(60), "test_idx": np.arange(60, 90)}
    np.savez(tmp_path / "table.npz", X=features, y=labels, classes=np.array(NAMES), **split)
    for name, size in (("train", 60), ("dev", 10), ("test", 15)):
        (tmp_path / f"{name}.conllu").write_text(corpus(size, size), encoding="utf-8")
    return tmp_path


def written(*args):
    """What the command wrote, read back."""
    out = Path(report.main([*map(str, args)]))
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (out / "report.md").read_text().startswith("# ")
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("head", ["MulticlassHead", likewise("OneVsOneHead"), "ECOCHead"])
def test_a_classifier(folder, head):
    """Its data are found again by the configuration beside it."""
    code = ["--model.head.loss=hinge"] if head != "MulticlassHead" else []
    code += ["--model.head.code=complete"] if head == "ECOCHead" else []
    data = ["--data=Npz", "--data.path=table.npz", "--model.backbone=MLP", "--model.backbone.hidden=[8]"]
    cli = classify.main(["fit", *QUIET, *data, f"--model.head=torch_multiclass.{head}", *code])
    best = cli.trainer.checkpoint_callback.best_model_path
    found = written(best)
    error = found["error"]["rows"]
    assert error["of"] == 30
    assert error["error"] == pytest.approx(float(cli.trainer.callback_metrics["test_error"]), abs=1e-6)
    assert [one["label"] for one in found["classes"]["labels"]] == NAMES
    assert found["model"]["backbone"] == "MLP"
    assert ("code" in found) == (head != "MulticlassHead")
    train = written(best, "--part", "train", "--output", folder / "out")
    assert "held_out=False" in train["gaps"]["Clopper–Pearson"]
    given = ["--data", folder / "table.npz", "--output", folder / "again", "--held_out", "true"]
    other = written(best, *given, "--part", "test")
    assert other["error"] == found["error"]
    assert other["bounds"] == found["bounds"]
    assert written(best, *given)["error"]["rows"]["of"] == 90  # a file that is given is reported whole
    assert written(folder / "runs", "--output", folder / "newest")["error"] == found["error"]


def test_a_tagger(folder):
    small = ["--model.hidden=8", "--model.layers=1", "--model.characters=8", "--data.batch_tokens=100"]
    files = [f"--data.{part}={part}.conllu" for part in ("train", "dev", "test")]
    cli = tag.main(["fit", *QUIET, *small, *files])
    best = cli.trainer.checkpoint_callback.best_model_path
    found = written(best)
    metrics = cli.trainer.callback_metrics
    assert 1 - found["error"]["labels"]["error"] == pytest.approx(float(metrics["test_accuracy"]), abs=1e-6)
    exact = 1 - found["error"]["sequences"]["error"]
    assert exact == pytest.approx(float(metrics["test_sentence_accuracy"]), abs=1e-6)
    assert found["sequences"]["lengths"]
    assert found["error"]["sequences"]["of"] == 15
    new = (folder / "test.conllu").read_text(encoding="utf-8").replace("\tV\t", "\tNEW\t")
    (folder / "new.conllu").write_text(new, encoding="utf-8")
    other = written(best, "--data", "new.conllu", "--output", "out")
    assert other["error"]["unseen"]["NEW"] > 0
    assert "NEW" in other["gaps"]["labels that the head does not know"]
    assert written(best, "--part", "validation", "--output", "dev")["error"]["sequences"]["of"] == 10


@pytest.mark.parametrize("options", [[], ["--gamma", "0.1"], ["--gamma", "0.1", "--landmarks", "20"]])
def test_a_machine(folder, options):
    facts = svm.main(["fit", "--path", "table.npz", "--divide_by", "2", *options, "--output", "svm"])
    found = written("svm")
    assert found["error"]["rows"]["error"] == pytest.approx(facts["test_error"])
    assert [one["label"] for one in found["classes"]["labels"]] == NAMES
    again = written("svm/scorer.pt", "--part", "train", "--radius", "9", "--output", "out")
    assert again["error"]["rows"]["of"] == 60
    assert again["bounds"]["bounds"][0]["name"] == "margin bound, uniform in the margin"


@pytest.mark.parametrize("model", ["mh", likewise("mr"), likewise("averaged"), "mo", likewise("tree"), "forest"])
def test_an_ensemble(folder, model):
    rounds = ["--rounds=5"] if model in boost.BOOSTED else []
    facts = boost.main(["fit", "--path", "table.npz", "--model", model, *rounds, "--output", model])
    found = written(f"{model}/fit.pt")
    assert found["error"]["rows"]["error"] == pytest.approx(facts["test_error"])
    assert [one["label"] for one in found["classes"]["labels"]] == NAMES
    assert ("code" in found) == (model == "mo")
    proved = {
        "mh": "AdaBoostMH, Π Z",
        "mr": "AdaBoostMR, Π Z",
        "averaged": "AdaBoostAveraged, Π Z",
        "mo": "AdaBoost.MO",
    }
    names = [bound["name"] for bound in found["bounds"]["bounds"]]
    assert any(name.startswith(proved.get(model, "Clopper–Pearson")) for name in names)
    assert ("fit" in found) == (model in proved)


@pytest.mark.parametrize(
    "recipe", ["svm", "mh", likewise("averaged"), likewise("mo"), likewise("tree"), "forest", "classify"]
)
def test_the_probabilities_are_those_that_predict_writes(folder, recipe):
    """Their mean and their log loss, on the rows of the fit and on others; and it is said whence they are."""
    if recipe == "classify":
        data = ["--data=Npz", "--data.path=table.npz", "--model.backbone=MLP"]
        classify.main(["fit", *QUIET, *data, "--trainer.default_root_dir=kept"])
    else:
        of_recipe, more = (svm, []) if recipe == "svm" else (boost, [f"--model={recipe}"])
        rounds = ["--rounds=5"] if recipe in boost.BOOSTED else []
        of_recipe.main(["fit", "--path=table.npz", *more, *rounds, "--output=kept"])
    held = np.load("table.npz")
    for given, rows in (([], held["test_idx"]), (["--data", "table.npz"], slice(None))):
        found = written("kept", *given, "--output=out")["calibration"]
        shares = recipes.load("kept").predict_proba(held["X"][rows])
        assert found["confidence"] == pytest.approx(shares.max(1).mean(), abs=1e-5)
        true = shares[np.arange(len(shares)), held["y"][rows]]
        assert found["log_loss"] == pytest.approx(-np.log(true.clip(1e-300)).mean(), rel=1e-4)
        told = found["probabilities"]
        assert "uncalibrated" not in told
        if recipe not in ("classify", "tree", "forest"):
            assert told.startswith("those of predict --probabilities, the soft-max of the scores over the temperature ")
            ending = "the test rows of its own data" if given else "these same rows: of new ones they may be less right"
            assert told.endswith(f", which fit chose on {ending}")


def written_table(folder, name, rows):
    """Some rows of the table as text, the label first."""
    held = np.load(folder / "table.npz")
    lines = [",".join([NAMES[held["y"][row]], *(f"{entry:.17g}" for entry in held["X"][row])]) for row in rows]
    (folder / name).write_text("\n".join(["label,a,b,c,d", *lines]) + "\n")


def fitted(recipe, path):
    """A model of the table, and its file or folder."""
    if recipe == "svm":
        svm.main(["fit", "--path", path, "--label", "label", "--output", "kept"])
    elif recipe == "boost":
        boost.main(["fit", "--path", path, "--label", "label", "--rounds", "5", "--output", "kept"])
    else:
        data = ["--data=Table", f"--data.path={path}", "--data.label=label", "--model.backbone=MLP"]
        classify.main(["fit", *QUIET, *data, "--trainer.default_root_dir=kept"])


@pytest.mark.parametrize("recipe", ["svm", "boost", "classify"])
def test_other_data_are_numbered_and_scaled_as_the_model_was_taught(folder, recipe):
    """Rows of two of the three classes, far from the mean of all, and one of a class that is new."""
    written_table(folder, "train.csv", range(60))
    fitted(recipe, "train.csv")
    rows = [row for row in range(60, 90) if row % 3 != 0]
    written_table(folder, "new.csv", rows)
    given = recipes.load("kept").predict("new.csv")
    true = [NAMES[row % 3] for row in rows]
    assert (np.array(given) != true).mean() < 0.4
    found = written("kept", "--data", "new.csv", "--output", "new")
    assert found["error"]["rows"]["wrong"] == sum(a != b for a, b in zip(given, true, strict=True))
    assert found["error"]["rows"]["of"] == len(rows)
    assert found["title"].endswith("20 rows of new.csv")
    assert found["model"]["held_out"] is None
    assert "is not known (held_out=None)" in found["gaps"]["Clopper–Pearson"]
    assert written("kept", "--data", "new.csv", "--held_out", "true", "--output", "n")["bounds"]["bounds"]
    text = (folder / "new.csv").read_text()
    (folder / "new.csv").write_text(text + "unheard,0,0,0,0\n")
    again = written("kept", "--data", "new.csv", "--output", "new")
    assert again["error"]["unseen"] == {"unheard": 1}
    with pytest.raises(SystemExit, match=r"part: got test, but new.csv is one whole; accepted is all"):
        report.main(["kept", "--data", "new.csv", "--part", "test"])
    with pytest.raises(SystemExit, match="part: got all; accepted of the data of the fit are test, validation and"):
        report.main(["kept", "--part", "all"])
    with pytest.raises(SystemExit, match="held_out: is said of other data; accepted is with --data"):
        report.main(["kept", "--held_out", "true"])


def test_the_certificate_of_a_machine(folder):
    svm.main(["fit", "--path", "table.npz", "--output", "svm"])
    kept, found = json.loads((folder / "svm/report.json").read_text()), written("svm")["fit"]
    assert found["kind"] == "Certificate"
    assert {name: found[name] for name in ("primal", "dual", "gap", "converged", "iterations", "support_vectors")} == {
        name: kept[name] for name in ("primal", "dual", "gap", "converged", "iterations", "support_vectors")
    }
    assert (folder / "svm/report/pictures/gap.png").is_file()


def test_rows_with_a_coefficient_and_support_vectors_are_told_apart(folder, capsys):
    """Both are named where a fit and its report have them, so that neither contradicts the other."""
    facts = svm.main(["fit", "--path", "table.npz", "--gamma", "0.2", "--C", "4", "--output", "svm"])
    scorer = recipes.load("svm").model
    vectors, kept = facts["support_vectors"], len(scorer.support)
    assert vectors < kept
    said = f"{vectors} of 60 rows support it, {kept} have a coefficient; "
    assert said in capsys.readouterr().out
    found = written("svm")["fit"]
    assert (found["support_vectors"], found["rows_with_a_coefficient"]) == (vectors, kept)
    text = (folder / "svm/report/report.md").read_text()
    assert f"has coefficients for {kept} rows, and {vectors} are support vectors: " in text


@pytest.mark.parametrize(
    "wrong",
    [{"certificate": {}}, {"certificate": {"history": [["a", 0, 0, 0]]}}, {"certificate": {"history": [[1]]}},
     {"support_vectors": "many"}, {"certificate": {"history": [], "of": 3}}],
)  # fmt: skip
def test_a_certificate_that_is_none(wrong):
    whole = {"support_vectors": 10**15, "C": 1.0, "certificate": measured_nothing()}
    assert certificate(whole).support_vectors == 10**15  # and no memory is taken for them
    with pytest.raises(ValueError, match="checkpoint: its certificate does not fit together: "):
        certificate(whole | wrong)


def measured_nothing():
    """The plain values of a report."""
    names = ("primal", "dual", "gap", "converged", "interrupted", "iterations", "seconds", "rows")
    return dict.fromkeys(names, 0) | {"history": [[1, 0.5, 2.0, 1.0]]}


@pytest.mark.parametrize("name", ["m3n-linear", "flat-quadratic"])
def test_words(folder, name, capsys):
    np.savez("letters.npz", **handwriting())
    settings = {key: values[0] for key, values in ocr.METHODS[name].grid.items()}
    options = [f"--name={name}", f"--settings={json.dumps(settings)}", "--path=letters.npz", "--output=words"]
    facts = ocr.main(["fit", *options, "--folds=[0, 1, 2, 3]"])
    train = written("words", "--part", "train", "--output", "train")["error"]
    labels = train["labels" if "m3n" in name else "rows"]
    assert labels["error"] == pytest.approx(facts["training_letter_error"])
    test = written("words")["error"]
    assert test["sequences"]["of"] == 36 if "m3n" in name else test["rows"]["of"] > 36
    ocr.main(["fit", *options])
    assert "note: words holds a fit of " in capsys.readouterr().err
    with pytest.raises(SystemExit, match="part: got test, but all folds were trained on; accepted is train"):
        report.main(["words"])


def test_a_cost(folder):
    boost.main(["fit", "--path", "table.npz", "--model", "tree", "--output", "tree"])
    (folder / "cost.txt").write_text("0, 1, 5\n1 0 1\n5,1,0\n")
    found = written("tree/fit.pt", "--cost", "cost.txt")
    counts = np.array(found["confusion"]["counts"])
    cost = np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0]])
    assert found["confusion"]["mean_cost"] == pytest.approx((counts * cost).sum() / counts.sum())
    typed = written("tree/fit.pt", "--cost", "{low: {high: 5}, high: {low: 5}}")
    assert typed["confusion"]["mean_cost"] == found["confusion"]["mean_cost"]


def test_what_is_wrong_is_named(folder):
    (folder / "text.ckpt").write_text("no checkpoint")
    (folder / "empty").mkdir()
    (folder / "cost.txt").write_text("a b")
    (folder / "new.csv").write_text("a,b,c,d,plan,class\n1,2,3,4,x,low\n1,2,3,4,y,unknown\n")
    boost.main(["fit", "--path", "table.npz", "--model", "tree", "--output", "tree"])
    for args, message in (
        (["missing.ckpt"], "checkpoint: there is no file missing.ckpt"),
        (
            ["text.ckpt"],
            r"checkpoint: text.ckpt cannot be read \(File is not a zip file\); accepted is the output folder",
        ),
        (["empty"], "checkpoint: there is no model in empty; accepted is the output folder of a recipe, or its"),
        (["tree/fit.pt", "--cost", "cost.txt"], "cost: cost.txt"),
        (["tree/fit.pt", "--cost", "{lo: {high: 5}}"], "cost: got lo; the classes are low, middling, high"),
        (
            ["tree/fit.pt", "--data", "new.csv", "--label", "plan"],
            "label: column plan of new.csv holds x, y; accepted is",
        ),
        (["tree/fit.pt", "--part", "validation"], "part: got validation"),
        (["tree/fit.pt", "--delta", "2"], "delta: got 2"),
    ):
        with pytest.raises(SystemExit, match=message):
            report.main(args)
