"""Sparse rows answer every verb as the same rows do densely."""

import pytest
import torch

from torch_multiclass.solvers.space import NONE, Constant, LinearSpace
from torch_multiclass.solvers.sparse_space import SparseSpace

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
ROWS = torch.tensor([4, 0, 7])


@pytest.fixture(params=[NONE, Constant(1.0), Constant(0.0, free=True)], ids=["plain", "bias", "free"])
def spaces(request):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(9, 5, dtype=torch.float64, generator=generator)
    features = features * (torch.rand(9, 5, generator=generator) < 0.6)
    sparse = SparseSpace(features.to_sparse_csr(), torch.float64, request.param)
    return sparse, LinearSpace(features, torch.float64, request.param)


VERBS = {
    "squared_norms": lambda space, weight, alpha: space.squared_norms,
    "zero": lambda space, weight, alpha: space.zero(3),
    "scores": lambda space, weight, alpha: space.scores(weight),
    "scores of rows": lambda space, weight, alpha: space.scores(weight, ROWS),
    "image": lambda space, weight, alpha: space.image(alpha),
    "image of rows": lambda space, weight, alpha: space.image(alpha[ROWS], ROWS),
    "energy": lambda space, weight, alpha: space.energy(alpha[ROWS], ROWS),
    "gram_matrix": lambda space, weight, alpha: space.gram_matrix(ROWS),
    "gram_product": lambda space, weight, alpha: space.gram_product(ROWS)(alpha[ROWS]),
    "exact": lambda space, weight, alpha: space.exact(weight, alpha),
    "evaluated": lambda space, weight, alpha: space.evaluated(weight),
    "bias_part": lambda space, weight, alpha: space.bias_part(weight),
    "along_bias": lambda space, weight, alpha: space.along_bias(weight[:, -1]),
    "charged": lambda space, weight, alpha: space.charged(weight),
    "charged_squares": lambda space, weight, alpha: space.charged_squares(weight),
    "saved": lambda space, weight, alpha: space.saved(weight),
    "restored": lambda space, weight, alpha: space.restored(space.saved(weight)),
    "widened": lambda space, weight, alpha: space.widened().scores(weight),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_as_dense_rows(spaces, verb):
    sparse, dense = spaces
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(dense.zero(3).shape, dtype=torch.float64, generator=generator)
    alpha = torch.randn(9, 3, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(verb(sparse, weight, alpha), verb(dense, weight, alpha))
