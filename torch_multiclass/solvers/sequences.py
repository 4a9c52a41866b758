"""The examples of a structured machine: rows with a label each, or sequences of them, packed without their padding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, Matrix
from torch_multiclass.ops.chain.layout import from_lengths
from torch_multiclass.scores._chain_checks import check_positions
from torch_multiclass.solvers.problem import Problem, RowWeights, check_row_weights, no_sequence

__all__ = ["Sequences"]


@dataclass(frozen=True)
class Sequences(Problem):
    """The positions that count, of the examples that do, one after the other.

    Left out are examples without a label or of weight 0; `weight` is of examples, `positions` and `given` of rows: of
    sequences, the positions of all of them in one list.

    Shape:
        features ``(M, D)``; labels and positions ``(M)``; weight and examples ``(N)``; first ``(N + 1)``.
    """

    first: Tensor
    """Where each example begins, and the end of the last."""
    examples: Tensor
    """Where each example stood among those given."""
    chain: bool
    """Whether neighbours have scores."""

    @classmethod
    def made(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None,
        num_classes: int | None,
        mask: Tensor | None,
        lengths: Tensor | None,
    ) -> Sequences:
        """Rows ``(N, D)`` with labels ``(N)``, or sequences ``(N, T, D)`` with labels ``(N, T)``, checked."""
        check.floating("features", features)
        check.class_indices("target", target)
        if features.ndim == 3 and target.ndim == 2:
            return cls._sequences(features, target, weight, num_classes, mask, lengths)
        if features.ndim != 2:
            raise ValueError(
                f"features: got shape {tuple(features.shape)}; accepted is (N, D) with a target (N), or (N, T, D) "
                f"with (N, T), but the target has shape {tuple(target.shape)}"
            )
        if mask is not None or lengths is not None:
            name = "lengths" if mask is None else "mask"
            raise ValueError(f"{name}: given with features of shape {tuple(features.shape)}; accepted for (N, T, D)")
        flat = Problem.multiclass(features, target, weight, num_classes)
        first = torch.arange(len(flat.labels) + 1)
        return cls(**vars(flat), first=first, examples=flat.positions, chain=False)

    @classmethod
    def _sequences(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None,
        num_classes: int | None,
        mask: Tensor | None,
        lengths: Tensor | None,
    ) -> Sequences:
        batch, steps, _ = features.shape
        check.shape("target", target, (batch, steps), "one label for each position")
        check.same_device("target", target, "features", features)
        check_positions(mask, lengths, ("features", features), (batch,), steps)
        check.with_values("features", features)
        counts = torch.ones_like(target, dtype=torch.bool) if mask is None else mask
        counts = counts if lengths is None else counts & from_lengths(lengths, steps)
        known = (target != check.IGNORE) & counts
        kept = known.any(1)
        weights = check_row_weights(weight, kept)
        kept = kept & (weights > 0)
        if batch and not bool(kept.any()):
            raise no_sequence(batch)
        open_label = ((counts & ~known).any(1) & kept).nonzero()
        if len(open_label):
            i = int(open_label[0])
            t = int((counts & ~known)[i].nonzero()[0])
            raise ValueError(
                f"target: sequence {i} has no label at position {t}, which counts; accepted are labels wherever mask "
                "or lengths say that a position counts"
            )
        counts = counts & kept.unsqueeze(1)
        bad = (~features.isfinite().all(2) & counts).nonzero()
        if len(bad):
            i, t = bad[0].tolist()
            raise ValueError(
                f"features: sequence {i} has an entry that is not finite at position {t}; accepted are finite features"
            )
        rows = Problem.multiclass(features[counts], target[counts], None, num_classes)
        ends = counts.sum(1)[kept].cumsum(0)
        return cls(
            **{
                **vars(rows),
                "weight": weights[kept],
                "positions": counts.flatten().nonzero().squeeze(1),
                "given": batch * steps,
            },
            first=torch.cat([ends.new_zeros(1), ends]).cpu(),
            examples=kept.nonzero().squeeze(1),
            chain=True,
        )

    @cached_property
    def lengths(self) -> Tensor:
        """``(N)``, on the CPU."""
        return self.first.diff()

    @cached_property
    def example(self) -> Tensor:
        """``(M)``: which example each position is of, on the CPU."""
        return torch.repeat_interleave(torch.arange(len(self.lengths)), self.lengths)

    def cost_of(self, cost: Cost, examples: Tensor) -> Cost:
        """The cost for some of the examples: of one matrix for each example given, theirs."""
        if not isinstance(cost, Matrix):
            return cost
        matrix = cost.matrix.cpu()
        if matrix.ndim > 2:
            if matrix.ndim != 3 or len(matrix) <= int(self.examples.max()):
                shape = tuple(matrix.shape)
                raise ValueError(f"cost: got shape {shape}; accepted is (K, K), or (N, K, K), one for each example")
            matrix = matrix[self.examples.cpu()[examples]]
        return Matrix(matrix, cost.normalize)


@dataclass(frozen=True)
class Examples(Problem):
    """Whole examples for a scorer that knows their structure; those without a label or of weight 0 are left out.

    Shape:
        features ``(N, D)`` or ``(N, T, D)``, 0 where padded; labels ``(N)`` or ``(N, ·)``; weight and
        positions ``(N)``.
    """

    structure: dict[str, Tensor]
    """What else the scorer takes, one entry for each example."""

    @classmethod
    def made(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None,
        mask: Tensor | None,
        lengths: Tensor | None,
        structure: dict[str, Tensor],
    ) -> Examples:
        """Checked as far as is possible without the scorer."""
        check.floating("features", features)
        check.class_indices("target", target)
        check.with_values("features", features)
        if features.ndim not in (2, 3) or target.ndim == 0:
            raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D) or (N, T, D)")
        structure = {**structure, **{k: v for k, v in (("mask", mask), ("lengths", lengths)) if v is not None}}
        for name, part in {"target": target, **structure}.items():
            check.is_tensor(name, part)
            check.shape(name, part, (len(features), *part.shape[1:]), "one entry for each example")
            check.same_device(name, part, "features", features)
        known = (target != check.IGNORE).reshape(len(target), -1).any(1)
        weights = check_row_weights(weight, known)
        kept = known & (weights > 0)
        if features.ndim == 3:
            batch, steps, _ = features.shape
            check_positions(mask, lengths, ("features", features), (batch,), steps)
            counts = kept.unsqueeze(1).expand(batch, steps) if mask is None else mask & kept.unsqueeze(1)
            counts = counts if lengths is None else counts & from_lengths(lengths, steps)
            features = torch.where(counts.unsqueeze(2), features, 0)
        features = features[kept].to(torch.promote_types(features.dtype, torch.float32))
        bad = (~features.isfinite().reshape(len(features), -1).all(1)).nonzero()
        if len(bad):
            i = int(kept.nonzero()[int(bad[0])])
            raise ValueError(f"features: row {i} has an entry that is not finite; accepted are finite features")
        structure = {name: part[kept].cpu() for name, part in structure.items()}
        positions = kept.nonzero().squeeze(1)
        return cls(features, target[kept].long(), weights[kept], 0, positions, len(target), structure).some()

    def some(self) -> Examples:
        """The same; raise where there are no examples."""
        super().some()
        return self
