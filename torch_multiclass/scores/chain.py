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
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.chain.layout import LaidOut, lay_out
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores._chain_checks import check_parts, low_rank
from torch_multiclass.scores._emitted import Emitted
from torch_multiclass.scores._factor import is_one
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.base import Decoded
from torch_multiclass.scores.flat import all_true
from torch_multiclass.scores.structured import Structured

__all__ = ["ChainScores"]


@registered
@dataclass(eq=False)
class ChainScores(Emitted, Structured):
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
        reference, allowed, sharpness, costs, factor: set by verbs, see `Structured`.

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
    leading: ClassVar[str] = "emissions"

    def __post_init__(self) -> None:
        """Check what was given, and multiply out low-rank transitions."""
        if self.lengths is not None:
            self.lengths = check.signed(self.lengths)
        given: Any = self.transitions
        if isinstance(given, (tuple, list)):
            self.transitions = low_rank(*given)
        check_parts(self)
        super().__post_init__()

    # ------------------------------------------------------------------------------------------------------- the record

    @property
    def raw(self) -> LaidOut:
        """The chain of the raw scores, in float32 at least, masked positions taken out."""
        return lay_out(self.emissions, self.transitions, self.start, self.end, self.mask, self.lengths)

    @property
    def positions(self) -> Tensor:
        """Which positions count, ``(*, T)`` bool."""
        counted = self._counted()
        return torch.ones(self.sites, dtype=torch.bool, device=self.device) if counted is None else counted

    def _level(self, raw: LaidOut) -> LaidOut:  # type: ignore[override]
        # in relative scores, of transitions, start and end only the differences count: they are taken below their best
        return raw if self.reference is None else raw.below_best()

    def _level_all(self, raw: LaidOut) -> LaidOut:  # type: ignore[override]
        return raw.below_best().centred() if self.reference is None else raw

    def _is_followed(self) -> bool:
        """Whether a derivative may be asked for, or somebody looks on who is to see operators of torch."""
        parts = self.emissions, self.transitions, self.start, self.end
        recorded = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in parts)
        return recorded or ops.watched()

    def _laid(self, *, choose: bool = False) -> LaidOut:
        """The chain of these scores, but for a constant; as level as can be where a labelling is chosen."""
        raw = self._level(self.raw)
        laid = self._all(self._level_all(raw) if choose else raw)
        assert isinstance(laid, LaidOut)
        return laid

    def _guess(self, allowed: Tensor) -> Tensor:
        return torch.where(allowed, self.emissions.detach(), -math.inf).argmax(-1)

    def _best_labels(self, potentials: LaidOut, allowed: Tensor | None) -> Tensor:  # type: ignore[override]
        if allowed is None:
            return potentials.best_labels().unsqueeze(1)
        return potentials.back_labels(ops.best_labels(potentials.chain, potentials.left(allowed)))

    def _log_ratio(self, potentials: LaidOut, target: Tensor) -> Tensor:  # type: ignore[override]
        return ops.negative_log_likelihood(potentials.chain, potentials.left(target))

    def decode(self) -> Decoded:
        """The best labelling: labels ``(*, T)``, -100 where masked or where no labelling is possible."""
        if not self._is_plain() or self._is_followed():
            return super().decode()
        laid = self.raw
        labels, score = ops.best_path(laid.chain)
        score = score.to(laid.chain.emissions.dtype)
        return Decoded(laid.back_best(labels).view(self.sites), score.view(self.batch_shape))

    def best_labels(self) -> Tensor:
        """The labels of `decode` alone, which is faster."""
        if not self._is_plain() or ops.watched():
            return super().best_labels()
        if self.emissions.ndim == 3 and self.lengths is None and self.start is not None and self.end is not None:
            chain = ops.Chain(self.emissions, self.transitions, self.start, self.end, None)
            found = ops.labels_of(chain, self.mask)
            if found is not None:
                return found
        laid = self.raw
        labels = laid.back_best(ops.legal_labels(laid.chain))
        return labels if self.emissions.ndim == 3 else labels.view(self.sites)

    def restrict(self, allowed: Tensor) -> Self:
        """The same scores with all other labels forbidden: ``(*, T, K)`` bool, a set of labels at each position."""
        check.boolean("allowed", allowed, "True where a label is allowed")
        check.shape("allowed", allowed, tuple(self.emissions.shape), "a set of allowed labels for each position")
        return self._with(emissions=torch.where(allowed, self.emissions, -math.inf))

    # --------------------------------------------------------------------------------------- what only a chain can do

    def log_partition(self, temperature: float = 1.0) -> Tensor:
        r"""``t \log \sum_y exp(s(y) / t)``: the negative log-likelihood, of scores relative to a labelling."""
        plain = self.costs is None and is_one(temperature) and is_one(self.factor)
        if self.reference is None or not plain or (self.allowed is not None and not is_one(self.sharpness)):
            return super().log_partition(temperature)
        # measured from the target by the recursion itself
        target = self._rows(self.reference, 1) if self.allowed is None else self._rows(self.allowed, 2)
        return self._per_sequence(self._log_ratio(self.raw, target))

    def _per_sequence(self, value: Tensor) -> Tensor:
        """What each sequence has ``(B,)``, in the shape of the batch; a view only where it has another."""
        return value if self.emissions.ndim == 3 else value.view(self.batch_shape)

    def top(self, k: int) -> Decoded:
        """The ``k`` best labellings, distinct and in order: labels ``(*, k, T)``, scores ``(*, k)``."""
        k = check.whole("k", k)
        raw = self._level(self.raw)
        with unrecorded():
            labels, best = ops.k_best(self._all(self._level_all(raw)).chain, k)  # type: ignore[attr-defined]
            labels = raw.back_labels(labels)
        values = torch.where(best == -math.inf, -math.inf, self._scores(raw, labels))
        return Decoded(labels.view(*self.batch_shape, k, self.sites[-1]), values.view(*self.batch_shape, k))

    def posterior_decode(self, *, legal: bool = True) -> Decoded:
        """The labelling with the most positions right on average; its score is that expected number.

        Args:
            legal: among the labellings that are not forbidden; False takes the most probable label of each position
                alone.
        """
        check.flag("legal", legal)
        with unrecorded():
            laid = self._laid()
            chain = laid.chain
            probability = ops.marginals(chain)
            if legal:
                own = (chain.emissions, chain.transitions, chain.start, chain.end)
                emissions, moves, first, last = [torch.where(part == -math.inf, part, 0.0) for part in own]
                legality = ops.Chain(emissions, moves, first, last, chain.lengths)
                labels, score = ops.viterbi(legality.plus(probability))
            else:
                best, labels = probability.max(-1)
                score = best.sum(-1)
                possible = ops.log_partition(chain) != -math.inf  # else every marginal is 0
                score = torch.where(possible, score, -math.inf)
                labels = torch.where(chain.inside(), labels, check.IGNORE)
            labels = torch.where(score.unsqueeze(1) == -math.inf, check.IGNORE, labels)
        return Decoded(laid.back(labels, check.IGNORE).view(self.sites), score.view(self.batch_shape))

    def marginals(self) -> Tensor:
        """``p(y_t = k)``, ``(*, T, K)``; 0 where masked or where no labelling is possible."""
        laid = self._laid()
        return laid.back(ops.marginals(laid.chain)).view(self.emissions.shape)

    def pair_marginals(self) -> Tensor:
        """``p(y_{t-1} = i, y_t = j)``, ``(*, T-1, K, K)``, entry ``t - 1`` for the pair into position ``t``.

        A hole joins its neighbours: the pair into a position comes from the unmasked position before it. 0 where there
        is no such pair.
        """
        laid = self._laid()
        steps, k = self.emissions.shape[-2:]
        pairs = ops.pair_marginals(laid.chain)
        pairs = laid.back(torch.nn.functional.pad(pairs, (0, 0, 0, 0, min(steps, 1), 0)))[:, 1:]
        return pairs.reshape(*self.batch_shape, max(steps - 1, 0), k, k)

    def expected_transitions(self) -> Tensor:
        """How often each transition is made on average, ``(*, K, K)``."""
        counts = ops.transition_counts(self._laid().chain)
        return counts.view(*self.batch_shape, self.num_classes, self.num_classes)

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(*, n, T)``, -100 where masked."""
        n = check.whole("n", n)
        check.generator(generator, self.emissions.device)
        laid = self._laid(choose=True)
        labels = laid.back_labels(ops.sample(laid.chain, n, generator))
        return labels.view(*self.batch_shape, n, self.sites[-1])

    def entropy(self) -> Tensor:
        """``-sum_y p(y) log p(y)``, in nats."""
        chain = self._laid().chain
        return ops.entropy(chain).to(chain.emissions.dtype).view(self.batch_shape)

    def kl(self, other: ChainScores) -> Tensor:
        """``sum_y p(y) log(p(y) / q(y))`` to the distribution of ``other`` over the same positions, in nats."""
        if not isinstance(other, ChainScores) or other.emissions.shape != self.emissions.shape:
            given = tuple(other.emissions.shape) if isinstance(other, ChainScores) else type(other).__name__
            raise ValueError(f"other: got {given}; accepted are ChainScores of shape {tuple(self.emissions.shape)}")
        if not all_true(self.positions == other.positions) and check.values_readable(self.emissions):
            raise ValueError("other: masks other positions; accepted are ChainScores over the same positions")
        other = other._with(mask=self.mask, lengths=self.lengths)
        p, q = self._laid(choose=True).chain, other._laid(choose=True).chain
        return ops.kl(p, q).to(p.emissions.dtype).view(self.batch_shape)

    # ----------------------------------------------------------------------------------------------------------- losses

    def margin_max(self, target: Tensor | Target, cost: Cost | None = None) -> Tensor:
        """``max_y [L(y*, y) + s(y) - s(y*)]``, ``(*)``; no cost is one of 0."""
        target, cost = self.check_target(target), None if cost is None else as_cost(cost)
        costs = self._plain_costs(target, cost)
        value = None
        if costs is not None:
            laid = self.raw
            value = ops.margin_loss(laid.chain, laid.left(self._rows(target.labels, 1)), costs)
        return super().margin_max(target, cost) if value is None else self._per_sequence(value)

    def slack_max(self, cost: Cost, target: Tensor | Target, *, exact: bool = True) -> Tensor:
        """``max_y L(y*, y) [1 + s(y) - s(y*)]_+``, ``(*)``; see `Structured.slack_max`."""
        check.flag("exact", exact)
        target, cost = self.check_target(target), as_cost(cost)
        check.flag("exact", exact)
        costs = self._plain_costs(target, cost) if exact else None
        value = None
        if costs is not None:
            laid, k = self.raw, self.num_classes
            unit, most = cost.whole(k)
            units = ops.all_but_gold(k) if costs.matrix is None else (costs.matrix / unit).round().long()
            gold = laid.left(self._rows(target.labels, 1))
            value = ops.slack_loss(laid.chain, gold, units, most, unit, costs.normalize)
        return super().slack_max(cost, target, exact=exact) if value is None else self._per_sequence(value)

    def _plain_costs(self, target: Target, cost: Cost | None) -> ops.Costs | None:
        """The costs where these are raw scores, all labels are known and one cost serves every position; else None."""
        if not self._is_plain() or not target.complete or ops.watched() or not self.emissions.is_cpu:
            return None
        normalize = bool(getattr(cost, "normalize", False))
        by = 0.0 if cost is None else cost.of_rival(self.num_classes, work_dtype(self.emissions.dtype))
        if isinstance(by, Tensor):
            return ops.Costs(by.contiguous(), 0.0, normalize) if type(by) is Tensor and by.is_cpu else None
        return None if by is None else ops.Costs(None, by, normalize)

    # ------------------------------------------------------------------------------------------------- slack rescaling

    def slack_curve(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """Every cost a labelling can have and the best score relative to the gold at that cost, ``(*, C)`` each.

        ``-inf`` where no labelling has that cost; no gradient.
        """
        target = self.check_target(target)
        with unrecorded():
            d = self.relative_to(target)
            costs, unit, most = d._units(cost, target, exact=True)
            laid = d._laid()
            chain = laid.chain
            if d.allowed is not None:
                rest = d._rest(d._level(d.raw)) * d.factor
                chain = chain.but(start=chain.start - torch.where(rest.isinf(), 0.0, rest).unsqueeze(1))
            curve = ops.slack_curve(chain, laid.left(costs), most)
            forbidden = d._forbidden(d._level(d.raw)).unsqueeze(1)
            curve = torch.where(forbidden & (curve > -math.inf), math.inf, curve)
            counts = torch.arange(curve.shape[1], device=curve.device, dtype=curve.dtype) * unit.unsqueeze(1)
        shape = (*self.batch_shape, curve.shape[1])
        return counts.view(shape), curve.view(shape)

    def _slack_labels(self, potentials: LaidOut, costs: Tensor, most: int, allowed: Tensor | None) -> Tensor:  # type: ignore[override]
        sets = None if allowed is None else potentials.left(allowed)
        labels = ops.slack_labels(potentials.chain, potentials.left(costs), most, sets)
        return potentials.back_labels(labels.unsqueeze(1) if allowed is None else labels)

    def _slack_search(  # type: ignore[override]
        self, potentials: LaidOut, costs: Tensor, allowed: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        sets = None if allowed is None else potentials.left(allowed)
        labels, lower, upper = ops.slack_search(potentials.chain, potentials.left(costs), sets)
        return potentials.back_labels(labels.unsqueeze(1) if allowed is None else labels), lower, upper
