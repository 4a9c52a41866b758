"""Every head, and every decoder of a kind, with examples of what it takes: for what is saved, exported and sharded."""

from __future__ import annotations

import torch

import torch_multiclass as tm
from torch_multiclass import codes, kernels

COST = [[0, 2, 1, 1], [1, 0, 1, 1], [1, 1, 0, 9], [1, 4, 1, 0]]
TAGS = ["O", "B-X", "I-X"]
D = 6


def kernel_margins(columns):
    return tm.KernelScorer(torch.randn(9, D), columns, kernels.Gaussian(0.1))


ROWS = {
    "flat": lambda: tm.MulticlassHead(D, 4),
    "crammer_singer": lambda: tm.MulticlassHead(D, 4, loss="crammer_singer"),
    "ranking": lambda: tm.MulticlassHead(D, 4, decoder=tm.RankingDecoder()),
    "expected_cost": lambda: tm.MulticlassHead(D, 4, decoder=tm.ExpectedCostDecoder(COST)),
    "one_vs_all": lambda: tm.OneVsAllHead(D, 4),
    "one_vs_one": lambda: tm.OneVsOneHead(D, 4),
    "tournament": lambda: tm.OneVsOneHead(D, 4, decoder=tm.TournamentDecoder()),
    "voting": lambda: tm.OneVsOneHead(D, 4, decoder=tm.VotingDecoder()),
    "ecoc": lambda: tm.ECOCHead(D, code=codes.hadamard(4)),
    "exponential": lambda: tm.ECOCHead(D, code=codes.hadamard(4), loss="exponential"),
    "hamming": lambda: tm.ECOCHead(D, code=codes.hadamard(4), decoder=tm.HammingDecoder()),
    "kernel": lambda: tm.ECOCHead(kernel_margins(6), code=codes.one_vs_one(4)),
    "continuous": lambda: tm.ContinuousCodeHead(D, code=codes.hadamard(4)),
    "several_labels": lambda: tm.MultilabelHead(D, 4),
}
SEQUENCES = {
    "chain": lambda: tm.ChainHead(D, 4),
    "constrained": lambda: tm.ChainHead(D, 3, constraints=tm.tag_constraints(TAGS)),
    "posterior": lambda: tm.ChainHead(D, 4, decoder=tm.PosteriorDecoder()),
    "k_best": lambda: tm.ChainHead(D, 4, decoder=tm.KBestDecoder(3)),
    "second_order": lambda: tm.SecondOrderHead(D, 4),
    "segments": lambda: tm.SegmentHead(D, 2, 3),
    "tree": lambda: tm.LabelTreeHead(D, 4),
}
HEADS = ROWS | SEQUENCES


def inputs(name, batch, steps, generator=None):
    """Features, and of sequences the mask; of trees also the parents."""
    if name in ROWS:
        return (torch.randn(batch, D, generator=generator),)
    mask = torch.rand(batch, steps, generator=generator) > 0.3
    given = torch.randn(batch, steps, D, generator=generator), mask
    if name != "tree":
        return given
    return *given, (torch.rand(batch, steps, generator=generator) * torch.arange(steps)).long() - 1


def scores_of(head, features, mask=None, parents=None):
    """What the head gives for `inputs`."""
    given = {"mask": mask, "parents": parents}
    return head(features, **{name: part for name, part in given.items() if part is not None})


def target_of(head, scores):
    """Labels that the head can learn from these scores: those it takes for likely, mostly."""
    if isinstance(scores, (tm.SegmentScores, tm.MultilabelScores)):
        return scores.decode().labels
    return head.class_scores(scores).argmax(-1)


def names(*quick):
    """Every name for `pytest.mark.parametrize`; those that are not ``quick`` are slow."""
    import pytest

    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in HEADS]
