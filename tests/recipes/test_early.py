"""What is said of a command line before anything slow is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recipes import early, early_files, signatures, yaml_files

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        ("classify", "fot", r"there is no subcommand fot; accepted are fit, validate, test, predict"),
        ("classify", "", r"there is no subcommand none"),
        ("svm", "tunes", r"there is no subcommand tunes; accepted are fit, tune, cost, predict"),
        ("classify", "fit --trainer.max_epoch 3", r"there is no option --trainer.max_epoch; like it are --trainer"),
        ("classify", "fit --model.optimiser SGD", r"there is no option --model.optimiser; like it are --model"),
        ("classify", "fit --data Table --data.pth a.csv", r"there is no option --data.pth; like it are --data.path"),
        ("classify", "fit --data.predict a", r"no option --data.predict of Digits; accepted is --data Npz or --"),
        ("classify", "fit --model.lr 0.1", r"no option --model.lr; it is --model.learning_rate or --model.opt"),
        ("tag", "fit --lr 0.1", r"no option --lr; it is --model.learning_rate or --model.optimizer.lr$"),
        ("tag", "fit --epochs 3", r"no option --epochs; it is --trainer.max_epochs$"),
        ("classify", "fit --model.head.los CRFLoss", r"model.head.los: MulticlassHead has no option los; like"),
        ("classify", "fit --model.head.los CRFLoss", r"like it are --model.head.loss; .* fit --model.head.help Mult"),
        ("classify", "fit --model.head ECOCHead --model.head.weigt [1]", r"no option weigt; like .*weight"),
        ("classify", "fit --model.head.loss CRFLoss --model.head.loss.smoothing 1", r"like it are .*.label_smoothing;"),
        ("tag", "fit --model.loss M3NLoss --model.loss.reductio sum", r"M3NLoss has no option reductio; like it are"),
        ("classify", "fit --model.optimizer SGD --model.optimizer.rate 1", r"SGD has no option rate"),
        ("classify", "fit --model.backbone.depth 3", r"model.backbone.depth: ConvNet has no option depth"),
        ("classify", "fit --model.head.loss CrossEntropyLoss", r"accepted are .*; by name also crf, cross_entropy,"),
        ("classify", "fit --model.head.loss CrossEntropyLoss", r"adaboost_averaged; meant may be 'cross_entropy'$"),
        ("classify", "fit --model.head ECOCHead --model.head.loss BCELoss", r"another; meant may be 'logistic'$"),
        ("tag", "fit --model.loss CrossEntropyLoss", r"accepted are CRFLoss, .* another; meant may be CRFLoss$"),
        ("tag", "fit --model.loss HingeLoss", r"no class HingeLoss; .*; meant may be M3NLoss or SVMStructLoss$"),
        ("classify", "fit --data Npz --data.label a", r"no option --data.label of Npz; accepted is --data Table"),
        ("tag", "fit --data.train a.conll --data.label b", r"there is no option --data.label"),
        ("tag", "fit --model.loss CRFLos", r"loss: there is no class CRFLos; accepted are CRFLoss, M3NLoss, SVMS"),
        ("tag", "fit --model.loss CodedLoss", r"loss: CodedLoss does not fit; accepted are CRFLoss, M3NLoss, SVMS"),
        ("classify", "fit --model.head ChainHead", r"head: ChainHead does not fit; accepted are ContinuousCodeHead, E"),
        ("tag", "fit --model.encoder Transformer", r"encoder: Transformer does not fit; accepted are BiLSTMEncod"),
        ("tag", "fit --model.encoder BiLSTM", r"encoder: there is no class BiLSTM; accepted are BiLSTMEncoder, Convol"),
        ("classify", "fit --model.backbone LSTM", r"backbone: LSTM does not fit; .* made from the shape of a row$"),
        ("classify", "fit --data Tabl", r"data: there is no class Tabl; accepted are Digits, Npz, Table or the dotted"),
        ("svm", "fit --gama 3", r"there is no option --gama; like it are --gamma"),
        ("boost", "fit --leafs 3", r"there is no option --leafs; like it are --leaves"),
        ("ocr", "fit --methods 3", r"there is no option --methods of fit; it is an option of run$"),
        ("svm", "fit --probabilities true", r"no option --probabilities of fit; it is an option of predict$"),
        ("svm", "predict --Cs [1]", r"no option --Cs of predict; it is an option of tune$"),
        ("svm", "predict --gamma 1", r"no option --gamma of predict; it is an option of fit and cost$"),
        ("svm", "predict --label a", r"no option --label of predict; it is an option of fit and tune$"),
        ("svm", "cost --path a", r"no option --path of cost; it is an option of fit, tune and predict$"),
        ("svm", "tune --C [1,2]", r"no option --C of tune; like it is --Cs; it is an option of fit$"),
        ("svm", "fit --Cs [1]", r"no option --Cs of fit; like it is --C; it is an option of tune$"),
        ("boost", "tune --real true", r"no option --real of tune; like it is --reals; it is an option of fit$"),
        ("svm", "fit my.csv", r"got my.csv by itself; accepted are options, as --path my.csv$"),
        ("boost", "predict --keep -1 my.csv", r"got my.csv by itself; accepted are options, as --path my.csv$"),
        ("svm", "predict a.pt", r"got a.pt by itself; accepted are options, as --folder a.pt$"),
        ("svm", "predict .", r"got . by itself; accepted are options, as --folder .$"),
        ("svm", "fit .", r"got . by itself; accepted are options, as --path .$"),
        ("tag", "predict .", r"got . by itself; accepted are options, as --ckpt_path .$"),
        ("svm", "cost 3", r"got 3 by itself; accepted are options, listed by --help$"),
        ("classify", "fit --data Table my.csv", r"got my.csv by itself; accepted are options, as --data.path my.csv$"),
        ("classify", "fit a.yaml", r"got a.yaml by itself; accepted are options, as --config a.yaml$"),
        ("classify", "test a.ckpt", r"got a.ckpt by itself; accepted are options, as --ckpt_path a.ckpt$"),
        ("tag", "fit a.conll", r"got a.conll by itself; accepted are options, as --data.train a.conll$"),
        ("tag", "predict a.txt", r"got a.txt by itself; accepted are options, as --data.predict a.txt$"),
        ("svm", "fit --file my.csv", r"no option --file; it is --path$"),
        ("boost", "tune --data=my.csv", r"no option --data; it is --path$"),
        ("svm", "cost --file my.csv", r"no option --file; all are listed by --help$"),
        ("classify", "fit --file my.csv", r"no option --file; it is --data.path$"),
        ("tag", "predict --input a.txt", r"no option --input; it is --data.predict$"),
        ("tag", "test --file a.conll", r"no option --file; it is --data.test$"),
        ("boost", "fit --keep [a]", r"no option --keep of fit; it is an option of predict$"),
        ("boost", "tune --resume a", r"no option --resume of tune; it is an option of fit$"),
        ("tables", "report --jobs 2", r"no option --jobs of report; it is an option of run$"),
        ("classify", "fit --probabilities true", r"no option --probabilities of fit; it is an option of predict$"),
        ("classify", "test --keep [a]", r"no option --keep of test; it is an option of predict$"),
        ("classify", "fit --output a", r"option of predict; the folder of a fit is --trainer.default_root_dir FOLDER$"),
        ("classify", "predict --verbose false", r"no option --verbose of predict; it is .* of validate and test$"),
        ("classify", "predict --k_best 2", r"no option --k_best"),
        ("classify", "fit --label a", r"no option --label; it is --data.label$"),
        ("classify", "fit --path a.csv", r"no option --path; it is --data.path$"),
        ("classify", "fit --max_epochs 3", r"no option --max_epochs; it is --trainer.max_epochs$"),
        ("tag", "fit --scheme BIO", r"no option --scheme; it is --model.scheme$"),
        ("tag", "fit --k_best 2", r"no option --k_best of fit; it is an option of predict$"),
        ("tag", "test --probabilities=true", r"no option --probabilities of test; it is an option of predict$"),
        ("tag", "predict --keep a", r"no option --keep"),
        ("report", "a.ckpt --parts test", r"there is no option --parts; like it are --part"),
        ("report", "", r"checkpoint: got none; accepted is one, the output folder of a recipe, or its"),
        ("report", "a b --part test", r"checkpoint: got a, b; accepted is one"),
        ("demo", "costz", r"there is no part costz; accepted are costs, codes, machine"),
        ("demo", "--outputt x", r"unrecognized arguments: --outputt; accepted are"),
        ("tables", "runn", r"there is no subcommand runn; accepted are run, report"),
        ("boost", "fit --model forest --rounds 200", r"error: rounds: model forest does not read it; .* with mh, mr"),
        ("boost", "fit --model tree --trees=5 --bins 3", r"error: bins: model tree .*; trees: .* with forest$"),
        ("boost", "fit --model mr --real true", r"error: real: model mr does not read it; accepted is with mh, mo$"),
        ("boost", "tune --model averaged --reals [true]", r"error: reals: model averaged does not read it; acc"),
        ("tables", "run --setz [glass]", r"there is no option --setz; like it are --sets"),
        ("tables", "run --sets [letters]", r"sets: got letters; accepted are dermatology, satimage"),
        ("tables", "run --tables [table3] --sets [glass] --path no", r"path: there is no file no/glass.npz; accepted"),
    ],
)  # fmt: skip
def test_names(recipe, line, message):
    with pytest.raises(SystemExit, match=message):
        early.look(recipe, line.split())


@pytest.mark.parametrize(
    ("recipe", "line"),
    [
        ("classify", "fit --config CONFIG --trainer.callbacks+=x.Y --model.backbone MLP --model.backbone.hidden [3]"),
        ("classify", "fit --data my.own.Data --data.anything 3 --model.head.loss my.own.Loss"),
        ("classify", "fit --trainer.logger CSVLogger --trainer.logger.save_dir x --seed_everything 3"),
        ("classify", "fit --model.help"),
        ("tag", "predict --k_best 3 --probabilities true --output x"),
        ("svm", "fit --C 3 --bias true"),
        ("svm", "fit --C 3 --bias free"),
        ("svm", "fit --C inf"),
        ("svm", "tune --Cs [1,inf]"),
        ("boost", "fit --model forest --trees 3 --bins 8 --output none"),
        ("boost", "tune --leaves [2,4]"),
        ("demo", "costs codes --output here"),
        ("tables", "run --tables [figure3,growth] --jobs 2"),
        ("tables", "report --readme README.md"),
        (
            "classify",
            "fit --model.backbone.dropout 0 --trainer.max_epochs null --trainer.devices auto --trainer.precision 16",
        ),
        (
            "classify",
            "fit --model.optimizer SGD --model.optimizer.lr 1e-2 --model.schedule cosine --trainer.limit_val_batches 2",
        ),
        ("classify", "fit --model.head.bias false --model.head.loss CRFLoss --model.head.loss.reduction sum"),
        (
            "classify",
            "fit --model.head my.own.MulticlassHead --model.head.width 3 --model.head.loss my.CRFLoss",
        ),
        ("classify", "fit --model.head.dict_kwargs.bias false --model.backbone.dict_kwargs {}"),
        ("tag", "fit --model.scheme null --model.learning_rate 1e-3 --data.train+ x.conllu"),
    ],
)
def test_what_is_right_passes(recipe, line):
    early.look(recipe, line.replace("CONFIG", str(CHECKOUT / "recipes/configs/digits_ecoc.yaml")).split())


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        ("classify", "fit --trainer.max_epochs abc", "max_epochs: got abc; accepted is a whole number"),
        ("classify", "fit --trainer.max_epochs 1.5", "max_epochs: got 1.5; accepted is a whole number"),
        ("classify", "fit --data.batch_size x", "batch_size: got x; accepted is a whole number"),
        ("classify", "fit --model.backbone.dropout=x", "dropout: got x; accepted is a number"),
        ("classify", "fit --model.backbone MLP --model.backbone.hidden 3", r"hidden: got 3; accepted is a list"),
        ("classify", "fit --model.optimizer SGD --model.optimizer.lr x", "lr: got x; accepted is a number"),
        ("classify", "fit --model.schedule StepLR --model.schedule.step_size x", "step_size: got x; accepted is"),
        ("classify", "fit --model.head.loss WestonWatkinsLoss --model.head.loss.power x", "power: got x; accepted is"),
        ("classify", "fit --model.head.loss.margin 2", "margin: whose is not said; accepted is --model.hea"),
        ("classify", "fit --model.schedule constan", "schedule: got constan; accepted is one_cycle, linear, cosine, "),
        ("classify", "fit --model.backbone 3", "backbone: got 3; accepted is the name of a class"),
        ("classify", "fit --model.optimizer sgd", "optimizer: got sgd; accepted is the name of a class"),
        ("tag", "fit --model.scheme BIOX", "scheme: got BIOX; accepted is BIO, IOB2, BIOES, IOB1, IOBES, .* or IO"),
        ("tag", "fit --model.loss CRFLoss --model.loss.temperature x", "temperature: got x; accepted is a number"),
        ("svm", "fit --C abc", "C: got abc; accepted is a number or inf$"),
        ("svm", "fit --C", "C: got nothing; accepted is a number or inf"),
        ("svm", "fit --bias fre", "bias: got fre; accepted is true, false or free"),
        ("svm", "tune --Cs 3", r"Cs: got 3; accepted is a list, \[a number or inf, \.\.\.\]"),
        ("svm", "tune --Cs [1,x]", r"Cs: got \[1,x\]; accepted is a list, \[a number"),
        ("boost", "fit --model mhh", "model: got mhh; accepted is mh, mr, averaged, mo, tree or forest"),
        ("boost", "fit --real 1", "real: got 1; accepted is true or false"),
        ("ocr", "fit --folds 3", r"folds: got 3; accepted is a list, \[a whole number"),
        ("tables", "run --jobs x", "jobs: got x; accepted is a whole number"),
        ("report", "a.ckpt --part tset", "part: got tset; accepted is test, validation, train or all"),
        ("report", "a.ckpt --delta x", "delta: got x; accepted is a number"),
    ],
)  # fmt: skip
def test_values_of_another_type(recipe, line, message):
    pytest.importorskip("lightning")
    with pytest.raises(SystemExit, match=f"^error: {message}"):
        early.look(recipe, line.split())


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        ("classify", "fit --data.batch_size 0", "batch_size: got 0; accepted is a whole number >= 1"),
        (
            "classify",
            "fit --data Npz --data.validation 1.5",
            "validation: got 1.5; accepted is a fraction between 0 and",
        ),
        ("classify", "fit --model.learning_rate=-1e-3", "learning_rate: got -1e-3; accepted is a finite number > 0"),
        ("tag", "fit --data.batch_tokens=-1", "batch_tokens: got -1; accepted is a whole number >= 1"),
        ("tag", "predict --k_best 0", "k_best: got 0; accepted is a whole number >= 1"),
    ],
)
def test_numbers_beyond_what_is_accepted(recipe, line, message):
    pytest.importorskip("lightning")
    with pytest.raises(ValueError, match=f"^{message}"):
        early.look(recipe, line.split())


@pytest.mark.parametrize("line", ["predict --data.predict a.npz", "predict --data.predict a.npz --ckpt_path text.ckpt"])
def test_the_weights_come_before_the_kind_of_the_data(tmp_path, monkeypatch, line):
    """Which the checkpoint would have told."""
    monkeypatch.chdir(tmp_path)
    Path("text.ckpt").write_text("no checkpoint")
    with pytest.raises(ValueError, match=r"^ckpt_path: (got none; predict needs|text.ckpt cannot be read)"):
        early.look("classify", line.split())


def test_values_of_another_type_in_a_configuration(tmp_path):
    config = tmp_path / "a.yaml"
    config.write_text("model: {backbone: {class_path: MLP, init_args: {dropout: much}}}\n")
    with pytest.raises(SystemExit, match="error: dropout: got much; accepted is a number"):
        early.look("classify", ["fit", f"--config={config}"])
    config.write_text("C: [1]\n")
    with pytest.raises(SystemExit, match=r"error: C: got \[1\]; accepted is a number"):
        early.look("svm", ["fit", f"--config={config}"])


ANY = "def f(a: int, b: float | None, c: 'Literal[\"x\", 2]', d: list[int], e: tuple[int, ...], g: bool, h: Unknown): 0"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("a", ["3", 3, "-1", "0x10"], ["3.0", "x", "true", "", None, 1.5]),
        ("b", ["3", "1e-3", ".inf", "null", None, 2.5], ["x", "true", "[1]"]),
        ("c", ["x", "2", 2], ["y", "3"]),
        ("d", ["[1, 2]", [1], "[]"], ["1", "[x]", [1.5]]),
        ("e", ["[1]"], ["1", "[1, x]"]),
        ("g", ["true", "yes", True], ["1", "x", 0]),
        ("h", ["3", "x", None], []),
    ],
)
def test_what_annotations_accept(tmp_path, name, good, bad):
    (tmp_path / "a.py").write_text(ANY)
    kind = signatures.parameters(tmp_path / "a.py", "f")[name]
    assert [value for value in good if not signatures.accepts(kind, value, tmp_path / "a.py")] == []
    assert [value for value in bad if signatures.accepts(kind, value, tmp_path / "a.py")] == []


def test_what_is_reported_on_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.ckpt").write_text("no checkpoint")
    Path("empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"there is no model in empty; accepted is the output folder of a rec"):
        early.look("report", ["empty"])
    Path("a.yaml").write_text("checkpoint: empty\npart: train\n")
    with pytest.raises(FileNotFoundError, match="there is no model in empty"):
        early.look("report", ["--config", "a.yaml"])
    with pytest.raises(FileNotFoundError, match="there is no model in empty"):
        early.look("report", ["--print_config", "empty"])
    with pytest.raises(
        FileNotFoundError, match=r"there is no file none.ckpt; accepted .*/best.ckpt, scorer.pt or fit.pt"
    ):
        early.look("report", ["--part=train", "none.ckpt"])
    with pytest.raises(ValueError, match=r"checkpoint: text.ckpt cannot be read \(File is not a zip file\)"):
        early.look("report", ["--delta", "0.1", "text.ckpt"])


def test_every_published_configuration_passes():
    for path in sorted((CHECKOUT / "recipes/configs").glob("*.yaml")):
        recipe = "classify" if "digits_" in path.name or path.stem == "letter_ecoc" else "tag"
        recipe = path.stem.split("_")[0] if path.stem.split("_")[0] in ("svm", "boost") else recipe
        early.look(recipe, ["tune" if path.stem.endswith("tune") else "fit", "--config", str(path)])


def test_what_a_configuration_names_is_looked_at(tmp_path):
    (tmp_path / "a.conll").write_text("a X\n\n")
    config = tmp_path / "a.yaml"
    config.write_text(
        f"data: {{class_path: Treebank, init_args: {{train: {tmp_path}/a.conll}}}}\nmodel: {{column: NER}}\n"
    )
    with pytest.raises(ValueError, match=r"column: got 'NER'; accepted for .*a.conll are 2, last"):
        early.look("tag", ["fit", "--config", str(config)])
    early.look("tag", ["fit", "--config", str(config), "--model.column", "2"])
    config.write_text("data: {class_path: Table, init_args: {path: none.csv}}\n")
    with pytest.raises(FileNotFoundError, match=r"path: there is no file none.csv"):
        early.look("classify", ["fit", f"--config={config}"])
    config.write_text("gama: 3\n")
    with pytest.raises(SystemExit, match="there is no option --gama"):
        early.look("svm", ["fit", "--config", str(config)])


LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, r"config: the anchors of .*a.yaml expand to more than 200000 entries"),
        ("a: &a\n  b: *a\n", r"config: the anchors of .* expand to more than"),
        ("a: " + "[" * 3000, r"config: .*a.yaml is nested too deeply"),
        ("a: !!python/object/apply:os.mkdir [made]\n", r"config: .*a.yaml:1: could not determine a constructor"),
        ("a: [1\nb: }\n", r"config: .*a.yaml:2: expected"),
        (b"\xff\0", r"config: .*a.yaml: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_yaml_that_would_fill_the_memory_or_is_none(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        yaml_files.read(tmp_path / "a.yaml")
    assert not (tmp_path / "made").exists()


def test_anchors_of_a_usual_size_are_fine():
    yaml_files.check("a: &a {b: [1, 2]}\nc: [*a, *a]\n")


def test_files_inside_files_are_looked_at_as_well(tmp_path, monkeypatch):
    pytest.importorskip("lightning")
    from recipes import classify

    (tmp_path / "a.yaml").write_text(LAUGHS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"^error: trainer: .*expand to more than .*\Z"):
        classify.main(["fit", "--trainer", "a.yaml"])


def test_an_option_by_its_former_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option in (["--fit", "a"], ["--fit=a"]):
        with pytest.raises(FileNotFoundError, match=r"^folder: there is no file a"):
            early.look("boost", ["predict", *option])
    with pytest.raises(SystemExit, match="no option --fit here; what a fit kept is named by --ckpt_path FILE in cl"):
        early.look("tag", ["predict", "--fit", "a"])


@pytest.mark.parametrize(("recipe", "name"), [("svm", "folder"), ("ocr", "folder"), ("boost", "folder")])
def test_what_was_kept_is_looked_at(tmp_path, monkeypatch, recipe, name):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises(FileNotFoundError, match=f"{name}: there is no model in empty; accepted is the output folder"):
        early.look(recipe, ["predict", f"--{name}=empty"])
    with pytest.raises(FileNotFoundError, match=f"{name}: there is no file runs/{recipe}"):
        early.look(recipe, ["predict"])


@pytest.mark.parametrize(
    ("recipe", "option"),
    [
        ("svm", "fit --output"),
        ("svm", "tune --output"),
        ("boost", "fit --output"),
        ("ocr", "fit --output"),
        ("ocr", "run --output"),
        ("report", "a.ckpt --output"),
        ("classify", "fit --trainer.default_root_dir"),
        ("tag", "fit --trainer.default_root_dir"),
    ],
)
def test_a_folder_to_write_is_no_file(tmp_path, monkeypatch, recipe, option):
    """Said before the rows are read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(early, "reported", lambda *given: None)
    monkeypatch.setattr(early, "contents", None)
    Path("train.csv").write_text("a,b\n1,2\n")
    name = option.split(".")[-1].split("--")[-1]
    for given in ("train.csv", "train.csv/within"):
        with pytest.raises(
            NotADirectoryError, match=rf"^{name}: train.csv is a file; accepted is the path of a folder"
        ):
            early.look(recipe, [*option.split(), given])


@pytest.mark.parametrize("recipe", ["classify", "tag"])
def test_labels_that_were_written_are_no_folder_in_the_way(tmp_path, monkeypatch, recipe):
    """A run's config.yaml names the file of labels, which a test or a resumed fit does not write."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text("output: labels.txt\n")
    Path("labels.txt").write_text("cat\n")
    early.look(recipe, ["fit", "--config", "config.yaml"])


@pytest.mark.parametrize("recipe", ["classify", "tag", "svm", "boost", "ocr", "tables"])
def test_a_recipe_run_by_its_name_says_it_as_early(tmp_path, recipe):
    script = (
        "import runpy, sys\n"
        f"sys.argv = ['x', 'fitt']\n"
        f"try:\n    runpy.run_module('recipes.{recipe}', run_name='__main__', alter_sys=True)\n"
        "except SystemExit as end:\n    print(end)\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    said, imported = done.stdout.splitlines()
    assert said.startswith("error: there is no subcommand fitt; accepted are ")
    assert imported == "False False"


@pytest.mark.parametrize("spelled", ["one-vs-all", "one_vs_all", "one-vs-rest", "one_versus_all"])
def test_names_in_whatever_spelling(spelled, tmp_path):
    from recipes.names import one_of
    from recipes.tables.wanted import check

    (tmp_path / "glass.npz").write_bytes(b"")
    assert check(str(tmp_path), ["table2"], ["glass"], [spelled, "all_pairs"])[2] == ["one-vs-all", "all-pairs"]
    assert one_of("name", "m3n_linear", ["m3n-linear", "crf"]) == "m3n-linear"
    with pytest.raises(SystemExit, match="error: name: got m3n; accepted are m3n-linear, crf"):
        one_of("name", "m3n", ["m3n-linear", "crf"])


@pytest.mark.parametrize(
    ("recipe", "option"),
    [
        ("svm", "path"),
        ("boost", "path"),
        ("classify", "data.predict"),
        ("tag", "data.predict"),
        ("classify", "data.path"),
    ],
)
def test_answers_are_not_written_over_what_they_are_of(tmp_path, monkeypatch, recipe, option):
    monkeypatch.chdir(tmp_path)
    Path("new.csv").write_text("a,b\n1,2\n")
    Path("other.csv").write_text("kept\n")
    Path("same.csv").symlink_to("new.csv")
    for output in ("new.csv", "./new.csv", str(tmp_path / "new.csv"), "same.csv"):
        with pytest.raises(ValueError, match=rf"^output: got {output}, the file of --{option}, which is read;"):
            early_files.written_over({option: "new.csv", "output": output})
    early_files.written_over({option: "new.csv", "output": "other.csv"})
    early_files.written_over({option: "new.csv", "output": "none.csv"})
    if recipe != "classify":  # of which the kind of the data is asked first
        with pytest.raises(ValueError, match=r"^output: got new.csv"):
            early.look(recipe, ["predict", f"--{option}=new.csv", "--output=new.csv"])
