"""The package as a whole: what importing it costs, the documents, and the direction of its imports."""

import doctest
import graphlib
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_multiclass as tm

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_importing_loads_torch_and_numpy_only():
    heavy = ("lightning", "pytorch_lightning", "torchmetrics", "sklearn", "scipy", "matplotlib", "pandas")
    code = f"import sys, torch_multiclass; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


LAZY = """
import pickle, sys, torch
import torch_multiclass as tm
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("torch_multiclass.")}
assert not loaded & {"bounds", "heads", "losses", "metrics", "plots", "scorers", "solvers"}, loaded
known = dir(torch.ops.torch_multiclass)
assert {*tm.__all__, "heads", "metrics", "__version__"} <= set(dir(tm))
from torch_multiclass import *
from torch_multiclass import OneVsAllHead, solvers
assert all(globals()[name] is getattr(tm, name) for name in tm.__all__)
assert tm.heads.OneVsAllHead is OneVsAllHead is pickle.loads(pickle.dumps(OneVsAllHead))
assert tm.metrics.__name__ == "torch_multiclass.metrics" and "OneVsAllHead" in vars(tm)
for name in ("Nonsense", "_nonsense", "__nonsense__", "heads.coded"):
    try:
        getattr(tm, name)
    except AttributeError as error:
        assert str(error) == f"module 'torch_multiclass' has no attribute {name!r}", error
    else:
        raise AssertionError(name)
assert dir(torch.ops.torch_multiclass) == known, "an operator came late"
"""


@pytest.mark.slow
def test_names_come_when_they_are_asked_for():
    """As users see it all are there; as the clock sees it, only scores are, and the operators of saved programs."""
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_imports_go_one_way():
    pytest.importorskip("importlinter")
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_imports_itself_by_a_detour():
    """Not through its own package either, nor for annotations only: drawn as a picture, imports have no circle."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("torch_multiclass", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = list(graphlib.TopologicalSorter(imports).static_order())  # CycleError names the circle
    assert order[-1] != order[0]
    assert "torch_multiclass.scores.base" in order


PUBLIC = ("bounds", "codes", "costs", "functional", "kernels", "margins", "metrics", "plots", "preferences", "solvers")
ROLES = {"decoders", "heads", "integrations", "losses", "reports", "scorers", "scores", "spans", "tags"}
LONGEST = 350


def test_every_file_is_short():
    lines = {file: len(file.read_text().splitlines()) for file in (ROOT / "torch_multiclass").rglob("*.py")}
    assert {str(file.relative_to(ROOT)): n for file, n in lines.items() if n > LONGEST} == {}


def test_every_public_name_exists_and_is_documented():
    for name in tm.__all__:
        assert getattr(tm, name).__doc__, name
    for name in tm.functional.__all__:
        assert ">>>" in getattr(tm.functional, name).__doc__, name


def test_every_module_imports():
    """Every file of the package is a module that imports and says what it is for."""
    found = {module.name for module in pkgutil.walk_packages(tm.__path__, "torch_multiclass.", onerror=pytest.fail)}
    package = ROOT / "torch_multiclass"
    files = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in package.rglob("*.py")}
    assert found == {name.removesuffix(".__init__") for name in files} - {"torch_multiclass"}
    for name in found:
        if "integrations" not in name:
            assert importlib.import_module(name).__doc__, name


def snippets():
    text = (ROOT / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("number", range(len(snippets())))
def test_readme_snippets_run(number):
    code = snippets()[number]
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, {}, f"README snippet {number}", "README.md", 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
    else:
        exec(compile(code, f"README snippet {number}", "exec"), {})


def test_the_version_is_one():
    assert f'version = "{tm.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {tm.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_what_is_installed_and_claimed_agrees():
    """The Python and torch that the README promises are those of the metadata and of the hosted tests."""
    project, readme = (ROOT / "pyproject.toml").read_text(), (ROOT / "README.md").read_text()
    hosted = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    python = re.search(r'requires-python = ">=([\d.]+)"', project)[1]
    torch_ = re.search(r'"torch>=([\d.]+)"', project)[1]
    assert f"Python ≥ {python} and torch ≥ {torch_}" in readme
    assert f'{{ python: "{python}", torch: "{torch_}.0" }}' in hosted
    for listed in re.findall(r"Programming Language :: Python :: (3\.\d+)", project):
        assert f'"{listed}"' in re.search(r"python: \[(.*)\]", hosted)[1]


def test_the_readme_says_what_its_commands_need():
    """Beside the commands, and in the line that installs it: the library alone lacks what they import."""
    parts = (ROOT / "README.md").read_text().split("\n## ")
    install, commands = (next(part for part in parts if part.startswith(name)) for name in ("Install", "Two commands"))
    assert "'.[recipes]'" in next(line for line in install.splitlines() if "torch-multiclass" in line)
    assert "`'.[recipes]'`" in commands.partition("```")[0]


def test_every_dependency_is_pinned():
    """What the extras name, `make` installs in one version."""
    project, pins = (ROOT / "pyproject.toml").read_text(), (ROOT / "constraints.txt").read_text()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in pins.splitlines() if "==" in line}
    named = re.search(r"\ndependencies = .*?\n\n\[tool", project, re.DOTALL)[0]
    for name in re.findall(r'"([A-Za-z][\w-]*)(?:\[[a-z]+\])?(?:[<>=!,\d.]*)"', named):
        assert name == "torch_multiclass" or name.lower().replace("_", "-") in pinned, name


@pytest.mark.parametrize("name", ["", *PUBLIC])
def test_dir_shows_what_is_for_users(name):
    module = getattr(tm, name) if name else tm
    shown = {part for part in dir(module) if not part.startswith("__")}
    assert {*module.__all__} <= shown
    assert all(hasattr(module, part) for part in shown)
    rest = shown - {*module.__all__}
    assert rest == (ROLES if not name else set())
