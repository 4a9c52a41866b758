"""Distributions and smoothed labels: codes against the expectation over classes, class weights against torch."""

import pytest
import torch

import torch_multiclass as tm

B, K, D = 7, 5, 6


def generator():
    return torch.Generator().manual_seed(0)


def shares():
    return torch.rand(B, K, generator=generator(), dtype=torch.float64).softmax(-1)


CODES = {
    "one_vs_all": lambda: tm.codes.one_vs_all(K),
    "one_vs_one": lambda: tm.codes.one_vs_one(K),
    "sparse": lambda: tm.codes.sparse_random(K, 9, trials=50, generator=generator()),
}


def scores_of(name):
    code = CODES[name]()
    return tm.CodedScores(torch.randn(B, code.shape[1], generator=generator(), dtype=torch.float64), code)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "exponential", "sigmoid", "squared"])
@pytest.mark.parametrize("name", CODES)
def test_the_loss_of_a_distribution_is_the_expected_one(name, loss):
    scores, share = scores_of(name), shares()
    each = torch.stack([tm.CodedLoss(loss, reduction="none")(scores, torch.full((B,), k)) for k in range(K)], -1)
    torch.testing.assert_close(tm.CodedLoss(loss, reduction="none")(scores, share), (share * each).sum(-1))
    torch.testing.assert_close(tm.CodedLoss(loss)(scores, share), (share * each).sum(-1).mean())


@pytest.mark.parametrize("name", CODES)
def test_a_distribution_that_is_smoothed_is_mixed_with_all(name):
    scores, share = scores_of(name), shares()
    ours = tm.CodedLoss("logistic", 0.3, reduction="none")(scores, share)
    torch.testing.assert_close(ours, tm.CodedLoss("logistic", reduction="none")(scores, 0.7 * share + 0.3 / K))
    sure = torch.nn.functional.one_hot(torch.arange(B) % K, K).double()
    smooth = tm.CodedLoss("logistic", 0.3)
    torch.testing.assert_close(smooth(scores, sure), smooth(scores, torch.arange(B) % K))


def test_mixup_is_the_mean_of_two_losses():
    scores, a, b = scores_of("one_vs_all"), torch.arange(B) % K, torch.arange(B) % 3
    mixed = 0.3 * torch.nn.functional.one_hot(a, K) + 0.7 * torch.nn.functional.one_hot(b, K)
    loss = tm.CodedLoss("logistic")
    torch.testing.assert_close(loss(scores, mixed), (0.3 * loss(scores, a) + 0.7 * loss(scores, b)).double())


def test_blocks_of_columns_add_up(monkeypatch):
    from torch_multiclass.functional import coded

    scores, share = scores_of("sparse"), shares()
    whole = tm.CodedLoss("hinge")(scores, share)
    monkeypatch.setattr(coded, "_ENTRIES", 2 * K)
    torch.testing.assert_close(tm.CodedLoss("hinge")(scores, share), whole)


def test_many_pairs_take_distributions_too():
    head = tm.OneVsOneHead(D, 300)
    x, y = torch.randn(3, D), torch.tensor([5, 0, 299])
    share = torch.nn.functional.one_hot(y, 300).float()
    torch.testing.assert_close(head.loss(head(x), share), head.loss(head(x), y))


@pytest.mark.parametrize("options", [{"label_smoothing": 0.2}, {}], ids=["smoothed", "distributions"])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 3.0, 1.0]])
def test_several_batch_dimensions(options, weight):
    scores, target = scores_of("sparse")[:6], torch.tensor([0, 1, -100, 3, 4, 0]) if options else shares()[:6]
    loss = tm.CodedLoss("logistic", reduction="none", weight=weight, **options)
    many = tm.CodedScores(scores.margins.view(1, 2, 3, -1), scores.code)
    found = loss(many, target.view(1, 2, 3, *target.shape[1:]))
    torch.testing.assert_close(found, loss(scores, target).view(1, 2, 3))


def test_the_mass_of_a_distribution_by_hand():
    """``-sum_k w_k q_k log p_k``: of a class without weight nothing, of weights whose mean is 1 what they are."""
    scores = torch.tensor([[-torch.inf, 0.0, 0.0], [0.0, 1.0, 2.0]])
    share = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    found = tm.CRFLoss(weight=[0.0, 1.5, 0.5], reduction="none")(scores, share)
    logs = scores[1].log_softmax(0)
    torch.testing.assert_close(found, torch.stack([torch.zeros(()), -0.75 * logs[1] - 0.25 * logs[2]]))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 0.0, 3.0], [1.0] * 5])
@pytest.mark.parametrize("kind", ["labels", "shares", "over another dimension"])
def test_one_label_as_in_torch(reduction, smoothing, weight, kind):
    scores = torch.randn(B, K, generator=generator(), dtype=torch.float64)
    target = shares() if kind != "labels" else torch.tensor([0, 1, 2, -100, 3, 4, 0])
    options = {"reduction": reduction, "label_smoothing": smoothing}
    class_dim = -1
    if kind == "over another dimension":
        scores, target, class_dim = scores.T[None].contiguous(), target.T[None].contiguous(), 1
    given = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    loss = tm.CRFLoss(weight=weight, class_dim=class_dim, **options)
    expected = torch.nn.functional.cross_entropy(scores, target, given, **options)
    torch.testing.assert_close(loss(scores, target), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: (tm.CRFLoss(**o), torch.randn(B, K)),
        lambda **o: (tm.CodedLoss("logistic", **o), scores_of("sparse")),
    ],
)
@pytest.mark.parametrize("options", [{"label_smoothing": 0.1}, {}], ids=["smoothed", "distributions"])
def test_weights_of_classes_and_of_rows_together(make, options):
    torch.manual_seed(0)
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0])
    loss, scores = make(weight=weight, **options)
    target = torch.arange(B) % K if options else shares()
    counts = torch.tensor([2, 0, 1, 3, 1, 1, 2])
    again = torch.arange(B).repeat_interleave(counts)
    torch.testing.assert_close(loss(scores, target, sample_weight=counts), loss(scores[again], target[again]))
    each = make(weight=weight, reduction="none", **options)[0]
    share = target if not options else 0.1 / K + 0.9 * torch.nn.functional.one_hot(target, K)
    plain = make(reduction="none")[0]
    alone = torch.stack([plain(scores, torch.full((B,), k)) for k in range(K)], -1)
    torch.testing.assert_close(each(scores, target).double(), (share * weight * alone).sum(-1).double())


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins", "m3n", "svmstruct", "structured_perceptron"])
def test_a_loss_of_one_label_says_which_take_distributions(loss):
    with pytest.raises(
        TypeError, match=r"target: a distribution over labels has no meaning .*CRFLoss and CodedLoss take"
    ):
        tm.MulticlassHead(D, K, loss=loss).loss(torch.zeros(B, K), shares().float())


def test_bad_distributions_of_codes_are_named():
    scores = scores_of("one_vs_all")
    for bad, message in [
        (shares() * 2, "add up to 2"),
        (shares()[:, :-1], "target: got shape"),
        (-shares(), "negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            tm.CodedLoss()(scores, bad)
    with pytest.raises(ValueError, match="label_smoothing: got 2"):
        tm.CodedLoss(label_smoothing=2)
    assert repr(tm.CodedLoss(label_smoothing=0.1)) == "CodedLoss(loss='hinge', label_smoothing=0.1)"


def test_a_scale_is_a_factor():
    scores, target = torch.randn(B, K), torch.arange(B) % K
    for make in (
        tm.CRFLoss,
        tm.CrammerSingerLoss,
        tm.M3NLoss,
        tm.SVMStructLoss,
        tm.StructuredPerceptronLoss,
        tm.AdaBoostLoss,
    ):
        torch.testing.assert_close(make().scaled(0.25)(scores, target), make()(scores, target) / 4)
    assert "scale=0.25" in repr(tm.CRFLoss().scaled(0.25))
    with pytest.raises(ValueError, match="scale: got 0"):
        tm.CRFLoss().scaled(0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_does_not_count_has_no_gradient_however_large(smoothing):
    """Rows without a label, and the side of a column that no class of the distribution says."""
    code = tm.codes.one_vs_all(3)
    margins = torch.tensor([[900.0, -900.0, 900.0], [1.0, -1.0, 900.0]], requires_grad=True)
    loss = tm.CodedLoss("exponential", label_smoothing=smoothing)
    value = loss(tm.CodedScores(margins, code), torch.tensor([-100, 2]))
    value.backward()
    assert margins.grad[0].tolist() == [0.0, 0.0, 0.0]
    assert not bool(margins.grad.isnan().any())
    plain = tm.CodedLoss("exponential")
    sharp = margins.detach()[1:].requires_grad_()
    distribution = torch.tensor([[0.0, 0.0, 1.0]])
    value = plain(tm.CodedScores(sharp, code), distribution)
    value.backward()
    twin = margins.detach()[1:].requires_grad_()
    expected = plain(tm.CodedScores(twin, code), torch.tensor([2]))
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(sharp.grad, twin.grad)
