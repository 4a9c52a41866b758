"""From features to scores: the modules that own the learnable parameters."""
