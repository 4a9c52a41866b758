"""The loader of the native library: whatever it meets, it says so, and torch computes."""

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.ops import _native

ROOT = Path(__file__).parents[2]
here = pytest.mark.skipif(_native.library() is None, reason=_native.backends()["native"])


@pytest.fixture
def copy(tmp_path):
    """The library's folder, to be spoilt."""
    return Path(shutil.copytree(_native.FOLDER, tmp_path / "_native"))


def spoil_note(folder, **changes):
    note = folder / "library.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), **changes}))


def refused(folder, switch=""):
    """Why a library is not used; there is exactly one warning, and it says so."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        library, why = _native.find(folder, switch)
    assert library is None
    assert [str(warning.message) for warning in seen] == [f"the native library is {why}"]
    return why


def test_a_package_without_library_says_so_and_warns_of_nothing(tmp_path):
    assert _native.find(tmp_path, "") == (None, "not used: this installation has none")


@here
def test_it_is_turned_off_by_a_variable(copy):
    assert _native.find(copy, "0") == (None, "not used: TORCH_MULTICLASS_NATIVE=0 turns it off")


@here
@pytest.mark.parametrize("switch", ["", "1"])
def test_the_level_of_the_processor_is_taken(copy, switch):
    library, why = _native.find(copy, switch)
    assert library.level == _native.level()
    assert why == f"in use: {library.path}"


@here
@pytest.mark.parametrize("cut", [0, 100, 0.5, -1])
def test_a_damaged_file_is_not_loaded(copy, cut):
    path = next(copy.glob(f"{_native.level()}.*"))
    content = path.read_bytes()
    keep = int(cut * len(content)) if isinstance(cut, float) else cut
    path.write_bytes(content[:keep] if keep >= 0 else content[:-8] + b"damaged!")
    assert re.search("is damaged$", refused(copy))


@here
def test_a_file_of_another_kind_is_not_loaded(copy):
    import hashlib

    path = next(copy.glob(f"{_native.level()}.*"))
    path.write_bytes(b"not a library")
    spoil_note(copy, sha256={path.name: hashlib.sha256(b"not a library").hexdigest()})
    assert "cannot be loaded" in refused(copy)


@here
def test_another_version_is_not_loaded(copy):
    spoil_note(copy, abi=_native.ABI + 1)
    assert f"of version {_native.ABI + 1}, and version {_native.ABI} is needed" in refused(copy)


@here
def test_another_machine_is_not_loaded(copy):
    spoil_note(copy, machine="z80")
    assert "is made for z80" in refused(copy)


@here
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"abi": 1, "machine": "x", "sha256": 3}'])
def test_a_note_that_cannot_be_read_is_no_note(copy, content):
    (copy / "library.json").write_text(content)
    assert "library.json cannot be read" in refused(copy)


@here
def test_a_file_that_is_gone(copy):
    next(copy.glob(f"{_native.level()}.*")).unlink()
    assert "cannot be read" in refused(copy)


@here
def test_a_level_that_does_not_exist_is_named(copy):
    assert "has no loops for 'avx3'" in refused(copy, "avx3")


@here
def test_the_sources_and_the_loader_agree():
    found = re.search(r"#define TM_ABI (\d+)", (ROOT / "native" / "abi.h").read_text())
    assert found is not None
    assert int(found[1]) == _native.ABI


@here
def test_each_file_is_small():
    assert all(path.stat().st_size < 300_000 for path in _native.FOLDER.iterdir())


def run_python(code, **variables):
    variables = {"PYTHONPATH": str(ROOT), **variables}
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


CHAIN = """
import torch, torch_multiclass as tm
scores = tm.ChainScores(torch.arange(12.0).view(1, 4, 3).sin(), torch.eye(3))
print(scores.log_partition().item())
print(tm.backends()["native"].split(":")[0])
"""


def test_turned_off_everything_works():
    value, why = run_python(CHAIN, TORCH_MULTICLASS_NATIVE="0").splitlines()
    assert why == "not used"
    expected = tm.ChainScores(torch.arange(12.0).view(1, 4, 3).sin(), torch.eye(3)).log_partition().item()
    assert float(value) == pytest.approx(expected, rel=1e-6)


def test_importing_loads_nothing():
    code = "import torch_multiclass; from torch_multiclass.ops import _native; print(_native._State.looked)"
    assert run_python(code).strip() == "False"


def test_backends_say_what_computes():
    found = tm.backends()
    assert found["native"].startswith(("in use: ", "not used: "))
    assert found["torch"].startswith(torch.__version__)


def test_without_a_compiler_one_line_is_said(tmp_path):
    script = [sys.executable, str(ROOT / "native" / "build.py"), str(tmp_path)]
    (tmp_path / "library.json").write_text("{}")  # what another build has left
    found = subprocess.run(script, env={**os.environ, "CXX": "no-such-compiler"}, capture_output=True, text=True)
    assert found.returncode == 0
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
    assert "torch computes everything" in found.stderr
    assert list(tmp_path.iterdir()) == []


@here
def test_what_is_built_is_not_built_again():
    code = "import runpy; b = runpy.run_path('native/build.py'); print(*b['present'](b['TARGET'], 'other sources'))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() == ""
