"""Exported programs as ONNX has forms for them; no ONNX is needed."""

import warnings

import pytest
import torch
from torch import nn

import torch_multiclass as tm
from torch_multiclass.integrations._programs import decided, plain, unwarned, weight

pytestmark = pytest.mark.skipif(torch.__version__ < "2.13", reason="exported from torch 2.13 on")


class Answer(nn.Module):
    """What a head predicts."""

    def __init__(self, head, method="predict"):
        super().__init__()
        self.head, self.method = head, method

    def forward(self, features):
        return getattr(self.head, self.method)(self.head(features))


class Flagged(nn.Module):
    """One of two results, by a flag that is a buffer."""

    def __init__(self, flag):
        super().__init__()
        self.register_buffer("flag", torch.tensor(flag))

    def forward(self, x):
        return torch.where(self.flag, x.exp(), x * 2)


def names(program):
    return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_operators_of_this_library_are_written_out(method):
    head, features = tm.ChainHead(3, 4), torch.randn(2, 5, 3)
    module = Answer(head, method).eval()
    with torch.no_grad():
        program = torch.export.export(module, (features,))
    assert any("torch_multiclass" in name for name in names(program))
    written = plain(program)
    assert not any("torch_multiclass" in name for name in names(written))
    torch.testing.assert_close(written.module()(features), module(features))


@pytest.mark.parametrize("flag", [True, False])
def test_what_a_flag_never_chooses_is_left_out(flag):
    x, module = torch.randn(3), Flagged(flag)
    program = decided(torch.export.export(module, (x,)))
    assert names(program) == {"aten.exp.default" if flag else "aten.mul.Tensor"}
    assert torch.equal(program.module()(x), module(x))


def test_the_bytes_of_a_program():
    module = nn.Linear(3, 4)
    assert weight(torch.export.export(module, (torch.ones(1, 3),))) == 4 * (3 * 4 + 4)


def test_what_others_say_of_themselves_is_not_passed_on():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with unwarned():
            warnings.warn("theirs", FutureWarning, stacklevel=1)
            warnings.warn("ours", UserWarning, stacklevel=1)
    assert [str(one.message) for one in said] == ["ours"]
