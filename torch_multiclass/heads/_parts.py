"""Whether the parts of a head fit each other."""

from __future__ import annotations

from torch_multiclass import decoders, losses
from torch_multiclass.costs import Cost
from torch_multiclass.decoders import Decoder
from torch_multiclass.losses import Loss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scores import ChainScores, CodedScores, FlatScores, TreeScores


def check_reads(name: str, part: Loss | Decoder, scorer: Scorer) -> None:
    """Raise where a loss or decoder does not read the kind of scores that the scorer gives."""
    given = scorer.gives
    if given is TreeScores and isinstance(part, losses.SVMStructLoss) and part.exact:
        raise ValueError(f"{name}: is of the exact maximum, not known here; accepted is SVMStructLoss(exact=False)")
    if given is None or issubclass(given, part.reads):
        return
    raise TypeError(
        f"{name}: got {type(part).__name__}, which does not read {given.__name__}, those of {type(scorer).__name__}; "
        f"accepted there are {_readers(part, given)}"
    )


def check_sizes(part: Loss | Decoder, scorer: Scorer) -> None:
    """Raise where a part has weights or costs of another number of classes than the scorer."""
    if scorer.gives not in (FlatScores, ChainScores, CodedScores):
        return  # of other structures, costs are of labels that the scores count
    if isinstance(cost := getattr(part, "cost", None), Cost):
        cost.check_size(scorer.num_classes)
    weight = getattr(part, "weight", None)
    if weight is not None and len(weight) != scorer.num_classes:
        raise ValueError(
            f"weight: got shape {tuple(weight.shape)}; accepted is ({scorer.num_classes},), one weight for each class"
        )


def _readers(part: Loss | Decoder, given: type) -> str:
    """The public losses, or decoders, of a kind of scores."""
    module, kind = (losses, Loss) if isinstance(part, Loss) else (decoders, Decoder)
    public = [getattr(module, name) for name in module.__all__]
    names = [each.__name__ for each in public if each is not kind and issubclass(given, each.reads)]
    names += ["the name of a binary loss, such as 'logistic'"] * (kind is Loss and given is CodedScores)
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
