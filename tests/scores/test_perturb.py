"""Perturb and map: noise on the scores, samples that are functions of them, and their gradients."""

import math

import pytest
import torch

import torch_multiclass as tm
from tests.losses.test_soft import chain, multilabel, second_order, tree
from tests.scores.structures import Numbers

EULER = 0.5772156649015329
INF = math.inf


def flat(numbers, **extra):
    return tm.FlatScores(numbers.scores(2, 3))._with(**extra)


def segments(numbers, **extra):
    return tm.SegmentScores(numbers.scores(2, 4, 3, 2), numbers.scores(2, 2))._with(**extra)


KINDS = [flat, chain, second_order, segments, tree, multilabel]


def many(scores, n):
    """The same scores for each of n rows."""
    return scores[torch.zeros(n, dtype=torch.long)]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_gradient_is_that_of_the_mean(kind):
    """With the noise held, the mean over draws of a function of the sample is differentiated as it stands."""
    scores = many(kind(Numbers(0)), 64)
    lead = scores._lead().double()
    weights = torch.randn(scores.rsample(generator=seeded()).shape[1:], generator=seeded(1), dtype=torch.float64)
    direction = torch.randn(lead.shape[1:], generator=seeded(2), dtype=torch.float64)

    def relaxed(step):
        moved = scores._with(**{scores.leading: lead + step * direction})
        drawn = moved.rsample(temperature=0.7, generator=seeded(3))
        return ((drawn * weights).flatten(1).sum(1) ** 2).mean()

    def perturbed_max(step):
        moved = scores._with(**{scores.leading: lead + step * direction})
        return moved.perturb(generator=seeded(4)).max_score().mean()

    for function, h in ((relaxed, 1e-5), (perturbed_max, 1e-7)):
        step = torch.zeros((), dtype=torch.float64, requires_grad=True)
        (ours,) = torch.autograd.grad(function(step), step)
        expected = (function(torch.tensor(h)) - function(torch.tensor(-h))) / (2 * h)
        torch.testing.assert_close(ours, expected.detach(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_perturbed_maximum_is_the_sample(kind):
    scores = kind(Numbers(0))
    leaf = scores._lead().clone().requires_grad_()
    noisy = scores._with(**{scores.leading: leaf}).perturb(scale=2.0, generator=seeded())
    (gradient,) = torch.autograd.grad(noisy.max_score().sum(), leaf)
    labels = noisy.decode().labels
    if kind is multilabel:
        assert torch.equal(gradient, labels.to(gradient))
    elif kind is not segments:
        assert torch.equal(gradient, torch.nn.functional.one_hot(labels, scores.num_classes).to(gradient))


def test_a_sample_of_one_label_is_the_soft_max_at_the_temperature():
    scores = flat(Numbers(0))
    noisy = scores.perturb(generator=seeded()).tensor
    for temperature in (0.3, 1.0, 2.0):
        found = scores.rsample(temperature=temperature, generator=seeded())
        torch.testing.assert_close(found[:, 0], (noisy / temperature).softmax(-1))


def test_one_label_is_the_gumbel_trick():
    values = torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64)
    n = 40_000
    scores = tm.FlatScores(values.expand(n, 3).clone().requires_grad_())
    noisy = scores.perturb(generator=seeded())
    best = noisy.max_score()
    expected = values.logsumexp(0) + EULER
    torch.testing.assert_close(best.mean().detach(), expected, rtol=0, atol=4 * 1.29 / n**0.5)
    (gradient,) = torch.autograd.grad(best.sum(), scores.values)
    torch.testing.assert_close(gradient.mean(0), values.softmax(0), rtol=0, atol=4 * 0.5 / n**0.5)
    drawn = scores.rsample(hard=True, generator=seeded(1))
    assert drawn.shape == (n, 1, 3)
    assert (drawn.sum(-1) == 1).all()
    torch.testing.assert_close(drawn.detach()[:, 0].mean(0), values.softmax(0), rtol=0, atol=4 * 0.5 / n**0.5)


def test_independent_positions_are_drawn_from_the_distribution():
    e = torch.tensor([[1.0, 0.0, -INF], [0.2, 0.1, 0.5]], dtype=torch.float64)
    n = 20_000
    scores = tm.ChainScores(e.expand(n, 2, 3), torch.zeros(3, 3, dtype=torch.float64))
    drawn = scores.perturb(generator=seeded()).decode().labels
    share = torch.nn.functional.one_hot(drawn, 3).double().mean(0)
    torch.testing.assert_close(share, e.softmax(-1), rtol=0, atol=4 * 0.5 / n**0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_samples(kind):
    scores = kind(Numbers(1))  # which forbids
    drawn = scores.rsample(3, generator=seeded())
    sharp = scores.rsample(3, temperature=1e-3, generator=seeded())
    hard = scores.rsample(3, hard=True, generator=seeded())
    sites = getattr(scores, "sites", scores.shape[:-1])
    assert drawn.shape == (sites[0], 3, *sites[1:], scores.num_classes)
    assert drawn.isfinite().all()
    assert torch.equal(drawn, scores.rsample(3, generator=seeded()))
    assert not torch.equal(drawn[:, 0], drawn[:, 1])
    assert torch.isin(hard, torch.tensor([0.0, 1.0], dtype=hard.dtype)).all()
    torch.testing.assert_close(sharp, hard, rtol=0, atol=1e-3)


def test_masked_positions_are_zero_and_noise_scales():
    scores = chain(Numbers(0), mask=torch.tensor([[True, False, True, True], [False] * 4]))
    for hard in (False, True):
        drawn = scores.rsample(2, hard=hard, generator=seeded())
        assert (drawn[0, :, 1] == 0).all()
        assert (drawn[1] == 0).all()
    loud, plain = scores.perturb(scale=3.0, generator=seeded()), scores.perturb(generator=seeded())
    torch.testing.assert_close(loud.costs, 3 * plain.costs)
    doubled = scores.scale(2.0).perturb(generator=seeded())
    labels = torch.zeros(2, 4, dtype=torch.long)
    torch.testing.assert_close(
        doubled.score(labels) - 2 * scores.score(labels), plain.score(labels) - scores.score(labels)
    )


def test_half_precision_and_bad_arguments():
    scores = chain(Numbers(0)).to(torch.bfloat16)
    assert scores.rsample(generator=seeded()).dtype == torch.float32
    for bad in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="scale: got"):
            scores.perturb(scale=bad)
        with pytest.raises(ValueError, match="temperature: got"):
            scores.rsample(temperature=bad)
    with pytest.raises(ValueError, match="n: got 0"):
        scores.rsample(0)
    with pytest.raises(TypeError, match="generator: got"):
        scores.perturb(generator=3)


def test_a_hard_sample_has_the_gradient_of_the_soft_one():
    """Straight through: of the relaxed sample with the same noise, at the same temperature."""
    values = torch.randn(5, 3, dtype=torch.float64, generator=seeded(2))
    weights = torch.randn(5, 4, 3, dtype=torch.float64, generator=seeded(3))
    gradients = []
    for hard in (True, False):
        own = values.clone().requires_grad_()
        drawn = tm.scores.FlatScores(own).rsample(4, temperature=0.7, hard=hard, generator=seeded())
        gradients.append(torch.autograd.grad((weights * drawn).sum(), own)[0])
    torch.testing.assert_close(*gradients)
    assert float(gradients[0].abs().max()) > 0.1


def test_a_factor_by_which_noise_overflows_is_named():
    scores = tm.ChainScores(torch.zeros(2, 4, 2), torch.zeros(2, 2), factor=1e-45)
    for verb in (scores.perturb, scores.rsample):
        with pytest.raises(ValueError, match=r"^factor: is 1e-45, by which noise of scale 1 overflows; accepted is at"):
            verb()


def test_a_factor_of_more_dimensions_is_one_number():
    parts = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0)), torch.eye(3)
    allowed, labels = torch.ones(3, 3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.long)

    def score(number):
        factors = {"sharpness": number, "factor": number / 4}
        return tm.ChainScores(*parts, allowed=allowed, **factors).score(labels)

    torch.testing.assert_close(score(torch.tensor([[2.0]])), score(2.0))
