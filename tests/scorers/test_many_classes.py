"""Codes that are not written out: everything as with the matrix, in little memory and without it in checkpoints."""

import copy
import io
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references import coded as naive
from torch_multiclass import codes, metrics
from torch_multiclass.ops import _native
from torch_multiclass.scorers import coded as scorers
from torch_multiclass.scores.coded_lazy import LazyCodedScores

HEADS = {"one_vs_one": tm.OneVsOneHead, "one_vs_all": tm.OneVsAllHead}
every_head = pytest.mark.parametrize("name", HEADS)


@pytest.fixture(params=["library", pytest.param("torch", marks=pytest.mark.slow)], autouse=True)
def computed_by(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip(_native.backends()["native"])


def twins(name, k, d=5, loss="hinge", scale=1.0, **arguments):
    """A head whose code is written out, and one with the same weights whose code is not."""
    dense = HEADS[name](d, k, loss, **arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorers, "WRITTEN", 0)
        lazy = HEADS[name](d, k, loss, **arguments)
    with torch.no_grad():
        for parameter in dense.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(k)))
    missing, unexpected = lazy.load_state_dict(dense.state_dict(), strict=True)
    assert not missing
    assert not unexpected
    return dense, lazy


def batch(k, rows=12, d=5, dtype=torch.float32):
    g = torch.Generator().manual_seed(k)
    return torch.randn(rows, d, generator=g, dtype=dtype), torch.randint(k, (rows,), generator=g)


@every_head
@pytest.mark.parametrize("k", [2, 3, 7, 40])
@pytest.mark.parametrize("loss", naive.LOSSES)
def test_labels_scores_and_losses_are_those_of_the_matrix(name, k, loss):
    dense, lazy = twins(name, k, scale=2.0)
    x, y = batch(k)
    wide, scores = dense(x), lazy(x)
    assert isinstance(scores, LazyCodedScores)
    assert type(wide) is tm.CodedScores
    assert (scores.shape, scores.num_classes, scores.num_columns) == (wide.shape, wide.num_classes, wide.num_columns)
    torch.testing.assert_close(scores.margins, wide.margins)
    assert torch.equal(scores.code, wide.code)
    decoders = [tm.LossBasedDecoder(loss)]
    decoders += [tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()] if name == "one_vs_one" else []
    for decoder in decoders:
        assert torch.equal(decoder(scores), decoder(wide))
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                found = decoder.class_scores(scores)
            torch.testing.assert_close(found, decoder.class_scores(wide), rtol=1e-5, atol=1e-5)
            assert torch.equal(found.argmax(-1), decoder(scores))
    criterion = tm.CodedLoss(loss)
    torch.testing.assert_close(criterion(scores, y), criterion(wide, y), rtol=1e-5, atol=1e-5)
    y[3] = -100
    torch.testing.assert_close(criterion(scores, y), criterion(wide, y), rtol=1e-5, atol=1e-5)
    average = tm.functional.average_binary_loss
    torch.testing.assert_close(average(scores, y, loss=loss), average(wide, y, loss=loss), rtol=1e-5, atol=1e-5)
    metric, other = metrics.BitError(wide.num_columns), metrics.BitError(wide.num_columns)
    metric.update(scores, y)
    other.update(wide, y)
    assert torch.equal(metric.compute(), other.compute())


@every_head
@pytest.mark.parametrize("loss", ["logistic", "zero_one"])
def test_several_batch_dimensions(name, loss):
    _, lazy = twins(name, 7)
    x, y = batch(7)
    one, many = lazy(x), lazy(x.view(1, 3, 4, 5))
    decoders = [tm.LossBasedDecoder(loss)]
    decoders += [tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()] if name == "one_vs_one" else []
    for decoder in decoders:
        assert torch.equal(decoder(many).flatten(), decoder(one))
        torch.testing.assert_close(decoder.class_scores(many).view(12, 7), decoder.class_scores(one))
    criterion = tm.CodedLoss(loss, reduction="none")
    torch.testing.assert_close(criterion(many, y.view(1, 3, 4)).flatten(), criterion(one, y))


@every_head
@pytest.mark.parametrize("k", [2, 3, 7])
def test_shares_are_those_of_the_matrix(name, k):
    (asked, share), (other, shares) = (head.scorer.shares() for head in twins(name, k))
    assert asked == other
    torch.testing.assert_close(share.float(), shares)


@every_head
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_gradients_are_those_of_the_matrix(name, bias, loss):
    k = 20
    pairs = twins(name, k, loss=loss, bias=bias, dtype=torch.float64)
    x, y = batch(k, 30, dtype=torch.float64)
    y[5] = -100
    found = []
    for head in pairs:
        leaf = x.clone().requires_grad_()
        inputs = [leaf, *head.parameters()]
        first = torch.autograd.grad(head.loss(head(leaf), y), inputs, create_graph=True)
        slopes = sum((g * torch.arange(g.numel()).view(g.shape)).sum() for g in first)
        found.append([*first, *torch.autograd.grad(slopes, inputs)])
    torch.testing.assert_close(found[0], found[1])
    head = pairs[1]
    leaf = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda f: head.loss(head(f), y), (leaf,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda f: head.loss(head(f), y), (leaf,))


def test_only_what_asks_for_a_gradient_gets_one():
    dense, lazy = twins("one_vs_one", 20)
    x, y = batch(20)
    for head in (dense, lazy):
        head.requires_grad_(False)
        leaf = x.clone().requires_grad_()
        head.loss(head(leaf), y).backward()
        assert leaf.grad.abs().sum() > 0
        assert head.scorer.margins.weight.grad is None
        head.scorer.margins.bias.requires_grad_()
        head.loss(head(x), y).backward()
        assert head.scorer.margins.bias.grad.abs().sum() > 0


@every_head
def test_probabilities_calibration_and_absent_classes(name):
    k = 6
    dense, lazy = twins(name, k, loss="logistic")
    x, y = batch(k, 80)
    for head in (dense, lazy):
        torch.testing.assert_close(head.predict_proba(head(x)), dense.predict_proba(dense(x)))
    for method in ("temperature", "platt"):
        for head in (dense, lazy):
            head.calibrate(head(x[:50]), y[:50], method)
        for key, value in dense.state_dict().items():
            if key != "scorer.coding_matrix":
                torch.testing.assert_close(lazy.state_dict()[key], value, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(lazy.predict_proba(lazy(x)), dense.predict_proba(dense(x)), rtol=1e-3, atol=1e-4)
    y[y == 2] = 1
    with pytest.warns(UserWarning, match=r"class\(es\) 2 of 6 have no example"):
        lazy.leave_out_absent(y)
    assert 2 not in lazy.predict(lazy(x)).tolist()
    assert bool((lazy.class_scores(lazy(x))[:, 2] == -math.inf).all())
    assert bool((lazy.predict_proba(lazy(x))[:, 2] == 0).all())


@given(k=st.integers(2, 9), seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 2.0, 400.0]))
def test_pairs_of_any_size_in_blocks_of_any_size(k, seed, scale):
    """Margins that are given; a few columns and rows at a time; exponentials beyond the range of floats."""
    coding = codes.OneVsOne(k)
    margins = scale * torch.randn(5, coding.num_columns, generator=torch.Generator().manual_seed(seed))
    margins[0] = margins[0].sign() * (margins[0].abs() > scale)  # zeros among them
    wide, scores = tm.CodedScores(margins, codes.one_vs_one(k)), LazyCodedScores.of(coding, None, margins)
    kept = margins.clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch_multiclass.ops.coding._BLOCK", 7)
        patch.setattr("torch_multiclass.scores.coded_lazy._BLOCK", 7)
        patch.setattr("torch_multiclass.scores.coded_lazy._ROWS", 2)
        patch.setattr("torch_multiclass.ops.pairs._SCATTERED", 2)
        assert torch.equal(scores.votes(), wide.votes())
        assert torch.equal(scores.knock_out()[0], wide.knock_out()[0])
        for loss in naive.LOSSES:
            if scale < 100:  # beyond, what is compared in float64 has lost what exact arithmetic still tells
                assert torch.equal(scores.nearest(loss)[1:], wide.nearest(loss)[1:]), loss
            if loss != "exponential" or scale < 100:
                torch.testing.assert_close(scores.class_scores(loss), wide.class_scores(loss), rtol=1e-5, atol=1e-5)
        logs = scores.log_class_scores("exponential")
        torch.testing.assert_close(logs, wide.log_class_scores("exponential"))
    assert torch.equal(margins, kept)


def test_margins_of_nan_take_no_part():
    margins = torch.tensor([[1.0, math.nan, -1.0]])
    votes = LazyCodedScores.of(codes.OneVsOne(3), None, margins).votes()
    assert votes.isnan().tolist() == [[True, False, True]]


@every_head
def test_scores_travel(name):
    dense, lazy = twins(name, 9)
    x, y = batch(9)
    scores, wide = lazy(x), dense(x)
    for change in (
        lambda s: s[2:7],
        lambda s: s.detach(),
        lambda s: s.to(torch.float64),
        lambda s: s.cpu(),
        lambda s: s[0],
    ):
        assert torch.equal(change(scores).nearest("hinge"), change(wide).nearest("hinge"))
        assert change(scores).shape == change(wide).shape
        assert isinstance(change(scores), LazyCodedScores)
    assert scores.to(torch.float64).margins.dtype == torch.float64
    assert (scores.device, scores.dtype) == (wide.device, wide.dtype)
    again = pickle.loads(pickle.dumps(scores.detach()))
    assert torch.equal(again.margins, scores.margins)
    doubled = torch.utils._pytree.tree_map(lambda part: part, scores)
    assert torch.equal(doubled.nearest("hinge"), scores.nearest("hinge"))
    twin = copy.deepcopy(lazy)
    assert torch.equal(twin.predict(twin(x)), lazy.predict(scores))
    stacked = x.view(3, 4, 5)
    assert torch.equal(lazy.predict(lazy(stacked)).flatten(), lazy.predict(scores))
    assert lazy.class_scores(lazy(stacked)).shape == (3, 4, 9)
    torch.testing.assert_close(lazy.loss(lazy(stacked), y.view(3, 4)), lazy.loss(scores, y))
    assert lazy.predict(lazy(x[0])) == lazy.predict(scores)[0]
    assert lazy.predict(lazy(x[:0])).shape == (0,)
    assert f"{name}(9)" in repr(scores)


@every_head
def test_captured_and_half_precision(name):
    dense, lazy = twins(name, 6)
    x, y = batch(6)
    torch._dynamo.reset()
    for head in (dense, lazy):
        step = torch.compile(lambda f, head=head: head.predict(head(f)), fullgraph=True, backend="eager")
        assert torch.equal(step(x), dense.predict(dense(x)))
        loss = torch.compile(lambda f, head=head: head.loss(head(f), y), fullgraph=True, backend="eager")
        torch.testing.assert_close(loss(x), dense.loss(dense(x), y))
        mapped = torch.func.vmap(lambda f, head=head: head.predict(head(f)))(x)
        assert torch.equal(mapped, dense.predict(dense(x)))
    exported = torch.export.export(
        _Predict(lazy), (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2)},), strict=False
    )
    assert torch.equal(exported.module()(x[:7]), dense.predict(dense(x[:7])))
    with torch.autocast("cpu", torch.bfloat16):
        assert lazy.loss(lazy(x), y).dtype == torch.float32
    half = lazy.bfloat16()
    assert half.loss(half(x.bfloat16()), y).dtype == torch.float32
    assert half.predict(half(x.bfloat16())).shape == y.shape


class _Predict(torch.nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = head

    def forward(self, features):
        return self.head.predict(self.head(features))


@every_head
def test_a_checkpoint_holds_no_matrix_and_old_ones_load(name):
    dense, lazy = twins(name, 8)
    assert "scorer.coding_matrix" in dense.state_dict()
    assert list(lazy.state_dict()) == [key for key in dense.state_dict() if key != "scorer.coding_matrix"]
    assert torch.equal(lazy.scorer.coding_matrix, dense.scorer.coding_matrix)
    file = io.BytesIO()
    torch.save(lazy.state_dict(), file)
    file.seek(0)
    lazy.load_state_dict(torch.load(file, weights_only=True), strict=True)
    wrong = dense.state_dict()
    wrong["scorer.coding_matrix"] = -wrong["scorer.coding_matrix"]
    with pytest.raises(RuntimeError, match=rf"scorer\.coding_matrix: is another code; accepted is codes.{name}\(8\)"):
        lazy.load_state_dict(wrong)
    with pytest.raises(RuntimeError, match=r"Missing key.*coding_matrix"):
        dense.load_state_dict(lazy.state_dict())
    assert f"code={name}" in repr(lazy)


def test_scores_that_outlive_their_weights_are_an_error():
    _, lazy = twins("one_vs_one", 8)
    x, y = batch(8)
    scores = lazy(x)
    lazy.loss(scores, y).backward()
    torch.optim.SGD(lazy.parameters(), 0.1).step()
    for read in (lambda: scores.margins, lambda: lazy.predict(scores), lambda: lazy.predict(scores[:2])):
        with pytest.raises(RuntimeError, match="scores: the weights have changed since"):
            read()
    lazy.predict(lazy(x))


def test_few_pairs_keep_their_margins_whatever_becomes_of_the_weights():
    dense, _ = twins("one_vs_one", 20)
    x, y = batch(20)
    scores = dense(x)
    assert scores[:4].source is None  # which is of all rows
    before, part = dense.predict(scores), scores[:4]
    torch.testing.assert_close(dense.loss(part, y[:4]), dense.loss(dense(x[:4]), y[:4]))
    with torch.no_grad():
        dense.scorer.margins.weight.zero_()
    assert torch.equal(dense.predict(scores), before)
    assert float(dense.loss(scores, y).detach()) != float(dense.loss(dense(x), y).detach())
    assert pickle.loads(pickle.dumps(scores.detach())).source is None


def test_other_scorers_of_margins_behind_a_code_without_matrix():
    machine = tm.KernelScorer(torch.randn(20, 5), 15, tm.kernels.Gaussian(0.1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorers, "WRITTEN", 0)
        lazy = tm.CodedScorer(machine, codes.OneVsOne(6))
    dense = tm.CodedScorer(machine, codes.OneVsOne(6))
    x, y = batch(6)
    for scores in (lazy(x), dense(x)):
        torch.testing.assert_close(tm.CodedLoss()(scores, y), tm.CodedLoss()(dense(x), y))
        assert torch.equal(tm.VotingDecoder()(scores), tm.VotingDecoder()(dense(x)))


@pytest.mark.parametrize(("make", "columns"), [(codes.OneVsOne, 499_500), (codes.OneVsAll, 1000)])
def test_a_thousand_classes(make, columns):
    scorer = tm.CodedScorer(3, make(1000))
    assert scorer.margins.weight.shape == (columns, 3)
    assert ("coding_matrix" in dict(scorer.named_buffers())) == (columns == 1000)
    with pytest.raises(ValueError, match="num_classes: got 1; accepted is a whole number >= 2"):
        make(1)


def test_the_number_of_classes_is_named():
    for head in HEADS.values():
        with pytest.raises(ValueError, match="num_classes: got 1; accepted is a whole number >= 2"):
            head(8, 1)
