"""Scores of a structured labelling: every verb, written once over six functions of its record."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.ops.chain import slack
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores._factor import is_one
from torch_multiclass.scores._potentials import Potentials, Structure, bans, or_infinite
from torch_multiclass.scores.base import Decoded

__all__ = ["Structure", "Structured"]


class Structured(Potentials):
    """The verbs of `Scores` for any structure.

    A subclass is a dataclass of raw scores, decorated with `registered`, that gives its record (`raw`, a `Structure`),
    the shape of a labelling (`sites`), and which positions count where not all of them do (`_counted`). What cannot be
    said in the six functions is its own: `top`, `sample`, slack rescaling that is exact.
    """

    # ------------------------------------------------------------------------------------------------ values and labels

    def score(self, labels: Tensor) -> Tensor:
        """``s(labels)``, ``(*)``; ``(*, n)`` for ``n`` labellings ``(*, n, T)``; ``-inf`` where a label is missing."""
        check.class_indices("labels", labels)
        many = labels.ndim == len(self.sites) + 1
        expected = (*self.batch_shape, labels.shape[-2], self.sites[-1]) if many else tuple(self.sites)
        check.shape("labels", labels, expected, "one label for each position")
        check.same_device("labels", labels, "scores", self._lead())
        counted = self._counted()
        if counted is not None and many:
            counted = counted.unsqueeze(-2)
        known = labels != check.IGNORE
        check.label_range("labels", labels, self.num_classes, known if counted is None else known & counted)
        missing = (~known if counted is None else ~known & counted).any(-1)
        rows = labels.long().reshape(math.prod(self.batch_shape), labels.shape[-2] if many else 1, self.sites[-1])
        value = self._scores(self.raw, rows)
        return torch.where(missing, -math.inf, value.view(missing.shape))

    def max_score(self) -> Tensor:
        """``max_y s(y)``; the gradient goes to the best labelling alone.

        Relative to a labelling at least 0, its own score, also where rounding hid that it is the best.
        """
        value = self.decode().score
        own = self.reference is not None and (self.allowed is None or self._takes_best())
        return torch.where(value < 0, torch.zeros_like(value), value) if own else value

    def decode(self) -> Decoded:
        """The best labelling: labels ``(*, T)``, -100 where masked or where no labelling is possible."""
        raw = self.raw
        allowed = self._rows(self.allowed, 2) if self.allowed is not None and self._takes_best() else None
        with unrecorded():
            found = self._best_labels(self._all(self._level_all(self._level(raw))), allowed)
        labels, gold = found[:, :1], found[:, 1:]
        value = self._scores(raw, labels, gold if allowed is not None else None).squeeze(1)
        labels = torch.where(value.detach().unsqueeze(1) == -math.inf, check.IGNORE, labels.squeeze(1))
        return Decoded(labels.view(self.sites), value.view(self.batch_shape))

    def forbidden(self, target: Tensor) -> Tensor:
        """Where a target takes a score of ``-inf``, ``(*, T)`` bool: what makes its loss infinite.

        A move is marked at the position that it leads to, an end at the last one. Where labels are not known (-100) and
        every labelling that agrees is forbidden, the places of one with the fewest of them. Without gradient.

        Example:
            >>> import torch
            >>> import torch_multiclass as tm
            >>> head = tm.ChainHead(8, 3, constraints=tm.tag_constraints(["O", "B-X", "I-X"]))
            >>> scores = head(torch.randn(2, 4, 8), lengths=torch.tensor([4, 2]))
            >>> scores.forbidden(torch.tensor([[0, 1, 2, 2], [0, 2, -100, -100]]))
            tensor([[False, False, False, False],
                    [False,  True, False, False]])
        """
        with unrecorded():
            labels, allowed = self._agreeing(target)
            raw, rows = self.raw, self._rows(labels, 1)
            if allowed is not None:
                breaks = raw.map(lambda part: torch.where(part == -math.inf, -1.0, 0.0))  # type: ignore[attr-defined]
                rows = breaks.plus(bans(self._rows(allowed, 2))).best_labels().clamp(min=0)
            terms = raw.terms(rows.unsqueeze(1)).squeeze(1)
            parts = raw.by_position(torch.where(terms == -math.inf, 1.0, 0.0))
            found = torch.stack(parts).sum(0).view(self.sites) > 0
            counted = self._counted()
        return found if counted is None else found & counted

    # --------------------------------------------------------------------------------------------------- probabilities

    def log_partition(self, temperature: float = 1.0) -> Tensor:
        r"""``t \log \sum_y exp(s(y) / t)``: the negative log-likelihood, of scores relative to a labelling."""
        temperature = check.temperature(temperature)
        raw = self._level_sum(self._level(self.raw))
        factor = self.factor if is_one(temperature) else self.factor / temperature
        potentials = self._potentials(raw, factor)
        if self.reference is None:
            value = potentials.log_partition()
        elif self.allowed is None:
            value = self._log_ratio(potentials, self._rows(self.reference, 1))
        elif isinstance(factor, float) and factor == self.sharpness:
            value = self._log_ratio(potentials, self._rows(self.allowed, 2))
        else:
            rest = self._rest(raw)
            dead = rest == -math.inf
            value = or_infinite(potentials.log_partition() - torch.where(dead, 0.0, rest) * factor, dead)
        value = value if is_one(temperature) else temperature * value
        return value.view(self.batch_shape)

    def _forbidden(self, raw: Structure) -> Tensor:
        """Whether the target is forbidden, ``(B,)``."""
        if self.allowed is not None:
            return self._rest(raw) == -math.inf
        assert self.reference is not None
        return (raw.terms(self._rows(self.reference, 1).unsqueeze(1)).squeeze(1) == -math.inf).any(1)

    def marginals(self) -> Tensor:
        """``p(y_t = k)``, ``(*, T, K)``: the gradient of `log_partition`; 0 where no labelling is possible."""
        with torch.inference_mode(False), torch.enable_grad():
            potentials = self._all()
            batch = math.prod(self.batch_shape)
            unary = torch.zeros(
                batch, self.sites[-1], self.num_classes, dtype=work_dtype(self._lead().dtype), device=self.device
            )

            def total(unary: Tensor) -> Tensor:
                return potentials.plus(unary).log_partition().sum()

            if check.transformed():
                found: Tensor = torch.func.grad(total)(unary)
            else:
                value = total(unary.requires_grad_())
                (found,) = torch.autograd.grad(value, unary, create_graph=self._lead().requires_grad)
        return found.view(*self.sites, self.num_classes)

    def entropy(self) -> Tensor:
        r"""``-\sum_y p(y) \log p(y)``, in nats: ``log Z - <p, s>``, with the derivative of ``log Z(f s)`` by ``f``.

        For finite scores; a structure that forbids has its own.
        """
        with torch.inference_mode(False), torch.enable_grad():
            potentials, dtype = self._all(), work_dtype(self._lead().dtype)
            heat = torch.ones((), dtype=dtype, device=self.device, requires_grad=True)
            log_z = potentials.times(heat).log_partition()
            rows = torch.ones_like(log_z, requires_grad=True)  # the derivative of each row is read off by these
            (slope,) = torch.autograd.grad(log_z, heat, rows, create_graph=True)
            (mean,) = torch.autograd.grad(slope, rows, create_graph=self._lead().requires_grad)
        value = log_z - mean
        return (value if self._lead().requires_grad else value.detach()).view(self.batch_shape)

    def top(self, k: int) -> Decoded:
        """Not known for every structure."""
        raise NotImplementedError(f"{type(self).__name__}: has no k best labellings")

    def sample(self, n: int = 1, *, generator: object = None) -> Tensor:
        """Not known for every structure."""
        raise NotImplementedError(f"{type(self).__name__}: cannot be drawn from")

    # ------------------------------------------------------------------------------------------------- slack rescaling

    def slack_max(self, cost: Cost, target: Tensor | Target, *, exact: bool = True) -> Tensor:
        """``max_y L(y*, y) [1 + s(y) - s(y*)]_+`` for a cost in whole units; unless ``exact``, the lower of
        `slack_bounds`, for any cost.

        Raises:
            ValueError: ``exact`` with a cost that is not a whole multiple of one unit.
        """
        check.flag("exact", exact)
        target = self.check_target(target)
        d = self.relative_to(target)
        raw = d._level(d.raw)
        costs, unit, most = d._units(cost, target, exact)
        allowed = None if d.allowed is None else d._rows(d.allowed, 2)
        with unrecorded():
            potentials = d._potentials(raw, d.factor)
            if exact:
                found = d._slack_labels(potentials, costs, most, allowed)
            else:
                found = d._slack_search(potentials, costs, allowed)[0]
            labels = found[:, :1].clamp(min=0)
            paid = unit * costs.gather(2, labels.transpose(1, 2)).squeeze(2).sum(1)
        hinge = 1 + d._scores(raw, labels, None if allowed is None else found[:, 1:]).squeeze(1)
        # the empty sequence and the gold labelling cost 0, whatever the hinge; a forbidden gold is +inf
        value = torch.where((paid > 0) & (hinge > 0) | hinge.isnan(), paid * hinge, 0.0)
        return torch.where(hinge == math.inf, math.inf, value).view(self.batch_shape)

    def slack_bounds(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """A lower and an upper value of `slack_max`, ``(*)`` each, by a search over ``L + λ d``; no gradient."""
        target = self.check_target(target)
        with unrecorded():
            d = self.relative_to(target)
            raw = d._level(d.raw)
            costs, unit, _ = d._units(cost, target, exact=False)
            allowed = None if d.allowed is None else d._rows(d.allowed, 2)
            _, lower, upper = d._slack_search(d._potentials(raw, d.factor), costs, allowed)
            dead = d._forbidden(raw)
            lower, upper = (torch.where(dead, math.inf, unit * bound.detach()) for bound in (lower, upper))
        return lower.view(self.batch_shape), upper.view(self.batch_shape)

    def _units(self, cost: Cost, target: Target, exact: bool) -> tuple[Tensor, Tensor, int]:
        """Costs ``(B, T, K)`` in units, whole numbers if ``exact``; each row's unit ``(B,)``; the most units.

        Where no value can be read the most is -1, and the costs are as they are.
        """
        cost = as_cost(cost)
        costs = self._rows(self._cost_table(cost, target), 2)
        unit, most = costs.new_ones(costs.shape[0]), 0
        if exact:
            size, most = cost.whole(self.num_classes)
            if most >= 0:
                costs, unit = (costs / size).round().long(), unit * size
        if getattr(cost, "normalize", False):
            unit = unit / self._count().reshape(-1)
        return costs, unit, most

    def _slack_labels(self, potentials: Structure, costs: Tensor, most: int, allowed: Tensor | None) -> Tensor:
        """A labelling that attains the maximum, and the best that agrees: ``(B, 1 | 2, T)``."""
        raise NotImplementedError(f"{type(self).__name__}: has slack rescaling with exact=False only")

    def _slack_search(
        self, potentials: Structure, costs: Tensor, allowed: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same found by a search, its value ``(B,)`` and an upper bound."""
        gold = None if allowed is None else potentials.plus(bans(allowed)).best_labels()
        rest = torch.zeros(()) if gold is None else potentials.terms(gold.unsqueeze(1)).sum(2).squeeze(1)
        found = slack.search(
            potentials,
            costs,
            decode=lambda record: record.best_labels(),
            score=lambda record, labels: record.terms(labels.unsqueeze(1)).sum(2).squeeze(1) - rest,
        )
        lower = (found.cost * (1 + found.score)).clamp(min=0)
        labels = found.labels.unsqueeze(1) if gold is None else torch.stack([found.labels, gold], 1)
        return labels, lower, torch.maximum(lower, slack.upper_bound(found))
