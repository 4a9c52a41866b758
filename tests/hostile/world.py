"""Good values: sizes that fit one another, and how a good argument of each name looks."""

from __future__ import annotations

import importlib
import math
import random
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from tests.hostile.values import INTEGERS
from torch_multiclass.ops.splits.tree import Tree, single

__all__ = ["World"]


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
        self.solves = kind in ("solver", "sklearn", "SequenceTagger")
        if self.solves or kind == "coded":
            self.classes = r.randint(2, 4)
        if self.solves:
            self.rows = r.randint(4, 8)
        self.dtype = r.choice([torch.float32, torch.float32, torch.float64])
        self.half = r.choice([None] * 8 + [torch.float16, torch.bfloat16]) if not self.solves else None
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
        if not self.solves and self.r.random() < 0.3:
            made = made.masked_fill(torch.rand(shape) < 0.3, -100)
        return made if self.r.random() < 0.9 else made.to(self.r.choice(INTEGERS))

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
            "names": lambda: None, "constraints": self.constraints,
            **self.of_bridges(),
        }  # fmt: skip
        if self.kind in self.OWN:
            makers |= self.OWN[self.kind](self)
        return spelled(makers[name](), r)

    def of_pictures(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of pictures."""
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

    def of_binary(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of scorers of one margin, and of several side by side."""

        def network() -> Any:
            return torch.nn.Sequential(torch.nn.Linear(self.inputs, 1))

        def one() -> Any:
            return self.r.choice([tm.LinearScorer(self.inputs, 1), tm.LinearScorer(self.inputs, 2), None])

        fitted = Outside()
        fitted.sign = 1.0
        several = self.kind == "ColumnsScorer"
        return {
            "columns": lambda: [one() for _ in range(self.r.choice([1, 2, 3]))] if several else 2,
            "scorer": lambda: tm.LinearScorer(self.r.choice([self.inputs + 2, 2 * self.inputs]), self.r.choice([1, 2])),
            "interaction": lambda: self.r.random() < 0.5, "silent": lambda: self.r.choice([(), [0], [1]]),
            "classifier": lambda: fitted, "log_odds": lambda: self.r.random() < 0.5, "network": network,
        }  # fmt: skip

    def of_planes(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of cutting planes."""
        chain = self.r.random() < 0.5
        lead = (self.rows, self.steps) if chain else (self.rows,)
        made = (tm.ChainScorer if chain else tm.LinearScorer)(self.inputs, self.classes)
        return {
            "scorer": lambda: made, "loss": lambda: self.r.choice([tm.M3NLoss(), tm.CRFLoss(), tm.SVMStructLoss()]),
            "features": lambda: torch.randn(*lead, self.inputs), "target": lambda: torch.randint(self.classes, lead),
            "weight": lambda: self.r.choice([None, torch.randn(sum(p.numel() for p in made.parameters()))]),
        }  # fmt: skip

    def of_estimators(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of scikit-learn's conventions."""
        r, words = self.r, np.array(["a", "b", "c", "d"])
        X = torch.randn(self.rows, self.inputs, dtype=torch.float64).numpy()
        y = (torch.randperm(self.rows) % self.classes).numpy()
        if self.kind == "SequenceTagger":
            X, y = X[:, None] + np.zeros((self.steps, 1)), y[:, None] + np.zeros(self.steps, int)
        heads = [tm.MulticlassHead, tm.OneVsAllHead, tm.ECOCHead]
        solvers = [None, tm.solvers.Perceptron(max_passes=2), tm.solvers.AdaBoostMH(3), tm.solvers.DecisionTree()]
        coded = r.random() < 0.3
        return {
            "X": lambda: r.choice([X, X.tolist(), X.astype(np.float32)]),
            "y": lambda: r.choice([y, y.tolist(), words[y], words[y].tolist()]),
            "sample_weight": lambda: r.choice([None, np.ones(self.rows)]),
            "head": lambda: tm.ChainHead if self.kind == "SequenceTagger" else r.choice(heads),
            "loss": lambda: None, "options": lambda: r.choice([None, {}]), "backbone": lambda: None,
            "epochs": lambda: 2, "lr": lambda: 0.1, "weight_decay": lambda: r.choice([0.0, 0.1]),
            "optimizer": lambda: None, "class_weight": lambda: r.choice([None, "balanced"]), "device": lambda: None,
            "random_state": lambda: r.choice([None, 0]), "decoder": lambda: None,
            "code": lambda: r.choice(["one_vs_one", "one_vs_all"]) if coded else None,
            "solver": lambda: tm.solvers.BinaryLeastSquares() if coded else r.choice(solvers),
        }  # fmt: skip

    def of_registry(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of the register of binary losses."""
        return {"loss": lambda: tm.margins.as_margin_loss(self.r.choice(["hinge", "logistic", "sigmoid"]))}

    def of_callback(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of `DualityGap`."""
        return {
            "features": lambda: None,
            "scorer": lambda: None,
            "loss": lambda: self.r.choice(["crammer_singer", "weston_watkins"]),
        }

    def of_learner(self) -> dict[str, Callable[[], Any]]:
        """Good arguments of a network that Lightning trains, to one of two classes."""
        return {
            "network": lambda: lambda width: torch.nn.Linear(width, 1), "optimizer": lambda: None,
            "trainer": lambda: self.r.choice([None, {"max_steps": 1}]),
            "target": lambda: torch.arange(self.rows) % 2, "num_classes": lambda: 2,
        }  # fmt: skip

    OWN: ClassVar[dict[str, Callable[[World], dict[str, Callable[[], Any]]]]] = {
        "plots": of_pictures, "sklearn": of_estimators, "SequenceTagger": of_estimators, "planes": of_planes,
        "register": of_registry, "DualityGap": of_callback, "NetworkLearner": of_learner,
        **dict.fromkeys(("AttributeScorer", "ColumnsScorer", "NetworkScorer", "OutsideScorer"), of_binary),
    }  # fmt: skip
    """Good arguments whose names say other things elsewhere, by the kind of the subject."""

    def constraints(self) -> Any:
        tags = ["O", "B-X", "I-X", "B-Y"][: self.classes]
        return self.r.choice([None, tm.tag_constraints(tags)])

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
        return 3 if self.solves else [self.tree() for _ in range(self.r.choice([1, 2]))]

    def flat_values(self) -> Tensor:
        return self.floats(self.rows, self.classes)
