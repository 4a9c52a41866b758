"""Exported programs as ONNX has forms for them: operators of this library written out, branches that are decided."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.heads import Head
from torch_multiclass.ops.scans import ONLY_FIRST, PLAIN


@contextmanager
def unwarned() -> Iterator[None]:
    """Without what torch and onnxscript say about themselves."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        yield


def weight(program: torch.export.ExportedProgram) -> int:
    """How many bytes the parameters, buffers and constants of a program have."""
    return sum(part.nbytes for part in (program.state_dict | program.constants).values() if isinstance(part, Tensor))


def plain(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with every operator of this library written out in operators of torch."""
    for node in program.graph.nodes:
        others = [use for use in node.users if use.target is operator.getitem and use.args[1] != 0 and use.users]
        if node.target in ONLY_FIRST and others:
            raise ValueError("module: takes a derivative, which ONNX has no form for; accepted are predictions")
    with unwarned():
        written: torch.export.ExportedProgram = program.run_decompositions(PLAIN)
    return written


def decided(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without what a flag that is on or off for good would never choose, such as curves not fitted."""
    held = {**program.state_dict, **program.constants}
    flags = {part: held[target] for part, target in program.graph_signature.inputs_to_buffers.items()}
    graph = program.graph
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.where.self):
        flag = flags.get(getattr(node.args[0], "name", ""))
        if flag is None or flag.dtype != torch.bool or flag.numel() != 1:
            continue
        chosen, made = node.args[1 if bool(flag) else 2], node.meta["val"]
        told = chosen.meta["val"]
        if (told.shape, told.dtype) == (made.shape, made.dtype):
            node.replace_all_uses_with(chosen)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program


def sort(values: Any, stable: bool = False, dim: int = -1, descending: bool = False) -> Any:
    """Sorting, of which torch's exporter does not know: of equal entries ONNX too takes the first one first."""
    from onnxscript import opset18 as op

    dim %= len(values.shape)
    return op.TopK(values, op.Shape(values, start=dim, end=dim + 1), axis=dim, largest=descending, sorted=True)


def used(model: Any) -> None:
    """Leave out what nothing in the model uses, of which onnxruntime warns one by one."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    RemoveUnusedNodesPass()(model)


def called(module: nn.Module, example: tuple[Any, ...], heads: Sequence[Head]) -> None:
    """Call the module, and say where what it gives are the bare scores of one of the heads in it."""
    scores: dict[int, tuple[nn.Module, Any]] = {}

    def keep(head: nn.Module, _: Any, given: Any) -> None:
        scores[id(given)] = (head, given)

    hooks = [head.register_forward_hook(keep) for head in heads]
    try:
        with torch.no_grad():
            given = module(*example)
    finally:
        for hook in hooks:
            hook.remove()
    for part in given if type(given) in (tuple, list) else (given,):
        head, bare = scores.get(id(part), (None, None))
        if head is None:
            continue
        kind = type(head).__name__
        before = "" if head is module else ", backbone"
        instead = f'to_onnx(Answers(head, ["predict", "predict_proba"]{before}), ...)'
        if not isinstance(bare, Tensor):
            raise TypeError(
                f"module: gives the {type(bare).__name__} of {kind}, which are no tensor; accepted are modules of "
                f"tensors to tensors, such as what the head answers: {instead}"
            )
        warnings.warn(
            f"module: gives the bare scores of {kind}, without its decoder and its calibration; its labels and "
            f"probabilities are written by {instead}, and its scores without this warning by "
            '"class_scores" among the answers',
            UserWarning,
            stacklevel=check.caller(),
        )
