"""Plain digits, one network, every head: where soft-max is as good as any of them."""

from __future__ import annotations

import torch

import torch_multiclass as tm
from torch_multiclass import plots

from ..classify import ClassifyCLI, train
from ..results import DIGITS, HERE
from .show import claim, noted, percent, picture, working


@torch.inference_mode()
def tested(cli: ClassifyCLI) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Of each test row whether it is wrong, and its margin in mean spreads of a row's scores; none of votes."""
    rows, model = cli.datamodule.parts["test"], cli.model.eval()
    scores = model(rows.features.to(model.device))
    wrong = (model.head.predict(scores).cpu() != rows.labels).double()
    if isinstance(model.head.decoder, (tm.VotingDecoder, tm.TournamentDecoder)):
        return wrong, None
    every = model.head.class_scores(scores).cpu()
    return wrong, tm.functional.margin(every, rows.labels) / (every.amax(1) - every.amin(1)).mean()


def main() -> None:
    """Train one convolutional network with each head."""
    wrong: dict[str, torch.Tensor] = {}
    margins: dict[str, torch.Tensor | None] = {}
    with working("heads", len(DIGITS)) as step:
        for head, config in DIGITS.items():
            cli, _ = train(HERE / "configs" / f"{config}.yaml")
            wrong[head], margin = tested(cli)
            margins[head] = margin
            step()
    plain = wrong.pop("soft-max")
    shares = [float(each.mean()) for each in wrong.values()]
    ahead = [head for head, each in wrong.items() if not noted(each, plain)]
    claim(
        "heads",
        f"One label a row and no cost, one network: soft-max is wrong in {percent(float(plain.mean()))}, the "
        f"{len(shares)} other heads in {percent(min(shares))} to {percent(max(shares))}: "
        + (f"ahead are {', '.join(ahead)}." if ahead else "none is ahead, keep soft-max."),
    )
    draw({head: margin for head, margin in margins.items() if margin is not None})


def draw(margins: dict[str, torch.Tensor]) -> None:
    """A histogram a head, all on one scale."""
    every = torch.cat(list(margins.values()))
    limits = float(every.quantile(0.001)), float(every.quantile(0.999))
    title = "Digits: the true class over its best rival, in mean spreads of a row's scores; votes have no margin"
    with picture("margins", 11, 5.2, title) as figure:
        panels = figure.subplots(2, 3, sharex=True, sharey=True).flat
        for axes in panels[len(margins) :]:
            axes.set_axis_off()
        for axes, (head, margin) in zip(panels, margins.items(), strict=False):
            plots.margins(margin, axes, limits=limits)
            axes.set(title=f"{head}\n{axes.get_title()}", ylabel="test rows")
