"""The recipe of handwriting, on a few words of four letters that were drawn."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from recipes import ocr
from recipes.data.letters import Words

pytestmark = pytest.mark.slow


def arrays(words=60, letters=4, side=(4, 3), seed=0):
    """Words whose letters follow one another in the alphabet; a few dots of each picture are wrong."""
    r = np.random.default_rng(seed)
    pictures = r.random((letters, side[0] * side[1])) < 0.5
    pictures[:, 0] = True
    lengths = r.integers(1, 5, words)
    starts = r.integers(letters, size=words)
    label = np.concatenate([(a + np.arange(n)) % letters for a, n in zip(starts, lengths, strict=True)])
    bits = pictures[label] ^ (r.random((len(label), side[0] * side[1])) < 0.05)
    bits[:, 0] = True
    number = np.repeat(np.arange(words), lengths)
    return {
        "images_packed": np.packbits(bits, axis=1),
        "image_shape": np.array(side),
        "letter": label.astype(np.uint8),
        "word_id": number,
        "fold": (number % 10).astype(np.uint8),
    }


@pytest.fixture
def path(tmp_path):
    np.savez(tmp_path / "letters.npz", **arrays())
    return str(tmp_path / "letters.npz")


def kept(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def test_words_as_they_are_read(path):
    given, words = arrays(), Words.read(path)
    batch = words.batch(torch.tensor([3, 0, 7]))
    for i, word in enumerate([3, 0, 7]):
        rows = given["word_id"] == word
        n = int(batch.lengths[i])
        assert batch.labels[i, :n].tolist() == given["letter"][rows].tolist()
        assert (batch.labels[i, n:] == -100).all()
        bits = torch.tensor(np.unpackbits(given["images_packed"][rows], axis=1)[:, :12]).float()
        torch.testing.assert_close(batch.features[i, :n], bits / bits.norm(dim=1, keepdim=True))
        assert (batch.features[i, n:] == 0).all()
        assert words.fold[word] == word % 10
    features, labels = batch.letters
    assert len(features) == len(labels) == int(batch.lengths.sum())


@pytest.mark.parametrize("name", list(ocr.METHODS))
def test_every_method_learns_to_read(path, tmp_path, name):
    """With a chain every word is in order, so that letters that are hard to read follow from the others."""
    ocr.main(["run", "--path", path, "--output", str(tmp_path), "--methods", f"[{name}]", "--folds", "[9]"])
    found = kept(tmp_path, name)
    assert list(found) == ["9"]
    for fold in found.values():
        assert fold["letter_error"] < 0.5
        assert fold["letter_error"] <= fold["word_error"] <= 1
        assert set(fold["settings"]) == set(ocr.METHODS[name].grid)
        assert len(fold["validation"]) in (0, len(ocr.METHODS[name].settings()))
        assert fold.get("gap", 0) <= ocr.TOLERANCE


def test_errors_are_counted_by_letter_and_by_word(path, tmp_path):
    """Fold 0, whose machine is trained here once more, is read word by word."""
    ocr.run(path, ["m3n-quadratic"], [0], str(tmp_path))
    fold, words = kept(tmp_path, "m3n-quadratic")["0"], Words.read(path)
    scorer, facts = ocr.METHODS["m3n-quadratic"].train(
        fold["settings"], words.batch((words.fold == 0).nonzero().squeeze(1)), ocr.TOLERANCE
    )
    assert facts["primal"] == pytest.approx(fold["primal"])
    letters, whole = [], []
    for number in (words.fold != 0).nonzero().squeeze(1).tolist():
        one = words.batch(torch.tensor([number]))
        wrong = scorer(one.features).decode().labels != one.labels
        letters += wrong.flatten().tolist()
        whole.append(bool(wrong.any()))
    assert fold["letter_error"] == pytest.approx(np.mean(letters))
    assert fold["word_error"] == pytest.approx(np.mean(whole))


def test_settings_come_from_the_training_fold_alone(path, tmp_path):
    """Whatever the other folds hold, the choice and its errors stay."""
    ocr.run(path, ["flat-linear"], [2], str(tmp_path / "a"))
    given = arrays()
    others = given["fold"] != 2
    given["letter"][others] = (given["letter"][others] + 1) % 4
    np.savez(tmp_path / "other.npz", **given)
    ocr.run(str(tmp_path / "other.npz"), ["flat-linear"], [2], str(tmp_path / "b"))
    one, other = (kept(tmp_path / name, "flat-linear")["2"] for name in "ab")
    assert one["validation"] == other["validation"]
    assert one["settings"] == other["settings"]
    assert one["letter_error"] != other["letter_error"]


def test_what_is_finished_is_not_done_again(path, tmp_path, monkeypatch):
    done, one_fold = [], ocr.one_fold

    def until_the_third(method, words, fold):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(fold)
        return one_fold(method, words, fold)

    monkeypatch.setattr(ocr, "one_fold", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        ocr.run(path, ["perceptron"], [0, 1, 2, 3], str(tmp_path))
    before = kept(tmp_path, "perceptron")
    assert done == [0, 1] == [int(fold) for fold in before]
    again = []
    monkeypatch.setattr(ocr, "one_fold", lambda *args: again.append(args[2]) or one_fold(*args))
    ocr.run(path, ["perceptron"], [0, 1, 2, 3], str(tmp_path))
    assert again == [2, 3]
    after = kept(tmp_path, "perceptron")
    assert {fold: after[fold] for fold in before} == before
    assert list(after) == ["0", "1", "2", "3"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal that ends a process at once")
def test_a_run_that_was_killed_goes_on(path, tmp_path):
    """Ended between two folds or within one, the file is whole, and the rest is as of a run that was not ended."""
    options = ["--path", path, "--methods", "[perceptron]", "--output"]
    command = [sys.executable, "-m", "recipes.ocr", "run", *options, str(tmp_path / "killed")]
    process = subprocess.Popen(command, cwd=Path(ocr.__file__).parents[1], stdout=subprocess.DEVNULL)
    file = tmp_path / "killed" / "perceptron.json"
    until = time.monotonic() + 60
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 1 <= len(kept(tmp_path / "killed", "perceptron")) <= 10
    for name in ("killed", "whole"):
        ocr.main(["run", *options, str(tmp_path / name)])
    ours, theirs = (kept(tmp_path / name, "perceptron") for name in ("killed", "whole"))
    assert list(ours) == [str(fold) for fold in range(10)]
    for fold in ours:
        assert ours[fold]["letter_error"] == theirs[fold]["letter_error"]
        assert ours[fold]["settings"] == theirs[fold]["settings"]


def test_the_report(path, tmp_path, capsys):
    for name, errors in (("m3n-linear", (0.1, 0.3)), ("crf", (0.25,))):
        folds = {
            str(fold): {"letter_error": error, "word_error": 2 * error, "settings": {"C": 1.0, "s": 2.0}, "gap": 0.01}
            for fold, error in enumerate(errors)
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(folds))
    ocr.main(["report", "--path", path, "--output", str(tmp_path)])
    table = (tmp_path / "table.md").read_text()
    assert capsys.readouterr().out.strip() == table.strip()
    lines = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in table.splitlines()}
    assert lines["M3N, linear"][1:5] == ["0.2000 ± 0.1414", "0.4000", "2 of 10: 0, 1", "C=1 s=2 (2)"]
    assert lines["CRF"][1:4] == ["0.2500", "0.5000", "1 of 10: 0"]
    assert "Perceptron" not in table
    for name, error in ocr.PUBLISHED.items():
        assert float(lines[f"{name}, published"][1]) == error
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input(path, tmp_path):
    for options, message in (
        (["--methods", "[svm]"], "methods: got svm; accepted are m3n-linear, "),
        (["--folds", "[10]"], "folds: got 10; accepted are 0 to 9"),
    ):
        with pytest.raises(SystemExit, match=message.replace("[", r"\[")):
            ocr.main(["run", "--path", path, "--output", str(tmp_path), *options])
    with pytest.raises(SystemExit, match="picture: got none; accepted are m3n-linear, "):
        ocr.main(["report", "--path", path, "--output", str(tmp_path), "--picture", "none"])
    with pytest.raises(SystemExit, match=r"path: there is no file nothing\.npz; it is made of letter\.data\.gz "):
        ocr.main(["run", "--path", "nothing.npz", "--output", str(tmp_path)])
    with pytest.raises(FileNotFoundError, match=r"^words: there is no file nothing\.npz"):
        ocr.read_all(None, {"shape": (9, 9)}, "nothing.npz", "words")
    with pytest.raises(ValueError, match=r"^words: pictures in .*; accepted is \(9, 9\)$"):
        ocr.read_all(None, {"shape": (9, 9)}, path, "words")
    for name, change, message in (
        ("letter", lambda a: a + 30, r"letter in .* spans 30\.\.33; accepted is 0\.\.25"),
        ("fold", lambda a: a + 1, r"fold in .* spans 1\.\.10; accepted is 0\.\.9"),
        ("word_id", lambda a: a[1:], r"word_id in .* has dtype int64, shape \(\d+,\); accepted are whole numbers"),
        ("word_id", lambda a: a.astype(float), "word_id in .* has dtype float64"),
        ("images_packed", lambda a: a[:, :1], r"images_packed in .* has dtype uint8, shape .*: 12 bits a letter"),
        ("images_packed", lambda a: 0 * a, r"letter 0 of .* has no ink"),
    ):
        given = arrays()
        np.savez(tmp_path / "bad.npz", **{**given, name: change(given[name])})
        with pytest.raises(SystemExit, match=message):
            ocr.main(["run", "--path", str(tmp_path / "bad.npz"), "--output", str(tmp_path)])


def test_the_lines_of_the_readme_make_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(0)
    pixels, words = r.integers(2, size=(9, 128)), [1, 1, 1, 2, 2, 3, 3, 3, 3]
    pixels[:, 0] = 1
    rows = [
        [n, "abcdefghi"[n], -1, word, 1, word % 10, *pixels[n], ""] for n, word in enumerate(words)
    ]  # each line ends with a tab
    with gzip.open("letter.data.gz", "wt") as file:
        file.write("".join("\t".join(map(str, row)) + "\n" for row in rows))
    text = (Path(ocr.__file__).parent / "README.md").read_text(encoding="utf-8")
    exec(text.split("## Handwriting")[1].split("```py\n")[1].split("```")[0], {})
    read = Words.read("letters.npz")
    assert [len(read.features), read.shape, read.fold.tolist()] == [9, (16, 8), [1, 2, 3]]
    assert read.labels.tolist() == list(range(9))
    np.testing.assert_array_equal(read.features.numpy() > 0, pixels > 0)
