"""Online learners: visit a row, compare its scores, move the weights of a few classes along the row."""

from torch_multiclass.ops.online.descent import Descent, descend
from torch_multiclass.ops.online.loop import pieces, visit, visit_chains
from torch_multiclass.ops.online.records import Asked, Rows, Rule, State

__all__ = ["Asked", "Descent", "Rows", "Rule", "State", "descend", "pieces", "visit", "visit_chains"]
