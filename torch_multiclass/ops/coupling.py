"""Pairwise coupling: class probabilities from those of the pairs of classes."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from torch_multiclass.checks import captured
from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer

_LEAST = 1e-7  # a pair is never quite certain
_BLOCK = 1 << 22  # entries of the systems that are solved at a time: 32 MiB

pack = struct.Struct("@4qd2q").pack
"""The fields of ``TmCoupling`` in ``native/pairs.h``."""


def pairwise_coupling(pair_probability: Tensor, num_classes: int) -> Tensor:
    r"""Class probabilities that agree best with those of the pairs.

    ``min_p sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2`` subject to ``sum_i p_i = 1``, one linear system an example, in
    float64. ``pair_probability`` ``(*, K(K-1)/2)`` holds ``r_ij = P(i | i or j)`` for ``i < j``, strictly in (0, 1).

    Setting the derivative to a multiplier: ``Q p = b 1`` with ``Q_ii = sum_j r_ji^2`` and ``Q_ij = -r_ij r_ji``. So
    ``(Q + 1 1') p`` is along ``1`` as well, and that matrix has a Cholesky factor even where ``Q`` is singular, which
    it is where the pairs agree exactly.
    """
    first, second = torch.triu_indices(num_classes, num_classes, 1, device=pair_probability.device)
    r = pair_probability.double()
    wins = r.new_zeros(*r.shape[:-1], num_classes, num_classes)
    wins[..., first, second] = r
    wins[..., second, first] = 1 - r
    matrix = 1 - wins * wins.mT
    matrix = matrix + torch.diag_embed(wins.square().sum(-2))
    ones = r.new_ones(*r.shape[:-1], num_classes, 1)
    p: Tensor
    if captured():
        p = torch.linalg.solve(matrix, ones)
    else:
        factor, failed = torch.linalg.cholesky_ex(matrix)
        p = torch.cholesky_solve(ones, factor)
        if bool(failed.any()):
            p = torch.where(failed[..., None, None] != 0, torch.linalg.solve_ex(matrix, ones)[0], p)
    p = p.squeeze(-1).clamp(min=0)
    return p / p.sum(-1, keepdim=True)


def coupled_log_probabilities(margins: Tensor, num_classes: int, absent: Tensor | None = None) -> Tensor:
    """Log class probabilities from pair margins, ``P(i | i or j) = sigmoid(2 f_ij)`` kept off 0 and 1 by 1e-7.

    An absent class is taken to lose to every other, so that it takes no share. Solved some rows at a time.
    """
    if captured() or (margins.requires_grad and torch.is_grad_enabled()):
        found = _coupled(margins, num_classes, absent)
    else:
        rows = margins.reshape(-1, margins.shape[-1])
        blocks = torch.split(rows, max(1, _BLOCK // num_classes**2))
        found = torch.cat([_natively(block, num_classes, absent) for block in blocks])
        found = found.reshape(*margins.shape[:-1], num_classes)
    return found.clamp(min=1e-30).log().to(margins.dtype)


def _coupled(margins: Tensor, num_classes: int, absent: Tensor | None) -> Tensor:
    pairs = torch.sigmoid(2 * margins.double()).clamp(_LEAST, 1 - _LEAST)
    if absent is not None:
        first, second = torch.triu_indices(num_classes, num_classes, 1, device=margins.device)
        pairs = torch.where(absent[second] & ~absent[first], 1 - _LEAST, pairs)
        pairs = torch.where(absent[first] & ~absent[second], _LEAST, pairs)
    return pairwise_coupling(pairs, num_classes)


def _natively(margins: Tensor, num_classes: int, absent: Tensor | None) -> Tensor:
    """The probabilities ``(n, K)`` by the native library, and by torch where it has not solved a row."""
    library = _native.library()
    if library is None or margins.device.type != "cpu":
        return _coupled(margins, num_classes, absent)
    f = margins.detach().double().contiguous()
    found, work = f.new_empty(len(f), num_classes), f.new_empty(num_classes * (num_classes + 3))
    wide = torch.float64
    out = None if absent is None else absent.contiguous()
    library.function("tm_couple")(
        pack(
            pointer(f, wide),
            pointer(out, torch.bool),
            len(f),
            num_classes,
            _LEAST,
            pointer(work, wide),
            pointer(found, wide),
        )
    )
    unsolved = found[:, 0] < 0
    if bool(unsolved.any()):
        found[unsolved] = _coupled(margins[unsolved], num_classes, absent)
    return found
