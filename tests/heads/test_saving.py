"""Every head, as what it has learned lies on disk: in files of safetensors, and of torch that run no code."""

import pytest
import torch
from torch import nn

import torch_multiclass as tm
from tests.heads.every import HEADS, inputs, scores_of, target_of

every_head = pytest.mark.parametrize("name", HEADS)


def trained(name):
    """A head that is not as it was made: a step, a calibration and a class left out."""
    torch.manual_seed(0)
    head, given = HEADS[name](), inputs(name, 8, 5)
    scores = scores_of(head, *given)
    target = target_of(head, scores)
    optimizer = torch.optim.SGD(head.parameters(), 0.1)
    head.loss(scores, target).backward()
    optimizer.step()
    scores = scores_of(head, *given)
    head.calibrate(scores, target)
    if not isinstance(head, (tm.MultilabelHead, tm.SegmentHead)):
        with pytest.warns(UserWarning, match="target: "):
            head.leave_out_absent(torch.arange(head.num_classes - 1))
    return head


def same(name, ours, theirs):
    given = inputs(name, 6, 4)
    for verb in ("predict", "predict_proba", "class_scores"):
        own, other = (getattr(head, verb)(scores_of(head, *given)) for head in (ours, theirs))
        assert torch.equal(own, other), verb


@every_head
def test_safetensors(name, tmp_path):
    files = pytest.importorskip("safetensors.torch", reason="the extra 'integrations' is not installed")
    head = trained(name)
    files.save_file(head.state_dict(), tmp_path / "head.safetensors")
    other = HEADS[name]()
    other.load_state_dict(files.load_file(tmp_path / "head.safetensors"), strict=True)
    same(name, head, other)
    model, twin = (nn.ModuleDict({"encoder": nn.Linear(2, 2), "head": part}) for part in (head, trained(name)))
    with torch.no_grad():
        for part in twin.parameters():
            part.zero_()
    files.save_model(model, tmp_path / "model.safetensors")
    assert files.load_model(twin, tmp_path / "model.safetensors") == (set(), [])
    same(name, head, twin["head"])


@every_head
def test_files_of_torch_run_no_code(name, tmp_path):
    head = trained(name)
    scores = scores_of(head, *inputs(name, 6, 4))
    optimizer = torch.optim.Adam(head.parameters())
    kept = {"head": head.state_dict(), "scores": scores, "optimizer": optimizer.state_dict()}
    torch.save(kept, tmp_path / "all.pt")
    found = torch.load(tmp_path / "all.pt", weights_only=True)
    other = HEADS[name]()
    other.load_state_dict(found["head"], strict=True)
    same(name, head, other)
    assert torch.equal(head.predict(found["scores"]), head.predict(scores))
