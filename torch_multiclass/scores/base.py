"""The verbs every scored structure answers to, in which all losses and decoders are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import IGNORE, Target
from torch_multiclass.costs import Cost
from torch_multiclass.scores._travel import Travels


class Decoded(NamedTuple):
    """Labellings and their scores.

    ``labels`` is a ``LongTensor``: ``(*)`` for one label, ``(*, T)`` for sequences with -100 where masked, with one
    more dimension ``k`` before ``T`` for the ``k`` best; ``score`` has the shape of ``labels`` without ``T``.

    Reference: Rabiner (1989), A tutorial on hidden Markov models, (32)-(35), for sequences.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> labels, score = tm.FlatScores(torch.tensor([[0.0, 2.0, 1.0]])).decode()
        >>> labels, score
        (tensor([1]), tensor([2.]))
    """

    labels: Tensor
    score: Tensor


class Scores(Travels, ABC):
    """A score ``s(y)`` for every labelling ``y`` of a structure, for each element of a batch ``*``.

    Targets are labels in ``0..K-1`` with -100 where the label is not known; what `check_target` made of them is not
    checked again. Ties go to the lowest label. Everything is computed in float32 at least.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and §9.5.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> scores = tm.FlatScores(torch.tensor([[0.0, 2.0, 1.0]]))
        >>> isinstance(scores, Scores), scores.max_score(), scores.log_partition()
        (True, tensor([2.]), tensor([2.4076]))
    """

    default_cost: ClassVar[str]
    """The cost that the max-margin losses take when none is given."""
    costs: Tensor | None
    """What `augment` and `perturb` add to the score of each label."""

    @property
    @abstractmethod
    def num_classes(self) -> int:
        """``K``."""

    def check_target(
        self, target: Tensor | Target, validate_args: bool | None = None, *, ignore_index: int = IGNORE
    ) -> Target:
        """The labels of these scores, checked; raise a named error unless ``target`` fits.

        Args:
            target: labels, or what this made of them before.
            validate_args: whether the range of the labels is checked: None on the CPU only, True always, False never.
            ignore_index: the label that, besides -100, marks a label that is not known.
        """
        return target if isinstance(target, Target) else self._read_target(target, ignore_index, validate_args)

    @abstractmethod
    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        """The same for a tensor."""

    @abstractmethod
    def labelled(self, target: Tensor | Target) -> Tensor:
        """How many positions of each example carry a label, ``(*)``: 0 or 1 for one label."""

    def all_labelled(self, target: Target) -> bool:
        """Whether every example is known to carry its labels; False where that is not known."""
        return False

    @abstractmethod
    def example_weight(self, weight: Tensor, target: Tensor | Target) -> Tensor:
        """The class weight of each example, ``(*)``, where one class labels an example; else a named error."""

    @abstractmethod
    def score(self, labels: Tensor) -> Tensor:
        """``s(labels)``, ``(*)``."""

    @abstractmethod
    def relative_to(self, target: Tensor | Target, *, unobserved: str = "max", temperature: float = 1.0) -> Self:
        """``d(y) = s(y) - s(y*)``, so that ``d(y*) = 0`` exactly.

        Where labels of the target are unknown, ``s(y*)`` is the best (``"max"``) score or the log-sum (``"sum"``) over
        the labellings that agree with the known ones. Where the target is forbidden, ``d`` is ``+inf`` with zero
        gradient.
        """

    @abstractmethod
    def augment(self, cost: Cost, target: Tensor | Target) -> Self:
        """``s(y) + L(y*, y)``; unknown labels cost nothing."""

    @abstractmethod
    def scale(self, factor: float | Tensor) -> Self:
        """``factor * s(y)``, for a factor > 0."""

    @abstractmethod
    def max_score(self) -> Tensor:
        """``max_y s(y)``, ``(*)``."""

    @abstractmethod
    def log_partition(self, temperature: float = 1.0) -> Tensor:
        """``t log sum_y exp(s(y) / t)`` at the temperature ``t``, ``(*)``."""

    def margin_max(self, target: Tensor | Target, cost: Cost | None = None) -> Tensor:
        """``max_y [L(y*, y) + s(y) - s(y*)]``, ``(*)``; no cost is one of 0."""
        target = self.check_target(target)
        d = self.relative_to(target)
        return (d if cost is None else d.augment(cost, target)).max_score()

    def margin_log_partition(
        self, target: Tensor | Target, cost: Cost | None = None, temperature: float = 1.0
    ) -> Tensor:
        """``t log sum_y exp([L(y*, y) + s(y) - s(y*)] / t)`` at the temperature ``t``, ``(*)``."""
        target = self.check_target(target)
        d = self.relative_to(target, unobserved="sum", temperature=temperature)
        return (d if cost is None else d.augment(cost, target)).log_partition(temperature)

    @abstractmethod
    def slack_max(self, cost: Cost, target: Tensor | Target, *, exact: bool = True) -> Tensor:
        """``max_y L(y*, y) [1 + s(y) - s(y*)]_+``, ``(*)``; the lower of `slack_bounds` unless ``exact``."""

    @abstractmethod
    def slack_bounds(self, cost: Cost, target: Tensor | Target) -> tuple[Tensor, Tensor]:
        """A lower and an upper value of `slack_max`, ``(*)`` each, without gradient."""

    @abstractmethod
    def decode(self) -> Decoded:
        """The best labelling and its score."""

    def best_labels(self) -> Tensor:
        """The labels of `decode` alone, which is faster."""
        return self.decode().labels

    @abstractmethod
    def marginals(self) -> Tensor:
        """The probability of each label under ``p(y) ~ exp s(y)``: ``(*, K)``, for sequences ``(*, T, K)``."""

    @abstractmethod
    def top(self, k: int) -> Decoded:
        """The ``k`` best distinct labellings, best first; -100 and ``-inf`` where fewer exist."""

    @abstractmethod
    def sample(self, n: int = 1, *, generator: object = None) -> Tensor:
        """``n`` independent draws from ``p(y) ~ exp s(y)``."""

    def perturb(self, *, scale: float = 1.0, generator: torch.Generator | None = None) -> Self:
        r"""The scores with independent Gumbel noise on each label of each position, ``s(y) + scale \sum_t g_{t, y_t}``.

        What is read off these is a function of the noise and differentiable in the scores: their `decode` is a sample
        (perturb and map), the gradient of their `max_score` is that sample, and its mean the gradient of the mean;
        their `marginals`, scaled by one over a temperature, are a relaxed sample, as `rsample` has it. On one label,
        and where positions know nothing of each other, the samples are those of ``p(y) ~ exp(s(y) / scale)``; on other
        structures their distribution is near to it and not the same.

        Reference: Papandreou and Yuille (2011), Perturb-and-MAP random fields; Berthet et al. (2020), Learning with
        differentiable perturbed optimizers.
        """
        scale = check.positive("scale", scale)
        check.generator(generator, self.device)
        shape, costs = self._unary_shape(), self.costs
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=self.device)
        noise = scale * -(-u.clamp(min=1e-300).log()).log()
        noise = noise.to(torch.float64 if self.dtype == torch.float64 else torch.float32)
        factor = getattr(self, "factor", 1.0)
        if not (isinstance(factor, float) and factor == 1):
            if isinstance(factor, float) and scale / factor > check.values.TEMPERATURES[1]:
                raise ValueError(
                    f"factor: is {factor:g}, by which noise of scale {scale:g} overflows; accepted is at least "
                    f"{scale / check.values.TEMPERATURES[1]:g}"
                )
            noise = noise / factor
        return self._with(costs=noise if costs is None else costs + noise)

    def rsample(
        self,
        n: int = 1,
        *,
        temperature: float = 1.0,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        r"""``n`` reparameterised samples, ``(*, n, K)``, for sequences ``(*, n, T, K)``: the marginals at a temperature
        of scores with Gumbel noise, as `torch.nn.functional.gumbel_softmax` on one label.

        Gradients are those of each sample as a function of the scores, so that their mean is the gradient of the mean.
        At a high temperature samples are smooth, at a low one nearly one-hot, and gradients of large variance.

        Args:
            n: how many.
            temperature: of the marginals.
            hard: give the best labelling of the noisy scores, one-hot, with the gradient of the relaxed sample
                (straight through: biased, less so at low temperatures).
            generator: of the noise.

        Reference: Papandreou and Yuille (2011), Perturb-and-MAP random fields; Jang, Gu and Poole (2017), Categorical
        reparameterization with Gumbel-softmax.
        """
        n = check.whole("n", n)
        check.flag("hard", hard)
        temperature = check.temperature(temperature)
        drawn = []
        for _ in range(n):
            noisy = self.perturb(generator=generator)
            soft = noisy.scale(1 / temperature).marginals()
            if hard:
                with torch.no_grad():
                    labels = noisy._best_of_classes()
                    own = torch.arange(soft.shape[-1], device=soft.device) == labels.unsqueeze(-1)
                soft = own.to(soft.dtype) + (soft - soft.detach())
            drawn.append(soft)
        return torch.stack(drawn, len(self._unary_shape()) - (2 if hasattr(self, "sites") else 1))

    @abstractmethod
    def _unary_shape(self) -> torch.Size:
        """``(*, K)``, for sequences ``(*, T, K)``."""

    def _best_of_classes(self) -> Tensor:
        """The labels of `decode` as numbers of classes."""
        return self.decode().labels

    @abstractmethod
    def entropy(self) -> Tensor:
        """``-sum_y p(y) log p(y)``, in nats, ``(*)``."""
