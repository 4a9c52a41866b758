"""A sequence of labels: emissions at its positions, transitions between neighbours, start and end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import Cost
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.chain import slack
from torch_multiclass.ops.chain.layout import LaidOut, from_lengths, lay_out
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores._chain_checks import check_parts, low_rank
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.base import Decoded, Scores
from torch_multiclass.scores.flat import all_true

__all__ = ["ChainScores"]


@registered
@dataclass(eq=False)
class ChainScores(Scores):
    r"""The score of every labelling of a sequence.

    .. math::
        s(y) = start_{y_1} + \sum_t e_{t, y_t} + \sum_{t > 1} trans_{y_{t-1}, y_t} + end_{y_n}

    Masked positions are taken out of the sequence, wherever they are: a hole joins its neighbours by one transition.
    What stands at a masked position changes neither a value nor a gradient. ``-inf`` forbids a label or a transition.
    ``+inf`` and NaN are no scores, and are not looked for, since that would read everything once more: values become
    infinite or NaN. A sequence without positions has one labelling, the empty one, of score 0.

    Args:
        emissions: ``(*, T, K)``; half precision is computed in float32.
        transitions: ``(K, K)`` scores ``[from, to]``; or ``(*, T-1, K, K)``, one matrix into each position but the
            first; or a pair of factors ``(left, right)``, ``(K, R)`` or ``(*, T-1, K, R)``, for ``left @ right.mT``.
        start: ``(K,)`` or ``(*, K)``, scores of the first label; None for 0.
        end: likewise for the last label.
        mask: ``(*, T)`` bool, True where a position counts; any shape of mask.
        lengths: ``(*)`` numbers of positions in ``0..T``, the first ones; an alternative to ``mask``.
        reference: ``(*, T)``, set by `relative_to`: the labelling that the scores are relative to.
        base: ``(*)``, set by `relative_to`: what unobserved labels of the target add to its score.
        costs: ``(*, T, K)``, set by `augment`: added to the scores.
        factor: set by `scale`.

    Raises:
        ValueError: shapes, dtypes or devices that disagree, no label at all (K = 0), a length outside ``0..T``, a mask
            and lengths that say different things.
        TypeError: scores that are not floating-point tensors, a mask that is not bool, lengths that are not integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5.

    Example:
        >>> import torch
        >>> emissions = torch.tensor([[2.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
        >>> scores = ChainScores(emissions, torch.eye(2), lengths=torch.tensor(2))
        >>> scores.decode()
        Decoded(labels=tensor([   0,    0, -100]), score=tensor(3.))
        >>> d = scores.relative_to(torch.tensor([0, 1, -100]))
        >>> d.max_score(), d.log_partition()  # perceptron loss, negative log-likelihood
        (tensor(0.), tensor(0.8828))
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor | None = field(default=None, kw_only=True)
    end: Tensor | None = field(default=None, kw_only=True)
    mask: Tensor | None = field(default=None, kw_only=True)
    lengths: Tensor | None = field(default=None, kw_only=True)
    reference: Tensor | None = field(default=None, kw_only=True, repr=False)
    base: Tensor | None = field(default=None, kw_only=True, repr=False)
    costs: Tensor | None = field(default=None, kw_only=True, repr=False)
    factor: float | Tensor = field(default=1.0, kw_only=True, repr=False)
    default_cost: ClassVar[str] = "hamming"
    leading: ClassVar[str] = "emissions"

    def __post_init__(self) -> None:
        """Check what was given, and multiply out low-rank transitions."""
        given: Any = self.transitions
        if isinstance(given, tuple | list):
            self.transitions = low_rank(*given)
        check_parts(self)

    def _own_dims(self) -> dict[str, int]:
        own = {"emissions": 2, "mask": 1, "lengths": 0, "reference": 1, "base": 0, "costs": 2}
        shared = {"transitions": (self.transitions, 3), "start": (self.start, 1), "end": (self.end, 1)}
        return own | {
            name: dims for name, (part, dims) in shared.items() if part is not None and part.ndim > dims - (dims == 3)
        }

    # ------------------------------------------------------------------------------------------------ shape and targets

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.emissions.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """``*``."""
        return self.emissions.shape[:-2]

    @property
    def positions(self) -> Tensor:
        """Which positions count, ``(*, T)`` bool."""
        if self.mask is not None:
            return self.mask
        if self.lengths is not None:
            return from_lengths(self.lengths, self.emissions.shape[-2])
        return torch.ones(self.emissions.shape[:-1], dtype=torch.bool, device=self.emissions.device)

    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        return check.labels(
            "target",
            target,
            (tuple(self.emissions.shape[:-1]), "one label for each position of the emissions"),
            self.num_classes,
            ("emissions", self.emissions),
            counts=None if self.mask is None and self.lengths is None else self.positions,
            ignore_index=ignore_index,
            validate_args=validate_args,
        )

    def labelled(self, target: Tensor | Target) -> Tensor:
        """How many unmasked positions carry a label, ``(*)``."""
        return self.check_target(target).kept.sum(-1)

    def example_weight(self, weight: Tensor, target: Tensor | Target) -> Tensor:
        """An error: a labelling has many classes, and what each mistake costs is said by a cost matrix."""
        raise ValueError(
            "weight: a class weight has no meaning for a sequence, which holds many classes; accepted is a cost "
            "matrix, cost=matrix with matrix[true, predicted], in M3NLoss, SVMStructLoss or CRFLoss"
        )

    # ----------------------------------------------------------------------------------------------------- other scores

    def relative_to(self, target: Tensor | Target, *, unobserved: str = "max") -> Self:
        """``d(y) = s(y) - s(y*)``, the differences taken term by term, before anything is summed.

        Args:
            target: ``(*, T)`` labels, -100 where not observed; or ``(*, T, K)`` bool, a set of allowed labels at each
                position.
            unobserved: ``"max"`` or ``"sum"``: whether ``s(y*)`` is the best score or the log-sum over the labellings
                that agree with the target.
        """
        check.choice("unobserved", unobserved, ("max", "sum"))
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            check.shape("target", target, tuple(self.emissions.shape), "a set of allowed labels for each position")
            return self._relative_to_sets(target, unobserved)
        labels, kept, complete = self.check_target(target)
        labels = labels.clamp(0, self.num_classes - 1)
        if complete:
            return self._relative_to_labels(labels)
        label = torch.arange(self.num_classes, device=labels.device)
        return self._relative_to_sets((labels.unsqueeze(-1) == label) | ~kept.unsqueeze(-1), unobserved)

    def _relative_to_labels(self, labels: Tensor) -> Self:
        costs = self.costs
        if costs is not None:
            costs = costs - costs.gather(-1, labels.unsqueeze(-1))
        return self._with(reference=labels, base=None, costs=costs)

    def _relative_to_sets(self, allowed: Tensor, unobserved: str) -> Self:
        # any allowed labelling serves as the reference of the differences; the rest of s(y*) is `base`
        reference = torch.where(allowed, self.emissions.detach(), -math.inf).argmax(-1)
        d = self._relative_to_labels(reference)._with(base=self.emissions.new_zeros(self.batch_shape))
        agreeing = d.restrict(allowed)
        return d._with(base=agreeing.max_score() if unobserved == "max" else agreeing.log_partition())

    def restrict(self, allowed: Tensor) -> Self:
        """The same scores with all other labels forbidden: ``(*, T, K)`` bool, a set of labels at each position."""
        check.boolean("allowed", allowed, "True where a label is allowed")
        check.shape("allowed", allowed, tuple(self.emissions.shape), "a set of allowed labels for each position")
        return self._with(emissions=torch.where(allowed, self.emissions, -math.inf))

    def augment(self, cost: Cost, target: Tensor | Target) -> Self:
        """``s(y) + L(y*, y)``, the cost summed over the observed positions."""
        costs = self._cost_table(cost, self.check_target(target))
        if getattr(cost, "normalize", False):
            costs = costs / self._count().unsqueeze(-1).unsqueeze(-1)
        if not _is_one(self.factor):
            costs = costs / self.factor
        return self._with(costs=costs if self.costs is None else self.costs + costs)

    def _cost_table(self, cost: Cost, target: Target) -> Tensor:
        costs = cost.rows(target.labels, self.num_classes, upcast(self.emissions).dtype)
        return costs if target.complete else costs * target.kept.unsqueeze(-1)

    def _count(self) -> Tensor:
        """The number of positions, at least 1: what a normalised cost is divided by."""
        return self.positions.sum(-1).clamp(min=1)

    def scale(self, factor: float | Tensor) -> Self:
        """``factor * s(y)``."""
        if _is_one(factor):
            return self
        if not isinstance(factor, Tensor):
            check.positive("factor", factor)
        base = None if self.base is None else self.base * factor
        return self._with(factor=self.factor * factor, base=base)

    # ------------------------------------------------------------------------------------------------ values and labels

    def score(self, labels: Tensor) -> Tensor:
        """``s(labels)``, ``(*)``; ``(*, n)`` for ``n`` labellings ``(*, n, T)``; ``-inf`` where a label is missing."""
        check.class_indices("labels", labels)
        many = labels.ndim == self.emissions.ndim
        expected = (*self.batch_shape, labels.shape[-2] if many else 0, self.emissions.shape[-2])
        expected = expected if many else (*expected[:-2], expected[-1])
        check.shape("labels", labels, expected, "one label for each position of the emissions")
        kept = self.positions.unsqueeze(-2) if many else self.positions
        check.label_range("labels", labels, self.num_classes, kept & (labels != check.IGNORE))
        missing = ((labels == check.IGNORE) & kept).any(-1)
        flat = self._flat()
        batch, steps, _ = flat.chain.emissions.shape
        value = self._values(flat, labels.reshape(batch, labels.shape[-2] if many else 1, steps))
        return torch.where(missing, -math.inf, value.view(missing.shape))

    def max_score(self) -> Tensor:
        """``max_y s(y)``; the gradient goes to the best labelling alone."""
        return self.decode().score

    def decode(self) -> Decoded:
        """The best labelling (Viterbi): labels ``(*, T)``, -100 where masked or where no labelling is possible."""
        flat = self._flat()
        with torch.no_grad():
            labels = self._potentials(flat, centre=True)[0].best_labels()
        value = self._values(flat, labels.unsqueeze(1)).squeeze(1)
        labels = torch.where(value.detach().unsqueeze(1) == -math.inf, check.IGNORE, labels)
        return Decoded(labels.view(self.emissions.shape[:-1]), value.view(self.batch_shape))

    def top(self, k: int) -> Decoded:
        """The ``k`` best labellings, distinct and in order: labels ``(*, k, T)``, scores ``(*, k)``."""
        check.whole("k", k)
        flat = self._flat()
        with torch.no_grad():
            labels, best = ops.k_best(self._potentials(flat, centre=True)[0].chain, k)
            labels = flat.back_labels(labels)
        values = torch.where(best == -math.inf, -math.inf, self._values(flat, labels))
        return Decoded(labels.view(*self.batch_shape, k, self.emissions.shape[-2]), values.view(*self.batch_shape, k))

    def posterior_decode(self, *, legal: bool = True) -> Decoded:
        """The labelling with the most positions right on average; its score is that expected number.

        Args:
            legal: among the labellings that are not forbidden; False takes the most probable label of each position
                alone.
        """
        flat = self._flat()
        with torch.no_grad():
            chain = self._potentials(flat)[0].chain
            probability = ops.marginals(chain)
            if legal:
                bans = ops.Chain._make([*map(_bans, chain[:4]), chain.lengths])
                labels, score = ops.viterbi(bans.plus(probability))
            else:
                best, labels = probability.max(-1)
                score = best.sum(-1)
                possible = ops.log_partition(chain) != -math.inf  # else every marginal is 0
                score = torch.where(possible, score, -math.inf)
                labels = torch.where(chain.inside(), labels, check.IGNORE)
            labels = torch.where(score.unsqueeze(1) == -math.inf, check.IGNORE, labels)
        return Decoded(flat.back(labels, check.IGNORE).view(self.emissions.shape[:-1]), score.view(self.batch_shape))

    def slack_max(self, cost: Cost, target: Tensor | Target, *, exact: bool = True) -> Tensor:
        """``max_y L(y*, y) [1 + s(y) - s(y*)]_+`` for a cost in whole units; unless ``exact``, the lower of
        `slack_bounds`, for any cost.

        Raises:
            ValueError: ``exact`` with a cost that is not a whole multiple of one unit.
        """
        d, flat, chain, costs, unit, most = self._slack(cost, target, exact)
        with torch.no_grad():
            if exact:
                labels = ops.slack_labels(chain, costs, most)
            else:
                labels = ops.slack_search(chain, costs).labels
            labels = torch.where(labels < 0, 0, labels)
            paid = unit * costs.gather(2, labels.unsqueeze(2)).squeeze(2).sum(1)
        hinge = 1 + d._values(flat, flat.back(labels, check.IGNORE).unsqueeze(1)).squeeze(1)
        # the empty sequence and the gold labelling cost 0, whatever the hinge; a forbidden gold is +inf
        value = torch.where((paid > 0) & (hinge > 0) | hinge.isnan(), paid * hinge, 0.0)
        return torch.where(hinge == math.inf, math.inf, value).view(self.batch_shape)

    def slack_bounds(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """A lower and an upper value of `slack_max`, ``(*)`` each, by a search over ``L + λ d``; no gradient."""
        with torch.no_grad():
            d, flat, chain, costs, unit, _ = self._slack(cost, target, exact=False)
            found = ops.slack_search(chain, costs)
            lower = unit * (found.cost * (1 + found.score)).clamp(min=0)
            upper = unit * slack.upper_bound(found)
            forbidden = d._forbidden(flat)
            lower, upper = torch.where(forbidden, math.inf, lower), torch.where(forbidden, math.inf, upper)
        return lower.view(self.batch_shape), torch.maximum(lower, upper).view(self.batch_shape)

    def slack_curve(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """Every cost a labelling can have and the best score relative to the gold at that cost, ``(*, C)`` each.

        ``-inf`` where no labelling has that cost; no gradient.
        """
        with torch.no_grad():
            d, flat, chain, costs, unit, most = self._slack(cost, target, exact=True)
            curve = ops.slack_curve(chain, costs, most)
            forbidden = d._forbidden(flat).unsqueeze(1)
            curve = torch.where(forbidden & (curve > -math.inf), math.inf, curve)
            counts = torch.arange(curve.shape[1], device=curve.device, dtype=curve.dtype) * unit.unsqueeze(1)
        shape = (*self.batch_shape, curve.shape[1])
        return counts.view(shape), curve.view(shape)

    def _slack(
        self, cost: Cost, target: Tensor | Target, exact: bool
    ) -> tuple[Self, LaidOut, ops.Chain, Tensor, Tensor, int]:
        """Relative scores, their compact chain with ``d(y*) = 0``, costs in units, each row's unit, the most units."""
        target = self.check_target(target)
        d = self.relative_to(target)
        flat = d._flat()
        costs = flat.left(self._cost_table(cost, target).reshape(flat.chain.emissions.shape))
        unit, most = costs.new_ones(costs.shape[0]), 0
        if exact:
            size, most = cost.whole(self.num_classes)
            costs, unit = (costs / size).round().long(), unit * size
        if getattr(cost, "normalize", False):
            unit = unit / self._count().reshape(-1)
        with torch.no_grad():
            laid, offset = d._potentials(flat)
            chain = laid.chain
            if offset is not None:
                chain = chain._replace(start=chain.start + torch.where(offset.isinf(), 0.0, offset).unsqueeze(1))
        return d, flat, chain, costs, unit, most

    # --------------------------------------------------------------------------------------------------- probabilities

    def log_partition(self, temperature: float = 1.0) -> Tensor:
        r"""``t log \sum_y exp(s(y) / t)``; the negative log-likelihood where the scores are relative to a labelling."""
        if temperature != 1:
            return temperature * self.scale(1 / temperature).log_partition()
        plain = self.costs is None and self.base is None and _is_one(self.factor)
        if self.reference is not None and plain:
            flat = lay_out(self.emissions, self.transitions, self.start, self.end, self.mask, self.lengths)
            gold = flat.left(self.reference.reshape(flat.chain.emissions.shape[:2]))
            value = ops.negative_log_likelihood(flat.chain, gold)
            return torch.where(value == math.inf, math.inf, value).view(self.batch_shape)
        potentials, offset = self._potentials(self._flat())
        return _shifted(potentials.log_partition(), offset).view(self.batch_shape)

    def marginals(self) -> Tensor:
        """``p(y_t = k)``, ``(*, T, K)``; 0 where masked or where no labelling is possible."""
        potentials, _ = self._potentials(self._flat())
        return potentials.back(ops.marginals(potentials.chain)).view(self.emissions.shape)

    def pair_marginals(self) -> Tensor:
        """``p(y_{t-1} = i, y_t = j)``, ``(*, T-1, K, K)``, entry ``t - 1`` for the pair into position ``t``.

        A hole joins its neighbours: the pair into a position comes from the unmasked position before it. 0 where there
        is no such pair.
        """
        potentials, _ = self._potentials(self._flat())
        steps, k = self.emissions.shape[-2:]
        pairs = ops.pair_marginals(potentials.chain)
        pairs = potentials.back(torch.nn.functional.pad(pairs, (0, 0, 0, 0, min(steps, 1), 0)))[:, 1:]
        return pairs.reshape(*self.batch_shape, max(steps - 1, 0), k, k)

    def expected_transitions(self) -> Tensor:
        """How often each transition is made on average, ``(*, K, K)``."""
        chain = self._potentials(self._flat())[0].chain
        return ops.transition_counts(chain).view(*self.batch_shape, self.num_classes, self.num_classes)

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(*, n, T)``, -100 where masked."""
        check.whole("n", n)
        check.generator(generator, self.emissions.device)
        potentials, _ = self._potentials(self._flat(), centre=True)
        labels = potentials.back_labels(ops.sample(potentials.chain, n, generator))
        return labels.view(*self.batch_shape, n, self.emissions.shape[-2])

    def entropy(self) -> Tensor:
        """``-sum_y p(y) log p(y)``, in nats."""
        chain = self._potentials(self._flat())[0].chain
        return ops.entropy(chain).to(chain.emissions.dtype).view(self.batch_shape)

    def kl(self, other: ChainScores) -> Tensor:
        """``sum_y p(y) log(p(y) / q(y))`` to the distribution of ``other`` over the same positions, in nats."""
        if not isinstance(other, ChainScores) or other.emissions.shape != self.emissions.shape:
            given = tuple(other.emissions.shape) if isinstance(other, ChainScores) else type(other).__name__
            raise ValueError(f"other: got {given}; accepted are ChainScores of shape {tuple(self.emissions.shape)}")
        if not all_true(self.positions == other.positions) and check.values_readable(self.emissions):
            raise ValueError("other: masks other positions; accepted are ChainScores over the same positions")
        other = other._with(mask=self.mask, lengths=self.lengths)
        p, q = (scores._potentials(scores._flat(), centre=True)[0].chain for scores in (self, other))
        return ops.kl(p, q).view(self.batch_shape)

    # ---------------------------------------------------------------------------------------------------------- inside

    def _flat(self) -> LaidOut:
        """The raw potentials with one batch dimension, in float32 at least, masked positions taken out.

        In relative scores, of transitions, start and end only the differences count: they are taken below their best.
        """
        flat = lay_out(self.emissions, self.transitions, self.start, self.end, self.mask, self.lengths)
        return flat if self.reference is None else flat.below_best()

    def _potentials(self, flat: LaidOut, centre: bool = False) -> tuple[LaidOut, Tensor | None]:
        """The potentials of these scores, ``factor * (s - s(reference) + costs)``, and what their values lack.

        ``centre`` takes the best emission out of every position, for a decode or a draw, which that does not change.
        """
        if centre and self.reference is None:
            flat = flat.below_best()
        offset = None if self.base is None else -self.base.reshape(-1)
        shape = flat.chain.emissions.shape
        if self.reference is not None and shape[1] > 0:
            terms = flat.terms(self.reference.reshape(shape[0], 1, shape[1])).squeeze(1)
            forbidden = terms == -math.inf
            for part in flat.by_position(torch.where(forbidden, 0.0, terms)):
                flat = flat.plus(-part.unsqueeze(2))
            if offset is None:
                offset = torch.where(forbidden.any(1), math.inf, 0.0).to(terms.dtype)
        elif centre:
            flat = flat.centred()
        if self.costs is not None:
            flat = flat.plus(self.costs.reshape(shape))
        return flat if _is_one(self.factor) else flat.times(self.factor), offset

    def _forbidden(self, flat: LaidOut) -> Tensor:
        """Whether the labelling that these scores are relative to is forbidden, ``(B,)``."""
        offset = self._potentials(flat)[1]
        none = torch.zeros(flat.chain.emissions.shape[0], dtype=torch.bool, device=self.emissions.device)
        return none if offset is None else offset == math.inf

    def _values(self, flat: LaidOut, labels: Tensor) -> Tensor:
        """The scores of ``(B, n, T)`` labellings, ``(B, n)``, by differences of their terms to the reference's."""
        n = labels.shape[1]
        compared = labels
        if self.reference is not None:
            compared = torch.cat([labels, self.reference.reshape(labels.shape[0], 1, labels.shape[2])], 1)
        terms = flat.terms(compared)
        offset = None if self.base is None else -self.base.reshape(-1, 1)
        if self.reference is not None:
            own, gold = terms[:, :n], terms[:, n:]
            forbidden = gold == -math.inf
            terms = own - torch.where(forbidden, 0.0, gold)
            if offset is None:
                offset = torch.where(forbidden.any(2), math.inf, 0.0).to(terms.dtype)
        value = terms.sum(2)
        if self.costs is not None:
            at = labels.clamp(min=0).transpose(1, 2)
            paid = self.costs.reshape(flat.chain.emissions.shape).gather(2, at).transpose(1, 2)
            value = value + (paid if flat.mask is None else torch.where(flat.mask.unsqueeze(1), paid, 0.0)).sum(2)
        value = value if _is_one(self.factor) else value * self.factor
        value = _shifted(value, offset)
        return torch.where(value == -math.inf, -math.inf, value)


def _shifted(value: Tensor, offset: Tensor | None) -> Tensor:
    """``value + offset``; a constant ``+inf``, unless the value is NaN, where the gold labelling is forbidden."""
    if offset is None:
        return value
    constant = value.detach().clamp(-1, 1) + math.inf
    return torch.where(offset == math.inf, constant, value + torch.where(offset == math.inf, 0.0, offset))


def _bans(scores: Tensor) -> Tensor:
    """0, and ``-inf`` where forbidden."""
    return torch.where(scores == -math.inf, scores, 0.0)


def _is_one(factor: float | Tensor) -> bool:
    return isinstance(factor, (float, int)) and factor == 1
