"""Probabilities from scores, fitted on examples that the scores were not trained on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.functional import crf_loss
from torch_multiclass.ops.logistic import logistic_lines
from torch_multiclass.ops.precision import undisturbed, upcast
from torch_multiclass.options import factory
from torch_multiclass.scores import FlatScores, Scores, as_scores
from torch_multiclass.scores.coded import CodedScores
from torch_multiclass.scores.flat import check_labels, check_scores

_GOLDEN = (math.sqrt(5) - 1) / 2
_BLOCK = 1 << 21  # margins whose curves are fitted at a time
_CLOSE = 1e-3  # to a bound, in the logarithm of the temperature
_LARGEST = 1e4  # bound on the temperature in units of the scores' spread, and on what that is the inverse of


class TemperatureScaling(nn.Module):
    r"""Soft-max of class scores over a temperature, ``p_y \propto e^{f_y / T}``.

    `fit` takes the ``T`` of smallest negative log-likelihood on held-out scores, between 1e-4 and 1e4 times their
    largest spread within an example; in ``1 / T`` that is convex. Order, and so every prediction, stays as it is.
    Scores of a structure are a distribution over its labellings, ``p(y) \propto e^{s(y) / T}``, whose likelihood is
    that of `CRFLoss`.

    Warns where the likelihood only grows up to one of these bounds, and probabilities are no more than 0 and 1, or all
    equal: of rows without an error, of scores that say nothing of the labels, of too few rows; and of a single row.

    Args:
        class_dim: the dimension of a plain tensor of class scores, and of the probabilities, that holds the classes.
        device, dtype: of the buffer.

    Shape:
        class scores ``(*, K)``; probabilities ``(*, K)``. ``-inf`` scores get probability 0. Or `Scores` of a
        structure, such as `ChainScores`, and its marginals.

    Raises:
        TypeError: scores that are not a dense floating-point tensor, labels that are not integers.
        ValueError: held-out scores with NaN or ``+inf``, labels outside ``0..K-1``, or no label of a class that is
            decoded.

    Reference: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Example:
        >>> import torch
        >>> scaling = TemperatureScaling().fit(torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
        >>> scaling(torch.tensor([4.0, 0.0]))
        tensor([0.7500, 0.2500])
    """

    temperature: Tensor

    def __init__(
        self, *, class_dim: int = -1, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        factory(device, dtype)
        super().__init__()
        self.class_dim = check.integer("class_dim", class_dim)
        self.register_buffer("temperature", torch.ones((), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Temperature 1."""
        self.temperature.fill_(1.0)

    @torch.no_grad()
    @undisturbed
    def fit(self, class_scores: Tensor | Scores, target: Tensor) -> TemperatureScaling:
        """Fit the temperature to held-out class scores ``(*, K)`` and labels ``(*)``, -100 ignored; returns itself.

        Scores of a structure take the target of `CRFLoss`; labellings that are not possible are passed over.
        """
        if isinstance(class_scores, (Tensor, Scores)):
            _beside(self.temperature, "class_scores", class_scores)
        if isinstance(class_scores, Scores) and not isinstance(class_scores, FlatScores):
            return self._fit_structure(class_scores, target)
        flat = self._flat(class_scores)
        if isinstance(class_scores, Tensor):
            check.rows_behind("scores", class_scores, target, self.class_dim)
        class_scores = flat.tensor
        labels, kept, _ = check_labels(class_scores, target)
        if not bool((class_scores[kept] < math.inf).all()):
            raise ValueError("scores: hold NaN or inf; accepted are held-out scores without them")
        known = int(kept.sum())
        kept = kept & (class_scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1) != -math.inf)  # a class left out
        scores, labels = class_scores[kept].double(), labels[kept]
        scores = scores - scores.amax(-1, keepdim=True)
        if len(labels) == 0:
            raise ValueError(_nothing_left("label", "is of a class that is decoded", known))

        spread = float(-scores[scores.isfinite()].min()) or 1.0
        scores = scores / spread

        def loss(log_temperature: float) -> float:
            return float(nn.functional.cross_entropy(scores / math.exp(log_temperature), labels))

        return self._take(spread, _lowest(loss), len(labels), "row")

    def _fit_structure(self, scores: Scores, target: Tensor) -> TemperatureScaling:
        held = scores.detach().double()
        losses = crf_loss(held, target, reduction="none")
        known = held.labelled(target) > 0
        kept = known & losses.isfinite()
        if bool(losses.isnan().any()):
            raise ValueError("scores: hold NaN or inf; accepted are held-out scores without them")
        if not bool(kept.any()):
            raise ValueError(_nothing_left("labelled example", "is possible by the scores", int(known.sum())))
        lead, counted = held._lead(), getattr(held, "_counted", lambda: None)()
        values = lead[lead.isfinite()] if counted is None else lead[counted][lead[counted].isfinite()]
        spread = float(values.amax() - values.amin()) or 1.0

        def loss(log_temperature: float) -> float:
            each = crf_loss(held.scale(1 / (spread * math.exp(log_temperature))), target, reduction="none")
            return float(each[kept].mean())

        return self._take(spread, _lowest(loss), int(kept.sum()), "example")

    def _take(self, spread: float, log_temperature: float, count: int, kind: str) -> TemperatureScaling:
        """Keep the temperature that was found in units of the spread; warn where that is a bound, or of one row."""
        self.temperature.fill_(spread * math.exp(log_temperature))
        if abs(log_temperature) > math.log(_LARGEST) - _CLOSE:
            certain = "0 and 1, for none of them is wrong"
            equal = "all equal, for the scores tell nothing of their labels"
            warnings.warn(
                f"temperature: {float(self.temperature):.3g} is the bound of what is tried: by the {count} "
                f"{kind}{'s' if count > 1 else ''} given, "
                f"probabilities are {certain if log_temperature < 0 else equal}. Are these rows held out, are they "
                "enough, and is the model trained?",
                UserWarning,
                stacklevel=check.caller(),
            )
        elif count == 1 and kind == "row":
            warnings.warn(
                f"temperature: {float(self.temperature):.3g} is that of one row; accepted are some hundreds, held out",
                UserWarning,
                stacklevel=check.caller(),
            )
        return self

    def forward(self, class_scores: Tensor | Scores) -> Tensor:
        """The probabilities."""
        if isinstance(class_scores, (Tensor, Scores)):
            _beside(self.temperature, "class_scores", class_scores)
        if isinstance(class_scores, Scores) and not isinstance(class_scores, FlatScores):
            readable = check.values_readable(self.temperature)
            return class_scores.scale(1 / (float(self.temperature) if readable else self.temperature)).marginals()
        p = FlatScores(self._flat(class_scores).tensor / self.temperature).marginals()
        return p.movedim(-1, self.class_dim) if isinstance(class_scores, Tensor) else p

    def _flat(self, class_scores: Tensor | FlatScores) -> FlatScores:
        if isinstance(class_scores, Tensor):
            check_scores(class_scores)
        return as_scores(class_scores, self.class_dim)  # type: ignore[return-value]

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        where = "" if self.class_dim == -1 else f", class_dim={self.class_dim}"
        return where[2:] if self.temperature.is_meta else f"temperature={float(self.temperature):.4g}{where}"


def _beside(fitted: Tensor, name: str, scores: Tensor | Scores | CodedScores) -> None:
    """Raise unless scores can be computed with what was fitted; a number on the CPU goes with any device."""
    if scores.device != fitted.device and (fitted.ndim or fitted.device.type != "cpu"):
        raise ValueError(
            f"{name}: is on {scores.device}, but the calibration is on {fitted.device}; accepted is one device"
        )


def _nothing_left(what: str, needed: str, known: int) -> str:
    """The error where no example is left to fit to; of those with a label, each is forbidden."""
    if known == 0:
        return f"target: holds no {what}; accepted is at least one"
    return (
        f"target: has {known} {what}{'s' if known > 1 else ''}, none of which {needed}: each has a score of -inf; "
        "accepted is at least one that has not. Do classes left out, or constraints, have the labels of the target?"
    )


def _lowest(loss: Callable[[float], float]) -> float:
    """Where a loss that falls and then rises is lowest, between the bounds in the logarithm: golden-section search."""
    low, high = -math.log(_LARGEST), math.log(_LARGEST)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [loss(x) for x in inner]
    while high - low > 1e-6:
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = loss(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = loss(inner[1])
    return (low + high) / 2


class PlattScaling(nn.Module):
    r"""A logistic curve for each column of a code, ``P(\text{bit}_s = 1) = \sigma(2 (a_s f_s + b_s))``.

    `fit` finds slope and offset by maximum likelihood on held-out margins, with Platt's targets ``(n_+ + 1)/(n_+ + 2)``
    and ``1/(n_- + 2)`` in place of 1 and 0; a column without both signs there keeps slope 1 and offset 0. Calling the
    module gives `CodedScores` of ``a f + b``, whose logistic distance is the negative log-likelihood of a class. The
    fit does not depend on the unit of the margins or on where their zero is.

    Args:
        num_columns: ``L``.
        device, dtype: of the buffers.

    Shape:
        `CodedScores` of margins ``(*, L)``, to the same.

    Raises:
        TypeError: scores that are not `CodedScores`, labels that are not integers.
        ValueError: ``num_columns`` below 1, scores of another number of columns, held-out margins that are not finite,
            labels outside ``0..K-1`` or none at all.

    Reference: Platt (1999), Probabilistic outputs for support vector machines; Lin, Lin and Weng (2007).

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[1.0], [1.0], [1.0], [-1.0]]), torch.tensor([[1], [-1]]))
        >>> PlattScaling(1).fit(scores, torch.tensor([0, 0, 1, 1]))(scores).margins.mul(2).sigmoid()
        tensor([[0.5833],
                [0.5833],
                [0.5833],
                [0.2500]])
    """

    slope: Tensor
    offset: Tensor
    fitted: Tensor

    def __init__(
        self, num_columns: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        factory(device, dtype)
        super().__init__()
        num_columns = check.whole("num_columns", num_columns)
        self.register_buffer("slope", torch.ones(num_columns, device=device, dtype=dtype))
        self.register_buffer("offset", torch.zeros(num_columns, device=device, dtype=dtype))
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool, device=device))

    def reset_parameters(self) -> None:
        """Slope 1, offset 0, not fitted."""
        self.slope.fill_(1.0)
        self.offset.fill_(0.0)
        self.fitted.fill_(False)

    @torch.no_grad()
    @undisturbed
    def fit(self, scores: CodedScores, target: Tensor) -> PlattScaling:
        """Fit the curves to held-out scores and labels ``(*)``, -100 ignored; returns itself."""
        self._check(scores)
        _beside(self.slope, "scores", scores)
        labels, kept, _ = scores.check_target(target)
        if not bool(kept.any()):
            raise ValueError("target: holds no label; accepted is at least one labelled example")
        rows, labels = scores[kept], labels[kept]
        step = max(1, _BLOCK // len(labels))
        for start in range(0, len(self.slope), step):
            self._fit_columns(slice(start, start + step), rows, labels)
        self.fitted.fill_(True)
        return self

    def _fit_columns(self, columns: slice, scores: CodedScores, labels: Tensor) -> None:
        """Fit the curves of some columns to labelled scores."""
        bits = scores.rows(labels, columns).double()
        f = torch.where(bits != 0, scores.columns(columns).double(), 0.0)
        if not bool(f.isfinite().all()):
            raise ValueError("scores: hold margins that are not finite; accepted are held-out margins that are")
        positive, negative = bits > 0, bits < 0
        many, few = positive.sum(0), negative.sum(0)
        goal = torch.where(positive, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))
        both = (many > 0) & (few > 0)
        line = logistic_lines(f, goal, (positive | negative).double())
        self.slope[columns] = torch.where(both, line[0] / 2, 1.0).to(self.slope.dtype)
        self.offset[columns] = torch.where(both, line[1] / 2, 0.0).to(self.offset.dtype)

    def forward(self, scores: CodedScores) -> CodedScores:
        """The calibrated margins, with the same code."""
        self._check(scores)
        _beside(self.slope, "scores", scores)
        return scores._with(margins=self.slope * upcast(scores.margins) + self.offset)

    def _check(self, scores: CodedScores) -> None:
        if not isinstance(scores, CodedScores):
            raise TypeError(f"scores: got {check.came(scores)}; accepted here is CodedScores(margins, code)")
        if scores.num_columns != len(self.slope):
            raise ValueError(f"scores: have {scores.num_columns} columns; accepted are {len(self.slope)}")

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        fitted = "" if self.fitted.is_meta else f", fitted={bool(self.fitted)}"
        return f"num_columns={len(self.slope)}{fitted}"


check.lacks(__name__)
