"""Binary scorers side by side, with the column as an attribute, and those of other libraries."""

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.contracts.scorer import ScorerContract
from torch_multiclass import scorers


class TestColumns(ScorerContract):
    keys = ("columns.0.bias", "columns.0.weight", "columns.2.weight", "columns.3.bias", "columns.3.weight")
    shown = "num_classes=4"
    has_norms = False

    def make(self, **factory):
        linear = [tm.LinearScorer(6, 1, **factory), None, tm.LinearScorer(6, 2, bias=False, **factory)]
        return scorers.ColumnsScorer([*linear, tm.LinearScorer(6, 1, **factory)], 6)


class TestAttribute(ScorerContract):
    keys = ("scorer.bias", "scorer.weight")
    has_norms = False

    def make(self, **factory):
        return scorers.AttributeScorer(tm.LinearScorer(10, 1, **factory), 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "make",
    [
        lambda: scorers.AttributeScorer(tm.LinearScorer(10, 1), 4),
        lambda: tm.LinearScorer(6, 3),
        lambda: tm.ChainScorer(6, 3),
        lambda: tm.RandomFourierScorer(6, 3, 8),
    ],
)
def test_features_of_every_dtype_within_autocast(make, dtype):
    """Float64, which autocast leaves as it is, is no wider than the weights then, nor are the weights."""
    scorer, x = make(), torch.ones(2, 5, 6, dtype=dtype)
    expected = scorer(x.float())
    for each in (scorer, scorer.double()):
        with torch.autocast("cpu", torch.bfloat16):
            found = each(x)
        parts = [part if isinstance(part, torch.Tensor) else part.emissions for part in (found, expected)]
        torch.testing.assert_close(*[part.double() for part in parts], rtol=0.05, atol=0.05)


class TestInteraction(ScorerContract):
    keys = ("scorer.bias", "scorer.weight")
    has_norms = False
    shown = "interaction=True"

    def make(self, **factory):
        return scorers.AttributeScorer(tm.LinearScorer(24, 2, **factory), 4, interaction=True, silent=[1])


def test_columns_are_those_of_their_scorers():
    made, x = TestColumns().scorer(), torch.randn(5, 6)
    scores = made(x)
    two = made.columns["2"](x)
    assert torch.equal(scores[:, 0], made.columns["0"](x)[:, 0])
    assert torch.equal(scores[:, 1], torch.zeros(5))
    assert torch.equal(scores[:, 2], two[:, 1] - two[:, 0])


@pytest.mark.parametrize("interaction", [False, True])
def test_an_attribute_is_one_hot(interaction):
    inner = tm.LinearScorer(24 if interaction else 10, 1)
    made, x = scorers.AttributeScorer(inner, 4, interaction, silent=[3]), torch.randn(5, 6)
    for s in range(4):
        attribute = torch.eye(4)[s]
        rows = [torch.outer(attribute, row).flatten() if interaction else torch.cat([row, attribute]) for row in x]
        right = inner(torch.stack(rows))[:, 0] if s < 3 else torch.zeros(5)
        torch.testing.assert_close(made(x)[:, s], right)


@pytest.mark.parametrize("interaction", [False, True])
def test_one_feature_is_enough(interaction):
    assert scorers.AttributeScorer(tm.LinearScorer(4 if interaction else 5, 1), 4, interaction).in_features == 1


def test_bad_parts():
    with pytest.raises(ValueError, match="columns: there are none"):
        scorers.ColumnsScorer([], 3)
    with pytest.raises(ValueError, match="columns: one is LinearScorer"):
        scorers.ColumnsScorer([tm.LinearScorer(3, 3)], 3)
    with pytest.raises(ValueError, match=r"scorer: is .*; accepted is one of D plus 3 features"):
        scorers.AttributeScorer(tm.LinearScorer(3, 1), 3)
    with pytest.raises(ValueError, match=r"scorer: is .*; accepted is one of D times 3 features"):
        scorers.AttributeScorer(tm.LinearScorer(4, 1), 3, interaction=True)
    with pytest.raises(TypeError, match="learner: got object; accepted is one with decision_function"):
        scorers.OutsideScorer(object(), 3)


class Sum:
    def decision_function(self, X):
        assert X.dtype in (np.float32, np.float64)
        return X.sum(1)


@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (0,)])
def test_a_classifier_of_another_library(batch):
    x = torch.randn(*batch, 3)
    scores = scorers.OutsideScorer(Sum(), 3, factor=0.5)(x)
    torch.testing.assert_close(scores, x.sum(-1, keepdim=True) / 2)
    half = scorers.OutsideScorer(Sum(), 3)(x.bfloat16())
    assert half.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo, torch.strided])
def test_columns_that_say_nothing_of_sparse_rows(layout):
    rows = torch.eye(3) if layout == torch.strided else torch.eye(3).to_sparse(layout=layout)
    found = scorers.ColumnsScorer([None, None], 3)(rows)
    assert (found.shape, found.layout, found.dtype) == ((3, 2), torch.strided, torch.float32)
    assert (found == 0).all()
