"""Every head passes the contract of heads."""

import math
import warnings

import pytest
import torch

import torch_multiclass as tm
from tests.contracts.head import D, HeadContract, T
from torch_multiclass.heads._start import constant_margins, step_scale
from torch_multiclass.ops.margins import as_margin_loss

K = 4


def generator():
    return torch.Generator().manual_seed(0)


class TestMulticlass(HeadContract):
    soft = "default"

    def make(self, **options):
        return tm.MulticlassHead(D, K, **options)


class TestCrammerSinger(HeadContract):
    def make(self, **options):
        return tm.MulticlassHead(D, K, **({"loss": "crammer_singer"} | options))


class TestContinuousCode(HeadContract):
    def make(self, **options):
        return tm.ContinuousCodeHead(D, K, generator=generator(), **options)


class Coded(HeadContract):
    soft = "default"

    def others(self, scores):
        yield tm.OneVsAllHead(D, K + 1)(self.features())
        yield tm.ECOCHead(D, code=tm.codes.hadamard(K))(self.features())


class TestOneVsAll(Coded):
    def make(self, **options):
        return tm.OneVsAllHead(D, K, **options)


class TestOneVsOne(Coded):
    def make(self, **options):
        return tm.OneVsOneHead(D, K, **options)


class TestECOC(Coded):
    def make(self, **options):
        return tm.ECOCHead(D, K, generator=generator(), **options)


class TestSparseECOC(Coded):
    def make(self, **options):
        code = tm.codes.sparse_random(K, 8, trials=50, generator=generator())
        return tm.ECOCHead(D, code=code, **options)


class Sequence(HeadContract):
    sequence = True
    weighs = False
    soft = "default"

    def others(self, scores):
        yield self.make_of(self.classes + 1)(self.features(), **self.structure(len(self.features())))


class TestChain(Sequence):
    def make(self, **options):
        return tm.ChainHead(D, K, **options)

    def make_of(self, classes):
        return tm.ChainHead(D, classes)


class TestSecondOrder(Sequence):
    def make(self, **options):
        return tm.SecondOrderHead(D, K, **options)

    def make_of(self, classes):
        return tm.SecondOrderHead(D, classes)


class TestSegments(Sequence):
    classes = 4

    def make(self, **options):
        return tm.SegmentHead(D, 2, 3, **options)

    def make_of(self, classes):
        return tm.SegmentHead(D, classes, 3)


class TestTree(Sequence):
    def make(self, **options):
        return tm.LabelTreeHead(D, K, **options)

    def make_of(self, classes):
        return tm.LabelTreeHead(D, classes)

    def structure(self, rows):
        return {"parents": torch.tensor([-1, 0, 0, 1, 1])[:T]}


class TestMultilabel(HeadContract):
    weighs = False

    def make(self, **options):
        return tm.MultilabelHead(D, K, **options)

    def others(self, scores):
        yield self.features()
        yield tm.MultilabelHead(D, K + 1)(self.features())


# ---------------------------------------------------------------------------------------------- where training starts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hinge", lambda p: (p > 0.5) * 1.0 - (p < 0.5) * 1.0),
        ("squared", lambda p: 2 * p - 1),
        ("squared_hinge", lambda p: 2 * p - 1),
        ("logistic", lambda p: 0.5 * math.log(p / (1 - p))),
        ("exponential", lambda p: 0.5 * math.log(p / (1 - p))),
        ("sigmoid", lambda p: 0.0),
    ],
)
def test_a_column_starts_at_the_best_constant(name, expected):
    share = torch.tensor([0.5, 0.1, 0.9, 0.1, 0.25])
    found = constant_margins(as_margin_loss(name), share)
    torch.testing.assert_close(found, torch.tensor([expected(p) for p in share.tolist()]), atol=5e-3, rtol=0)


def test_margins_of_others_stay_as_they_are():
    margins = tm.LinearScorer(D, K)
    before = margins.bias.detach().clone()
    tm.OneVsAllHead(margins, K)
    assert torch.equal(margins.bias, before)
    head = tm.OneVsAllHead(D, K)
    assert head.scorer.margins.bias.tolist() == [-1.0] * K
    head.reset_parameters()
    assert head.scorer.margins.bias.tolist() == [-1.0] * K
    assert tm.OneVsAllHead(D, K, bias=False).scorer.margins.bias is None


def test_a_loss_by_name_is_scaled_and_a_loss_itself_is_not():
    head = tm.ECOCHead(D, 10, generator=generator())
    plus = (head.scorer.coding_matrix > 0).double().mean(0)
    assert head.criterion.scale == pytest.approx(3 / math.sqrt(float((4 * plus * (1 - plus)).sum())))
    assert head.criterion.scale < 0.6
    assert tm.ECOCHead(D, 10, tm.CodedLoss("logistic"), generator=generator()).criterion.scale == 1
    assert tm.OneVsAllHead(D, K).criterion.scale == tm.OneVsAllHead(D, 1000).criterion.scale == 1 == step_scale(9)
    assert tm.MulticlassHead(D, 101, loss="weston_watkins").criterion.scale == pytest.approx(0.3)
    assert tm.MulticlassHead(D, 101).criterion.scale == 1
    scores, target = head(torch.randn(5, D)), torch.arange(5)
    torch.testing.assert_close(
        head.loss(scores, target), head.criterion.scale * tm.CodedLoss("logistic")(scores, target)
    )


PAIRS_AND_CLASSES = torch.cat([tm.codes.one_vs_one(12), tm.codes.one_vs_all(12)], 1)


@pytest.mark.parametrize(
    ("make", "terms"),
    [
        (lambda: tm.OneVsAllHead(D, 20), 4 * 19 / 20),
        (lambda: tm.OneVsOneHead(D, 20), 19),
        (lambda: tm.ECOCHead(D, code=PAIRS_AND_CLASSES), 23 * (66 + 12 * 4 * 11 / 144) / 78),
    ],
)
def test_the_scale_is_what_the_docstring_of_the_head_says(make, terms):
    head = make()
    assert head.criterion.scale == pytest.approx(min(1.0, 3 / math.sqrt(terms)))
    assert r"\min(1, 3 / \sqrt{n})" in type(head).__doc__


@pytest.mark.parametrize("name", ["ecoc", "one_vs_all", "weston_watkins"])
def test_a_step_size_of_cross_entropy_does_not_diverge(name):
    """SGD with momentum at 0.1, which trains soft-max: unscaled, a code of 66 columns ends at chance."""
    g = generator()
    k = 40
    centres, y = torch.randn(k, 16, generator=g), torch.arange(800) % k
    x = centres[y] + 0.3 * torch.randn(800, 16, generator=g)
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU())
    head = {
        "ecoc": lambda: tm.ECOCHead(64, k, generator=generator()),
        "one_vs_all": lambda: tm.OneVsAllHead(64, k),
        "weston_watkins": lambda: tm.MulticlassHead(64, k, loss="weston_watkins"),
    }[name]()
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1, momentum=0.9)
    for epoch in range(10):
        order = torch.randperm(800, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(50):
            optimizer.zero_grad()
            head.loss(head(body(x[rows])), y[rows]).backward()
            optimizer.step()
    assert (head.predict(head(body(x))) == y).float().mean() > 0.9


# ---------------------------------------------------------------------------------------------- classes out of balance


def epoch(head, target, size=50):
    features = torch.randn(len(target), D)
    for rows in torch.arange(len(target)).split(size):
        head.loss(head(features[rows]), target[rows])


def labels(counts, seed=0):
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]


def test_one_warning_tells_when_class_weights_are_wanted():
    head = tm.ECOCHead(D, K, generator=generator())
    with pytest.warns(UserWarning, match=r'class 0 has 700 and class 3 20; .*weight="balanced"') as caught:
        epoch(head, labels([700, 200, 80, 20]).repeat(2))
    assert len(caught) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: tm.OneVsAllHead(D, K, weight=[1.0, 2.0, 3.0, 4.0]),
        lambda: tm.OneVsOneHead(D, K),  # whose columns ask two classes
        lambda: tm.OneVsAllHead(D, K).eval(),
        lambda: tm.MulticlassHead(D, K),
    ],
)
def test_nothing_is_said_where_nothing_is_wanted(make):
    head = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epoch(head, labels([700, 200, 80, 20]))


def test_many_classes_by_chance_are_no_imbalance():
    head = tm.OneVsAllHead(D, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epoch(head, torch.randint(300, (7000,), generator=generator()), 500)
    assert head._counts is None


def test_balanced_weights_bring_rare_classes_back():
    """A code on classes of 1000 to 30 rows: the mean recall over classes."""
    g = generator()
    counts = [1000, 500, 250, 120, 60, 30]
    centres = 1.5 * torch.randn(6, D, generator=g)
    y = labels(counts)
    x = centres[y] + torch.randn(len(y), D, generator=g)
    recall = {}
    for weight in (None, "balanced"):
        torch.manual_seed(0)
        head = tm.ECOCHead(D, 6, weight=weight, generator=generator())
        if weight:
            head.balance(y)
        optimizer = torch.optim.Adam(head.parameters(), 0.02)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(150):
                optimizer.zero_grad()
                head.loss(head(x), y).backward()
                optimizer.step()
        right = head.predict(head(x)) == y
        recall[weight] = torch.stack([right[y == k].float().mean() for k in range(6)]).mean()
    assert recall["balanced"] > recall[None] + 0.1
