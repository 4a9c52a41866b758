r"""How many mistakes an online learner makes on a separable stream, whatever its order and length."""

from __future__ import annotations

import math

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import Bound, measured, positive
from torch_multiclass.ops.precision import undisturbed


@check.told
@undisturbed
def mistakes(radius: float, margin: float, *, rule: str = "conservative", num_classes: int | None = None) -> Bound:
    r"""``R^2/gamma^2`` updates; ``K R^2/(2 gamma^2)`` preference updates where every violated one is updated.

    Args:
        radius: ``R``, at least every ``||x||``.
        margin: ``gamma``, the smallest ``(w_a - w_b).x/sqrt(2 sum_l ||w_l||^2)`` over all preferences ``a > b`` of all
            rows, for any weights that satisfy them all.
        rule: ``"conservative"``, ``"uniform"`` or ``"all"``.
        num_classes: K, for ``"all"``.

    Raises:
        ValueError: an unknown rule, or a number outside its range.

    Reference: Crammer and Singer (2003), Theorem 1; for ``"all"``, Har-Peled, Roth and Zimak (2002).

    Example:
        >>> mistakes(1.0, 0.1).value, mistakes(1.0, 0.1, rule="all", num_classes=4).value
        (100.0, 200.0)
    """
    check.choice("rule", rule, ("conservative", "uniform", "all"))
    given = {"radius": measured("radius", radius), "margin": positive("margin", margin)}
    ratio = given["radius"] / given["margin"]
    count = ratio * ratio
    if rule == "all":
        given["half_the_classes"] = check.whole("num_classes", num_classes, least=2) / 2
        count *= given["half_the_classes"]
    return Bound(round(count, 9), given, ("some weights satisfy every preference with that margin",), math.inf)
