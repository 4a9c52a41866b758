"""Training a head, and the network before it, by gradients."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import CodedLoss, CRFLoss
from torch_multiclass.solvers.report import Report

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
Batch = tuple[dict[str, Any], Tensor, "Tensor | None"]
"""What the backbone and head take by name, the target, and a weight for each example."""


@dataclass(frozen=True, kw_only=True)
class EpochsReport(Report):
    """How the training of a head went.

    Reference: the record of a training by gradients; `Loss` names its source.

    Example:
        >>> EpochsReport(iterations=2, seconds=0.1, interrupted=False, losses=[1.0, 0.5]).losses[-1]
        0.5
    """

    losses: list[float]
    """The weighted mean of the loss in each epoch, while the weights were changing."""


LARGEST = 1e30
"""The longest step of an optimiser, whose tenfold float32 still holds."""


class Network(nn.Module):
    """A backbone, if there is one, and a head on its features."""

    def __init__(self, backbone: nn.Module | None, head: Head) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, features: Tensor, **structure: Any) -> Any:
        """The scores."""
        return self.head(self.embed(features), **structure)

    def embed(self, features: Tensor) -> Tensor:
        """What the head reads."""
        found: Tensor = features if self.backbone is None else self.backbone(features)
        return found


def train(
    asked: Any, sample: Tensor, classes: int, count: int, batch: Callable[[Tensor], Batch]
) -> tuple[Network, EpochsReport]:
    """A network of the parameters of an estimator, trained on ``count`` examples of mean weight 1.

    ``sample`` shows what the network reads, and ``batch`` gives the examples of some numbers.
    """
    epochs, size = check.whole("epochs", asked.epochs), check.whole("batch_size", asked.batch_size)
    lr, decay = check.positive("lr", asked.lr), check.positive("weight_decay", asked.weight_decay, zero=True)
    for name, given in (("lr", lr), ("weight_decay", decay)):
        if given > LARGEST:
            raise ValueError(f"{name}: got {given:g}; accepted are numbers up to {LARGEST:g}")
    seed = int(check_random_state(asked.random_state).randint(2**31 - 1))
    order = torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Batch]:
        new: Any = torch.randperm(count, generator=order)
        return map(batch, new.split(size))

    with torch.random.fork_rng([sample.device] if sample.is_cuda else []):
        torch.manual_seed(seed)
        network = made_network(asked, sample, classes)
        optimizer = made_optimizer(network, asked.optimizer, lr, decay)
        return network, run_epochs(network, optimizer, epochs, batches, count)


def made_network(asked: Any, sample: Tensor, classes: int) -> Network:
    """A new backbone and head."""
    given = copy.deepcopy(asked.backbone)
    if given is not None and not isinstance(given, nn.Module):
        check.maker("backbone", given, nn.Module, "a module, or a function of the number of features that makes one")
    backbone = given if given is None or isinstance(given, nn.Module) else given(sample.shape[-1])
    width = sample.shape[-1]
    if backbone is not None:
        if not isinstance(backbone, nn.Module):
            raise TypeError(f"backbone: made {check.shown(backbone)}; accepted is a torch.nn.Module")
        backbone.to(sample).eval()
        with torch.no_grad():
            width = backbone(sample).shape[-1]
    accepted = "a class of heads, such as MulticlassHead"
    check.maker("head", asked.head, Head, accepted)
    options = {} if asked.options is None else check.keywords("options", asked.options, "the head")
    if isinstance(options.get("weight"), str):  # which takes the labels, and a head is made before it sees them
        named = f"weight={options['weight']!r}"
        raise ValueError(f"options: hold {named}; accepted is class_{named} of the classifier itself")
    if asked.loss is not None:
        options["loss"] = copy.deepcopy(asked.loss) if isinstance(asked.loss, nn.Module) else asked.loss
    head = asked.head(width, classes, **options)
    if not isinstance(head, Head):
        raise TypeError(f"head: made {check.shown(head)}; accepted is {accepted}")
    return Network(backbone, head.to(sample))


def made_optimizer(network: nn.Module, given: MakeOptimizer | None, lr: float, weight_decay: float) -> Any:
    """Adam, or what is asked for."""
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    if given is None:
        return torch.optim.Adam(parameters, lr, weight_decay=weight_decay)
    check.maker("optimizer", given, torch.optim.Optimizer, "a function of the parameters that makes one")
    made = given(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"optimizer: made {check.shown(made)}; accepted is a torch.optim.Optimizer")
    return made


def is_likelihood(asked: Any) -> bool:
    """Whether the loss gives probabilities: that of what was trained, or of what would be."""
    fitted = hasattr(asked, "network_")
    loss: Any = (asked.network_.head if fitted else made_network(_bare(asked), torch.zeros(1, 1), 2).head).criterion
    return isinstance(loss, CRFLoss) or (isinstance(loss, CodedLoss) and loss.loss.name == "logistic")


def _bare(asked: Any) -> Any:
    return SimpleNamespace(head=asked.head, loss=asked.loss, backbone=None, options=None)


def run_epochs(
    network: Network, optimizer: torch.optim.Optimizer, epochs: int, batches: Callable[[], Iterable[Batch]], mass: float
) -> EpochsReport:
    """Minimise the weighted mean of the loss of the head; ``mass`` is the weight of all examples."""
    begin, losses = time.perf_counter(), list[float]()
    network.train()
    network.head._nan_unsaid = False  # the sum of an epoch says so
    with torch.inference_mode(False), torch.enable_grad():
        for _ in range(epochs):
            total = 0.0
            for features, target, weight in batches():
                scores = network(**features)
                mean: Any = network.head.loss(scores, target, sample_weight=weight)
                share = len(target) if weight is None else float(weight.sum())
                optimizer.zero_grad()
                (mean * (share / len(target))).backward()  # a batch counts by the weight of its examples
                optimizer.step()
                total += mean.item() * share
            if not math.isfinite(total):
                raise ValueError(
                    f"X: the loss of epoch {len(losses) + 1} is not finite; accepted are features, and a step lr, so "
                    "small that it is"
                )
            losses.append(total / mass)
    network.eval()
    return EpochsReport(iterations=epochs, seconds=time.perf_counter() - begin, interrupted=False, losses=losses)
