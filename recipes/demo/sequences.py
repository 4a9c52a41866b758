"""Tags of whole sentences: a loss of the sequence beside the soft-max of each token, and how sure a tag is."""

from __future__ import annotations

import torch

import torch_multiclass as tm
from torch_multiclass import plots
from torch_multiclass.metrics import CalibrationError

from ..data.sentences import read
from ..data.treebank import porttinari, split
from ..models.tagger import TaggingNetwork
from .show import begun, claim, folder, noted, percent, picture, working
from .tagger import Corpus, keep, right, scored, trained

EPOCHS = 2
LOSSES = {
    "soft-max": (tm.CRFLoss(), False),
    "CRF": (tm.CRFLoss(), True),
    "M3N": (tm.M3NLoss(), True),
    "SVMStruct": (tm.SVMStructLoss(), True),
}
"""The loss, and whether neighbouring tags have a score."""
ASKED = [(False, name) for name in LOSSES] + [(True, "soft-max"), (True, "CRF")]
"""Whether a word's features take in its neighbours, and the loss."""


def corpus() -> Corpus:
    """The embedded treebank."""
    return Corpus(*split(read(porttinari())))


def fitted(data: Corpus) -> dict[tuple[bool, str], TaggingNetwork]:
    """One tagger each."""
    with working("sequences", EPOCHS * len(ASKED)) as step:
        return {
            (neighbours, name): trained(
                data, LOSSES[name][0], neighbours=neighbours, transitions=LOSSES[name][1], epochs=EPOCHS, step=step
            )
            for neighbours, name in ASKED
        }


def whole_sentences(taggers: dict[tuple[bool, str], TaggingNetwork], data: Corpus) -> None:
    """How many sentences are right from the first tag to the last."""
    wrong = {key: 1 - right(*scored(tagger, data.test))[0].double() for key, tagger in taggers.items()}
    for with_neighbours, what in ((False, "each word by itself"), (True, "with its neighbours")):
        ours = {name: each for (neighbours, name), each in wrong.items() if neighbours == with_neighbours}
        plain = ours.pop("soft-max")
        alone = percent(1 - float(plain.mean()))
        said = [f"{name} {percent(1 - float(each.mean()))}{noted(each, plain)}" for name, each in ours.items()]
        claim(
            "" if with_neighbours else "sequences",
            f"Whole sentences right after {EPOCHS} passes, {what}: soft-max of each token {alone}, {', '.join(said)}.",
        )


def probabilities(tagger: TaggingNetwork, data: Corpus) -> None:
    """Marginals of a margin loss, before and after a temperature from the sentences that are for choosing."""
    scaling = tm.TemperatureScaling().fit(*scored(tagger, data.dev))
    scores, tags = scored(tagger, data.test)
    errors, nll, leaning = {}, {}, {}
    title = "Tags by M3N: the probability of a tag, and how often it is right"
    with torch.no_grad(), picture("calibration", 9, 3.8, title) as figure:
        for axes, (when, p) in zip(
            figure.subplots(1, 2), {"before": scores.marginals(), "after": scaling(scores)}.items(), strict=True
        ):
            known = tags >= 0
            metric = CalibrationError()
            metric.update(p[known], tags[known])
            plots.reliability(metric.right, metric.confidence, metric.count, axes)
            axes.set_title(f"{when}: {axes.get_title()}")
            if when == "before":
                axes.get_legend().remove()
            errors[when] = float(metric.compute())
            leaning[when] = direction(metric)
            nll[when] = float(-p[known].gather(1, tags[known, None]).log().mean())
    claim(
        "calibrate",
        f"Probabilities of tags by a margin loss, M3N, have an expected calibration error of "
        f"{percent(errors['before'])}, {leaning['before']}; after a temperature from held-out sentences "
        f"{percent(errors['after'])}, {leaning['after']}. The log loss falls from {nll['before']:.2f} to "
        f"{nll['after']:.2f} nats a tag.",
    )


def direction(metric: CalibrationError) -> str:
    """Whether the tags are right more or less often than their probabilities say."""
    sure, right = (float(part.sum() / metric.count.sum()) for part in (metric.confidence, metric.right))
    return "too sure" if sure > right else "not sure enough"


def one_sentence(plain: TaggingNetwork, chain: TaggingNetwork, data: Corpus, longest: int = 14) -> None:
    """The first short test sentence that soft-max tags wrong and the chain right, as each sees it."""
    (a, tags), (b, _) = scored(plain, data.test), scored(chain, data.test)
    fits = torch.tensor(data.test.lengths) <= longest
    asked = fits & ~right(a, tags)[0] & right(b, tags)[0]
    found = int(asked.long().argmax()) if bool(asked.any()) else int(fits.long().argmax())
    i, length = data.test.rows[found][0], data.test.lengths[found]
    words, gold = data.test_sentences[i].forms, tags[found, :length]
    title = "Each word by itself: how probable each tag is; framed are the true ones, red where another is likelier"
    with picture("sentence", 0.75 * length + 1.5, 5.4, title) as figure:
        above, below = figure.subplots(2, 1)
        for axes, name, scores in ((above, "soft-max of each token", a), (below, "CRF", b)):
            plots.marginals(words, scores.marginals()[found, :length], axes, labels=data.vocabulary.tags, target=gold)
            axes.set_title(name)
        above.set_xticks([])


def neighbours(tagger: TaggingNetwork, data: Corpus) -> None:
    """What the chain learned of neighbouring tags."""
    chain = tagger.scorer.chain
    with picture("transitions", 7.5, 6.3, "Portuguese: learned scores of neighbouring tags") as figure:
        axes = plots.transitions(
            chain.transitions, figure.subplots(), start=chain.start_transitions, end=chain.end_transitions,
            labels=data.vocabulary.tags,
        )  # fmt: skip
        axes.set(xlabel="next tag", ylabel="tag")


def main() -> None:
    """The claims and their pictures, and a tagger to try."""
    begun("sequences")
    data = corpus()
    taggers = fitted(data)
    whole_sentences(taggers, data)
    probabilities(taggers[False, "M3N"], data)
    one_sentence(taggers[False, "soft-max"], taggers[False, "CRF"], data)
    neighbours(taggers[True, "CRF"], data)
    keep(taggers[True, "CRF"], data.vocabulary, folder() / "tagger")
