"""Estimators of scikit-learn (1.6 or newer) over every solver and head: numpy, pandas and any labels in and out."""

from torch_multiclass.integrations.sklearn.head import EpochsReport, HeadClassifier
from torch_multiclass.integrations.sklearn.sequences import SequenceTagger
from torch_multiclass.integrations.sklearn.solver import SolverClassifier

__all__ = ["EpochsReport", "HeadClassifier", "SequenceTagger", "SolverClassifier"]
