"""Data modules of the recipes."""
