"""Heads as ONNX files, run by onnxruntime on other batches and lengths than the file was made with."""

import pytest
import torch

import torch_multiclass as tm
from tests.heads.every import HEADS, ROWS, inputs, names
from torch_multiclass.integrations.onnx import Answers, plain, to_onnx

missing = "the extra 'integrations' is not installed"


@pytest.mark.filterwarnings("default")  # of the exporter itself
@pytest.mark.parametrize("name", names("flat", "chain"))
def test_onnxruntime_answers_as_torch_does(name, tmp_path):
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)
    torch.manual_seed(0)
    model = Answers(HEADS[name]())
    to_onnx(model, inputs(name, 3, 7), tmp_path / "head.onnx")
    session = runtime.InferenceSession(tmp_path / "head.onnx")
    assert [part.name for part in session.get_outputs()] == ["predict", "predict_proba"]
    assert [part.name for part in session.get_inputs()] == ["features", "mask", "parents"][: len(inputs(name, 1, 1))]
    lead = ["batch"] if name in ROWS else ["batch", "length"]
    for part in session.get_inputs():
        assert part.shape[: len(lead)] == lead
    assert session.get_outputs()[1].shape[: len(lead)] == lead
    for batch, steps in ((3, 7), (11, 13), (2, 1), (1, 40)):
        given = inputs(name, batch, steps)
        fed = {part.name: value.numpy() for part, value in zip(session.get_inputs(), given, strict=True)}
        labels, probabilities = map(torch.as_tensor, session.run(None, fed))
        assert torch.equal(labels, model(*given)[0])
        torch.testing.assert_close(probabilities, model(*given)[1], atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("default")
def test_sorting_along_the_last_dimension(tmp_path):
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)

    class Ranks(torch.nn.Module):
        def forward(self, scores):
            return torch.sort(scores, dim=-1, descending=True, stable=True)

    scores = torch.tensor([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 5.0, 0.0]])
    to_onnx(Ranks(), (scores,), tmp_path / "ranks.onnx")
    session = runtime.InferenceSession(tmp_path / "ranks.onnx")
    values, order = session.run(None, {session.get_inputs()[0].name: scores.numpy()})
    assert order.tolist() == [[1, 2, 3, 0], [2, 0, 1, 3]]
    assert values.tolist() == [[3.0, 3.0, 2.0, 1.0], [5.0, 0.0, 0.0, 0.0]]


@pytest.mark.filterwarnings("default")
def test_a_derivative_has_no_form():
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = tm.ChainHead(6, 3)

        def forward(self, features):
            return self.head(features).pair_marginals()

    program = torch.export.export(Loss(), (torch.randn(2, 5, 6),), strict=False)
    with pytest.raises(ValueError, match="module: takes a derivative"):
        plain(program)


def test_refusals():
    with pytest.raises(TypeError, match="head: got Linear"):
        Answers(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="answers"):
        Answers(tm.MulticlassHead(2, 2), answers=["loss"])
    model = Answers(tm.MulticlassHead(2, 2))
    for given, words in (
        ((model.forward, (torch.ones(2, 2),)), "module: got"),
        ((model, torch.ones(2, 2)), "example: got tensor"),
    ):
        with pytest.raises(TypeError, match=words):
            to_onnx(*given, "head.onnx")
    for dynamic in ([], [None, None], 3):
        with pytest.raises(ValueError, match=r"dynamic: got .*; accepted is one entry for each of 1 inputs"):
            to_onnx(model, (torch.ones(2, 2),), "head.onnx", dynamic=dynamic)
