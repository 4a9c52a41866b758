"""Label sequences as the online learners take them: positions one below the other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Asked, Rows, Rule, State, visit_chains
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scores._chain_checks import check_positions
from torch_multiclass.solvers.online.examples import Examples
from torch_multiclass.solvers.problem import Problem, RowWeights, forbidden_labels
from torch_multiclass.solvers.space import check_weight
from torch_multiclass.tags import Constraints


@dataclass(frozen=True)
class Sequences(Examples):
    """Sequences of labelled positions: `rows` are the positions that count, and `asked` says which are of one."""

    constraints: Constraints | None
    """What is forbidden."""

    sequential = True

    def height(self, bias: bool) -> int:
        return self.rows.width + bias + self.classes + 2

    def visit(self, state: State, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
        visit_chains(state, self.rows, self.asked, steps, self._allowed(state), bias, order)

    def _allowed(self, state: State) -> Tensor | None:
        """``(K + 2, P)``."""
        if self.constraints is None:
            return None
        allowed = torch.zeros(self.classes + 2, state.weights.shape[1], dtype=torch.float64)
        transitions, start, end = self.constraints
        allowed[:, : self.classes] = torch.cat([transitions, start[None], end[None]]).to(allowed)
        return allowed

    def scorer(self, weight: Tensor, bias: bool) -> ChainScorer:
        weight, width, k = weight.to(self.features), self.rows.width, self.classes
        check_weight(weight)
        with torch.random.fork_rng(devices=[]):  # nothing that it draws stays
            scorer = ChainScorer(width, k, self.constraints, bias=bias, device="cpu", dtype=weight.dtype)
        scorer = scorer.to(weight.device)
        emissions, moves = weight[:, : width + bias], weight[:, width + bias :].mT
        parts = {
            "emissions.weight": emissions[:, :width],
            "chain.transitions": moves[:k],
            "chain.start_transitions": moves[k],
            "chain.end_transitions": moves[k + 1],
        }
        scorer.load_state_dict({**parts, **({"emissions.bias": emissions[:, width]} if bias else {})})
        return scorer


def sequences(
    features: Tensor,
    target: Tensor,
    weight: RowWeights | None,
    num_classes: int | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    constraints: Constraints | None,
    all_there: bool = True,
) -> Sequences:
    """The sequences that count, checked; there may be none. ``all_there`` unless others came before them.

    Shape:
        features ``(N, T, D)``; target and mask ``(N, T)``; weight and lengths ``(N)``.
    """
    check.floating("features", features)
    if features.ndim != 3:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, T, D), one sequence an example")
    count, steps, width = features.shape
    if width == 0:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, T, D), at least one feature")
    check.class_indices("target", target)
    check.shape("target", target, (count, steps), "one label for each position")
    check.same_device("target", target, "features", features)
    check_positions(mask, lengths, ("features", features), (count,), steps)
    if features.device.type == "meta":
        raise ValueError("features: are on the meta device; accepted are features with values")
    target = target.detach().long()
    known, inside = target != check.IGNORE, mask
    if lengths is not None and inside is None:
        inside = torch.arange(steps, device=target.device) < lengths[:, None]
    inside = known if inside is None else inside
    kept = (inside & known).any(1)
    torn = kept & (inside & ~known).any(1)
    if bool(torn.any()):
        raise ValueError(
            f"target: sequence {int(torn.nonzero()[0])} has a position without a label (-100) that counts by mask or "
            "lengths; accepted is a label at each, or at none"
        )
    flat = Problem.labelled(features.new_zeros(count, 1), torch.where(kept, 0, check.IGNORE), weight)
    kept = torch.zeros_like(kept)
    kept[flat.positions] = True
    counts = inside & kept[:, None]
    values, labels = features.detach()[counts], target[counts]
    if not bool(values.isfinite().all()):
        bad = counts.nonzero()[(~values.isfinite()).any(1)][0]
        raise ValueError(
            f"features: sequence {int(bad[0])} has an entry that is not finite at position {int(bad[1])}; accepted are "
            "finite features"
        )
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    if num_classes is None and constraints is not None:
        num_classes = len(constraints.start)
    if num_classes is None:
        num_classes = max(int(labels.max()) + 1, 2) if len(labels) else 2
    num_classes = check.whole("num_classes", num_classes, least=2)
    check.label_range("target", labels, num_classes, validate_args=True, all_there=all_there)
    first = torch.cat([flat.positions.new_zeros(1), counts.sum(1).cumsum(0)]).cpu()
    if constraints is not None:
        check_allowed(constraints, num_classes, torch.where(counts, target, check.IGNORE).cpu())
    weights = torch.zeros(count, dtype=torch.float64)
    weights[flat.positions.cpu()] = flat.weight.cpu()
    return Sequences(
        features=values,
        labels=labels,
        weight=flat.weight,
        classes=num_classes,
        positions=flat.positions,
        given=count,
        rows=Rows(values.cpu().contiguous(), width),
        asked=Asked("labels", labels.cpu(), first),
        visits=flat.positions.cpu(),
        steps=weights,
        constraints=constraints,
    )


def check_constraints(given: object) -> Constraints | None:
    """None, or constraints with values."""
    if given is not None and not isinstance(given, Constraints):
        raise TypeError(f"constraints: got {check.came(given)}; accepted is what tag_constraints(tags) gives")
    if given is not None:
        for name, part in zip(Constraints._fields, given, strict=True):
            check.floating(f"constraints.{name}", part)
            check.with_values(f"constraints.{name}", part)
    return given


def check_allowed(constraints: Constraints, classes: int, target: Tensor) -> None:
    """Raise where the labels ``(N, T)`` of a sequence, -100 where there is no position, go where none may."""
    transitions, start, end = (part.cpu() for part in constraints)
    for name, part, shape in zip(
        Constraints._fields, (transitions, start, end), ((classes, classes), (classes,), (classes,)), strict=True
    ):
        check.shape(f"constraints.{name}", part, shape, f"for {classes} tags")
    for i, row in enumerate(target):
        labels = row[row != check.IGNORE]
        if len(labels):
            score = transitions[labels[:-1], labels[1:]].sum() + start[labels[0]] + end[labels[-1]]
            if not score > -torch.inf:
                raise forbidden_labels(i)
