"""Heads as ONNX files, run by onnxruntime on other batches and lengths than the file was made with."""

import pytest
import torch

import torch_multiclass as tm
from tests.heads.every import HEADS, ROWS, inputs, names
from torch_multiclass.integrations import onnx
from torch_multiclass.integrations._programs import called, decided, plain
from torch_multiclass.integrations.onnx import Answers, to_onnx

missing = "the extra 'integrations' is not installed"


@pytest.mark.filterwarnings("default")  # of the exporter itself
@pytest.mark.parametrize("name", names("flat", "chain"))
def test_onnxruntime_answers_as_torch_does(name, tmp_path, capfd):
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)
    torch.manual_seed(0)
    model = Answers(HEADS[name]())
    to_onnx(model, inputs(name, 3, 7), tmp_path / "head.onnx")
    capfd.readouterr()
    session = runtime.InferenceSession(tmp_path / "head.onnx")
    assert capfd.readouterr() == ("", ""), "onnxruntime finds nothing to leave out"
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
@pytest.mark.parametrize("method", [None, "platt"])
def test_calibration_as_it_is_and_nothing_of_the_other_kind(method, tmp_path):
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)
    torch.manual_seed(0)
    head, features = tm.OneVsAllHead(6, 4), torch.randn(40, 6)
    if method is not None:
        head.calibrate(head(features), torch.randint(4, (40,)), method)
    model = Answers(head, "predict_proba").eval()
    program = plain(torch.export.export(model, (features,), strict=False))
    before = len(program.graph.nodes)
    assert len(decided(program).graph.nodes) < before
    assert not [node for node in program.graph.nodes if "fitted" in node.name and node.users]
    to_onnx(model, (features,), tmp_path / "head.onnx")
    found = runtime.InferenceSession(tmp_path / "head.onnx").run(None, {"features": features.numpy()})[0]
    torch.testing.assert_close(torch.as_tensor(found), model(features)[0], atol=1e-5, rtol=1e-5)


def test_one_file_and_not_a_word(tmp_path, capfd, caplog):
    """Warnings are errors here; equal columns of a code are what the exporter has words on."""
    pytest.importorskip("onnxscript", reason=missing)
    to_onnx(Answers(tm.ECOCHead(64, 10)), (torch.randn(3, 64),), tmp_path / "head.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["head.onnx"]
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


@pytest.mark.filterwarnings("default")
def test_weights_beyond_one_file_stand_beside_it(tmp_path, monkeypatch):
    pytest.importorskip("onnxscript", reason=missing)
    monkeypatch.setattr("torch_multiclass.integrations.onnx.ONE_FILE", 1000)
    to_onnx(Answers(tm.MulticlassHead(64, 10)), (torch.randn(3, 64),), tmp_path / "head.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head.onnx", "head.onnx.data"]


K_BEST = {
    "several_labels": lambda best: tm.MultilabelHead(6, 4, decoder=best),
    "second_order": lambda best: tm.SecondOrderHead(6, 3, decoder=best),
    "segments": lambda best: tm.SegmentHead(6, 2, 2, decoder=best),
    "tree": lambda best: tm.LabelTreeHead(6, 3, decoder=best),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.exhaustive) for name in K_BEST])
def test_the_best_labellings_of_every_structure(name, tmp_path):
    """A loop over ranks and divided labellings, of which capturing each takes minutes."""
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)
    torch.manual_seed(0)
    model = Answers(K_BEST[name](tm.KBestDecoder(2)), "predict")
    to_onnx(model, inputs(name, 3, 4), tmp_path / "head.onnx")
    session = runtime.InferenceSession(tmp_path / "head.onnx")
    for batch, steps in ((3, 4), (5, 9), (2, 1), (1, 20)):
        given = inputs(name, batch, steps)
        fed = {part.name: value.numpy() for part, value in zip(session.get_inputs(), given, strict=True)}
        assert torch.equal(torch.as_tensor(session.run(None, fed)[0]), model(*given)[0])


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


@pytest.mark.parametrize("kind", ["Sequential", "alone", "a module", "nested"])
def test_bare_scores_of_a_head_are_said_and_answers_are_not(kind, tmp_path, monkeypatch):
    """What it takes instead is named before anything is written."""
    network, head = torch.nn.Linear(4, 6), tm.MulticlassHead(6, 3)

    class Model(torch.nn.Module):
        def __init__(self, verb="__call__"):
            super().__init__()
            self.network, self.head, self.verb = network, head, verb

        def forward(self, features):
            scores = self.head(self.network(features))
            return scores if self.verb == "__call__" else self.head.predict(scores)

    module = {
        "Sequential": torch.nn.Sequential(network, head),
        "alone": head,
        "a module": Model(),
        "nested": torch.nn.Sequential(network, torch.nn.Sequential(head)),
    }[kind]
    example = (torch.randn(3, 6 if kind == "alone" else 4),)
    before = "" if kind == "alone" else ", backbone"
    instead = rf'to_onnx\(Answers\(head, \["predict", "predict_proba"\]{before}\), \.\.\.\)'
    with pytest.warns(UserWarning, match=f"^module: gives the bare scores of MulticlassHead.* {instead}") as told:
        called(module, example, [head])
    assert [one.filename for one in told] == [__file__]
    called(Model("predict"), (torch.randn(3, 4),), [head])  # warnings are errors in these tests
    assert not head._forward_hooks


@pytest.mark.parametrize("make", [lambda: tm.ChainHead(6, 3), lambda: tm.OneVsAllHead(6, 3)])
def test_scores_that_are_no_tensor_are_named_with_what_to_write(make, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "_needed", lambda: None)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), make())
    with pytest.raises(TypeError, match=r"^module: gives the C\w+Scores of .*Head, .*; accepted .* to_onnx\(Answers\("):
        to_onnx(module, (torch.randn(2, 5, 4),), tmp_path / "head.onnx")


def test_refusals():
    with pytest.raises(TypeError, match="head: got Linear"):
        Answers(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="answers"):
        Answers(tm.MulticlassHead(2, 2), answers=["loss"])
    for answers in ([], ["predict", "predict"], 3, None, [["predict"]]):
        with pytest.raises((TypeError, ValueError), match=r"answers: .*; accepted"):
            Answers(tm.MulticlassHead(2, 2), answers)
    assert Answers(tm.MulticlassHead(2, 2), "predict").answers == ("predict",)
    with pytest.raises(TypeError, match="backbone: got 'net'"):
        Answers(tm.MulticlassHead(2, 2), backbone="net")
    with pytest.raises(TypeError, match=r"mask: got .* with MulticlassHead; accepted is None"):
        Answers(tm.MulticlassHead(2, 2))(torch.ones(2, 2), torch.ones(2, 1, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"parents: got .* with ChainHead; accepted is None"):
        Answers(tm.ChainHead(2, 2))(torch.ones(2, 3, 2), None, torch.zeros(2, 3, dtype=torch.long))
    model = Answers(tm.MulticlassHead(2, 2))
    for given, words in (
        ((model.forward, (torch.ones(2, 2),)), "module: got"),
        ((model, torch.ones(2, 2)), "example: got Tensor"),
    ):
        with pytest.raises(TypeError, match=words):
            to_onnx(*given, "head.onnx")
    for dynamic in ([], [None, None], 3, "x"):
        with pytest.raises(ValueError, match=r"dynamic: got .*; accepted is one entry for each of 1 inputs"):
            to_onnx(model, (torch.ones(2, 2),), "head.onnx", dynamic=dynamic)
    for sizes in ("x", {7: "batch"}, {0: "two words"}, {0: 3}, {"batch": 0}):
        with pytest.raises(
            ValueError, match=r"dynamic: got .* for an input of 2 dimensions; accepted are None and names"
        ):
            to_onnx(model, (torch.ones(2, 2),), "head.onnx", dynamic=[sizes])


class Branches(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("module", "example", "options", "words"),
    [
        (None, (), {}, r"example: got \(\); accepted is a tuple of the inputs"),
        (None, (None,), {}, "example: got"),
        (None, (torch.ones(1, 2),), {}, "example: input 0 is of size 1 in dimension 0, which may have any"),
        (None, (torch.ones(2, 3),), {}, r"features: got shape \(2, 3\)"),
        (None, ("x",), {}, "features: got str"),
        (None, None, {"input_names": ["x", "y"]}, "input_names: got .*; accepted are as many names as there are, 1"),
        (None, None, {"input_names": "x"}, "input_names: got 'x'"),
        (None, None, {"output_names": ["x", "x"]}, "output_names: got .*; accepted are as many names as there are, 2"),
        (None, None, {"path": 3}, "path: got 3"),
        (None, None, {"path": b"head.onnx"}, "path: got b'head.onnx'"),
        (None, None, {"path": "no such folder/head.onnx"}, "path: got .* in a folder that is there"),
        (None, None, {"path": "."}, "path: got '.'; accepted is the name of a file"),
        (Branches(), None, {}, "module: torch cannot capture it as one graph with these sizes: .*; accepted are"),
        (
            None,
            None,
            {"dynamic": [{0: "batch", 1: "width"}]},
            "module: torch cannot capture it as one graph with these",
        ),
    ],
)
def test_each_argument_is_named(module, example, options, words, tmp_path):
    pytest.importorskip("onnxscript", reason=missing)
    module = Answers(tm.MulticlassHead(2, 3)) if module is None else module
    path = options.pop("path", tmp_path / "head.onnx")
    module.train()
    with pytest.raises((TypeError, ValueError), match=words):
        to_onnx(module, (torch.ones(2, 2),) if example is None else example, path, **options)
    assert module.training
    assert not (tmp_path / "head.onnx").exists()


@pytest.mark.filterwarnings("default")
def test_names_and_programs_as_given(tmp_path):
    pytest.importorskip("onnxscript", reason=missing)
    runtime = pytest.importorskip("onnxruntime", reason=missing)
    model = Answers(tm.MulticlassHead(6, 3), "predict")
    batch = torch.export.Dim("rows")
    program = torch.export.export(model.eval(), (torch.randn(2, 6),), dynamic_shapes=({0: batch},), strict=False)
    to_onnx(program, (torch.randn(2, 6),), tmp_path / "one.onnx", input_names=["x"], output_names=["label"])
    to_onnx(model, (torch.randn(2, 6),), tmp_path / "two.onnx", dynamic=[{0: batch}], input_names=["x"])
    x = torch.randn(5, 6)
    for name, output in (("one", "label"), ("two", "predict")):
        session = runtime.InferenceSession(tmp_path / f"{name}.onnx")
        assert [part.name for part in session.get_outputs()] == [output]
        assert session.run(None, {"x": x.numpy()})[0].tolist() == model(x)[0].tolist()
