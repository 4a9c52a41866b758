"""Single rows and sentences, with how sure a classifier is of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_multiclass import checks as check
from torch_multiclass.plots.style import (
    INK,
    MUTED,
    RIGHT,
    WRONG,
    Numbers,
    canvas,
    frameless,
    labelled,
    mixed,
    named,
    numbers,
)

SEEN = 0.02
"""A label with no larger share at any word is left out of the picture of a sentence."""


def misread(
    images: Numbers,
    target: Numbers,
    probabilities: Numbers,
    axes: Any = None,
    *,
    labels: Sequence[str] | None = None,
    columns: int = 6,
    most: int = 18,
) -> Any:
    """The images with another label than their own, the surest first, each over its two best labels; the true is blue.

    Args:
        images: ``(N, H, W)``; the larger a number, the darker.
        target: ``(N,)``, the true labels.
        probabilities: ``(N, K)``.
        axes: of matplotlib; by default new ones.
        labels: ``K`` names.
        columns: images in a row of the picture.
        most: how many are shown at most.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Hendrycks and Gimpel (2017), A baseline for detecting misclassified examples, for the largest probability
    as what a label is believed.

    Example:
        >>> import torch
        >>> from torch_multiclass import plots
        >>> axes = plots.misread(torch.rand(2, 8, 8), [0, 1], [[0.4, 0.6], [0.1, 0.9]])  # doctest: +SKIP
    """
    columns, most = check.whole("columns", columns), check.whole("most", most)
    pixels, share = numbers("images", images, 3, least=-np.inf), numbers("probabilities", probabilities, 2, least=0.0)
    true = labelled("target", target, share.shape[1])
    if not len(pixels) == len(true) == len(share):
        raise ValueError(f"images: got {len(pixels)}; accepted is one for each of {len(share)} rows of probabilities")
    names = named("labels", labels, share.shape[1])
    axes = canvas(axes)
    from matplotlib.patches import Rectangle

    order = np.argsort(-share, 1, kind="stable")[:, :2]
    wrong = np.flatnonzero(order[:, 0] != true)
    shown = wrong[np.argsort(-share[wrong, order[wrong, 0]], kind="stable")][:most]
    height, width = pixels.shape[1:]
    across, down = 1.7 * width, 1.95 * height
    for n, row in enumerate(shown):
        x, y = across * (n % columns), -down * (n // columns)
        axes.imshow(pixels[row], "Greys", extent=(x, x + width, y - height, y), interpolation="nearest")
        axes.add_patch(Rectangle((x, y - height), width, height, fill=False, edgecolor=MUTED, linewidth=0.5))
        said = [(f"{names[k]}  {share[row, k]:.2f}", RIGHT if k == true[row] else WRONG) for k in order[row]]
        if true[row] not in order[row]:
            said.append((f"is {names[int(true[row])]}", INK))
        for line, (words, color) in enumerate(said):
            axes.text(x, y - height * (1.08 + 0.25 * line), words, va="top", fontsize=8, color=color)
    lines = max(1, -(-len(shown) // columns))
    axes.set(xlim=(-0.2 * width, across * min(columns, max(len(shown), 1))), ylim=(-down * lines, 0.2 * height))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"{len(wrong)} of {len(true)} misread" + (f", the surest {len(shown)}" * (len(shown) < len(wrong))))
    return axes


def marginals(
    words: Sequence[str],
    shares: Numbers,
    axes: Any = None,
    *,
    labels: Sequence[str] | None = None,
    target: Numbers | None = None,
) -> Any:
    """How probable each label is at each word of a sentence, ``p(y_t = k | x)``; the true ones are framed.

    Args:
        words: ``T`` words.
        shares: ``(T, K)``, as ``scores.marginals()`` has them; labels that are nowhere likely are left out.
        axes: of matplotlib; by default new ones.
        labels: ``K`` names.
        target: ``(T,)``, the true labels, -100 where there is none; red where another is likelier.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Lafferty, McCallum and Pereira (2001), Conditional random fields.

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScores, plots
        >>> scores = ChainScores(torch.tensor([[[2.0, 0.0], [0.0, 1.0]]]), torch.zeros(2, 2))
        >>> axes = plots.marginals(["a", "cat"], scores.marginals()[0], labels=["D", "N"])  # doctest: +SKIP
    """
    check.label_names("words", words)
    share = numbers("shares", shares, 2, least=0.0)
    if len(share) != len(words):
        raise ValueError(f"shares: got {len(share)} rows; accepted is one for each of {len(words)} words")
    names = named("labels", labels, share.shape[1])
    true = np.full(len(words), -100) if target is None else labelled("target", target, share.shape[1], check.IGNORE)
    if true.shape != (len(words),):
        raise ValueError(f"target: got {len(true)} labels; accepted is one for each of {len(words)} words")
    axes = canvas(axes)
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    kept = np.union1d(np.flatnonzero((share > SEEN).any(0)), true[true >= 0])
    blues = LinearSegmentedColormap.from_list("blues", [mixed(RIGHT, 0.0), mixed(RIGHT, 0.9)])
    axes.imshow(share[:, kept].T, blues, vmin=0, vmax=1, aspect="auto", interpolation="none")
    for t, word in enumerate(share):
        for row, k in enumerate(kept):
            if word[k] > SEEN:
                color = "white" if word[k] > 0.6 else INK
                axes.text(t, row, f"{word[k]:.2f}", ha="center", va="center", fontsize=7, color=color)
            if k == true[t]:
                edge = INK if word.argmax() == k else WRONG
                axes.add_patch(Rectangle((t - 0.48, row - 0.48), 0.96, 0.96, fill=False, edgecolor=edge, linewidth=1.5))
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(kept)), [names[k] for k in kept])
    frameless(axes)
    return axes
