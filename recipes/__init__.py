"""Lightning recipes, run from a checkout."""
