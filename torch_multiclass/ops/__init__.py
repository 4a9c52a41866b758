"""Numerics on tensors: recursions, gradients, custom ops. Knows no class of this library."""
