"""A sequence of labels with a score for three labels in a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.chain.layout import lay_out
from torch_multiclass.ops.joined import Joined
from torch_multiclass.ops.precision import upcast
from torch_multiclass.ops.second_order import SecondOrder
from torch_multiclass.scores._chain_checks import check_part, check_parts
from torch_multiclass.scores._emitted import Emitted
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.recorded import Recorded

__all__ = ["SecondOrderScores"]


@registered
@dataclass(eq=False)
class SecondOrderScores(Emitted, Recorded):
    r"""The score of every labelling of a sequence, where a label depends on the two before it.

    .. math::
        s(y) = start_{y_1} + \sum_t e_{t, y_t} + \sum_{t > 1} trans_{y_{t-1}, y_t}
            + \sum_{t > 2} trans2_{y_{t-2}, y_{t-1}, y_t} + end_{y_n}

    With ``trans2 = 0`` it is `ChainScores`. Masked positions are taken out of the sequence, and the labels that remain
    are neighbours, first and second. A step costs ``K^3``.

    Args:
        emissions: ``(*, T, K)``; half precision is computed in float32.
        transitions: ``(K, K)`` scores ``[from, to]``, or ``(*, T-1, K, K)``, one matrix into each position but the
            first.
        trans2: ``(K, K, K)`` scores of three labels in a row, in their order.
        start, end: ``(K,)`` or ``(*, K)``, scores of the first and last label; None for 0.
        mask: ``(*, T)`` bool, True where a position counts; any shape of mask.
        lengths: ``(*)`` numbers of positions in ``0..T``; an alternative to ``mask``.
        reference, allowed, sharpness, costs, factor: set by verbs, see `Structured`.

    Raises:
        ValueError: shapes, dtypes or devices that disagree, no label at all (K = 0), a length outside ``0..T``.
        TypeError: scores that are not floating-point tensors, a mask that is not bool, lengths that are not integers.

    Reference: Collins (2002), Discriminative training methods for hidden Markov models, section 2 (trigram taggers).

    Example:
        >>> import torch
        >>> never_twice = torch.zeros(2, 2, 2)
        >>> never_twice[0, 0, 0] = never_twice[1, 1, 1] = -torch.inf
        >>> scores = SecondOrderScores(torch.tensor([[[1.0, 0.0]] * 4]), torch.eye(2), never_twice)
        >>> scores.decode()
        Decoded(labels=tensor([[0, 1, 0, 0]]), score=tensor([4.]))
    """

    emissions: Tensor
    transitions: Tensor
    trans2: Tensor
    start: Tensor | None = field(default=None, kw_only=True)
    end: Tensor | None = field(default=None, kw_only=True)
    mask: Tensor | None = field(default=None, kw_only=True)
    lengths: Tensor | None = field(default=None, kw_only=True)
    leading: ClassVar[str] = "emissions"

    def __post_init__(self) -> None:
        """Check what was given."""
        if self.lengths is not None:
            self.lengths = check.signed(self.lengths)
        check_parts(self)
        k = self.num_classes
        check_part("trans2", self.trans2, ("emissions", self.emissions))
        if tuple(self.trans2.shape) != (k, k, k):
            raise ValueError(
                f"trans2: got shape {tuple(self.trans2.shape)}; accepted is {(k, k, k)}, [from, through, to]"
            )
        super().__post_init__()

    @property
    def raw(self) -> Joined:
        """The record of the raw scores, in float32 at least, masked positions taken out."""
        chain, mask, order = lay_out(self.emissions, self.transitions, self.start, self.end, self.mask, self.lengths)
        return Joined(SecondOrder(chain, upcast(self.trans2)), mask, order)
