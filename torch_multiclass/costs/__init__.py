"""What a wrong label costs: ``L(y, y') >= 0`` with ``L(y, y) = 0``.

A cost answers one question, `rows`: what does each class cost where the label is ``y``? On a sequence the cost of a
labelling is the sum of its positions' costs. Wherever a cost is accepted, so are a name (``"zero_one"``,
``"hamming"``), a ``(K, K)`` matrix as a tensor or nested lists (row = true class), and ``(*, K, K)`` matrices, one for
each example.
"""

from __future__ import annotations

from torch_multiclass.checks import lacks
from torch_multiclass.costs.cost import Cost, Hamming, Matrix, ZeroOne, as_cost
from torch_multiclass.costs.cost import named_cost as named_cost
from torch_multiclass.costs.cost import trusted as trusted
from torch_multiclass.costs.graphs import graph, hierarchy

__all__ = ["Cost", "Hamming", "Matrix", "ZeroOne", "as_cost", "graph", "hierarchy"]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
