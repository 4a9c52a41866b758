"""Decoders of codes: exact arithmetic, the sources' own examples, and the theorems of Allwein, Schapire, Singer."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import torch_multiclass as tm
from tests.references import coded as naive
from tests.references.drawn import margins_like, ternary
from torch_multiclass import codes
from torch_multiclass.functional import average_binary_loss
from torch_multiclass.ops.margins import as_margin_loss

LOSSES = naive.LOSSES


def test_figure_2_of_allwein_schapire_singer():
    scores = tm.CodedScores(torch.tensor(naive.FIGURE_2_MARGINS), torch.tensor(naive.FIGURE_2))
    assert (-scores.class_scores("zero_one")).tolist() == [3.5, 4.5, 1.5, 2.5]
    assert tm.HammingDecoder()(scores) == 2
    distances = -scores.class_scores("exponential")
    assert distances[:3].round().tolist() == [30133, 192893, 162757]
    assert float(distances[3]) == pytest.approx(5.4, abs=0.05)
    assert tm.LossBasedDecoder("exponential")(scores) == 3
    torch.testing.assert_close(tm.LossBasedDecoder("exponential").class_scores(scores), -distances.log())


def test_figure_9_5_of_mohri_rostamizadeh_talwalkar():
    scores = tm.CodedScores(torch.tensor(naive.FIGURE_9_5_ANSWERS).float(), torch.tensor(naive.FIGURE_9_5))
    assert tm.HammingDecoder()(scores) == 2
    assert scores.class_scores("zero_one")[2] == -1


def test_one_vs_one_tie():
    """f01 = .2, f12 = .9, f02 = -.5: every class wins once."""
    scores = tm.CodedScores(torch.tensor([0.2, -0.5, 0.9]), codes.one_vs_one(3))
    assert (-scores.class_scores("zero_one")).tolist() == [1.5, 1.5, 1.5]
    assert tm.HammingDecoder()(scores) == tm.VotingDecoder()(scores) == 0
    torch.testing.assert_close(
        -scores.class_scores("exponential"), torch.tensor([3.467, 2.628, 4.066]), rtol=0, atol=5e-4
    )
    assert tm.LossBasedDecoder("exponential")(scores) == 1


@pytest.mark.parametrize("loss", LOSSES)
@given(k=st.integers(2, 6), columns=st.integers(3, 9), seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1, 60]))
def test_decoding_is_the_nearest_row_in_exact_arithmetic(loss, k, columns, seed, scale):
    code = ternary(k, columns, seed)
    margins = margins_like(code, 3, seed, scale).float()
    predicted = tm.LossBasedDecoder(loss)(tm.CodedScores(margins, code))
    assert predicted.tolist() == [naive.nearest(f, code, loss) for f in margins.tolist()]


@pytest.mark.parametrize("loss", ["exponential", "sigmoid", "logistic"])
def test_margins_near_sixty_do_not_hide_which_row_is_nearer(loss):
    """Where plain float32 sees equal distances: terms of e^60 are common, or 1/(1 + e^-120) is 1."""
    code = codes.one_vs_all(3)
    for f in ([60.0, 61.0, 59.0], [58.0, 60.0, 60.5], [-60.0, -59.0, -61.0], [60.0, -60.0, 59.0]):
        scores = tm.CodedScores(torch.tensor(f), code)
        assert int(tm.LossBasedDecoder(loss)(scores)) == int(np.argmax(f)), f
    common = torch.tensor([[1, 1, 1], [1, 1, -1], [1, -1, 1]])
    scores = tm.CodedScores(torch.tensor([-60.0, 0.3, 0.2]), common)  # the first column speaks against all of them
    assert tm.LossBasedDecoder(loss)(scores) == 0
    scores = tm.CodedScores(torch.tensor([-60.0, -0.3, 0.2]), common)
    assert tm.LossBasedDecoder(loss)(scores) == 2


@pytest.mark.parametrize("size", [100.0, 1e4, math.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_margins_decode(loss, size):
    code = codes.hadamard(8)
    scores = tm.CodedScores(size * code.float(), code)
    assert tm.LossBasedDecoder(loss)(scores).tolist() == list(range(8))


def exponential_difference(one, other, margins):
    """The exponential distance of one row less that of another, and its rounding, in units of their largest term."""
    ups, downs = ([-m * f for m, f in zip(row, margins, strict=True)] for row in (one, other))
    top = max(ups + downs)
    up, down = ([math.exp(e - top) for e in exponents] for exponents in (ups, downs))
    return math.fsum(up + [-term for term in down]), 1e-13 * math.fsum(up + down)


margins_of_any_size = st.one_of(
    st.floats(-1000, 1000), st.floats(-30, 30), st.sampled_from([-766.0, -20.0, 0.0, 20.0, 766.0, 1000.0])
)


@given(seed=st.integers(0, 10**6), margins=st.lists(margins_of_any_size, min_size=5, max_size=5))
def test_exponential_decoding_of_large_margins(seed, margins):
    code = ternary(4, 5, seed)
    scores = tm.CodedScores(torch.tensor(margins, dtype=torch.float64), code)
    decoder = tm.LossBasedDecoder("exponential")
    order = decoder.class_scores(scores)
    label = int(decoder(scores))
    for r, row in enumerate(code.tolist()):
        difference, rounding = exponential_difference(code[label].tolist(), row, margins)
        assert difference <= rounding, (label, r)
        if difference < -1e-9 * max(1, *map(abs, margins)):  # as far as their logarithms tell
            assert order[label] > order[r]


def test_terms_far_below_the_largest_margin_decide():
    code = torch.tensor([[1, -1, 1], [1, 1, -1], [1, 1, 1]])
    for margins, nearest in (
        ([766.0, 20.0, 5.0], 2),
        ([766.0, 20.0, -5.0], 1),
        ([1000.0, -1.0, -2.0], 1),
        ([-1000.0, 3.0, -2.0], 1),
    ):
        scores = tm.CodedScores(torch.tensor(margins), code)
        assert int(tm.LossBasedDecoder("exponential")(scores)) == nearest
    scores = tm.CodedScores(torch.tensor([766.0, 20.0, 5.0]), code)
    torch.testing.assert_close(
        tm.LossBasedDecoder("exponential").class_scores(scores), -torch.tensor([20.0, 5.0, -5.0])
    )


@pytest.mark.parametrize(
    ("seed", "margins", "nearest"),  # found with 760 digits: 120, those of the oracle, call these a tie
    [
        (17, [-64.94962310791016, 782.8704833984375, -82.6784896850586, 384.312744140625, -47.606773376464844], 3),
        (44, [1.1573275471854805, -299.18808761090355, -28.188016315195817, 364.58482133395614, 539.9263459919317], 2),
        (107, [-325.29022216796875, -59.55257797241211, -418.0585021972656, 554.2740478515625, -132.45948791503906], 2),
    ],
)
def test_terms_hundreds_of_digits_below_the_largest_decide(seed, margins, nearest):
    scores = tm.CodedScores(torch.tensor(margins, dtype=torch.float64), ternary(4, 5, seed))
    decoder = tm.LossBasedDecoder("exponential")
    assert int(decoder(scores)) == int(decoder.class_scores(scores).argmax()) == nearest


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "zero_one"])
@given(k=st.integers(2, 8), seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 60.0]))
def test_one_vs_all_decodes_to_the_argmax(loss, k, seed, scale):
    code = codes.one_vs_all(k)
    margins = margins_like(code, 8, seed, scale).float()
    margins[0] = margins[0, 0]  # a tie goes to the lowest class
    assert torch.equal(tm.LossBasedDecoder(loss)(tm.CodedScores(margins, code)), margins.argmax(-1))


class LargestTensor(TorchDispatchMode):
    """Notes the number of entries of the largest tensor that any operation makes."""

    entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (list, tuple)) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.entries = max(self.entries, tensor.numel())
        return made


@pytest.mark.parametrize("loss", LOSSES)
def test_no_tensor_has_an_entry_for_every_class_and_column(loss):
    rows, k, columns = 64, 50, 100
    code = ternary(k, columns, 0)
    scores = tm.CodedScores(margins_like(code, rows, 0), code)
    with LargestTensor() as largest:
        tm.LossBasedDecoder(loss)(scores)
        tm.LossBasedDecoder(loss).class_scores(scores)
        tm.CodedLoss(loss)(scores, torch.arange(rows) % k)
    assert largest.entries <= (3 if loss != "zero_one" else 1) * rows * columns


@pytest.mark.parametrize(
    "decoder",
    [*map(tm.LossBasedDecoder, LOSSES), tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()],
    ids=repr,
)
class TestEveryDecoder:
    def scores(self, rows=40, k=6, dtype=torch.float32):
        code = codes.one_vs_one(k)
        return tm.CodedScores(margins_like(code, rows, 5).to(dtype), code)

    def test_rows_do_not_depend_on_each_other(self, decoder):
        scores = self.scores()
        whole = decoder(scores)
        assert len(whole.unique()) == 6
        for i in range(40):
            assert decoder(tm.CodedScores(scores.margins[i], scores.code)) == whole[i]
        backwards = decoder(tm.CodedScores(scores.margins.flip(0), scores.code))
        assert torch.equal(backwards.flip(0), whole)

    def test_batch_shapes(self, decoder):
        scores = self.scores()
        margins = scores.margins.reshape(5, 2, 4, 15)
        assert torch.equal(decoder(tm.CodedScores(margins, scores.code)), decoder(scores).reshape(5, 2, 4))
        assert decoder(tm.CodedScores(margins[:0], scores.code)).shape == (0, 2, 4)
        assert decoder.class_scores(tm.CodedScores(margins, scores.code)).shape == (5, 2, 4, 6)

    def test_class_scores_are_what_it_decides_by(self, decoder):
        scores = self.scores(200, dtype=torch.float64)
        assert torch.equal(decoder.class_scores(scores).argmax(-1), decoder(scores))

    def test_absent_classes_are_never_predicted(self, decoder):
        scores = self.scores(200)
        absent = torch.tensor([True, False, False, True, False, False])
        without = tm.CodedScores(scores.margins, scores.code, absent)
        assert set(decoder(without).tolist()) == {1, 2, 4, 5}
        assert bool((decoder.class_scores(without)[:, absent] == -math.inf).all())
        if not isinstance(decoder, tm.TournamentDecoder):
            kept = decoder.class_scores(scores).masked_fill(absent, -math.inf)
            assert torch.equal(decoder(without), kept.argmax(-1))

    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
    def test_half_precision(self, decoder, half):
        scores = self.scores(dtype=half)
        full = tm.CodedScores(scores.margins.float(), scores.code)
        assert torch.equal(decoder(scores), decoder(full))
        assert torch.equal(decoder.class_scores(scores), decoder.class_scores(full))

    def test_other_scores_are_refused(self, decoder):
        with pytest.raises(TypeError, match="scores: got Tensor; accepted here is CodedScores"):
            decoder(torch.randn(3, 4))


@pytest.mark.parametrize(
    "decoder",
    [tm.LossBasedDecoder("logistic"), tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()],
    ids=repr,
)
def test_compile_export_and_vmap(decoder):
    scores = TestEveryDecoder().scores()
    torch._dynamo.reset()
    compiled = torch.compile(decoder, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), decoder(scores))
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(
        _OnMargins(decoder, scores.code), (scores.margins,), dynamic_shapes=({0: batch},), strict=False
    )
    assert torch.equal(program.module()(scores.margins[:11]), decoder(scores)[:11])
    mapped = torch.func.vmap(_OnMargins(decoder, scores.code))(scores.margins)
    assert torch.equal(mapped, decoder(scores))


class _OnMargins(torch.nn.Module):
    def __init__(self, decoder, code):
        super().__init__()
        self.decoder = decoder
        self.register_buffer("matrix", code)

    def forward(self, margins):
        return self.decoder(tm.CodedScores(margins, self.matrix))


@given(k=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_votes_and_tournaments_against_the_definition(k, seed):
    code = codes.one_vs_one(k)
    margins = margins_like(code, 4, seed).float()
    margins[0] = margins[0].sign() * (margins[0].abs() > 0.5)  # zeros among them
    scores = tm.CodedScores(margins, code)
    assert tm.VotingDecoder().class_scores(scores).tolist() == [naive.vote(f, k) for f in margins.tolist()]
    assert torch.equal(tm.VotingDecoder()(scores), tm.HammingDecoder()(scores))
    assert tm.TournamentDecoder()(scores).tolist() == [naive.knock_out(f, k) for f in margins.tolist()]
    # a class that beats every other wins both
    margins[1] = torch.where(code[k - 1] == 0, margins[1], code[k - 1] * margins[1].abs().clamp(min=0.1))
    scores = tm.CodedScores(margins[1], code)
    assert tm.VotingDecoder()(scores) == tm.TournamentDecoder()(scores) == k - 1


@pytest.mark.parametrize("decoder", [tm.VotingDecoder(), tm.TournamentDecoder()])
def test_votes_need_the_one_vs_one_code(decoder):
    for code in (codes.one_vs_all(4), -codes.one_vs_one(4), codes.one_vs_one(4).flip(1)):
        with pytest.raises(ValueError, match=r"code: got a \(4, \d\) code that is not codes.one_vs_one\(4\)"):
            decoder(tm.CodedScores(torch.zeros(code.shape[1]), code))


@st.composite
def training_sets(draw):
    k, columns = draw(st.integers(2, 6)), draw(st.integers(3, 9))
    code = ternary(k, columns, draw(st.integers(0, 10**6)), zeros=draw(st.booleans()))
    seed, m = draw(st.integers(0, 10**6)), 24
    target = torch.arange(m) % k
    # margins that lean to the truth by as much as keeps the bounds below 1 at times
    lean = draw(st.sampled_from([0.0, 0.5, 2.0, 5.0]))
    margins = margins_like(code, m, seed, draw(st.sampled_from([0.3, 1.0, 3.0]))) + lean * code[target]
    return tm.CodedScores(margins, code), target, codes.min_row_distance(code)


@pytest.mark.parametrize("loss", LOSSES)
@given(data=training_sets())
def test_theorem_1(loss, data):
    """The training error of loss-based decoding is at most L eps / (rho l(0)); with q the ignored share and eps' the
    loss on the rest, that is (L / rho)(q + (1 - q) eps' / l(0)).
    """
    scores, target, distance = data
    at_zero = as_margin_loss(loss).at_zero
    error = float((tm.LossBasedDecoder(loss)(scores) != target).double().mean())
    average = float(average_binary_loss(scores, target, loss=loss))
    bound = scores.num_columns * average / (distance * at_zero)
    assert error <= bound * (1 + 1e-12)
    asked = scores.code[target] != 0
    q = 1 - float(asked.double().mean())
    rest = float(tm.functional.binary_loss((scores.code[target] * scores.margins)[asked], loss).mean())
    assert scores.num_columns / distance * (q + (1 - q) * rest / at_zero) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@given(data=training_sets())
def test_corollary_2(loss, data):
    """The training error of Hamming decoding is at most 2 L eps / (rho l(0)), and with eps the share of wrong answers
    among the columns that are asked, (L / rho)(q + 2 (1 - q) eps)."""
    scores, target, distance = data
    error = float((tm.HammingDecoder()(scores) != target).double().mean())
    average = float(average_binary_loss(scores, target, loss=loss))
    assert error <= 2 * scores.num_columns * average / (distance * as_margin_loss(loss).at_zero) * (1 + 1e-12)
    z = scores.code[target] * scores.margins
    asked = scores.code[target] != 0
    q = 1 - float(asked.double().mean())
    wrong = float((z[asked] <= 0).double().mean())
    assert error <= scores.num_columns / distance * (q + 2 * (1 - q) * wrong) * (1 + 1e-12)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_one_vs_one_error_of_k_minus_1_times_the_pairs_error_is_reached(k):
    """Mohri, Rostamizadeh and Talwalkar, exercise 9.6: each pair errs on a share r, and the vote on (K-1) r.


    Each class has K - 1 groups of examples; in group j only the pair with the j-th rival errs, and then all others are
    beaten by the rival too, so every error of a pair is an error of the vote and no two coincide.
    """
    code = codes.one_vs_one(k)
    column = {pair: s for s, pair in enumerate((i, j) for i in range(k) for j in range(i + 1, k))}
    size, margins, target = 5 * (k - 1), [], []
    for y in range(k):
        rivals = [r for r in range(k) if r != y]
        for example in range(size):
            f = torch.zeros(code.shape[1])
            favourite = rivals[example] if example < k - 1 else y
            # `favourite` beats everybody; the label, where not the favourite, beats the others
            for (i, j), s in column.items():
                strength = {favourite: 2, y: 1}
                f[s] = 1.0 if strength.get(i, 0) >= strength.get(j, 0) else -1.0
            margins.append(f)
            target.append(y)
    scores, target = tm.CodedScores(torch.stack(margins), code), torch.tensor(target)
    errors = []
    for s in range(code.shape[1]):
        bit = code[target, s]
        errors.append(float((bit * scores.margins[:, s] < 0)[bit != 0].float().mean()))
    r = max(errors)
    assert min(errors) == pytest.approx(r)
    error = float((tm.VotingDecoder()(scores) != target).float().mean())
    assert error == pytest.approx((k - 1) * r)
