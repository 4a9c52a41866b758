"""What is scored, and the verbs that losses and decoders are written in."""
