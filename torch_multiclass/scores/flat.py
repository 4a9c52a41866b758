"""One label with K scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import Cost, as_cost
from torch_multiclass.ops.flat import log_sum_exp, pick
from torch_multiclass.ops.precision import unrecorded, upcast
from torch_multiclass.ops.row_losses import BestClass, BestRival, ScaledRival, SoftMax
from torch_multiclass.ops.rows import RowLoss, row_losses
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.base import Decoded, Scores


@registered
@dataclass(eq=False)
class FlatScores(Scores):
    r"""The score ``f_y`` of each of ``K`` classes.

    A plain tensor of scores means the same wherever scores are accepted; the class adds the verbs. ``-inf`` forbids a
    class.

    Args:
        values: ``(*, K)``, any floating dtype; the verbs compute in float32 at least.
        reference: ``(*)`` labels; where given, the scores are ``f_{y'} - f_{reference}``. Kept apart, so that a loss
            needs no second pass over the scores.
        costs: ``(*, K)`` constants added to the scores, kept apart for the same reason.

    Shape:
        ``values`` ``(*, K)``, ``reference`` ``(*)``, ``costs`` ``(*, K)``.

    Raises:
        TypeError: values that are not a dense floating-point tensor.
        ValueError: values without a class.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2.

    Example:
        >>> import torch
        >>> scores = FlatScores(torch.tensor([[2.0, 1.5, 0.0]]))
        >>> scores.decode().labels
        tensor([0])
        >>> d = scores.relative_to(torch.tensor([1]))
        >>> d.tensor
        tensor([[ 0.5000,  0.0000, -1.5000]])
        >>> d.log_partition()  # the cross-entropy
        tensor([1.0550])
    """

    values: Tensor
    reference: Tensor | None = None
    costs: Tensor | None = None
    default_cost: ClassVar[str] = "zero_one"
    leading: ClassVar[str] = "values"

    def __post_init__(self) -> None:
        """Check the scores."""
        check_scores(self.values)
        shape = tuple(self.values.shape)
        if self.reference is not None:
            check.class_indices("reference", self.reference)
            check.shape("reference", self.reference, shape[:-1], "one class index for each row of scores")
            check.same_device("reference", self.reference, "scores", self.values)
        if self.costs is not None:
            check.floating("costs", self.costs)
            check.shape("costs", self.costs, shape, "one cost for each score")
            check.same_device("costs", self.costs, "scores", self.values)

    def _own_dims(self) -> dict[str, int]:
        return {"values": 1, "reference": 0, "costs": 1}

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.values.shape[-1]

    def _unary_shape(self) -> torch.Size:
        return self.values.shape

    @property
    def tensor(self) -> Tensor:
        """The scores as one tensor ``(*, K)``, in float32 at least."""
        scores = upcast(self.values)
        if self.reference is not None:
            scores = scores - scores.gather(-1, self.reference.unsqueeze(-1))
        return scores if self.costs is None else scores + self.costs

    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        return check_labels(self.values, target, validate_args, ignore_index=ignore_index)

    def labelled(self, target: Tensor | Target) -> Tensor:
        """1 where the target is known, else 0."""
        return self.check_target(target).kept.long()

    def all_labelled(self, target: Target) -> bool:
        """Whether every example is known to carry a label."""
        return target.complete and target.labels.numel() > 0

    def example_weight(self, weight: Tensor, target: Tensor | Target) -> Tensor:
        """``weight[y]``."""
        return weight[self.check_target(target).labels]

    def score(self, labels: Tensor) -> Tensor:
        """``f_y``."""
        return pick(self.tensor, self.check_target(labels).labels)

    def relative_to(self, target: Tensor | Target, *, unobserved: str = "max", temperature: float = 1.0) -> Self:
        """``f_{y'} - f_y``; 0 where the label is not known."""
        labels, kept, complete = self.check_target(target)
        values = upcast(self.values) if self.costs is None else self.tensor
        usable = kept & (pick(values.detach(), labels) != -math.inf)
        if complete and all_true(usable):
            return self._with(values=values, reference=labels, costs=None)
        # a forbidden label: the constant +inf, without gradient, or NaN where the row holds one
        constant = torch.where(kept, values.detach().amax(-1).clamp(-1, 1) + math.inf, 0.0).unsqueeze(-1)
        usable = usable.unsqueeze(-1)
        differences = torch.where(usable, values, 0.0)
        differences = differences - differences.gather(-1, labels.unsqueeze(-1))
        return self._with(values=torch.where(usable, differences, constant), reference=None, costs=None)

    def augment(self, cost: Cost, target: Tensor | Target) -> Self:
        """``f_{y'} + L(y, y')``."""
        costs = self._costs(cost, self.check_target(target))
        return self._with(costs=costs if self.costs is None else self.costs + costs)

    def _costs(self, cost: Cost, target: Target) -> Tensor:
        costs = as_cost(cost).rows(target.labels, self.num_classes, upcast(self.values).dtype)
        return costs if target.complete else costs * target.kept.unsqueeze(-1)

    def scale(self, factor: float | Tensor) -> Self:
        """``factor * f_y``."""
        if isinstance(factor, Tensor):
            check.broadcasts("factor", factor, "scores", self.values)
        else:
            factor = check.positive("factor", factor)
        if isinstance(factor, (float, int)) and factor == 1:
            return self
        return self._with(values=self.tensor * factor, reference=None, costs=None)

    def max_score(self) -> Tensor:
        """``max_y f_y``; the gradient goes to the lowest class among the best."""
        values = upcast(self.values)
        with unrecorded():
            best = self._best()
        if self.reference is None:
            score = pick(values, best)
        else:
            both = values.gather(-1, torch.stack([best, self.reference], -1))  # one gather: one sparse gradient
            score = both[..., 0] - both[..., 1]
        return score if self.costs is None else score + pick(self.costs, best)

    def log_partition(self, temperature: float = 1.0) -> Tensor:
        """``t log sum_y exp(f_y / t)``; ``-inf`` with zero gradient where every class is forbidden."""
        temperature = check.temperature(temperature)
        if self.reference is not None and self.costs is None:
            return row_losses(SoftMax(temperature=temperature), upcast(self.values), self.reference)
        return temperature * log_sum_exp(self.tensor / temperature) if temperature != 1 else log_sum_exp(self.tensor)

    def margin_max(self, target: Tensor | Target, cost: Cost | None = None) -> Tensor:
        """``max_y [L(y*, y) + f_y - f_{y*}]``."""
        rival = self.of_rival(cost)
        if rival is None:
            return super().margin_max(target, cost)
        margin, matrix = rival
        return self.row_losses(BestClass() if cost is None else BestRival(margin, cost=matrix), target)

    def margin_log_partition(
        self, target: Tensor | Target, cost: Cost | None = None, temperature: float = 1.0
    ) -> Tensor:
        """``t log sum_y exp([L(y*, y) + f_y - f_{y*}] / t)``."""
        temperature = check.temperature(temperature)
        rival = self.of_rival(cost)
        if rival is None:
            return super().margin_log_partition(target, cost, temperature)
        return self.row_losses(SoftMax(*rival, temperature), target)

    def slack_max(self, cost: Cost, target: Tensor | Target, *, exact: bool = True) -> Tensor:
        """``max_{y'} L(y, y') [1 + f_{y'} - f_y]_+``, always exact."""
        check.flag("exact", exact)
        target = self.check_target(target)
        rival = self.of_rival(cost)
        if rival is not None:
            return self.row_losses(BestRival(rival[0]) if rival[1] is None else ScaledRival(rival[1]), target)
        d = self.relative_to(target).tensor
        costs = self._costs(cost, target)
        slack = costs * (1 + d).clamp(min=0)
        slack = torch.where((costs == 0) & (d == math.inf), 0.0, slack)  # 0 * inf
        worst = self._with(values=slack, reference=None, costs=None).max_score()
        return worst + pick(d.detach(), target.labels)  # + 0, or + inf where the label is forbidden

    def row_losses(self, loss: RowLoss, target: Tensor | Target, *, mean: bool = False) -> Tensor:
        """A loss of each row, 0 where no label is known; or their mean."""
        labels, kept, complete = self.check_target(target)
        return row_losses(loss, upcast(self.values), labels, None if complete else kept, mean=mean)

    def of_rival(self, cost: Cost | None) -> tuple[float, Tensor | None] | None:
        """The cost as a margin and a matrix in its place, None where the losses of rows know no such cost."""
        if self.reference is not None or self.costs is not None:
            return None
        if cost is None:
            return 0.0, None
        costs = as_cost(cost).of_rival(self.num_classes, upcast(self.values).dtype)
        if isinstance(costs, Tensor):
            check.same_device("cost", costs, "scores", self.values)
            return 0.0, costs
        return None if costs is None else (costs, None)

    def slack_bounds(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """The maximum itself, twice."""
        with unrecorded():
            return (self.slack_max(cost, target),) * 2

    def decode(self) -> Decoded:
        """``argmax_y f_y``, the lowest class among the best."""
        return Decoded(self._best(), self.max_score())

    def _best(self) -> Tensor:
        return (self.values if self.costs is None else self.tensor).argmax(-1)

    def marginals(self) -> Tensor:
        """The soft-max; all zero where every class is forbidden."""
        values = self.tensor
        dead = values.detach().amax(-1, keepdim=True) == -math.inf
        return torch.where(dead, 0.0, torch.softmax(torch.where(dead, 0.0, values), -1))

    def top(self, k: int) -> Decoded:
        """The ``k`` best classes, ``(*, k)``."""
        k = check.whole("k", k)
        order = self.tensor.sort(dim=-1, descending=True, stable=True)
        score, labels = order.values[..., :k], order.indices[..., :k]
        missing = k - score.shape[-1]
        if missing > 0:
            score = torch.nn.functional.pad(score, (0, missing), value=-math.inf)
            labels = torch.nn.functional.pad(labels, (0, missing), value=check.IGNORE)
        return Decoded(torch.where(score == -math.inf, check.IGNORE, labels), score)

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """``n`` classes drawn from the soft-max, ``(*, n)``; -100 where every class is forbidden."""
        n = check.whole("n", n)
        check.generator(generator, self.values.device)
        probability = self.marginals().detach()
        flat = probability.reshape(-1, self.num_classes)
        if check.values_readable(flat) and bool(flat.isnan().any()):
            raise ValueError("values: hold NaN or +inf; accepted are scores that have a soft-max to draw from")
        if flat.shape[0] == 0:
            return torch.empty((*probability.shape[:-1], n), dtype=torch.long, device=flat.device)
        dead = flat.amax(-1, keepdim=True) == 0
        draws = torch.multinomial(flat.masked_fill(dead, 1.0), n, replacement=True, generator=generator)
        draws = draws.masked_fill(dead, check.IGNORE)
        return draws.reshape(*probability.shape[:-1], n)

    def entropy(self) -> Tensor:
        """``log Z - sum_y p_y f_y``."""
        values = self.tensor
        p = self.marginals()
        centred = values - values.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        return log_sum_exp(centred) - (p * torch.where(p > 0, centred, 0.0)).sum(-1)


def all_true(mask: Tensor) -> bool:
    """Whether every entry holds, where reading it is free; False, the safe answer, elsewhere."""
    return check.values_readable(mask) and bool(mask.all())


def check_scores(values: Tensor) -> None:
    """Raise unless ``values`` is a floating ``(*, K)`` tensor with at least one class."""
    check.floating("scores", values)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"scores: got shape {tuple(values.shape)}; accepted is (*, K) with K >= 1 classes")


def check_labels(
    values: Tensor, target: Tensor, validate_args: bool | None = None, *, ignore_index: int = check.IGNORE
) -> Target:
    """The target behind ``(*)`` class indices of the ``(*, K)`` scores, or -100; else raise."""
    rows = values.shape[:-1]
    if ignore_index == check.IGNORE:
        found = check.usual_labels("target", target, rows, values.shape[-1], values, validate_args)
        if found is not None:
            return found
    if isinstance(target, Tensor) and not target.is_nested and target.shape != rows:
        check.class_indices("target", target)
        check.shape("target", target, rows, check.for_rows("scores", tuple(values.shape), target))
    return check.labels(
        "target",
        target,
        (rows, "one class index for each row of scores"),
        values.shape[-1],
        ("scores", values),
        ignore_index=ignore_index,
        validate_args=validate_args,
    )
