"""Every function of ChainScores against enumeration of all labellings, over shapes, masks, bans and scales."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references.chain import log_partition_plain
from tests.references.drawn import chains, close, draw_chain, draw_target, leaves, rows, seeds, stacked

INF, NAN = math.inf, math.nan


# ------------------------------------------------------------------------------------------------- against enumeration


@given(chains)
def test_log_partition(scores):
    close(scores.log_partition(), [e.log_partition() for e in rows(scores)])


@given(chains)
def test_decode_is_the_first_of_the_best_labellings(scores):
    decoded = scores.decode()
    every = rows(scores)
    close(decoded.score, [e.best()[1] for e in every])
    torch.testing.assert_close(scores.max_score(), decoded.score, rtol=0, atol=0)
    best = [e.best()[0] if e.possible else torch.full((e.steps,), -100) for e in every]
    exact_sums = bool(torch.equal(scores.emissions.nan_to_num(0, 0, 0), scores.emissions.nan_to_num(0, 0, 0).round()))
    if exact_sums:  # whole numbers: ties are ties in any order of summation
        assert torch.equal(decoded.labels, stacked(best, decoded.labels))


@given(chains, st.integers(1, 7))
def test_top(scores, k):
    decoded = scores.top(k)
    every = [e.top(k) for e in rows(scores)]
    close(decoded.score, [score for _, score in every])
    whole = scores.emissions.nan_to_num(0, 0, 0)
    if torch.equal(whole, whole.round()):
        assert torch.equal(decoded.labels, stacked([labels for labels, _ in every], decoded.labels))
    again = scores.score(decoded.labels)  # the scores belong to the labels
    real = decoded.score > -INF
    torch.testing.assert_close(again[real], decoded.score[real], rtol=1e-12, atol=1e-9)
    n = scores.batch_shape.numel()
    flat = decoded.labels.reshape(n, k, scores.emissions.shape[-2])
    for row, ok in zip(flat, real.reshape(n, k), strict=True):
        assert len({tuple(y) for y in row[ok].tolist()}) == int(ok.sum())


@given(chains)
def test_marginals(scores):
    every = rows(scores)
    close(scores.marginals(), [e.marginals() for e in every])
    close(scores.pair_marginals(), [e.pair_marginals() for e in every])
    close(scores.expected_transitions(), [e.pair_marginals().sum(0) for e in every])


@given(chains)
def test_score(scores):
    every = rows(scores)
    if not every or not scores.emissions.shape[-2]:
        return
    n = max(len(e.labels) for e in every)
    labels = torch.stack([e.spread(e.labels[torch.arange(n) % len(e.labels)]) for e in every])
    expected = torch.stack([e.scores[torch.arange(n) % len(e.labels)] for e in every])
    ours = scores.score(labels.view(*scores.batch_shape, n, scores.emissions.shape[-2]))
    torch.testing.assert_close(ours, expected.view(ours.shape), rtol=1e-12, atol=1e-9)


@given(chains)
def test_entropy(scores):
    close(scores.entropy(), [e.entropy() for e in rows(scores)])


@given(chains, seeds, st.booleans())
def test_kl(scores, seed, forbid):
    k, device = scores.num_classes, scores.emissions.device
    other = draw_chain(seed, tuple(scores.batch_shape), scores.emissions.shape[-2], k, forbidden=0.2 * forbid)
    other = tm.ChainScores(other.emissions, other.transitions, mask=scores.mask, lengths=scores.lengths)
    ours = scores.kl(other).to(device)
    every = [(p, q) for p, q in zip(rows(scores), rows(other), strict=True)]
    close(ours, [p.kl(q) if q.possible or not p.possible else torch.tensor(INF) for p, q in every])


@given(chains)
def test_posterior_decode(scores):
    decoded = scores.posterior_decode()
    close(decoded.score, [e.posterior_best()[1] for e in rows(scores)])
    possible = decoded.score > -INF
    assert bool((scores.score(decoded.labels) > -INF)[possible].all())
    free = scores.posterior_decode(legal=False)
    at = scores.marginals().nan_to_num().amax(-1).sum(-1)
    at = torch.where(scores.log_partition() == -INF, -INF, at)  # no labelling at all, as in a legal decode
    torch.testing.assert_close(free.score, at, rtol=1e-12, atol=1e-9)


@given(chains, seeds, st.sampled_from(["max", "sum"]))
def test_relative_to(scores, seed, unobserved):
    target = draw_target(scores, seed)
    d = scores.relative_to(target, unobserved=unobserved)
    flat = target.reshape(scores.batch_shape.numel(), target.shape[-1])
    every = list(zip(rows(scores), flat, strict=True))
    gold = [e.gold(y, unobserved) for e, y in every]

    def minus(value: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return torch.tensor(INF, dtype=torch.float64) if g == -INF else value - g

    close(d.log_partition(), [minus(e.log_partition(), g) for (e, _), g in zip(every, gold, strict=True)])
    close(d.max_score(), [minus(e.best()[1], g) for (e, _), g in zip(every, gold, strict=True)])
    close(
        d.scale(2.0).log_partition(),
        [
            minus(torch.logsumexp(2 * (e.scores - g), 0), torch.zeros(())) if g > -INF else torch.tensor(INF)
            for (e, _), g in zip(every, gold, strict=True)
        ],
    )


def test_an_open_target_whose_nearest_labelling_is_forbidden():
    """What is best label by label may be a forbidden labelling; scores less the log-sum do not depend on it."""
    inf = math.inf
    emissions = torch.tensor([[-inf, 2.5, -0.5], [1.0, 0.25, 1.0]], dtype=torch.float64)
    moves = torch.tensor([[0.0, -inf, 0.0], [-3.0, -inf, -inf], [0.5, 1.0, -1.0]], dtype=torch.float64)
    scores = tm.ChainScores(emissions, moves)
    relative = scores.relative_to(torch.tensor([-100, 2]), unobserved="sum")
    gold = -0.5 - 1.0 + 1.0  # 2, 2: the only labelling left
    for labels, score in (([2, 0], 1.0), ([2, 1], 0.75), ([2, 2], -0.5)):
        assert float(relative.score(torch.tensor(labels))) == pytest.approx(score - gold)
    assert float(relative.max_score()) == pytest.approx(1.0 - gold)
    assert float(relative.top(2).score[1]) == pytest.approx(0.75 - gold)
    assert float(relative.log_partition()) == pytest.approx(float(scores.log_partition()) - gold)


@given(chains)
def test_the_target_has_relative_score_zero_exactly(scores):
    labels = scores.decode().labels
    possible = scores.max_score() > -INF
    d = scores.relative_to(torch.where(labels == -100, 0, labels))
    assert torch.equal(d.score(labels)[possible], torch.zeros_like(possible, dtype=torch.float64)[possible])


@given(chains, seeds)
def test_sets_of_allowed_labels(scores, seed):
    g = torch.Generator().manual_seed(seed)
    allowed = torch.rand(scores.emissions.shape, generator=g) < 0.7
    restricted = scores.restrict(allowed)
    close(restricted.log_partition(), [e.log_partition() for e in rows(restricted)])
    partial = scores.relative_to(allowed, unobserved="sum").log_partition()
    expected = [
        all_.log_partition() - some.log_partition() if some.possible else torch.tensor(INF)
        for all_, some in zip(rows(scores), rows(restricted), strict=True)
    ]
    close(partial, expected)


def test_low_rank_transitions():
    left, right = torch.randn(3, 2), torch.randn(3, 2)
    e = torch.randn(2, 4, 3)
    low = tm.ChainScores(e, (left, right))
    assert torch.equal(low.transitions, left @ right.T)
    steps = tm.ChainScores(e, (left.expand(3, 3, 2), right.expand(3, 3, 2)))
    torch.testing.assert_close(low.log_partition(), steps.log_partition())
    with pytest.raises(ValueError, match="transitions: got factors of shape"):
        tm.ChainScores(e, (left, right[:2]))


# --------------------------------------------------------------------------------------------------------- sampling


@pytest.mark.parametrize("masking", ["none", "holes"])
def test_sampling_passes_a_chi_square_test(masking):
    stats = pytest.importorskip("scipy.stats")
    draws = 20_000
    for seed in range(4):
        scores = draw_chain(seed, (), 3, 3, masking=masking, forbidden=0.15)
        (e,) = rows(scores)
        if not e.possible or not e.where:
            continue
        sampled = scores.sample(draws, generator=torch.Generator().manual_seed(seed))[:, e.where]
        place = e.num_classes ** torch.arange(len(e.where))
        seen = torch.bincount((sampled * place).sum(1), minlength=len(e.labels))
        p = torch.zeros(len(e.labels), dtype=torch.float64).index_add(0, (e.labels * place).sum(1), e.probabilities())
        assert int(seen[p == 0].sum()) == 0, "a forbidden labelling was drawn"
        often = p * draws >= 5
        observed = [*seen[often].tolist(), int(seen[~often].sum())]
        expected = [*(p[often] * draws).tolist(), float(p[~often].sum() * draws)]
        if expected[-1] < 5:
            observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
        if len(expected) > 1:
            assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-4


@given(chains, seeds)
def test_samples_are_possible_and_repeatable(scores, seed):
    one, two = (scores.sample(3, generator=torch.Generator().manual_seed(seed)) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == (*scores.batch_shape, 3, scores.emissions.shape[-2])
    assert bool((one == -100)[~scores.positions.unsqueeze(-2).expand(one.shape)].all())
    possible = (scores.max_score() > -INF).unsqueeze(-1)
    assert torch.equal(scores.score(one) > -INF, possible.expand(*scores.batch_shape, 3) & True)


# --------------------------------------------------------------------------------------------------------- gradients


VERBS = {
    "log_partition": lambda s, y: s.log_partition(),
    "nll": lambda s, y: s.relative_to(y, unobserved="sum").log_partition(),
    "max_score": lambda s, y: s.relative_to(y).max_score(),
    "augmented": lambda s, y: s.relative_to(y).augment(tm.costs.Hamming(), y).max_score(),
    "soft": lambda s, y: s.relative_to(y, unobserved="sum").augment(tm.costs.Hamming(), y).scale(0.5).log_partition(),
    "slack": lambda s, y: s.slack_max(tm.costs.Hamming(), y),
    "entropy": lambda s, y: s.entropy(),
    "marginals": lambda s, y: s.marginals()[..., 0].sum(-1),
    "pairs": lambda s, y: s.pair_marginals()[..., 0].flatten(-2).sum(-1),
    "kl": lambda s, y: s.kl(tm.ChainScores(s.emissions * 0.5, s.transitions, mask=s.mask, lengths=s.lengths)),
    "top": lambda s, y: torch.where(s.top(3).score > -INF, s.top(3).score, 0).sum(-1),
}


@pytest.mark.parametrize("verb", VERBS)
@given(chain=chains, seed=seeds)
def test_gradients_are_finite_and_zero_at_masked_positions(verb, chain, seed):
    scores, parts = leaves(chain)
    value = VERBS[verb](scores, draw_target(scores, seed))
    if not value.requires_grad:
        return
    grads = torch.autograd.grad(value.sum(), parts, allow_unused=True)
    for grad in grads:
        assert grad is None or bool(grad.isfinite().all())
    if grads[0] is not None:
        assert bool((grads[0][~scores.positions] == 0).all())
        assert bool((grads[0][value.isinf()] == 0).all())


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("masking", ["none", "holes"])
def test_gradcheck(verb, masking):
    scores, parts = leaves(draw_chain(5, (2,), 3, 3, masking=masking, ends="rows", per_step=masking == "holes"))
    target = draw_target(scores, 5)

    def value(*given: torch.Tensor) -> torch.Tensor:
        e, t, s, f = given
        e = torch.where(scores.positions.unsqueeze(-1), e, 0.0)
        return VERBS[verb](tm.ChainScores(e, t, start=s, end=f, mask=scores.mask), target)

    clean = [p.detach().nan_to_num(0, 0, 0).requires_grad_() for p in parts]
    assert torch.autograd.gradcheck(value, clean, fast_mode=True)
    if verb not in ("max_score", "augmented", "slack", "top", "marginals", "pairs"):
        assert torch.autograd.gradgradcheck(value, clean, fast_mode=True)


# ------------------------------------------------------------------------------------------ independence and accuracy


@given(chains, seeds, st.integers(1, 3))
def test_a_row_depends_on_no_other_row_and_not_on_padding(scores, seed, extra):
    if scores.emissions.ndim != 3 or scores.emissions.shape[0] < 2:
        return
    steps = scores.emissions.shape[1]
    target = draw_target(scores, seed)
    ours = scores.relative_to(target, unobserved="sum").log_partition()
    pad = torch.nn.functional.pad

    moves = scores.transitions
    if moves.ndim > 2:
        moves = pad(moves[:1], (0, 0, 0, 0, 0, steps + extra - 1 - moves.shape[1]), value=NAN)
    alone = tm.ChainScores(
        pad(scores.emissions[:1], (0, 0, 0, extra), value=NAN),
        moves,
        start=scores.start if scores.start is None or scores.start.ndim == 1 else scores.start[:1],
        end=scores.end if scores.end is None or scores.end.ndim == 1 else scores.end[:1],
        mask=pad(scores.positions[:1], (0, extra)),
    )
    padded = alone.relative_to(pad(target[:1], (0, extra), value=7), unobserved="sum").log_partition()
    torch.testing.assert_close(padded, ours[:1], rtol=1e-12, atol=1e-9)


def test_shifted_emissions_lose_nothing(device):
    torch.manual_seed(1)
    e = torch.randn(4, 512, 9) + 1e4
    moves = torch.randn(9, 9)
    y = torch.randint(9, (4, 512))
    small = tm.ChainScores(e.to(device), moves.to(device))
    large = tm.ChainScores(e.double(), moves.double())
    for name, value in VERBS.items():
        if name in ("nll", "max_score", "augmented", "soft", "entropy"):
            ours, exact = value(small, y.to(device)).cpu(), value(large, y)
            torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    assert torch.equal(small.decode().labels.cpu(), large.decode().labels)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype, device):
    e = torch.randn(2, 64, 5, dtype=dtype, device=device)
    moves = torch.randn(5, 5, dtype=dtype, device=device)
    y = torch.randint(5, (2, 64), device=device)
    ours = tm.ChainScores(e, moves).relative_to(y).log_partition()
    exact = tm.ChainScores(e.double(), moves.double()).relative_to(y).log_partition()
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("verb", [*VERBS, "decode", "sample"])
@pytest.mark.parametrize("masking", ["none", "lengths", "holes"])
def test_every_function_on_the_device(verb, masking, device, dtype):
    exact = draw_chain(7, (3,), 30, 5, masking=masking, forbidden=0.02)
    small = draw_chain(7, (3,), 30, 5, masking=masking, forbidden=0.02, dtype=dtype, device=device)
    target = draw_target(exact, 7, 0.1)
    target = torch.where(exact.positions & (exact.decode().labels >= 0), exact.decode().labels, target)
    target[:, ::4] = -100
    if verb == "decode":
        assert torch.equal(small.decode().labels.cpu(), exact.decode().labels)
    elif verb == "sample":
        drawn = small.sample(4, generator=torch.Generator(device).manual_seed(0))
        assert bool((small.score(drawn) > -INF).all())
    else:
        ours, truth = VERBS[verb](small, target.to(device)), VERBS[verb](exact, target)
        torch.testing.assert_close(ours.double().cpu(), truth, rtol=1e-5, atol=1e-5)


def test_the_plain_recursion_agrees():
    scores = draw_chain(3, (4,), 6, 4, masking="lengths")
    e = torch.where(scores.positions.unsqueeze(-1), scores.emissions, 0)
    plain = log_partition_plain(e, scores.transitions, scores.start, scores.end, scores.lengths)
    torch.testing.assert_close(scores.log_partition(), plain)


def test_a_forbidden_transition_is_never_decoded_however_large_the_emissions():
    moves = torch.tensor([[0.0, -INF], [-INF, 0.0]])
    decoded = tm.ChainScores(torch.tensor([[3e4, 0.0], [0.0, 3e4]]), moves).decode()
    assert decoded.labels.tolist() == [0, 0]
    assert decoded.score == 3e4


def test_a_large_finite_negative_number_is_a_score():
    moves = torch.tensor([[0.0, -1e4], [-1e4, 0.0]])
    decoded = tm.ChainScores(torch.tensor([[3e4, 0.0], [0.0, 3e4]]), moves).decode()
    assert decoded.labels.tolist() == [0, 1]
    assert decoded.score == 5e4


@given(chains)
def test_nan_scores_give_nan(scores):
    if not scores.batch_shape.numel() or not bool(scores.positions.any()):
        return
    target = draw_target(scores, 0, 0.0)
    poisoned = torch.where(scores.positions.unsqueeze(-1), NAN, scores.emissions)
    bad = tm.ChainScores(poisoned, scores.transitions.nan_to_num(neginf=0.0), mask=scores.positions)
    some = scores.positions.any(-1)
    for name in ("nll", "max_score", "augmented", "soft", "slack"):
        assert bool(VERBS[name](bad, target)[some].isnan().all()), name


# --------------------------------------------------------------------------------------------------- the object itself


def test_it_is_a_pytree_and_survives_copies():
    scores = draw_chain(1, (2,), 4, 3, masking="lengths", dtype=torch.float32)
    expected = scores.log_partition()
    for other in (copy.deepcopy(scores), pickle.loads(pickle.dumps(scores))):
        assert torch.equal(other.log_partition(), expected)
    double = torch.utils._pytree.tree_map(
        lambda x: x.double() if isinstance(x, torch.Tensor) else x, tm.ChainScores(scores.emissions, scores.transitions)
    )
    assert double.emissions.dtype == torch.float64


def test_inputs_are_left_alone():
    scores = draw_chain(1, (2,), 4, 3, masking="holes", dtype=torch.float32)
    kept = [None if p is None else p.clone() for p in (scores.emissions, scores.transitions, scores.mask)]
    strided = tm.ChainScores(
        scores.emissions.transpose(0, 1).contiguous().transpose(0, 1),
        scores.transitions.T.contiguous().T,
        start=scores.start,
        end=scores.end,
        mask=scores.mask,
    )
    target = draw_target(scores, 1)
    for name, verb in VERBS.items():
        torch.testing.assert_close(verb(strided, target), verb(scores, target), msg=lambda m, n=name: f"{n}: {m}")
    for part, before in zip((scores.emissions, scores.transitions, scores.mask), kept, strict=True):
        torch.testing.assert_close(part, before, rtol=0, atol=0, equal_nan=True)
        assert not part.requires_grad


def test_it_works_under_inference_mode():
    scores = draw_chain(1, (2,), 4, 3, masking="holes", dtype=torch.float32)
    target = draw_target(scores, 1)
    expected = {name: verb(scores, target) for name, verb in VERBS.items()}
    with torch.inference_mode():
        for name, verb in VERBS.items():
            torch.testing.assert_close(verb(scores, target), expected[name])


# ------------------------------------------------------------------------------------------------------------ bad input

E, M = torch.zeros(2, 4, 3), torch.zeros(3, 3)
MASK = torch.tensor([[True] * 4, [True, True, False, False]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"transitions": torch.zeros(3, 4)}, ValueError, r"transitions: got shape \(3, 4\); accepted are \(3, 3\)"),
        ({"transitions": torch.zeros(2, 4, 3, 3)}, ValueError, r"transitions: got shape \(2, 4, 3, 3\)"),
        ({"transitions": M.double()}, ValueError, "transitions: has dtype torch.float64, but emissions have"),
        ({"transitions": M.long()}, TypeError, "transitions: got dtype torch.int64"),
        ({"transitions": torch.zeros(3, 3, device="meta")}, ValueError, "transitions: is on meta, but emissions is on"),
        ({"start": torch.zeros(4)}, ValueError, r"start: got shape \(4,\); accepted are \(3,\) and \(2, 3\)"),
        ({"end": torch.zeros(3, 3)}, ValueError, r"end: got shape \(3, 3\)"),
        ({"mask": MASK.long()}, TypeError, "mask: got dtype torch.int64; accepted is torch.bool"),
        ({"mask": MASK[:, :3]}, ValueError, r"mask: got shape \(2, 3\); accepted is \(2, 4\)"),
        ({"lengths": torch.tensor([4.0, 2.0])}, TypeError, "lengths: got dtype torch.float32"),
        ({"lengths": torch.tensor([5, 2])}, ValueError, r"lengths: 5 is outside 0\.\.4 \(4 positions\)"),
        ({"lengths": torch.tensor([-1, 2])}, ValueError, r"lengths: -1 is outside 0\.\.4"),
        ({"lengths": torch.tensor([4])}, ValueError, r"lengths: got shape \(1,\); accepted is \(2,\)"),
        ({"mask": MASK, "lengths": torch.tensor([4, 3])}, ValueError, "lengths: differ from the number of True"),
        ({"emissions": torch.zeros(2, 4, 0)}, ValueError, "K >= 1 labels"),
        ({"emissions": torch.zeros(3)}, ValueError, r"emissions: got shape \(3,\)"),
        ({"emissions": torch.zeros(2, 4, 3).long()}, TypeError, "emissions: got dtype torch.int64"),
        ({"emissions": [[0.0]]}, TypeError, "emissions: got list"),
    ],
)
def test_bad_scores_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        tm.ChainScores(**{"emissions": E, "transitions": M, **arguments})


def test_bad_targets_are_named():
    scores = tm.ChainScores(E, M, mask=MASK)
    y = torch.zeros(2, 4, dtype=torch.long)
    outside = y.clone()
    outside[0, 2] = 3
    with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2 \(3 classes\)"):
        scores.relative_to(outside)
    hidden = y.clone()
    hidden[1, 3] = 77  # masked: any label
    assert bool(scores.relative_to(hidden).log_partition().isfinite().all())
    with pytest.raises(ValueError, match=r"target: got shape \(2, 3\); accepted is \(2, 4\)"):
        scores.relative_to(y[:, :3])
    with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
        scores.relative_to(y.float())
    with pytest.raises(ValueError, match=r"weight: .* cost matrix"):
        tm.CRFLoss(weight=torch.ones(3))(scores, y)
    with pytest.raises(ValueError, match=r"labels: label 3 is outside 0\.\.2"):
        scores.score(outside)
    with pytest.raises(ValueError, match="k: got 0"):
        scores.top(0)
    with pytest.raises(ValueError, match="factor: got 0"):
        scores.scale(0)


@pytest.mark.parametrize("seed", range(20))
def test_forbidden_places_of_a_chain_with_holes(seed):
    g = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.where(torch.rand(shape, generator=g) < 0.25, -math.inf, torch.randn(shape, generator=g))

    mask = torch.rand(6, 5, generator=g) < 0.7
    scores = tm.ChainScores(drawn(6, 5, 3), drawn(3, 3), start=drawn(3), end=drawn(3), mask=mask)
    full = torch.randint(3, (6, 5), generator=g).where(mask, -100)
    places = torch.zeros(6, 5, dtype=torch.bool)
    for b in range(6):
        kept, before = mask[b].nonzero().flatten().tolist(), None
        for t in kept:
            y = full[b, t]
            move = scores.start[y] if before is None else scores.transitions[before, y]
            last = scores.end[y] if t == kept[-1] else torch.zeros(())
            places[b, t] = bool(torch.stack([scores.emissions[b, t, y], move, last]).min() == -math.inf)
            before = y
    assert torch.equal(scores.forbidden(full), places)
    partial = full.where(torch.rand(6, 5, generator=g) < 0.5, -100)
    infinite = tm.CRFLoss(reduction="none")(scores, partial) == math.inf
    assert torch.equal(scores.forbidden(partial).any(1) & (partial >= 0).any(1), infinite)
    assert torch.equal(scores.forbidden(partial.int()), scores.forbidden(partial))


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_the_slack_hold_what_enumeration_finds(seed):
    """``max_y c(y) [1 + s(y) - s(y*)]_+`` lies between them, and the lower one is attained."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (1, 4), generator=generator)
    emissions, moves = torch.randn(1, 4, 3, generator=generator), torch.randn(3, 3, generator=generator)
    costs = torch.rand(3, 3, generator=generator).fill_diagonal_(0) * 3
    scores = tm.ChainScores(emissions.double(), moves.double())
    values = []
    for other in itertools.product(range(3), repeat=4):
        paid = sum(float(costs[int(a), b]) for a, b in zip(labels[0], other, strict=True))
        d = float(scores.score(torch.tensor([other])) - scores.score(labels))
        values.append(paid * max(1 + d, 0.0))
    lower, upper = scores.slack_bounds(tm.costs.Matrix(costs), labels)
    best = max(values)
    assert float(lower) <= best * (1 + 1e-6) + 1e-9
    assert float(upper) >= best * (1 - 1e-6)
    assert min(abs(float(lower) - value) for value in values) < 1e-5
    assert float(upper) <= 2 * best + 1e-6


def test_an_empty_sequence_has_no_entropy():
    scores = tm.ChainScores(torch.randn(3, 4, 3), torch.randn(3, 3), lengths=torch.tensor([0, 4, 1]))
    other = tm.ChainScores(torch.randn(3, 4, 3), torch.randn(3, 3), lengths=torch.tensor([0, 4, 1]))
    for value in (scores.entropy(), scores.kl(other)):
        assert float(value[0]) == 0.0
        assert bool((value[1:] > 0).all())
