"""Accuracy of tags, of whole sentences and of spans, over batches of padded sequences.

All count and none averages averages, so that batches, processes and shards of any size give one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.metrics.base import Plotted, entry_weights, has_label, mean, row_weights
from torch_multiclass.ops.constants import Constants, home
from torch_multiclass.options import Weight
from torch_multiclass.schemes import OUTSIDE
from torch_multiclass.tags import parse, reading, tag_names

AVERAGES = ("micro", "macro", "weighted")
"""How the figures of types are put together."""


def _kept(preds: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Which positions count, after the checks that all metrics share."""
    check.class_indices("preds", preds)
    check.class_indices("target", target)
    check.shape("preds", preds, tuple(target.shape), "that of target")
    check.same_device("preds", preds, "target", target)
    return has_label(target, ignore_index)


class _Share(Plotted):
    """A fraction of two counts, or of two sums of weights; 0 while nothing was counted."""

    is_differentiable = False
    higher_is_better = True
    plot_upper_bound = 1.0
    full_state_update = False
    right: Tensor
    total: Tensor

    def __init__(self, ignore_index: int = check.IGNORE, **kwargs: Any):
        super().__init__(**kwargs)
        self.ignore_index = check.integer("ignore_index", ignore_index)
        self.add_state("right", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def _count(self, right: Tensor, counted: Tensor, weight: Tensor) -> None:
        self.right += ((right & counted) * weight).sum()
        self.total += (counted * weight).sum()

    def compute(self) -> Tensor:
        """The fraction, in float64."""
        return mean(self.right, self.total)


class TokenAccuracy(_Share):
    r"""Fraction of labelled positions that are tagged right.

    .. math:: \sum_{i,t} 1[\hat y_{it} = y_{it}] \,/\, \sum_{i,t} 1, \quad\text{both over } y_{it} \neq -100

    Args:
        ignore_index: the target value that takes a position out.

    Shape:
        predictions and target ``(*, T)``; weights ``(*)`` or ``(*, T)``; a number between 0 and 1.

    Raises:
        TypeError: labels that are not integers.
        ValueError: predictions and target of different shapes.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5: one less the normalised
    Hamming loss.

    Example:
        >>> metric = TokenAccuracy()
        >>> metric.update(torch.tensor([[0, 1, 2]]), torch.tensor([[0, 1, 1]]))
        >>> metric.update(torch.tensor([[2, 1]]), torch.tensor([[2, -100]]))
        >>> metric.compute()
        tensor(0.7500, dtype=torch.float64)
    """

    def update(self, preds: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Count a batch, where asked with a weight for each sequence, or for each position."""
        kept = _kept(preds, target, self.ignore_index)
        self._count(preds.long() == target.long(), kept, entry_weights(sample_weight, target))


class UnknownWordAccuracy(_Share):
    r"""Fraction of labelled positions tagged right among the words that training never showed.

    .. math:: \sum_{i,t} u_{it}\, 1[\hat y_{it} = y_{it}] \,/\, \sum_{i,t} u_{it},
        \quad\text{both over } y_{it} \neq -100

    Args:
        ignore_index: the target value that takes a position out.

    Shape:
        predictions, target and the bool mask ``unknown`` ``(*, T)``; weights ``(*)`` or ``(*, T)``; a number between 0
        and 1.

    Raises:
        TypeError: labels that are not integers, or a mask that is not bool.
        ValueError: different shapes.

    Reference: Brants (2000), TnT: a statistical part-of-speech tagger, section 3.

    Example:
        >>> metric = UnknownWordAccuracy()
        >>> metric.update(torch.tensor([[0, 1, 2]]), torch.tensor([[0, 1, 1]]), torch.tensor([[False, True, True]]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def update(self, preds: Tensor, target: Tensor, unknown: Tensor, sample_weight: Weight = None) -> None:
        """Count a batch, where asked with a weight for each sequence, or for each position."""
        kept = _kept(preds, target, self.ignore_index)
        check.boolean("unknown", unknown, "True for a word that training never showed")
        check.shape("unknown", unknown, tuple(target.shape), "that of target")
        check.same_device("unknown", unknown, "target", target)
        self._count(preds.long() == target.long(), kept & unknown, entry_weights(sample_weight, target))


class SentenceAccuracy(_Share):
    r"""Fraction of sequences whose labelled positions are all tagged right.

    .. math:: \sum_i \prod_{t:\, y_{it} \neq -100} 1[\hat y_{it} = y_{it}] \,/\, \sum_i 1,
        \quad\text{over sequences with a labelled position}

    Args:
        ignore_index: the target value that takes a position out.

    Shape:
        predictions and target ``(*, T)``; weights ``(*)``; a number between 0 and 1.

    Raises:
        TypeError: labels that are not integers.
        ValueError: predictions and target of different shapes.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5: one less the zero-one
    loss of whole labellings.

    Example:
        >>> metric = SentenceAccuracy()
        >>> metric.update(torch.tensor([[0, 1], [2, 2]]), torch.tensor([[0, -100], [2, 1]]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def update(self, preds: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Count a batch, where asked with a weight for each sequence."""
        kept = _kept(preds, target, self.ignore_index)
        right = ((preds.long() == target.long()) | ~kept).all(-1)
        self._count(right, kept.any(-1), row_weights(sample_weight, target))


class SpanF1(Constants, Plotted):
    r"""F1 of labelled spans (entities, chunks) by the definition of the CoNLL shared tasks.

    .. math:: F_1 = 2 C / (P + G)

    with ``C`` the predicted spans that equal a gold span in start, end and type, ``P`` the predicted and ``G`` the
    gold spans, summed over all types (micro average); 0 where there is no span at all.

    A tag is ``O``, or a prefix and a type, ``B-LOC``. A span starts at ``B`` or ``S``, and at any other tag that
    follows ``O``, the start of the sentence, another type, or an ``E`` or ``S``. So ``I`` without ``B`` starts a span
    as it does in the shared tasks' own scorer, and one rule reads every scheme, well formed or not; ``strict`` counts
    spans that are well formed in their scheme alone.

    Args:
        tags: the names of the labels.
        ignore_index: the target value that takes a position out; the ones around it become neighbours.
        scheme: what the tags are written in, as `torch_multiclass.tag_constraints` has it; None for any.
        strict: leave out spans that are not well formed in the scheme.
        average: ``"micro"`` over spans; ``"macro"``, the mean over types that occur; ``"weighted"``, weighted by the
            gold spans of each type; None for each type in the order of ``types``.

    Shape:
        predictions and target ``(*, T)``; weights ``(*)``; a number between 0 and 1, or one for each type.

    Raises:
        TypeError: labels that are not integers.
        ValueError: a tag that is neither ``O`` nor a prefix with or without a type, ``strict`` without a scheme, labels
            out of range, or different shapes.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``; its averages and its strict
    spans are those of seqeval.

    Example:
        >>> metric = SpanF1(["O", "B-LOC", "I-LOC", "B-PER"])
        >>> metric.update(torch.tensor([[1, 2, 0, 3]]), torch.tensor([[1, 2, 0, 2]]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
        >>> metric.by_type()["LOC"]
        {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666, 'predicted': 1, 'gold': 2}
    """

    is_differentiable = False
    higher_is_better = True
    plot_upper_bound = 1.0
    full_state_update = False
    correct: Tensor
    predicted: Tensor
    gold: Tensor
    starts: Tensor
    inside: Tensor
    ends: Tensor
    type_of: Tensor

    @check.told
    def __init__(
        self,
        tags: Sequence[str],
        ignore_index: int = check.IGNORE,
        *,
        scheme: str | None = None,
        strict: bool = False,
        average: str | None = "micro",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check.choice("average", average, AVERAGES, optional=True)
        rules = reading(scheme, strict)
        self.tags, self.average = tag_names(tags), average
        self.ignore_index = check.integer("ignore_index", ignore_index)
        parsed = [OUTSIDE, *parse(self.tags, scheme)]
        self.types = sorted({tag.kind for tag in parsed if not tag.outside}) or [""]
        # Row and column 0 are an O that stands before and after every sentence; label y is row y + 1.
        for name, holds in (("starts", rules.starts), ("inside", rules.inside), ("ends", rules.ends)):
            table = [[holds(before, tag) for tag in parsed] for before in parsed]
            self.register_constant(name, torch.tensor(table, device=home()))
        numbers = [-1 if tag.outside else self.types.index(tag.kind) for tag in parsed]
        self.register_constant("type_of", torch.tensor(numbers, device=home()))
        for state in ("correct", "predicted", "gold"):
            self.add_state(state, torch.zeros(len(self.types), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Count a batch, where asked with a weight for each sequence, which each of its spans has."""
        kept = _kept(preds, target, self.ignore_index)
        weight = row_weights(sample_weight, target).unsqueeze(-1).expand(target.shape)
        check.label_range("preds", preds, len(self.tags), kept)
        check.label_range("target", target, len(self.tags), kept)
        # Ignored positions move behind the others and become O.
        order = (~kept).to(torch.uint8).argsort(dim=-1, stable=True)
        guess, truth = ((torch.where(kept, labels.long(), -1) + 1).gather(-1, order) for labels in (preds, target))
        guess_start, guess_end = self._spans(guess)
        truth_start, truth_end = self._spans(truth)
        guess_type, truth_type = self.type_of[guess], self.type_of[truth]
        both = guess_start & truth_start & (guess_end == truth_end) & (guess_type == truth_type)
        self.correct += self._by_type(truth_type, both, weight)
        self.predicted += self._by_type(guess_type, guess_start, weight)
        self.gold += self._by_type(truth_type, truth_start, weight)

    def _spans(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Where spans start, and for each position the next one at which a span that covers it has ended."""
        length = rows.shape[-1]
        after = torch.cat([rows, torch.zeros_like(rows[..., :1])], -1)  # with the O behind each sentence
        before = after.roll(1, -1)
        start, inside = self.starts[before, after], self.inside[before, after]
        start = start & ~(inside & start.roll(1, -1))  # unless the span before goes on
        boundary = torch.where(inside, length, torch.arange(length + 1, device=rows.device))
        end = boundary[..., 1:].flip(-1).cummin(-1).values.flip(-1) if length else rows
        well = self.ends[before, after].gather(-1, end)
        return start[..., :-1] & well, end

    def _by_type(self, types: Tensor, spans: Tensor, weight: Tensor) -> Tensor:
        return torch.zeros_like(self.gold).index_add_(0, types[spans], weight[spans].to(self.gold.dtype))

    def compute(self) -> Tensor:
        """The F1, in float64."""
        if self.average == "micro":
            return _f1(self.correct.sum(), self.predicted.sum(), self.gold.sum())
        each = _f1(self.correct, self.predicted, self.gold)
        return each if self.average is None else _average(each, self.average, self.predicted, self.gold)

    def by_type(self) -> dict[str, dict[str, float]]:
        """Precision, recall, F1 and the counts behind them for each type, of what this process has counted."""
        table = {}
        for i, kind in enumerate(self.types):
            c, p, g = (state[i] for state in (self.correct, self.predicted, self.gold))
            table[kind] = {
                "precision": float(mean(c, p)), "recall": float(mean(c, g)), "f1": float(_f1(c, p, g)),
                "predicted": _number(p), "gold": _number(g),
            }  # fmt: skip
        return table

    def averages(self) -> dict[str, dict[str, float]]:
        """The same of all types by each way to average, ``"micro"``, ``"macro"`` and ``"weighted"``."""
        counts = self.correct, self.predicted, self.gold
        table = {}
        for average in AVERAGES:
            c, p, g = (part.sum().view(1) if average == "micro" else part for part in counts)
            every = mean(c, p), mean(c, g), _f1(c, p, g)
            row = {
                name: float(each if average == "micro" else _average(each, average, p, g))
                for name, each in zip(("precision", "recall", "f1"), every, strict=True)
            }
            table[average] = row | {"predicted": _number(p.sum()), "gold": _number(g.sum())}
        return table


def _f1(correct: Tensor, predicted: Tensor, gold: Tensor) -> Tensor:
    return mean(2 * correct, predicted + gold)


def _number(total: Tensor) -> float:
    """How many, a whole number unless there were weights that are none."""
    number = float(total)
    return int(number) if number.is_integer() else number


def _average(each: Tensor, average: str, predicted: Tensor, gold: Tensor) -> Tensor:
    """The mean over types that occur, or weighted by the gold spans; 0 over nothing."""
    weight = (predicted + gold > 0).double() if average == "macro" else gold
    return mean((each * weight).sum(), weight.sum())
