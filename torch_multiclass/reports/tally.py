"""What is counted while the examples go by: a pass over them, and little kept of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders import Decoder, LossBasedDecoder
from torch_multiclass.functional import average_binary_loss, margin
from torch_multiclass.metrics import BitError, CalibrationError
from torch_multiclass.ops.precision import upcast
from torch_multiclass.reports.model import VOTES, Model
from torch_multiclass.scores import CodedScores, FlatScores, MultilabelScores, Scores

__all__ = ["Sequences", "Tally"]

BINS = 15


@dataclass
class Sequences:
    """Of each sequence its labelled positions and the wrong ones; and what became of neighbours."""

    lengths: list[Tensor] = field(default_factory=list)
    wrong: list[Tensor] = field(default_factory=list)
    moves: Counter[tuple[int, int, int, int]] = field(default_factory=Counter)
    """How often two neighbours' true labels were given which labels."""


@dataclass
class Tally:
    """Labels, predictions and margins of every example that has a label, and sums."""

    names: list[str] | None
    kind: str = ""
    """``"classes"``, ``"sets"`` or ``"sequences"``."""
    num_classes: int = 0
    ignored: int = 0
    true: list[Tensor] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)
    margins: list[Tensor] | None = field(default_factory=list)
    spread: float = 0.0
    """The sum over the rows of how far the best score is from the worst."""
    spreads: int = 0
    calibration: CalibrationError = field(default_factory=lambda: CalibrationError(BINS))
    log_loss: float = 0.0
    binary: BitError | None = None
    asked: Tensor | None = None
    pairs: float = 0.0
    """Pairs of a row and a column that asks its class."""
    binary_loss: float = 0.0
    code: CodedScores | None = None
    sequences: Sequences | None = None
    squares: float | None = 0.0
    """The sum of ``K(x, x)``."""
    largest: float = 0.0
    rows: int = 0

    def label_names(self) -> list[str]:
        """Given, or numbers."""
        return [str(i) for i in range(self.num_classes)] if self.names is None else self.names

    def add(
        self,
        model: Model,
        inputs: Any,
        target: Tensor,
        structure: dict[str, Any],
        norms: Callable[[Tensor], Tensor] | None,
    ) -> None:
        """Count a batch."""
        scores, features = model.scores_of(inputs, structure)
        if isinstance(scores, Tensor) and scores.ndim and scores.shape[-1] == 1:  # one binary question
            scores, target = MultilabelScores(scores), target.reshape(*scores.shape[:-1], 1)
        decoder = model.decoder_of(scores)
        labels = decoder(scores)
        if isinstance(scores, MultilabelScores):
            self._sets(model, scores, labels, target)
        elif isinstance(scores, (Tensor, FlatScores, CodedScores)):
            kept = self._classes(model, decoder, scores, labels, target)
            self._norms(features, kept, norms)
        else:
            self._sequences(model, decoder, scores, labels, target, structure)

    # ------------------------------------------------------------------ kinds
    def _begin(self, kind: str, num_classes: int) -> None:
        if self.kind not in ("", kind):
            raise ValueError(f"data: has batches of {self.kind} and of {kind}; accepted is one kind")
        self.kind, self.num_classes = kind, num_classes
        if self.names is not None and len(self.names) < num_classes:
            raise ValueError(
                f"names: got {len(self.names)}; accepted are {num_classes}, and more for labels that the head "
                "does not know"
            )

    def _kept(self, target: Tensor, shape: tuple[int, ...], meaning: str) -> Tensor:
        check.class_indices("target", target)
        check.shape("target", target, shape, meaning)
        kept = target != check.IGNORE
        check.label_range("target", target, len(self.label_names()), kept, True)
        return kept

    def _classes(self, model: Model, decoder: Decoder, scores: Any, labels: Tensor, target: Tensor) -> Tensor:
        by_class = decoder.class_scores(scores)
        self._begin("classes", by_class.shape[-1])
        lead = tuple(by_class.shape[:-1])
        _check_labels(labels, lead)
        kept = self._kept(target, lead, "one class index for each row of scores")
        rows, true = by_class[kept], target[kept].long()
        _no_nan(rows)
        self._note(true, labels[kept], kept)
        known = true < self.num_classes
        if isinstance(decoder, VOTES):
            self.margins = None
        elif self.margins is not None:
            rho = torch.full((len(true),), -torch.inf, dtype=torch.float64)
            rho[known.cpu()] = margin(rows[known], true[known]).double().cpu()
            self.margins.append(rho)
            finite = rows.isfinite()
            best, worst = (rows.where(finite, end).double() for end in (-torch.inf, torch.inf))
            apart = (best.amax(-1) - worst.amin(-1))[finite.any(-1)]
            self.spread, self.spreads = self.spread + float(apart.sum()), self.spreads + len(apart)
        self._probabilities(_probabilities(model, scores, by_class)[kept], true)
        if isinstance(scores, CodedScores):
            self._columns(decoder, scores, target.where(target < self.num_classes, check.IGNORE))
        return kept

    def _sets(self, model: Model, scores: MultilabelScores, labels: Tensor, target: Tensor) -> None:
        if model.shares is not None:
            raise ValueError("probabilities: got a function for sets of labels; accepted is one for single labels")
        values = upcast(scores.tensor)
        self._begin("sets", values.shape[-1])
        _check_labels(labels, tuple(values.shape))
        check.class_indices("target", target)
        check.shape("target", target, tuple(values.shape), "-1 or +1 for each score")
        outside = (target != 1) & (target != -1) & (target != check.IGNORE)
        if bool(outside.any()):
            raise ValueError(f"target: holds {int(target[outside][0])}; accepted are -1, +1 and -100 (unknown)")
        width = values.shape[-1]
        values, labels, target = (part.reshape(-1, width) for part in (values, labels, target))
        some = (target != check.IGNORE).any(-1)
        values, labels, target = values[some], labels[some], target[some].long()
        kept = target != check.IGNORE
        _no_nan(values[kept])
        self.ignored += int((~some).sum())
        self.rows += len(target)
        self.true.append(target.cpu())
        self.given.append(labels.where(kept, check.IGNORE).cpu())
        assert self.margins is not None
        self.margins.append((target * values)[kept].double().cpu())
        self.spread, self.spreads = self.spread + float(2 * values[kept].abs().sum()), self.spreads + int(kept.sum())
        held = torch.sigmoid(2 * values.double())[kept]
        self._probabilities(torch.stack([1 - held, held], -1), (target[kept] > 0).long())

    def _sequences(
        self, model: Model, decoder: Decoder, scores: Scores, labels: Tensor, target: Tensor, structure: dict[str, Any]
    ) -> None:
        by_class = _probabilities(model, scores, None)
        self._begin("sequences", by_class.shape[-1])
        sites = tuple(by_class.shape[:-1])
        _check_labels(labels, sites)
        kept = self._kept(target, sites, "one label for each position")
        counted = scores._counted()  # type: ignore[attr-defined]
        if counted is not None:
            kept = kept & counted.expand(sites)
            self.ignored -= int((~counted.expand(sites)).sum())  # padding is no label left out
        steps = sites[-1]
        labels, target, kept = (part.reshape(-1, steps) for part in (labels, target, kept))
        p = by_class.reshape(-1, steps, self.num_classes)[kept]
        _no_nan(p)
        true = target[kept].long()
        self.margins = None
        self._note(true, labels[kept], kept)
        self._probabilities(p, true)
        if self.sequences is None:
            self.sequences = Sequences()
        each, wrong = kept.sum(-1), (kept & (labels != target)).sum(-1)
        self.sequences.lengths.append(each[each > 0].cpu())
        self.sequences.wrong.append(wrong[each > 0].cpu())
        parents = structure.get("parents", getattr(scores, "parents", None))
        self._moves(labels.cpu(), target.cpu(), kept.cpu(), parents)

    def _moves(self, labels: Tensor, target: Tensor, kept: Tensor, parents: Tensor | None) -> None:
        """Neighbours both of which are labelled: one after the other, or a node and its parent."""
        steps = labels.shape[-1]
        before = torch.arange(-1, steps - 1) if parents is None else parents.cpu().long()
        before = before.expand(labels.shape) if before.ndim == 1 else before.reshape(labels.shape)
        known = before.clamp(min=0)
        both = kept & (before >= 0) & kept.gather(1, known)
        quads = [part[both] for part in (target.gather(1, known), target, labels.gather(1, known), labels)]
        assert self.sequences is not None
        found, counts = torch.unique(torch.stack(quads, -1), dim=0, return_counts=True)
        for quad, count in zip(found.tolist(), counts.tolist(), strict=True):
            self.sequences.moves[tuple(quad)] += count

    # ------------------------------------------------------------------ what they share
    def _note(self, true: Tensor, given: Tensor, kept: Tensor) -> None:
        self.ignored += int((~kept).sum())
        self.rows += len(true)
        self.true.append(true.cpu())
        self.given.append(given.long().cpu())

    def _probabilities(self, p: Tensor, true: Tensor) -> None:
        p = p.double().cpu()
        known = (true.cpu() < p.shape[-1]) & (p.sum(-1) > 0)  # no label is possible where all are 0
        self.calibration.update(p, true.cpu().where(known, check.IGNORE))
        given = p[known].gather(-1, true.cpu()[known].unsqueeze(-1)) if bool(known.any()) else p.new_zeros(0)
        self.log_loss -= float(given.clamp(min=1e-300).log().sum())

    def _columns(self, decoder: Decoder, scores: CodedScores, target: Tensor) -> None:
        if self.binary is None:
            self.binary = BitError(scores.num_columns).to(target.device)
            self.code = scores
        self.binary.update(scores, target)
        if isinstance(decoder, LossBasedDecoder) and not isinstance(decoder, VOTES):
            self.binary_loss += float(average_binary_loss(scores, target, loss=decoder.loss, reduction="sum"))

    def _norms(self, features: Any, kept: Tensor, norms: Callable[[Tensor], Tensor] | None) -> None:
        """The lengths of the rows in the space in which the scores are linear."""
        if norms is None or not isinstance(features, Tensor) or features.layout != torch.strided:
            self.squares = None
        elif self.squares is not None and bool(kept.any()):
            squares = norms(upcast(features[kept])).double()
            self.squares += float(squares.sum())
            self.largest = max(self.largest, float(squares.max()) ** 0.5)

    # ------------------------------------------------------------------ what it comes to
    def labels(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """True and given labels, ``(n)``, for sets ``(n, K)``."""
        return torch.cat(self.true).numpy(), torch.cat(self.given).numpy()

    def margin(self) -> np.ndarray[Any, Any] | None:
        """The margins, ``(n)``."""
        return None if self.margins is None else torch.cat(self.margins).numpy()


def _probabilities(model: Model, scores: Any, by_class: Tensor | None) -> Tensor:
    """What is asked for, else what the head says; without one, scores that are probabilities already, marginals, or the
    soft-max of scores.
    """
    if model.shares is not None:
        return _given(model.shares(scores), scores, by_class)
    if model.head is not None:
        return model.head.predict_proba(scores)
    if by_class is None:
        marginals: Tensor = scores.marginals()
        return marginals
    shares = upcast(by_class)
    if bool((shares >= 0).all()) and bool(((shares.sum(-1) - 1).abs() < 1e-4).all()):
        return shares
    return shares.double().softmax(-1)


def _given(p: Any, scores: Any, by_class: Tensor | None) -> Tensor:
    """Probabilities that a function of the scores made; raise where they are none."""
    shape = tuple((scores.marginals() if by_class is None else by_class).shape)
    if not isinstance(p, Tensor) or tuple(p.shape) != shape:
        raise ValueError(f"probabilities: give {check.shown(p)}; accepted is one for each class, {shape}")
    if not p.is_floating_point() or not bool(((p >= 0) & (p <= 1 + 1e-4)).all()):
        raise ValueError("probabilities: give numbers outside 0..1; accepted are probabilities")
    return p


def _check_labels(labels: object, shape: tuple[int, ...]) -> None:
    """Raise unless a decoder gives labels of this shape."""
    if not isinstance(labels, Tensor) or labels.shape != shape:
        given = f"labels of shape {tuple(labels.shape)}" if isinstance(labels, Tensor) else check.came(labels)
        raise ValueError(f"decoder: gives {given}; accepted are labels of shape {shape}, from its `forward`")


def _no_nan(values: Tensor) -> None:
    bad = values.isnan()
    if bool(bad.any()):
        rows = int(bad.reshape(len(bad), -1).any(-1).sum()) if bad.ndim else 1
        raise ValueError(f"scores: hold NaN in {rows} of {len(values)} labelled rows; accepted are numbers")
