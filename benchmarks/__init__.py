"""Speed and memory against the peers."""
