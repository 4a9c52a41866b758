"""Every metric draws its value, and names what is missing where matplotlib is."""

import builtins

import pytest
import torch

from tests.metrics import test_contract as contract
from torch_multiclass import metrics

MADE = {
    type(kind().metric()).__name__: kind
    for name, kind in vars(contract).items()
    if name.startswith("Test") and hasattr(kind, "metric")
}


def seen(name):
    made = MADE[name]()
    metric = made.metric()
    metric.update(*made.batch(20))
    return metric


@pytest.fixture
def pyplot():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("name", metrics.__all__)
def test_it_is_drawn(name, pyplot):
    metric = seen(name)
    figure, axes = metric.plot()
    assert figure is axes.figure
    assert axes.lines or axes.patches
    _, own = pyplot.subplots()
    assert metric.plot(ax=own)[1] is own
    metric.plot(metric.compute())


@pytest.mark.parametrize("name", ["EmpiricalMarginLoss", "MeanCost", "ViolatedPreferences", "SpanF1"])
def test_a_curve_over_steps(name, pyplot):
    _, axes = seen(name).plot([torch.tensor(0.5), torch.tensor(0.25), torch.tensor(0.1)])
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([0.5, 0.25, 0.1])


def test_the_pictures_that_are_no_number_show_the_states(pyplot):
    metric = seen("MarginDistribution")
    _, axes = metric.plot()
    assert axes.lines[0].get_xdata().tolist() == metric.thresholds.tolist()
    assert axes.lines[0].get_ydata().tolist() == pytest.approx(metric.compute().tolist())
    metric = seen("BitError")
    _, axes = metric.plot()
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == pytest.approx((100 * metric.compute()).tolist(), abs=1e-4)


@pytest.mark.parametrize("name", metrics.__all__)
def test_without_matplotlib_the_extra_is_named(name, monkeypatch):
    genuine = builtins.__import__

    def missing(module, *rest, **more):
        if module.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return genuine(module, *rest, **more)

    metric = seen(name)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch_multiclass\[plots\]'"):
        metric.plot()


@pytest.mark.parametrize("name", metrics.__all__)
def test_what_is_no_axes_is_named(name, pyplot):
    metric = seen(name)
    figure, pair = pyplot.subplots(1, 2)
    for wrong, shown in (("axes", "'axes'"), (figure, "Figure"), (pair, ""), ((figure, pair[0]), ""), (0, "0")):
        for value in ((), (metric.compute(),)):
            with pytest.raises(TypeError, match=rf"ax: got .*{shown}.*; accepted are axes of matplotlib"):
                metric.plot(*value, ax=wrong)
    assert not pair[0].has_data()
