"""Digits in two dimensions, where it can be seen which label each loss gives where."""

from __future__ import annotations

import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass import plots

from .digits import parts
from .show import claim, percent, picture, working

DIGITS = (2, 4, 5, 7, 8)
"""Of five digits those whose training rows lie most in the middle of others, in two dimensions."""


def plane() -> tuple[Tensor, Tensor]:
    """Training rows of some digits in the two directions that tell them apart best."""
    x, y, *_ = parts()
    number = torch.full((10,), -1).index_put_((torch.tensor(DIGITS),), torch.arange(len(DIGITS)))
    seen = number[y] >= 0
    directions = LinearDiscriminantAnalysis(n_components=2).fit(x[seen].numpy(), y[seen].numpy())
    points = torch.tensor(directions.transform(x[seen].numpy())).float()
    return points / points.std(0), number[y[seen]]


def ways() -> dict[str, tm.Head]:
    """A linear head of each kind."""
    k, code = len(DIGITS), tm.codes.complete(len(DIGITS))
    return {
        "one-versus-all, hinge": tm.OneVsAllHead(2, k),
        "soft-max": tm.MulticlassHead(2, k, loss=tm.CRFLoss()),
        "Crammer–Singer": tm.MulticlassHead(2, k, loss=tm.CrammerSingerLoss()),
        "Weston–Watkins": tm.MulticlassHead(2, k, loss=tm.WestonWatkinsLoss()),
        "one-versus-one, hinge": tm.OneVsOneHead(2, k),
        "error-correcting, logistic": tm.ECOCHead(2, code=code, loss="logistic"),
    }


def trained(head: tm.Head, x: Tensor, y: Tensor, steps: int = 600) -> tm.Head:
    """By Adam on all rows, from the weights 0, with a little weight decay."""
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = torch.optim.Adam(head.parameters(), 0.05, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(head(x), y).backward()
        optimizer.step()
        schedule.step()
    return head.eval()


def main() -> None:
    """The regions of each, and the share of the rows shown that lie in another label's."""
    x, y = plane()
    wrong = {}
    with working("regions", len(ways())) as step, picture("regions", 11, 7.2) as figure, torch.no_grad():
        figure.suptitle(
            "Digits in two dimensions, linear heads: training rows, and in their colours the label of each place;\n"
            "circled in red are rows where another label is given"
        )
        for axes, (name, head) in zip(figure.subplots(2, 3).flat, ways().items(), strict=True):
            with torch.enable_grad():
                trained(head, x, y)
            plots.regions(lambda at, head=head: head.predict(head(at)), x, y, axes, labels=[str(d) for d in DIGITS])
            wrong[name] = float((head.predict(head(x)) != y).float().mean())
            axes.set_title(f"{name}\n{percent(wrong[name])} of the rows shown")
            step()
    apart = wrong.pop("one-versus-all, hinge")
    claim(
        "regions",
        "Linear heads in two dimensions, five digits picked on training rows to lie among each other: one-versus-all "
        f"cannot tell a class in the middle from those around it, {percent(apart)} of the rows shown are wrong; of the "
        f"other heads {percent(min(wrong.values()))} to {percent(max(wrong.values()))}.",
    )
