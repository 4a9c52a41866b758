"""Costs beside a set of labels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.costs import Cost, as_cost


def lowest_costs(cost: Cost, allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """What each label costs beside the allowed one that it costs least beside, for sets ``(*, T, K)``; 0 beside none.

    A cost is a sum over positions, so this is the least cost to a labelling that agrees.
    """
    cost = as_cost(cost)
    lowest = torch.full(allowed.shape, math.inf, dtype=dtype, device=allowed.device)
    for k, here in enumerate(allowed.unbind(-1)):
        row = cost.rows(torch.full_like(here, k, dtype=torch.long), allowed.shape[-1], dtype)
        lowest = torch.minimum(lowest, torch.where(here.unsqueeze(-1), row, math.inf))
    return torch.where(lowest.isinf(), 0.0, lowest)
