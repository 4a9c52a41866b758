"""What a learner answers to the scores of a row: which classes move along it, and how far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from torch_multiclass.ops.online.records import ROUNDING, Array, Asked, Rule, State

Moves = tuple[int, Sequence[tuple[int, float]]]
"""How many preferences ask for a change, and of each class the multiple of the row that is added."""
Answer = Callable[[Array, int, Array, float], "Moves | None"]
"""Of the scores, which it may overwrite, the number of the row, its entries, and its step."""
Worst = Callable[[Array, int], "tuple[int, int, float] | None"]
"""Of the scores and the number of a row, the preference ``a > b`` with the smallest margin, the first among equals."""
Pairs = tuple[Array, Array]


def answers(state: State, asked: Asked, rule: Rule) -> Answer:
    """What to answer to each row."""
    if rule.kind == "winnow_binary":
        return _by_threshold(state, asked, rule)
    if rule.kind == "passive_aggressive":
        return _passive_aggressive(_worst(asked))
    return _conservative(_worst(asked)) if rule.rule == "conservative" else _each(asked, rule.rule == "uniform")


# ------------------------------------------------------------------------------------------------ one preference a row


def _conservative(worst: Worst) -> Answer:
    def answer(scores: Array, i: int, x: Array, step: float) -> Moves | None:
        found = worst(scores, i)
        if found is None or found[2] > 0:
            return None
        return 1, ((found[0], step), (found[1], -step))

    return answer


def _passive_aggressive(worst: Worst) -> Answer:
    """``tau = min(C, loss / (2 |x|^2))``."""

    def answer(scores: Array, i: int, x: Array, step: float) -> Moves | None:
        found = worst(scores, i)
        loss = 0.0 if found is None else 1 - found[2]
        if found is None or not loss > ROUNDING:
            return None
        step = min(step, loss / (2 * float(x @ x)))
        return 1, ((found[0], step), (found[1], -step))

    return answer


def _worst(asked: Asked) -> Worst:
    if asked.kind == "labels":
        labels, lowest = asked.target.tolist(), -np.inf

        def of_label(scores: Array, i: int) -> tuple[int, int, float]:
            y = labels[i]
            own, scores[y] = float(scores[y]), lowest
            z = int(scores.argmax())
            return y, z, own - float(scores[z])

        return of_label
    above_below, paired = _asked_of(asked), asked.kind == "pairs"

    def of_any(scores: Array, i: int) -> tuple[int, int, float] | None:
        above, below = above_below(i)
        if len(above) == 0 or len(below) == 0:
            return None
        if paired:
            least = int((scores[above] - scores[below]).argmin())
            a, b = int(above[least]), int(below[least])
        else:
            a, b = int(above[scores[above].argmin()]), int(below[scores[below].argmax()])
        return a, b, float(scores[a] - scores[b])

    return of_any


# ------------------------------------------------------------------------------------------- every violated preference


def _each(asked: Asked, uniform: bool) -> Answer:
    """All with the weights as they were before; of ``uniform`` each with a share of the step."""
    if asked.kind == "labels":
        labels = asked.target.tolist()

        def of_label(scores: Array, i: int, x: Array, step: float) -> Moves | None:
            y = labels[i]
            violated = (scores >= scores[y]).nonzero()[0].tolist()
            used = len(violated) - 1
            if used == 0:
                return None
            share = step / used if uniform else step
            return used, [(z, -share) if z != y else (y, used * share) for z in violated]

        return of_label
    above_below, paired = _asked_of(asked), asked.kind == "pairs"

    def of_any(scores: Array, i: int, x: Array, step: float) -> Moves | None:
        above, below = above_below(i)
        change = np.zeros(len(scores))
        if paired:
            violated = scores[above] <= scores[below]
            np.add.at(change, above[violated], 1)
            np.subtract.at(change, below[violated], 1)
        else:
            violated = scores[above][:, None] <= scores[below]
            change[above] += violated.sum(1)
            change[below] -= violated.sum(0)
        used = int(violated.sum())
        if used == 0:
            return None
        share = step / used if uniform else step
        return used, [(int(k), share * float(change[k])) for k in change.nonzero()[0]]

    return of_any


def _asked_of(asked: Asked) -> Callable[[int], Pairs]:
    """The classes that are to be above others and those below: of signs each above each, of pairs one by one."""
    target = asked.target.numpy()
    if asked.kind == "signs":
        return lambda i: ((target[i] > 0).nonzero()[0], (target[i] < 0).nonzero()[0])
    assert asked.first is not None
    first = asked.first.tolist()
    return lambda i: (target[first[i] : first[i + 1], 0], target[first[i] : first[i + 1], 1])


# ------------------------------------------------------------------------------------------------------- two classes


def _by_threshold(state: State, asked: Asked, rule: Rule) -> Answer:
    """Class 1 has ``w+``, class 0 ``w-``."""
    labels = asked.target.tolist()

    def answer(scores: Array, i: int, x: Array, step: float) -> Moves | None:
        assert state.shift is not None
        positive = labels[i] == 1
        if (scores[1] - scores[0] >= rule.threshold * rule.ratio ** -float(state.shift)) == positive:
            return None
        step = step if positive else -step
        return 1, ((1, step), (0, -step))

    return answer
