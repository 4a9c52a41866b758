"""The search for questions that split rows: on codes of the features, by sums over them, exact or in bins."""
