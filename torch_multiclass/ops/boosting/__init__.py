"""The objectives of boosting: how each weighs the rows, votes at the leaves, and steps."""

from torch_multiclass.ops.boosting.averaged import Averaged
from torch_multiclass.ops.boosting.objective import NO_BETTER, Objective, Round
from torch_multiclass.ops.boosting.pairs import Confidence, Discrete
from torch_multiclass.ops.boosting.ranking import Ranking

__all__ = ["NO_BETTER", "Averaged", "Confidence", "Discrete", "Objective", "Ranking", "Round"]
