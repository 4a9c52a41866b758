"""The decoder of one label."""

import torch

import torch_multiclass as tm


def test_the_decoder_takes_the_lowest_class_of_a_tie(device):
    decode = tm.ArgmaxDecoder()
    assert decode(torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], device=device)).tolist() == [1, 0]
    images = torch.randn(2, 3, 4, 5, device=device)
    assert torch.equal(tm.ArgmaxDecoder(class_dim=1)(images), images.argmax(1))
    with torch.inference_mode():
        assert decode(torch.zeros(3, device=device)) == 0
