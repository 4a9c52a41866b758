"""What a picture shows is what it was given."""

import builtins
import importlib
from typing import NamedTuple

import numpy as np
import pytest
import torch

from torch_multiclass import codes, plots
from torch_multiclass.solvers import DecisionTree


class Step(NamedTuple):
    iteration: int
    seconds: float
    primal: float
    dual: float


STEPS = [Step(0, 0.0, 4.0, 0.0), Step(1, 0.5, 2.0, 1.0), Step(2, 0.7, 3.0, 0.5), Step(3, 1.0, 2.0, 1.9)]
CALLS = {
    "code": ([[1, -1], [-1, 0]],),
    "confusion": ([[3, 1], [0, 2]],),
    "errors": ([0.1, 0.2],),
    "gap": (STEPS,),
    "margin_distribution": ([0.0, 1.0], [0.1, 0.9]),
    "margins": ([0.5, -0.5],),
    "reliability": ([1, 8], [0.9, 7.2], [2, 9]),
    "rounds": ([0.9, 0.5],),
    "transitions": ([[0.0, 1.0], [1.0, 0.0]],),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_are_given_back_or_made(name, axes):
    from matplotlib import pyplot

    draw = getattr(plots, name)
    assert draw(*CALLS[name], axes) is axes
    pyplot.switch_backend("agg")
    assert draw(*CALLS[name]) is not axes
    pyplot.close("all")


@pytest.mark.parametrize("name", [*CALLS, "tree"])
def test_what_is_no_axes_is_named(name, axes):
    given = CALLS[name] if name in CALLS else (DecisionTree(max_leaves=2).fit(torch.eye(2), torch.arange(2)),)
    for wrong in (axes.figure, [axes], "axes"):
        with pytest.raises(TypeError, match=r"axes: got .*; accepted are axes of matplotlib"):
            getattr(plots, name)(*given, wrong)


def test_every_picture_is_tried():
    assert {*CALLS, "tree"} == set(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_without_matplotlib_the_extra_is_named(name, monkeypatch):
    genuine = builtins.__import__

    def missing(module, *rest, **more):
        if module.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return genuine(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch_multiclass\[plots\]'"):
        getattr(plots, name)(*CALLS[name])


def test_margins(axes):
    """Every row is in a bar, those of 0 and below in red ones left of 0."""
    values = torch.tensor([-2.0, -0.1, 0.0, 0.0, 0.1, 3.0, float("nan"), float("inf")])
    plots.margins(values, axes)
    bars = {True: 0.0, False: 0.0}
    for bar in axes.patches:
        bars[bar.get_x() + bar.get_width() / 2 > 0] += bar.get_height()
    assert bars == {True: 2, False: 4}
    assert axes.get_title() == "median 0, lowest −2"


def test_margins_beyond_the_limits_are_kept(axes):
    plots.margins([-50.0, 0.5, 70.0], axes, limits=(-1.0, 1.0))
    assert sum(bar.get_height() for bar in axes.patches) == 3
    assert axes.get_xlim()[0] > -1.5
    assert axes.get_xlim()[1] < 1.5


@pytest.mark.parametrize("values", [[], [float("nan")]])
def test_no_margins(values, axes):
    assert plots.margins(values, axes).get_title() == "no finite margin"


def test_one_margin(axes):
    assert sum(bar.get_height() for bar in plots.margins([0.0], axes).patches) == 1


def test_reliability(axes):
    right, confidence, count = [0, 3, 4], [0.2, 2.4, 4.5], [0, 4, 5]
    plots.reliability(right, confidence, count, axes)
    assert [bar.get_x() for bar in axes.patches[:2]] == pytest.approx([1 / 3, 2 / 3])  # an empty bin has no bar
    assert [bar.get_height() for bar in axes.patches[:2]] == pytest.approx([0.75, 0.8])
    assert axes.lines[1].get_ydata().tolist() == pytest.approx([4 / 9, 5 / 9])
    assert axes.get_title().startswith(f"calibration error {(0.2 + 0.6 + 0.5) / 9:.3f}, 9 ")


def test_confusion(axes):
    counts, cost = [[8, 2, 1], [0, 9, 3], [4, 0, 7], [1, 0, 0]], [[0, 1, 5], [1, 0, 0], [5, 1, 0], [1, 1, 1]]
    plots.confusion(counts, axes, labels=["cat", "dog", "hen", "new"], cost=cost)
    words = {text.get_text() for text in axes.texts}
    assert words == {"8", "2", "1", "9", "3", "4", "7"}
    assert axes.get_title() == "11 of 35 wrong, cost 28"
    shade = axes.images[0].get_array()
    assert np.allclose(shade[1, 0], 0)  # never given: white
    assert shade[2, 0, 1] < shade[0, 2, 1] < shade[0, 1, 1]  # the more it costs, the redder: 20, 5, 2
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cat", "dog", "hen", "new"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["cat", "dog", "hen"]


def test_errors(axes):
    shares = torch.tensor([0.1, float("nan"), 0.3])
    plots.errors(shares, axes, names=["a", "b", "c"], intervals=[[0.05, 0.2], [np.nan] * 2, [0.2, 0.5]])
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([10, 30])
    assert axes.get_ylim()[1] >= 50


def test_code(axes):
    matrix = codes.one_vs_one(4)
    shade = plots.code(matrix, axes).images[0].get_array()
    assert (shade[..., 0] == 1).tolist() == (matrix == 0).tolist()
    dark = (shade[..., 0] < 0.5) & (shade[..., 3] == 1)
    assert dark.tolist() == (matrix == 1).tolist()


def test_transitions(axes):
    weights = torch.tensor([[0.0, -torch.inf], [1.0, 2.0]])
    image = plots.transitions(weights, axes, start=[3.0, 4.0], end=[5.0, -torch.inf], labels=["O", "B"]).images[0]
    assert np.ma.filled(image.get_array(), np.nan) == pytest.approx(
        np.array([[3, 4, np.nan], [0, -10, 5], [1, 2, -10]]), nan_ok=True
    )  # twice below the scale: black
    assert image.get_clim() == (-5, 5)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["O", "B", "end"]


def test_gap(axes):
    line = plots.gap(STEPS, axes, against="iteration", label="one").lines[0]
    assert line.get_ydata().tolist() == pytest.approx([1.0, 0.5, 0.5, 0.05])  # of the best so far
    assert line.get_xdata().tolist() == [0, 1, 2, 3]


def test_rounds(axes):
    lines = plots.rounds([0.9, 0.5], axes, errors={"test": [0.4, 0.3]}).lines
    assert [line.get_ydata().tolist() for line in lines] == [[0.4, 0.3], [0.9, 0.5]]
    assert axes.get_ylim()[1] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("margins", ([[0.5]],), {}, "margin: got 2 dimensions"),
        ("margin_distribution", ([0.0], [0.1, 0.2]), {}, r"shares: got shape \(2,\)"),
        ("reliability", ([1], [0.5], [1, 2]), {}, r"count: got shape \(2,\)"),
        ("confusion", ([[1, 2]],), {}, r"counts: got shape \(1, 2\)"),
        ("confusion", ([[1]],), {"cost": [[1, 2]]}, r"cost: got shape \(1, 2\)"),
        ("confusion", ([[1]],), {"labels": ["a", "b"]}, "labels: got 2 names; accepted are 1"),
        ("errors", ([0.1],), {"intervals": [[0, 1], [0, 1]]}, r"intervals: got shape \(2, 2\)"),
        ("code", ([[2, 1]],), {}, "matrix: holds 2"),
        ("transitions", ([[1.0, 2.0]],), {}, r"weights: got shape \(1, 2\)"),
        ("transitions", ([[1.0]],), {"end": [1.0, 2.0]}, r"end: got shape \(2,\)"),
        ("gap", ([],), {}, "history: holds no step"),
        ("gap", (STEPS,), {"against": "passes"}, "against: got 'passes'"),
        ("rounds", ([0.5],), {"errors": {"test": [0.1, 0.2]}}, "errors: test has shape"),
    ],
)
def test_bad_input(name, arguments, options, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=message):
        getattr(plots, name)(*arguments, **options)


def test_a_broken_matplotlib_says_what_it_lacks(monkeypatch):
    style = importlib.import_module("torch_multiclass.plots.style")
    genuine = builtins.__import__

    def broken(module, *rest, **more):
        if module == "matplotlib":
            raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")
        return genuine(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(ModuleNotFoundError, match="kiwisolver"):
        style.matplotlib()
