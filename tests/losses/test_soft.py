"""Targets that are not labels: distributions, smoothed labels, sets; and a weight for each sequence."""

import itertools
import math

import pytest
import torch

import torch_multiclass as tm
from tests.ops.structures import THOROUGH
from tests.scores.structures import Numbers

INF = math.inf
SEEDS = range(200 if THOROUGH else 12)


def naive(scores, share, temperature=1.0):
    """log Z - E_q s of one sequence, summed over every labelling ``(n, T)`` and its score."""
    labels, values = scores
    weight = torch.stack([share[torch.arange(len(share)), y].prod() for y in labels])
    mean = torch.where(weight > 0, weight * values, 0.0).sum()
    return temperature * torch.logsumexp(values / temperature, 0) - mean


def labellings(steps, k):
    return torch.tensor(list(itertools.product(range(k), repeat=steps)), dtype=torch.long).view(k**steps, steps)


def distributions(numbers, *shape):
    share = torch.rand(shape, generator=numbers.g, dtype=torch.float64)
    share = torch.where(torch.rand(shape, generator=numbers.g) < 0.3, 0.0, share)
    share[..., 0] += (share.sum(-1) == 0).double()
    return share / share.sum(-1, keepdim=True)


def chain(numbers, steps=4, k=3, batch=2, **extra):
    per_step = numbers.whole(0, 2)
    moves = (batch, steps - 1, k, k) if per_step else (k, k)
    return tm.ChainScores(
        numbers.scores(batch, steps, k), numbers.scores(*moves), start=numbers.scores(k), end=numbers.scores(batch, k)
    )._with(**extra)


def second_order(numbers, steps=4, k=3, batch=2, **extra):
    return tm.SecondOrderScores(
        numbers.scores(batch, steps, k), numbers.scores(k, k), numbers.scores(k, k, k), start=numbers.scores(k)
    )._with(**extra)


def tree(numbers, steps=4, k=3, batch=2, **extra):
    parents = torch.tensor([[2, 2, -1, 1], [-1, 0, 0, -1]])
    return tm.TreeScores(numbers.scores(batch, steps, k), numbers.scores(k, k), parents)._with(**extra)


def multilabel(numbers, steps=4, k=2, batch=2, **extra):
    return tm.MultilabelScores(numbers.scores(batch, steps).nan_to_num(neginf=-2.0))._with(**extra)


KINDS = [chain, second_order, tree, multilabel]


def every(scores, mask=None):
    """Each labelling of the positions that count and its score, for each row; labels elsewhere are anything."""
    steps, k = scores.sites[-1], scores.num_classes
    found = []
    for b in range(len(scores.sites) and scores.sites[0]):
        kept = torch.ones(steps, dtype=torch.bool) if mask is None else mask[b]
        labels = labellings(int(kept.sum()), k)
        whole = torch.full((len(labels), steps), -100)
        whole[:, kept] = labels
        asked = 2 * whole - 1 if isinstance(scores, tm.MultilabelScores) else whole
        asked = torch.where(whole == -100, -100, asked)
        found.append((labels, scores[[b]].score(asked[None])[0], kept))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_distributions_equal_enumeration(kind, seed):
    numbers = Numbers(seed)
    scores = kind(numbers)
    mask = None
    if kind is not multilabel and seed % 2:
        mask = torch.rand(2, 4, generator=numbers.g) < 0.6
        scores = scores._with(mask=mask)
    share = distributions(numbers, *scores.sites, scores.num_classes)
    given = share if mask is None else torch.where(mask.unsqueeze(-1), share, torch.nan)
    for temperature in (1.0, 2.0):
        losses = tm.CRFLoss(temperature=temperature, reduction="none")(scores, given)
        for row, (labels, values, kept), q in zip(losses, every(scores, mask), share, strict=True):
            expected = naive((labels, values), q[kept], temperature) if kept.any() else torch.zeros(())
            if values.numel() and not (values > -INF).any():
                expected = torch.tensor(INF)
            torch.testing.assert_close(row, expected.double(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_of_a_row_of_zeros_nothing_is_known(kind):
    numbers = Numbers(0)
    scores, share = kind(numbers), distributions(numbers, 2, 4, 3)
    share[0] = 0
    each = tm.CRFLoss(reduction="none")(scores, share)
    assert each[0] == 0
    torch.testing.assert_close(tm.CRFLoss()(scores, share), each[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_sets_equal_enumeration(kind, seed):
    numbers = Numbers(seed)
    scores = kind(numbers)
    allowed = torch.rand(*scores.sites, scores.num_classes, generator=numbers.g) < 0.6
    allowed[..., 0] |= ~allowed.any(-1)
    k = scores.num_classes
    matrix = torch.randint(1, 4, (k, k), generator=numbers.g).fill_diagonal_(0).double()
    crf = tm.CRFLoss(reduction="none")(scores, allowed)
    m3n = tm.M3NLoss(matrix, reduction="none")(scores, allowed)
    slack = torch.zeros(2) if kind is tree else tm.SVMStructLoss(matrix, reduction="none")(scores, allowed)
    perceptron = tm.StructuredPerceptronLoss(reduction="none")(scores, allowed)
    for b, (labels, values, _) in enumerate(every(scores)):
        position = torch.arange(labels.shape[1])
        agrees = allowed[b][position, labels].all(1)
        inside = values[agrees]
        some = not allowed[b].all()
        if not some:
            assert crf[b] == m3n[b] == perceptron[b] == 0
            continue
        if not (inside > -INF).any():
            assert crf[b] == m3n[b] == perceptron[b] == INF
            continue
        torch.testing.assert_close(crf[b], torch.logsumexp(values, 0) - torch.logsumexp(inside, 0))
        torch.testing.assert_close(perceptron[b], values.max() - inside.max())
        paid = matrix[labels[agrees][:, None], labels[None]].sum(2).amin(0)
        torch.testing.assert_close(m3n[b], (paid + values).max() - inside.max())
        if kind is not tree:
            worst = torch.where(paid > 0, paid * (1 + values - inside.max()).clamp(min=0), 0.0)
            torch.testing.assert_close(slack[b], worst.max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_that_is_sure_and_a_set_of_one_are_labels(kind):
    scores = kind(Numbers(0))
    labels = scores.sample(1, generator=torch.Generator().manual_seed(0))[:, 0]
    index = (labels > 0).long() if kind is multilabel else labels
    sure = torch.nn.functional.one_hot(index, scores.num_classes)
    hard = tm.CRFLoss()(scores, labels)
    torch.testing.assert_close(tm.CRFLoss()(scores, sure.double()), hard)
    torch.testing.assert_close(tm.CRFLoss()(scores, sure.bool()), hard)
    torch.testing.assert_close(tm.M3NLoss()(scores, sure.bool()), tm.M3NLoss()(scores, labels))
    open_ = labels.clone()
    open_[0, 1] = -100
    sets = sure.bool()
    sets[0, 1] = True
    for loss in (tm.CRFLoss(), tm.M3NLoss(), tm.StructuredPerceptronLoss()):
        torch.testing.assert_close(loss(scores, sets), loss(scores, open_))


def test_sets_of_segments():
    numbers = Numbers(0)
    scores = tm.SegmentScores(numbers.scores(2, 4, 3, 2), numbers.scores(2, 2))
    allowed = torch.rand(2, 4, 4, generator=numbers.g) < 0.7
    allowed[..., :2] |= ~allowed[..., :2].any(-1, keepdim=True)
    loss = tm.CRFLoss(reduction="none")(scores, allowed)
    for b, (labels, values, _) in enumerate(every(scores)):
        agrees = allowed[b][torch.arange(4), labels].all(1)
        torch.testing.assert_close(loss[b], torch.logsumexp(values, 0) - torch.logsumexp(values[agrees], 0))
    with pytest.raises(TypeError, match="target: a distribution over labels has no meaning with SegmentScores"):
        tm.CRFLoss()(scores, torch.full((2, 4, 4), 0.25))
    with pytest.raises(TypeError, match="target: a distribution over labels has no meaning with SegmentScores"):
        tm.CRFLoss(label_smoothing=0.1)(scores, torch.zeros(2, 4, dtype=torch.long))


class TestSmoothing:
    @pytest.mark.parametrize("amount", [0.1, 0.5, 1.0])
    def test_one_label_is_the_cross_entropy_of_torch(self, amount):
        scores, target = torch.randn(6, 5, dtype=torch.float64), torch.tensor([0, 4, 2, -100, 1, 1])
        for reduction in ("mean", "sum", "none"):
            expected = torch.nn.functional.cross_entropy(scores, target, label_smoothing=amount, reduction=reduction)
            ours = tm.CRFLoss(label_smoothing=amount, reduction=reduction)(scores, target)
            torch.testing.assert_close(ours, expected)
        share = torch.rand(6, 5, dtype=torch.float64)
        share = share / share.sum(-1, keepdim=True)
        expected = torch.nn.functional.cross_entropy(scores, share)
        torch.testing.assert_close(tm.CRFLoss()(scores, share), expected)
        torch.testing.assert_close(tm.CRFLoss(class_dim=0)(scores.mT, share.mT), expected)  # as torch has them

    def test_it_mixes_the_label_with_all(self):
        numbers = Numbers(0)
        scores = chain(numbers)
        target = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]])
        share = 0.7 * torch.nn.functional.one_hot(target, 3) + 0.1
        ours = tm.CRFLoss(label_smoothing=0.3, reduction="none")(scores, target)
        for b, (labels, values, _) in enumerate(every(scores)):
            torch.testing.assert_close(ours[b], naive((labels, values), share[b].double()))

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_mixes_a_distribution_with_all(self, kind):
        numbers = Numbers(0)
        scores = kind(numbers)
        scores = scores._with(**{scores.leading: getattr(scores, scores.leading).nan_to_num(neginf=-3.0)})
        share = distributions(numbers, *scores.sites, scores.num_classes)
        ours = tm.CRFLoss(label_smoothing=0.3, reduction="none")(scores, share)
        plain = tm.CRFLoss(reduction="none")(scores, 0.7 * share + 0.3 / scores.num_classes)
        torch.testing.assert_close(ours[plain < INF], plain[plain < INF])
        labels = scores.sample(1, generator=torch.Generator().manual_seed(0))[:, 0]
        sure = torch.nn.functional.one_hot((labels > 0).long() if kind is multilabel else labels, scores.num_classes)
        smooth = tm.CRFLoss(label_smoothing=0.2)
        torch.testing.assert_close(smooth(scores, sure.double()), smooth(scores, labels))

    def test_what_a_distribution_itself_meets_has_to_be_possible(self):
        moves = torch.tensor([[0.0, -INF], [0.0, 0.0]])
        scores = tm.ChainScores(torch.zeros(1, 2, 2), moves)
        smooth = tm.CRFLoss(label_smoothing=0.2)
        assert smooth(scores, torch.tensor([[[0.0, 1.0], [0.5, 0.5]]])).isfinite()
        assert smooth(scores, torch.tensor([[[0.1, 0.9], [0.5, 0.5]]])) == INF

    def test_what_is_forbidden_takes_no_share(self):
        constraints = tm.tag_constraints(["O", "B-X", "I-X"])
        e = torch.randn(1, 3, 3, dtype=torch.float64)
        moves = torch.randn(3, 3, dtype=torch.float64) + constraints.transitions
        start = torch.zeros(3, dtype=torch.float64) + constraints.start
        target = torch.tensor([[1, 2, 0]])
        loss = tm.CRFLoss(label_smoothing=0.2)
        ours = loss(tm.ChainScores(e, moves, start=start), target)
        assert ours.isfinite()
        # a constant in what is allowed changes nothing
        torch.testing.assert_close(loss(tm.ChainScores(e, moves + 5, start=start - 3), target), ours)
        q = 0.8 * torch.nn.functional.one_hot(target[0], 3).double() + 0.2 / 3
        log_z = tm.ChainScores(e, moves, start=start).log_partition()[0]
        mean = (q * e[0]).sum()
        for t in (1, 2):
            pair = torch.where(moves > -INF, q[t - 1][:, None] * q[t], 0.0)
            mean = mean + torch.where(moves > -INF, pair * moves, 0.0).sum() / pair.sum()
        torch.testing.assert_close(ours, log_z - mean)
        assert loss(tm.ChainScores(e, moves, start=start), torch.tensor([[2, 2, 0]])) == INF

    def test_a_share_of_which_all_is_forbidden_is_infinite(self):
        scores, target, weight = torch.tensor([[-INF, 0.0, 1.0]]), torch.tensor([1]), torch.tensor([1.0, 0.0, 0.0])
        options = {"weight": weight, "label_smoothing": 0.2, "reduction": "sum"}  # all of it on the first label
        assert torch.nn.functional.cross_entropy(scores, target, **options) == INF
        assert tm.CRFLoss(**options)(scores, target) == INF

    def test_a_label_that_is_not_known_is_named(self):
        scores = chain(Numbers(0))
        target = torch.tensor([[0, 1, -100, 0], [1, 1, 0, 2]])
        with pytest.raises(ValueError, match=r"target: nothing is known at \[0, 2\], which counts"):
            tm.CRFLoss(label_smoothing=0.1)(scores, target)
        loss = tm.CRFLoss(label_smoothing=0.1, validate_args=False, reduction="none")(scores, target)
        assert loss[0].isnan()
        assert loss[1].isfinite()
        masked = scores._with(mask=target >= 0)
        assert tm.CRFLoss(label_smoothing=0.1)(masked, target).isfinite()
        nothing = torch.stack([target[1], torch.full((4,), -100)])
        first = tm.CRFLoss(label_smoothing=0.1)(scores[[1]], target[[1]])
        leaf = scores.emissions[[1, 0]].clone().requires_grad_()
        value = tm.CRFLoss(label_smoothing=0.1)(scores[[1, 0]]._with(emissions=leaf), nothing)
        torch.testing.assert_close(value, first)
        assert (torch.autograd.grad(value, leaf)[0][1] == 0).all()

    @pytest.mark.parametrize("amount", [-0.1, 1.5, math.nan, "a"])
    def test_bad_amounts_are_named(self, amount):
        with pytest.raises((ValueError, TypeError), match="label_smoothing: got"):
            tm.CRFLoss(label_smoothing=amount)


class TestMeanSigns:
    """Targets of several labels between -1 and +1, as mixup makes them."""

    def test_they_are_the_mean_of_two_losses(self):
        g = torch.Generator().manual_seed(0)
        scores = tm.MultilabelScores(torch.randn(4, 5, generator=g, dtype=torch.float64).requires_grad_())
        one, other = (2 * torch.randint(2, (4, 5), generator=g) - 1 for _ in range(2))
        mixed = 0.3 * one + 0.7 * other
        for reduction in ("none", "mean", "sum"):
            loss = tm.CRFLoss(reduction=reduction)
            torch.testing.assert_close(
                loss(scores, mixed.double()), 0.3 * loss(scores, one) + 0.7 * loss(scores, other)
            )
        smooth = tm.CRFLoss(label_smoothing=0.1)
        torch.testing.assert_close(smooth(scores, one.double()), smooth(scores, one))
        binary = torch.nn.functional.binary_cross_entropy_with_logits(
            2 * scores.values, (1 + mixed.double()) / 2, reduction="none"
        )
        torch.testing.assert_close(tm.CRFLoss(reduction="none")(scores, mixed.double()), binary.sum(-1))
        assert torch.equal(tm.MultilabelHead(3, 5).loss(scores, mixed.double()), tm.CRFLoss()(scores, mixed.double()))

    def test_others_are_named(self):
        scores = tm.MultilabelScores(torch.zeros(2, 3))
        for bad, words in (
            (torch.full((2, 3), 1.5), r"target: got the entry 1\.5; accepted are mean signs from -1 to \+1"),
            (torch.full((2, 3), torch.nan), "target: got the entry nan"),
            (torch.zeros(2, 2), r"target: got shape \(2, 2\)"),
        ):
            with pytest.raises(ValueError, match=words):
                tm.CRFLoss()(scores, bad)
        with pytest.raises(TypeError, match="target: "):
            tm.M3NLoss()(scores, torch.zeros(2, 3))


class TestDistributions:
    def test_what_has_no_probability_may_be_forbidden(self):
        e = torch.tensor([[[0.0, -INF], [1.0, 2.0]]]).requires_grad_()
        moves = torch.tensor([[0.0, 1.0], [-INF, -INF]]).requires_grad_()
        share = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
        loss = tm.CRFLoss()(tm.ChainScores(e, moves), share)
        expected = math.log(math.exp(1) + math.exp(3)) - (0.25 * 1 + 0.75 * 3)
        torch.testing.assert_close(loss, torch.tensor(expected))
        for gradient in torch.autograd.grad(loss, (e, moves)):
            assert gradient.isfinite().all()
        share = torch.tensor([[[0.9, 0.1], [0.25, 0.75]]])
        loss = tm.CRFLoss()(tm.ChainScores(e, moves), share)
        assert loss == INF
        assert all((g == 0).all() for g in torch.autograd.grad(loss, (e, moves)))

    def test_nothing_large_cancels(self):
        g = torch.Generator().manual_seed(0)
        e = torch.randn(2, 512, 9, generator=g) + 1e4
        w = torch.randn(9, 9, generator=g)
        share = torch.rand(2, 512, 9, generator=g).softmax(-1)
        exact = tm.CRFLoss(reduction="none")(tm.ChainScores(e.double(), w.double()), share.double())
        torch.testing.assert_close(
            tm.CRFLoss(reduction="none")(tm.ChainScores(e, w), share), exact.float(), rtol=1e-5, atol=1e-5
        )

    @pytest.mark.parametrize("kind", KINDS)
    def test_derivatives(self, kind):
        numbers = Numbers(0)
        scores = kind(numbers)
        share = distributions(numbers, *scores.sites, scores.num_classes)
        names = ["values"] if kind is multilabel else ["emissions", "transitions"]
        names += ["trans2"] if kind is second_order else []
        leaves = [getattr(scores, name).clone().requires_grad_() for name in names]

        def loss(*parts):
            return tm.CRFLoss(reduction="sum")(scores._with(**dict(zip(names, parts, strict=True))), share)

        assert torch.autograd.gradcheck(loss, leaves)
        assert torch.autograd.gradgradcheck(loss, leaves)

    @pytest.mark.parametrize("kind", KINDS)
    def test_half_precision(self, kind):
        numbers = Numbers(0)
        scores = kind(numbers).to(torch.bfloat16)
        share = distributions(numbers, *scores.sites, scores.num_classes).to(torch.bfloat16)
        value = tm.CRFLoss()(scores, share)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, tm.CRFLoss()(scores.to(torch.float32), share.float()))

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_compile_and_export(self, kind):
        numbers = Numbers(0)
        scores = kind(numbers)
        share = distributions(numbers, *scores.sites, scores.num_classes)
        labels = torch.zeros(scores.sites, dtype=torch.long) + (kind is multilabel)
        weights = torch.tensor([1.0, 2.0])

        class Module(torch.nn.Module):
            def forward(self, scores, share, allowed, labels, weights):
                return (
                    tm.CRFLoss()(scores, share, sample_weight=weights),
                    tm.CRFLoss()(scores, allowed),
                    tm.M3NLoss()(scores, allowed),
                    tm.CRFLoss(label_smoothing=0.1)(scores, labels),
                )

        given = (scores, share, share > 0, labels, weights)
        expected = Module()(*given)
        exported = torch.export.export(Module(), given, strict=False).module()
        compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
        for run in (exported, compiled):
            for ours, plain in zip(run(*given), expected, strict=True):
                torch.testing.assert_close(ours, plain)

    def test_bad_targets_are_named(self):
        scores = chain(Numbers(0))
        good = torch.full((2, 4, 3), 1 / 3)
        for bad, words in [
            (good[:, :3], r"target: got shape \(2, 3, 3\)"),
            (2 * good, "target: the entries of a position add up to 2"),
            (good - 1, "target: has an entry that is negative"),
            (good * torch.nan, "target: has an entry that is negative or not finite"),
            (torch.zeros(2, 4, 3, dtype=torch.bool), r"target: no label is allowed at \[0, 0\]"),
        ]:
            with pytest.raises(ValueError, match=words):
                tm.CRFLoss()(scores, bad)
        for loss in (tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()):
            with pytest.raises(
                TypeError, match=r"target: a distribution over labels has no meaning for .*one labelling"
            ):
                loss(scores, good)
        with pytest.raises(ValueError, match="cost: has no meaning with a distribution"):
            tm.CRFLoss("hamming")(scores, good)
        with pytest.raises(ValueError, match="weight: a class weight has no meaning with sets"):
            tm.CRFLoss(weight=[1.0, 1.0, 2.0])(torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"label_smoothing: got 0\.1 with sets of labels; accepted there is 0"):
            tm.CRFLoss(label_smoothing=0.1)(scores, good > 0)
        with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
            tm.CRFLoss()(scores, torch.zeros(2, 4))


class TestSampleWeight:
    @pytest.mark.parametrize(
        "loss", [tm.CRFLoss, tm.M3NLoss, tm.SVMStructLoss, tm.StructuredPerceptronLoss], ids=lambda x: x.__name__
    )
    def test_reductions(self, loss):
        scores = chain(Numbers(0), batch=3)
        target = torch.tensor([[0, 1, 2, 0], [1, 1, 0, -100], [-100] * 4])
        weight = torch.tensor([1.0, 3.0, 7.0], dtype=torch.float64)
        each = loss(reduction="none")(scores, target)
        for reduction, expected in [
            ("none", each * weight),
            ("sum", each[0] + 3 * each[1]),
            ("mean", (each[0] + 3 * each[1]) / 4),  # the sum of the weights of what is labelled
            ("token_mean", (each[0] + 3 * each[1]) / 7),
        ]:
            for given in (weight, weight.float(), weight.tolist()):
                torch.testing.assert_close(loss(reduction=reduction)(scores, target, sample_weight=given), expected)

    def test_a_weight_of_two_is_the_sequence_twice(self):
        head = tm.ChainHead(4, 3)
        x, y = torch.randn(3, 5, 4), torch.randint(3, (3, 5))
        twice = [0, 1, 1, 2]
        ours = head.loss(head(x), y, sample_weight=torch.tensor([1.0, 2.0, 1.0]))
        torch.testing.assert_close(ours, head.loss(head(x[twice]), y[twice]))

    def test_on_one_label_beside_class_weights(self):
        scores, target = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
        of_class, weight = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 2.0, 1.0])
        each = torch.nn.functional.cross_entropy(scores, target, reduction="none")
        both = of_class[target] * weight
        ours = tm.CRFLoss(weight=of_class)(scores, target, sample_weight=weight)
        torch.testing.assert_close(ours, (both * each).sum() / both.sum())

    @pytest.mark.parametrize(
        ("weight", "words"),
        [
            ([1.0], r"sample_weight: got shape \(1,\)"),
            ([1.0, -1.0], "sample_weight: has a negative entry, -1"),
            ([1.0, math.nan], "sample_weight: has an entry that is not finite"),
        ],
    )
    def test_bad_weights_are_named(self, weight, words):
        with pytest.raises(ValueError, match=words):
            tm.CRFLoss()(chain(Numbers(0)), torch.zeros(2, 4, dtype=torch.long), sample_weight=torch.tensor(weight))

    @pytest.mark.parametrize("target", [torch.rand(2, 5), torch.rand(3, 4), torch.ones(2, 5, dtype=torch.bool)])
    def test_a_shape_is_told_as_it_was_given(self, target):
        shape = str(tuple(target.shape)).replace("(", r"\(").replace(")", r"\)")
        with pytest.raises(ValueError, match=rf"target: got shape {shape}; accepted is \(2, 4\), .* for each example"):
            tm.CRFLoss()(torch.zeros(2, 4), target)

    def test_weights_of_nothing_give_nothing(self):
        value = tm.CRFLoss()(chain(Numbers(0)), torch.zeros(2, 4, dtype=torch.long), sample_weight=torch.zeros(2))
        assert value == 0
