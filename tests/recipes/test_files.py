"""Files that recipes keep, and what is wrong with them."""

import gzip
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
import torch

from recipes.data import text
from recipes.files import check_weights, checkpoint, facts_of, locked, read, save

VOCABULARY = {"column": None, "tags": ["A", "B"], "features": {}, "characters": [], "counts": [], "rare": []}
TAGGER = {"vocabulary": VOCABULARY, "scheme": None, "constrained": True, "options": {}}


def test_facts_travel_with_the_weights(tmp_path):
    save(tmp_path / "a.pt", {"w": torch.ones(3)}, {"classes": ["ä"]})
    assert torch.load(tmp_path / "a.pt", weights_only=True)["w"].tolist() == [1, 1, 1]
    assert read(tmp_path / "a.pt", "folder")["w"].tolist() == [1, 1, 1]
    assert facts_of(tmp_path / "a.pt", "folder", "") == {"classes": ["ä"]}
    save(tmp_path / "a.pt", {"w": torch.ones(3)})
    with pytest.raises(ValueError, match=r"folder: .*a.pt tells nothing of its model"):
        facts_of(tmp_path / "a.pt", "folder", "a file")


def packed(path):
    save(path, {"w": torch.zeros(9)})
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in entries.items():
            new.writestr(name, content)


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", bytes(10**8))


def overclaiming(path):
    """The header says 900 numbers; the file holds 9."""
    save(path, {"w": torch.zeros(9)})
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in entries.items():
            new.writestr(name, content.replace(b"K\x09", b"M\x84\x03") if name.endswith("data.pkl") else content)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (packed, r"ckpt_path: .* cannot be read \(its entries are packed\)"),
        (bomb, r"ckpt_path: .* cannot be read \(.*unpacks \d+ bytes to 100000000"),
        (overclaiming, r"ckpt_path: .* cannot be read"),
        (lambda path: path.write_bytes(b""), r"cannot be read \(File is not a zip file\)"),
        (lambda path: save(path, [1]), r"cannot be read \(it holds list\)"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, write, message):
    write(tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match=message) as said:
        read(tmp_path / "a.ckpt", "ckpt_path")
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("kept", "recipe", "message"),
    [
        ({}, "classify", r"is no checkpoint of this recipe \(it has no weights\)"),
        ({"state_dict": {"w": "x"}}, "classify", r"is no checkpoint of this recipe \(it has no weights\)"),
        ({"state_dict": {}, "tagger": TAGGER}, "classify", r"no checkpoint of this recipe; accepted is a che"),
        ({"state_dict": {}}, "tag", r"is no checkpoint of this recipe; accepted is a checkpoint of tag"),
        ({"state_dict": {"w": torch.tensor([1.0, torch.nan])}}, "classify", r"ckpt_path: w in .*a.ckpt is NaN"),
        ({"state_dict": {}, "tagger": {}}, "tag", r"a.ckpt has no vocabulary; accepted is a whole checkpoint"),
        ({"state_dict": {}, "tagger": {**TAGGER, "vocabulary": {"tags": []}}}, "tag", r"vocabulary .* has no column"),
        (
            {"state_dict": {}, "tagger": {**TAGGER, "vocabulary": {**VOCABULARY, "tags": ["A", "A"]}}}, "tag",
            r"has 'A' twice; accepted are distinct tags",
        ),
        ({"state_dict": {}, "hyper_parameters": 3}, "classify", r"hyper_parameters in .* is int"),
    ],
)  # fmt: skip
def test_a_checkpoint_is_looked_through(tmp_path, kept, recipe, message):
    save(tmp_path / "a.ckpt", kept)
    with pytest.raises(ValueError, match=message):
        checkpoint(tmp_path / "a.ckpt", recipe)


def test_infinite_weights_are_weights():
    check_weights({"w": torch.tensor([torch.inf, -torch.inf])}, Path("a"), "a")


def test_one_run_at_a_time_writes_into_a_folder(tmp_path):
    pytest.importorskip("fcntl")
    script = f"import sys, time\nfrom pathlib import Path\nfrom recipes.files import locked\n" \
        f"with locked(Path({str(tmp_path)!r})):\n    print('in', flush=True)\n    sys.stdin.read()\n"  # fmt: skip
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "in\n"
    entered = []

    def enter():
        with locked(tmp_path):
            entered.append(time.perf_counter())

    waiting = threading.Thread(target=enter)
    waiting.start()
    waiting.join(0.2)
    assert not entered
    other.kill()  # its lock ends with it
    other.communicate()
    waiting.join(30)
    assert entered


@pytest.mark.parametrize("size", [10**8, 2**31])
def test_a_gzip_bomb_is_refused(tmp_path, size):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1," * (10**8 // 2), mtime=0))
    if size > 10**8:  # it tells a lie of itself: a second part that holds next to nothing
        path.write_bytes(path.read_bytes() + gzip.compress(b"", mtime=0))
    with pytest.raises(ValueError, match=r"a.csv.gz: holds more than 1024 MB of text, or packs it too tightly"):
        list(text.lines(path))
