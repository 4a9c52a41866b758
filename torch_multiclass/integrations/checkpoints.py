"""Chains that other libraries have trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scorers.chain import Chain
from torch_multiclass.tags import Constraints

__all__ = ["load_crf"]

LAYOUTS = ("from_to", "to_from")

_FORBIDDEN = -1000.0
"""A transition with such a score, or a lower one, was never meant to be taken."""


class Naming(NamedTuple):
    """What a library calls the parts of a chain."""

    library: str
    transitions: str
    start: str
    end: str


NAMINGS = (
    Naming("pytorch-crf, allennlp", "transitions", "start_transitions", "end_transitions"),
    Naming("TorchCRF", "trans_matrix", "start_trans", "end_trans"),
)
WITHIN = "transitions"
"""The one matrix of tutorials, flair, NCRF++ and others, which holds start and end as two more tags."""
ENDS = NAMINGS[0][2:]
"""Beside such a matrix, two that were meant to make a chain with it."""
MASK = "_constraint_mask"
"""What allennlp allows, ``(K + 2, K + 2)``."""


@check.told
def load_crf(
    state_dict: Mapping[str, Tensor],
    *,
    prefix: str | None = None,
    layout: str | None = None,
    constraints: Constraints | None = None,
) -> Chain:
    r"""The chain of a checkpoint of pytorch-crf, allennlp, TorchCRF, flair, NCRF++ or the tutorial of PyTorch.

    It goes where the chain of a `ChainHead` stands, ``head.scorer.chain = load_crf(torch.load(path,
    weights_only=True))``. Keys of other modules are left alone: the linear layer before the chain, such as
    ``hidden2tag``, is ``head.scorer.emissions`` (see the example), and what is before that no part of the head.

    Args:
        state_dict: of the whole model, or of its CRF alone.
        prefix: what stands before the names of the CRF, such as ``"crf."``; None to look for it.
        layout: ``"from_to"`` where ``transitions[i, j]`` is the score of tag ``j`` after tag ``i``, ``"to_from"`` for
            the transpose. None to tell: those with a start and an end of their own are ``"from_to"``; where these are
            two more tags, start before end, no transition leads to the start and none from the end. The two tags are
            taken out.
        constraints: from `torch_multiclass.tag_constraints`, which no checkpoint holds: what is forbidden, besides what
            the checkpoint forbids. A head with constraints takes a chain with constraints only.

    Shape:
        transitions ``(K, K)``, start and end ``(K,)``; or all of them in one matrix ``(K + 2, K + 2)``.

    Note:
        What allennlp forbids (``_constraint_mask``) it forbids in decoding alone; here in training too.

    Raises:
        ValueError: no chain in the checkpoint, or several; shapes that disagree, those of the constraints among them;
            a layout that cannot be told.
        TypeError: an entry that is not a floating-point tensor, constraints that are none.

    Reference: Lample et al. (2016), Neural architectures for named entity recognition, section 2.2: the start and the
    end as tags of the matrix.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> theirs = {"crf.transitions": torch.eye(3), "crf.start_transitions": torch.zeros(3),
        ...           "crf.end_transitions": torch.ones(3),
        ...           "hidden2tag.weight": torch.ones(3, 8), "hidden2tag.bias": torch.zeros(3)}
        >>> allowed = tm.tag_constraints(["O", "B-X", "I-X"])
        >>> head = tm.ChainHead(8, 3, constraints=allowed)
        >>> head.scorer.chain = load_crf(theirs, constraints=allowed)
        >>> head.scorer.emissions.load_state_dict(
        ...     {name: theirs[f"hidden2tag.{name}"] for name in ("weight", "bias")})
        <All keys matched successfully>
        >>> head.scorer.chain
        Chain(num_tags=3, constrained)
    """
    if not isinstance(state_dict, Mapping) or not all(isinstance(key, str) for key in state_dict):
        raise TypeError(f"state_dict: got {check.came(state_dict)}; accepted is what module.state_dict() gives")
    if layout is not None:
        check.choice("layout", layout, LAYOUTS)
    if prefix is not None and not isinstance(prefix, str):
        raise TypeError(f"prefix: got {check.shown(prefix)}; accepted are a string and None")
    prefix, naming = _found(state_dict, prefix)
    if naming is None and (lone := [key for key in ENDS if prefix + key in state_dict]):
        missing = " and ".join(repr(prefix + key) for key in ENDS if key not in lone)
        raise ValueError(f"state_dict: has {prefix + lone[0]!r} and no {missing}; accepted are both, or neither")
    if naming is None:
        transitions, start, end = _without_ends(_part(state_dict, prefix + WITHIN), prefix + WITHIN, layout)
    else:
        transitions, start, end = (_part(state_dict, prefix + name) for name in naming[1:])
        transitions = transitions.t() if layout == "to_from" else transitions
    k = len(transitions)
    for name, part, shape in (
        (prefix + (naming.transitions if naming else WITHIN), transitions, (k, k)),
        (prefix + (naming.start if naming else WITHIN), start, (k,)),
        (prefix + (naming.end if naming else WITHIN), end, (k,)),
    ):
        check.shape(f"state_dict[{name!r}]", part, shape, f"for {k} tags")
    chain = Chain(k, constraints, dtype=transitions.dtype, device=transitions.device)
    own = _allowed(state_dict, prefix, k)
    if own is not None:  # after the constraints given were checked
        both = (
            own
            if constraints is None
            else [part + other.to(part) for part, other in zip(own, constraints, strict=True)]
        )
        chain = Chain(k, Constraints(*both), dtype=transitions.dtype, device=transitions.device)
    chain.load_state_dict({"transitions": transitions, "start_transitions": start, "end_transitions": end})
    return chain


def _found(state_dict: Mapping[str, Tensor], prefix: str | None) -> tuple[str, Naming | None]:
    """Where the chain stands, and by which names; None for one matrix."""
    found: list[tuple[str, Naming | None]] = []
    for naming in NAMINGS:
        found += [
            (before, naming)
            for before in _before(state_dict, naming.transitions, prefix)
            if before + naming.start in state_dict and before + naming.end in state_dict
        ]
    known = {before for before, _ in found}
    found += [(before, None) for before in _before(state_dict, WITHIN, prefix) if before not in known]
    if len(found) != 1:
        keys = ", ".join(map(repr, list(state_dict)[:12])) + (", ..." if len(state_dict) > 12 else "")
        names = "; ".join(f"{part.transitions}, {part.start}, {part.end} ({part.library})" for part in NAMINGS)
        several = f"several chains, under the prefixes {', '.join(repr(before) for before, _ in found)}"
        raise ValueError(
            f"state_dict: has {several if found else f'no chain under the keys {keys}'}; accepted is one with {names}; "
            f"or {WITHIN} alone, with start and end in it{'' if found else _within(state_dict)}"
        )
    return found[0]


def _within(checkpoint: Mapping[str, object]) -> str:
    """Where a checkpoint that holds more than weights may hold them."""
    inner = [key for key, part in checkpoint.items() if isinstance(part, Mapping)]
    return f". {' and '.join(f'[{key!r}]' for key in inner)} of it may be what is meant" if inner else ""


def _before(state_dict: Mapping[str, Tensor], name: str, prefix: str | None) -> list[str]:
    """What stands before the name in the keys that end in it."""
    before = [key[: -len(name)] for key in state_dict if key == name or key.endswith("." + name)]
    return before if prefix is None else [found for found in before if found == prefix]


def _part(state_dict: Mapping[str, Tensor], key: str) -> Tensor:
    part = state_dict[key]
    check.floating(f"state_dict[{key!r}]", part)
    check.with_values(f"state_dict[{key!r}]", part)
    return part.detach()


def _without_ends(matrix: Tensor, key: str, layout: str | None) -> tuple[Tensor, Tensor, Tensor]:
    """Transitions ``[from, to]``, start and end of a matrix that has start and end among its tags."""
    name = f"state_dict[{key!r}]"
    if matrix.dim() != 2 or len(matrix) != matrix.shape[1] or len(matrix) < 3:
        raise ValueError(f"{name}: got shape {tuple(matrix.shape)}; accepted is (K + 2, K + 2), a start and an end")
    closed = matrix <= _FORBIDDEN
    rows, columns = (closed.all(dim).nonzero()[:, 0].tolist() for dim in (1, 0))
    if len(rows) != 1 or len(columns) != 1 or rows == columns:
        raise ValueError(
            f"{name}: has {len(rows)} rows and {len(columns)} columns that are forbidden (up to {_FORBIDDEN:.0f}); "
            "accepted is one row and one column, of the start and the end"
        )
    row, column = rows[0], columns[0]
    if (layout or ("to_from" if row < column else "from_to")) == "to_from":
        matrix = matrix.t()
        start, end = row, column
    else:
        start, end = column, row
    tags = [tag for tag in range(len(matrix)) if tag not in (start, end)]
    return matrix[tags][:, tags], matrix[start, tags], matrix[tags, end]


def _allowed(state_dict: Mapping[str, Tensor], prefix: str, k: int) -> Constraints | None:
    """What allennlp allows, unless that is everything."""
    mask = state_dict.get(prefix + MASK)
    if mask is None:
        return None
    check.shape(f"state_dict[{prefix + MASK!r}]", mask, (k + 2, k + 2), "tags, start and end")
    scores = torch.where(mask.detach() > 0, 0.0, -torch.inf)
    parts = Constraints(scores[:k, :k], scores[k, :k], scores[:k, k + 1])
    return parts if any(bool((part < 0).any()) for part in parts) else None
