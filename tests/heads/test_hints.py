"""What heads say of inputs that give an answer, and not the one that was meant."""

import itertools
import math
import warnings

import pytest
import torch

import torch_multiclass as tm
from tests.heads.every import HEADS, inputs

TAGS = ["O", "B-X", "I-X"]
NAN = math.nan


def chain(**options):
    return tm.ChainHead(4, 3, **options)


# ------------------------------------------------------------------------------------- forgotten masks


PADDED = torch.tensor([[0, 1, 2, 0], [1, 0, -100, -100]])


@pytest.mark.parametrize("make", [chain, lambda: tm.SecondOrderHead(4, 3), lambda: tm.SegmentHead(4, 2, 2)])
def test_padding_without_a_mask_is_said_once(make):
    head = make()
    scores = head(torch.randn(2, 4, 4))
    with pytest.warns(
        UserWarning, match="target: -100 stands only at the ends of its rows, and the scores have neither"
    ):
        head.loss(scores, PADDED)
    head.loss(scores, PADDED)  # warnings are errors in these tests


def test_another_label_may_mark_padding():
    head = chain(loss=tm.CRFLoss(ignore_index=-1))
    with pytest.warns(UserWarning, match="at the ends of its rows"):
        head.loss(head(torch.randn(2, 4, 4)), PADDED.where(PADDED >= 0, -1))


@pytest.mark.parametrize(
    ("target", "structure"),
    [
        (PADDED, {"mask": PADDED >= 0}),
        (PADDED, {"lengths": torch.tensor([4, 2])}),
        (PADDED, {"mask": torch.ones(2, 4, dtype=torch.bool)}),
        (PADDED.flip(1), {}),
        (torch.tensor([[0, 1, 2, 0], [1, -100, 0, -100]]), {}),
        (PADDED.clamp(min=0), {}),
    ],
)
def test_nothing_is_said_of_masks_and_of_labels_that_are_not_known(target, structure):
    head = chain()
    head.loss(head(torch.randn(2, 4, 4), **structure), target)


def test_nothing_is_said_in_evaluation():
    head = chain().eval()
    head.loss(head(torch.randn(2, 4, 4)), PADDED)


def test_a_head_of_labels_and_one_of_signs_have_no_padding():
    for head in (tm.MulticlassHead(4, 3), tm.MultilabelHead(4, 4)):
        scores = head(torch.randn(2, 4))
        head.loss(
            scores,
            torch.tensor([1, -100]) if scores.shape[-1] == 3 else torch.tensor([[1, -1, 1, 1], [1, -1, -100, -100]]),
        )


# ------------------------------------------------------------------------------------------- forbidden


def test_the_place_of_a_forbidden_label_is_said_once():
    head = chain(constraints=tm.tag_constraints(TAGS))
    scores, target = head(torch.randn(3, 4, 4)), torch.tensor([[0, 1, 2, 2], [0, 2, 2, 0], [2, 0, 0, 2]])
    words = r"target: sequence 1, position 1: label 2 after 0 is forbidden .* 3 such places in 2 of the sequences"
    with pytest.warns(UserWarning, match=words):
        assert head.loss(scores, target) == math.inf
    assert head.loss(scores, target) == math.inf


@pytest.mark.parametrize("loss", ["crf", "m3n", "svmstruct", "structured_perceptron"])
@pytest.mark.parametrize(
    "make",
    [
        chain,
        lambda **given: tm.SecondOrderHead(4, 3, **given),
    ],
)
def test_forbidden_labels_are_said_in_evaluation_too(make, loss):
    """Where a validation loss meets them; once, whether in training or not."""
    head = make(constraints=tm.tag_constraints(TAGS), loss=loss).eval()
    scores, target = head(torch.randn(1, 4, 4)), torch.tensor([[0, 2, 2, 0]])
    with torch.no_grad(), pytest.warns(UserWarning, match="sequence 0, position 1: label 2 .*is forbidden") as told:
        assert head.loss(scores, target) == math.inf
    assert [one.filename for one in told] == [__file__]
    for mode in (False, True):
        assert head.train(mode).loss(scores, target) == math.inf


def test_sums_over_labels_that_are_not_known_may_be_forbidden_too():
    head = chain(constraints=tm.tag_constraints(TAGS))
    scores, target = head(torch.randn(1, 4, 4)), torch.tensor([[0, 2, -100, 0]])
    with pytest.warns(UserWarning, match="sequence 0, position 1: label 2 after 0"):
        head.loss(scores, target)


# ------------------------------------------------------------------------------------------------- NaN


@pytest.mark.parametrize("name", HEADS)
def test_predict_names_the_example_with_nan(name):
    torch.manual_seed(0)
    head = HEADS[name]()
    features, *structure = inputs(name, 3, 4)
    if not features.is_floating_point():
        pytest.skip("no features to hold NaN")
    features[1] = NAN
    scores = head(features, **dict(zip(("mask", "parents"), structure, strict=False)))
    if structure and not bool(structure[0][1].any()):
        pytest.skip("the sequence has no position")
    with pytest.raises(ValueError, match="scores: hold NaN in example 1, for which there is no label"):
        head.predict(scores)
    with pytest.raises(ValueError, match="scores: hold NaN in example 1, for which there is no probability"):
        head.predict_proba(scores)


def test_a_loss_that_nan_reaches_is_told_once_and_one_that_it_does_not_is_not():
    flat, chained = tm.MulticlassHead(4, 3), chain()
    features, target = torch.randn(3, 4), torch.tensor([0, 1, 2])
    features[1] = NAN
    assert flat.loss(flat(features), torch.tensor([0, -100, 2])).isfinite()
    with pytest.warns(UserWarning, match="scores: hold NaN in example 1, and so the loss is NaN") as told:
        assert flat.loss(flat(features), target).isnan()
    assert [one.filename for one in told] == [__file__]
    assert flat.loss(flat(features), target).isnan()  # a loop that goes on is told once
    assert tm.CRFLoss()(flat(features), target).isnan()  # a loss by itself is a plain function
    words = torch.randn(2, 4, 4)
    words[1, 2:] = NAN
    gold = torch.zeros(2, 4, dtype=torch.long)
    assert chained.loss(chained(words, lengths=torch.tensor([4, 2])), gold).isfinite()
    with pytest.warns(UserWarning, match="scores: hold NaN in example 1, and so the loss is NaN"):
        assert chained.loss(chained(words), gold).isnan()


def test_nan_where_it_does_not_count_and_infinite_scores_are_predicted():
    head, features = chain(), torch.randn(2, 4, 4)
    features[1, 2:] = NAN
    lengths = torch.tensor([4, 2])
    filled = features.nan_to_num()
    assert torch.equal(head.predict(head(features, lengths=lengths)), head.predict(head(filled, lengths=lengths)))
    flat = tm.MulticlassHead(4, 3)
    both = torch.tensor([[math.inf, -math.inf, 0.0], [0.0, 1.0, 2.0]])  # of no sum
    assert flat.predict(both).tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"scores: hold NaN in examples \(0, 1\), \(1, 0\), for"):
        flat.predict(torch.tensor([[[0.0, 1, 2], [NAN, 0, 0]], [[0, NAN, 0], [0, 0, 0]]]))
    with pytest.raises(ValueError, match=r"hold NaN in examples 0, 1, 2 and 4 more"):
        flat.predict(torch.full((7, 3), NAN))
    with pytest.raises(ValueError, match="scores: hold NaN, for"):
        flat.predict(torch.full((3,), NAN))


def test_weights_that_diverged_are_named():
    head = chain()
    with torch.no_grad():
        head.scorer.chain.transitions[0, 0] = NAN
    with pytest.raises(ValueError, match="scores: hold NaN in examples 0, 1"):
        head.predict(head(torch.randn(2, 4, 4)))


# ------------------------------------------------------------------------------ a mask by its position


@pytest.mark.parametrize("make", [chain, lambda: tm.SecondOrderHead(4, 3), lambda: tm.SegmentHead(4, 2, 2)])
def test_a_mask_may_be_the_second_argument(make):
    head, features, mask = make(), torch.randn(2, 4, 4), PADDED >= 0
    assert torch.equal(head.predict(head(features, mask)), head.predict(head(features, mask=mask)))
    with pytest.raises(TypeError, match=r"mask: got dtype torch\.int64; accepted is torch\.bool"):
        head(features, PADDED)


# ----------------------------------------------------------------------- what is lost with a new chain


def test_a_chain_without_constraints_does_not_take_the_place_of_one_with_them():
    allowed = tm.tag_constraints(TAGS)
    theirs = chain().scorer.chain.state_dict()
    head = chain(constraints=allowed)
    with pytest.raises(ValueError, match="chain: has no constraints, and the one in its place has; accepted"):
        head.scorer.chain = tm.load_crf(theirs)
    head.scorer.chain = tm.load_crf(theirs, constraints=allowed)
    assert torch.equal(head.scorer.chain.transitions, theirs["transitions"])
    labels = head.predict(head(30 * torch.randn(50, 9, 4)))
    assert all(pair != (0, 2) for row in labels.tolist() for pair in itertools.pairwise([0, *row]))
    with pytest.raises(ValueError, match="chain: has 4 tags; accepted is one of 3"):
        head.scorer.chain = tm.ChainHead(4, 4).scorer.chain
    free = chain()
    free.scorer.chain = tm.load_crf(theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free.scorer.chain = tm.load_crf(theirs, constraints=allowed)
    assert free.scorer.chain.constrained
