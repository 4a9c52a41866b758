"""How far a linear head with a hinge loss, trained by gradients, stands from the best there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.problem import Problem, check_constant
from torch_multiclass.solvers.report import relative_gap
from torch_multiclass.solvers.svm.machine import DualSVM

__all__ = ["DualityGap"]


class DualityGap(L.Callback):
    r"""After each training epoch, logs the objective of a linear scorer and its relative gap to a proved lower bound.

    The objective is ``½ |W|^2 + C sum_i max_l [1[l != y_i] + f_l(x_i) - f_{y_i}(x_i)]`` over all training rows, the
    bias being regularised as the weight of a constant feature. The features must be frozen: they are collected once,
    and `DualSVM` solves the problem on them once, when the fit starts; rows labelled -100 are left out. What is logged
    is ``primal`` and ``gap = (primal - dual)/max(1, primal)``, so a head is proved to be within ``gap`` of the optimum.

    Args:
        C: the weight of the losses. A weight decay ``lambda`` on the mean loss of ``m`` rows is ``C = 1/(lambda m)``.
        features: from the module and the rows of a batch to features; by default ``module.backbone``.
        scorer: from the module to its `LinearScorer`; by default ``module.head.scorer``.
        loss: ``"crammer_singer"`` or ``"weston_watkins"``.
        tol: the gap of the bound itself.

    Shape:
        features ``(B, D)`` of each batch, target ``(B)``.

    Raises:
        ValueError: ``C <= 0`` or ``tol <= 0``; another loss.
        TypeError: what is no function; the scorer is not a `LinearScorer` with a score for each class.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.

    Example:
        >>> import lightning as L
        >>> trainer = L.Trainer(callbacks=[DualityGap(C=1.0)])  # doctest: +SKIP
    """

    def __init__(
        self,
        C: float,
        *,
        features: Callable[[Any, Tensor], Tensor] | None = None,
        scorer: Callable[[Any], nn.Module] | None = None,
        loss: str = "crammer_singer",
        tol: float = 1e-4,
    ) -> None:
        super().__init__()
        loss = check.named("loss", loss, ["crammer_singer", "weston_watkins"])
        for name, given in (("features", features), ("scorer", scorer)):
            if given is not None and not callable(given):
                raise TypeError(f"{name}: got {check.shown(given)}; accepted is a function of the module, or None")
        self.C, self.loss, self.tol = check_constant("C", C), loss, check.positive("tol", tol)
        self._features = features or (lambda module, rows: module.backbone(rows))
        self._scorer = scorer or (lambda module: module.head.scorer)
        self.dual: float | None = None

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Collect the features and solve."""
        linear = self._linear(pl_module)
        trainer.fit_loop.setup_data()
        loader = trainer.train_dataloader
        rows, labels = [], []
        training = pl_module.training
        pl_module.eval()
        with torch.no_grad():
            for x, y in loader or ():
                rows.append(self._features(pl_module, x.to(pl_module.device)))
                labels.append(y.to(pl_module.device))
        pl_module.train(training)
        problem = Problem.labelled(torch.cat(rows), torch.cat(labels)).some()
        self._rows, self._labels = problem.features, problem.labels
        solver = DualSVM(self.C, tol=self.tol, loss=self.loss, bias=linear.bias is not None)
        self.dual = solver.fit(self._rows, self._labels, num_classes=linear.num_classes).report.dual

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Log the objective and its gap."""
        primal = self.primal(pl_module)
        if self.dual is not None:
            pl_module.log("primal", primal)
            pl_module.log("gap", relative_gap(primal, self.dual), prog_bar=True)

    @torch.no_grad()
    def primal(self, pl_module: L.LightningModule) -> float:
        """The objective at the module's present weights, in float64."""
        linear = self._linear(pl_module)
        weight = linear.weight.double()
        squares = weight.square().sum()
        scores = self._rows.double() @ weight.mT
        if linear.bias is not None:
            bias = linear.bias.double()
            squares, scores = squares + bias.square().sum(), scores + bias
        label = self._labels[:, None]
        short = (scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0)
        losses = short.amax(1) if self.loss == "crammer_singer" else short.clamp_min(0).sum(1)
        return float(0.5 * squares + self.C * losses.sum())

    def _linear(self, pl_module: L.LightningModule) -> LinearScorer:
        linear = self._scorer(pl_module)
        if not isinstance(linear, LinearScorer):
            raise TypeError(f"scorer: got {check.came(linear)}; accepted is a LinearScorer, a score for each class")
        return linear
