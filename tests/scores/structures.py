"""What the scores of every structure are held to: every verb and loss equals enumeration, whatever is masked."""

import math

import pytest
import torch

import torch_multiclass as tm
from tests.ops.structures import THOROUGH
from tests.references.chain import Enumerated

INF, NAN = math.inf, math.nan
SEEDS = range(200 if THOROUGH else 12)


def close(ours, expected, tolerance=1e-9):
    expected = torch.stack(expected).to(ours).view(ours.shape) if expected else ours.new_zeros(ours.shape)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=tolerance)


class Numbers:
    """Random scores of one problem: some forbid, some tie, some are far from zero."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.forbidden, self.ties = (0.2 if seed % 3 == 1 else 0.0), seed % 3 == 2
        self.batch = [(), (3,), (2, 2), (1,)][seed % 4]
        self.masking = ["none", "lengths", "holes"][seed % 5 % 3]

    def whole(self, low, high):
        return int(torch.randint(low, high, (), generator=self.g))

    def scores(self, *shape):
        x = torch.randn(shape, generator=self.g, dtype=torch.float64)
        x = (1.5 * x).round() if self.ties else x
        return torch.where(torch.rand(shape, generator=self.g) < self.forbidden, -INF, x)

    def positions(self, steps):
        """Arguments mask or lengths, and the mask."""
        if self.masking == "lengths":
            lengths = torch.randint(0, steps + 1, self.batch, generator=self.g)
            return {"lengths": lengths}, torch.arange(steps) < lengths.unsqueeze(-1)
        kept = torch.rand(*self.batch, steps, generator=self.g) < (0.6 if self.masking == "holes" else 2)
        return ({"mask": kept} if self.masking == "holes" else {}), kept

    def junk(self, x, kept):
        """Anything at all where masked."""
        bad = torch.tensor([NAN, INF, -INF], dtype=x.dtype)[torch.randint(3, x.shape, generator=self.g)]
        return torch.where(kept.view(*kept.shape, *[1] * (x.ndim - kept.ndim)), x, bad)

    def target(self, labels, sites, kept, unobserved):
        y = torch.randint(labels, sites, generator=self.g)
        y = torch.where(torch.rand(sites, generator=self.g) < unobserved, -100, y)
        return torch.where(kept, y, torch.randint(-200, 200, sites, generator=self.g))


class StructureContract:
    """A subclass draws scores, enumerates them and names the fields that hold scores."""

    exact_slack = True
    parts: tuple

    def draw(self, seed) -> tm.Scores:
        raise NotImplementedError

    def rows(self, scores) -> list[Enumerated]:
        raise NotImplementedError

    def golds(self, scores, seed):
        """A target that leaves labels open, and one that a possible labelling agrees with."""
        numbers = Numbers(seed + 1000)
        kept = self.kept(scores)
        partial = numbers.target(scores.num_classes, scores.sites, kept, 0.4)
        drawn = scores.sample(1, generator=numbers.g)[..., 0, :]
        return partial, torch.where(drawn >= 0, drawn, torch.where(kept, 0, -100))

    def kept(self, scores):
        counted = scores._counted()
        return torch.ones(scores.sites, dtype=torch.bool) if counted is None else counted

    def flat(self, scores, values):
        return values.reshape(math.prod(scores.batch_shape), *values.shape[len(scores.batch_shape) :])

    def read(self, target):
        """A target as the enumeration has it."""
        return target

    @pytest.mark.parametrize("seed", SEEDS)
    def test_verbs_equal_enumeration(self, seed):
        scores = self.draw(seed)
        rows = self.rows(scores)
        decoded = scores.decode()
        for labels, row in zip(self.flat(scores, decoded.labels), rows, strict=True):
            expected = row.best()[0] if row.possible else torch.full_like(labels, -100)
            assert torch.equal(self.read(labels), expected)
        close(decoded.score, [row.best()[1] for row in rows])
        close(scores.log_partition(), [row.log_partition() for row in rows])
        close(scores.log_partition(0.5), [torch.logsumexp(2 * row.scores, 0) / 2 for row in rows])
        close(scores.scale(2.0).log_partition(), [torch.logsumexp(2 * row.scores, 0) for row in rows])
        close(scores.marginals(), [row.marginals() for row in rows])
        close(scores.entropy(), [row.entropy() for row in rows], 1e-8)
        close(scores.top(4).score, [row.top(4)[1] for row in rows])
        close(scores.posterior_decode().score, [row.posterior_best()[1] for row in rows])
        right = [row.marginals().amax(1).sum() if row.possible else torch.tensor(-INF) for row in rows]
        close(scores.posterior_decode(legal=False).score, right)

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("partial", [False, True])
    def test_losses_equal_enumeration(self, seed, partial):
        scores = self.draw(seed)
        rows = self.rows(scores)
        target = self.golds(scores, seed)[0 if partial else 1]
        golds = [self.read(y) for y in self.flat(scores, target)]
        counted = [bool((gold[row.where] != -100).any()) for gold, row in zip(golds, rows, strict=True)]
        k = 2 if isinstance(scores, tm.MultilabelScores) else scores.num_classes
        matrix = torch.randint(1, 4, (k, k), generator=torch.Generator().manual_seed(seed)).fill_diagonal_(0).double()
        exact = [(tm.SVMStructLoss, {})] if self.exact_slack else []
        for loss, of in [
            (tm.CRFLoss(reduction="none"), lambda row, gold: row.crf(gold)),
            (tm.CRFLoss(temperature=0.5, reduction="none"), lambda row, gold: row.crf(gold, 0.5)),
            (
                tm.CRFLoss("hamming", temperature=2.0, reduction="none"),
                lambda row, gold: row.crf(gold, 2.0, row.costs(gold)),
            ),
            (tm.M3NLoss(reduction="none"), lambda row, gold: row.m3n(gold)),
            (tm.M3NLoss(matrix, reduction="none"), lambda row, gold: row.m3n(gold, matrix=matrix)),
            (
                tm.M3NLoss(tm.costs.Hamming(normalize=True), reduction="none"),
                lambda row, gold: row.m3n(gold, normalize=True),
            ),
            (tm.StructuredPerceptronLoss(reduction="none"), lambda row, gold: row.scores.max() - row.gold(gold)),
            *(
                (
                    kind(cost, reduction="none"),
                    lambda row, gold, m=m: torch.tensor(row.slack(gold, matrix=m), dtype=torch.float64),
                )
                for kind, _ in exact
                for cost, m in [("hamming", None), (matrix, matrix)]
            ),
        ]:
            expected = []
            for row, gold, some in zip(rows, golds, counted, strict=True):
                legal = bool(row.gold(gold) > -INF)
                value = of(row, gold).double() if some and legal else torch.tensor(INF if some else 0.0).double()
                expected.append(value)
            ours = loss(scores, target)
            close(ours, expected)
            assert (ours >= 0).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_forbidden_places_are_those_of_an_infinite_loss(self, seed):
        scores = self.draw(seed)
        partial, gold = self.golds(scores, seed)
        full = torch.where(partial == -100, gold, partial)
        for target in (partial, gold) if isinstance(scores, tm.SegmentScores) else (partial, gold, full):
            places, known = scores.forbidden(target), self.flat(scores, scores.labelled(target) > 0)
            assert places.shape == scores.sites
            assert not (places & ~self.kept(scores)).any()
            golds = [self.read(labels) for labels in self.flat(scores, target)]
            expected = [bool(row.gold(labels) == -INF) for row, labels in zip(self.rows(scores), golds, strict=True)]
            assert torch.equal(
                self.flat(scores, places).any(-1)[known], torch.tensor(expected, dtype=torch.bool)[known]
            )

    @pytest.mark.parametrize("seed", SEEDS)
    def test_bounds_of_slack_rescaling_hold(self, seed):
        scores = self.draw(seed)
        target = self.golds(scores, seed)[1]
        lower, upper = tm.functional.svmstruct_bounds(scores, target, reduction="none")
        for row, y, low, high in zip(
            self.rows(scores), self.flat(scores, target), lower.reshape(-1), upper.reshape(-1), strict=True
        ):
            gold = self.read(y)
            if bool((gold[row.where] != -100).any()) and bool(row.gold(gold) > -INF):
                assert low - 1e-9 <= row.slack(gold) <= high + 1e-9

    @pytest.mark.slow
    def test_gradients_of_losses(self):
        for seed in range(30 if THOROUGH else 8):
            scores = self.draw(3 * seed)  # of those that forbid nothing
            scores = scores._with(**{name: self.finite(getattr(scores, name)) for name in self.parts})
            target = self.golds(scores, seed)[1]
            leaves = [getattr(scores, name).clone().requires_grad_() for name in self.parts]

            def loss(*parts, scores=scores, target=target):
                made = scores._with(**dict(zip(self.parts, parts, strict=True)))
                return tm.CRFLoss(reduction="sum")(made, target)

            if scores.shape.numel():
                assert torch.autograd.gradcheck(loss, leaves)
                assert torch.autograd.gradgradcheck(loss, leaves)

    def finite(self, x):
        return torch.where(x.isfinite(), x, 0.0)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_no_gradient_is_anything_but_finite(self, seed):
        scores = self.draw(seed)
        partial, gold = self.golds(scores, seed)
        losses = [tm.CRFLoss(), tm.M3NLoss(), tm.StructuredPerceptronLoss(), tm.CRFLoss("hamming", 0.5)]
        for loss in [*losses, tm.SVMStructLoss(exact=self.exact_slack)]:
            for target in (partial, gold):
                leaves = [getattr(scores, name).clone().requires_grad_() for name in self.parts]
                value = loss(scores._with(**dict(zip(self.parts, leaves, strict=True))), target)
                if value.requires_grad:
                    for gradient in torch.autograd.grad(value, leaves, allow_unused=True):
                        assert gradient is None or gradient.isfinite().all()

    @pytest.mark.slow
    def test_a_class_of_its_own_in_a_graph(self):
        """Compiled and exported losses, decodes and marginals say the same."""
        scores = self.draw(1)
        scores = scores._with(**{name: self.finite(getattr(scores, name)) for name in self.parts})
        target = self.golds(scores, 1)[1]
        parts = [getattr(scores, name) for name in self.parts]

        def everything(*given):
            made = scores._with(**dict(zip(self.parts, given, strict=True)))
            return (
                tm.CRFLoss()(made, target),
                tm.M3NLoss()(made, target),
                tm.StructuredPerceptronLoss()(made, target),
                made.decode().labels,
                made.marginals(),
                made.posterior_decode().labels,
            )

        expected = everything(*parts)
        compiled = torch.compile(everything, fullgraph=True, backend="aot_eager")(*parts)
        for ours, plain in zip(compiled, expected, strict=True):
            torch.testing.assert_close(ours, plain)

        class Module(torch.nn.Module):
            def forward(self, scores, target):
                return tm.CRFLoss()(scores, target), scores.decode().labels

        exported = torch.export.export(Module(), (scores, target), strict=False).module()
        for ours, plain in zip(exported(scores, target), (expected[0], expected[3]), strict=True):
            torch.testing.assert_close(ours, plain)

    def test_training_in_half_precision_and_under_autocast(self):
        scores = self.draw(4)
        target = self.golds(scores, 4)[1]
        half, full = scores.to(torch.bfloat16), scores.to(torch.bfloat16).to(torch.float32)
        for loss in [tm.CRFLoss(), tm.M3NLoss()]:
            value = loss(half, target)
            assert value.dtype == torch.float32
            torch.testing.assert_close(value, loss(full, target))
            with torch.autocast("cpu"):
                torch.testing.assert_close(loss(full, target), value)

    def test_scores_travel(self):
        scores = self.draw(1)
        assert torch.equal(scores[0].decode().labels, scores.decode().labels[0])
        assert scores.detach().to("cpu").decode().labels.shape == scores.sites
        leaves, spec = torch.utils._pytree.tree_flatten(scores)
        again = torch.utils._pytree.tree_unflatten(leaves, spec)
        assert torch.equal(again.decode().labels, scores.decode().labels)

    def test_a_batch_of_nothing(self):
        scores = self.draw(1)[torch.zeros(0, dtype=torch.long)]
        target = torch.zeros(scores.sites, dtype=torch.long)
        assert tm.CRFLoss()(scores, target) == 0
        assert tm.M3NLoss()(scores, target) == 0
        assert scores.decode().labels.shape == scores.sites
        assert scores.marginals().shape[0] == 0

    def test_decoders(self):
        scores = self.draw(1)
        assert torch.equal(tm.ViterbiDecoder()(scores), scores.decode().labels)
        assert torch.equal(tm.PosteriorDecoder()(scores), scores.posterior_decode().labels)
        assert torch.equal(tm.KBestDecoder(2)(scores), scores.top(2).labels)
