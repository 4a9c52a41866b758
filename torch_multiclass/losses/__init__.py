"""Losses as modules: thin wrappers over torch_multiclass.functional."""
