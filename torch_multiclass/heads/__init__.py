"""Scorer, loss and decoder in one module."""

from torch_multiclass.heads.base import Head
from torch_multiclass.heads.chain import ChainHead
from torch_multiclass.heads.flat import MulticlassHead

__all__ = ["ChainHead", "Head", "MulticlassHead"]
