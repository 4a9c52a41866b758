"""A model that a recipe kept, rebuilt from its folder with nothing else known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .files import checkpoint, facts_of, model_file
from .start import one_line

__all__ = ["Fitted", "load"]


@dataclass(frozen=True)
class Fitted:
    """What `load` gives.

    Args:
        recipe: which recipe fitted it: ``classify``, ``tag``, ``svm``, ``boost`` or ``ocr``.
        model: the module with its weights, in evaluation mode.
        classes: the names of the labels.
        facts: what else was kept, as plain values.
        predict: labels of a file or an array of rows, by name; of a tagger a list for each sentence of a
            file, of handwriting a text for each word.
    """

    recipe: str
    model: nn.Module
    classes: list[str]
    facts: dict[str, Any]
    predict: Callable[[Any], list[Any]]


def load(folder: str | Path) -> Fitted:
    """The model in the output folder of a recipe; of one with a log, that of the newest ``best.ckpt`` below it.

    Raises:
        FileNotFoundError: a folder without a model.
        ValueError: a file that is none of a recipe, whose weights do not fit it, or are not finite.
    """
    path = model_file(Path(folder), "folder")
    if path.name == "scorer.pt":
        return machine(path.parent)
    if path.name == "fit.pt":
        return ensemble(path)
    kept = checkpoint(path, argument="folder")
    return tagger(path, kept) if "tagger" in kept else classifier(path, kept)


def rebuilt(path: Path, make: Callable[[], Any]) -> Any:
    """A module from a checkpoint; a part that is missing or has another shape is one line."""
    try:
        return make().eval()
    except KeyError as problem:
        raise ValueError(f"folder: {path} has no {problem}; accepted is a whole checkpoint") from None
    except (RuntimeError, TypeError) as problem:
        raise ValueError(f"folder: {path} does not fit together: {one_line(problem, 300)}") from None


def named(classes: Sequence[str], labels: torch.Tensor) -> list[str]:
    """Labels by name."""
    return [classes[label] for label in labels.tolist()]


def classifier(path: Path, kept: dict[str, Any]) -> Fitted:
    """Of `classify`."""
    from .data.encoding import Encoder
    from .data.table import new_features
    from .models import Classifier

    model = rebuilt(path, lambda: Classifier.load_from_checkpoint(path, map_location="cpu", weights_only=True))
    data = next((part for part in kept.values() if isinstance(part, dict) and "encoder" in part), None)
    if data is None:
        raise ValueError(f"folder: {path} has no scaling of its data; accepted is a checkpoint of this version")
    encode, classes = Encoder.from_state(data["encoder"]), list(data["schema"]["classes"])

    def predict(rows: str | Path | np.ndarray) -> list[str]:
        features = new_features(str(rows), data["schema"]) if isinstance(rows, (str, Path)) else np.asarray(rows, float)
        with torch.no_grad():
            return named(classes, model.head.predict(model(encode(features))))

    return Fitted("classify", model, classes, data, predict)


def tagger(path: Path, kept: dict[str, Any]) -> Fitted:
    """Of `tag`."""
    from .data.sentences import read
    from .data.treebank import TaggedSentences
    from .models.tagger import Tagger

    model = rebuilt(path, lambda: Tagger.load_from_checkpoint(path, map_location="cpu", weights_only=True))

    def predict(file: str | Path) -> list[list[str]]:
        sentences = read(file, untagged=True)
        data = TaggedSentences(sentences, model.vocabulary, with_tags=False)
        found: list[list[str]] = [[] for _ in sentences]
        with torch.no_grad():
            for row in range(len(data.lengths)):
                (tagged,) = model.predict_step(data[[row]], row)
                found[tagged.index] = [model.vocabulary.tags[tag] for tag in tagged.tags]
        return found

    return Fitted("tag", model, list(model.vocabulary.tags), kept["tagger"], predict)


def machine(folder: Path) -> Fitted:
    """Of `svm` or `ocr`."""
    from .machine import labelled, load

    recipe = facts_of(folder / "scorer.pt", "folder", "the output folder of a recipe").get("recipe")
    if recipe == "ocr":
        from .ocr import read_file

        scorer, facts = load(folder, "ocr", "folder")
        return Fitted("ocr", scorer, list(facts["alphabet"]), facts, lambda path: read_file(scorer, facts, str(path)))
    scorer, facts = load(folder, "svm", "folder")
    return Fitted("svm", scorer, facts["schema"]["classes"], facts, lambda rows: labelled(scorer, facts, rows))


def ensemble(path: Path) -> Fitted:
    """Of `boost`."""
    from .ensembles import labelled, load, restored

    kept = load(str(path), "folder")
    setting = kept["setting"]
    return Fitted("boost", restored(kept), list(setting["names"]), setting, lambda rows: labelled(kept, rows))
