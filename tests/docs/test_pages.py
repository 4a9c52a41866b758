"""The pages of the site: their cells run, their values hold, and what they name is public."""

import doctest
import importlib
import inspect
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROOT = DOCS.parent
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts and path.parent.name != "results")
FENCE = re.compile(r"^```(\{code-cell\} python|python)\n((?::[^\n]*\n)*)(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
EQUATION = re.compile(r"\(9\.\d+\)")


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("pages")
    sys.modules.pop("pages")


def page(path):
    name = path.relative_to(DOCS).with_suffix("").as_posix()
    minutes = (pytest.mark.exhaustive, pytest.mark.timeout(900))  # it trains by the recipes, as `make docs` does too
    return pytest.param(path, id=name, marks=minutes if name == "gallery" else ())


@pytest.mark.parametrize("path", [page(path) for path in PAGES if FENCE.search(path.read_text(encoding="utf-8"))])
def test_what_a_page_runs_runs_and_what_it_shows_holds(path, monkeypatch):
    """Cells, and examples with `>>>` among them, one after the other in one namespace."""
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.chdir(ROOT)
    space, absent = {}, []
    for number, (_, options, code) in enumerate(FENCE.findall(path.read_text(encoding="utf-8"))):
        needed = re.search(r"^:needs: (\w+)|^# needs (\w+)", options + code)  # the second is shown, and not run there
        missing = [name for name in needed.groups() if name and find_spec(name) is None] if needed else []
        if missing:
            absent += missing
        elif ">>> " in code:
            test = doctest.DocTestParser().get_doctest(code, space, f"{path.name} {number}", str(path), 0)
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            assert doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False).failed == 0
            space.update(test.globs)
        else:
            exec(compile(code, f"{path.name} cell {number}", "exec"), space)
    pyplot.close("all")
    if absent:
        pytest.skip(f"the other cells hold; not installed: {', '.join(absent)}")


@pytest.mark.parametrize("path", [page(path) for path in PAGES])
def test_every_link_into_the_reference_leads_somewhere(path, pages):
    """Links are plain code, so that a page reads well as a file: a module of ours before a dot holds the name."""
    text = path.read_text(encoding="utf-8")
    assert "{py:" not in text
    for code in CODE.findall(FENCE.sub("", text)):
        module, _, name = code.partition("(")[0].removeprefix("tm.").rpartition(".")
        if module in pages.MODULES and (module != "scores" or name[0].isupper()):  # else a variable of that name
            assert name in pages.public(module), f"{module}.{name}"
            assert pages.target(code) == f"torch_multiclass.{module}.{name}"


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("CRFLoss", "losses.CRFLoss"),
        ("CRFLoss()", "losses.CRFLoss"),
        ("MarginLoss", "ops.margins.MarginLoss"),
        ("tm.bounds.held_out_error", "bounds.held_out_error"),
        ("codes.one_vs_all", "codes.one_vs_all"),
        ("M3NLoss(cost=...)", "losses.M3NLoss"),
        ("TemperatureScaling", "calibration.TemperatureScaling"),
        ("report", None),
        ("partial_fit", None),
        ("torch.nn.Linear", None),
        ("head.calibrate(scores, y)", None),
        ("CRFLoss, M3NLoss", None),
    ],
)
def test_what_code_links_to(code, place, pages):
    assert pages.target(code) == (place and f"torch_multiclass.{place}")


def test_the_names_of_the_tables_link(pages):
    for page, least in {"choose": 20, "theory": 60, "concepts/structures": 7, "concepts/losses": 7}.items():
        names = CODE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
        assert sum(pages.target(name) is not None for name in names) >= least


def test_every_equation_is_on_the_page_of_the_theory():
    """Those of the chapter, and whatever the package refers to."""
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    ranges = re.findall(r"\(9\.(\d+)\)(?:–|, )\(9\.(\d+)\)", page)
    shown = {f"(9.{number})" for first, last in ranges for number in range(int(first), int(last) + 1)}
    shown |= set(EQUATION.findall(page))
    assert shown == {f"(9.{number})" for number in range(1, 27)}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "torch_multiclass").rglob("*.py")]
    assert {equation for source in sources for equation in EQUATION.findall(source)} <= shown


def test_every_loss_and_head_is_on_the_page_of_the_theory():
    """With the equation that it is, and whose it is; what only others derive from has none."""
    import torch_multiclass as tm

    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    named = {name for code in CODE.findall(page) for name in re.findall(r"\w+", code)}
    assert {*tm.losses.__all__, *tm.heads.__all__} - {"Loss", "Head", "CodedHead"} <= named


def test_every_name_on_the_page_of_the_theory_is_found_from_the_package():
    """As it is written there, behind ``tm.``."""
    import torch_multiclass as tm

    page = FENCE.sub("", (DOCS / "theory.md").read_text(encoding="utf-8"))
    for code in CODE.findall(page):
        place = tm
        for part in code.partition("(")[0].removeprefix("tm.").split("."):
            place = getattr(place, part)


def test_every_term_of_a_bound_is_on_its_page():
    from tests.bounds.test_bounds import EVERY
    from torch_multiclass import bounds

    page = (DOCS / "concepts" / "bounds.md").read_text(encoding="utf-8")
    asked = [(name, given) for name, given in EVERY.items() if name != "confidence_runs"]
    asked += [("boosting_error", {"product": 0.5, "kind": "mr", "num_classes": 3})]
    terms = {term for name, given in asked for term in getattr(bounds, name)(**given).terms}
    assert terms <= set(CODE.findall(page))


UNWRITTEN = {
    "scores": "FlatScores Decoded segment_tags",
    "scorers": "AttributeScorer AveragedScorer Chain ChainScorer CodedScorer ColumnsScorer ContinuousCodeScorer "
    "LabelTreeScorer LinearScorer MultilabelScorer NetworkScorer NystromFeatures NystromScorer OutsideScorer "
    "RandomFourierFeatures RandomFourierScorer SecondOrderScorer SegmentScorer TreeScorer",  # a head or solver has each
    "functional": "adaboost_loss coded_loss crammer_singer_loss m3n_loss margin_ramp_loss svmstruct_bounds "
    "structured_perceptron_loss svmstruct_loss weston_watkins_loss",  # the losses, under their names
    "decoders": "RankingDecoder SignDecoder TournamentDecoder",
    "heads": "CodedHead",
    "solvers": "BinaryLearner BinaryLeastSquares BinaryLogistic ColumnsReport ConfidenceReport Fit ForestReport "
    "Interrupted PegasosReport PlaneCertificate Planes RandomTrees Report Solver WinnowReport planes",
    "codes": "OneVsAll OneVsOne by_name check hadamard minimal name_of",
    "costs": "Cost as_cost",
    "kernels": "Function Kernel Precomputed as_kernel",
    "ops.margins": "MarginLossLike as_margin_loss register",
    "tags": "SCHEMES Constraints",
    "bounds": "Bound RademacherComplexity",  # what functions give
    "reports": "HeadReport Section",
    "metrics": "BitError HierarchicalError MulticlassHinge",
    "plots": "margin_distribution",
    "integrations.sklearn": "EpochsReport",
    "integrations.network": "NetworkLearner NetworkReport",
    "integrations.duality_gap": "DualityGap",
}
"""What only the reference names: bases, records that functions return, parts that another public name is made of."""


def test_every_public_name_is_on_a_written_page(pages):
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*PAGES, ROOT / "README.md"])
    words = set(re.findall(r"\w+", text))
    for module in pages.MODULES:
        left = set(pages.public(module)) - words - set(UNWRITTEN.get(module, "").split())
        assert not left, f"{module}: {sorted(left)} stand on no page of docs/, and are no exception"
    for module, names in UNWRITTEN.items():
        if module in pages.MODULES:
            assert not set(names.split()) & words, f"{module}: written about now, and no exception"


def test_the_reference_holds_every_public_name(pages):
    import torch_multiclass as tm

    names = {name for module in pages.MODULES for name in pages.public(module)} | set(pages.alone())
    assert {name for name in tm.__all__ if not inspect.ismodule(getattr(tm, name))} <= names
    assert "autofunction:: backends" in pages.contents()


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 120


def test_what_is_on_record_is_on_a_page(pages):
    """The whole table of the benchmarks, and what the recipes' README has between its marks."""
    table = (ROOT / "benchmarks" / "results" / "cpu.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\|.*\|$", table, re.MULTILINE)) <= set(pages.performance().splitlines())
    for name in ("digits", "tagging"):
        assert pages.recorded(name) in pages.accuracy()
    with pytest.raises(ValueError, match="marks of nothing"):
        pages.recorded("nothing")
