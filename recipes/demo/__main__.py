"""``python -m recipes.demo``."""

from ..start import guard, imported, main

guard()
main(lambda: imported(f"{__package__}.parts").main())
