"""Learners that see one row at a time."""
