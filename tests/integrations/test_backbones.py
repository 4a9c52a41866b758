"""Networks of timm and torchvision, drawn at random, before heads: trained, and back from disk."""

import importlib
import sys

import pytest
import torch
from torch import nn

import torch_multiclass as tm


def library(name):
    """The library, or a skip: torchvision is made for one torch each, and fails in many ways beside another."""
    try:
        without_detection()
        return importlib.import_module(name)
    except Exception as error:
        pytest.skip(f"{name} cannot be imported here: {type(error).__name__}: {str(error)[:80]}")


def without_detection():
    """Let torchvision be imported, by timm too, where it was built for CUDA and torch was not.

    Its detection operators are missing then, which no backbone has; it names two of them on import.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for part in [part for part in sys.modules if part.partition(".")[0] == "torchvision"]:
            del sys.modules[part]
        for operator in ("nms", "qnms"):
            DECLARED.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


DECLARED = torch.library.Library("torchvision", "FRAGMENT")


def of_timm():
    network = library("timm").create_model("resnet10t", pretrained=False, num_classes=0)
    return network, network.num_features


def of_torchvision():
    network = library("torchvision").models.resnet18(weights=None)
    width, network.fc = network.fc.in_features, nn.Identity()
    return network, width


@pytest.mark.filterwarnings("default")  # of the libraries themselves
@pytest.mark.parametrize("backbone", [of_timm, of_torchvision])
def test_a_backbone_is_trained_with_a_head(backbone, tmp_path):
    torch.manual_seed(0)
    network, width = backbone()
    heads = [tm.MulticlassHead(width, 3, loss="crammer_singer"), tm.ECOCHead(width, 3), tm.OneVsOneHead(width, 3)]
    images, labels = torch.randn(6, 3, 64, 64), torch.arange(6) % 3
    model = nn.ModuleDict({"network": network, "heads": nn.ModuleList(heads)})
    optimizer, seen = torch.optim.Adam(model.parameters(), 1e-3), []
    for _ in range(8):
        features = network(images)
        loss = sum(head.loss(head(features), labels) for head in heads)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(float(loss.detach()))
    assert seen[-1] < seen[0] / 2
    torch.save(model.state_dict(), tmp_path / "model.pt")
    model.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True), strict=True)
    features = network.eval()(images)
    for head in heads:
        assert head.predict_proba(head(features)).shape == (6, 3)
