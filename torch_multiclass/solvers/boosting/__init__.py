"""Boosting: weighted votes of stumps and small trees, by the objective that the weights follow."""
