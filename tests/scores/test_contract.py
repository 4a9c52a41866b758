"""Every scored structure passes the contract."""

import itertools

import torch

import torch_multiclass as tm
from tests.contracts.scores import ScoresContract
from tests.references.segments import SegmentScores, enumerated


class TestFlat(ScoresContract):
    def draw(self, dtype=torch.float64, device="cpu"):
        g = torch.Generator().manual_seed(0)
        return tm.FlatScores(torch.randn(4, 5, generator=g, dtype=torch.float64).to(device, dtype))

    def enumerated(self, scores):
        return torch.arange(scores.num_classes), scores.tensor.detach().double()


class TestChain(ScoresContract):
    per_step = False

    def draw(self, dtype=torch.float64, device="cpu"):
        g = torch.Generator().manual_seed(0)

        def numbers(*shape):
            return torch.randn(shape, generator=g, dtype=torch.float64).to(device, dtype)

        moves = numbers(3, 3, 3, 3) if self.per_step else numbers(3, 3)
        return tm.ChainScores(numbers(3, 4, 3), moves, start=numbers(3), end=numbers(3, 3))

    def enumerated(self, scores):
        k = scores.num_classes
        y = torch.tensor([path[::-1] for path in itertools.product(range(k), repeat=4)])
        e, moves = scores.emissions.detach().double(), scores.transitions.detach().double()
        total = torch.zeros(len(e), len(y), dtype=torch.float64)
        for t in range(4):
            total += e[:, t, y[:, t]]
            if t:
                total += moves[:, t - 1, y[:, t - 1], y[:, t]] if moves.ndim == 4 else moves[y[:, t - 1], y[:, t]]
        return y, total + scores.start.detach().double()[..., y[:, 0]] + scores.end.detach().double()[..., y[:, -1]]


class TestChainWithAMatrixEachStep(TestChain):
    per_step = True


class TestSegments(ScoresContract):
    """A structure that the package does not have: its record is all it says."""

    exact_slack = has_top = has_sample = False
    opaque = True  # its best labelling is read back in Python

    def draw(self, dtype=torch.float64, device="cpu"):
        g = torch.Generator().manual_seed(0)
        segments, moves = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((3, 4, 3, 2), (2, 2)))
        return SegmentScores(segments.to(device, dtype), moves.to(device, dtype))

    def enumerated(self, scores):
        return enumerated(scores)
