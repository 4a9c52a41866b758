"""Training without gradients through a network; the result is always a scorer."""

from torch_multiclass.solvers.base import Fit, Report
from torch_multiclass.solvers.binary import BinaryLeastSquares, BinaryLogistic
from torch_multiclass.solvers.pegasos import Pegasos, PegasosReport
from torch_multiclass.solvers.svm.machine import DualSVM

__all__ = [
    "BinaryLeastSquares",
    "BinaryLogistic",
    "DualSVM",
    "Fit",
    "Pegasos",
    "PegasosReport",
    "Report",
]
