r"""Margin bounds for scores ``h(x, y)`` of K classes: the error is at most the margin loss and a price for the class.

``rho_h(x, y) = h(x, y) - max_{l != y} h(x, l)`` is the margin, ``m`` the number of rows, and each holds with
probability ``1 - delta`` over the sample. For kernels ``r`` bounds ``sqrt(K(x, x))``, and ``Lambda`` the norm of the
weights of the whole class of functions, known before the fit; `uniform_margin_error` frees ``rho``.
"""

from __future__ import annotations

import math

from torch_multiclass import checks as check
from torch_multiclass.bounds.base import FIXED, SAMPLE, Bound, confidence, measured, positive, share, total
from torch_multiclass.ops.precision import undisturbed

CHOSEN = "the margin was chosen before this sample was seen"
BALL = "the weights lie in the ball of that norm, which was fixed before this sample was seen"


def deviation(delta: float, rows: int) -> float:
    """``sqrt(ln(1/delta)/(2 m))``."""
    return math.sqrt(math.log(1 / delta) / (2 * rows))


@check.told
@undisturbed
def margin_error(
    empirical: float, *, num_classes: int, margin: float, complexity: float, rows: int, delta: float
) -> Bound:
    r"""``R(h) <= R_rho(h) + (4 K/rho) C + sqrt(ln(1/delta)/(2 m))``.

    Args:
        empirical: the share of rows with a margin below ``rho``, or the mean ramp ``min(1, max(0, 1 - rho_h/rho))``.
        num_classes: K.
        margin: ``rho > 0``.
        complexity: ``C``, the Rademacher complexity of the scores ``x -> h(x, y)`` of single classes.
        rows: m.
        delta: probability of a sample that is an exception.

    Raises:
        ValueError: a number outside its range.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), eq. (9.10).

    Example:
        >>> bound = margin_error(0.1, num_classes=3, margin=0.5, complexity=0.01, rows=10_000, delta=0.05)
        >>> round(bound.value, 6), bound.vacuous
        (0.352239, False)
    """
    num_classes, rows = check.whole("num_classes", num_classes, least=2), check.whole("rows", rows)
    terms = {
        "empirical": share("empirical", empirical),
        "complexity": 4 * num_classes * measured("complexity", complexity) / positive("margin", margin),
        "confidence": deviation(confidence(delta), rows),
    }
    return total(terms, (SAMPLE, CHOSEN, "the complexity is that of the class of scores, fixed beforehand"))


@check.told
@undisturbed
def kernel_margin_error(
    empirical: float, *, num_classes: int, radius: float, norm: float, margin: float, rows: int, delta: float
) -> Bound:
    r"""``R(h) <= R_rho(h) + 4 K sqrt(r^2 Lambda^2/(rho^2 m)) + sqrt(ln(1/delta)/(2 m))``, for kernels.

    Args:
        empirical: the share of rows with a margin below ``rho``, or the mean ramp.
        num_classes: K.
        radius: ``r``, at least every ``sqrt(K(x, x))``, of rows not seen as well.
        norm: ``Lambda``, at least the norm of the weights of each class.
        margin: ``rho > 0``.
        rows: m.
        delta: probability of a sample that is an exception.

    Raises:
        ValueError: a number outside its range.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), Corollary 9.4, eq. (9.11).

    Example:
        >>> bound = kernel_margin_error(0.1, num_classes=3, radius=1, norm=1, margin=1, rows=10**6, delta=0.05)
        >>> round(bound.value, 6)
        0.113224
    """
    num_classes, rows = check.whole("num_classes", num_classes, least=2), check.whole("rows", rows)
    reach = positive("radius", radius) * positive("norm", norm) / positive("margin", margin)
    terms = {
        "empirical": share("empirical", empirical),
        "complexity": 4 * num_classes * reach / math.sqrt(rows),
        "confidence": deviation(confidence(delta), rows),
    }
    return total(terms, (SAMPLE, FIXED, BALL, CHOSEN))


@check.told
@undisturbed
def slack_error(mean_slack: float, *, num_classes: int, radius: float, norm: float, rows: int, delta: float) -> Bound:
    r"""``R(h) <= (1/m) sum_i xi_i + 4 K sqrt(r^2 Lambda^2/m) + sqrt(ln(1/delta)/(2 m))``: the margin bound at 1.

    Args:
        mean_slack: the mean hinge ``max(0, 1 - rho_h)``, or the mean ramp ``min(1, max(0, 1 - rho_h))``, which is less.
        num_classes: K.
        radius: ``r``, at least every ``sqrt(K(x, x))``.
        norm: ``Lambda``, at least the norm of the weights of each class.
        rows: m.
        delta: probability of a sample that is an exception.

    Raises:
        ValueError: a number outside its range.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), eq. (9.12).

    Example:
        >>> round(slack_error(0.2, num_classes=4, radius=1, norm=2, rows=10**6, delta=0.05).value, 6)
        0.233224
    """
    num_classes, rows = check.whole("num_classes", num_classes, least=2), check.whole("rows", rows)
    terms = {
        "empirical": measured("mean_slack", mean_slack),
        "complexity": 4 * num_classes * positive("radius", radius) * positive("norm", norm) / math.sqrt(rows),
        "confidence": deviation(confidence(delta), rows),
    }
    return total(terms, (SAMPLE, FIXED, BALL))


@check.told
@undisturbed
def uniform_margin_error(
    empirical: float,
    *,
    num_classes: int,
    radius: float,
    norm: float,
    margin: float,
    rows: int,
    delta: float,
    trace: float | None = None,
) -> Bound:
    r"""The margin bound for all ``0 < rho <= r Lambda`` at once, so that ``rho`` may be chosen from the sample.

    ``R <= R_rho + 8 K r Lambda/(rho sqrt(m)) + sqrt(ln(log_2(2 r Lambda/rho))/m) + sqrt(ln(2/delta)/(2 m))``; with the
    trace ``sum_i K(x_i, x_i)`` of the sample itself,
    ``R <= R_rho + (8 K/rho) Lambda sqrt(trace)/m + 3 sqrt(ln(log_2(2 r Lambda/rho))/m) + 3 sqrt(ln(4/delta)/(2 m))``.
    The norm of a fitted scorer is known only afterwards: apply the bound to its scores over their norm, ``Lambda = 1``,
    with the margin divided likewise.

    Args:
        empirical: the share of rows with a margin below ``rho``, or the mean ramp.
        num_classes: K.
        radius: ``r``, at least every ``sqrt(K(x, x))``, of rows not seen as well.
        norm: ``Lambda``.
        margin: ``rho``, at most ``r Lambda``: no margin is larger.
        rows: m.
        delta: probability of a sample that is an exception.
        trace: ``sum_i K(x_i, x_i)``, for the empirical form.

    Raises:
        ValueError: a number outside its range; a margin above ``r Lambda``; a trace above ``m r^2``.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), Theorem 9.2 with the argument of their Theorem 5.9 over the
    scales ``rho = r Lambda/2^j``; in the empirical form each scale may fail with probability ``2 exp(-2 m eps^2)``.

    Example:
        >>> given = dict(num_classes=3, radius=1, norm=2, margin=0.5, rows=10**6, delta=0.05)
        >>> round(uniform_margin_error(0.1, **given).value, 6)
        0.198406
        >>> round(uniform_margin_error(0.1, **given, trace=0.5e6).value, 6)
        0.175467
    """
    num_classes, rows = check.whole("num_classes", num_classes, least=2), check.whole("rows", rows)
    radius, norm, rho = positive("radius", radius), positive("norm", norm), positive("margin", margin)
    reach = radius * norm
    if rho > reach:
        raise ValueError(f"margin: got {rho:g}; accepted are margins up to radius * norm = {reach:g}")
    delta = confidence(delta)
    scales = math.sqrt(math.log(math.log2(2 * reach / rho)) / rows)
    if trace is None:
        terms = {
            "empirical": share("empirical", empirical),
            "complexity": 8 * num_classes * reach / (rho * math.sqrt(rows)),
            "scales": scales,
            "confidence": deviation(delta / 2, rows),
        }
    else:
        trace = measured("trace", trace)
        if trace > rows * radius**2 * (1 + 1e-6):
            raise ValueError(f"trace: got {trace:g}; accepted is at most rows * radius^2 = {rows * radius**2:g}")
        terms = {
            "empirical": share("empirical", empirical),
            "complexity": 8 * num_classes * norm * math.sqrt(trace) / (rho * rows),
            "scales": 3 * scales,
            "confidence": 3 * deviation(delta / 4, rows),
        }
    return total(terms, (SAMPLE, FIXED, BALL))


@check.told
@undisturbed
def multilabel_margin_error(
    empirical: float, *, num_labels: int, margin: float, complexity: float, rows: int, delta: float
) -> Bound:
    r"""``E[wrong labels] <= R + (2 K/rho) C + K sqrt(ln(1/delta)/(2 m))`` for sets of labels, ``y in {-1, +1}^K``.

    Args:
        empirical: ``R``, the mean of ``sum_l Phi_rho(y_l f_l)``, the ramp ``Phi_rho(z) = min(1, max(0, 1 - z/rho))``.
        num_labels: K.
        margin: ``rho > 0``.
        complexity: ``C``, the Rademacher complexity of the scores of single labels.
        rows: m.
        delta: probability of a sample that is an exception.

    Raises:
        ValueError: a number outside its range.

    Reference: Mohri, Rostamizadeh and Talwalkar (2018), exercise 9.1.

    Example:
        >>> given = dict(num_labels=5, margin=0.5, complexity=0.001, rows=10**5, delta=0.05)
        >>> bound = multilabel_margin_error(0.4, **given)
        >>> round(bound.value, 6), bound.trivial
        (0.439351, 5.0)
    """
    num_labels, rows = check.whole("num_labels", num_labels), check.whole("rows", rows)
    empirical = measured("empirical", empirical)
    if empirical > num_labels:
        raise ValueError(f"empirical: got {empirical:g}; accepted is at most num_labels = {num_labels}")
    terms = {
        "empirical": empirical,
        "complexity": 2 * num_labels * measured("complexity", complexity) / positive("margin", margin),
        "confidence": num_labels * deviation(confidence(delta), rows),
    }
    return total(terms, (SAMPLE, CHOSEN), trivial=float(num_labels))
