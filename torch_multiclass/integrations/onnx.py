"""ONNX: a head, with or without the network before it, as a file that other run times take.

Sequences of any length and batches of any size go through one file. Needs the packages ``onnx`` and ``onnxscript``;
onnxruntime runs what comes out.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.heads import Head, MultilabelHead
from torch_multiclass.heads.sequence import SequenceHead
from torch_multiclass.ops.scans import ONLY_FIRST, PLAIN

__all__ = ["Answers", "to_onnx"]


class Answers(nn.Module):
    """Features to what a head says of them, as one module that returns tensors.

    Args:
        head: any head, or several verbs of it at once.
        answers: verbs of the head, each a tensor of the result, in this order.
        backbone: what makes features of the first input; None where that is the features.

    Shape:
        as the head says; a second input is the mask, None for all, and of a `LabelTreeHead` a third one the parents.

    Raises:
        TypeError: a head that is not one of this library.
        ValueError: an answer that no head has.

    Reference: Rabiner (1989), A tutorial on hidden Markov models, for what a chain answers: (33)-(35) and (27).

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainHead
        >>> model = Answers(ChainHead(8, 3))
        >>> labels, probabilities = model(torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool))
        >>> labels.shape, probabilities.shape
        (torch.Size([2, 5]), torch.Size([2, 5, 3]))
    """

    def __init__(
        self,
        head: Head,
        answers: Sequence[str] = ("predict", "predict_proba"),
        backbone: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(head, Head):
            raise TypeError(f"head: got {type(head).__name__}; accepted is a head of torch_multiclass")
        for answer in answers:
            check.choice("answers", answer, ("predict", "predict_proba", "class_scores"))
        self.head, self.answers, self.backbone = head, tuple(answers), backbone

    def forward(
        self, features: Tensor, mask: Tensor | None = None, parents: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The answers, one tensor each."""
        features = features if self.backbone is None else self.backbone(features)
        given = {name: part for name, part in (("mask", mask), ("parents", parents)) if part is not None}
        scores = self.head(features, **given)
        return tuple(getattr(self.head, answer)(scores) for answer in self.answers)


def to_onnx(
    module: nn.Module | torch.export.ExportedProgram,
    example: tuple[Any, ...],
    path: str | PathLike[str],
    *,
    dynamic: Sequence[Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> None:
    """Write a module as an ONNX file.

    Args:
        module: a module of tensors to tensors, such as `Answers`; or what `torch.export.export` made of one.
        example: inputs of the module, of two examples and two positions at least.
        path: of the file.
        dynamic: for each input the names of its dimensions that may have any size, ``{0: "batch", 1: "length"}``,
            which the file has too; by default the first of each input is the batch, and of a head of sequences the
            second is the length. A program has its own.
        input_names, output_names: in the file; by default those of `Answers` (``features``, ``mask``, ``parents`` and
            the verbs), or what torch calls them.

    Note:
        Every head is written, with any decoder of its kind; k-best decoding of chains of the first order. Sequences
        have one position at least. Of labellings of a tree that are equally good the file takes the lowest label, roots
        first.

    Raises:
        ImportError: without ``onnx`` or ``onnxscript``.
        TypeError: no module and no program, an example that is no tuple.
        ValueError: a module with a loss or a derivative in it, which ONNX has no form for; sizes of other inputs.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> example = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
        >>> to_onnx(Answers(tm.ChainHead(8, 3)), example, "tagger.onnx")  # doctest: +SKIP
    """
    if not isinstance(module, (nn.Module, torch.export.ExportedProgram)):
        raise TypeError(f"module: got {check.shown(module)}; accepted is a module or an exported program")
    if not isinstance(example, tuple):
        raise TypeError(f"example: got {check.shown(example)}; accepted is a tuple of the inputs, (features,) or more")
    if dynamic is not None and (not isinstance(dynamic, Sequence) or len(dynamic) != len(example)):
        raise ValueError(
            f"dynamic: got {check.shown(dynamic)}; accepted is one entry for each of {len(example)} inputs"
        )
    names = None
    if isinstance(module, nn.Module):
        training = module.training
        names = _dynamic(module, example) if dynamic is None else dynamic
        program = torch.export.export(module.eval(), example, dynamic_shapes=_sizes(names), strict=False)
        module.train(training)
    else:
        program = module
    if isinstance(module, Answers):
        given = [name for name, part in zip(("features", "mask", "parents"), example, strict=False) if part is not None]
        input_names = given if input_names is None else input_names
        output_names = module.answers if output_names is None else output_names
    program = plain(program)
    torch.onnx.export(
        program,
        example,
        fspath(path),
        input_names=input_names,
        output_names=output_names,
        dynamic_shapes=None if names is None else _once(names),
        dynamo=True,
        custom_translation_table={torch.ops.aten.sort.stable: _sort},
        verbose=False,
    )


def plain(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with every operator of this library written out in operators of torch."""
    for node in program.graph.nodes:
        others = [use for use in node.users if use.target is operator.getitem and use.args[1] != 0 and use.users]
        if node.target in ONLY_FIRST and others:
            raise ValueError("module: takes a derivative, which ONNX has no form for; accepted are predictions")
    written: torch.export.ExportedProgram = program.run_decompositions(PLAIN)
    return written


def _dynamic(module: nn.Module, example: tuple[Any, ...]) -> list[Any]:
    """The dimensions that may have any size, by name."""
    sequences = isinstance(module, Answers) and isinstance(module.head, SequenceHead)
    sequences = sequences and not isinstance(module.head, MultilabelHead)
    sequences = sequences or any(isinstance(part, Tensor) and part.dtype == torch.bool for part in example)
    names = ("batch", "length") if sequences else ("batch",)
    return [dict(enumerate(names[: part.ndim])) if isinstance(part, Tensor) else None for part in example]


def _sizes(dynamic: Sequence[Any]) -> tuple[Any, ...]:
    """One `torch.export.Dim` a name."""
    sizes: dict[str, Any] = {}

    def size(name: Any) -> Any:
        return sizes.setdefault(name, torch.export.Dim(name)) if isinstance(name, str) else name

    return tuple(None if part is None else {at: size(name) for at, name in part.items()} for part in dynamic)


def _once(dynamic: Sequence[Any]) -> tuple[Any, ...]:
    """Each name where it first occurs: torch renames the size, which then has the name wherever it is."""
    seen: set[str] = set()
    found: list[Any] = []
    for part in dynamic:
        if part is not None:
            names = {at: getattr(name, "__name__", name) for at, name in part.items()}
            found.append({at: name for at, name in names.items() if isinstance(name, str) and name not in seen})
            seen.update(found[-1].values())
    return tuple(found)


def _sort(values: Any, stable: bool = False, dim: int = -1, descending: bool = False) -> Any:
    """Sorting, of which torch's exporter does not know: of equal entries ONNX too takes the first one first."""
    from onnxscript import opset18 as op

    dim %= len(values.shape)
    return op.TopK(values, op.Shape(values, start=dim, end=dim + 1), axis=dim, largest=descending, sorted=True)
