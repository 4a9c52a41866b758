r"""Multi-class hinge losses under a group norm, by accelerated proximal gradient.

The objective ``½ (sum_l |w_l|^p)^{2/p} + sum_i loss_i`` is not strongly convex in the Euclidean norm unless
``p = 2``, so the hinges are smoothed: ``max_b [b · t - |b - beta0|^2 / (2 sigma)]`` around a centre ``beta0`` that
follows the solution (a proximal-point step on the dual). The smoothed losses have a gradient, the norm has a
proximal step, and the maximising ``beta`` are feasible for the true dual,
``sum_i cost_i · beta_i - ½ (sum_l |v_l|^q)^{2/q}``, which measures the gap.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.ops.norms import shrink_group_norm
from torch_multiclass.solvers._hinges import Hinge
from torch_multiclass.solvers._monitor import Monitor
from torch_multiclass.solvers._spaces import Space

_CHECK_EVERY = 10
_INNER = 200


def proximal_gradient(monitor: Monitor, max_passes: int) -> bool:
    """Run until the gap is proved (True) or passes run out (False)."""
    space, hinge = monitor.space, monitor.hinge
    top = _largest_eigenvalue(space)
    sigma = 10 / max(float(space.squared_norms.mean()), 1e-30)
    weight, centre = monitor.weight.clone(), monitor.beta.clone()
    while True:
        rate = 1 / (sigma * top * hinge.curvature)
        ahead, momentum = weight, 1.0
        gap_before = monitor.gap
        for inner in range(_INNER):
            margins = hinge.margins(space.scores(ahead), None)
            beta = hinge.project(torch.add(centre, margins, alpha=sigma), None)
            image = space.image(hinge.alpha(beta))
            monitor.passes += 1
            if inner % _CHECK_EVERY == _CHECK_EVERY - 1 and monitor.see(ahead, margins, beta, image):
                return True
            if monitor.passes >= max_passes:
                return False
            stepped = _shrink(space, ahead + rate * image, rate, monitor.p)
            if float(space.square(stepped - ahead)) + float(space.square(ahead - weight)) < float(
                space.square(stepped - weight)
            ):
                following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
                ahead_next = stepped + (momentum - 1) / following * (stepped - weight)
                momentum = following
            else:  # the momentum points against the step: start it afresh
                ahead_next, momentum = stepped, 1.0
            weight, ahead = stepped, ahead_next
        centre = beta
        if monitor.gap > gap_before / 2:
            sigma *= 2


def _shrink(space: Space, weight: Tensor, rate: float, p: float) -> Tensor:
    """The proximal step of ``rate`` times half the squared group norm: each ``w_l`` keeps its direction."""
    norms = space.class_squares(weight).clamp_min(0).sqrt()
    factors = shrink_group_norm(norms, rate, p) / norms.clamp_min(torch.finfo(norms.dtype).tiny)
    return space.scale_classes(weight, factors.to(weight.dtype))


def _largest_eigenvalue(space: Space) -> float:
    """Of the Gram matrix, by power iteration, a little over."""
    vector = torch.ones(space.rows, 1, device=space.device, dtype=space.dtype) / math.sqrt(space.rows)
    value = 0.0
    for _ in range(50):
        vector = space.scores(space.image(vector))
        value = float(vector.norm())
        if value == 0:
            return 1e-30
        vector = vector / value
    return 1.05 * value
