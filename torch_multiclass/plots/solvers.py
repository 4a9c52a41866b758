"""How a fit went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_multiclass import checks as check
from torch_multiclass.plots.style import INK, MUTED, RIGHT, WRONG, Numbers, canvas, counting, numbers, text


def gap(history: Sequence[Any], axes: Any = None, *, against: str = "seconds", label: str | None = None) -> Any:
    """The relative duality gap, ``(primal - dual) / max(1, |primal|)``, on the way, of the best primal and dual so far.

    Args:
        history: of the report of a certified solver: steps with ``iteration``, ``seconds``, ``primal`` and ``dual``.
        axes: of matplotlib; by default new ones. Several solvers can be drawn into the same.
        against: ``"seconds"`` or ``"iteration"``.
        label: of the curve.

    Returns:
        The axes.

    Raises:
        ValueError: no steps, or another ``against``.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, appendix B, for the gap.

    Example:
        >>> import torch
        >>> from torch_multiclass import plots, solvers
        >>> report = solvers.DualSVM().fit(torch.eye(3), torch.arange(3)).report
        >>> axes = plots.gap(report.history)  # doctest: +SKIP
    """
    check.choice("against", against, ("seconds", "iteration"))
    text("label", label, optional=True)
    if not isinstance(history, (list, tuple)) or not all(hasattr(step, "primal") for step in history):
        raise TypeError(f"history: got {check.shown(history)}; accepted are the steps of a report's history")
    if not history:
        raise ValueError("history: holds no step; accepted is at least one")
    axes = canvas(axes)
    primal = np.minimum.accumulate([step.primal for step in history])
    dual = np.maximum.accumulate([step.dual for step in history])
    relative = np.maximum(primal - dual, 1e-16) / np.maximum(1.0, np.abs(primal))
    at = [getattr(step, against) for step in history]
    axes.plot(at, relative, marker="." if len(at) < 40 else "", label=label)
    axes.set_yscale("log")
    axes.set(xlabel="seconds" if against == "seconds" else "passes", ylabel="relative gap")
    if against == "iteration":
        counting(axes.xaxis)
    if label is not None:
        axes.legend(frameon=False, labelcolor=INK)
    return axes


def rounds(
    bound: Numbers, axes: Any = None, *, errors: dict[str, Numbers] | None = None, label: str = "proved of training"
) -> Any:
    """A bound on the training error after each round of boosting, and errors beside it.

    Args:
        bound: ``(T,)``.
        axes: of matplotlib; by default new ones.
        errors: ``(T,)`` errors, by the name of what they are measured on.
        label: what is proved.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.2.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.rounds([0.9, 0.7, 0.5], errors={"test": [0.5, 0.4, 0.4]})  # doctest: +SKIP
    """
    text("label", label)
    if errors is not None and not (isinstance(errors, dict) and all(isinstance(name, str) for name in errors)):
        raise TypeError(f"errors: got {check.shown(errors)}; accepted is a dictionary of errors by their names")
    proved = numbers("bound", bound, least=-np.inf)
    if not len(proved):
        raise ValueError("bound: holds no round; accepted is at least one")
    axes, at = canvas(axes), np.arange(1, len(proved) + 1)
    most = 0.0
    for (name, given), color in zip((errors or {}).items(), (WRONG, RIGHT, INK, MUTED), strict=False):
        error = numbers("errors", given, least=-np.inf)
        if error.shape != proved.shape:
            raise ValueError(f"errors: {name} has shape {error.shape}; accepted is that of bound, {proved.shape}")
        axes.plot(at, error, color=color, label=f"{name}, {error[-1]:.1%} at the end")
        most = max(most, float(error.max()))
    axes.plot(at, proved, color=MUTED, linestyle="--", label=label)
    top = min(1.05, 1.5 * most) if most else 1.05
    axes.set(xlabel="rounds", ylabel="error", ylim=(-0.03 * top, top))  # what is 0 is seen above the axis
    counting(axes.xaxis)
    axes.legend(frameon=False, labelcolor=INK)
    return axes
