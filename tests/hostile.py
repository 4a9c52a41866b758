"""Calls of everything public with good arguments and hostile ones, mixed at random, and a verdict on each.

A call may end in a value of the right type, or in a `TypeError`, `ValueError` or `MemoryError` of ours that starts with
the argument's name and says what is accepted. Anything else is a fault: an error of torch's or Python's own, NaN in a
value or a gradient of moderate numbers, an argument that was changed, a call that hangs. `python -m tests.hostile
--calls 100000` prints the faults of a long run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import importlib.util
import inspect
import math
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import torch_multiclass as tm
from torch_multiclass import metrics
from torch_multiclass.ops.splits.tree import Tree, single
from torch_multiclass.options import FRAME, LOSS_OPTIONS

PACKAGE = str(Path(tm.__file__).parent)
SECONDS = 20.0
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
ODD = [torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2]
SHAPES = [(), (0,), (1,), (2,), (3,), (0, 3), (2, 0), (2, 3), (3, 3), (1, 1), (3, 2, 3), (2, 3, 3), (0, 0, 0)]
FORMS = ["sparse", "csr", "nested", "jagged", "meta", "grad", "strided", "expanded", "parameter"]

# ---------------------------------------------------------------------------------------------------- hostile values


def scalar(r: random.Random) -> Any:
    """Anything that is no tensor and no array."""
    return r.choice(
        [None, "", "x", "mean", "hinge", "é", b"ab", True, False, 0, 1, -1, 2, 3, 5, -100, 255, 2**63, -(2**63),
         10**30, 10**400, 0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e-308, 5e-324, 1e-45, 1e38, 1e300, math.nan, math.inf,
         -math.inf, 1j, np.float32(1), np.float64("nan"), np.int64(2), np.bool_(True), Fraction(1, 3), object(), int,
         ..., {}, {1: 2}, {1, 2}, (), [], [[]], [0, 1, 2], [1.0, [2.0]], [[1, 2], [3]], ["a"], ["O", "B-X"],
         [None], [math.nan] * 3, [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [[0.0, -1.0], [1.0, 0.0]], [10**30], range(3),
         slice(2), torch.float32, torch.int64, torch.Size([2]), torch.Generator(), np.random.default_rng(0),
         "cpu", torch.device("meta"), nn.Linear(2, 2), tm.CRFLoss(), tm.ArgmaxDecoder(), tm.costs.ZeroOne()]
    )  # fmt: skip


def array(r: random.Random) -> Any:
    """A numpy array of any dtype."""
    kind = r.choice(["f2", "f4", "f8", ">f8", "g", "i1", "u1", "u2", ">i4", "i8", "u8", "?", "c8", "O", "U1", "M8[s]"])
    return np.zeros(r.choice(SHAPES), dtype=kind)


def tensor(r: random.Random) -> Tensor:
    """A tensor of any dtype, shape, layout and device that is at hand."""
    dtype, shape = r.choice(FLOATS * 3 + INTEGERS + ODD), r.choice(SHAPES)
    fill = r.choice([0.0, 1.0, 2.0, -1.0, 300.0, 1e4, 1e30, 1e-40, math.nan, math.inf, -math.inf, None, None, None])
    base = torch.randn(shape) * 2 if fill is None else torch.full(shape, fill)
    if dtype in INTEGERS:
        base = base.nan_to_num(0.0, 100.0, -100.0).clamp(-300, 300).long()
    made = base.to(dtype)
    form = r.choice(["plain"] * 8 + FORMS)
    with contextlib.suppress(RuntimeError, ValueError, NotImplementedError, TypeError, IndexError):
        if form == "sparse":
            return made.to_sparse()
        if form == "csr":
            return made.to_sparse_csr()
        if form in ("nested", "jagged"):
            layout = torch.jagged if form == "jagged" else torch.strided
            return torch.nested.nested_tensor([made, made], layout=layout)
        if form == "meta":
            return made.to("meta")
        if form == "grad":
            return made.requires_grad_()
        if form == "strided":
            return made.movedim(0, -1)
        if form == "expanded":
            return made[:1].expand(3, *made.shape[1:])
        if form == "parameter":
            return nn.Parameter(made)
    return made


def hostile(r: random.Random) -> Any:
    """Any value at all."""
    return r.choice([scalar, scalar, array, tensor, tensor, tensor])(r)


# ------------------------------------------------------------------------------------------------------- good values


class Outside:
    """A classifier as other libraries have them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        self.sign = float(np.sign((X[:, 0] * y).sum()) or 1)

    def decision_function(self, X: Any) -> Any:
        return self.sign * X[:, 0]


def spelled(value: Any, r: random.Random) -> Any:
    """A number, now and then of another type than Python's own: numpy's, or a ratio."""
    if type(value) not in (int, float) or not math.isfinite(value) or r.random() < 0.9:
        return value
    return r.choice([np.int64, np.int32] if type(value) is int else [np.float64, np.float32, Fraction])(value)


class World:
    """Sizes that fit one another, and how a good argument of each name looks."""

    def __init__(self, r: random.Random, kind: str) -> None:
        self.r, self.kind = r, kind
        self.rows, self.classes, self.steps, self.inputs = (r.randint(1, 4) for _ in range(4))
        if kind in ("coded", "solver"):
            self.classes = r.randint(2, 4)
        if kind == "solver":
            self.rows = r.randint(4, 8)
        self.dtype = r.choice([torch.float32, torch.float32, torch.float64])
        self.half = r.choice([None] * 8 + [torch.float16, torch.bfloat16]) if kind != "solver" else None
        self.spread = r.choice([0.1, 1.0, 1.0, 10.0, 1e3])

    def floats(self, *shape: int) -> Tensor:
        made = torch.randn(*shape, dtype=self.dtype) * self.spread
        if self.r.random() < 0.2:
            made = made.round()
        if self.half is not None:
            made = made.to(self.half)
        return made.requires_grad_(self.r.random() < 0.5)

    def labels(self, *shape: int) -> Tensor:
        made = torch.randint(self.classes, shape)
        if self.kind != "solver" and self.r.random() < 0.3:
            made = made.masked_fill(torch.rand(shape) < 0.3, -100)
        return made if self.r.random() < 0.9 else made.to(self.r.choice([torch.int32, torch.int16]))

    def code(self) -> Tensor:
        return self.r.choice([tm.codes.one_vs_all, tm.codes.one_vs_one])(max(2, self.classes))

    def cost(self) -> Any:
        matrix = torch.randint(4, (self.classes, self.classes)).fill_diagonal_(0)
        return self.r.choice(["zero_one", "hamming", matrix, matrix.double(), matrix.tolist(), tm.costs.Matrix(matrix)])

    def flat(self) -> Any:
        values = self.floats(self.rows, self.classes)
        return values if self.r.random() < 0.8 else tm.FlatScores(values)

    def chain(self) -> tm.ChainScores:
        ends = {name: self.floats(self.classes) for name in ("start", "end") if self.r.random() < 0.5}
        if self.r.random() < 0.5:
            ends["mask"] = torch.rand(self.rows, self.steps) < 0.7
        return tm.ChainScores(
            self.floats(self.rows, self.steps, self.classes), self.floats(self.classes, self.classes), **ends
        )

    def coded(self) -> tm.CodedScores:
        code = self.code()
        return tm.CodedScores(self.floats(self.rows, code.shape[1]), code)

    def scores(self) -> Any:
        if self.r.random() < 0.05:
            return self.r.choice([self.flat, self.chain, self.coded])()
        return {"flat": self.flat, "chain": self.chain, "coded": self.coded}.get(self.kind, self.flat)()

    def target(self) -> Tensor:
        return self.labels(self.rows, self.steps) if self.kind == "chain" else self.labels(self.rows)

    def features(self) -> Tensor:
        lead = (self.rows, self.steps) if self.kind == "chain" else (self.rows,)
        return self.floats(*lead, self.inputs)

    def good(self, name: str) -> Any:
        """A good value of the argument ``name``."""
        r = self.r
        makers: dict[str, Callable[[], Any]] = {
            "scores": self.scores, "target": self.target, "labels": self.target, "cost": self.cost,
            "features": self.features, "left": self.features, "right": self.features, "support": self.features,
            "landmarks": self.features, "values": self.flat_values, "class_scores": self.flat_values,
            "z": self.flat_values, "code": self.code, "other": self.chain,
            "probabilities": lambda: torch.rand(self.rows, self.classes).softmax(-1),
            "emissions": lambda: self.floats(self.rows, self.steps, self.classes),
            "transitions": lambda: self.floats(self.classes, self.classes),
            "start": lambda: self.floats(self.classes), "end": lambda: self.floats(self.classes),
            "mask": lambda: torch.rand(self.rows, self.steps) < 0.7,
            "lengths": lambda: torch.randint(self.steps + 1, (self.rows,)),
            "allowed": lambda: torch.rand(self.rows, self.steps, self.classes) < 0.8,
            "margins": lambda: self.floats(self.rows, self.classes),
            "weight": lambda: r.choice([None, torch.rand(self.classes), [1.0] * self.classes]),
            "matrix": lambda: torch.rand(self.classes, self.classes).fill_diagonal_(0),
            "adjacency": lambda: torch.ones(self.classes, self.classes),
            "parents": lambda: [-1] + [r.randrange(i) for i in range(1, 5)],
            "variant": lambda: r.choice(["mh", "mr", "averaged"]),
            "reduction": lambda: r.choice(["mean", "sum", "none"]),
            "loss": lambda: r.choice(["hinge", "squared", "logistic", "exponential", "sigmoid"]),
            "ignore_index": lambda: r.choice([-100, -1]), "class_dim": lambda: -1,
            "validate_args": lambda: r.choice([None, True]),
            "margin": lambda: r.choice([1.0, 0.5]), "power": lambda: r.choice([1, 2, 1.5]),
            "rho": lambda: r.choice([1.0, 0.1, 100]), "temperature": lambda: r.choice([1.0, 0.3]),
            "factor": lambda: r.choice([1.0, 0.5]), "gamma": lambda: r.choice([1.0, 0.1]), "c": lambda: 1.0,
            "degree": lambda: r.choice([1, 2, 3]), "C": lambda: r.choice([1.0, 0.1]), "tol": lambda: 1e-2,
            "num_classes": lambda: self.classes, "num_tags": lambda: self.classes, "in_features": lambda: self.inputs,
            "num_columns": lambda: len(self.code()[0]), "num_features": lambda: 4, "num_bins": lambda: 5,
            "k": lambda: r.choice([2, 3, 4]), "n": lambda: r.choice([1, 2]), "chunk": lambda: r.choice([1, 2, 4096]),
            "columns": lambda: None, "trials": lambda: 10, "max_passes": lambda: 20, "epochs": lambda: 2,
            "batch_size": lambda: 2, "limit": lambda: None, "memory_limit": lambda: None,
            "dtype": lambda: torch.float32,
            "device": lambda: "cpu", "generator": torch.Generator, "bias": lambda: r.choice([True, False, "free"]),
            "tags": lambda: ["O", "B-X", "I-X", "B-Y"][: max(1, self.classes)], "scheme": lambda: "BIO",
            "spans": lambda: [(0, 1, "X"), (2, 3, "Y")], "length": lambda: 4, "to": lambda: "BIOES",
            "strict": lambda: r.random() < 0.5, "average": lambda: r.choice(["micro", "macro", "weighted", None]),
            "sample_weight": lambda: r.choice([None, torch.rand(self.rows)]), "label_smoothing": lambda: 0.1,
            "scale": lambda: r.choice([1.0, 0.5]), "hard": lambda: r.random() < 0.5,
            "kernel": lambda: r.choice(["linear", tm.kernels.Gaussian(0.5), tm.kernels.Laplacian(0.5),
                                        tm.kernels.Polynomial(2)]),
            "order": lambda: torch.rand(self.rows, self.classes).argsort(1),
            "preferred": lambda: tm.preferences.ranking(torch.rand(self.rows, self.classes).argsort(1)),
            "preds": lambda: torch.randint(self.classes, self.target().shape),
            "unknown": lambda: torch.rand(self.target().shape) < 0.5,
            "Cs": lambda: [0.1, 1.0], "batches": lambda: [(self.features().float(), self.labels(self.rows))],
            "rule": lambda: r.choice(["admissible", "conservative", "all"]),
            "similarity": lambda: r.choice(["inner_product", "gaussian"]),
            "what": lambda: r.choice(["code", "margins", "both"]),
            "name": lambda: r.choice(["one_vs_all", "one_vs_one", "dense_random"]),
            "trans2": lambda: self.floats(self.classes, self.classes, self.classes),
            "segments": lambda: self.floats(self.rows, self.steps, 2, self.classes),
            "num_kinds": lambda: self.classes, "max_length": lambda: 2,
            "kinds": lambda: ["X", "Y"], "longest": lambda: 2,
            "solver": lambda: r.choice([tm.solvers.Perceptron(max_passes=2), tm.solvers.AdaBoostMH(3)]),
            "delta": lambda: 0.1, "success": lambda: 0.5, "held_out": lambda: 0.4, "decide": lambda: None,
            "tree": self.tree, "trees": self.trees,
            "scorers": lambda: [self.scorer() for _ in range(r.choice([1, 2, 3]))],
            "base": lambda: r.choice([None, tm.solvers.BinaryLeastSquares(), tm.solvers.DecisionTree(max_leaves=3),
                                      tm.solvers.AdaBoostMH(2), tm.solvers.Perceptron(max_passes=2),
                                      tm.solvers.RandomForest(2), tm.solvers.DualSVM(max_passes=3),
                                      tm.solvers.CodedReduction(self.code(), tm.solvers.BinaryLeastSquares()),
                                      tm.solvers.AdaBoostMO(self.code(), 2)]),
            "state_dict": lambda: {"transitions": self.floats(self.classes, self.classes),
                                   "start_transitions": self.floats(self.classes),
                                   "end_transitions": self.floats(self.classes)},
            "rounds": lambda: r.choice([1, 3]), "leaves": lambda: r.choice([1, 2, 4]), "real": lambda: r.random() < 0.5,
            "bins": lambda: r.choice([None, 2, 256]), "patience": lambda: None,
            "validation": lambda: (self.features(), self.target()),
            "max_leaves": lambda: r.choice([None, 1, 3]), "max_depth": lambda: r.choice([None, 0, 2]),
            "min_leaf": lambda: r.choice([1, 0.5, 3]), "min_decrease": lambda: r.choice([0.0, 0.1]),
            "impurity": lambda: r.choice(["gini", "entropy", "misclassification", "kearns_mansour"]),
            "prune": lambda: r.choice([None, 0.5, "cv"]), "folds": lambda: 2, "look_ahead": lambda: r.choice([1, 2]),
            "questions": lambda: r.choice([["threshold"], ["hyperplane", "sphere"], ["threshold", "subset"]]),
            "sample": lambda: r.choice([0.5, 1.0]), "vote": lambda: r.choice(["average", "majority"]),
            "per": lambda: r.choice(["split", "tree"]),
            "learner": lambda: r.choice([tm.solvers.BinaryLeastSquares(), tm.solvers.AdaBoost(3),
                                         tm.solvers.DecisionTree(max_leaves=4), tm.solvers.DualSVM(binary=True),
                                         tm.solvers.RandomForest(2), tm.solvers.Perceptron(max_passes=2), Outside()]),
            "interaction": lambda: False, "decoder": lambda: r.choice([None, tm.HammingDecoder()]),
            "empirical": lambda: r.choice([0.0, 0.1, 1]), "complexity": lambda: 0.01,
            "rows": lambda: r.choice([1, 100]), "radius": lambda: 1.0, "norm": lambda: 2.0,
            "mean_slack": lambda: 0.2, "num_labels": lambda: 3,
            "trace": lambda: None, "errors": lambda: r.choice([0, 1]), "product": lambda: r.choice([0.0, 0.5]),
            "kind": lambda: r.choice(["adaboost", "mh", "mr", "averaged"]), "total_weight": lambda: 2.0,
            "mean_loss": lambda: 0.1, "ignored": lambda: 0.2, "pair_error": lambda: 0.1, "draws": lambda: 10,
            "gram": lambda: torch.eye(r.choice([1, 3])), "thresholds": lambda: [0.0, 0.5],
            "call": lambda: r.choice(["multi", "single"]), "jobs": lambda: r.choice([1, 2]), "resume": lambda: None,
            "method": lambda: r.choice(["temperature", "platt"]), "unobserved": lambda: r.choice(["max", "sum"]),
            "normalize": lambda: r.random() < 0.5,
            "multilabel": lambda: r.random() < 0.5, "model": lambda: tm.MulticlassHead(self.inputs, self.classes),
            "data": lambda: (torch.randn(self.rows, self.inputs), self.labels(self.rows)),
            "names": lambda: None,
            **self.of_bridges(),
        }  # fmt: skip
        if self.kind == "plots":
            makers |= self.of_pictures()
        return spelled(makers[name](), r)

    def of_pictures(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of pictures, whose names say other things elsewhere."""
        some, rows, classes = self.rows, self.rows, self.classes
        words = [f"w{number}" for number in range(rows)]

        def shares() -> Tensor:
            return torch.rand(rows, classes).softmax(1)

        def fit() -> Any:
            return tm.solvers.DualSVM().fit(torch.randn(6, 2), torch.tensor([0, 1] * 3)).report

        return {
            "axes": lambda: None, "matrix": self.code, "labels": lambda: None, "images": lambda: torch.rand(rows, 3, 2),
            "target": lambda: torch.randint(classes, (rows,)), "probabilities": shares, "words": lambda: words,
            "shares": lambda: self.r.choice([shares, lambda: torch.rand(some)])(), "counts": lambda: torch.ones(4, 4),
            "cost": lambda: torch.ones(4, 4), "limit": lambda: 3.0, "names": lambda: None, "of": lambda: "class",
            "intervals": lambda: torch.rand(some, 2), "label_of": lambda: lambda x: (x[:, 0] > 0).long(),
            "points": lambda: torch.randn(rows, 2), "steps": lambda: 4, "weights": lambda: torch.randn(3, 3),
            "start": lambda: torch.randn(3), "end": lambda: torch.randn(3), "history": lambda: fit().history,
            "against": lambda: "iteration", "label": lambda: "x", "bound": lambda: torch.rand(some),
            "errors": lambda: {"test": torch.rand(some)}, "margin": lambda: torch.randn(9), "bins": lambda: 5,
            "limits": lambda: (-1.0, 1.0), "thresholds": lambda: torch.arange(some), "columns": lambda: 2,
            "most": lambda: 3, "right": lambda: torch.ones(some), "confidence": lambda: torch.ones(some),
            "count": lambda: torch.ones(some),
            "report": lambda: tm.solvers.DecisionTree().fit(torch.randn(6, 2), torch.tensor([0, 1] * 3)).report,
        }  # fmt: skip

    def of_bridges(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of what needs another library."""

        def head() -> Any:
            return tm.MulticlassHead(self.inputs, self.classes)

        def encoder() -> Any:
            return importlib.import_module("transformers").BertConfig(
                vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
            )

        return {
            "head": head,
            "answers": lambda: ["predict", "predict_proba"],
            "module": lambda: tm.integrations.onnx.Answers(head()),
            "example": lambda: (torch.randn(3, self.inputs),),
            "path": lambda: str(Path(tempfile.gettempdir()) / "hostile.onnx"),
            "dynamic": lambda: None,
            "input_names": lambda: ["x"],
            "output_names": lambda: ["labels", "shares"],
            "encoder": encoder,
            "config": lambda: tm.integrations.huggingface.ChainConfig(encoder(), num_labels=self.classes),
            "dropout": lambda: 0.1,
            "input_ids": lambda: torch.randint(9, (self.rows, self.steps)),
            "attention_mask": lambda: torch.ones(self.rows, self.steps),
            "tag_mask": lambda: torch.randint(2, (self.rows, self.steps)),
        }

    def tree(self) -> Tree:
        return single(np.random.default_rng(self.r.randrange(100)).normal(size=self.classes), self.inputs)

    def scorer(self) -> Any:
        """One of the same features, with as many scores; now and then one of a code."""
        tree = tm.TreeScorer(self.tree())
        ensemble = tm.EnsembleScorer([self.tree(), self.tree()])
        made = [tm.LinearScorer(self.inputs, self.classes), tree, ensemble, tm.AveragedScorer([tree, ensemble])]
        if self.r.random() < 0.1:
            code = self.code()
            made = [tm.CodedScorer(tm.LinearScorer(self.inputs, code.shape[1]), code)]
        return self.r.choice(made)

    def trees(self) -> Any:
        """How many a forest grows, or those of an ensemble."""
        return 3 if self.kind == "solver" else [self.tree() for _ in range(self.r.choice([1, 2]))]

    def flat_values(self) -> Tensor:
        return self.floats(self.rows, self.classes)


# ---------------------------------------------------------------------------------------------------------- subjects

CODED = ("CodedLoss", "coded_loss", "average_binary_loss", "HammingDecoder", "LossBasedDecoder", "VotingDecoder",
         "TournamentDecoder", "AverageBinaryLoss", "BitError", "PlattScaling", "CodedScores", "OneVsAllHead",
         "OneVsOneHead", "ECOCHead")  # fmt: skip
CHAIN = ("ChainScores", "ViterbiDecoder", "PosteriorDecoder", "KBestDecoder", "ChainScorer", "ChainHead",
         "TokenAccuracy", "SentenceAccuracy", "UnknownWordAccuracy", "SpanF1",
         "ChainForTokenClassification")  # fmt: skip
EITHER = ("M3NLoss", "SVMStructLoss", "CRFLoss", "StructuredPerceptronLoss", "m3n_loss", "svmstruct_loss", "crf_loss",
          "structured_perceptron_loss", "svmstruct_bounds")  # fmt: skip
LEFT_OUT = {
    "Scores",
    "Decoded",
    "Cost",
    "Kernel",
    "Loss",
    "Decoder",
    "Function",
    "Fit",
    "PlaneCertificate",
    "Planes",
    "planes",
    "Head",
    "Solver",
}
BRIDGES = (
    ("onnx", "onnxscript", ("Answers", "to_onnx")),
    ("plots", "matplotlib", tuple(tm.plots.__all__)),
    ("huggingface", "transformers", ("ChainConfig", "ChainForTokenClassification")),
)
"""What needs another library, and is called where that is."""
SLOW = ("solvers.", "plots.", "onnx.", "huggingface.")
RECORDS = {tm.bounds.RademacherComplexity}
INNER = {"reference", "costs", "base", "offset", "path_score", "absent", "active", "name"}
INNER |= {"backbone"}  # fields that verbs fill, and modules of the user's
# what verbs ask of one another, and moves
NO_CALL = {
    "extra_repr",
    "plot",
    "of",
    "check_target",
    "labelled",
    "example_weight",
    "all_labelled",
    "row_losses",
    "of_rival",
    "of_label",
    "knock_out",
    "CodedScores.at",
    "CodedScores.rows",
    "Precomputed.at",
    "check_square",
    "CodedScores.columns",
    "in_parts",
    "without_absent",
    "whole",
    "cuda",
    "to",
    "steps",
    "scorer",
}
FITS = {"fit", "fit_stream", "partial_fit", "path"}  # what users ask of a solver


def subjects() -> dict[str, Any]:
    """Every public callable, by its qualified name."""
    found = {}
    for space in (tm, tm.functional, tm.costs, tm.codes, tm.kernels, tm.preferences, metrics, tm.solvers, tm.bounds):
        short = space.__name__.split(".")[-1]
        for name in space.__all__:
            thing = getattr(space, name)
            record = space in (tm.solvers, tm.bounds) and (dataclasses.is_dataclass(thing) or thing in RECORDS)
            if record or (inspect.isclass(thing) and issubclass(thing, BaseException)):
                continue
            abstract = inspect.isabstract(thing) or name in LEFT_OUT or name.endswith("Report")
            if callable(thing) and not inspect.ismodule(thing) and not abstract:
                found[f"{short}.{name}"] = thing
    for short, library, names in BRIDGES:
        if importlib.util.find_spec(library) is not None:
            bridge = tm.plots if short == "plots" else getattr(tm.integrations, short)
            found |= {f"{short}.{name}": getattr(bridge, name) for name in names}
    return found


def kind_of(name: str, r: random.Random) -> str:
    """The structure that the scores of this subject have."""
    space, short = name.split(".")
    if space in ("solvers", "plots"):
        return {"solvers": "solver"}.get(space, space)
    if short in CODED:
        return "coded"
    if short in CHAIN:
        return "chain"
    return r.choice(["flat", "chain"]) if short in EITHER else "flat"


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter | None]:
    """The keyword arguments of a callable, with None for those of an unpacked dictionary."""
    found: dict[str, inspect.Parameter | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is not parameter.VAR_KEYWORD:
            found[name] = parameter
            continue
        shared = re.match(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if shared:
            inner = function.__init__ if inspect.isclass(function) else function
            found |= dict.fromkeys(inspect.unwrap(inner).__globals__[shared[1]].__annotations__)
    return found


def arguments(function: Callable[..., Any], world: World, share: float) -> dict[str, Any]:
    """Keyword arguments: those that are needed and some of the others, a ``share`` of them hostile."""
    given = {}
    for name, parameter in parameters(function).items():
        needed = parameter is not None and parameter.default is parameter.empty
        if name in INNER and not needed and (name, world.kind) != ("base", "solver"):
            continue
        if needed or world.r.random() < 0.3:
            if world.r.random() < share:
                given[name] = hostile(world.r)
                if name == "on_step" and callable(given[name]):  # what a user's own function raises is the user's
                    given[name] = None
                continue
            try:
                given[name] = world.good(name)
            except KeyError:
                if needed:
                    raise LookupError(f"say in tests/hostile.py how a good {name!r} looks") from None
    return given


def methods(made: Any) -> list[str]:
    """What an object can be asked, `forward` by a call; the machinery of modules is left out."""
    return [
        name
        for name, member in inspect.getmembers(type(made), inspect.isfunction)
        if not name.startswith("_")
        and not {name, f"{type(made).__name__}.{name}"} & NO_CALL
        and (name in FITS or not member.__module__.startswith("torch_multiclass.solvers"))
        and member.__module__.startswith("torch_multiclass")
        and not member.__module__.startswith("torch_multiclass.ops")
    ]


# ----------------------------------------------------------------------------------------------------------- verdict


@dataclasses.dataclass
class Fault:
    """What was wrong with a call."""

    subject: str
    what: str
    given: dict[str, Any]
    trace: str = ""


def tensors_in(thing: Any) -> Iterator[Tensor]:
    """The tensors of an argument or a result."""
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for entry in thing:
            yield from tensors_in(entry)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from tensors_in(getattr(thing, field.name))
    elif isinstance(thing, nn.Module):
        yield from (*thing.parameters(), *thing.buffers())


def plain(made: Tensor) -> bool:
    """Whether a tensor has values of the usual dtypes that can be read."""
    readable = made.layout == torch.strided and not made.is_nested and made.device.type == "cpu"
    return readable and made.dtype in (*FLOATS, *INTEGERS, torch.bool)


def most(made: Tensor) -> float:
    """Up to where a number is moderate; products of two of float16 must not overflow."""
    return 64.0 if made.dtype == torch.float16 else 1e4


def moderate(thing: Any) -> bool:
    """Whether all numbers in an argument are finite and none is large."""
    if isinstance(thing, (bool, str)) or thing is None:
        return True
    if isinstance(thing, (int, float)):
        return abs(thing) <= 1e4
    if isinstance(thing, np.ndarray):
        return thing.dtype.kind in "iufb" and bool(np.isfinite(thing).all())
    if isinstance(thing, (list, tuple)):
        return all(map(moderate, thing))
    return all(
        plain(t) and (not t.is_floating_point() or not t.numel() or bool(t.detach().abs().max() <= most(t)))
        for t in tensors_in(thing)
    )


def fingerprint(given: dict[str, Any]) -> list[Any]:
    """What must be the same after the call."""
    marks: list[Any] = []
    for value in given.values():
        if isinstance(value, np.ndarray):
            marks.append(value.tobytes() if value.dtype.kind != "O" else None)
        elif isinstance(value, (list, dict, set)):
            marks.append(str(type(value)) + (repr(value) if not list(tensors_in(value)) else ""))
        else:
            marks += [(t._version, t.requires_grad, written(t)) for t in tensors_in(value)]
    return marks


def written(made: Tensor) -> bytes | None:
    """The values, which C++ and NumPy can change without a new version."""
    if not plain(made) or not made.numel():
        return None
    return made.detach().flatten().clone().view(torch.uint8).numpy().tobytes()


class _Hang(BaseException):
    pass


def _ring(*_: object) -> None:
    """A call waits, or it computes; on a busy machine it does neither, and is given longer."""
    if time.process_time() - _begun[1] < SECONDS / 2 and time.monotonic() - _begun[0] < 10 * SECONDS:
        signal.setitimer(signal.ITIMER_REAL, SECONDS / 2)
    else:
        raise _Hang


_begun = [0.0, 0.0]  # of this call, by the wall and by the processor


def complaint(error: BaseException, names: set[str]) -> str | None:
    """What is wrong with the way in which a call was refused, if anything."""
    text = str(error)
    if re.search(r"missing \d+ required positional argument", text):  # of a structure that a head hands on
        return None
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "Storage size" in text:
        return None
    kind = type(error)
    if kind not in (TypeError, ValueError):
        return f"{kind.__name__}: {text}"
    named = re.match(r"([A-Za-z_]\w*)[^:]{0,40}: ", text)
    if not named or named[1] not in names:
        return f"{kind.__name__} without the argument's name: {text}"
    if not re.search(r"; accepted |is outside |, but |accepts?", text):
        return f"{kind.__name__} that does not say what is accepted: {text}"
    return None


def judge(
    subject: str, call: Callable[..., Any], given: dict[str, Any], names: set[str], calm: bool = True
) -> tuple[Any, Fault | None]:
    """The result of a call (None where it was refused) and what was wrong with it; ``calm`` objects hold no NaN."""
    before, calm = fingerprint(given), calm and all(map(moderate, given.values()))
    trusted = given.get("validate_args", True) is False
    _begun[:] = time.monotonic(), time.process_time()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        result = call(**given)
        if isinstance(result, types.GeneratorType):
            result = list(result)
        leaves = [t for value in given.values() for t in tensors_in(value) if t.requires_grad and t.is_leaf]
        smooth = [t for t in tensors_in(result) if t.grad_fn is not None and t.is_floating_point()]
        gradients: tuple[Tensor | None, ...] = ()
        if leaves and smooth and not isinstance(result, nn.Module):
            total = sum(t.double().sum() for t in smooth)
            gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    except _Hang:
        return None, Fault(subject, f"hangs for {SECONDS} s", given)
    except Exception as error:
        wrong = None if trusted else complaint(error, names)
        return None, Fault(subject, wrong, given, traceback.format_exc()) if wrong else None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if fingerprint(given) != before:
        return result, Fault(subject, "changed an argument", given)
    function = type(call).forward if isinstance(call, nn.Module) else call
    answers = "" if inspect.isclass(call) else str(inspect.signature(function).return_annotation)
    expected = {"Tensor": Tensor, "float": float, "None": type(None)}.get(answers)
    if expected and not isinstance(result, expected):
        return result, Fault(subject, f"returned {type(result).__name__}", given)
    if calm and any(plain(t) and bool(t.detach().isnan().any()) for t in tensors_in(result)):
        return result, Fault(subject, "NaN in the value", given)
    if calm and any(g is not None and bool(g.isnan().any()) for g in gradients):
        return result, Fault(subject, "NaN in the gradient", given)
    return result, None


def argument_names() -> set[str]:
    """The names of all arguments there are."""
    found = {*FRAME, *LOSS_OPTIONS, "scores", "margins", "cost", "emissions"}
    for thing in subjects().values():
        found |= set(parameters(thing))
        if inspect.isclass(thing):
            for _, member in inspect.getmembers(thing, inspect.isfunction):
                if member.__module__.startswith("torch_multiclass"):
                    found |= set(parameters(member))
    return found


def run(calls: int, seed: int = 0, only: str = "") -> tuple[int, list[Fault]]:
    """That many calls, and the faults among them."""
    r = random.Random(seed)
    torch.manual_seed(seed)
    names, chosen = argument_names(), {name: thing for name, thing in subjects().items() if re.search(only, name)}
    slow = {name for name in chosen if name.startswith(SLOW)}
    faults, made_calls = [], 0
    old = signal.signal(signal.SIGALRM, _ring)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            while made_calls < calls:
                name = r.choice(list(chosen))
                if name in slow and len(slow) < len(chosen) and r.random() < 0.8:
                    continue
                for fault in story(name, chosen[name], r, names):
                    made_calls += 1
                    if fault:
                        faults.append(fault)
    finally:
        signal.signal(signal.SIGALRM, old)
    return made_calls, faults


def story(name: str, thing: Any, r: random.Random, names: set[str]) -> Iterator[Fault | None]:
    """One call of a function; or an object is made and asked two things."""
    world = World(r, kind_of(name, r))
    asked_later = inspect.isclass(thing) and r.random() < 0.8
    made_of = arguments(thing, world, 0.03 if asked_later else 0.25)
    result, fault = judge(name, thing, made_of, names)
    calm = all(map(moderate, made_of.values()))
    yield fault
    if world.kind == "plots":
        importlib.import_module("matplotlib.pyplot").close("all")
    if not inspect.isclass(thing) or result is None:
        return
    for method in r.sample(methods(result), min(2, len(methods(result)))):
        call = getattr(result, method)
        try:
            given = arguments(call, world, 0.25)
        except LookupError:  # not for users, or not known here yet
            continue
        # A verb that has no meaning for this object names itself.
        _, fault = judge(f"{name}().{method}", result if method == "forward" else call, given, names | {method}, calm)
        calm = calm and all(map(moderate, given.values()))  # for what comes after: `weigh` and `update` keep them
        yield fault
        if method == "update" and fault is None:
            yield judge(f"{name}().compute", result.compute, {}, names)[1]


def describe(value: Any) -> str:
    """An argument in a line."""
    if isinstance(value, Tensor):
        numbers = value.detach().flatten().tolist() if plain(value) and value.numel() <= 12 else ""
        shape = "nested" if value.is_nested else tuple(value.shape)
        form = "" if value.layout == torch.strided else value.layout
        return f"<{str(value.dtype)[6:]} {shape} {form} {value.device.type}{' grad' * value.requires_grad} {numbers}>"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(f'{n}={describe(v)}' for n, v in fields if v is not None)})"
    if isinstance(value, np.ndarray):
        return f"<array {value.dtype} {value.shape}>"
    try:
        return repr(value)[:200]
    except ValueError:
        return f"<{type(value).__name__}>"


def report(faults: list[Fault]) -> str:
    """The faults, those alike together, the most frequent first."""
    alike = collections.defaultdict(list)
    for fault in faults:
        alike[fault.subject, re.sub(r"[\d.]+", "#", fault.what)[:90]].append(fault)
    lines = []
    for group in sorted(alike.values(), key=len, reverse=True):
        first = group[0]
        places = re.findall(rf'File "{re.escape(PACKAGE)}/([^"]+)", line (\d+)', first.trace)
        where = " < ".join(f"{file}:{line}" for file, line in places[::-1][:3])
        lines.append(f"{len(group):4d} {first.subject}: {first.what[:240]}   [{where}]")
        lines.append("        " + ", ".join(f"{name}={describe(value)}" for name, value in first.given.items())[:700])
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a regular expression over names such as functional.crf_loss")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    count, found = run(asked.calls, asked.seed, asked.only)
    print(report(found))
    print(f"{count} calls, {len(found)} faults")
    sys.exit(bool(found))
