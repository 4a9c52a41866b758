r"""What the normalisers ``Z_t`` of a boosted ensemble prove about its training error, round by round."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import Bound, confidence, measured, product_of, real
from torch_multiclass.bounds.codes import spans
from torch_multiclass.codes.checks import CodeLike, as_code
from torch_multiclass.ops.precision import undisturbed

BOUNDS = {
    "adaboost": "the share of rows with the wrong sign",
    "hamming": "the share of wrong labels",
    "mh": "the share of rows with the wrong class",
    "ranking": "the share of violated pairs of labels",
    "mr": "the share of rows with the wrong class",
    "averaged": "the share of rows with a label sum of at most 0",
}

FACTORS = {
    "mh": ("half_the_classes", "a row with the wrong class has two of the K labels that count at least 1: so K/2"),
    "mr": ("rivals", "a row with the wrong class has one violated pair of its K - 1 at least: so K - 1"),
}
"""What the error of the class is above that of the labels or pairs: the name of the factor, and why."""


@check.told
@undisturbed
def boosting_error(product: float | Sequence[float], kind: str, *, num_classes: int | None = None) -> Bound:
    r"""What ``Prod = prod_t Z_t`` bounds on the training sample.

    - ``"adaboost"``: the error is at most ``Prod``.
    - ``"hamming"``: AdaBoost.MH, the share of wrong (row, label) pairs is at most ``Prod``;
      ``"mh"``: its 0/1 error is at most ``(K/2) Prod``, since ``e^(-f_y) + e^(f_l) >= 2`` where ``f_l >= f_y``.
    - ``"ranking"``: AdaBoost.MR, the share of violated pairs is at most ``Prod``;
      ``"mr"``: its 0/1 error is at most ``(K - 1) Prod``.
    - ``"averaged"``: the share of rows with ``sum_l y_l f_l <= 0`` is at most ``Prod``.

    Args:
        product: ``Prod``, of the normalisers after any smoothing; or these, as ``report.Z`` has them.
        kind: what is to be bounded: ``"adaboost"``, ``"hamming"``, ``"mh"``, ``"ranking"``, ``"mr"`` or ``"averaged"``.
        num_classes: K, for ``"mh"`` and ``"mr"``; the others hold for any, ``"adaboost"`` for the two of its signs.

    Raises:
        ValueError: an unknown kind, a negative product, no number of classes where one is needed, or more than two of
            ``"adaboost"``.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), section 9.3.2; Schapire and Singer (1999), sections 6 and 9.

    Example:
        >>> round(boosting_error(0.757454, "mh", num_classes=3).value, 6)
        1.136181
        >>> print(boosting_error([0.9, 0.5], "mh", num_classes=3))
        0.675 = 1.5 half_the_classes × 0.45 product
    """
    check.choice("kind", kind, BOUNDS)
    product = product_of(product)
    assumptions = [f"on the training sample: {BOUNDS[kind]}"]
    given = {}
    needs = kind in FACTORS
    classes = check.whole("num_classes", num_classes, least=2) if needs or num_classes is not None else 2
    if kind == "adaboost" and classes != 2:
        raise ValueError(f"num_classes: got {classes}; accepted of 'adaboost' is 2, of more classes kind='mh' or 'mr'")
    if needs:
        name, why = FACTORS[kind]
        given[name] = classes / 2 if kind == "mh" else classes - 1.0
        assumptions.append(why)
    given["product"] = product
    return Bound(math.prod(given.values()), given, tuple(assumptions))


@check.told
@undisturbed
def code_margin(product: float | Sequence[float], code: CodeLike, *, margin: float, total_weight: float) -> Bound:
    r"""``Pr_S[margin <= theta] <= (L/rho) exp(eta theta) prod_t Z_t`` for AdaBoost.MO over a code of ±1.

    The margin of a row is ``½ (nu(x, y) - max_{r != y} nu(x, r))``, as `torch_multiclass.solvers.AdaBoostMO.margins`
    gives it, of ``nu(x, y) = -(1/eta) ln((1/L) sum_s exp(-eta M(y, s) f(x, s)))``, with ``f`` the votes over
    ``eta = sum_t alpha_t``. Where nothing is smoothed this is the printed
    ``(L/rho) prod_t 2 sqrt(eps_t^(1-theta) (1-eps_t)^(1+theta))``, which is 0, and false, where some ``eps_t = 0``.

    Args:
        product: of the normalisers; or these, as ``report.Z`` has them.
        code: ``M (K, L)`` without zeros.
        margin: ``theta`` in [0, 1].
        total_weight: ``eta``.

    Raises:
        ValueError: a number outside its range; a code with zeros or with equal rows.

    Reference: Allwein, Schapire and Singer (2000), Theorem 6.

    Example:
        >>> given = dict(total_weight=0.490415 + 0.378163 + 0.436070)
        >>> code = [[1, 1, -1], [-1, 1, 1], [1, -1, 1]]
        >>> [round(code_margin(0.757454, code, margin=theta, **given).value, 4) for theta in (0.0, 0.1)]
        [1.1362, 1.2945]
    """
    matrix = as_code(code)
    if bool((matrix == 0).any()):
        raise ValueError("code: has zeros; accepted are codes of -1 and +1")
    theta = measured("margin", margin)
    if theta > 1:
        raise ValueError(f"margin: got {theta:g}; accepted is a number in [0, 1]")
    columns, distance, _ = spans(matrix, None)
    power = measured("total_weight", total_weight) * theta
    product = product_of(product)
    given = {"columns_by_distance": columns / distance, "stretch": exponential(power), "product": product}
    value = given["columns_by_distance"] * exponential(power + math.log(product)) if product else 0.0
    return Bound(value, given, ("on the training sample", "base classifiers answer -1 or +1"))


def exponential(power: float) -> float:
    """Infinite where it is beyond floating-point numbers."""
    return math.exp(power) if power < 709 else math.inf


@check.told
@undisturbed
def confidence_runs(delta: float, success: float) -> int:
    r"""``ceil(ln(2/delta)/delta_0)``: the samples that a learner needs if it succeeds with probability ``delta_0``.

    With the best of them on held-out data, failure has probability at most ``delta``; half of it is the chance that
    none succeeds, half that the choice goes wrong.

    Args:
        delta: accepted probability of failure.
        success: ``delta_0``, the probability of success of one run.

    Raises:
        ValueError: ``delta`` outside (0, 1), or ``success`` outside (0, 1].

    Reference: boosting the confidence, Kearns and Vazirani (1994), section 4.2.

    Example:
        >>> confidence_runs(0.05, 0.3), confidence_runs(0.01, 0.1)
        (13, 53)
    """
    if not 0 < (rate := real(success)) <= 1:
        raise ValueError(f"success: got {check.shown(success)}; accepted is a number in (0, 1]")
    runs = (math.log(2) - math.log(confidence(delta))) / rate
    if not math.isfinite(runs):
        raise ValueError(f"success: got {rate:g}, which asks for endless runs; accepted is a larger number, up to 1")
    return math.ceil(runs)
