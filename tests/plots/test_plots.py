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
    "marginals": (["a", "cat"], [[0.9, 0.1], [0.3, 0.7]]),
    "misread": (np.eye(4).reshape(2, 2, 4), [0, 1], [[0.4, 0.6], [0.2, 0.8]]),
    "regions": (lambda rows: (rows[:, 0] > 0).long(), [[-1.0, 0.0], [1.0, 0.5]], [0, 1]),
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
    assert axes.get_xlabel() == "margin; hatched: 1 further left, 1 further right"
    assert sum(bool(bar.get_hatch()) for bar in axes.patches) == 2
    shown = [(round(bar.get_x() + bar.get_width() / 2, 3), bar.get_height()) for bar in axes.patches]
    within = [middle for middle, count in shown if count]
    assert min(within) == min(middle for middle, _ in shown)  # those beyond are in the outermost bars
    assert max(within) == max(middle for middle, _ in shown)


def test_margins_within_the_limits_are_not_marked(axes):
    plots.margins([-0.5, 0.5, 0.7], axes, limits=(-1.0, 1.0))
    assert axes.get_xlabel() == "margin"
    assert not any(bar.get_hatch() for bar in axes.patches)


def test_the_key_of_reliability_covers_no_bar(axes):
    plots.reliability([1, 8], [0.9, 7.2], [2, 9], axes)
    axes.figure.canvas.draw()
    key, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert key.y1 <= inside.y0


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


def test_the_gap_of_reliability_is_red_where_too_much_is_stated_and_within_the_bar_where_too_little(axes):
    plots.reliability([0, 3, 4], [0.2, 2.4, 4.5], [0, 4, 5], axes)
    more, less = axes.patches[2:]
    assert (more.get_height(), more.get_y()) == pytest.approx((0.1, 0.8))
    assert (more.get_edgecolor()[0] > 0.7, more.get_facecolor()[3]) == (True, 0)
    assert (less.get_height(), less.get_y()) == pytest.approx((-0.15, 0.75))
    assert less.get_edgecolor()[:3] == (1, 1, 1)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"stated, not right", "right, not stated"} < {*labels}
    axes.clear()
    plots.reliability([3], [3.5], [4], axes)
    assert "right, not stated" not in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("most", [2, 3, 7, 40, 3000])
def test_counts_have_ticks_at_whole_numbers(axes, most):
    plots.margins([0.5] * most + [-0.5], axes)
    axes.figure.canvas.draw()
    bottom, top = axes.get_ylim()
    ticks = [*zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)]
    ticks += zip(axes.get_yticks(minor=True), axes.get_yticklabels(minor=True), strict=True)
    names = {label.get_text() for at, label in ticks if bottom <= at <= top} - {""}
    assert len(names) >= 2
    assert all(name.isdigit() for name in names), names


@pytest.mark.parametrize("name", ["gap", "rounds"])
def test_passes_and_rounds_are_whole(axes, name):
    if name == "gap":
        plots.gap(STEPS, axes, against="iteration")
    else:
        plots.rounds([0.9, 0.5, 0.4], axes)
    assert all(float(at).is_integer() for at in axes.get_xticks())


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


def test_regions(axes):
    """The half plane right of 0.5 is class 1; one of three points lies on the wrong side."""
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.75, 0.2]])
    plots.regions(lambda rows: (rows[:, 0] > 0.5).long(), points, [0, 1, 0], axes, labels=["low", "high"], steps=50)
    shade = axes.images[0].get_array()
    left, right = axes.images[0].get_extent()[:2]
    at = np.linspace(left, right, 50)
    assert (shade == shade[:1]).all(), "nothing changes from bottom to top"
    assert (shade[0, at < 0.5] == shade[0, 0]).all()
    assert (shade[0, at > 0.5] == shade[0, -1]).all()
    assert not np.allclose(shade[0, 0], shade[0, -1])
    assert axes.get_title() == "1 of 3 wrong"
    right_ones, circled = (part.get_offsets().tolist() for part in axes.collections)
    assert circled == pytest.approx(np.array([[0.75, 0.2]]))
    assert len(right_ones) == 2
    assert {text.get_text(): text.get_position() for text in axes.texts}["high"] == (1.0, 1.0)
    assert {text.get_text() for text in axes.texts} == {"low", "high"}


def test_regions_of_points_that_are_one(axes):
    assert plots.regions(lambda rows: torch.zeros(len(rows), dtype=torch.long), [[2.0, 2.0]], [0], axes) is axes


def test_misread(axes):
    """The surest first, over its two best labels, the true one blue; a third line where it is neither."""
    shares = [[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.05, 0.9, 0.05], [0.05, 0.4, 0.55]]
    images = torch.arange(16.0).reshape(4, 2, 2)
    plots.misread(images, [1, 1, 2, 0], shares, axes, labels=["a", "b", "c"], columns=2)
    assert [image.get_array().flat[0] for image in axes.images] == [8, 12, 0]
    words = [text.get_text() for text in axes.texts]
    assert words == ["b  0.90", "a  0.05", "is c", "c  0.55", "b  0.40", "is a", "a  0.50", "b  0.40"]
    assert [text.get_text() for text in axes.texts if text.get_color() == "#2a6f97"] == ["b  0.40"]
    assert axes.get_title() == "3 of 4 misread"
    boxes = [(f.get_x(), f.get_x() + f.get_width(), f.get_y(), f.get_y() + f.get_height()) for f in axes.patches]
    assert np.allclose(boxes, [image.get_extent() for image in axes.images])


def test_only_so_many_are_shown(axes):
    shares = np.column_stack([np.linspace(0.1, 0.4, 5), np.linspace(0.9, 0.6, 5)])
    plots.misread(np.zeros((5, 2, 2)), [0] * 5, shares, axes, most=3)
    assert len(axes.images) == 3
    assert axes.get_title() == "5 of 5 misread, the surest 3"


def test_none_misread(axes):
    assert plots.misread(np.zeros((1, 2, 2)), [1], [[0.1, 0.9]], axes).get_title() == "0 of 1 misread"


def test_marginals(axes):
    """Labels that are nowhere likely are left out, except true ones; the frame of a mistake is red."""
    shares = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.3, 0.7, 0.0, 0.0], [0.99, 0.01, 0.0, 0.0]])
    plots.marginals(["a", "cat", "sat"], shares, axes, labels=list("DNVX"), target=[0, 0, 2])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["D", "N", "V"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "cat", "sat"]
    assert np.allclose(axes.images[0].get_array(), shares[:, :3].T)
    assert [text.get_text() for text in axes.texts] == ["0.90", "0.10", "0.30", "0.70", "0.99"]
    frames = {(round(f.get_x() + 0.48), round(f.get_y() + 0.48)): f.get_edgecolor()[0] > 0.5 for f in axes.patches}
    assert frames == {(0, 0): False, (1, 0): True, (2, 2): True}


def test_marginals_without_gold_have_no_frame(axes):
    assert not plots.marginals(["a"], [[0.9, 0.1]], axes).patches
    assert len(plots.marginals(["a", "b"], [[0.9, 0.1]] * 2, axes, target=[-100, 1]).patches) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("margins", ([[0.5]],), {}, "margin: got 2 dimensions"),
        ("margin_distribution", ([0.0], [0.1, 0.2]), {}, r"shares: got shape \(2,\)"),
        (
            "margin_distribution",
            ([-1.0, 1.0], [10.0, 90.0]),
            {},
            "shares: go from 10 to 90; accepted are shares",
        ),
        ("margin_distribution", ([0.1, 0.9], [-1.0, 1.0]), {}, "shares: go from -1 to 1"),
        ("margin_distribution", ([-1.0, 1.0], [0.9, 0.1]), {}, "shares: go from 0.9 to 0.1"),
        ("margin_distribution", ([1.0, -1.0], [0.1, 0.9]), {}, "thresholds: do not rise"),
        ("reliability", ([1], [0.5], [1, 2]), {}, r"count: got shape \(2,\)"),
        ("confusion", ([[1, 2]],), {}, r"counts: got shape \(1, 2\)"),
        ("confusion", ([[1]],), {"cost": [[1, 2]]}, r"cost: got shape \(1, 2\)"),
        ("confusion", ([[1]],), {"labels": ["a", "b"]}, "labels: got 2 names; accepted are 1"),
        ("errors", ([0.1],), {"intervals": [[0, 1], [0, 1]]}, r"intervals: got shape \(2, 2\)"),
        ("code", ([[2, 1]],), {}, "matrix: holds 2"),
        ("transitions", ([[1.0, 2.0]],), {}, r"weights: got shape \(1, 2\)"),
        ("transitions", ([[1.0]],), {"end": [1.0, 2.0]}, r"end: got shape \(2,\)"),
        ("regions", (len, [[1.0, 2.0, 3.0]], [0]), {}, r"points: got shape \(1, 3\)"),
        ("regions", (len, [[1.0, 2.0]], [0, 1]), {}, r"points: got shape \(1, 2\)"),
        ("regions", (len, [[1.0, 2.0]], [-1]), {}, "target: holds what is no label"),
        ("misread", (np.zeros((2, 4, 4)), [0], [[1.0, 0.0]]), {}, "images: got 2"),
        ("misread", (np.zeros((1, 4, 4)), [0, 1], [[1.0, 0.0]]), {}, "images: got 1"),
        ("marginals", (["a"], [[1.0], [1.0]]), {}, "shares: got 2 rows"),
        ("marginals", (["a"], [[1.0]]), {"target": [0, 0]}, "target: got 2 labels"),
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


@pytest.mark.parametrize(
    ("size", "named", "written"), [(12, True, True), (13, True, False), (40, True, False), (41, False, False)]
)
def test_tables_are_named_and_written_into_while_there_is_room(size, named, written, axes):
    plots.confusion(np.ones((size, size)), axes, labels=[f"class {k}" for k in range(size)])
    assert ("class 3" in [text.get_text() for text in axes.get_xticklabels()]) is named
    assert bool(axes.texts) is written


BAD = {
    "bins": (lambda: plots.margins([1.0], bins=0), "bins: got 0; accepted is"),
    "limits": (lambda: plots.margins([1.0], limits=(1.0, 1.0)), "limits: got .*; accepted are two numbers"),
    "text": (lambda: plots.margins("abc"), "margin: got 'abc'; accepted is numbers"),
    "no values": (lambda: plots.margins(torch.ones(2, device="meta")), "margin: is on meta and has no values"),
    "infinite": (
        lambda: plots.reliability([np.inf], [1.0], [1.0]),
        "right: holds inf; accepted are finite numbers >= 0",
    ),
    "negative": (lambda: plots.confusion([[1.0, -2], [0, 1]]), "counts: holds -2; accepted are finite numbers >= 0"),
    "no columns": (lambda: plots.confusion(np.ones((2, 0))), r"counts: got shape \(2, 0\)"),
    "no code": (lambda: plots.code(np.ones((2, 0))), r"matrix: got shape \(2, 0\)"),
    "label": (
        lambda: plots.misread(np.ones((1, 2, 2)), [5], [[0.5, 0.5]]),
        r"target: label 5 is outside 0..1 \(2 classes\)",
    ),
    "words": (lambda: plots.marginals([1], [[0.5, 0.5]]), "words: holds 1; accepted are strings"),
    "true": (lambda: plots.marginals(["a"], [[0.5, 0.5]], target=[-3]), "target: label -3 is outside 0..1 .* and -100"),
    "of": (lambda: plots.errors([0.1], of=3), "of: got 3; accepted is a string"),
    "function": (lambda: plots.regions(3, [[0.0, 1.0]], [0]), "label_of: got 3; accepted is a function"),
    "steps": (lambda: plots.gap([1.0]), "history: got .*; accepted are the steps"),
    "by name": (lambda: plots.rounds([0.1], errors=[0.1]), "errors: got .*; accepted is a dictionary"),
    "no round": (lambda: plots.rounds([]), "bound: holds no round"),
    "report": (lambda: plots.tree(3), "report: got 3; accepted is the report of a DecisionTree"),
    "names": (lambda: plots.code([[1, -1]], labels="a"), "labels: got 'a'; accepted is a sequence of strings"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_drawn_is_named(kind):
    call, words = BAD[kind]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()


def test_a_tree_has_a_name_for_each_feature_and_class(axes):
    report = DecisionTree(max_leaves=2).fit(torch.eye(2), torch.arange(2)).report
    for given in ({"names": ["a"]}, {"labels": ["a"]}):
        with pytest.raises(ValueError, match=rf"{next(iter(given))}: got 1; accepted is one for each"):
            plots.tree(report, axes, **given)
        with pytest.raises(ValueError, match=rf"{next(iter(given))}: got 1; accepted is one for each"):
            report.text(**given)


def test_the_key_of_costs_begins_at_the_least_that_was_paid(axes):
    """Not at 0, the cost of what was right or free; and not above 1."""
    counts = [[5, 1, 2], [0, 3, 1], [0, 0, 4]]
    for cost, ends in (
        ([[0, 0.5, 0.25], [1, 0, 2], [1, 1, 0]], (0.5, 2.0)),
        ([[0, 3, 4], [1, 0, 5], [1, 1, 0]], (1, 8)),
    ):
        figure = plots.confusion(counts, cost=cost).figure
        assert figure.axes[-1].get_ylim() == pytest.approx(ends)


def test_without_mistakes_there_is_no_scale_of_them():
    assert len(plots.confusion([[3, 0], [0, 2]]).figure.axes) == 1
    assert len(plots.confusion([[3, 1], [0, 2]]).figure.axes) == 2
