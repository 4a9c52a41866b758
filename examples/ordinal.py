"""Ordered classes: a grade that is one off is better than one that is five off.

A multi-class learner is told of each row which grade is best. Preferences tell it the order of the others, too: from
the grade on, the nearer the better. With few rows, that is worth a lot. Prints::

    grades alone   wrong 0.645, off by 0.877 grades, preferences violated 0.250
    their order    wrong 0.609, off by 0.765 grades, preferences violated 0.157
"""

import warnings

import torch

import torch_multiclass as tm
from torch_multiclass.metrics import ViolatedPreferences

GRADES = 6


def reviews(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features, and grades 0 to 5 of a noisy opinion."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 6, generator=generator)
    opinion = x @ torch.tensor([1.0, -0.5, 0.8, 0.3, 0.0, 0.0]) + 0.8 * torch.randn(rows, generator=generator)
    return x, torch.bucketize(opinion, torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]))


if __name__ == "__main__":
    (x, y), (new, truth) = reviews(60, seed=1), reviews(4000, seed=2)
    learner = tm.solvers.ConstraintClassifier("all", averaged=True, shuffle=True, bias=True, max_passes=30)
    warnings.filterwarnings("ignore", message=".*max_passes")  # no weights satisfy all preferences of noisy grades
    for name, target in (("grades alone", y), ("their order ", tm.preferences.ordinal(y, GRADES))):
        with torch.no_grad():
            scores = learner.fit(x, target, num_classes=GRADES).scorer(new)
        violated = ViolatedPreferences()
        violated.update(scores, tm.preferences.ordinal(truth, GRADES))
        off = (scores.argmax(1) - truth).abs().double()
        wrong = (off > 0).double().mean()
        print(
            f"{name}   wrong {wrong:.3f}, off by {off.mean():.3f} grades, preferences violated {violated.compute():.3f}"
        )
