"""ONNX: a head, with or without the network before it, as a file that other run times take.

Sequences of any length and batches of any size go through one file. Needs the packages ``onnx`` and ``onnxscript``;
onnxruntime runs what comes out.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.heads import Head, LabelTreeHead, MultilabelHead
from torch_multiclass.heads.sequence import SequenceHead
from torch_multiclass.integrations._programs import called, decided, plain, sort, unwarned, used, weight

__all__ = ["Answers", "to_onnx"]

ANSWERS = ("predict", "predict_proba", "class_scores")
INPUTS = ("features", "mask", "parents")
ONE_FILE = 1_800_000_000
"""Bytes of weights up to which they stand in the file itself, which has 2 GB at most."""
Made = TypeVar("Made")


class Answers(nn.Module):
    """Features to what a head says of them, as one module that returns tensors.

    Args:
        head: any head, or several verbs of it at once.
        answers: verbs of the head, each a tensor of the result, in this order; or one of them.
        backbone: what makes features of the first input; None where that is the features.

    Shape:
        as the head says; a second input is the mask, None for all, and of a `LabelTreeHead` a third one the parents.

    Raises:
        TypeError: a head that is not one of this library, a backbone that is no module, a mask or parents for a head
            that has none.
        ValueError: an answer that no head has, none, or one twice.

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
        answers: Sequence[str] | str = ("predict", "predict_proba"),
        backbone: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(head, Head):
            raise TypeError(f"head: got {check.came(head)}; accepted is a head of torch_multiclass")
        if backbone is not None and not isinstance(backbone, nn.Module):
            raise TypeError(f"backbone: got {check.shown(backbone)}; accepted is a torch.nn.Module")
        asked = check.label_names("answers", [answers] if isinstance(answers, str) else answers)
        for answer in asked:
            check.choice("answers", answer, ANSWERS)
        if len(set(asked)) < max(len(asked), 1):
            raise ValueError(f"answers: got {asked}; accepted are one or more of {ANSWERS}, each once")
        self.head, self.answers, self.backbone = head, tuple(asked), backbone

    def forward(
        self, features: Tensor, mask: Tensor | None = None, parents: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The answers, one tensor each."""
        features = features if self.backbone is None else self.backbone(features)
        given = {name: part for name, part in (("mask", mask), ("parents", parents)) if part is not None}
        for name, part in given.items():
            if not isinstance(self.head, LabelTreeHead if name == "parents" else SequenceHead):
                raise TypeError(f"{name}: got {check.shown(part)} with {type(self.head).__name__}; accepted is None")
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
        example: inputs of the module, of two examples and two positions at least; the module is called with them.
        path: of the file.
        dynamic: for each input the names of its dimensions that may have any size, ``{0: "batch", 1: "length"}``,
            which the file has too; by default the first of each input is the batch, and of a head of sequences the
            second is the length. A program has its own.
        input_names, output_names: in the file; by default those of `Answers` (``features``, ``mask``, ``parents`` and
            the verbs), or what torch calls them.

    Note:
        One file holds graph and weights; beyond 1.8 GB of weights they go to a second one beside it, ``path`` with
        ``.data`` after it, which has to be copied along.
        Every head is written, with any decoder of its kind. Sequences have one position at least. Of labellings of a
        tree that are equally good the file takes the lowest label, roots first. k-best decoding beyond chains of the
        first order decodes ``k T`` times, in the file as in torch.

    Raises:
        ImportError: without ``onnx`` or ``onnxscript``.
        TypeError: no module and no program, one that gives scores of a structure or a code, an example that is no
            tuple, names that are none, no path.
        ValueError: a module that branches on values, or has a loss or a derivative in it, which ONNX has no form for;
            an example of one where there may be any number, dimensions and names of other inputs; a path in no folder.

    Warns where the module gives the scores of a head, not what it answers, as ``Sequential(network, head)`` does.

    Reference: the Open Neural Network Exchange format, operators of its set 18 and later.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> example = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
        >>> to_onnx(Answers(tm.ChainHead(8, 3)), example, "tagger.onnx")  # doctest: +SKIP
    """
    if not isinstance(module, (nn.Module, torch.export.ExportedProgram)):
        raise TypeError(f"module: got {check.shown(module)}; accepted is a module or an exported program")
    if not isinstance(example, tuple):
        raise TypeError(f"example: got {check.came(example)}; accepted is a tuple of the inputs, (features,) or more")
    given = [part for part in example if part is not None]
    if not given:
        raise ValueError(f"example: got {example!r}; accepted is a tuple of the inputs, (features,) or more")
    path = _writable(path)
    if dynamic is not None:
        _check_dynamic(dynamic, example)
    answers = module.answers if isinstance(module, Answers) else None
    if answers is not None:
        input_names = (
            [name for name, part in zip(INPUTS, example, strict=False) if part is not None]
            if input_names is None
            else input_names
        )
    input_names = _names("input_names", input_names, len(given))
    count = None if answers is None else len(answers)
    output_names = _names("output_names", answers if output_names is None else output_names, count)
    _needed()
    names = None
    if isinstance(module, nn.Module):
        names = _dynamic(module, example) if dynamic is None else dynamic
        program = _captured(module, example, names)
    else:
        program = module
    program = decided(plain(program))

    def write() -> None:
        made: Any = torch.onnx.export(
            program,
            example,
            input_names=input_names,
            output_names=output_names,
            dynamic_shapes=None if names is None else _once(names),
            dynamo=True,
            custom_translation_table={torch.ops.aten.sort.stable: sort},
            verbose=False,
        )
        used(made.model)
        made.save(path, external_data=weight(program) > ONE_FILE)

    with _quiet():
        _said("ONNX has no form for it", write)


def _captured(module: nn.Module, example: tuple[Any, ...], names: Sequence[Any]) -> torch.export.ExportedProgram:
    """The module as one graph, after a call of it as it is, which says in its own words what it does not take."""
    training = module.training
    module.eval()
    try:
        heads = [] if isinstance(module, Answers) else [part for part in module.modules() if isinstance(part, Head)]
        called(module, example, heads)
        for number, (part, sizes) in enumerate(zip(example, names, strict=True)):
            for at, name in (sizes or {}).items():
                if name is not None and part.shape[at] < 2:
                    raise ValueError(
                        f"example: input {number} is of size {part.shape[at]} in dimension {at}, which may have any; "
                        "accepted are two or more, by which torch tells it from a dimension of one"
                    )
        shapes = _sizes(names)
        return _said(
            "torch cannot capture it as one graph with these sizes",
            lambda: torch.export.export(module, example, dynamic_shapes=shapes, strict=False),
        )
    finally:
        module.train(training)


def _said(what: str, call: Callable[[], Made]) -> Made:
    """The result of a call into torch; its errors say first what they are about."""
    try:
        with unwarned():
            return call()
    except (MemoryError, ImportError, OSError):
        raise
    except Exception as error:
        told = str(error).partition("Exception summary")[2] or str(error)  # before it are hints on reporting errors
        first = told.strip().partition("\n")[0][:300]
        raise ValueError(
            f"module: {what}: {type(error).__name__}, {first}; accepted are modules of tensors to tensors without "
            "branches on values, and sizes that they leave open"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's words on libraries that are not here, and on how it writes a graph down."""
    levels = {name: logging.getLogger(name).level for name in ("torch.onnx", "onnx_ir", "onnxscript")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _needed() -> None:
    for name in ("onnx", "onnxscript"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(
                f"to_onnx needs the package {name}, which cannot be imported; pip install "
                "'torch_multiclass[integrations]'"
            ) from error


def _writable(path: object) -> str:
    """The path as a string; raise where no file can be."""
    if not isinstance(path, (str, PathLike)) or isinstance(fspath(path), bytes):
        raise TypeError(f"path: got {check.shown(path)}; accepted is the name of a file")
    file = Path(path)
    if file.is_dir() or not str(path) or not file.parent.is_dir():
        raise ValueError(f"path: got {str(path)!r}; accepted is the name of a file in a folder that is there")
    return fspath(path)


def _names(name: str, given: object, count: int | None) -> list[str] | None:
    """Names of inputs or outputs, of which there are so many."""
    if given is None:
        return None
    names = check.label_names(name, given)  # type: ignore[arg-type]
    if (count is not None and len(names) != count) or len(set(names)) < len(names):
        many = "names" if count is None else f"as many names as there are, {count}"
        raise ValueError(f"{name}: got {check.shown(given)}; accepted are {many}, each once")
    return names


def _check_dynamic(dynamic: object, example: tuple[Any, ...]) -> None:
    """Raise unless there is for each input None, or names of its dimensions."""
    if isinstance(dynamic, (str, Tensor)) or not isinstance(dynamic, Sequence) or len(dynamic) != len(example):
        raise ValueError(
            f"dynamic: got {check.shown(dynamic)}; accepted is one entry for each of {len(example)} inputs"
        )
    for part, sizes in zip(example, dynamic, strict=True):
        if sizes is None:
            continue
        rank = part.ndim if isinstance(part, Tensor) else 0
        known = isinstance(sizes, Mapping) and all(
            isinstance(at, int)
            and 0 <= at < rank
            and (name is None or (name.isidentifier() if isinstance(name, str) else "Dim" in type(name).__name__))
            for at, name in sizes.items()
        )
        if not known:
            raise ValueError(
                f"dynamic: got {check.shown(sizes)} for an input of {rank} dimensions; accepted are None and names of "
                "dimensions, such as {0: 'batch', 1: 'length'}, or torch.export.Dim"
            )


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
