"""What is reported on, and the examples that it is tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.decoders import (
    ArgmaxDecoder,
    Decoder,
    HammingDecoder,
    LossBasedDecoder,
    SignDecoder,
    TournamentDecoder,
    ViterbiDecoder,
    VotingDecoder,
)
from torch_multiclass.heads.base import Head
from torch_multiclass.scorers.base import Scorer, sample_of
from torch_multiclass.scores import CodedScores, FlatScores, MultilabelScores, Scores
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.boosting.report import Rounds
from torch_multiclass.solvers.reduction.report import ColumnsReport

__all__ = ["Model", "batches", "evaluating"]

VOTES = (VotingDecoder, TournamentDecoder, HammingDecoder)
"""Decoders that count answers, whatever the margins."""


@dataclass
class Model:
    """A scorer, what reads it, and what else is known of it."""

    scorer: Scorer
    head: Head | None
    fit: Any
    """How the solver says that it went, or None."""
    decoder: Decoder | None
    backbone: Callable[[Any], Any] | None
    shares: Callable[[Any], Tensor] | None = None
    """Makes the probabilities of the scores, where the head is not to."""

    @classmethod
    def of(
        cls,
        given: Any,
        decoder: Decoder | None,
        backbone: Callable[[Any], Any] | None,
        shares: Callable[[Any], Tensor] | None = None,
    ) -> Model:
        """Read a head, a scorer, or the fit of a solver."""
        if decoder is not None and not isinstance(decoder, Decoder):
            raise TypeError(f"decoder: got {check.shown(decoder)}; accepted is a Decoder, such as HammingDecoder()")
        if backbone is not None and not callable(backbone):
            raise TypeError(f"backbone: got {check.shown(backbone)}; accepted is a module or a function of the rows")
        if shares is not None and not callable(shares):
            raise TypeError(
                f"probabilities: got {check.shown(shares)}; accepted is a function of the scores, such as a fitted "
                "TemperatureScaling"
            )
        if isinstance(given, Head):
            return cls(given.scorer, given, None, given.decoder if decoder is None else decoder, backbone, shares)
        scorer, fit = (given.scorer, given.report) if isinstance(given, Fit) else (given, None)
        if not isinstance(scorer, Scorer):
            raise TypeError(
                f"model: got {check.shown(given)}; accepted is a head, a scorer, or the fit of a solver, and what "
                "comes before it as backbone="
            )
        return cls(scorer, None, fit, decoder, backbone, shares)

    def scores_of(self, inputs: Any, structure: Mapping[str, Any]) -> tuple[Any, Tensor | None]:
        """The scores of a batch, and the features where they are known."""
        if isinstance(inputs, (Scores, CodedScores)):
            return inputs, None
        check.takes("data", self.scorer.forward, structure)
        features = inputs if self.backbone is None else self.backbone(inputs)
        return self.scorer(features, **structure), features

    def decoder_of(self, scores: Any) -> Decoder:
        """What reads the scores."""
        if self.decoder is None:
            self.decoder = self._usual(scores)
        return self.decoder

    def _usual(self, scores: Any) -> Decoder:
        if isinstance(scores, CodedScores):
            if isinstance(self.fit, ColumnsReport):
                return self.fit.decoder
            if isinstance(self.fit, Rounds):
                return LossBasedDecoder("exponential")
            raise ValueError("decoder: got None for a scorer of coded margins; accepted is what it is decoded by")
        if isinstance(scores, (Tensor, FlatScores)):
            return ArgmaxDecoder()
        return SignDecoder() if isinstance(scores, MultilabelScores) else ViterbiDecoder()

    def describe(self) -> dict[str, str]:
        """What it is, in words."""
        said = {"scorer": " ".join(repr(self.scorer).split())}
        if self.head is not None:
            said = {"head": type(self.head).__name__, "loss": repr(self.head.criterion)} | said
        if self.backbone is not None:
            named = self.backbone if isinstance(self.backbone, nn.Module) else None
            said["backbone"] = getattr(self.backbone, "__name__", "") if named is None else type(named).__name__
        if self.fit is not None:
            said["solver's report"] = type(self.fit).__name__
        return said | {"decoder": repr(self.decoder)}


@contextmanager
def evaluating(*modules: Any) -> Iterator[None]:
    """Dropout and the like off, then as they were; without gradients."""
    parts = [part for module in modules if isinstance(module, nn.Module) for part in module.modules()]
    before = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, before, strict=True):
            part.training = mode


def batches(data: Any, model: Model, batch_size: int) -> Iterator[tuple[Any, Tensor, dict[str, Any]]]:
    """Inputs, target and structure, some examples at a time, where the model is."""
    device = sample_of(model.scorer).device
    for inputs, target, structure in _given(data, batch_size):
        if not isinstance(target, Tensor):
            raise TypeError(f"data: got {check.shown(target)} as a target; accepted is a tensor of labels")
        yield (
            _moved(inputs, device),
            target.to(device),
            {name: _moved(part, device) for name, part in structure.items()},
        )


def _moved(given: Any, device: torch.device) -> Any:
    return given.to(device) if isinstance(given, Tensor) else given


def _given(data: Any, batch_size: int) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and isinstance(data[1], Tensor):
        yield from _cut(*_parts(data), batch_size)
        return
    if isinstance(data, (Tensor, str)) or not isinstance(data, Iterable) or getattr(data, "shape", None) == ():
        raise TypeError(
            f"data: got {check.shown(data)}; accepted is (features, target), (features, target, structure), or batches "
            "of these"
        )
    for batch in data:
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise TypeError(
                f"data: got a batch {check.shown(batch)}; accepted is (features, target), or (features, target, "
                "structure) with a dictionary of mask=, lengths= or parents="
            )
        yield _parts(batch)


def _parts(given: Any) -> tuple[Any, Any, dict[str, Any]]:
    structure = given[2] if len(given) == 3 else {}
    if not isinstance(structure, Mapping):
        raise TypeError(
            f"data: got {check.shown(structure)} as structure; accepted is a dictionary of mask=, lengths= or parents="
        )
    return given[0], given[1], dict(structure)


def _cut(inputs: Any, target: Any, structure: dict[str, Any], size: int) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Some rows at a time; what is not a tensor of rows stays whole."""
    if not isinstance(inputs, Tensor) or inputs.ndim < 2 or len(inputs) <= size or len(target) != len(inputs):
        yield inputs, target, structure
        return
    count = len(inputs)
    for start in range(0, count, size):
        rows = slice(start, start + size)
        cut = {
            name: part[rows]
            if isinstance(part, Tensor) and part.ndim and len(part) == count and (name != "parents" or part.ndim > 1)
            else part
            for name, part in structure.items()
        }
        yield inputs[rows], target[rows], cut
