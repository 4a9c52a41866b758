"""Online learners: visit a row, compare its scores, move the weights of a few classes along the row."""

from torch_multiclass.ops.online.loop import pieces, visit, visit_chains
from torch_multiclass.ops.online.records import Asked, Rows, Rule, State

__all__ = ["Asked", "Rows", "Rule", "State", "pieces", "visit", "visit_chains"]
