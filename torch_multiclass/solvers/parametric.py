"""Machines of any structure: planes in the parameters of a scorer that is linear in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call

from torch_multiclass.costs import Cost
from torch_multiclass.losses.base import Loss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scores import Scores
from torch_multiclass.solvers.linearity import SOME, check_linear, check_scores
from torch_multiclass.solvers.objective import Dual, Kept, Objective, Point
from torch_multiclass.solvers.planes import Planes, planes, shaped
from torch_multiclass.solvers.sequences import Examples

__all__ = ["KeptSlopes", "Parametric"]

_MEMORY = 2**27  # numbers that describe the planes kept
_ROUNDING = 1e-12


class Parametric(Objective[Planes]):
    """Weights are one vector of all parameters.

    Args:
        problem: the examples.
        scorer: linear in its parameters.
        loss: makes a loss of a cost and a reduction.
        cost: of a wrong label, None for the default.
        strength: of each example's loss.
        scale: the square of the transition scale, for the parameters that do not multiply features.
    """

    def __init__(
        self,
        problem: Examples,
        scorer: Scorer,
        loss: Callable[..., Loss],
        cost: Cost | None,
        strength: Tensor,
        scale: float,
    ) -> None:
        self.problem, self.strength, self.dtype = problem, strength, problem.features.dtype
        self.template = scorer.cpu().double()
        self.features, self.labels = problem.features.cpu().double(), problem.labels.cpu()
        self.loss, self.losses = loss(cost=cost, reduction="sum"), loss(cost=cost, reduction="none")
        of_features = {
            id(part)
            for module in scorer.modules()
            if isinstance(module, (nn.Linear, LinearScorer, KernelScorer))
            for part in module.parameters(recurse=False)
        }
        self.own = {name: part.detach() for name, part in scorer.named_parameters()}
        self.scales = torch.cat(
            [
                torch.full((part.numel(),), 1.0 if id(part) in of_features else scale, dtype=torch.float64)
                for part in scorer.parameters()
            ]
        )
        check_linear(lambda weight: self._scores(weight, SOME), self.zero().parts[0], type(scorer).__name__)
        check_scores(self._scores(self.zero().parts[0]), self.labels, problem.positions, self.loss)

    def zero(self) -> Point:
        return Point((torch.zeros_like(self.scales),))

    def planes(self, point: Point) -> tuple[Tensor, Planes]:
        (weight,) = point.parts
        found = planes(self.template, self.loss, self.features, self.labels, weight=weight, **self.problem.structure)
        return found.loss, found

    def inner(self, one: Point, other: Point) -> float:
        return float((one.parts[0] * other.parts[0] / self.scales).sum())

    def pull(self, found: Planes, shares: Tensor) -> tuple[Point, float]:
        return Point((-self.scales * (shares @ found.slope),)), float((shares * found.offset).sum())

    def multipliers(self, found: Planes | None, shares: Tensor) -> Tensor:
        some = torch.zeros_like(shares) if found is None else shares * found.slope.any(1)
        return some.unsqueeze(1)

    def kept(self) -> KeptSlopes:
        examples, parameters = len(self.strength), len(self.scales)
        capacity = min(max(_MEMORY // (examples * parameters), 4), 20)
        zeros = [torch.zeros(shape, dtype=torch.float64) for shape in [(examples, capacity)] * 2]
        return KeptSlopes(
            self,
            self.zero().parts[0],
            torch.zeros(examples, dtype=torch.long),
            torch.zeros(examples, capacity, parameters, dtype=torch.float64),
            *zeros,
        )

    def exact(self, point: Point) -> tuple[float, float, float]:
        wide = point.map(torch.Tensor.double)
        sums = [float((self.strength * self._losses(p.parts[0])).sum()) for p in (wide, point)]
        return self.inner(wide, wide), sums[0], sums[1]

    def _losses(self, weight: Tensor) -> Tensor:
        """Of all examples, as a scorer in the weight's dtype computes them."""
        losses: Tensor = self.losses(self._scores(weight), self.labels)
        return losses.double()

    def _scores(self, weight: Tensor, some: int | None = None) -> Tensor | Scores:
        """Of the first examples, by default of all, as a scorer in the weight's dtype computes them."""
        held = shaped(weight, self.own)
        buffers = {
            name: part.to(weight.dtype) for name, part in self.template.named_buffers() if part.is_floating_point()
        }
        features, structure = self.features[:some].to(weight.dtype), self.problem.structure
        structure = {name: part[:some] for name, part in structure.items()}
        scores: Tensor | Scores = functional_call(self.template, {**held, **buffers}, (features,), structure)
        return scores

    def scorer(self, point: Point) -> Scorer:
        (weight,) = point.parts
        scorer = self.template.to(weight.dtype)
        scorer.load_state_dict({**scorer.state_dict(), **shaped(weight, self.own)})
        return scorer.to(self.problem.features.device)

    def stored(self, point: Point) -> Tensor:
        return point.parts[0].unsqueeze(0)

    def support(self, alpha: Tensor) -> Tensor:
        return self.problem.positions


@dataclass(frozen=True)
class KeptSlopes(Kept[Planes]):
    """Shares of planes: weight ``(P)``; count ``(N)``; slope ``(N, A, P)``; offset and share ``(N, A)``."""

    objective: Parametric
    weight: Tensor
    count: Tensor
    slope: Tensor
    offset: Tensor
    share: Tensor

    @property
    def known(self) -> Tensor:
        return self.offset

    @property
    def shares(self) -> Tensor:
        return self.share

    def pull(self, shares: Tensor) -> tuple[Point, float]:
        weight = -self.objective.scales * torch.einsum("ia,iap->p", shares, self.slope)
        return Point((weight,)), float((shares * self.offset).sum())

    def visit(self, order: Tensor, steps: int, found: Planes | None = None) -> KeptSlopes:
        full = False
        for i in order.tolist():
            if found is not None:
                full |= not self._keep(i, found.slope[i], float(found.offset[i]))
            self._ascend(i, steps)
        return self.grown() if full else self

    def grown(self) -> KeptSlopes:
        """With room for twice as many planes."""
        more = self.share.shape[1]
        pad = torch.nn.functional.pad
        offset, share = (pad(part, (0, more)) for part in (self.offset, self.share))
        return replace(self, slope=pad(self.slope, (0, 0, 0, more)), offset=offset, share=share)

    def _keep(self, i: int, slope: Tensor, offset: float) -> bool:
        """Whether there was room."""
        count, share = int(self.count[i]), self.share[i]
        if not bool(slope.any()) or bool((self.slope[i, :count] == slope).all(1).any()):
            return True
        if count < len(share):
            place = count
            self.count[i] += 1
        else:
            free = (share == 0).nonzero().squeeze(1)
            if not len(free):
                return False
            values = self.offset[i, free] + self.slope[i, free] @ self.weight
            place = int(free[values.argmin()])
        self.slope[i, place], self.offset[i, place], self.share[i, place] = slope, offset, 0.0
        return True

    def _ascend(self, i: int, steps: int) -> None:
        """Pairwise steps, with the plane 0 behind the others."""
        count, strength, scales = int(self.count[i]), float(self.objective.strength[i]), self.objective.scales
        slopes = torch.cat([self.slope[i, :count], torch.zeros_like(self.slope[i, :1])])
        values = slopes @ self.weight
        values[:count] += self.offset[i, :count]
        rest = strength - self.share[i, :count].sum()
        share = torch.cat([self.share[i, :count], torch.where(rest > _ROUNDING * strength, rest, 0.0).view(1)])
        before, products = share.clone(), (slopes * scales) @ slopes.mT
        for _ in range(steps):
            high = int(values.argmax())
            low = int(torch.where(share > 0, values, torch.inf).argmin())
            gain = float(values[high] - values[low])
            if not gain > 0:
                break
            square = float(products[high, high] + products[low, low] - 2 * products[high, low])
            most = float(share[low])
            size = gain / square if gain < most * square else most
            share[high] += size
            share[low] = 0.0 if size == most else most - size
            values -= size * (products[:, high] - products[:, low])
        self.share[i, :count] = share[:count]
        self.weight.sub_(scales * ((share - before) @ slopes))

    def point(self) -> Point:
        return Point((self.weight.clone(),))

    def linear(self) -> float:
        return float((self.share * self.offset).sum())

    def anew(self) -> KeptSlopes:
        total, strength = self.share.clamp(min=0).sum(1), self.objective.strength
        self.share.clamp_(min=0).mul_((strength / total.clamp(min=1e-300)).clamp(max=1).unsqueeze(1))
        self.weight.copy_(self.pull(self.share)[0].parts[0])
        return self

    def multipliers(self) -> Tensor:
        return self.share

    def begun_at(self, other: Dual, ratio: float) -> KeptSlopes:
        assert isinstance(other, KeptSlopes)
        fresh = replace(self, count=other.count.clone(), slope=other.slope.clone(), offset=other.offset.clone())
        return replace(fresh, share=other.share * ratio).anew()
