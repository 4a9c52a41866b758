"""Stumps by trying every threshold of every feature, with both sides for what is missing."""

import numpy as np


def purity(sums, criterion):
    """``G``: the edge, or the normaliser of confidence-rated votes."""
    if criterion == 0:
        return -0.5 * np.abs(sums).sum()
    half = len(sums) // 2
    return 2 * np.sqrt(sums[:half] * sums[half:]).sum()


def summed(channels, criterion):
    """The sums, or those of the positive numbers and then the sizes of those of the negative ones."""
    if criterion == 0:
        return channels.sum(0)
    return np.concatenate([np.where(channels > 0, channels, 0).sum(0), np.where(channels < 0, -channels, 0).sum(0)])


def every_cut(features, channels, criterion):
    """(feature, threshold, whether missing is yes, gain, sums of both sides), in the order in which ties are broken."""
    whole = purity(summed(channels, criterion), criterion)
    for feature, column in enumerate(features.T):
        known = ~np.isnan(column)
        values = np.unique(column[known])
        for threshold in [*((values[:-1] + values[1:]) / 2), np.inf]:
            for missing in (True, False):
                yes = np.where(known, column <= threshold, missing)
                if yes.all() or not yes.any():
                    continue
                side = missing if not known.all() else 2 * yes.sum() >= len(yes)
                sums = summed(channels[yes], criterion), summed(channels[~yes], criterion)
                yield feature, threshold, side, whole - sum(purity(s, criterion) for s in sums), sums


def best_cut(features, channels, criterion):
    """The first of the best; None where there is none."""
    cuts = list(every_cut(features, channels, criterion))
    best = max((cut[3] for cut in cuts), default=None)
    return next((cut for cut in cuts if cut[3] >= best - 1e-12), None)
