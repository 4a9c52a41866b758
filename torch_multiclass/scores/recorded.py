"""Structures whose record answers by itself what a chain has its own engine for."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.algebra import bans
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.joined import Joined
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores._potentials import bans as excluded
from torch_multiclass.scores.base import Decoded
from torch_multiclass.scores.structured import Structured


@dataclass(eq=False)
class Recorded(Structured):
    """`Structured` over a record that also has ``map``, ``k_best``, ``marginals`` and ``sample``.

    Exact slack rescaling goes through the record's ``as_chain``, where it has one.
    """

    @property
    @abstractmethod
    def raw(self) -> Any:
        """The record of the raw scores, in float32 at least, with one batch dimension."""

    def _level(self, raw: Any) -> Any:
        # in relative scores, only the differences of moves count: they are taken below their best
        return raw if self.reference is None else raw.below_best()

    def _level_sum(self, raw: Any) -> Any:
        # the recursions sum in float64: what a target has too much is taken off there too, or its digits are lost first
        return raw if self.reference is None else raw.map(Tensor.double)

    def _level_all(self, raw: Any) -> Any:
        return raw.below_best().centred() if self.reference is None else raw

    def _laid(self, *, choose: bool = False) -> Any:
        """The record of these scores, but for a constant; as level as can be where a labelling is chosen."""
        raw = self._level(self.raw)
        return self._all(self._level_all(raw) if choose else raw)

    def _guess(self, allowed: Tensor) -> Tensor:
        with unrecorded():
            best: Tensor = self.raw.plus(self._rows(excluded(allowed), 2)).best_labels()
        return best.clamp(min=0).view(self.sites)

    def log_partition(self, temperature: float = 1.0) -> Tensor:
        r"""``t \log \sum_y exp(s(y) / t)``: the negative log-likelihood, of scores relative to a labelling."""
        value = super().log_partition(temperature).to(work_dtype(self.dtype))
        return value if self.reference is None else value.clamp(min=0)  # the target is among the labellings

    def marginals(self) -> Tensor:
        """``p(y_t = k)``, ``(*, T, K)``; 0 where masked or where no labelling is possible."""
        found: Tensor = self._laid().marginals()
        return found.view(*self.sites, self.num_classes)

    def entropy(self) -> Tensor:
        r"""``-\sum_y p(y) \log p(y)``, in nats: ``log Z - <p, s>``, in float64, where what is shared cancels."""
        with torch.inference_mode(False), torch.enable_grad():
            potentials = self._laid(choose=True).map(lambda part: part.clone().double())
            heat = torch.ones((), dtype=torch.float64, device=self.device, requires_grad=True)
            log_z = potentials.times(heat).log_partition()
            rows = torch.ones_like(log_z, requires_grad=True)  # the derivative of each row is read off by these
            (slope,) = torch.autograd.grad(log_z, heat, rows, create_graph=True, materialize_grads=True)
            mean = torch.zeros_like(log_z)
            if slope.requires_grad:  # else nothing has a score
                (mean,) = torch.autograd.grad(slope, rows, create_graph=self._lead().requires_grad)
        value = torch.where(log_z == -math.inf, 0.0, log_z - mean).to(work_dtype(self.dtype))
        return (value if self._lead().requires_grad else value.detach()).view(self.batch_shape)

    def top(self, k: int) -> Decoded:
        """The ``k`` best labellings, distinct and in order: labels ``(*, k, T)``, scores ``(*, k)``."""
        k = check.whole("k", k)
        raw = self._level(self.raw)
        with unrecorded():
            labels, best = self._all(self._level_all(raw)).k_best(k)  # type: ignore[attr-defined]
        values = torch.where(best == -math.inf, -math.inf, self._scores(raw, labels))
        return Decoded(labels.view(*self.batch_shape, k, self.sites[-1]), values.view(*self.batch_shape, k))

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(*, n, T)``, -100 where masked or none is possible."""
        n = check.whole("n", n)
        check.generator(generator, self.device)
        with unrecorded():
            laid = self._laid(choose=True)
            possible = laid.log_partition() > -math.inf
            labels = torch.where(possible[:, None, None], laid.sample(n, generator), check.IGNORE)
        return labels.view(*self.batch_shape, n, self.sites[-1])

    def posterior_decode(self, *, legal: bool = True) -> Decoded:
        """The labelling with the most positions right on average; its score is that expected number.

        Args:
            legal: among the labellings that are not forbidden; False takes the most probable label of each position
                alone.
        """
        check.flag("legal", legal)
        with unrecorded():
            laid = self._laid()
            probability = laid.marginals()
            best = laid.clean().map(bans).plus(probability).best_labels() if legal else probability.argmax(2)
            labels = torch.where(laid.inside(), best, check.IGNORE)
            right = probability.gather(2, labels.clamp(min=0).unsqueeze(2)).squeeze(2)
            possible = laid.log_partition() > -math.inf
            score = torch.where(possible, torch.where(labels >= 0, right, 0.0).sum(1), -math.inf)
            labels = torch.where(possible.unsqueeze(1), labels, check.IGNORE)
        return Decoded(labels.view(self.sites), score.view(self.batch_shape))

    def _slack_labels(self, potentials: Any, costs: Tensor, most: int, allowed: Tensor | None) -> Tensor:
        record = potentials.record if isinstance(potentials, Joined) else potentials
        if not hasattr(record, "as_chain"):
            raise ValueError(
                f"exact: got True with {type(self).__name__}, whose exact slack rescaling is not known here; accepted "
                "is exact=False"
            )
        chain, label = record.as_chain()
        laid = Joined(record, potentials.mask, getattr(potentials, "order", None))
        sets = None if allowed is None else laid.left(allowed)[..., label]
        states = ops.slack_labels(chain, laid.left(costs)[..., label], most, sets)
        labels = torch.where(states < 0, states, label[states.clamp(min=0)])
        return laid.back_labels(labels.unsqueeze(1) if allowed is None else labels)
