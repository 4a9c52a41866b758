"""Training without gradients through a network; the result is always a scorer."""
