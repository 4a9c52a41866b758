r"""A chain read backwards is a Markov chain: draws, entropy and Kullback-Leibler divergence follow from its steps.

With the forward messages ``\alpha_t(j) = \log \sum_{y_1..y_{t-1}} \exp s(y_1, ..., y_t = j)``, the last label has
probability ``\propto \exp(\alpha_n + end)`` and a label before ``y_{t+1} = j`` has
``\propto \exp(\alpha_t + W_{., j})``. Nothing here cancels: messages are normalised at every step, which changes none
of the conditionals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import Chain, below_best, log_sum_exp


def normalised(log_weights: Tensor, dim: int) -> Tensor:
    """``log_softmax``, and all ``-inf`` (no gradient, no NaN) where every weight is 0."""
    dead = (log_weights == -math.inf).all(dim, keepdim=True)
    return torch.where(dead, -math.inf, torch.log_softmax(torch.where(dead, 0.0, log_weights), dim))


def conditionals(chain: Chain) -> Iterator[tuple[Tensor | None, Tensor, Tensor | None]]:
    """For every position ``log p(y_{t-1} = i | y_t = j)``, ``(B, i, j)``, the message, and which rows go on."""
    emissions = chain.emissions
    if chain.lengths is not None:
        emissions = torch.where(chain.inside()[..., None], emissions, 0)
    emissions = below_best(emissions, (-1,))
    message = normalised(emissions[:, 0] + chain.start, 1)
    yield None, message, None
    for t in range(1, emissions.shape[1]):
        joint = message[..., None] + chain.step(t)
        new = normalised(log_sum_exp(joint, 1) + emissions[:, t], 1)
        going = None if chain.lengths is None else (t < chain.lengths)[:, None]
        message = new if going is None else torch.where(going, new, message)
        yield normalised(joint, 1), message, going


def expected(log_p: Tensor, values: Tensor, dim: int) -> Tensor:
    """``sum_i p_i v_i``, where an impossible ``i`` hides whatever ``v_i`` is and ``p_i > 0`` never hides ``+inf``."""
    possible = log_p > -math.inf
    endless = possible & (values == math.inf)  # p_i may underflow to 0, and 0 * inf is not inf
    usable = possible & ~endless
    terms = torch.where(possible, log_p, -math.inf).exp() * torch.where(usable, values, 0.0)
    return torch.where(endless, math.inf, terms).sum(dim)


def where_nonempty(values: Tensor, chain: Chain) -> Tensor:
    """The values ``(B,)``, 0 for an empty sequence."""
    return values if chain.lengths is None else torch.where(chain.lengths > 0, values, 0.0)


def entropy(chain: Chain) -> Tensor:
    r"""``-\sum_y p(y) \log p(y)``, ``(B,)``: the entropy of the prefix given its last label, carried along the chain.

    In float64, since a constant shared by all scores cancels only there.

    Reference: Hernando, Crespi and Cybenko (2005), Efficient computation of the hidden Markov model entropy.
    """
    chain = chain.double()
    if chain.emissions.shape[1] == 0:
        return chain.emissions.sum((1, 2))
    last = message = torch.zeros_like(chain.emissions[:, 0])
    for before, message, going in conditionals(chain):  # noqa: B007
        if before is not None:
            new = expected(before, last[..., None] - before, 1)
            last = new if going is None else torch.where(going, new, last)
    final = normalised(message + chain.end, 1)
    return where_nonempty(expected(final, last - final, 1), chain)


def kl(p: Chain, q: Chain) -> Tensor:
    r"""``\sum_y p(y) \log(p(y) / q(y))`` of two chains over the same positions, ``(B,)``.

    A sum of divergences of the conditionals, so no large numbers cancel; ``+inf`` where ``q`` forbids what ``p`` does
    not. In float64, since what is left of two chains that hardly differ is smaller than float32 can tell.
    """
    p, q = p.double(), q.double()
    if p.emissions.shape[1] == 0:
        return p.emissions.sum((1, 2)) + q.emissions.sum((1, 2))
    last = message_p = message_q = torch.zeros_like(p.emissions[:, 0])
    for (before_p, message_p, going), (before_q, message_q, _) in zip(conditionals(p), conditionals(q), strict=True):  # noqa: B007
        if before_p is not None and before_q is not None:
            new = expected(before_p, last[..., None] + before_p - before_q, 1)
            last = new if going is None else torch.where(going, new, last)
    final_p, final_q = normalised(message_p + p.end, 1), normalised(message_q + q.end, 1)
    return where_nonempty(expected(final_p, last + final_p - final_q, 1), p)


@torch.no_grad()
def sample(chain: Chain, n: int, generator: torch.Generator | None = None) -> Tensor:
    """``n`` independent labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 beyond the length.

    Forward filtering, backward sampling; -100 throughout where no labelling is possible.
    """
    batch, steps, num_labels = chain.emissions.shape
    if steps == 0 or batch == 0:
        return torch.full((batch, n, steps), -100, dtype=torch.long, device=chain.emissions.device)
    messages = [message for _, message, _ in conditionals(chain)]
    last = messages[-1] + chain.end
    final = label = draw(last[:, None].expand(batch, n, num_labels), generator)  # (B, n)
    rows, backwards = torch.arange(batch, device=label.device)[:, None], [final]
    for t in range(steps - 2, -1, -1):
        into = chain.step(t + 1).expand(batch, -1, -1)[rows, :, label]
        label = draw(messages[t][:, None] + into, generator)
        if chain.lengths is not None:  # a sequence that ends here takes its last label
            label = torch.where((t + 1 >= chain.lengths)[:, None], final, label)
        backwards.append(label)
    labels = torch.stack(backwards[::-1], 2)
    possible = (last > -math.inf).any(-1)[:, None, None]
    return torch.where(possible & chain.inside()[:, None], labels, -100)


def draw(log_weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """An index with probability proportional to ``exp(log_weights)`` over the last dimension, by a race."""
    weights = (log_weights - log_weights.amax(-1, keepdim=True).nan_to_num(neginf=0.0)).exp()
    return (weights / torch.empty_like(weights).exponential_(generator=generator).clamp(min=1e-38)).argmax(-1)
