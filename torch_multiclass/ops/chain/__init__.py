"""Linear chains on tensors: log-partition, likelihood, marginals and the best labelling.

    s(y) = start[y_1] + sum_t e[t, y_t] + sum_{t>1} W[y_{t-1}, y_t] + end[y_n]

Emissions ``(B, T, K)`` are left-aligned, ``lengths (B,)`` says how much of each row is its sequence (None: all).
Transitions ``[from, to]`` are ``(K, K)``, ``(B, K, K)`` or, one matrix a step, ``(B | 1, T-1, K, K)``; start and end
are ``(K,)``, ``(B, K)`` or None. Half precision is computed in float32. -inf forbids. Everything is differentiable
twice but the best labelling itself.
"""

from __future__ import annotations

from torch import Tensor

from torch_multiclass import checks
from torch_multiclass.ops.chain import library
from torch_multiclass.ops.chain.logspace import Chain
from torch_multiclass.ops.chain.structure import path_score

__all__ = [
    "METHODS",
    "best_labels",
    "log_partition",
    "marginals",
    "negative_log_likelihood",
    "pair_marginals",
    "path_score",
    "transition_counts",
    "viterbi",
]

METHODS = ("auto", "scaled", "scaled64", "chunked", "log")
"""How to compute: in scaled probability space (float32, float64, in chunks side by side) or in log space."""


def _given(scores: Tensor | None, transitions: Tensor) -> Tensor:
    return transitions.new_zeros(transitions.shape[-1]) if scores is None else scores


def _value(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    checks.choice("method", method, METHODS)
    start, end = _given(start, transitions), _given(end, transitions)
    return library.differentiable_value(emissions, transitions, start, end, lengths, labels, method)


def log_partition(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    method: str = "auto",
) -> Tensor:
    """``log Z = log sum_y exp s(y)`` of each sequence, ``(B,)``; 0 for an empty one, -inf where nothing is legal.

    A GPU always takes log space in float64, which needs no value to be read.

    >>> import torch
    >>> emissions = torch.zeros(1, 3, 2)
    >>> log_partition(emissions, torch.zeros(2, 2)).exp()  # 2^3 labellings of weight 1
    tensor([8.])
    """
    return _value(emissions, transitions, start, end, lengths, None, method)


def negative_log_likelihood(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    lengths: Tensor | None,
    labels: Tensor,
    *,
    method: str = "auto",
) -> Tensor:
    """``log Z - s(labels)`` of each sequence, ``(B,)``, measured from the gold labels: nothing large cancels.

    Labels past a length may be anything. Forbidden gold labels give +inf with gradient zero.
    """
    return _value(emissions, transitions, start, end, lengths, labels, method)


def _gradient(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    lengths: Tensor | None,
    method: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    checks.choice("method", method, METHODS)
    start, end = _given(start, transitions), _given(end, transitions)
    one = emissions.new_ones(emissions.shape[0], dtype=library.work_dtype(emissions.dtype))
    return library.differentiable_gradient(one, emissions, transitions, start, end, lengths, None, method)


def marginals(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    method: str = "auto",
) -> Tensor:
    """``P(y_t = k)``, ``(B, T, K)``: exactly 0 past the length and where nothing is legal. Differentiable."""
    emissions = emissions.to(library.work_dtype(emissions.dtype))
    return _gradient(emissions, transitions, start, end, lengths, method)[0]


def pair_marginals(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    method: str = "auto",
) -> Tensor:
    """``P(y_t = j, y_{t+1} = k)``, ``(B, T-1, K, K)``. Differentiable."""
    batch, steps, num_labels = emissions.shape
    if transitions.dim() == 3:
        transitions = transitions[:, None]
    shape = (batch, max(steps - 1, 0), num_labels, num_labels)
    per_step = transitions.to(library.work_dtype(emissions.dtype)).expand(shape)
    return _gradient(emissions, per_step, start, end, lengths, method)[1]


def transition_counts(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    method: str = "auto",
) -> Tensor:
    """How often each move is expected, ``(B, K, K)``: the pair marginals summed over the steps. Differentiable."""
    if transitions.dim() == 4:
        return pair_marginals(emissions, transitions, start, end, lengths, method=method).sum(1)
    batch, _, num_labels = emissions.shape
    each = transitions.to(library.work_dtype(emissions.dtype)).expand(batch, num_labels, num_labels)
    return _gradient(emissions, each, start, end, lengths, method)[1]


def best_labels(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """The best labelling ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards."""
    start, end = _given(start, transitions), _given(end, transitions)
    labels: Tensor = library.best_labels(emissions, transitions, start, end, lengths)
    return labels


def viterbi(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The best labelling ``(B, T)``, -100 past the length, and its score ``(B,)``, differentiable along that path.

    Ties go to the lowest last label, then backwards. Where nothing is legal the score is -inf.

    >>> import torch
    >>> viterbi(torch.tensor([[[1.0, 0.0], [0.0, 3.0]]]), torch.tensor([[0.0, -5.0], [0.0, 0.0]]))
    (tensor([[1, 1]]), tensor([3.]))
    """
    start, end = _given(start, transitions), _given(end, transitions)
    labels = library.best_labels(emissions, transitions, start, end, lengths)
    chain = Chain(emissions, transitions, start, end, lengths).to(library.work_dtype(emissions.dtype))
    return labels, path_score(*chain, labels)
