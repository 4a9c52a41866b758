"""What a user may rely on everywhere: mirrored names, defaults, and the meaning of a shape."""

import inspect
import re

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.functional._reduction import Frame


def snake(name):
    """CRFLoss -> crf_loss, M3NLoss -> m3n_loss, SVMStructLoss -> svmstruct_loss, AdaBoostLoss -> adaboost_loss."""
    special = {"SVMStructLoss": "svmstruct_loss", "AdaBoostLoss": "adaboost_loss"}
    return special.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


LOSSES = sorted(name for name in tm.__all__ if name.endswith("Loss") and name != "Loss")


def arguments(function, of_module=False):
    """Keyword arguments and their defaults, those of the shared frame written out."""
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            shared = inspect.signature(tm.Loss.__init__).parameters
            names = set(shared) - {"self"} if of_module else set(Frame.__annotations__)
            given |= {n: shared[n].default for n in names}
        elif name not in ("self", "scores", "target"):
            given[name] = parameter.default
    return given


@pytest.mark.parametrize("name", LOSSES)
def test_a_module_and_its_function_share_names_and_defaults(name):
    module, function = getattr(tm, name), getattr(tm.functional, snake(name))
    of_call = arguments(module.forward)  # what comes with the data: a weight for each example
    assert arguments(module.__init__, of_module=True) | of_call == arguments(function)


@pytest.mark.parametrize("name", LOSSES)
def test_the_frame_of_every_loss(name):
    given = arguments(getattr(tm, name).__init__, of_module=True)
    assert given["reduction"] == "mean"
    assert given["ignore_index"] == -100
    assert given["class_dim"] == -1
    assert given["weight"] is None
    assert given["validate_args"] is None


def test_labels_are_checked_by_default_on_the_cpu_only():
    scores, target = torch.zeros(2, 3), torch.tensor([0, 7])
    with pytest.raises(ValueError, match="label 7 is outside"):
        tm.CRFLoss()(scores, target)
    meta = tm.CRFLoss()(scores.to("meta"), target.to("meta"))  # a device whose values cannot be read
    assert meta.shape == ()


def test_one_example_without_a_batch():
    scores, target = torch.tensor([2.0, 1.5, 1.8, 1.0]), torch.tensor(0)
    assert tm.CrammerSingerLoss()(scores, target).item() == pytest.approx(0.8)
    assert tm.MulticlassHead(5, 4).predict(scores) == 0


def test_random_draws_come_from_the_generator():
    scores = tm.FlatScores(torch.zeros(1, 1000))
    draws = [scores.sample(50, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    state = torch.random.get_rng_state()
    scores.sample(50, generator=torch.Generator().manual_seed(1))
    assert torch.equal(*draws)
    assert torch.equal(torch.random.get_rng_state(), state)
