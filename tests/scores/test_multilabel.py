"""Scores of several labels at once."""

import itertools

import pytest
import torch

import torch_multiclass as tm
from tests.references.structures import enumerate_independent
from tests.scores.structures import INF, Numbers, StructureContract


def certain(f):
    """A sign that is certain counts as 0."""
    return torch.where(f == INF, 0.0, f)


class TestMultilabelScores(StructureContract):
    parts = ("values",)

    def draw(self, seed):
        n = Numbers(seed)
        values = n.scores(*n.batch, n.whole(1, 5))
        always = torch.rand(values.shape, generator=n.g) < 0.3
        return tm.MultilabelScores(torch.where(always & values.isinf(), INF, values))

    def rows(self, scores):
        values = self.flat(scores, scores.values)
        return [enumerate_independent(torch.stack([certain(-f), certain(f)], 1)) for f in values]

    def golds(self, scores, seed):
        g = torch.Generator().manual_seed(seed)
        signs = 2 * torch.randint(2, scores.sites, generator=g) - 1
        return torch.where(torch.rand(scores.sites, generator=g) < 0.4, -100, signs), signs

    def read(self, target):
        return torch.where(target == -100, target, (target > 0).long())

    def test_a_batch_of_nothing(self):
        scores = tm.MultilabelScores(torch.zeros(0, 3))
        assert tm.CRFLoss()(scores, torch.zeros(0, 3, dtype=torch.long)) == 0
        assert scores.decode().labels.shape == (0, 3)
        assert scores.top(4).labels.shape == (0, 4, 3)


def test_losses_by_their_formulas():
    f, y = torch.randn(7, 5, dtype=torch.float64), 2 * torch.randint(2, (7, 5)) - 1
    scores = tm.MultilabelScores(f)
    each = {"reduction": "none"}
    torch.testing.assert_close(tm.CRFLoss(**each)(scores, y), torch.log1p(torch.exp(-2 * y * f)).sum(1))
    torch.testing.assert_close(tm.M3NLoss(**each)(scores, y), (1 - 2 * y * f).clamp(min=0).sum(1))
    torch.testing.assert_close(tm.AdaBoostLoss(**each)(scores, y), torch.exp(-y * f).sum(1))
    torch.testing.assert_close(scores.probabilities(), torch.sigmoid(2 * f))
    averaged = tm.M3NLoss(tm.costs.Hamming(normalize=True), **each)(scores, y)
    torch.testing.assert_close(averaged, (0.2 - 2 * y * f).clamp(min=0).sum(1))
    slack = tm.SVMStructLoss(**each)(scores, y)
    wrong = torch.tensor(list(itertools.product([0, 1], repeat=5)), dtype=torch.float64)
    expected = wrong.sum(1) * (1 - 2 * (y * f) @ wrong.t()).clamp(min=0).t().t()
    torch.testing.assert_close(slack, expected.amax(1))


def test_the_tensor_of_scaled_scores():
    f = torch.randn(2, 3)
    assert torch.equal(tm.MultilabelScores(f).scale(4.0).tensor, 4 * f)


def test_the_sign_decides_and_zero_is_minus_one():
    scores = tm.MultilabelScores(torch.tensor([[0.0, -0.0, 1e-30, -1e-30, 5.0]]))
    assert scores.decode().labels.tolist() == [[-1, -1, 1, -1, 1]]


def test_unknown_labels_count_for_nothing():
    f = torch.randn(1, 4)
    y = torch.tensor([[1, -100, -1, -100]])
    for loss in [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.AdaBoostLoss()]:
        known = loss(tm.MultilabelScores(f[:, ::2]), y[:, ::2])
        torch.testing.assert_close(loss(tm.MultilabelScores(f), y), known)


@pytest.mark.parametrize(
    ("loss", "target", "message"),
    [
        (tm.CRFLoss(), torch.tensor([[0, 1, 1]]), "target: got the entry 0; accepted are -1 and"),
        (tm.CRFLoss(), torch.tensor([[1, 1]]), "target: got shape"),
        (tm.CRFLoss(), torch.tensor([[1.0, 1, 1.5]]), "target: got the entry 1.5; accepted are mean signs from -1"),
        (tm.M3NLoss(), torch.tensor([[1.0, 1, 1]]), "target: got dtype torch.float32"),
    ],
)
def test_bad_targets(loss, target, message):
    with pytest.raises((ValueError, TypeError), match=message):
        loss(tm.MultilabelScores(torch.zeros(1, 3)), target)


def test_class_weights_are_refused():
    with pytest.raises(ValueError, match="weight: a class weight has no meaning where several labels hold"):
        tm.CRFLoss(weight=torch.ones(2))(tm.MultilabelScores(torch.zeros(1, 3)), torch.ones(1, 3, dtype=torch.long))


def test_infinite_scores_make_labels_certain():
    """Each label costs what its formula tends to; where the target disagrees, infinity without a gradient."""
    f = torch.tensor([[-INF, 1.0, INF, 0.5], [INF, -2.0, -INF, 0.0]], requires_grad=True)
    y = torch.tensor([[-1, -1, 1, 1], [1, 1, -1, -100]])
    scores, open_to_doubt = tm.MultilabelScores(f), (slice(None), [1, 3])
    rest = tm.MultilabelScores(f[open_to_doubt])
    torch.testing.assert_close(scores.probabilities(), torch.sigmoid(2 * f))
    assert scores.decode().labels.tolist() == [[-1, 1, 1, 1], [1, -1, -1, -1]]
    torch.testing.assert_close(scores.entropy(), rest.entropy())
    for loss in (tm.CRFLoss, tm.M3NLoss, tm.SVMStructLoss, tm.StructuredPerceptronLoss, tm.AdaBoostLoss):
        ours = loss(reduction="none")(scores, y)
        torch.testing.assert_close(ours, loss(reduction="none")(rest, y[open_to_doubt]))
        (gradient,) = torch.autograd.grad(ours.sum(), f)
        assert gradient.isfinite().all()
        assert not gradient[f.isinf()].any()
        wrong = y.clone()
        wrong[1, 2] = 1
        assert loss(reduction="none")(scores, wrong)[1] == INF
        if loss is not tm.AdaBoostLoss:
            assert not torch.autograd.grad(loss()(scores[1:], wrong[1:]), f)[0].any()
