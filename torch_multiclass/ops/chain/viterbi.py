"""The best labelling: max values only, the best path read back from them."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass._validation import IGNORE
from torch_multiclass.ops.chain.logspace import Chain
from torch_multiclass.ops.chain.structure import inside, row, step


def best_labels(chain: Chain) -> Tensor:
    """``argmax_y s(y)``, ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards."""
    batch, steps, num_labels = chain.emissions.shape
    if batch == 0 or steps == 0:
        return chain.emissions.new_full((batch, steps), IGNORE, dtype=torch.long)
    kept = inside(chain.emissions, chain.lengths).t()
    emissions = chain.emissions.transpose(0, 1)
    best = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    best[0] = emissions[0] + row(chain.start)
    for t in range(1, steps):
        best[t] = (best[t - 1, :, :, None] + step(chain.transitions, t)).amax(1) + emissions[t]
    labels = torch.empty((steps, batch), dtype=torch.long, device=emissions.device)
    labels[-1] = (best[-1] + row(chain.end)).argmax(1)
    for t in range(steps - 1, 0, -1):
        into = step(chain.transitions, t).expand(batch, -1, -1)
        into = into.gather(2, labels[t, :, None, None].expand(batch, num_labels, 1))[..., 0]
        ending = ~kept[t, :, None]
        labels[t - 1] = (best[t - 1] + torch.where(ending, row(chain.end), into)).argmax(1)
    return torch.where(kept, labels, IGNORE).t()
