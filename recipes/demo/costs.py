"""Mistakes that do not cost the same: a digit read too high costs five times what one read too low does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass import plots
from torch_multiclass.solvers import FrankWolfe

from ..progress import whole
from .digits import NAMES, rows
from .show import claim, draws, noted, picture, working

TRAIN, DRAWS, FOLDS = 1000, 5, 3
Decide = Callable[[Tensor], Tensor]


def too_high(times: float = 5.0) -> Tensor:
    """``(10, 10)``: a digit read too high costs so many times the difference, one read too low the difference."""
    digits = torch.arange(10.0)
    difference = digits - digits[:, None]
    return torch.where(difference > 0, times * difference, -difference)


COST = too_high()


def soft_max(C: float, x: Tensor, y: Tensor) -> Decide:
    """Multinomial logistic regression, scikit-learn's, and the likeliest class."""
    model = LogisticRegression(C=C, max_iter=2000).fit(x.numpy(), y.numpy())
    return lambda rows: torch.tensor(model.predict(rows.numpy()))


def expected(C: float, x: Tensor, y: Tensor) -> Decide:
    """The same, and the class of the least expected cost."""
    model = LogisticRegression(C=C, max_iter=2000).fit(x.numpy(), y.numpy())
    return lambda rows: (torch.tensor(model.predict_proba(rows.numpy())).float() @ COST).argmin(1)


def trained_with_costs(C: float, x: Tensor, y: Tensor) -> Decide:
    """``max_l L(y, l) [1 + f_l - f_y]_+``: the costs are in the loss, and the largest score decides."""
    solver = FrankWolfe(C, loss="svmstruct", cost=COST, bias=True, tol=1e-2, progress=False)
    scorer = whole(solver, x, y).scorer
    return lambda rows: tm.ArgmaxDecoder()(scorer(rows))


TRAINED, DECIDED = "SVMStruct with the costs", "soft-max, decided by expected cost"
WAYS = {
    "soft-max": (soft_max, (0.1, 1.0, 10.0)),
    TRAINED: (trained_with_costs, (0.003, 0.03, 0.3)),
    DECIDED: (expected, (0.1, 1.0, 10.0)),
}


def chosen(way: Callable[[float, Tensor, Tensor], Decide], Cs: Sequence[float], x: Tensor, y: Tensor) -> Decide:
    """Trained with the C that costs least in cross-validation on the training rows."""
    fold = torch.arange(len(x)) % FOLDS
    paid = []
    for C in Cs:
        decided = [way(C, x[fold != k], y[fold != k])(x[fold == k]) for k in range(FOLDS)]
        paid.append(sum(float(COST[y[fold == k], label].sum()) for k, label in enumerate(decided)))
    return way(Cs[paid.index(min(paid))], x, y)


def measured() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Of each way the cost of a digit in each draw, and all true and given labels together, ``(10, 10)``."""
    x, y = rows()
    paid = {name: torch.zeros(DRAWS) for name in WAYS}
    counts = {name: torch.zeros(10, 10) for name in WAYS}
    with working("costs", DRAWS * len(WAYS)) as step, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's of passes, ours of gaps, at settings that are not chosen
        for draw in range(DRAWS):
            order = draws(len(x), draw)
            train, test = order[:TRAIN], order[TRAIN:]
            for name, (way, Cs) in WAYS.items():
                label = chosen(way, Cs, x[train], y[train])(x[test])
                counts[name].index_put_((y[test], label), torch.tensor(1.0), accumulate=True)
                paid[name][draw] = COST[y[test], label].mean()
                step()
    return paid, counts


def mistakes(counts: Tensor) -> int:
    """How many labels are wrong."""
    return int(counts.sum() - counts.diagonal().sum())


def main() -> None:
    """The claim and the picture."""
    paid, counts = measured()
    plain, trained, decided = (float(each.mean()) for each in paid.values())
    less = {name: noted(each, paid["soft-max"]) for name, each in paid.items()}
    claim(
        "costs",
        f"A digit read too high costs 5 times one too low. Soft-max pays {plain:.2f} a digit, SVMStruct trained with "
        f"the costs {trained:.2f}{less[TRAINED]}; soft-max decided by expected cost {decided:.2f}{less[DECIDED]}. "
        f"The price is more wrong digits: {mistakes(counts[TRAINED])} and {mistakes(counts[DECIDED])} in place of "
        f"{mistakes(counts['soft-max'])}, of {int(counts['soft-max'].sum()):,} in {DRAWS} draws of {TRAIN:,} training "
        "rows from the same digits.",
    )
    most = max(float((table * COST).max()) for table in counts.values())
    title = "Digits: above the diagonal they are read too high, which costs five times the difference; below it once"
    with picture("costs", 12, 4.9, title) as figure:
        for axes, (name, table) in zip(figure.subplots(1, 3), counts.items(), strict=True):
            plots.confusion(table, axes, labels=NAMES, cost=COST, limit=most)
            axes.set_title(f"{name}\n{axes.get_title()}")
