"""What the pictures share: colours, axes, and the error where matplotlib is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from torch_multiclass import checks as check

Numbers = Tensor | npt.NDArray[Any] | Sequence[Any]

INK, MUTED, RIGHT, WRONG = "#222222", "#777777", "#2a6f97", "#c1121f"
CLASSES = ("#2a6f97", "#e09f3e", "#588157", "#7b5ea7", "#8d6b4f", "#3fb5b5", "#5c677d", "#b5c21d")
"""A colour each; none is red, which is for what is wrong."""
STYLE = {
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}
"""For ``matplotlib.rc_context``."""


def matplotlib() -> Any:
    """The library, which is asked for by the first picture."""
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        raise ModuleNotFoundError(
            "matplotlib: is not installed; pictures need it: pip install 'torch_multiclass[plots]'", name="matplotlib"
        ) from missing
    return matplotlib


def canvas(axes: Any) -> Any:
    """The axes given, or new ones."""
    check_axes("axes", axes)
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(layout="constrained")
    return axes


def counting(axis: Any, *, log: bool = False) -> None:
    """Ticks of an axis that counts: at whole numbers, on a logarithmic one at 1, 2, 5, 10 and so on."""
    from matplotlib import ticker

    if log:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
        axis.set_minor_formatter(ticker.NullFormatter())
        axis.set_major_formatter("{x:g}")
    else:
        axis.set_major_locator(ticker.MaxNLocator("auto", integer=True))


def check_axes(name: str, given: Any) -> None:
    """Raise unless they are axes of matplotlib, or None."""
    matplotlib()
    from matplotlib.axes import Axes

    if given is not None and not isinstance(given, Axes):
        raise TypeError(
            f"{name}: got {check.shown(given)}; accepted are axes of matplotlib, such as one of those that "
            "pyplot.subplots() gives, or None"
        )


def numbers(name: str, given: Any, dims: int = 1, *, least: float | None = None) -> npt.NDArray[np.float64]:
    """An array in float64 of so many dimensions; of finite numbers from ``least`` on, where one is given."""
    tensor = check.numbers(name, given, f"numbers in {dims} dimensions", booleans=True)
    check.with_values(name, tensor)
    array = np.asarray(tensor.detach().cpu().double() if isinstance(given, Tensor) else given, dtype=np.float64)
    if array.ndim != dims:
        raise ValueError(f"{name}: got {array.ndim} dimensions, of shape {array.shape}; accepted are {dims}")
    if least is not None:
        odd = array[~(np.isfinite(array) & (array >= least))]
        if odd.size:
            bound = "" if least == -np.inf else f" >= {least:g}"
            raise ValueError(f"{name}: holds {odd[0]:g}; accepted are finite numbers{bound}")
    return array


def labelled(name: str, given: Any, count: int, missing: int | None = None) -> npt.NDArray[np.int64]:
    """Labels in one dimension, ``0..count-1`` or ``missing``."""
    values = numbers(name, given)
    odd = values[~(((values >= 0) & (values < count) & (values == values.round())) | (values == missing))]
    if odd.size:
        also = "" if missing is None else f" and {missing}"
        raise ValueError(f"{name}: label {odd[0]:g} is outside 0..{count - 1} ({count} classes){also}")
    return values.astype(np.int64)


def text(name: str, given: object, *, optional: bool = False) -> None:
    """Raise unless it is a string (or None)."""
    if not isinstance(given, str) and not (optional and given is None):
        raise TypeError(f"{name}: got {check.shown(given)}; accepted is a string")


def named(name: str, given: Sequence[str] | None, count: int) -> list[str]:
    """Names, by default numbers."""
    if given is None:
        return [str(i) for i in range(count)]
    check.label_names(name, given)
    if len(given) != count:
        raise ValueError(f"{name}: got {len(given)} names; accepted are {count}")
    return [str(each) for each in given]


def mixed(color: str, strength: float) -> tuple[float, float, float]:
    """A colour thinned with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(color))
    return red, green, blue


def frameless(axes: Any) -> None:
    """No ticks and no frame around a table of colours."""
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def minus(text: str) -> str:
    """With a minus sign in place of a hyphen."""
    return text.replace("-", "−")
