"""Scorers of codes against their definition."""

import torch

import torch_multiclass as tm
from torch_multiclass import codes


def test_similarities_against_the_definition():
    code = codes.hadamard(4)
    features = torch.randn(5, 6, dtype=torch.float64)
    for similarity in ("inner_product", "gaussian"):
        scorer = tm.ContinuousCodeScorer(6, code, similarity, gamma=0.3, dtype=torch.float64)
        margins = features @ scorer.margins.weight.T + scorer.margins.bias
        for y in range(4):
            expected = margins @ code[y].double()
            if similarity == "gaussian":
                expected = torch.exp(-0.3 * ((margins - code[y]) ** 2).sum(-1))
            torch.testing.assert_close(scorer(features)[:, y], expected)
