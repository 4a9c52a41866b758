"""Linear chains on tensors: log-partition, likelihood, marginals and the best labelling.

Half precision is computed in float32. Everything is differentiable twice but the best labelling itself.
"""

from __future__ import annotations

from torch import Tensor

from torch_multiclass import checks
from torch_multiclass.ops.chain import calls
from torch_multiclass.ops.chain.calls import best_path, legal_labels, watched
from torch_multiclass.ops.chain.margins import Costs, all_but_gold, margin_loss, slack_loss
from torch_multiclass.ops.chain.masks import mask_labels
from torch_multiclass.ops.chain.native import labels_of
from torch_multiclass.ops.chain.sampling import entropy, kl, sample
from torch_multiclass.ops.chain.slack import slack_curve
from torch_multiclass.ops.chain.structure import Chain

__all__ = [
    "METHODS",
    "Chain",
    "Costs",
    "all_but_gold",
    "best_labels",
    "best_path",
    "entropy",
    "k_best",
    "kl",
    "labels_of",
    "legal_labels",
    "log_partition",
    "margin_loss",
    "marginals",
    "mask_labels",
    "negative_log_likelihood",
    "pair_marginals",
    "path_score",
    "sample",
    "slack_curve",
    "slack_labels",
    "slack_loss",
    "slack_search",
    "transition_counts",
    "viterbi",
    "watched",
]

METHODS = ("auto", "scaled", "scaled64", "chunked", "log")
"""How to compute: in scaled probability space (float32, float64, in chunks side by side) or in log space."""


def log_partition(chain: Chain, *, method: str = "auto") -> Tensor:
    """``log Z = log sum_y exp s(y)`` of each sequence, ``(B,)``; 0 for an empty one, -inf where nothing is legal.

    A GPU always takes log space in float64, which needs no value to be read.

    >>> import torch
    >>> log_partition(Chain.of(torch.zeros(1, 3, 2), torch.zeros(2, 2))).exp()  # 2^3 labellings of weight 1
    tensor([8.])
    """
    checks.choice("method", method, METHODS)
    return calls.value(chain, None, method)


def negative_log_likelihood(chain: Chain, target: Tensor, *, method: str = "auto") -> Tensor:
    """``log Z - s(labels)`` of each sequence, ``(B,)``, measured from the gold labels: nothing large cancels.

    Sets of labels, ``(B, T, K)`` bool, take the place of the labels ``(B, T)`` where these are not all known: ``s`` is
    then the log-sum over the labellings in the sets. Anything may stand past a length. Forbidden gold labels give +inf
    with gradient zero.
    """
    if method != "auto":
        checks.choice("method", method, METHODS)
    return calls.value(chain, target, method)


def _gradient(chain: Chain, method: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    checks.choice("method", method, METHODS)
    one = chain.emissions.new_ones(chain.emissions.shape[0])
    return calls.gradient(one, *chain, None, method)


def marginals(chain: Chain, *, method: str = "auto") -> Tensor:
    """``P(y_t = k)``, ``(B, T, K)``: exactly 0 past the length and where nothing is legal. Differentiable."""
    return _gradient(chain.work(), method)[0]


def pair_marginals(chain: Chain, *, method: str = "auto") -> Tensor:
    """``P(y_t = j, y_{t+1} = k)``, ``(B, T-1, K, K)``. Differentiable."""
    chain = chain.work()
    batch, steps, k = chain.emissions.shape
    moves = chain.transitions[:, None] if chain.transitions.dim() == 3 else chain.transitions
    return _gradient(chain.but(transitions=moves.expand(batch, max(steps - 1, 0), k, k)), method)[1]


def transition_counts(chain: Chain, *, method: str = "auto") -> Tensor:
    """How often each move is expected, ``(B, K, K)``: the pair marginals summed over the steps. Differentiable."""
    if chain.transitions.dim() == 4:
        return pair_marginals(chain, method=method).sum(1)
    chain = chain.work()
    batch, _, k = chain.emissions.shape
    return _gradient(chain.but(transitions=chain.transitions.expand(batch, k, k)), method)[1]


def best_labels(chain: Chain, allowed: Tensor | None = None) -> Tensor:
    """The best labelling ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards.

    With sets of labels, ``(B, T, K)`` bool, ``(B, 2, T)``: the best labelling, and the best in the sets.
    """
    return calls.best_labels(*chain, allowed)


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """The best labelling ``(B, T)``, -100 past the length, and its score ``(B,)``, differentiable along that path.

    Ties go to the lowest last label, then backwards. Where nothing is legal the score is -inf.

    >>> import torch
    >>> viterbi(Chain.of(torch.tensor([[[1.0, 0.0], [0.0, 3.0]]]), torch.tensor([[0.0, -5.0], [0.0, 0.0]])))
    (tensor([[1, 1]]), tensor([3.]))
    """
    labels = best_labels(chain)
    return labels, chain.work().score(labels)


def path_score(chain: Chain, labels: Tensor) -> Tensor:
    """``s(labels)`` of each sequence, ``(B,)``; labels past the length count for nothing. Differentiable."""
    return chain.score(labels)


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` best labellings, distinct and in order, ``(B, k, T)``, and their scores ``(B, k)``.

    -100 and -inf where fewer exist; ties go to the lowest last label, then backwards. No gradient.
    """
    return calls.k_best(*chain, k)


def slack_labels(chain: Chain, costs: Tensor, most: int, allowed: Tensor | None = None) -> Tensor:
    """A labelling that attains ``max_y c(y) [1 + s(y)]_+``, ``(B, T)``, of integer costs ``(B, T, K)`` up to ``most``.

    Of equal values one of the lowest cost; where the maximum is 0 the labelling means nothing. No gradient. With sets
    of labels, ``(B, T, K)`` bool, the score is measured from the best labelling in them, which comes too,
    ``(B, 2, T)``.
    """
    return calls.slack_labels(*chain, costs, most, allowed)


def slack_search(chain: Chain, costs: Tensor, allowed: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Labels as `slack_labels` has them, their value ``(B,)`` and an upper bound ``(B,)``, for costs of any kind."""
    return calls.slack_search(*chain, costs, allowed)
