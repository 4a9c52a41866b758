"""Independent positions against enumeration."""

import torch

from tests.ops.structures import RecordContract, forbid
from tests.references.structures import enumerate_independent
from torch_multiclass.ops.independent import Independent


class TestIndependent(RecordContract):
    def draw(self, g, *, dtype=torch.float64):
        batch, steps, k = (int(torch.randint(low, high, (), generator=g)) for low, high in [(1, 4), (1, 6), (1, 4)])
        mask = torch.rand(batch, steps, generator=g) < 0.7 if torch.rand((), generator=g) < 0.5 else None
        return Independent(forbid(g, torch.randn(batch, steps, k, generator=g, dtype=dtype)), mask)

    def leaves(self, record):
        return [record.emissions]

    def rebuild(self, record, leaves):
        return record._replace(emissions=leaves[0])

    def rows(self, record):
        return [enumerate_independent(e, kept) for e, kept in zip(record.emissions, record.inside(), strict=True)]

    def extended(self, record, extra, junk):
        e = record.emissions
        e = torch.cat([e, e.new_full((len(e), extra, e.shape[2]), junk)], 1)
        return Independent(e, torch.nn.functional.pad(record.inside(), (0, extra)))
