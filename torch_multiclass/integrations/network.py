"""Networks as binary learners, trained by Lightning: for `CodedReduction`, or by themselves."""

from __future__ import annotations

import contextlib
import logging
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike, as_margin_loss
from torch_multiclass.scorers.network import NetworkScorer
from torch_multiclass.solvers.base import Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Report

__all__ = ["NetworkLearner", "NetworkReport"]

Optimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

_ONE_AT_A_TIME = threading.Lock()
"""Layers draw from torch's global generator, of which a process has one."""


@dataclass(frozen=True, kw_only=True)
class NetworkReport(Report):
    """How the training of a network went.

    Reference: Allwein, Schapire and Singer (2000), section 3, for what a column asks of its learner.

    Example:
        >>> NetworkReport(iterations=2, seconds=0.1, interrupted=False, losses=[1.0, 0.5]).losses[-1]
        0.5
    """

    losses: list[float]
    """The weighted mean of the loss in each epoch, while the network was changing."""


class NetworkMonitor(Monitor):
    """Keeps the network and the loss of each epoch."""

    scorer: NetworkScorer | None = None

    def begin(self, scorer: NetworkScorer, rows: Tensor) -> None:
        """What is trained, on which rows."""
        self.scorer, self.rows, self.losses = scorer, rows, list[float]()

    def add(self, loss: float) -> None:
        """One more epoch."""
        self.losses.append(loss)
        self.passes = len(self.losses)
        self.progress.show(self)

    def settle(self) -> Tensor:
        """The network as it stands, where the rows are."""
        if self.scorer is None:
            raise KeyboardInterrupt
        self.scorer.to(self.rows).eval()
        return self.rows


class NetworkLearner(Solver[NetworkMonitor, NetworkScorer, NetworkReport]):
    r"""Minimises ``sum_i w_i l(y_i f(x_i)) / sum_i w_i`` over the weights of a network, by a Lightning trainer.

    Through a code each column has a network of its own, trained on the rows, signs and weights of that column, and from
    a seed of its own where there is a ``generator``. Layers draw from torch's global generator, of which a process has
    one, so networks are trained one after the other, whatever ``jobs`` is; it is as before after a fit.

    Args:
        network: makes the network: a function of the number of features ``D``, which gives a module from ``(B, D)`` to
            ``(B, 1)`` or ``(B)``.
        loss: the binary loss ``l`` of the margin, or its name.
        epochs: how often to go over the rows.
        batch_size: of the rows, about; batches are of equal size but for one row.
        optimizer: makes the optimiser of the parameters; by default Adam with a step of 0.01.
        generator: its seed is that of the network's parameters, of dropout and of the order of the rows; 0 by default.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.
        trainer: more options of ``lightning.Trainer``, such as ``{"precision": "bf16-mixed", "callbacks": [...]}``.

    Shape:
        features ``(N, D)``; target ``(N)``, ±1 or 0/1; the scorer's scores ``(N, 1)``.

    Raises:
        TypeError: a ``network`` or ``optimizer`` that is no function, or gives something else; ``trainer`` that is no
            mapping.
        ValueError: numbers that are not positive; a network that gives more than a margin for each row; a loss
            that is not finite; what `fit` says.

    Reference: Allwein, Schapire and Singer (2000), section 2 (margin-based learners).

    Example:
        >>> import torch
        >>> from torch import nn
        >>> import torch_multiclass as tm
        >>> def network(width):
        ...     return nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> x, y = torch.eye(3).repeat(4, 1), torch.arange(12) % 3
        >>> learner = NetworkLearner(network, "logistic", epochs=20)
        >>> scorer, report = tm.solvers.CodedReduction(tm.codes.one_vs_one(3), learner).fit(x, y)
        >>> report.decoder, report.decoder(scorer(torch.eye(3))).tolist()
        (LossBasedDecoder(loss='logistic'), [0, 1, 2])
    """

    def __init__(
        self,
        network: Callable[[int], nn.Module],
        loss: MarginLossLike = "logistic",
        *,
        epochs: int = 20,
        batch_size: int = 64,
        optimizer: Optimizer | None = None,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
        trainer: Mapping[str, Any] | None = None,
    ) -> None:
        check.maker("network", network, nn.Module, "a function of the number of features that makes one")
        if optimizer is not None:
            check.maker("optimizer", optimizer, torch.optim.Optimizer, "a function of the parameters that makes one")
        self.epochs, self.batch_size = check.whole("epochs", epochs), check.whole("batch_size", batch_size)
        super().__init__(bias=False, max_passes=epochs, generator=generator, progress=progress)
        self.network, self.loss, self.optimizer = network, as_margin_loss(loss), optimizer
        self.trainer = {} if trainer is None else check.keywords("trainer", trainer, "lightning.Trainer")

    def __repr__(self) -> str:
        name = getattr(self.network, "__name__", repr(self.network))
        return f"NetworkLearner({name}, {self.loss.name!r}, epochs={self.epochs})"

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        """Rows of two classes."""
        return Problem.binary(features, target, weight)

    def monitor(self, problem: Problem) -> NetworkMonitor:
        """Keeps the network."""
        return NetworkMonitor(type(self).__name__, self.max_passes, self.progress)

    def steps(self, problem: Problem, monitor: NetworkMonitor) -> Iterator[None]:
        """All epochs, which are Lightning's."""
        seed = self.draws().initial_seed()
        device = problem.features.device
        with _ONE_AT_A_TIME, _seeded(seed, device), torch.inference_mode(False), torch.enable_grad():
            batches = _Batches(problem, self.batch_size, seed)
            monitor.begin(self._scorer(batches.rows), batches.rows)
            yield
            module = _Training(monitor, self.loss, self.optimizer)
            with _quiet():
                _run(L.Trainer(**self._options(device)), module, batches)

    def scorer(self, problem: Problem, monitor: NetworkMonitor) -> NetworkScorer:
        """The network as a scorer."""
        assert monitor.scorer is not None
        return monitor.scorer

    def report(self, problem: Problem, monitor: NetworkMonitor) -> NetworkReport:
        """The losses."""
        return NetworkReport(
            iterations=len(monitor.losses),
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            losses=monitor.losses,
        )

    def _scorer(self, rows: Tensor) -> NetworkScorer:
        """A new network, tried on a row."""
        network = self.network(rows.shape[1])
        if not isinstance(network, nn.Module):
            raise TypeError(f"network: made {check.shown(network)}; accepted is a torch.nn.Module")
        scorer = NetworkScorer(network, rows.shape[1]).to(rows)
        with torch.no_grad():
            scorer.eval()(rows[:2])
        scorer.train()
        return scorer

    def _options(self, device: torch.device) -> dict[str, Any]:
        """Of a trainer that writes nothing, on the device of the rows."""
        cuda = device.type == "cuda"
        return {
            "max_epochs": self.epochs,
            "accelerator": "gpu" if cuda else device.type,
            "devices": [device.index or 0] if cuda else 1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_model_summary": False,
            "enable_progress_bar": False,
            "log_every_n_steps": 1,
            **self.trainer,
        }


class _Training(L.LightningModule):
    """One network and its loss."""

    def __init__(self, monitor: NetworkMonitor, loss: MarginLoss, optimizer: Optimizer | None) -> None:
        super().__init__()
        assert monitor.scorer is not None
        self.scorer, self.monitor, self.binary, self.make = monitor.scorer, monitor, loss, optimizer
        self.sum = torch.zeros(())

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor, float], _: int) -> Tensor:
        """The loss of a batch, so that its mean over equal batches is the weighted mean over the rows."""
        rows, signs, weight, share = batch
        loss: Tensor = (weight * self.binary.value(signs * self.scorer(rows)[:, 0].to(signs))).mean()
        self.sum = self.sum + share * loss.detach()
        return loss

    def on_train_epoch_end(self) -> None:
        """Note the mean over the epoch."""
        if not math.isfinite(mean := float(self.sum)):
            raise ValueError(
                f"features: the loss of epoch {len(self.monitor.losses) + 1} is not finite; accepted are features, and "
                "steps of the optimizer, so small that it is"
            )
        self.monitor.add(mean)
        self.sum = torch.zeros(())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, or what is asked for."""
        parameters = list(self.scorer.parameters())
        made = torch.optim.Adam(parameters, 0.01) if self.make is None else self.make(parameters)
        if not isinstance(made, torch.optim.Optimizer):
            raise TypeError(f"optimizer: made {check.shown(made)}; accepted is a torch.optim.Optimizer")
        return made


class _Batches:
    """The rows in a new order each epoch, in batches of one size but for one row: rows, signs, weights and share."""

    def __init__(self, problem: Problem, size: int, seed: int) -> None:
        self.rows = problem.features.clone()  # such as autograd may keep
        self.signs = problem.labels.to(self.rows.dtype)
        self.weight = (problem.weight / problem.weight.mean()).to(self.rows)
        self.parts = -(-len(self.rows) // size)
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return self.parts

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor, float]]:
        order = torch.randperm(len(self.rows), generator=self.generator).to(self.rows.device)
        for part in order.tensor_split(self.parts):
            yield self.rows[part], self.signs[part], self.weight[part], len(part) / len(order)


@contextlib.contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's global generators start at a seed, and are as they were afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Lightning's greetings and advice."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning\.")
            yield
    finally:
        logger.setLevel(level)


def _run(trainer: L.Trainer, module: L.LightningModule, batches: _Batches) -> None:
    """Train; Ctrl-C, for which Lightning leaves the process, is an interrupt of the fit."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    try:
        trainer.fit(module, batches)
    except SystemExit as left:
        raise KeyboardInterrupt from left
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
