"""The suite that every scorer passes.

A test class says how its scorer is made, what its ``state_dict`` holds and which buffers its user gave, and inherits
everything else::

    class TestMyScorer(ScorerContract):
        keys = ("weight", "bias")

        def make(self, **factory):
            return tm.MyScorer(self.in_features, self.num_classes, **factory)
"""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from torch_multiclass.scorers import Scorer


def leaves(scores):
    """The tensors of scores, whatever holds them."""
    return [leaf for leaf in pytree.tree_leaves(scores) if isinstance(leaf, torch.Tensor)]


def floating(scores):
    """The tensors of scores that hold numbers, not codes, masks or lengths."""
    return [leaf for leaf in leaves(scores) if leaf.is_floating_point()]


def finite(part):
    """The numbers of a part, what is forbidden by -inf left out."""
    return part.masked_fill(part.detach().isinf(), 0.0)


class ScorerContract:
    in_features = 6
    num_classes = 4
    keys: tuple = ()
    """The names in the ``state_dict``."""
    given: tuple = ()
    """Parameters and buffers that hold what the user gave or drew, which no reset can bring back."""
    shown: str = ""
    """A part of the ``repr``."""
    steps: tuple = ()
    """Dimensions that features must have between the batch and ``D``: one for sequences."""
    has_norms = True
    takes_dtype = True
    twice_differentiable = True

    def make(self, **factory):
        raise NotImplementedError

    # ------------------------------------------------------------------ material
    def scorer(self, **factory):
        """With parameters at which nothing is zero by chance."""
        scorer = self.make(**factory)
        with torch.no_grad():
            for parameter in scorer.parameters():
                if not parameter.is_meta:
                    parameter.add_(0.1 * torch.randn_like(parameter))
        return scorer

    def features(self, *batch, device="cpu", dtype=torch.float32):
        return torch.randn(*batch, *self.steps, self.in_features, device=device, dtype=dtype)

    def close(self, found, expected, **tolerance):
        assert type(found) is type(expected)
        for one, other in zip(leaves(found), leaves(expected), strict=True):
            torch.testing.assert_close(one, other, **tolerance)

    def lead(self, scores):
        """The tensor with a row for each example."""
        return floating(scores)[0]

    # ------------------------------------------------------------------ values
    @pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (0,), (2, 0, 3)])
    def test_shapes(self, batch, device):
        scores = self.scorer(device=device)(self.features(*batch, device=device))
        lead = self.lead(scores)
        assert lead.shape[: len(batch) + len(self.steps)] == (*batch, *self.steps)
        assert lead.device.type == device.type
        assert self.scorer().num_classes == self.num_classes
        assert self.scorer().in_features == self.in_features

    def test_rows_do_not_depend_on_each_other(self, device):
        scorer, features = self.scorer(device=device), self.features(40, device=device)
        whole = self.lead(scorer(features))
        for i in (0, 17, 39):
            torch.testing.assert_close(self.lead(scorer(features[i])), whole[i], rtol=1e-5, atol=1e-5)
        far = features.clone()
        far[1:] *= 1e3
        torch.testing.assert_close(self.lead(scorer(far))[0], whole[0], rtol=1e-5, atol=1e-5)

    def test_it_draws_nothing(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        state = torch.random.get_rng_state()
        self.close(scorer.train()(features), scorer.eval()(features), rtol=0, atol=0)
        assert torch.equal(torch.random.get_rng_state(), state)

    def test_features_stay_as_they_are(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        before = features.clone()
        scorer(features)
        assert torch.equal(features, before)
        assert not features.requires_grad

    def test_strides_do_not_matter(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        strided = features.unsqueeze(-1).expand(*features.shape, 2)[..., 0]
        self.close(scorer(strided), scorer(features))

    # ------------------------------------------------------------------ derivatives
    def test_gradients_reach_features_and_every_parameter(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device).requires_grad_()
        sum(finite(part).square().sum() for part in floating(scorer(features)) if part.requires_grad).backward()
        assert features.grad.isfinite().all()
        for name, parameter in scorer.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None, name
                assert parameter.grad.isfinite().all(), name

    def test_derivatives(self):
        scorer = self.scorer().double()
        names = [name for name, _ in scorer.named_parameters()]
        values = tuple(p.detach().clone().requires_grad_() for p in scorer.parameters())

        def scores(features, *parameters):
            found = functional_call(scorer, dict(zip(names, parameters, strict=True)), (features,))
            return tuple(finite(part) for part in floating(found) if part.requires_grad)

        features = self.features(2, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(scores, (features, *values), fast_mode=True)
        if self.twice_differentiable:
            assert torch.autograd.gradgradcheck(scores, (features, *values), fast_mode=True)

    def test_scores_are_no_parameters(self):
        """Who shards or averages parameters may change them in place behind the scores' back."""
        scorer = self.scorer()
        scores = scorer(self.features(3))
        before = [part.detach().clone() for part in leaves(scores)]
        own = {parameter.data_ptr() for parameter in scorer.parameters()}
        assert not own & {part.data_ptr() for part in leaves(scores)}
        with torch.no_grad():
            for parameter in scorer.parameters():
                parameter.add_(1.0)
        for part, old in zip(leaves(scores), before, strict=True):
            assert torch.equal(part, old)

    # ------------------------------------------------------------------ dtypes and devices
    def test_float64(self, device):
        scorer = self.scorer(device=device).double()
        for part in floating(scorer(self.features(3, device=device, dtype=torch.float64))):
            assert part.dtype == torch.float64
        assert self.lead(scorer(self.features(3, device=device))).dtype == torch.float64  # narrower features

    def test_factory_arguments(self, device):
        scorer = self.make(device=device, **({"dtype": torch.float64} if self.takes_dtype else {}))
        for part in (*scorer.parameters(), *scorer.buffers()):
            assert part.device.type == device.type
        if self.takes_dtype:
            assert all(parameter.dtype == torch.float64 for parameter in scorer.parameters())

    def test_autocast(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        with torch.autocast(device.type, torch.bfloat16):
            cast = scorer(features)
        plain = self.lead(scorer(features))
        torch.testing.assert_close(self.lead(cast).float(), plain.float(), rtol=0.1, atol=0.1)

    # ------------------------------------------------------------------ state
    def test_state_dict_is_pinned_contiguous_and_reloads(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        assert sorted(scorer.state_dict()) == sorted(self.keys)
        assert all(value.is_contiguous() for value in scorer.state_dict().values())
        buffer = io.BytesIO()
        torch.save(scorer.state_dict(), buffer)
        buffer.seek(0)
        other = self.make(device=device)
        other.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
        self.close(other(features), scorer(features), rtol=0, atol=0)

    @pytest.mark.parametrize("twin", [copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))])
    def test_copies(self, twin, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        made = twin(scorer)
        self.close(made(features), scorer(features), rtol=0, atol=0)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.zero_()
        assert any(parameter.any() for parameter in scorer.parameters())

    def test_reset_parameters_rebuilds_every_buffer(self):
        scorer = self.make()
        expected = {name: buffer.clone() for name, buffer in scorer.named_buffers()}
        with torch.no_grad():
            for name, part in (*scorer.named_parameters(), *scorer.named_buffers()):
                if name not in self.given:
                    part.fill_(1 if part.dtype == torch.bool else 77)
        torch.manual_seed(3)
        scorer.reset_parameters()
        for name, buffer in scorer.named_buffers():
            assert torch.equal(buffer, expected[name]), name
        drawn = [parameter.detach().clone() for parameter in scorer.parameters()]
        assert all(bool((parameter != 77).all()) for parameter in drawn)
        torch.manual_seed(3)
        scorer.reset_parameters()
        for parameter, first in zip(scorer.parameters(), drawn, strict=True):
            assert torch.equal(parameter, first)

    @pytest.mark.parametrize("context", [True, False])
    def test_loading_through_the_meta_device(self, context):
        """As Hugging Face and sharded training do: made without storage, emptied, loaded."""
        scorer, features = self.scorer(), self.features(3)
        expected = scorer(features)
        if context:
            with torch.device("meta"):
                empty = self.make()
        else:
            empty = self.make(device="meta")
        assert all(parameter.is_meta for parameter in empty.parameters())
        empty.to_empty(device="cpu")
        empty.load_state_dict(scorer.state_dict(), strict=True)
        self.close(empty(features), expected, rtol=0, atol=0)

    def test_loading_by_assignment(self):
        scorer, features = self.scorer(), self.features(3)
        with torch.device("meta"):
            empty = self.make()
        empty.load_state_dict(scorer.state_dict(), strict=True, assign=True)
        self.close(empty(features), scorer(features), rtol=0, atol=0)

    def test_shapes_without_values(self):
        scores = self.make(device="meta")(self.features(3, device="meta"))
        assert self.lead(scores).is_meta
        assert self.lead(scores).shape == self.lead(self.make()(self.features(3))).shape

    # ------------------------------------------------------------------ PyTorch's machinery
    def test_compile_fullgraph(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        torch._dynamo.reset()
        compiled = torch.compile(scorer, fullgraph=True, backend="aot_eager")
        self.close(compiled(features), scorer(features))

    def test_export_with_a_dynamic_batch(self, device):
        scorer = self.scorer(device=device)
        batch = torch.export.Dim("batch", min=2, max=64)
        example = (self.features(3, device=device),)
        program = torch.export.export(scorer, example, dynamic_shapes=({0: batch},), strict=False)
        features = self.features(11, device=device)
        self.close(program.module()(features), scorer(features))

    def test_an_exported_program_is_saved_and_loaded(self, tmp_path):
        scorer, features = self.scorer(), self.features(3)
        program = torch.export.export(scorer, (features,), strict=False)
        torch.export.save(program, tmp_path / "scorer.pt2")
        self.close(torch.export.load(tmp_path / "scorer.pt2").module()(features), scorer(features))

    def test_vmap(self, device):
        scorer, features = self.scorer(device=device), self.features(5, device=device)
        mapped = vmap(lambda row: self.lead(scorer(row)))(features)
        torch.testing.assert_close(mapped, self.lead(scorer(features)))

    def test_functional_call(self, device):
        scorer, other = self.scorer(device=device), self.scorer(device=device)
        features = self.features(3, device=device)
        self.close(functional_call(scorer, other.state_dict(), (features,)), other(features))

    def test_inference_mode(self, device):
        scorer, features = self.scorer(device=device), self.features(3, device=device)
        with torch.inference_mode():
            scores = scorer(features)
        for one, other in zip(floating(scores), floating(scorer(features)), strict=True):
            torch.testing.assert_close(one, other.detach())
            assert not one.requires_grad

    # ------------------------------------------------------------------ what it says
    def test_it_is_a_scorer_and_says_what_it_is(self):
        scorer = self.scorer()
        assert isinstance(scorer, Scorer)
        assert isinstance(scorer, nn.Module)
        assert type(scorer).__name__ in repr(scorer)
        assert self.shown in repr(scorer)

    def test_class_norms(self):
        scorer = self.scorer()
        if not self.has_norms:
            with pytest.raises(TypeError, match=f"scorer: {type(scorer).__name__} has no weight vectors"):
                scorer.class_norms()
            return
        norms = scorer.class_norms()
        assert norms.ndim == 1
        assert bool((norms >= 0).all())
        assert bool(norms.isfinite().all())

    def test_bad_features(self, device):
        scorer = self.scorer(device=device)
        features = self.features(3, device=device)
        with pytest.raises(ValueError, match=r"features: got shape \(.*5\); accepted is \(.*6\)"):
            scorer(features[..., :5])
        with pytest.raises(TypeError, match=r"features: got dtype torch\.int64"):
            scorer(features.long())
        with pytest.raises(TypeError, match="features: got list"):
            scorer(features.tolist())
        with pytest.raises(ValueError, match="features: got shape"):
            scorer(features.sum())

    def test_wider_features_are_refused(self):
        with pytest.raises(TypeError, match=r"features: are torch\.float64, but the weights torch\.float32"):
            self.scorer()(self.features(3, dtype=torch.float64))
