"""A picture of a tree says of every node what its text says."""

import pytest
import torch

from torch_multiclass import plots
from torch_multiclass.plots import trees
from torch_multiclass.solvers import DecisionTree

REPORT = DecisionTree().fit(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([0, 1, 1, 0])).report


def test_a_tree():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    axes = plots.tree(REPORT, names=["width"], labels=["cat", "dog"])
    words = [text.get_text() for text in axes.texts]
    nodes = REPORT.grown.tree.nodes
    assert [word for word in words if word not in ("yes", "no")] == [
        REPORT.says(node, ["width"], ["cat", "dog"]).replace(" (", "\n(", 1) for node in range(nodes)
    ]
    assert len(axes.lines) == words.count("yes") + words.count("no") == nodes - 1
    assert plots.tree(REPORT, axes) is axes
    pyplot.close("all")


def test_nodes_stand_between_their_children():
    tree = REPORT.grown.tree
    across = trees.places(tree.yes, tree.no)
    assert sorted(across[tree.is_leaf].tolist()) == list(range(tree.leaves))
    for node in range(tree.nodes):
        if tree.feature[node] >= 0:
            assert across[tree.yes[node]] < across[node] < across[tree.no[node]]


@pytest.mark.parametrize("width", [3.0, 8.0])
def test_boxes_fit_into_axes_that_are_given(width):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(300, 2, generator=draw), torch.randint(3, (300,), generator=draw)
    report = DecisionTree(max_leaves=8).fit(x, y).report
    _, axes = pyplot.subplots(figsize=(width, 5))
    plots.tree(report, axes, names=["od280/od315 of diluted wines", "flavanoids"], labels=["Barbera", "b", "c"])
    axes.figure.canvas.draw()
    boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts if text.get_bbox_patch()]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    assert all(axes.figure.bbox.x0 <= box.x0 and box.x1 <= axes.figure.bbox.x1 for box in boxes)
    pyplot.close("all")


def test_no_box_covers_another():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    draw = torch.Generator().manual_seed(0)
    for leaves in (1, 2, 5, 12, 30):
        x, y = torch.randn(300, 4, generator=draw), torch.randint(3, (300,), generator=draw)
        axes = plots.tree(DecisionTree(max_leaves=leaves).fit(x, y).report, names=["a quite long name", *"bcd"])
        axes.figure.canvas.draw()
        boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts if text.get_bbox_patch()]
        assert len(boxes) == 2 * leaves - 1
        assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
        assert all(axes.figure.bbox.x0 <= box.x0 and box.x1 <= axes.figure.bbox.x1 for box in boxes)
    pyplot.close("all")
