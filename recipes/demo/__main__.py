"""``python -m recipes.demo``."""

from ..start import main as in_one_line
from . import main

in_one_line(main)
