"""Training without gradients through a network; the result is always a scorer."""

from torch_multiclass.checks import lacks
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.binary import BinaryLearner, BinaryLeastSquares, BinaryLogistic
from torch_multiclass.solvers.boosting.machines import AdaBoost, AdaBoostAveraged, AdaBoostMH, AdaBoostMR
from torch_multiclass.solvers.boosting.output_codes import AdaBoostMO
from torch_multiclass.solvers.boosting.report import Rounds
from torch_multiclass.solvers.confidence import ConfidenceReport, boost_confidence
from torch_multiclass.solvers.cutting_plane import CuttingPlane
from torch_multiclass.solvers.frank_wolfe import FrankWolfe
from torch_multiclass.solvers.monitor import Interrupted
from torch_multiclass.solvers.online.constraints import ConstraintClassifier
from torch_multiclass.solvers.online.learner import Mistakes
from torch_multiclass.solvers.online.perceptron import PassiveAggressive, Perceptron
from torch_multiclass.solvers.online.winnow import BalancedWinnow, WinnowReport
from torch_multiclass.solvers.pegasos import Pegasos, PegasosReport
from torch_multiclass.solvers.planes import Planes, planes
from torch_multiclass.solvers.reduction.reduction import CodedReduction
from torch_multiclass.solvers.reduction.report import ColumnsReport
from torch_multiclass.solvers.report import Certificate, Report
from torch_multiclass.solvers.structured import PlaneCertificate
from torch_multiclass.solvers.svm.machine import DualSVM
from torch_multiclass.solvers.trees.bagging import Bagging
from torch_multiclass.solvers.trees.forest import RandomForest, RandomTrees
from torch_multiclass.solvers.trees.report import ForestReport, TreeReport
from torch_multiclass.solvers.trees.tree import DecisionTree

__all__ = [
    "AdaBoost",
    "AdaBoostAveraged",
    "AdaBoostMH",
    "AdaBoostMO",
    "AdaBoostMR",
    "Bagging",
    "BalancedWinnow",
    "BinaryLearner",
    "BinaryLeastSquares",
    "BinaryLogistic",
    "Certificate",
    "CodedReduction",
    "ColumnsReport",
    "ConfidenceReport",
    "ConstraintClassifier",
    "CuttingPlane",
    "DecisionTree",
    "DualSVM",
    "Fit",
    "ForestReport",
    "FrankWolfe",
    "Interrupted",
    "Mistakes",
    "PassiveAggressive",
    "Pegasos",
    "PegasosReport",
    "Perceptron",
    "PlaneCertificate",
    "Planes",
    "RandomForest",
    "RandomTrees",
    "Report",
    "Rounds",
    "Solver",
    "TreeReport",
    "WinnowReport",
    "boost_confidence",
    "planes",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
