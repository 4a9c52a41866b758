"""What a structure gives, and what `relative_to`, `augment` and `scale` add to its raw scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores._factor import check_factor, is_one
from torch_multiclass.scores._sets import lowest_costs
from torch_multiclass.scores.base import Scores

__all__ = ["Potentials", "Structure", "bans", "or_infinite"]


class Structure(Protocol):
    """The record of a structure: what a labelling of ``T`` positions adds up, for each element of a batch ``B``.

    Each position is covered once: a score added at ``(t, k)`` counts in every labelling with ``y_t = k``.
    """

    def terms(self, labels: Tensor) -> Tensor:
        """What labellings ``(B, n, T)`` add up, ``(B, n, M)``, the same ``M`` places for each of them."""

    def by_position(self, terms: Tensor) -> tuple[Tensor, ...]:
        """The terms ``(B, M)`` of one labelling as parts ``(B, T)``, to be subtracted one after the other."""

    def plus(self, unary: Tensor) -> Self:
        """With ``(B, T, K | 1)`` added to the score of each label at each position."""

    def times(self, factor: float | Tensor) -> Self:
        """With every score multiplied by the factor."""

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 where a position does not count."""

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""


@dataclass(eq=False)
class Potentials(Scores):
    """The scores ``factor * (s(y) + costs(y) - s(y*))``, with a record's ``s``; their verbs are in `Structured`.

    Args:
        reference: ``(*, T)``, set by `relative_to`: a labelling that agrees with the target, to measure from.
        allowed: ``(*, T, K)`` bool, set by `relative_to`: the labels that agree with the target; None where the
            reference alone does.
        sharpness: set by `relative_to`: over the labellings that agree, ``s(y*)`` is the log-sum at this factor, over
            it; the best score where it is infinite.
        costs: ``(*, T, K)``, set by `augment`.
        factor: set by `scale`.
    """

    reference: Tensor | None = field(default=None, kw_only=True, repr=False)
    allowed: Tensor | None = field(default=None, kw_only=True, repr=False)
    sharpness: float | Tensor = field(default=math.inf, kw_only=True, repr=False)
    costs: Tensor | None = field(default=None, kw_only=True, repr=False)
    factor: float | Tensor = field(default=1.0, kw_only=True, repr=False)
    default_cost: ClassVar[str] = "hamming"

    def __post_init__(self) -> None:
        """Check what verbs add, should it be given; a structure checks its own parts first."""
        if self._is_plain() and self.allowed is None and self._takes_best():
            return
        like, whole = ("scores", self._lead()), tuple(self._unary_shape())
        if self.reference is not None:
            check.labels("reference", self.reference, (tuple(self.sites), "a labelling"), self.num_classes, like)
        if self.allowed is not None:
            check.boolean("allowed", self.allowed, "True where a label agrees with the target")
            check.shape("allowed", self.allowed, whole, "a set of labels for each position")
            check.same_device("allowed", self.allowed, *like)
        if self.costs is not None:
            check.floating("costs", self.costs)
            check.shape("costs", self.costs, whole, "a cost for each label at each position")
            check.same_device("costs", self.costs, *like)
        self.factor = check_factor("factor", self.factor, like)
        if not self._takes_best():
            self.sharpness = check_factor("sharpness", self.sharpness, like)

    # ------------------------------------------------------------------------------------------- what a structure gives

    @property
    @abstractmethod
    def raw(self) -> Structure:
        """The record of the raw scores, in float32 at least, with one batch dimension ``B`` for those of ``*``."""

    @property
    @abstractmethod
    def sites(self) -> torch.Size:
        """The shape of a labelling, ``(*, T)``."""

    def _counted(self) -> Tensor | None:
        """Which positions count, ``(*, T)`` bool; None for all."""
        return None

    def _level(self, raw: Structure) -> Structure:
        """The record less what all labellings share, so that nothing large cancels, where that changes no value."""
        return raw

    def _level_all(self, raw: Structure) -> Structure:
        """What `_level` gave less what all labellings share, where a labelling is chosen and values do not matter."""
        return raw

    def _level_sum(self, raw: Structure) -> Structure:
        """What `_level` gave as it is to be summed, where that is done in more digits than the scores have."""
        return raw

    def _guess(self, allowed: Tensor) -> Tensor:
        """A labelling ``(*, T)`` that agrees, to measure from: the lowest label allowed."""
        return allowed.to(torch.uint8).argmax(-1)

    def _best_labels(self, potentials: Structure, allowed: Tensor | None) -> Tensor:
        """The best labelling; with sets of labels ``(B, T, K)`` also the best that agrees: ``(B, 1 | 2, T)``."""
        found = [potentials.best_labels()]
        if allowed is not None:
            found.append(potentials.plus(bans(allowed)).best_labels())
        return torch.stack(found, 1)

    def _log_ratio(self, potentials: Structure, target: Tensor) -> Tensor:
        """``log Z`` less the score of the reference ``(B, T)``, which is 0; or, with sets of labels ``(B, T, K)``, less
        the log-sum over the labellings that agree: ``(B,)``, +inf where the target is forbidden.
        """
        log_z = potentials.log_partition()
        if target.ndim == 2:
            return or_infinite(log_z, (potentials.terms(target.unsqueeze(1)) == -math.inf).any(2).squeeze(1))
        rest = potentials.plus(bans(target)).log_partition()
        return or_infinite(log_z - torch.where(rest == -math.inf, 0.0, rest), rest == -math.inf)

    def _is_plain(self) -> bool:
        """Whether these are the raw scores: no verb has added anything."""
        return self.reference is None and self.costs is None and is_one(self.factor)

    # ---------------------------------------------------------------------------------------------- shapes and targets

    @property
    def batch_shape(self) -> torch.Size:
        """``*``."""
        return self.sites[:-1]

    def _unary_shape(self) -> torch.Size:
        return torch.Size((*self.sites, self.num_classes))

    def _own_dims(self) -> dict[str, int]:
        return {"reference": 1, "allowed": 2, "costs": 2}

    def _rows(self, values: Tensor, behind: int) -> Tensor:
        """``(*, ...)`` with one batch dimension, where ``behind`` dimensions come after those of the batch."""
        if values.ndim == behind + 1:
            return values
        own = values.shape[values.ndim - behind :]
        return values.reshape(math.prod(self.batch_shape), *own)  # `-1` would not do for an empty batch

    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        lead, counted = self._lead(), self._counted()
        if counted is None and ignore_index == check.IGNORE:
            found = check.usual_labels("target", target, self.sites, self.num_classes, lead, validate_args)
            if found is not None:
                return found
        elif counted is not None and ignore_index == check.IGNORE and check.values_readable(lead, validate_args):
            fits = isinstance(target, Tensor) and not target.is_nested and target.shape == self.sites
            fits = fits and not ops.watched()
            labels = ops.mask_labels(counted, target, self.num_classes) if fits else None
            if labels is not None:
                return Target(labels, counted, True)
        return check.labels(
            "target",
            target,
            (tuple(self.sites), "one label for each position"),
            self.num_classes,
            ("scores", lead),
            counts=counted,
            ignore_index=ignore_index,
            validate_args=validate_args,
        )

    def labelled(self, target: Tensor | Target) -> Tensor:
        """How many positions that count carry a label, ``(*)``."""
        return self.check_target(target).kept.sum(-1)

    def all_labelled(self, target: Target) -> bool:
        """Whether every position that counts is known to carry a label, and no example is without one."""
        if not target.complete or target.labels.numel() == 0:
            return False
        kept = target.kept
        if self._counted() is None:
            return True
        marks = kept.numpy() if kept.is_cpu and type(kept) is Tensor else kept
        return bool(marks[..., 0].all()) or bool(marks.any(-1).all())

    def example_weight(self, weight: Tensor, target: Tensor | Target) -> Tensor:
        """An error: a labelling has many classes, and what each mistake costs is said by a cost matrix."""
        raise ValueError(
            "weight: a class weight has no meaning for a sequence, which holds many classes; accepted is a cost "
            "matrix, cost=matrix with matrix[true, predicted], in M3NLoss, SVMStructLoss or CRFLoss"
        )

    # ---------------------------------------------------------------------------------------------------- other scores

    def relative_to(self, target: Tensor | Target, *, unobserved: str = "max", temperature: float = 1.0) -> Self:
        """``d(y) = s(y) - s(y*)``, the differences taken term by term, before anything is summed.

        Args:
            target: ``(*, T)`` labels, -100 where not observed; or ``(*, T, K)`` bool, a set of allowed labels at each
                position. Costs that `augment` adds later are those of the same target.
            unobserved: ``"max"`` or ``"sum"``: whether ``s(y*)`` is the best score or the log-sum over the labellings
                that agree with the target.
            temperature: of that log-sum.
        """
        check.choice("unobserved", unobserved, ("max", "sum"))
        temperature = check.temperature(temperature)
        labels, allowed = self._agreeing(target)
        costs = None if self.costs is None else self.costs - self.costs.gather(-1, labels.unsqueeze(-1))
        sharpness = math.inf if unobserved == "max" else self.factor / temperature
        return self._with(reference=labels, allowed=allowed, sharpness=sharpness, costs=costs)

    def _agreeing(self, target: Tensor | Target) -> tuple[Tensor, Tensor | None]:
        """A labelling that agrees, and the labels allowed at each position unless it is the only one."""
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            check.shape("target", target, (*self.sites, self.num_classes), "a set of allowed labels for each position")
            return self._guess(target), target
        labels, kept, complete = self.check_target(target)
        if labels.dtype == torch.bool:  # sets of labels
            return self._guess(labels), labels
        if complete:
            return labels, None
        label = torch.arange(self.num_classes, device=labels.device)
        allowed = (labels.unsqueeze(-1) == label) | ~kept.unsqueeze(-1)
        return self._guess(allowed), allowed

    def augment(self, cost: Cost, target: Tensor | Target) -> Self:
        """``s(y) + L(y*, y)``, the cost summed over the observed positions."""
        costs = self._cost_table(cost, self.check_target(target))
        if getattr(cost, "normalize", False):
            costs = costs / self._count().unsqueeze(-1).unsqueeze(-1)
        if not is_one(self.factor):
            costs = costs / self.factor
        return self._with(costs=costs if self.costs is None else self.costs + costs)

    def _cost_table(self, cost: Cost, target: Target) -> Tensor:
        """``(*, T, K)``, 0 where there is no label; with sets, the lowest of the labels allowed."""
        if target.labels.dtype == torch.bool:
            return lowest_costs(cost, target.labels, work_dtype(self._lead().dtype))
        costs = as_cost(cost).rows(target.labels, self.num_classes, work_dtype(self._lead().dtype))
        return costs if target.complete and self._counted() is None else costs * target.kept.unsqueeze(-1)

    def _count(self) -> Tensor:
        """The number of positions, at least 1: what a normalised cost is divided by."""
        counted = self._counted()
        if counted is None:
            return torch.full(self.batch_shape, max(self.sites[-1], 1), device=self.device)
        return counted.sum(-1).clamp(min=1)

    def scale(self, factor: float | Tensor) -> Self:
        """``factor * s(y)``."""
        if is_one(factor):
            return self
        return self._with(factor=self.factor * check_factor("factor", factor, ("scores", self._lead())))

    # -------------------------------------------------------------------------------------------- potentials and values

    def _potentials(self, raw: Structure, factor: float | Tensor) -> Structure:
        """The record of ``factor * (s - s(reference) + costs)``, but for a constant if the reference is forbidden."""
        if self.reference is not None and self.sites[-1] > 0:
            terms = raw.terms(self._rows(self.reference, 1).unsqueeze(1)).squeeze(1)
            for part in raw.by_position(torch.where(terms == -math.inf, 0.0, terms)):
                raw = raw.plus(-part.unsqueeze(2))
        if self.costs is not None:
            raw = raw.plus(self._rows(self.costs, 2))
        return raw if is_one(factor) else raw.times(factor)

    def _all(self, raw: Structure | None = None) -> Structure:
        """The record of these scores, but for a constant."""
        return self._potentials(self._level(self.raw) if raw is None else raw, self.factor)

    def _values(self, raw: Structure, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """``s + costs`` of labellings ``(B, n, T)`` less ``s(reference)``, ``(B, n)``, and where that is forbidden.

        In float64, where differences of float32 terms are exact, however large the terms.
        """
        n, forbidden = labels.shape[1], None
        if self.reference is None:
            value = raw.terms(labels).double().sum(2)
        else:
            terms = raw.terms(torch.cat([labels, self._rows(self.reference, 1).unsqueeze(1)], 1)).double()
            own, gold = terms[:, :n], terms[:, n:]
            value = (own - torch.where(gold == -math.inf, 0.0, gold)).sum(2)
            forbidden = (gold == -math.inf).any(2)
        if self.costs is not None:
            at = labels.clamp(min=0).transpose(1, 2)
            value = value + self._rows(self.costs, 2).gather(2, at).transpose(1, 2).sum(2)
        return value, forbidden

    def _scores(self, raw: Structure, labels: Tensor, gold: Tensor | None = None) -> Tensor:
        """The scores of labellings ``(B, n, T)``, ``(B, n)``; ``gold`` is the best that agrees, where it is known."""
        n = labels.shape[1]
        level = raw if self.allowed is None or self._takes_best() else self._level_sum(self._level(raw))
        value, forbidden = self._values(level, labels if gold is None else torch.cat([labels, gold], 1))
        value, known = value[:, :n], value[:, n:]
        if self.allowed is not None:
            rest = self._rest(raw).unsqueeze(1) if gold is None else torch.where(self._agrees(gold), known, -math.inf)
            forbidden, value = rest == -math.inf, value - torch.where(rest == -math.inf, 0.0, rest)
        value = value if is_one(self.factor) else value * self.factor
        if forbidden is not None:
            value = or_infinite(value, forbidden)
        return torch.where(value == -math.inf, -math.inf, value).to(work_dtype(self._lead().dtype))

    def _rest(self, raw: Structure) -> Tensor:
        """What ``s(y*)`` has more than ``s(reference)``, a forbidden one being worth 0 once levelled, ``(B,)``."""
        assert self.allowed is not None
        unary = bans(self._rows(self.allowed, 2))
        if self._takes_best():
            with unrecorded():
                gold = self._potentials(self._level(raw), 1.0).plus(unary).best_labels()
            value, _ = self._values(raw, gold.unsqueeze(1))
            return torch.where(self._agrees(gold.unsqueeze(1)), value, -math.inf).squeeze(1)
        raw = self._level_sum(self._level(raw))
        return self._potentials(raw, self.sharpness).plus(unary).log_partition() / self.sharpness

    def _agrees(self, labels: Tensor) -> Tensor:
        """Whether labellings ``(B, n, T)`` agree with the target, ``(B, n)``: none may where that is forbidden."""
        assert self.allowed is not None
        inside = self._rows(self.allowed, 2).gather(2, labels.clamp(min=0).transpose(1, 2)).transpose(1, 2)
        return (inside | (labels < 0)).all(2)

    def _takes_best(self) -> bool:
        """Whether ``s(y*)`` is the best score of those that agree, not a log-sum."""
        return isinstance(self.sharpness, float) and self.sharpness == math.inf


def bans(allowed: Tensor) -> Tensor:
    """0 where a label is allowed, ``-inf`` elsewhere."""
    return torch.where(allowed, 0.0, -math.inf)


def or_infinite(value: Tensor, forbidden: Tensor) -> Tensor:
    """The value; a constant +inf, unless the value is NaN, where the target is forbidden."""
    return torch.where(forbidden, value.detach().clamp(-1, 1) + math.inf, value)
