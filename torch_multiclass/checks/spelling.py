"""How the names of heads, codes and losses may be spelled, and what is meant by those of other libraries; nothing of
this library is imported, so that a command line can ask too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

ALIASES = {"one_vs_rest": "one_vs_all", "all_pairs": "one_vs_one"}
"""Other words for the same."""


def spelling(given: str) -> str:
    """A name as this library writes it: ``one_vs_all`` for ``one-vs-all``, ``one-versus-all`` and ``one_vs_rest``."""
    plain = given.replace("-", "_").replace("_versus_", "_vs_")
    return ALIASES.get(plain, plain)


_WIDTHS = {
    width: (f"gamma = 1 / (2 {width}^2), of a Laplacian 1 / {width}",)
    for width in ("sigma", "bandwidth", "length_scale", "lengthscale")
}
_CLASSES, _FEATURES = ("num_classes", "num_tags"), ("in_features",)
KEYWORDS: dict[str, tuple[str, ...]] = _WIDTHS | {
    "alpha": ("regularisation", "C, which weighs the losses instead"),
    "attention_mask": ("mask=attention_mask.bool()",),
    "class_weight": ("weight",),
    "class_weights": ("weight",),
    "coef0": ("c",),
    "criterion": ("loss", "impurity"),
    "gamma": ("kernel=kernels.Gaussian(gamma)",),
    "estimator": ("solver", "base", "learner"),
    "in_channels": _FEATURES,
    "in_dim": _FEATURES,
    "input_dim": _FEATURES,
    "input_size": _FEATURES,
    "lam": ("regularisation", "C, which weighs the losses instead"),
    "lambda_": ("regularisation", "C, which weighs the losses instead"),
    "learning_rate": ("lr",),
    "max_features": ("features",),
    "max_iter": ("max_passes", "epochs"),
    "max_leaf_nodes": ("max_leaves",),
    "min_samples_leaf": ("min_leaf",),
    "n_classes": _CLASSES,
    "n_components": ("num_features",),
    "n_estimators": ("rounds", "trees"),
    "num_labels": _CLASSES,
    "num_tags": _CLASSES,
    "num_classes": _CLASSES,
    "padding_mask": ("mask, True where a position counts",),
    "random_state": ("generator=torch.Generator().manual_seed(0)",),
    "sample_weight": ("weight",),
    "seed": ("generator=torch.Generator().manual_seed(0)",),
    "size_average": ("reduction",),
    "smoothing": ("label_smoothing",),
    "src_key_padding_mask": ("mask=~src_key_padding_mask",),
    "T": ("temperature",),
}
"""Keywords of other libraries, and what says the same here where it is taken; what follows a name explains it."""


_HINGES = "'crammer_singer' or 'weston_watkins', of sequences 'm3n' or 'svmstruct'"
LOSSES = {
    **dict.fromkeys(("hinge", "multimargin", "svm"), _HINGES),
    **dict.fromkeys(("bce", "ce", "crossentropy", "log", "logistic", "nll", "softmax"), "'cross_entropy'"),
    **dict.fromkeys(("exp", "exponential"), "'adaboost_mh' or 'adaboost_mr'"),
    "crammersinger": "'crammer_singer'",
    "crf": "'crf'",
    "perceptron": "'structured_perceptron'",
    "squaredhinge": "CrammerSingerLoss(power=2)",
    "westonwatkins": "'weston_watkins'",
}
"""By their letters, losses of a binary margin and names of other libraries, and what they are for scores of classes."""
MARGIN_LOSSES = {
    **dict.fromkeys(("bce", "ce", "crf", "crossentropy", "log", "nll", "softmax"), "'logistic'"),
    **dict.fromkeys(("crammersinger", "m3n", "svm", "svmstruct", "westonwatkins"), "'hinge'"),
    **dict.fromkeys(("adaboostmh", "adaboostmr", "exp"), "'exponential'"),
    "mse": "'squared'",
}
"""By their letters, losses of class scores and names of other libraries, and what they are for a binary margin."""


KERNELS = {
    **dict.fromkeys(("poly", "polynomial"), "kernels.Polynomial(degree)"),
    "rbf": "kernels.Gaussian(gamma)",
}
"""Kernels of other libraries, or that need more than their name, and what they are here."""


def loss_meant(given: str, losses: Mapping[str, str]) -> str:
    """Which loss of this kind is most likely meant by the name of none, for a message; "" where that is not known."""
    known = losses.get(re.sub(r"[-_]", "", given).lower().removesuffix("loss"))
    return f"; meant may be {known}" if known else ""


def meant(given: str, accepted: Iterable[str]) -> str:
    """Which of the accepted keywords is most likely meant by one that is none, for a message; "" where none is."""
    accepted = list(accepted)
    same = [words for words in KEYWORDS.get(given, ()) if re.split(r"\W", words)[0] in accepted]
    near = same or get_close_matches(given, accepted, 1)
    return f"; meant may be {near[0]}" if near else ""


def nearest(given: str, accepted: Iterable[str]) -> str:
    """The accepted name that a misspelled one is most like, for a message; "" where it is like none."""
    by_letters = {name.lower(): name for name in accepted}
    near = get_close_matches(given.lower(), by_letters, 1, cutoff=0.75)
    return f"; meant may be {by_letters[near[0]]!r}" if near else ""
