"""Machines that label rows, or sequences with scores of neighbours, by features or by a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from torch_multiclass.costs import Cost, as_cost, trusted
from torch_multiclass.losses.structured import M3NLoss, SVMStructLoss
from torch_multiclass.ops.labellings import Found, Labellings, ascend
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scores import ChainScores
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.objective import Dual, Kept, Objective, Point
from torch_multiclass.solvers.sequences import Sequences
from torch_multiclass.solvers.space import LinearSpace

__all__ = ["KeptLabellings", "Labelled"]

_ENTRIES = 2**22  # of scores looked at together


class Labelled(Objective[Found]):
    """Weights are ``(weight, transitions, start, end)``, the first as in `Space`; rows have the first only.

    Args:
        problem: the examples.
        space: of the features, in float64 but for a Gram matrix; on the CPU.
        loss: ``"m3n"`` or ``"svmstruct"``.
        cost: of a wrong label.
        strength: of each example's loss.
        scale: the square of the transition scale.
    """

    def __init__(
        self,
        problem: Sequences,
        space: LinearSpace | KernelSpace,
        loss: str,
        cost: Cost | None,
        strength: Tensor,
        scale: float,
    ) -> None:
        self.problem, self.space, self.strength, self.scale = problem, space, strength, scale
        self.dtype, self.m3n, self.gold = problem.features.dtype, loss == "m3n", problem.labels.cpu()
        self.cost = as_cost("hamming") if cost is None else cost
        self.batches = [self._batch(examples) for examples in self._parts()]
        self.costs = torch.empty(len(self.gold), problem.classes, dtype=torch.float64)
        for batch in self.batches:
            self.costs[batch.rows[batch.inside]] = batch.costs(problem.classes)

    def _parts(self) -> list[Tensor]:
        """The examples in order of length, so many scores at a time at most."""
        order = self.problem.lengths.argsort(stable=True)
        sums = self.problem.lengths[order].cumsum(0) * self.problem.classes
        return [part for part in order.tensor_split((sums // _ENTRIES).diff().nonzero().squeeze(1) + 1) if len(part)]

    def _batch(self, examples: Tensor) -> _Batch:
        lengths = self.problem.lengths[examples]
        steps = torch.arange(int(lengths.max()))
        inside = steps < lengths.unsqueeze(1)
        rows = (self.problem.first[examples].unsqueeze(1) + steps).masked_fill(~inside, 0)
        cost = self.problem.cost_of(self.cost, examples)
        loss = (M3NLoss if self.m3n else SVMStructLoss)(cost=cost, reduction="none", validate_args=False)
        return _Batch(examples, lengths, rows, inside, self.gold[rows].masked_fill(~inside, 0), cost, loss)

    # ---------------------------------------------------------------------------------------------- weights and scores

    def zero(self) -> Point:
        k = self.problem.classes
        weight = torch.zeros_like(self.space.zero(k), dtype=torch.float64)
        return Point((weight, *(weight.new_zeros(shape) for shape in ((k, k), (k,), (k,)) if self.problem.chain)))

    def planes(self, point: Point) -> tuple[Tensor, Found]:
        weight, *neighbours = point.parts
        scores = weight[1] if isinstance(self.space, KernelSpace) else self.space.features @ weight.mT
        return self.found(scores, neighbours)

    def found(self, scores: Tensor, neighbours: Sequence[Tensor]) -> tuple[Tensor, Found]:
        """The losses at the scores ``(M, K)``, by the verbs, and the labellings that attain them: they alone have a
        gradient."""
        losses, labels = torch.empty_like(self.strength), self.gold.clone()
        for batch in self.batches:
            losses[batch.examples], slope = batch.value(scores[batch.rows], neighbours)
            best, found = slope.max(2)
            labels[batch.rows[batch.inside]] = torch.where(best > 0, found, batch.target)[batch.inside]
        paid = self.costs.gather(1, labels.unsqueeze(1)).squeeze(1)
        cost = torch.zeros_like(losses).index_add_(0, self.problem.example, paid)
        factor = cost
        if self.m3n:  # a labelling that is wrong at no cost still has a slope
            wrong = (labels != self.gold).double()
            factor = torch.zeros_like(losses).index_add_(0, self.problem.example, wrong).clamp_max(1)
        return losses, Found(labels.to(torch.int32), factor, cost)

    def inner(self, one: Point, other: Point) -> float:
        neighbours = sum(float((a * b).sum()) for a, b in zip(one.parts[1:], other.parts[1:], strict=True))
        return float(self.space.class_products(one.parts[0], other.parts[0]).sum()) + neighbours / self.scale

    def pull(self, found: Found, shares: Tensor) -> tuple[Point, float]:
        one = self._one(found, shares)
        return one.anew().point(), one.linear()

    def multipliers(self, found: Found | None, shares: Tensor) -> Tensor:
        return torch.zeros_like(self.costs) if found is None else self._one(found, shares).multipliers()

    def _one(self, found: Found, shares: Tensor) -> KeptLabellings:
        """A labelling of each example, with its share."""
        kept = self._labellings(1)
        kept.labels, kept.factor, kept.offset = found.labels, found.factor.unsqueeze(1), found.offset.unsqueeze(1)
        kept.share = (shares * (found.factor > 0)).unsqueeze(1)
        return KeptLabellings(self, kept)

    def _labellings(self, capacity: int) -> Labellings:
        gram = isinstance(self.space, KernelSpace)
        return Labellings.none(
            self.space.matrix if isinstance(self.space, KernelSpace) else self.space.features,
            self.problem.first,
            self.gold,
            self.strength,
            self.problem.classes,
            gram=gram,
            neighbours=self.problem.chain,
            scale=self.scale,
            capacity=capacity,
        )

    def kept(self) -> KeptLabellings:
        return KeptLabellings(self, self._labellings(20))

    # --------------------------------------------------------------------------------------------- what comes out of it

    def exact(self, point: Point) -> tuple[float, float, float]:
        weight, *neighbours = point.parts
        coefficients = weight[0] if isinstance(self.space, KernelSpace) else weight.new_zeros(self.costs.shape)
        scores, squares, _ = self.space.exact(weight, coefficients)
        wide = tuple(part.double() for part in neighbours)
        square = float(squares.sum()) + sum(float(part.square().sum()) for part in wide) / self.scale
        ways = [scores] if weight.dtype == torch.float64 else [scores, self.space.evaluated(weight).double()]
        sums = [self.strength @ self.found(each, wide)[0] for each in ways]
        return square, float(sums[0]), float(sums[-1])

    def scorer(self, point: Point) -> Scorer:
        weight, *neighbours = point.parts
        inner = self.space.scorer(weight)
        device = self.problem.features.device
        if not self.problem.chain:
            return inner.to(device)
        assert isinstance(inner, Scorer)
        scorer = chain_scorer(inner)
        for name, part in zip(("transitions", "start_transitions", "end_transitions"), neighbours, strict=True):
            setattr(scorer.chain, name, nn.Parameter(part.clone()))
        return scorer.to(device)

    def stored(self, point: Point) -> Tensor:
        weight = point.parts[0]
        return weight[0].clone() if isinstance(self.space, KernelSpace) else weight

    def support(self, alpha: Tensor) -> Tensor:
        return self.problem.positions


@dataclass(frozen=True)
class _Batch:
    """Some examples of like lengths, padded: examples and lengths ``(B)``; rows, inside and target ``(B, T)``."""

    examples: Tensor
    lengths: Tensor
    rows: Tensor
    inside: Tensor
    target: Tensor
    cost: Cost
    loss: M3NLoss | SVMStructLoss

    def value(self, scores: Tensor, neighbours: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The losses ``(B)``, and their gradient by the scores ``(B, T, K)``."""
        with torch.inference_mode(False), torch.enable_grad():
            given = scores.clone().requires_grad_()
            if neighbours:
                transitions, start, end = (part.clone() for part in neighbours)
                scored = ChainScores(given, transitions, start=start, end=end, lengths=self.lengths)
                losses = self.loss(scored, self.target)
            else:
                losses = self.loss(given.squeeze(1), self.target.squeeze(1))
            (slope,) = torch.autograd.grad(losses.sum(), given)
        return losses.detach(), slope

    def costs(self, classes: int) -> Tensor:
        """What each label costs at each position inside, ``(rows, K)``."""
        costs = trusted(self.cost).rows(self.target, classes, torch.float64)
        if getattr(self.cost, "normalize", False):
            costs = costs / self.lengths.view(-1, 1, 1)
        return costs[self.inside]


@dataclass(frozen=True)
class KeptLabellings(Kept[Found]):
    """Shares of labellings."""

    objective: Labelled
    labellings: Labellings

    @property
    def known(self) -> Tensor:
        return self.labellings.labels

    @property
    def shares(self) -> Tensor:
        return self.labellings.share

    def pull(self, shares: Tensor) -> tuple[Point, float]:
        other = replace(self, labellings=replace(self.labellings, share=shares))._summed()
        return other.point(), other.linear()

    def visit(self, order: Tensor, steps: int, found: Found | None = None) -> KeptLabellings:
        kept = self
        full = ascend(self.labellings, order, steps, found)
        if full:  # what found no room is found again
            kept = replace(self, labellings=self.labellings.grown(2 * self.labellings.capacity))
        return kept

    def point(self) -> Point:
        kept = self.labellings
        weight = torch.stack([kept.multipliers(), kept.state.mT]) if kept.gram else kept.state
        return Point((weight, *(kept.neighbours or ()))).map(torch.clone)

    def linear(self) -> float:
        return float((self.labellings.share * self.labellings.offset).sum())

    def anew(self) -> KeptLabellings:
        kept = self.labellings
        total = kept.share.clamp(min=0).sum(1)
        kept.share = kept.share.clamp(min=0) * (kept.strength / total.clamp(min=1e-300)).clamp(max=1).unsqueeze(1)
        return self._summed()

    def _summed(self) -> KeptLabellings:
        kept = self.labellings
        kept.state = (kept.multipliers().mT.to(kept.rows.dtype) @ kept.rows).double().contiguous()
        kept.neighbours = kept.neighbour_weights()
        return self

    def multipliers(self) -> Tensor:
        return self.labellings.multipliers()

    def begun_at(self, other: Dual, ratio: float) -> KeptLabellings:
        assert isinstance(other, KeptLabellings)
        kept, old = self.labellings, other.labellings
        fresh = replace(
            kept,
            count=old.count.clone(),
            labels=old.labels.clone(),
            factor=old.factor.clone(),
            offset=old.offset.clone(),
        )
        fresh.share = old.share * ratio
        return replace(self, labellings=fresh).anew()


def chain_scorer(inner: Scorer) -> ChainScorer:
    """A chain of the scores of a row; a linear scorer becomes its emissions."""
    if not isinstance(inner, LinearScorer):
        return ChainScorer(inner, inner.num_classes, dtype=next(inner.parameters()).dtype)
    scorer = ChainScorer(inner.in_features, inner.num_classes, bias=inner.bias is not None, device="meta")
    scorer.emissions.weight = inner.weight
    scorer.emissions.register_parameter("bias", inner.bias)
    return scorer
