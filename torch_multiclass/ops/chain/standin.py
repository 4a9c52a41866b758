"""stand-in until the engine lands."""
import math
import torch

def _lse(x, dim):
    dead = (x == -math.inf).all(dim, keepdim=True)
    return torch.where(dead.squeeze(dim), -math.inf, torch.logsumexp(torch.where(dead, 0.0, x), dim))

def log_partition(emissions, transitions, start, end, lengths, *, method="auto"):
    batch, steps, _ = emissions.shape
    if steps == 0:
        return emissions.sum((1, 2))
    alpha = emissions[:, 0] + (0 if start is None else start)
    for t in range(1, steps):
        step = transitions if transitions.ndim == 2 else transitions[:, t - 1]
        new = _lse(alpha.unsqueeze(2) + step, 1) + emissions[:, t]
        alpha = new if lengths is None else torch.where((t < lengths).unsqueeze(1), new, alpha)
    total = _lse(alpha + (0 if end is None else end), 1)
    return total if lengths is None else torch.where(lengths > 0, total, torch.zeros_like(total))

def negative_log_likelihood(emissions, transitions, start, end, lengths, labels, *, method="auto"):
    from torch_multiclass.ops.chain.path import path_terms
    t = path_terms(emissions, transitions, start, end, lengths, labels.unsqueeze(1)).squeeze(1)
    T, K = emissions.shape[1:]
    if T == 0: return emissions.sum((1,2))
    bad = (t == -math.inf)
    t = torch.where(bad, 0., t)
    at, bt, s, f = t.split([T, T-1, 1, 1], 1)
    e = emissions - at.unsqueeze(2) - torch.nn.functional.pad(bt, (1, 0)).unsqueeze(2)
    z = log_partition(e, transitions, (0 if start is None else start) - s, (0 if end is None else end) - f, lengths)
    return torch.where(bad.any(1), math.inf, z)

def marginals(emissions, transitions, start, end, lengths):
    with torch.enable_grad():
        emissions = emissions.clone() if emissions.is_inference() else emissions
        e = emissions if emissions.requires_grad else emissions.detach().requires_grad_()
        z = log_partition(e, transitions, start, end, lengths)
        g, = torch.autograd.grad(torch.where(z.isfinite(), z, 0).sum(), e, create_graph=True)
    return g

def pair_marginals(emissions, transitions, start, end, lengths):
    B, T, K = emissions.shape
    with torch.enable_grad():
        tr = (transitions if transitions.ndim == 4 else transitions.expand(1, max(T - 1, 0), K, K)).expand(B, -1, K, K).clone()
        tr.requires_grad_(True) if not tr.requires_grad else None
        z = log_partition(emissions, tr, start, end, lengths)
        if T < 2: return tr * 0
        g, = torch.autograd.grad(torch.where(z.isfinite(), z, 0).sum(), tr, create_graph=True)
    return g

@torch.no_grad()
def viterbi(emissions, transitions, start, end, lengths):
    B, T, K = emissions.shape
    labels = torch.full((B, T), -100, dtype=torch.long)
    if T == 0:
        return labels, emissions.new_zeros(B)
    if lengths is None: lengths = torch.full((B,), T)
    a = emissions[:, 0] + (0 if start is None else start)
    bp = []
    for t in range(1, T):
        step = transitions if transitions.ndim == 2 else transitions[:, t - 1]
        v, i = (a.unsqueeze(2) + step).max(1)
        a = torch.where((t < lengths).unsqueeze(1), v + emissions[:, t], a); bp.append(i)
    best, y = (a + (0 if end is None else end)).max(1)
    for t in range(T - 1, -1, -1):
        inside = t < lengths
        labels[:, t] = torch.where(inside & (best > -math.inf), y, -100)
        if t: y = torch.where(inside, bp[t - 1].gather(1, y[:, None])[:, 0], y)
    return labels, torch.where(lengths > 0, best, 0)
