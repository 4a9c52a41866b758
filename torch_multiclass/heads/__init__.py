"""Scorer, loss and decoder in one module."""
