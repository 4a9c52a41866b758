"""How the names of heads, codes and losses may be spelled; nothing is imported, so that a command line can ask too."""

from __future__ import annotations

ALIASES = {"one_vs_rest": "one_vs_all", "all_pairs": "one_vs_one"}
"""Other words for the same."""


def spelling(given: str) -> str:
    """A name as this library writes it: ``one_vs_all`` for ``one-vs-all``, ``one-versus-all`` and ``one_vs_rest``."""
    plain = given.replace("-", "_").replace("_versus_", "_vs_")
    return ALIASES.get(plain, plain)
