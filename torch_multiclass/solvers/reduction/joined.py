"""The binary scorers of all columns as one scorer, where they are of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

from torch_multiclass.kernels import Precomputed
from torch_multiclass.ops.splits.tree import single
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.columns import AttributeScorer, ColumnsScorer, margin_of
from torch_multiclass.scorers.ensemble import EnsembleScorer, TreeScorer
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.space import linear_scorer

_COLUMNS = 4  # up to which trees are put into one table: a leaf's values, one a column, are all added, mostly zeros


def side_by_side(columns: Sequence[Scorer | None], features: Tensor) -> Scorer:
    """One scorer with an output for each column, 0 where there is none."""
    known = {s: scorer for s, scorer in enumerate(columns) if scorer is not None}
    kinds = {type(scorer) for scorer in known.values()}
    if not known:
        return linear_scorer(features.new_zeros(len(columns), features.shape[1]), bias=False)
    if kinds == {LinearScorer}:
        return _linear(known, len(columns))  # type: ignore[arg-type]
    if kinds == {KernelScorer}:
        kernels = [scorer.kernel for scorer in known.values()]
        if len({repr(kernel) for kernel in kernels}) == 1 and not isinstance(kernels[0], Precomputed):
            return _kernel(known, len(columns))  # type: ignore[arg-type]
    if kinds <= {TreeScorer, EnsembleScorer}:
        trees = {s: scorer for s, scorer in known.items() if isinstance(scorer, (TreeScorer, EnsembleScorer))}
        plain = all(t.directions.numel() + t.centres.numel() + t.subset.numel() == 0 for t in trees.values())
        if plain and len(columns) <= _COLUMNS:
            return _trees(trees, len(columns))
    return ColumnsScorer(columns, features.shape[1])


def by_attribute(scorer: Scorer, columns: int, interaction: bool, silent: Sequence[int]) -> Scorer:
    """The scorer of ``(x, e_s)``, or of ``x ⊗ e_s``, as one of ``x`` with an output for each column."""
    if type(scorer) is not LinearScorer:
        return AttributeScorer(scorer, columns, interaction, silent)
    row = _rows(scorer)[0]
    weight, constant = row[:-1], row[-1].expand(columns, 1)
    if interaction:
        rows = torch.cat([weight.reshape(columns, -1), constant], 1)
    else:
        rows = torch.cat([weight[:-columns].expand(columns, -1), weight[-columns:, None] + constant], 1)
    rows[list(silent)] = 0
    bias = scorer.bias is not None or not interaction
    return linear_scorer(rows if bias else rows[:, :-1], bias)


def _rows(scorer: LinearScorer) -> Tensor:
    """``(1, D + 1)``: weights and bias of the margin."""
    weight = scorer.weight.detach()
    bias = weight.new_zeros(len(weight)) if scorer.bias is None else scorer.bias.detach()
    rows = torch.cat([weight, bias[:, None]], 1)
    return rows if len(rows) == 1 else rows[1:] - rows[:1]


def _linear(known: Mapping[int, LinearScorer], columns: int) -> LinearScorer:
    rows = {s: _rows(scorer) for s, scorer in known.items()}
    dtype = _widest(row.dtype for row in rows.values())
    first = next(iter(rows.values()))
    weight = torch.zeros(columns, first.shape[1], dtype=dtype, device=first.device)
    for s, row in rows.items():
        weight[s] = row[0]
    bias = any(scorer.bias is not None for scorer in known.values())
    return linear_scorer(weight if bias else weight[:, :-1], bias)


def _kernel(known: Mapping[int, KernelScorer], columns: int) -> KernelScorer:
    """The points of all columns, each once, so that the kernel is computed once."""
    scorers = list(known.values())
    points, place = torch.unique(torch.cat([scorer.support for scorer in scorers]), dim=0, return_inverse=True)
    dtype = _widest(scorer.coefficients.dtype for scorer in scorers)
    coefficients = torch.zeros(len(points), columns, dtype=dtype, device=points.device)
    bias = torch.zeros(columns, dtype=dtype, device=points.device)
    parts = place.split([len(scorer.support) for scorer in scorers])
    for (s, scorer), where in zip(known.items(), parts, strict=True):
        own, offset = scorer.coefficients.detach().to(dtype), scorer.bias
        constant = own.new_zeros(own.shape[1]) if offset is None else offset.detach().to(dtype)
        coefficients[:, s].index_add_(0, where, own[:, 0] if own.shape[1] == 1 else own[:, 1] - own[:, 0])
        bias[s] = constant[0] if len(constant) == 1 else constant[1] - constant[0]
    some = any(scorer.bias is not None for scorer in scorers)
    joined = KernelScorer(points, columns, scorers[0].kernel, some)
    joined.coefficients = nn.Parameter(coefficients)
    if some:
        joined.bias = nn.Parameter(bias)
    return joined


def _trees(known: Mapping[int, TreeScorer | EnsembleScorer], columns: int) -> EnsembleScorer:
    """All trees in one table: those that ask first, then the leaves, each with a value in its own column."""
    scorers = list(known.values())
    inner = [len(scorer.feature) - scorer.num_leaves for scorer in scorers]
    asking, ends, roots, values, weights = [], [], [], [], []
    at_inner, at_leaf = 0, sum(inner)
    for (s, scorer), asks in zip(known.items(), inner, strict=True):
        index = torch.arange(len(scorer.feature), device=scorer.feature.device)
        place = torch.where(index < asks, index + at_inner, index - asks + at_leaf)
        table = [scorer.feature, scorer.threshold, scorer.missing, place[scorer.branches]]
        asking.append([part[:asks] for part in table])
        ends.append([part[asks:] for part in table])
        roots.append(place[scorer.roots])
        value = scorer.values.new_zeros(scorer.num_leaves, columns)
        value[:, s] = margin_of(scorer.values)
        values.append(value)
        weights.append(scorer.weights if isinstance(scorer, EnsembleScorer) else torch.ones_like(scorer.values[:1, 0]))
        at_inner, at_leaf = at_inner + asks, at_leaf + scorer.num_leaves
    like = scorers[0].values
    joined = EnsembleScorer(
        [single(np.zeros(columns), scorers[0].in_features)], device=like.device, dtype=_widest(v.dtype for v in values)
    )
    feature, threshold, missing, branches = (torch.cat(parts) for parts in zip(*asking, *ends, strict=True))
    new = {"feature": feature, "threshold": threshold, "missing": missing, "branches": branches}
    new |= {"roots": torch.cat(roots), "values": torch.cat(values), "weights": torch.cat(weights)}
    joined.load_state_dict({**joined.state_dict(), **new})
    return joined


def _widest(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    return reduce(torch.promote_types, dtypes)
