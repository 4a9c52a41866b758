"""Tables of papers, done again: which settings, how far from the printed figures, and how sure."""
