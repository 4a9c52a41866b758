"""A model that a recipe kept, rebuilt from its folder with nothing else known."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
import torch
from torch import nn

from torch_multiclass import checks as check
from torch_multiclass import tag_spans
from torch_multiclass.spans import Span

from .answers import named
from .data.jsonl import TOKENS, JsonSentence
from .data.sentences import Sentence, read, words_of
from .data.text import shortened
from .files import checkpoint, facts_of, model_file
from .start import one_line

__all__ = ["Fitted", "TaggedSentence", "load"]


OF_TAGS = (
    "a tagger has no classes of rows; accepted is predict, whose sentences have .probabilities, or the command "
    "tag predict --probabilities true"
)


class Facts(dict[str, Any]):
    """A dictionary of plain values, whose ``repr`` names every key and shows long values by their beginning."""

    def __repr__(self) -> str:
        short = Repr()
        short.maxlist = short.maxtuple = short.maxset = 6
        short.maxlevel, short.maxdict, short.maxstring, short.maxother = 3, 12, 60, 60
        return "{" + ", ".join(f"{name!r}: {short.repr(value)}" for name, value in self.items()) + "}"


@dataclass(frozen=True)
class Fitted:
    """What `load` gives.

    Args:
        recipe: which recipe fitted it: ``classify``, ``tag``, ``svm``, ``boost`` or ``ocr``.
        model: the module with its weights, in evaluation mode.
        classes: the names of the labels.
        facts: what else was kept, as plain values.
        predict: labels of a file, a data frame or an array of rows, by name; of a tagger a `TaggedSentence` for each
            entry of a list, or for each sentence of a file, which are those that the command counts: what has no
            word, such as a line ``-DOCSTART-``, is none, and ``predict(..., k_best=3)`` adds the next best taggings;
            of handwriting a text for each word of a file, or of a list of arrays ``(letters, height, width)``.
        predict_proba: the probabilities of the classes, ``(rows, classes)``, of what ``predict`` takes; of a tagger
            and of handwriting an error that says what there is.
    """

    recipe: str
    model: nn.Module = field(repr=False)
    classes: list[str]
    facts: dict[str, Any] = field(repr=False)
    predict: Callable[..., list[Any]] = field(repr=False)
    predict_proba: Callable[[Any], np.ndarray] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", Facts(self.facts))
        for name in ("predict", "predict_proba"):
            object.__setattr__(self, name, check.told(getattr(self, name)))


class TaggedSentence(list[str]):
    """The tags of a sentence, and what else is known of it.

    Args:
        tags: one for each word.
        words: of the sentence.
        probabilities: of the tags, each by itself.
        spans: ``(start, end, kind)`` of the spans that the tags stand for; none where the tagger knows no scheme.
        log_probability: of the tags as a whole; None unless more than one tagging is asked for.
        k_best: the next best taggings, each ``(tags, log_probability)``.
    """

    def __init__(
        self,
        tags: Iterable[str],
        words: Sequence[str],
        probabilities: Sequence[float],
        spans: Sequence[Span],
        log_probability: float | None = None,
        k_best: Sequence[tuple[list[str], float]] = (),
    ) -> None:
        super().__init__(tags)
        self.words, self.probabilities, self.spans = list(words), list(probabilities), list(spans)
        self.log_probability, self.k_best = log_probability, list(k_best)


def without(why: str) -> Callable[[Any], np.ndarray]:
    """A ``predict_proba`` that raises ``TypeError``: probabilities of rows are none of what the model labels."""

    def predict_proba(rows: Any) -> np.ndarray:
        """There are none of rows."""
        raise TypeError(f"predict_proba: {why}")

    return predict_proba


def load(folder: str | Path) -> Fitted:
    """The model in the output folder of a recipe; of one with a log, that of the newest ``best.ckpt`` below it.

    Of a folder of several output folders it is the newest model, and a note says which, and what others there are.

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


def classifier(path: Path, kept: dict[str, Any]) -> Fitted:
    """Of `classify`."""
    from .data.encoding import Encoder
    from .data.new import features_of
    from .models import Classifier

    model = rebuilt(path, lambda: Classifier.load_from_checkpoint(path, map_location="cpu", weights_only=True))
    data = next((part for part in kept.values() if isinstance(part, dict) and "encoder" in part), None)
    if data is None:
        raise ValueError(f"folder: {path} has no scaling of its data; accepted is a checkpoint of this version")
    encode, classes = Encoder.from_state(data["encoder"]), list(data["schema"]["classes"])

    def scores(rows: Any) -> Any:
        with torch.no_grad():
            return model(encode(features_of(rows, data["schema"], "rows")))

    def predict(rows: Any) -> list[str]:
        """The label of each row, by name."""
        return named(classes, model.head.predict(scores(rows)))

    def predict_proba(rows: Any) -> np.ndarray:
        """The probability of each class, for each row."""
        with torch.no_grad():
            return model.head.predict_proba(scores(rows)).numpy()

    return Fitted("classify", model, classes, data, predict, predict_proba)


def tagger(path: Path, kept: dict[str, Any]) -> Fitted:
    """Of `tag`."""
    from .data.treebank import TaggedSentences
    from .models.tagger import Tagger

    model = rebuilt(path, lambda: Tagger.load_from_checkpoint(path, map_location="cpu", weights_only=True))

    model.probabilities = True

    def tags_of(numbers: list[int]) -> list[str]:
        return [model.vocabulary.tags[number] for number in numbers]

    @torch.no_grad()
    def predict(sentences: str | Path | Sequence[str | Sequence[str]], k_best: int = 1) -> list[TaggedSentence]:
        model.k_best = check.whole("k_best", k_best)
        asked = to_tag(sentences)
        data = TaggedSentences(asked, model.vocabulary, with_tags=False)
        found = [TaggedSentence([], [], [], []) for _ in asked]
        for row in range(len(data.lengths)):
            (one,) = model.predict_step(data[[row]], row)
            words = asked[one.index].forms
            if min(one.tags) < 0:
                raise ValueError(f"sentences: no tags of {' '.join(words)} are well formed in {model.scheme}")
            tags, others = tags_of(one.tags), [(tags_of(row), p) for row, p in one.others]
            spans = [] if model.scheme is None else tag_spans(tags, model.scheme)
            found[one.index] = TaggedSentence(tags, words, one.probabilities, spans, one.log_probability, others)
        return found

    facts = {name: value for name, value in kept["tagger"].items() if name != "vocabulary"}
    facts |= {"column": model.vocabulary.column, "words": len(model.vocabulary.features["word"])}
    return Fitted("tag", model, list(model.vocabulary.tags), facts, predict, without(OF_TAGS))


SENTENCES = 'a file, or a list such as ["a sentence", ["or", "its", "words"]]'


def to_tag(given: str | Path | Sequence[str | Sequence[str]]) -> list[Sentence]:
    """The sentences of a file that have words, or those of a list, each a text or the list of its words."""
    if isinstance(given, (str, Path)):
        if exists(given):
            return [sentence for sentence in read(given, untagged=True) if sentence.words]
        raise FileNotFoundError(f"sentences: there is no file {shortened(str(given))}; accepted is {SENTENCES}")
    if not hasattr(given, "__iter__"):
        raise TypeError(f"sentences: got {reprlib.repr(given)}; accepted is {SENTENCES}")
    sentences: list[Sentence] = []
    for number, one in enumerate(given):
        words = words_of(one) if isinstance(one, str) else [*one] if isinstance(one, (list, tuple)) else None
        if words is None or not all(isinstance(word, str) and word for word in words):
            raise TypeError(
                f"sentences: entry {number} is {reprlib.repr(one)}; accepted is a sentence or the list of its words"
            )
        sentences.append(JsonSentence("sentences", number + 1, {TOKENS: words}))
    return sentences


def exists(path: str | Path) -> bool:
    """Whether there is such a file; a text may be too long for the name of one."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def machine(folder: Path) -> Fitted:
    """Of `svm` or `ocr`."""
    from .machine import chances, labelled, load

    recipe = facts_of(folder / "scorer.pt", "folder", "the output folder of a recipe").get("recipe")
    if recipe == "ocr":
        from .ocr import read_all

        scorer, facts = load(folder, "ocr", "folder")

        def read(words: str | Path | Sequence[Any]) -> list[str]:
            """The text of each word, of a file or of a list of arrays of pictures, one a word."""
            return read_all(scorer, facts, words, "words")

        return Fitted(
            "ocr", scorer, list(facts["alphabet"]), facts, read, without("handwriting has none; accepted is predict")
        )
    scorer, facts = load(folder, "svm", "folder")

    def predict(rows: Any) -> list[str]:
        """The label of each row, by name."""
        return labelled(scorer, facts, rows, "rows")

    def predict_proba(rows: Any) -> np.ndarray:
        """The probability of each class, for each row."""
        return chances(scorer, facts, rows, "rows")

    return Fitted("svm", scorer, facts["schema"]["classes"], facts, predict, predict_proba)


def ensemble(path: Path) -> Fitted:
    """Of `boost`."""
    from .ensembles import chances, labelled, load, restored

    kept = load(str(path), "folder")
    setting = kept["setting"]

    def predict(rows: Any) -> list[str]:
        """The label of each row, by name."""
        return labelled(kept, rows, "rows")

    def predict_proba(rows: Any) -> np.ndarray:
        """The probability of each class, for each row."""
        return chances(kept, rows, "rows")

    return Fitted("boost", restored(kept), list(setting["names"]), setting, predict, predict_proba)
