"""The suite that every scored structure passes.

A test class draws scores and enumerates their labellings, and inherits everything else::

    class TestMyScores(ScoresContract):
        def draw(self, dtype=torch.float64, device="cpu"): ...          # a batch (B,) of finite scores
        def enumerated(self, scores): ...                               # labellings (N, *sites), scores (B, N)
"""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections import Counter
from unittest import mock

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import torch_multiclass as tm
from torch_multiclass import functional as F
from torch_multiclass.checks import targets
from torch_multiclass.ops import chain

INF = math.inf
LOSSES = {
    "crf": (F.crf_loss, {}),
    "soft margin": (F.crf_loss, {"cost": "hamming", "temperature": 0.5}),
    "m3n": (F.m3n_loss, {"cost": "hamming"}),
    "svmstruct": (F.svmstruct_loss, {"cost": "hamming"}),
    "perceptron": (F.structured_perceptron_loss, {}),
}
MODULES = [tm.CRFLoss(), tm.CRFLoss("hamming", 0.5), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()]


class Whole(nn.Module):
    """A loss of a structure rebuilt from its tensors, for compile and export."""

    def __init__(self, loss, scores):
        super().__init__()
        self.loss, self.spec = loss, pytree.tree_structure(scores)

    def forward(self, parts, target):
        return self.loss(pytree.tree_unflatten(parts, self.spec), target)


class NoReading(TorchDispatchMode):
    """Raises where a value of a tensor is read."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func is not torch.ops.aten._local_scalar_dense.default, "a value was read"
        return func(*args, **(kwargs or {}))


class ScoresContract:
    exact_slack = True
    has_top = True
    has_sample = True
    opaque = False
    """Whether its functions branch on values, so that no graph can be captured."""

    def draw(self, dtype=torch.float64, device="cpu"):
        raise NotImplementedError

    def enumerated(self, scores):
        raise NotImplementedError

    # ------------------------------------------------------------------ material
    def target(self, scores, seed=0, missing=0.0):
        """A legal labelling of each example, with labels missing here and there."""
        labellings, values = self.enumerated(scores)
        g = torch.Generator().manual_seed(seed)
        some = torch.where(values > -INF, torch.rand(values.shape, generator=g), -1.0).argmax(1)
        target = labellings[some]
        return torch.where(torch.rand(target.shape, generator=g) < missing, -100, target)

    def agrees(self, labellings, target):
        """(B, N): which labellings agree with the known labels."""
        same = (labellings == target.unsqueeze(1)) | (target.unsqueeze(1) == -100)
        return same.reshape(*same.shape[:2], -1).all(2)

    def hamming(self, labellings, target):
        wrong = (labellings != target.unsqueeze(1)) & (target.unsqueeze(1) != -100)
        return wrong.reshape(*wrong.shape[:2], -1).sum(2).double()

    def relative(self, scores, target, how="max", temperature=1.0):
        """d(y) of every labelling, (B, N), by enumeration."""
        labellings, values = self.enumerated(scores)
        some = torch.where(self.agrees(labellings, target), values, -INF)
        gold = some.amax(1) if how == "max" else temperature * torch.logsumexp(some / temperature, 1)
        return values - gold.unsqueeze(1)

    def expected_loss(self, name, scores, target):
        labellings, _ = self.enumerated(scores)
        costs = self.hamming(labellings, target)
        d = self.relative(scores, target)
        known = (target != -100).reshape(len(target), -1).any(1)
        losses = {
            "crf": lambda: torch.logsumexp(self.relative(scores, target, "sum"), 1),
            "soft margin": lambda: 0.5 * torch.logsumexp((costs + self.relative(scores, target, "sum", 0.5)) / 0.5, 1),
            "m3n": lambda: (costs + d).amax(1),
            "svmstruct": lambda: torch.where(costs > 0, costs * (1 + d).clamp(min=0), 0.0).amax(1),
            "perceptron": lambda: d.amax(1),
        }[name]()
        return torch.where(known, losses, 0.0)

    def leaves(self, scores):
        """The same scores on leaves that take gradients, and those leaves."""
        parts, spec = pytree.tree_flatten(scores)
        parts = [p.detach().clone().requires_grad_(p.is_floating_point()) for p in parts]
        return pytree.tree_unflatten(parts, spec), [p for p in parts if p.requires_grad]

    def loss(self, name, scores, target, **kwargs):
        function, arguments = LOSSES[name]
        if name == "svmstruct" and not self.exact_slack:
            arguments = {**arguments, "exact": False}
        return function(scores, target, reduction="none", **arguments, **kwargs)

    def close(self, ours, expected):
        torch.testing.assert_close(ours.double(), expected.double().expand(ours.shape), rtol=1e-10, atol=1e-10)

    # ------------------------------------------------------------------ values
    def test_the_score_of_every_labelling(self):
        scores = self.draw()
        labellings, values = self.enumerated(scores)
        for y, value in zip(labellings, values.unbind(1), strict=True):
            self.close(scores.score(y.expand(len(values), *y.shape)), value)

    def test_best_labels_are_those_of_decode(self):
        scores = self.draw()
        assert torch.equal(scores.best_labels(), scores.decode().labels)

    def test_max_score_and_decode(self):
        scores = self.draw()
        labellings, values = self.enumerated(scores)
        decoded = scores.decode()
        self.close(decoded.score, values.amax(1))
        assert torch.equal(scores.max_score(), decoded.score)
        assert torch.equal(decoded.labels, labellings[values.argmax(1)])

    @pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0, 3])
    def test_log_partition(self, temperature):
        scores = self.draw()
        expected = temperature * torch.logsumexp(self.enumerated(scores)[1] / temperature, 1)
        self.close(scores.log_partition(temperature), expected)

    def test_marginals(self):
        scores = self.draw()
        labellings, values = self.enumerated(scores)
        shown = torch.nn.functional.one_hot(labellings, scores.num_classes).double()
        self.close(scores.marginals(), torch.einsum("bn,n...->b...", values.softmax(1), shown))

    def test_entropy(self):
        scores = self.draw()
        p = self.enumerated(scores)[1].softmax(1)
        self.close(scores.entropy(), -torch.xlogy(p, p).sum(1))

    def test_top(self):
        if not self.has_top:
            pytest.skip("this structure does not list its best labellings")
        scores = self.draw()
        labellings, values = self.enumerated(scores)
        best = values.sort(1, descending=True)
        found = scores.top(3)
        self.close(found.score, best.values[:, :3])
        assert torch.equal(found.labels, labellings[best.indices[:, :3]])

    def test_sample(self):
        if not self.has_sample:
            pytest.skip("this structure is not drawn from")
        scores = self.draw()
        draws = [scores.sample(2000, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
        assert torch.equal(*draws)
        labellings, values = self.enumerated(scores)
        place = {tuple(y.reshape(-1).tolist()): n for n, y in enumerate(labellings)}
        for row, p in zip(draws[0], values.softmax(1), strict=True):
            count = Counter(place[tuple(y.reshape(-1).tolist())] for y in row)
            seen = torch.tensor([count[n] for n in range(len(p))]) / 2000
            assert float((seen - p).abs().max()) < 0.06

    # ------------------------------------------------------------------ other scores
    @pytest.mark.parametrize("how", ["max", "sum"])
    @pytest.mark.parametrize("missing", [0.0, 0.5])
    def test_relative_scores(self, how, missing):
        scores = self.draw()
        target = self.target(scores, 1, missing)
        if missing and target.ndim == 1:
            pytest.skip("one label that is missing leaves nothing to be relative to")
        d = scores.relative_to(target, unobserved=how)
        expected = self.relative(scores, target, how)
        self.close(d.max_score(), expected.amax(1))
        self.close(d.log_partition(), torch.logsumexp(expected, 1))
        self.close(d.scale(0.5).log_partition(), torch.logsumexp(expected / 2, 1))
        labellings, _ = self.enumerated(scores)
        self.close(d.score(labellings[3].expand(target.shape)), expected[:, 3])

    def test_augmented_scores_relative_to_a_labelling(self):
        """What was added before is measured from the labelling too."""
        scores = self.draw()
        target, gold = self.target(scores, 2, 0.3), self.target(scores, 3)
        labellings, values = self.enumerated(scores)
        whole = values + self.hamming(labellings, target)
        expected = whole - torch.where(self.agrees(labellings, gold), whole, -INF).amax(1, keepdim=True)
        d = scores.augment(tm.costs.Hamming(), target).relative_to(gold)
        self.close(d.max_score(), expected.amax(1))
        self.close(d.log_partition(), torch.logsumexp(expected, 1))

    def test_the_target_has_relative_score_zero_exactly(self):
        scores = self.draw(torch.float32)
        target = self.target(scores)
        assert not scores.relative_to(target).score(target).any()

    @pytest.mark.parametrize("factor", [1, 0.25, 3.0])
    def test_augment_and_scale(self, factor):
        scores = self.draw()
        target = self.target(scores, 2, 0.3)
        labellings, values = self.enumerated(scores)
        expected = factor * (values + 2 * self.hamming(labellings, target))
        cost = tm.costs.Hamming()
        augmented = scores.augment(cost, target).augment(cost, target).scale(factor)
        self.close(augmented.max_score(), expected.amax(1))
        self.close(augmented.log_partition(), torch.logsumexp(expected, 1))
        self.close(
            scores.scale(factor).augment(cost, target).max_score(),
            (factor * values + self.hamming(labellings, target)).amax(1),
        )

    def test_what_is_derived_leaves_the_scores_alone(self):
        scores = self.draw()
        before = [part.clone() for part in pytree.tree_leaves(scores)]
        target = self.target(scores)
        scores.relative_to(target).augment(tm.costs.Hamming(), target).scale(2.0).max_score()
        after = pytree.tree_leaves(scores)
        assert len(before) == len(after)
        assert all(map(torch.equal, before, after))

    # ------------------------------------------------------------------ losses
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    @pytest.mark.parametrize("name", LOSSES)
    def test_losses(self, name, missing):
        scores = self.draw()
        target = self.target(scores, 3, missing)
        if name == "svmstruct" and not self.exact_slack:
            lower, upper = F.svmstruct_bounds(scores, target, cost="hamming", reduction="none")
            exact = self.expected_loss(name, scores, target)
            assert bool(((lower <= exact + 1e-9) & (exact <= upper + 1e-9)).all())
            return
        self.close(self.loss(name, scores, target), self.expected_loss(name, scores, target))

    @pytest.mark.parametrize("name", LOSSES)
    def test_a_certain_target_costs_nothing_and_no_loss_is_negative(self, name):
        scores = self.draw(torch.float32).scale(1e3)
        certain = scores.decode().labels
        losses = self.loss(name, scores, certain)
        assert bool(((losses >= 0) & (losses < 20)).all())

    @pytest.mark.parametrize("name", LOSSES)
    def test_nan_is_never_swallowed(self, name):
        scores = self.draw()
        target = self.target(scores)
        bad = pytree.tree_map(lambda p: p * math.nan if p.is_floating_point() else p, scores)
        assert bool(self.loss(name, bad, target).isnan().all())

    @pytest.mark.parametrize("name", LOSSES)
    def test_a_whole_batch_without_labels(self, name):
        scores, leaves = self.leaves(self.draw())
        target = torch.full_like(self.target(scores), -100)
        value = self.loss(name, scores, target).sum()
        assert value == 0
        for grad in torch.autograd.grad(value, leaves, allow_unused=True):
            assert grad is None or not grad.any()

    # ------------------------------------------------------------------ derivatives
    @pytest.mark.parametrize("verb", ["log_partition", "entropy", "max_score", "crf", "soft margin", "m3n"])
    def test_gradients(self, verb):
        scores, leaves = self.leaves(self.draw())
        spec, target = pytree.tree_structure(scores), self.target(scores, 4)
        parts = pytree.tree_leaves(scores)

        def value(*given):
            moving = iter(given)
            again = pytree.tree_unflatten([next(moving) if p.requires_grad else p for p in parts], spec)
            return self.loss(verb, again, target) if verb in LOSSES else getattr(again, verb)()

        assert torch.autograd.gradcheck(value, leaves, fast_mode=True)
        if verb in ("log_partition", "crf", "soft margin"):
            assert torch.autograd.gradgradcheck(value, leaves, fast_mode=True)

    @pytest.mark.parametrize("verb", [*LOSSES, "log_partition", "marginals"])
    def test_forward_mode_and_hessians(self, verb):
        """Against differences of values and of gradients."""
        scores = self.draw()
        target, (parts, spec) = self.target(scores, 4), pytree.tree_flatten(scores)
        moving = [p for p in parts if p.is_floating_point()]
        generator = torch.Generator().manual_seed(1)
        along = [torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device) for p in moving]

        def value(*given):
            rest = iter(given)
            again = pytree.tree_unflatten([next(rest) if p.is_floating_point() else p for p in parts], spec)
            return self.loss(verb, again, target) if verb in LOSSES else getattr(again, verb)()

        def total(*given):
            return value(*given).square().sum()

        def differences(function):
            ahead, behind = (function(*(p + h * v for p, v in zip(moving, along, strict=True))) for h in (1e-5, -1e-5))
            return pytree.tree_map(lambda a, b: (a - b) / 2e-5, ahead, behind)

        def close(ours, expected):
            torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-6)

        gradient = torch.func.grad(total, argnums=tuple(range(len(moving))))
        close(torch.func.jvp(value, tuple(moving), tuple(along))[1], differences(value))
        with forward_ad.dual_level():
            dual = value(*map(forward_ad.make_dual, moving, along))
            close(forward_ad.unpack_dual(dual).tangent, differences(value))
        close(torch.func.jvp(gradient, tuple(moving), tuple(along))[1], differences(gradient))
        if not self.opaque:
            first, *rest = moving
            hessian = torch.func.hessian(lambda part: total(part, *rest))(first)
            along = [along[0], *map(torch.zeros_like, along[1:])]
            close((hessian * along[0]).flatten(first.ndim).sum(-1), differences(gradient)[0])

    def test_the_gradient_of_the_maximum_is_the_best_labelling(self):
        scores, leaves = self.leaves(self.draw())
        value = scores.max_score()
        grads = torch.autograd.grad(value.sum(), leaves)
        total = sum((g * p).sum() for g, p in zip(grads, leaves, strict=True))
        torch.testing.assert_close(total, value.sum())  # a score is linear in its parts

    # ------------------------------------------------------------------ precision
    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("name", LOSSES)
    def test_half_precision_is_computed_in_float32(self, name, half):
        scores = self.draw().to(half)
        target = self.target(scores)
        ours = self.loss(name, scores, target)
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, self.loss(name, scores.to(torch.float32), target), rtol=1e-5, atol=1e-5)

    # ------------------------------------------------------------------ as a bundle of tensors
    def test_it_moves_like_a_tensor(self):
        scores, leaves = self.leaves(self.draw(torch.float32))
        assert (scores.device, scores.dtype) == (leaves[0].device, torch.float32)
        assert scores.to(torch.float64).dtype == scores.double().dtype == torch.float64
        assert scores.to(torch.bfloat16).float().dtype == torch.float32
        assert (scores.to("meta").device.type, scores.to("meta").shape) == ("meta", scores.shape)
        assert not scores.detach().log_partition().requires_grad
        assert torch.equal(scores.cpu().log_partition(), scores.log_partition())

    @pytest.mark.parametrize("rows", [1, -1, slice(1, None), [1, 0], torch.tensor([1, 1]), torch.tensor([False, True])])
    def test_rows(self, rows):
        scores = self.draw()
        target = self.target(scores)
        if isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            rows = torch.arange(len(target)) == 1
        d = scores.relative_to(target).augment(tm.costs.Hamming(), target)
        self.close(d[rows].log_partition(), d.log_partition()[rows])
        assert d[rows].shape == d._lead()[rows].shape

    def test_batches_are_put_together(self):
        scores = self.draw()
        target = self.target(scores)
        d = scores.relative_to(target).augment(tm.costs.Hamming(), target)
        for whole in (torch.cat([d[:1], d[1:]]), torch.concat((d[:1], d[1:]), dim=0)):
            assert type(whole) is type(d)
            self.close(whole.log_partition(), d.log_partition())
        for wrong in (lambda: torch.cat([d, d], 1), lambda: torch.cat([d[0], d[0]]), lambda: torch.cat([d, scores])):
            with pytest.raises(ValueError, match=r"(dim|tensors): "):
                wrong()
        with pytest.raises(TypeError, match="tensors: hold"):
            torch.cat([d, torch.zeros(3)])
        with pytest.raises(TypeError, match="stack"):
            torch.stack([d, d])

    def test_rows_travel_as_tensors(self):
        scores = self.draw()
        target = self.target(scores)
        d = scores.relative_to(target).augment(tm.costs.Hamming(), target)
        rows = d.as_rows()
        assert {len(part) for part in rows.values()} == {len(target)}
        for given in (rows, {name: part.numpy() for name, part in rows.items()}):
            self.close(d[:1].with_rows(given).log_partition(), d.log_partition())
        with pytest.raises(ValueError, match="rows: got "):
            d.with_rows({"one": torch.zeros(3)})
        with pytest.raises(ValueError, match="rows: got 3; accepted are "):
            d.with_rows(3)

    def test_bad_rows_are_named(self):
        scores = self.draw()
        for rows in (99, "a", (0, 0), 1.5):
            with pytest.raises(IndexError, match="rows: got"):
                scores[rows]

    def test_copies_and_trees(self):
        scores = self.draw()
        target = self.target(scores)
        d = scores.relative_to(target).augment(tm.costs.Hamming(), target).scale(2.0)
        leaves, spec = pytree.tree_flatten(d)
        kinds = (copy.copy(d), copy.deepcopy(d), pickle.loads(pickle.dumps(d)), pytree.tree_unflatten(leaves, spec))
        for other in kinds:
            assert type(other) is type(d)
            assert torch.equal(other.log_partition(), d.log_partition())
        buffer = io.BytesIO()
        torch.save(d, buffer)
        buffer.seek(0)
        assert torch.equal(torch.load(buffer, weights_only=True).max_score(), d.max_score())

    def test_lightning_moves_it(self):
        pytest.importorskip("lightning")
        from lightning.fabric.utilities.apply_func import move_data_to_device
        from lightning_utilities.core.apply_func import apply_to_collection

        scores, _ = self.leaves(self.draw())
        moved = move_data_to_device({"scores": scores}, torch.device("meta"))["scores"]
        assert moved.device.type == "meta"
        twice = apply_to_collection(scores, torch.Tensor, lambda part: part)
        assert torch.equal(twice.log_partition(), scores.log_partition())
        derived = pytree.tree_map(lambda part: part * 1 if part.is_floating_point() else part, scores)
        shown = apply_to_collection(derived, torch.Tensor, lambda part: part)  # not of leaves, as a network gives them
        assert torch.equal(shown.log_partition(), scores.log_partition())

    # ------------------------------------------------------------------ who looks on
    def test_inference_mode(self):
        scores = self.draw()
        target = self.target(scores, 5, 0.3)
        expected = [self.loss(name, scores, target) for name in LOSSES] + [scores.marginals(), scores.entropy()]
        with torch.inference_mode():
            ours = [self.loss(name, scores, target) for name in LOSSES] + [scores.marginals(), scores.entropy()]
        for a, b in zip(ours, expected, strict=True):
            torch.testing.assert_close(a, b)

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", MODULES, ids=repr)
    def test_compile(self, loss):
        if self.opaque:
            pytest.skip("its functions branch on values")
        torch._dynamo.reset()
        scores, leaves = self.leaves(self.draw(torch.float32))
        module = Whole(loss, scores)
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        for missing in (0.0, 0.4):
            target = self.target(scores, 6, missing)
            found = [step(pytree.tree_leaves(scores), target) for step in (module, compiled)]
            torch.testing.assert_close(found[1], found[0])
            grads = [torch.autograd.grad(value, leaves) for value in found]
            for a, b in zip(*grads, strict=True):
                torch.testing.assert_close(a, b)

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", MODULES, ids=repr)
    def test_export_saved_and_loaded(self, loss):
        if self.opaque:
            pytest.skip("its functions branch on values")
        scores = self.draw(torch.float32)
        parts, module = pytree.tree_leaves(scores), Whole(loss, scores)
        program = torch.export.export(module, (parts, self.target(scores)), strict=False)
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        buffer.seek(0)
        again = torch.export.load(buffer).module()
        for missing in (0.0, 0.4):
            target = self.target(scores, 7, missing)
            torch.testing.assert_close(again(parts, target), module(parts, target))

    # ------------------------------------------------------------------ the door
    @pytest.mark.parametrize("name", LOSSES)
    def test_labels_are_checked_once(self, name):
        scores = self.draw()
        target = self.target(scores)
        look, masked = mock.Mock(wraps=targets.all_labels), mock.Mock(wraps=chain.mask_labels)
        with mock.patch.object(targets, "all_labels", look), mock.patch.object(chain, "mask_labels", masked):
            self.loss(name, scores, target)
        assert look.call_count + masked.call_count == 1

    @pytest.mark.parametrize("missing", [0.0, 0.4])
    @pytest.mark.parametrize("name", LOSSES)
    def test_without_validation_no_value_is_read(self, name, missing):
        if self.opaque:
            pytest.skip("its functions branch on values")
        scores = self.draw()
        target = self.target(scores, 8, missing)
        expected = self.loss(name, scores, target)
        with NoReading():
            ours = self.loss(name, scores, target, validate_args=False)
        torch.testing.assert_close(ours, expected)

    def test_bad_targets_are_named(self):
        scores = self.draw()
        target = self.target(scores)
        k = scores.num_classes
        for verb in (
            scores.relative_to,
            scores.check_target,
            scores.labelled,
            lambda y: scores.augment(tm.costs.Hamming(), y),
            lambda y: F.crf_loss(scores, y),
            lambda y: scores.slack_max(tm.costs.Hamming(), y),
        ):
            with pytest.raises(ValueError, match=rf"target: label {k} is outside 0\.\.{k - 1} \({k} classes\)"):
                verb(torch.full_like(target, k))
            with pytest.raises(ValueError, match="target: got shape"):
                verb(target[:1])
            with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
                verb(target.float())
            with pytest.raises(TypeError, match="target: got list"):
                verb(target.tolist())
            with pytest.raises(ValueError, match="target: is on meta"):
                verb(target.to("meta"))

    @pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int16])
    def test_any_integer_labels(self, dtype):
        scores = self.draw()
        target = self.target(scores)
        self.close(F.crf_loss(scores, target.to(dtype)), F.crf_loss(scores, target))
