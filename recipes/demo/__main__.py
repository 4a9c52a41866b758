"""``python -m recipes.demo``."""

from ..start import command

command("demo")
