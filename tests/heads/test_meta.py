"""Heads that are built without storage and filled later, as large models are: every buffer must come right."""

import copy

import pytest
import torch

import torch_multiclass as tm
from tests.heads import every
from torch_multiclass import codes, costs, tags

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def chain_head(**options):
    return tm.ChainHead(6, 5, constraints=tm.tag_constraints(TAGS), **options)


OWN = {
    "weighted": lambda: tm.MulticlassHead(6, 4, loss=tm.CrammerSingerLoss(weight=[1.0, 2.0, 3.0, 4.0])),
    "cost": lambda: tm.MulticlassHead(6, 3, loss=tm.M3NLoss(cost=[[0, 1, 2], [1, 0, 4], [2, 1, 0]])),
    "one_vs_all": lambda: tm.OneVsAllHead(6, 4),
    "one_vs_one": lambda: tm.OneVsOneHead(6, 5),
    "ecoc": lambda: tm.ECOCHead(6, 5, generator=torch.Generator().manual_seed(0)),
    "by hand": lambda: tm.ECOCHead(6, code=[[1, 0, 1], [-1, 1, 0], [0, -1, -1]]),
    "continuous": lambda: tm.ContinuousCodeHead(6, code="hadamard", num_classes=4),
    "chain": chain_head,
    "chain, costs": lambda: chain_head(loss=tm.M3NLoss(cost=costs.Matrix(1 - torch.eye(5, device="cpu")))),
}  # fmt: skip
HEADS = every.HEADS | OWN
every_head = pytest.mark.parametrize("name", HEADS)


def on_meta(name):
    with torch.device("meta"):
        return HEADS[name]()


def outcome(name, head):
    """All that a head says about some features."""
    generator = torch.Generator().manual_seed(1)
    if name in every.HEADS:
        given = every.inputs(name, 5, 4, generator)
    else:
        given = (torch.randn((3, 4, 6) if isinstance(head, tm.ChainHead) else (7, 6), generator=generator),)
    scores = every.scores_of(head, *given)
    labels = head.predict(scores)
    if isinstance(head.decoder, (tm.KBestDecoder, tm.RankingDecoder)):
        target = scores.decode().labels if isinstance(scores, tm.ChainScores) else scores.argmax(1)
    else:
        target = labels.roll(1, 0) if labels.ndim == 1 else labels
    return [
        head.loss(scores, target).detach(), labels, head.predict_proba(scores), head.class_scores(scores).detach()
    ]  # fmt: skip


def spoil(module):
    """What storage without values may hold."""
    for tensor in [*module.parameters(), *module.buffers()]:
        with torch.no_grad():
            tensor.fill_(float("nan") if tensor.is_floating_point() else 1)


@every_head
@pytest.mark.parametrize("way", ["to_empty", "assign", "empty after storage"])
def test_a_load_through_the_meta_device_is_complete(name, way):
    saved = HEADS[name]()
    head = HEADS[name]() if way == "empty after storage" else on_meta(name)
    if way == "assign":
        head.load_state_dict(saved.state_dict(), assign=True)
    else:
        head.to_empty(device="cpu")
        if way == "empty after storage":  # which leaves no trace of what was there
            spoil(head)
            for module in head.modules():
                if hasattr(module, "reset_parameters"):
                    module.reset_parameters()
        head.load_state_dict(saved.state_dict())
    assert not any(tensor.is_meta for tensor in [*head.parameters(), *head.buffers()])
    for given, expected in zip(outcome(name, head), outcome(name, saved), strict=True):
        torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("name", [name for name in HEADS if name != "kernel"])  # support vectors are of the data
def test_reset_parameters_writes_every_buffer_anew(name):
    """As FSDP does: storage first, then `reset_parameters` of every module that has it."""
    fresh, head = HEADS[name](), HEADS[name]()
    spoil(head)
    for module in head.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    given, expected = dict(head.named_buffers()), dict(fresh.named_buffers())
    assert given.keys() == expected.keys()
    for key in expected:
        torch.testing.assert_close(given[key], expected[key], msg=key)
    assert all(bool(parameter.isfinite().all()) for parameter in head.parameters())
    loss, _, probabilities, _ = outcome(name, head)
    assert bool(loss.isfinite())
    assert bool(probabilities.isfinite().all())


@every_head
def test_moves_and_copies_keep_what_a_buffer_holds_now(name):
    head = HEADS[name]()
    weight = getattr(head.criterion, "weight", None)
    if weight is not None:
        weight.mul_(7)
    before = {key: buffer.double().clone() for key, buffer in head.named_buffers()}
    for moved in (copy.deepcopy(head), head.double(), head.float(), head.to("cpu")):
        for key, buffer in moved.named_buffers():
            torch.testing.assert_close(buffer.double(), before[key], msg=key)


@every_head
def test_every_stored_tensor_is_contiguous(name):
    """Formats that write bytes as they lie, such as safetensors, take no others."""
    head = HEADS[name]()
    assert all(tensor.is_contiguous() for tensor in head.state_dict().values())
    assert all(buffer.is_contiguous() for buffer in head.buffers())


@pytest.mark.parametrize("code", [*codes.names.NAMES])
@pytest.mark.parametrize("k", [2, 3, 4, 5, 9])
def test_named_codes_are_silent_contiguous_and_the_same_on_meta(code, k):
    """Nobody asked for more columns than there are, so nobody is warned."""
    plain = tm.ECOCHead(3, k, code=code, generator=torch.Generator().manual_seed(0))
    with torch.device("meta"):
        bare = tm.ECOCHead(3, k, code=code, generator=torch.Generator().manual_seed(0))
    assert bare.scorer.coding_matrix.is_meta
    assert plain.scorer.coding_matrix.is_contiguous()
    bare.to_empty(device="cpu")
    assert torch.equal(bare.scorer.coding_matrix, plain.scorer.coding_matrix)
    assert bare.scorer.name == plain.scorer.name


def test_constraints_hold_their_values_on_the_meta_device():
    with torch.device("meta"):
        allowed = tm.tag_constraints(TAGS)
    for part, expected in zip(allowed, tm.tag_constraints(TAGS), strict=True):
        assert torch.equal(part, expected)
    with pytest.raises(ValueError, match=r"constraints\.transitions: is on meta and has no values"):
        tm.ChainHead(6, 5, constraints=tags.Constraints(*(part.to("meta") for part in allowed)))


def test_a_user_transposed_code_is_stored_contiguous():
    code = codes.one_vs_one(4).T.contiguous().T
    assert not code.is_contiguous()
    assert tm.CodedScorer(3, code).coding_matrix.is_contiguous()
