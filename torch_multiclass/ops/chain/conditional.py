r"""A chain read backwards is a Markov chain: draws, entropy and Kullback-Leibler divergence follow from its steps.

With the forward messages ``\alpha_t(j) = \log \sum_{y_1..y_{t-1}} \exp s(y_1, ..., y_t = j)``, the last label has
probability ``\propto \exp(\alpha_n + end)`` and a label before ``y_{t+1} = j`` has
``\propto \exp(\alpha_t + trans_{., j})``. Nothing here cancels: messages are normalised at every step, which changes
none of the conditionals.

Chains are compact: emissions ``(B, T, K)``, transitions ``(K, K)`` or ``(B or 1, T-1, K, K)``, start and end ``(K,)``
or ``(B, K)`` or None, lengths ``(B,)`` or None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torch_multiclass.ops.chain.mask import from_lengths
from torch_multiclass.ops.chain.path import centred


def step(transitions: Tensor, t: int) -> Tensor:
    """The scores of moving into position ``t``: ``(K, K)`` or ``(B, K, K)``."""
    return transitions if transitions.ndim == 2 else transitions[:, t - 1]


def _normalised(log_weights: Tensor, dim: int) -> Tensor:
    """``log_softmax``, and all ``-inf`` (no gradient, no NaN) where every weight is 0."""
    dead = (log_weights == -math.inf).all(dim, keepdim=True)
    return torch.where(dead, -math.inf, torch.log_softmax(torch.where(dead, 0.0, log_weights), dim))


def _steps(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, lengths: Tensor | None
) -> Iterator[tuple[Tensor | None, Tensor, Tensor | None]]:
    """For every position ``log p(y_{t-1} = i | y_t = j)``, ``(B, i, j)``, the message, and which rows go on."""
    emissions = centred(emissions)
    message = emissions[:, 0] if start is None else emissions[:, 0] + start
    yield None, _normalised(message, 1), None
    message = _normalised(message, 1)
    for t in range(1, emissions.shape[1]):
        joint = message.unsqueeze(2) + step(transitions, t)
        before = _normalised(joint, 1)
        # the column sums, written so that -inf columns have zero gradient
        total = _log_sum(joint, 1)
        new = _normalised(total + emissions[:, t], 1)
        going = None if lengths is None else (t < lengths).unsqueeze(1)
        message = new if going is None else torch.where(going, new, message)
        yield before, message, going


def _log_sum(x: Tensor, dim: int) -> Tensor:
    dead = (x == -math.inf).all(dim, keepdim=True)
    safe = torch.logsumexp(torch.where(dead, 0.0, x), dim)
    return torch.where(dead.squeeze(dim), -math.inf, safe)


def _expected(weight_log: Tensor, values: Tensor, dim: int) -> Tensor:
    """``sum_i p_i v_i``, where an impossible ``i`` hides whatever ``v_i`` is and ``p_i > 0`` never hides ``+inf``."""
    possible = weight_log > -math.inf
    endless = possible & (values == math.inf)  # p_i may underflow to 0, and 0 * inf is not inf
    usable = possible & ~endless
    terms = torch.where(possible, weight_log, -math.inf).exp() * torch.where(usable, values, 0.0)
    return torch.where(endless, math.inf, terms).sum(dim)


def _where_nonempty(values: Tensor, lengths: Tensor | None) -> Tensor:
    return values if lengths is None else torch.where(lengths > 0, values, 0.0)


def entropy(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None, lengths: Tensor | None
) -> Tensor:
    r"""``-\sum_y p(y) \log p(y)``, ``(B,)``: the entropy of the prefix given its last label, carried along the chain.

    Reference: Hernando, Crespi and Cybenko (2005), Efficient computation of the hidden Markov model entropy.
    """
    if emissions.shape[1] == 0:
        return emissions.sum((1, 2))
    last = emissions.new_zeros(emissions.shape[0], emissions.shape[2])
    message = last
    for before, message, going in _steps(emissions, transitions, start, lengths):  # noqa: B007
        if before is not None:
            new = _expected(before, last.unsqueeze(2) - before, 1)
            last = new if going is None else torch.where(going, new, last)
    final = _normalised(message if end is None else message + end, 1)
    return _where_nonempty(_expected(final, last - final, 1), lengths)


Parts = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]


def kl(p: Parts, q: Parts) -> Tensor:
    r"""``\sum_y p(y) \log(p(y) / q(y))`` of two chains over the same positions, ``(B,)``.

    A sum of divergences of the conditionals, so no large numbers cancel; ``+inf`` where ``q`` forbids what ``p`` does
    not.
    """
    emissions, lengths = p[0], p[4]
    if emissions.shape[1] == 0:
        return emissions.sum((1, 2)) + q[0].sum((1, 2))
    last = emissions.new_zeros(emissions.shape[0], emissions.shape[2])
    message_p = message_q = last
    both = zip(_steps(p[0], p[1], p[2], lengths), _steps(q[0], q[1], q[2], lengths), strict=True)
    for (before_p, message_p, going), (before_q, message_q, _) in both:  # noqa: B007
        if before_p is not None and before_q is not None:
            new = _expected(before_p, last.unsqueeze(2) + before_p - before_q, 1)
            last = new if going is None else torch.where(going, new, last)
    final_p = _normalised(message_p if p[3] is None else message_p + p[3], 1)
    final_q = _normalised(message_q if q[3] is None else message_q + q[3], 1)
    return _where_nonempty(_expected(final_p, last + final_p - final_q, 1), lengths)


@torch.no_grad()
def sample(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    lengths: Tensor | None,
    n: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``n`` independent labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 beyond the length.

    Forward filtering, backward sampling; -100 throughout where no labelling is possible.
    """
    batch, steps, num_classes = emissions.shape
    labels = torch.full((batch, n, steps), -100, dtype=torch.long, device=emissions.device)
    if steps == 0 or batch == 0:
        return labels
    messages = [message for _, message, _ in _steps(emissions, transitions, start, lengths)]
    last = messages[-1] if end is None else messages[-1] + end

    def draw(log_weights: Tensor) -> Tensor:
        """An index with probability proportional to ``exp(log_weights)`` over the last dimension, by a race."""
        weights = (log_weights - log_weights.amax(-1, keepdim=True).nan_to_num(neginf=0.0)).exp()
        return (weights / torch.empty_like(weights).exponential_(generator=generator).clamp_(min=1e-38)).argmax(-1)

    final = draw(last.unsqueeze(1).expand(batch, n, num_classes))  # (B, n)
    label = final
    rows = torch.arange(batch, device=emissions.device).unsqueeze(1)
    for t in range(steps - 1, -1, -1):
        if t == steps - 1:
            label = final
        else:
            into = step(transitions, t + 1)
            column = into.t()[label] if into.ndim == 2 else into.expand(batch, -1, -1)[rows, :, label]
            label = draw(messages[t].unsqueeze(1) + column)
            if lengths is not None:  # a sequence that ends here takes its last label
                label = torch.where((t + 1 >= lengths).unsqueeze(1), final, label)
        labels[:, :, t] = label
    possible = (last > -math.inf).any(-1)
    if lengths is not None:
        labels = torch.where(from_lengths(lengths, steps).unsqueeze(1), labels, -100)
    return torch.where(possible.view(-1, 1, 1), labels, -100)
