"""Only binary learners at hand: which code they are asked by, and how their answers are read."""

from __future__ import annotations

import torch

import torch_multiclass as tm
from torch_multiclass import plots
from torch_multiclass.metrics import BitError
from torch_multiclass.solvers import AdaBoost, CodedReduction

from ..progress import whole
from .digits import NAMES, parts
from .show import claim, percent, picture, working

ROUNDS = 10


def main() -> None:
    """Boosted stumps by three codes, read by signs and by their loss."""
    x, y, rows, labels = parts()
    codes = {
        "one-versus-all": tm.codes.one_vs_all(10),
        "error-correcting": tm.codes.dense_random(10, generator=torch.Generator().manual_seed(0), progress=False),
        "one-versus-one": tm.codes.one_vs_one(10),
    }
    decoders = {"signs": tm.HammingDecoder(), "loss": tm.LossBasedDecoder("exponential")}
    wrong, columns = {}, {}
    with working("codes", len(codes)) as step, torch.no_grad():
        for name, code in codes.items():
            learner = AdaBoost(rounds=ROUNDS, progress=False)
            scores = whole(CodedReduction(code, learner=learner, progress=False), x, y).scorer(rows)
            wrong[name] = {how: float((decode(scores) != labels).float().mean()) for how, decode in decoders.items()}
            error = BitError(scores.num_columns)
            error.update(scores, labels)
            columns[name] = error.compute()
            step()
    by_signs = {name: percent(each["signs"]) for name, each in wrong.items()}
    by_loss = {name: percent(each["loss"]) for name, each in wrong.items()}
    all_, random, pairs = codes
    many = {name: f"{name} ({code.shape[1]} columns)" for name, code in codes.items()}
    claim(
        "codes",
        f"{ROUNDS} rounds of boosted stumps in each column of a code: {many[all_]} is wrong in {by_signs[all_]} read "
        f"by signs, in {by_loss[all_]} read by their loss; {many[random]} in {by_loss[random]}, {many[pairs]} in "
        f"{by_loss[pairs]}.",
    )
    title = f"Digits by {ROUNDS} stumps a column: +1 dark, −1 light, not asked white; below how often each column errs"
    with picture("codes", 11, 5, title) as figure:
        above, below = figure.subplots(2, 3, height_ratios=[2.2, 1.4], width_ratios=[1.1, 2, 2.4])
        for top, bottom, (name, code) in zip(above, below, codes.items(), strict=True):
            plots.code(code, top, labels=NAMES).set(xlabel="", xticks=[])
            top.get_legend().remove()
            top.set_title(f"{many[name]}\n{by_loss[name]} wrong")
            plots.errors(columns[name], bottom, of="column")
            bottom.set(xlim=top.get_xlim(), ylim=(0, 105 * float(max(error.max() for error in columns.values()))))
