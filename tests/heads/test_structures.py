"""The heads of the structures beyond the chain: every loss trains them, and they decode what they learned."""

import pytest
import torch

import torch_multiclass as tm

LOSSES = [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(exact=False), tm.StructuredPerceptronLoss()]


def train(head, features, y, steps=40, **structure):
    optimizer = torch.optim.Adam(head.parameters(), lr=0.2)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(head(features, **structure), y).backward()
        optimizer.step()
    return head(features, **structure)


def sequences(labels, steps=8, rows=16):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(labels, (rows, steps), generator=g)
    mask = torch.rand(rows, steps, generator=g) < 0.8
    return torch.nn.functional.one_hot(y, labels).float(), y, mask


@pytest.mark.parametrize("loss", [*LOSSES, tm.SVMStructLoss()])
def test_second_order(loss):
    features, y, mask = sequences(3)
    head = tm.SecondOrderHead(3, 3, loss=loss)
    scores = train(head, features, y, 60, mask=mask)
    assert torch.equal(head.predict(scores)[mask], y[mask])
    assert (head.predict(scores)[~mask] == -100).all()
    assert head.predict_proba(scores).shape == (16, 8, 3)


def test_second_order_constraints():
    head = tm.SecondOrderHead(4, 3, constraints=tm.tag_constraints(["O", "B-X", "I-X"]))
    labels = head.predict(head(30 * torch.randn(8, 6, 4)))
    assert not (labels[:, 0] == 2).any()
    assert not ((labels[:, :-1] == 0) & (labels[:, 1:] == 2)).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_segments(loss):
    """Two kinds, of which one has segments of up to 3; the features show the tag."""
    g = torch.Generator().manual_seed(0)
    tags = tm.segment_tags(["O", "X"], longest=3)
    head = tm.SegmentHead(len(tags), 2, 3, loss=loss, longest=(1, 3))
    mask = torch.rand(16, 8, generator=g) < 0.8
    y = tm.SegmentScores(torch.zeros(16, 8, 3, 2), torch.zeros(2, 2), mask=mask, longest=(1, 3)).sample(1, generator=g)
    y = y[:, 0]
    features = torch.nn.functional.one_hot(y.clamp(min=0), len(tags)).float()
    scores = train(head, features, y, mask=mask)
    assert torch.equal(head.predict(scores), y)


def test_scores_of_segments_count_the_positions_that_remain():
    """Masked words between those of a segment are not there."""
    torch.manual_seed(0)
    scorer = tm.SegmentScorer(5, 2, 3)
    features = torch.randn(1, 7, 5)
    mask = torch.tensor([[True, False, True, True, False, False, True]])
    far = torch.where(mask[..., None], features, torch.nan)
    apart, alone = scorer(far, mask=mask), scorer(features[mask][None])
    torch.testing.assert_close(apart.log_partition(), alone.log_partition())
    assert torch.equal(apart.decode().labels[mask], alone.decode().labels[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_trees(loss):
    features, y, mask = sequences(3)
    head = tm.LabelTreeHead(3, 3, loss=loss)
    parents = torch.tensor([-1, 0, 0, 1, 1, 2, 2, 3])
    scores = train(head, features, y, parents=parents, mask=mask)
    assert torch.equal(head.predict(scores)[mask], y[mask])


@pytest.mark.parametrize("loss", [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.AdaBoostLoss()])
def test_several_labels(loss):
    g = torch.Generator().manual_seed(0)
    y = 2 * torch.randint(2, (32, 4), generator=g) - 1
    head = tm.MultilabelHead(4, 4, loss=loss)
    scores = train(head, y.float(), y, 25)
    assert torch.equal(head.predict(scores), y)
    probability = head.predict_proba(scores)
    assert torch.equal(probability > 0.5, y > 0)
    torch.testing.assert_close(probability, torch.sigmoid(2 * scores.values))
    torch.testing.assert_close(head.class_scores(scores), scores.values)


def test_several_labels_over_any_scorer():
    machine = tm.KernelScorer(torch.randn(20, 8), 3, tm.kernels.Gaussian(0.1))
    assert tm.MultilabelHead(machine).predict(tm.MultilabelHead(machine)(torch.randn(5, 8))).shape == (5, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tm.MultilabelHead(3), "num_labels: got None"),
        (lambda: tm.SegmentHead(3, 2, 0), "max_length: got 0"),
        (lambda: tm.SegmentHead(3, 2, 4, longest=(1, 5)), r"longest: 5 is outside 1\.\.4"),
        (lambda: tm.LabelTreeHead(3, 0), "num_tags: got 0"),
        (lambda: tm.SecondOrderHead(0, 2), "in_features: got 0"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_features_in_place_of_scores_are_named():
    head = tm.MultilabelHead(8, 3)
    with pytest.raises(TypeError, match="scores: got Tensor; accepted are MultilabelScores"):
        head.predict(torch.zeros(2, 8))
    with pytest.raises(ValueError, match="scores: are of 8 labels; accepted are 3"):
        head.predict(tm.MultilabelScores(torch.zeros(2, 8)))


def test_counts_of_tags_are_numbers_of_python():
    """Also where they were given as a tensor of a dtype that is compared with no other."""
    count = torch.tensor(2, dtype=torch.uint64)
    for head in (tm.ChainHead(3, count), tm.SecondOrderHead(3, count), tm.LabelTreeHead(3, count)):
        assert (type(head.num_tags), head.num_tags, head.num_classes) == (int, 2, 2)
        head.leave_out_absent(torch.tensor([0, 1]))
