"""The suite that every loss of one label passes.

A test class names a loss, its function, its arguments and a naive reference of one example, and inherits everything
else::

    class TestMyLoss(LossContract):
        module, function = tm.MyLoss, staticmethod(tm.functional.my_loss)
        reference = staticmethod(reference.my_loss)
"""

import copy
import inspect
import io
import pickle

import pytest
import torch
from torch import nn
from torch.func import vmap

from torch_multiclass import Loss

B, K = 6, 5
MODERN_EXPORT = {"strict": False}


class LossContract:
    module: type
    function: staticmethod
    reference: staticmethod
    arguments: dict = {}
    shift_invariant = True
    inductor = False
    twice_differentiable = True

    # ------------------------------------------------------------------ material
    def loss(self, **kwargs):
        return self.module(**{**self.arguments, **kwargs})

    def batch(self, device="cpu", dtype=torch.float64, shape=(B,), num_classes=K):
        scores = torch.randn(*shape, num_classes, device=device, dtype=dtype)
        return scores, torch.randint(num_classes, shape, device=device)

    def expected(self, scores, target):
        """The naive loss of every example, -100 giving 0."""
        rows = scores.double().reshape(-1, scores.shape[-1]).tolist()
        labels = target.reshape(-1).tolist()
        losses = [0.0 if y == -100 else self.reference(f, y) for f, y in zip(rows, labels, strict=True)]
        return torch.tensor(losses, dtype=torch.float64, device=scores.device).reshape(target.shape)

    def gradient(self, loss, scores, target):
        leaf = scores.detach().clone().requires_grad_()
        value = loss(leaf, target)
        return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]

    # ------------------------------------------------------------------ values
    @pytest.mark.parametrize("shape", [(), (7,), (2, 3), (0,), (2, 1, 3)])
    def test_value_and_shape(self, device, dtype, shape):
        scores, target = self.batch(device, dtype, shape)
        losses = self.loss(reduction="none")(scores, target)
        assert losses.shape == shape
        assert losses.dtype == dtype
        torch.testing.assert_close(losses.double(), self.expected(scores, target), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("num_classes", [1, 2, 3, 300, 1031])
    def test_any_number_of_classes(self, device, num_classes):
        scores, target = self.batch(device, num_classes=num_classes)
        scores[::2].scatter_(-1, target[::2, None], 3.0)  # some labels on top, some not
        scores = scores / 4
        losses = self.loss(reduction="none")(scores, target)
        torch.testing.assert_close(losses, self.expected(scores, target), rtol=1e-10, atol=1e-10)

    def test_function_and_module_agree(self, device):
        scores, target = self.batch(device)
        module = self.loss(reduction="sum")
        direct = self.function(scores, target, **self.arguments, reduction="sum")
        assert torch.equal(module(scores, target), direct)

    def test_class_dim(self, device):
        scores, target = self.batch(device, shape=(4, 3, 2))
        moved = scores.movedim(-1, 1)
        expected = self.loss(reduction="none")(scores, target)
        torch.testing.assert_close(self.loss(reduction="none", class_dim=1)(moved, target), expected)

    def test_shift_invariance(self, device):
        if not self.shift_invariant:
            pytest.skip("the loss depends on the level of the scores")
        scores, target = self.batch(device)
        loss = self.loss()
        torch.testing.assert_close(loss(scores + 1e4, target), loss(scores, target), rtol=0, atol=1e-9)

    # ------------------------------------------------------------------ reductions
    def test_reductions_and_weight_mean_what_they_mean_in_cross_entropy(self, device):
        scores, target = self.batch(device)
        target[1] = -100
        weight = torch.rand(K, device=device, dtype=scores.dtype) + 0.1
        each = self.expected(scores, target)
        w = torch.where(target == -100, 0.0, weight[target.clamp(min=0)])
        kept = (target != -100).sum()
        for factor, count, extra in [(1.0, kept, {}), (w, w.sum(), {"weight": weight})]:
            for reduction, value in [
                ("none", factor * each),
                ("sum", (factor * each).sum()),
                ("mean", (factor * each).sum() / count),
                ("token_mean", (factor * each).sum() / kept),
            ]:
                torch.testing.assert_close(self.loss(reduction=reduction, **extra)(scores, target), value)

    def takes_sample_weight(self):
        if "sample_weight" not in inspect.signature(self.module.forward).parameters:
            pytest.skip("the loss takes no weight of an example")

    def test_a_weight_of_an_example_counts_it_as_often(self, device):
        self.takes_sample_weight()
        scores, target = self.batch(device)
        target[1] = -100
        counts = torch.tensor([2, 3, 1, 0, 1, 2], device=device)
        weight = torch.rand(K, device=device, dtype=scores.dtype) + 0.1
        again = torch.arange(B, device=device).repeat_interleave(counts)
        for extra in ({}, {"weight": weight}):
            for reduction in ("mean", "sum"):
                loss = self.loss(reduction=reduction, **extra)
                weighted = loss(scores, target, sample_weight=counts.to(scores.dtype))
                torch.testing.assert_close(weighted, loss(scores[again], target[again]))
        each = self.loss(reduction="none")
        torch.testing.assert_close(each(scores, target, sample_weight=counts), each(scores, target) * counts)
        with pytest.raises(ValueError, match=r"sample_weight: got shape \(5,\); accepted is \(6,\)"):
            each(scores, target, sample_weight=counts[:5])

    def test_a_weight_of_zero_leaves_an_example_out(self, device):
        self.takes_sample_weight()
        scores, target = self.batch(device)
        scores[0], scores[1] = torch.nan, -torch.inf
        weight = torch.ones(B, device=device)
        weight[:2] = 0
        for reduction in ("mean", "sum"):
            loss = self.loss(reduction=reduction)
            torch.testing.assert_close(loss(scores, target, sample_weight=weight), loss(scores[2:], target[2:]))

    def test_ignored_rows_count_for_nothing(self, device):
        scores, target = self.batch(device)
        value, gradient = self.gradient(self.loss(), scores[2:], target[2:])
        scores[:2] = torch.nan
        for ignore_index in (-100, -1, 255):
            target[:2] = ignore_index
            ignored_value, ignored_gradient = self.gradient(self.loss(ignore_index=ignore_index), scores, target)
            torch.testing.assert_close(ignored_value, value)
            torch.testing.assert_close(ignored_gradient[2:], gradient)
            assert (ignored_gradient[:2] == 0).all()

    @pytest.mark.parametrize("rows", [0, 2])
    def test_mean_over_nothing_is_zero(self, device, rows):
        scores = torch.randn(rows, 4, device=device)
        target = torch.full((rows,), -100, device=device)
        value, gradient = self.gradient(self.loss(), scores, target)
        assert value == 0
        assert (gradient == 0).all()
        assert self.loss(reduction="sum")(scores, target) == 0

    # ------------------------------------------------------------------ derivatives
    @pytest.mark.parametrize("ignore", [False, True])
    def test_first_and_second_derivatives(self, device, ignore):
        scores, target = self.batch(device, shape=(3,), num_classes=4)
        target[0] = -100 if ignore else target[0]
        loss = self.loss(reduction="sum")
        leaf = scores.requires_grad_()
        assert torch.autograd.gradcheck(lambda s: loss(s, target), (leaf,), check_forward_ad=True)
        if self.twice_differentiable:
            assert torch.autograd.gradgradcheck(lambda s: loss(s, target), (leaf,), check_fwd_over_rev=True)

    # ------------------------------------------------------------------ precision
    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
    def test_half_precision_is_computed_in_float32(self, device, half):
        scores, target = self.batch(device, torch.float32)
        scores = scores.to(half)
        value = self.loss()(scores, target)
        assert value.dtype == torch.float32
        assert torch.equal(value, self.loss()(scores.float(), target))
        assert self.gradient(self.loss(), scores, target)[1].dtype == half

    def test_autocast_changes_nothing(self, device):
        scores, target = self.batch(device, torch.float32)
        with torch.autocast(device.type, torch.bfloat16):
            value = self.loss()(scores, target)
        assert value.dtype == torch.float32
        assert torch.equal(value, self.loss()(scores, target))

    def test_nan_is_never_swallowed(self, device):
        for place in range(3):
            scores = torch.tensor([[0.0, 1.0, 0.0]], device=device)
            scores[0, place] = torch.nan
            for y in range(3):
                assert self.loss()(scores, torch.tensor([y], device=device)).isnan(), (place, y)

    @pytest.mark.parametrize("integer", [torch.int32, torch.uint8, torch.int16])
    def test_label_types(self, device, integer):
        scores, target = self.batch(device)
        assert torch.equal(self.loss()(scores, target.to(integer)), self.loss()(scores, target))

    # ------------------------------------------------------------------ PyTorch's machinery
    def test_compile_fullgraph(self, device, backend="aot_eager"):
        scores, target = self.batch(device, torch.float32)
        target[0] = -100
        loss = self.loss()
        value, gradient = self.gradient(loss, scores, target)
        torch._dynamo.reset()
        compiled = torch.compile(loss, fullgraph=True, backend=backend)
        compiled_value, compiled_gradient = self.gradient(compiled, scores, target)
        torch.testing.assert_close(compiled_value, value)
        torch.testing.assert_close(compiled_gradient, gradient)

    @pytest.mark.slow
    def test_compile_by_inductor(self, device):
        if not self.inductor:
            pytest.skip("one loss of each kind is enough")
        from torch._inductor import cpp_builder, exc  # slow to import

        try:
            cpp_builder.get_cpp_compiler()
        except exc.InvalidCxxCompiler:
            pytest.skip("needs the C++ compiler that CXX names, or gcc")
        self.test_compile_fullgraph(device, backend="inductor")

    def test_it_can_be_made_inside_a_compiled_function(self, device):
        """As `torch.nn.CrossEntropyLoss` can."""
        scores, target = self.batch(device, torch.float32)
        weight = torch.rand(K, device=device)
        for extra in ({}, {"weight": weight, "ignore_index": 0, "reduction": "sum"}):
            torch._dynamo.reset()
            compiled = torch.compile(lambda s, y, e=extra: self.loss(**e)(s, y), fullgraph=True, backend="eager")
            torch.testing.assert_close(compiled(scores, target), self.loss(**extra)(scores, target))

    def test_export_with_a_dynamic_batch(self, device):
        scores, target = self.batch(device, torch.float32)
        batch = torch.export.Dim("batch", min=2, max=64)
        program = torch.export.export(
            self.loss(), (scores, target), dynamic_shapes=({0: batch}, {0: batch}), **MODERN_EXPORT
        )
        scores, target = self.batch(device, torch.float32, shape=(11,))
        torch.testing.assert_close(program.module()(scores, target), self.loss()(scores, target))

    def test_vmap(self, device):
        scores, target = self.batch(device, shape=(3, 4))
        target[0, 0] = -100
        loss = self.loss()
        each = torch.stack([loss(s, y) for s, y in zip(scores, target, strict=True)])
        torch.testing.assert_close(vmap(loss)(scores, target), each)

    def test_inference_mode(self, device):
        scores, target = self.batch(device)
        with torch.inference_mode():
            assert torch.equal(self.loss()(scores, target), self.loss()(scores, target))

    def test_inputs_stay_as_they_were(self, device):
        scores, target = self.batch(device)
        scores = scores.T.contiguous().T  # not contiguous
        before, target_before = scores.clone(), target.clone()
        self.loss()(scores, target)
        assert torch.equal(scores, before)
        assert torch.equal(target, target_before)
        assert not scores.requires_grad
        leaf = before.clone().requires_grad_()
        self.loss()(leaf, target).backward()
        assert torch.equal(leaf, before)

    def test_copies_and_state(self, device):
        scores, target = self.batch(device, torch.float32)
        loss = self.loss(weight=torch.arange(1.0, K + 1)).to(device)
        value = loss(scores, target)
        assert torch.equal(copy.deepcopy(loss)(scores, target), value)
        assert torch.equal(pickle.loads(pickle.dumps(loss))(scores, target), value)
        assert list(loss.state_dict()) == []  # a loss is stateless: strict loading never trips over it
        assert isinstance(loss, Loss)
        assert isinstance(loss, nn.Module)
        assert repr(loss).startswith(self.module.__name__ + "(")
        assert f"weight=<{K} classes>" in repr(loss)
        buffer = io.BytesIO()
        torch.save(loss.state_dict(), buffer)

    # ------------------------------------------------------------------ bad input
    def test_labels_out_of_range(self, device):
        scores, _ = self.batch(device)
        loss = self.loss(validate_args=True)
        for bad in (5, 12, -1):
            with pytest.raises(ValueError, match=rf"target: label {bad} is outside 0\.\.4 \(5 classes\)"):
                loss(scores, torch.tensor([0, 1, 2, bad, 0, 1], device=device))
        with pytest.raises(ValueError, match="start at 0"):
            loss(scores, torch.tensor([1, 2, 3, 4, 5, 1], device=device))

    def test_bad_shapes_types_and_names(self, device):
        scores, target = self.batch(device)
        loss = self.loss()
        with pytest.raises(ValueError, match=r"target: got shape \(5,\); accepted is \(6,\)"):
            loss(scores, target[:5])
        with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
            loss(scores[:, 0], target[0].float())
        with pytest.raises(TypeError, match=r"scores: got dtype torch\.int64"):
            loss(scores.long(), target)
        with pytest.raises(TypeError, match="scores: got list"):
            loss(scores.tolist(), target)
        with pytest.raises(TypeError, match="target: got list"):
            loss(scores, target.tolist())
        with pytest.raises(ValueError, match="K >= 1"):
            loss(scores[:, :0], target)
        with pytest.raises(ValueError, match="reduction: got 'median'; accepted are 'mean', 'sum', 'none'"):
            self.loss(reduction="median")
        with pytest.raises(ValueError, match="class_dim"):
            self.loss(class_dim=3)(scores, target)
        with pytest.raises(ValueError, match=r"weight: got shape \(3,\); accepted is \(5,\)"):
            self.loss(weight=[1.0, 1.0, 1.0]).to(device)(scores, target)
        with pytest.raises(ValueError, match="weight: has a negative entry"):
            self.loss(weight=torch.full((K,), -1.0))(scores.cpu(), target.cpu())

    def test_an_unknown_keyword_is_named(self):
        with pytest.raises(TypeError, match=r"^reductoin: is no argument of \w+Loss; accepted are .*weight.*reduction"):
            self.loss(reductoin="sum")

    @pytest.mark.parametrize(
        ("option", "given"),
        [("validate_args", "yes"), ("validate_args", 1), ("class_dim", 1.0), ("class_dim", None), ("reduction", None)],
    )
    def test_options_of_the_wrong_kind_are_named(self, option, given):
        with pytest.raises((TypeError, ValueError), match=rf"^{option}: got .*; accepted (is|are) "):
            self.loss(**{option: given})

    def test_class_weights_may_be_as_small_as_numbers_are(self, device, dtype):
        scores, target = self.batch(device, dtype)
        shares = 1.0 + torch.arange(K, device=device, dtype=dtype)
        value, gradient = self.gradient(self.loss(weight=shares), scores, target)
        denormal = torch.finfo(dtype).tiny / 1024
        small_value, small_gradient = self.gradient(self.loss(weight=shares * denormal), scores, target)
        torch.testing.assert_close(small_value, value, rtol=1e-3, atol=0)
        torch.testing.assert_close(small_gradient, gradient, rtol=1e-3, atol=1e-6)

    def test_mixed_devices(self, device):
        scores, target = self.batch(device)
        with pytest.raises(ValueError, match="target: is on meta, but scores is on"):
            self.loss()(scores, target.to("meta"))
