"""The suite that every decoder passes.

A test class names a decoder and how scores are made of a tensor with a row for each example, and inherits everything
else::

    class TestMyDecoder(DecoderContract):
        decoder = tm.MyDecoder()

        def scores(self, values):
            return tm.CodedScores(values, CODE.to(values.device))
"""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.func import vmap

from torch_multiclass import Decoder


class DecoderContract:
    decoder: Decoder
    shape: tuple = (4,)
    """Of the values of one example."""
    labels_shape: tuple = ()
    """Of the labels of one example."""
    num_classes = 4
    class_shape: tuple = (4,)
    """Of the class scores of one example."""
    decides_by_class_scores = True
    """Whether the label is the argmax of the class scores, the lowest among equals."""
    refused = (torch.zeros(3, dtype=torch.long), "text", None)
    """What is no scores of this decoder."""

    def scores(self, values):
        raise NotImplementedError

    # ------------------------------------------------------------------ material
    def values(self, *batch, device="cpu", dtype=torch.float32):
        return torch.randn(*batch, *self.shape, device=device, dtype=dtype)

    def on_values(self):
        """A module from a plain tensor to labels."""
        return _OnValues(self.decoder, self.scores)

    # ------------------------------------------------------------------ values
    @pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (0,), (2, 0, 3)])
    def test_shapes(self, batch, device):
        scores = self.scores(self.values(*batch, device=device))
        labels = self.decoder(scores)
        assert labels.shape == (*batch, *self.labels_shape)
        assert labels.dtype == torch.int64
        assert labels.device.type == device.type
        assert self.decoder.class_scores(scores).shape == (*batch, *self.class_shape)

    def test_labels_are_classes(self, device):
        labels = self.decoder(self.scores(self.values(50, device=device)))
        assert set(labels.flatten().tolist()) <= {-100, *range(self.num_classes)}

    def test_it_decides_by_its_class_scores(self, device):
        scores = self.scores(self.values(200, device=device, dtype=torch.float64))
        if not self.decides_by_class_scores:
            pytest.skip("labels are chosen together")
        assert torch.equal(self.decoder.class_scores(scores).argmax(-1), self.decoder(scores))

    def test_equals_go_to_the_lowest(self, device):
        labels = self.decoder(self.scores(torch.zeros(3, *self.shape, device=device)))
        first = self.decoder(self.scores(torch.zeros(self.shape, device=device)))
        assert torch.equal(labels, first.expand_as(labels))
        if not self.labels_shape:
            assert not labels.any()

    def test_rows_do_not_depend_on_each_other(self, device):
        values = self.values(20, device=device)
        whole = self.decoder(self.scores(values))
        for i in (0, 11, 19):
            assert torch.equal(self.decoder(self.scores(values[i])), whole[i])
        assert torch.equal(self.decoder(self.scores(values.flip(0))).flip(0), whole)
        far = values.clone()
        far[1:] *= 1e4
        assert torch.equal(self.decoder(self.scores(far))[0], whole[0])

    def test_it_repeats(self, device):
        scores = self.scores(self.values(9, device=device))
        state = torch.random.get_rng_state()
        assert torch.equal(self.decoder(scores), self.decoder(scores))
        assert torch.equal(torch.random.get_rng_state(), state)

    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
    def test_half_precision_is_read_in_float32(self, half, device):
        values = self.values(30, device=device).to(half)
        scores, full = self.scores(values), self.scores(values.float())
        assert torch.equal(self.decoder(scores), self.decoder(full))
        torch.testing.assert_close(
            self.decoder.class_scores(scores).float(), self.decoder.class_scores(full), rtol=1e-2, atol=1e-2
        )

    def test_float64(self, device):
        values = self.values(30, device=device)
        assert torch.equal(self.decoder(self.scores(values.double())), self.decoder(self.scores(values)))

    def test_autocast_changes_nothing(self, device):
        scores = self.scores(self.values(30, device=device))
        with torch.autocast(device.type, torch.bfloat16):
            labels = self.decoder(scores)
        assert torch.equal(labels, self.decoder(scores))

    # ------------------------------------------------------------------ PyTorch's machinery
    def test_labels_have_no_history_and_scores_stay(self, device):
        values = self.values(3, device=device)
        before = values.clone()
        leaf = values.clone().requires_grad_()
        assert not self.decoder(self.scores(leaf)).requires_grad
        self.decoder.class_scores(self.scores(values))
        self.decoder(self.scores(values))
        assert torch.equal(values, before)
        assert not values.requires_grad

    def test_class_scores_of_finite_scores_are_numbers(self, device):
        assert not self.decoder.class_scores(self.scores(self.values(9, device=device))).isnan().any()

    def test_inference_mode(self, device):
        values = self.values(3, device=device)
        expected = self.decoder(self.scores(values))
        with torch.inference_mode():
            assert torch.equal(self.decoder(self.scores(values)), expected)
            assert torch.equal(self.decoder(self.scores(values.clone())), expected)

    def test_compile_fullgraph(self, device):
        values = self.values(6, device=device)
        torch._dynamo.reset()
        compiled = torch.compile(self.on_values(), fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(values), self.decoder(self.scores(values)))

    def test_export_with_a_dynamic_batch(self, device):
        batch = torch.export.Dim("batch", min=2, max=64)
        example = (self.values(3, device=device),)
        program = torch.export.export(self.on_values(), example, dynamic_shapes=({0: batch},), strict=False)
        values = self.values(11, device=device)
        assert torch.equal(program.module()(values), self.decoder(self.scores(values)))

    def test_an_exported_program_is_saved_and_loaded(self, tmp_path):
        program = torch.export.export(self.on_values(), (self.values(3),), strict=False)
        torch.export.save(program, tmp_path / "decoder.pt2")
        values = self.values(3)
        loaded = torch.export.load(tmp_path / "decoder.pt2").module()
        assert torch.equal(loaded(values), self.decoder(self.scores(values)))

    def test_vmap(self, device):
        values = self.values(5, device=device)
        assert torch.equal(vmap(self.on_values())(values), self.decoder(self.scores(values)))

    def test_shapes_without_values(self):
        labels = self.decoder(self.scores(self.values(3, device="meta")))
        assert labels.is_meta
        assert labels.shape == (3, *self.labels_shape)

    @pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
    def test_copies(self, twin, device):
        scores = self.scores(self.values(9, device=device))
        assert torch.equal(twin(self.decoder)(scores), self.decoder(scores))

    def test_it_is_stateless_and_says_what_it_is(self):
        assert isinstance(self.decoder, Decoder)
        assert isinstance(self.decoder, nn.Module)
        assert list(self.decoder.state_dict()) == []
        assert list(self.decoder.parameters()) == []
        assert repr(self.decoder).startswith(type(self.decoder).__name__ + "(")

    def test_what_is_no_scores_is_named(self):
        for wrong in self.refused:
            with pytest.raises(TypeError, match="scores: got "):
                self.decoder(wrong)
            with pytest.raises(TypeError, match="scores: got "):
                self.decoder.class_scores(wrong)


class _OnValues(nn.Module):
    def __init__(self, decoder, scores):
        super().__init__()
        self.decoder, self.scores = decoder, scores

    def forward(self, values):
        return self.decoder(self.scores(values))
