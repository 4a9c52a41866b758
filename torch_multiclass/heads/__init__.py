"""Scorer, loss and decoder in one module."""

from torch_multiclass.heads.base import Head
from torch_multiclass.heads.flat import MulticlassHead

__all__ = ["Head", "MulticlassHead"]
