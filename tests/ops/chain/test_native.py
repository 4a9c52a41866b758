"""Chains by the native library: against log space in float64, and what only it could get wrong."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import torch_multiclass as tm
from tests.ops.chain import fuzz_native
from torch_multiclass.ops import _native, chain
from torch_multiclass.ops.chain import Chain, engine, logspace, native
from torch_multiclass.ops.chain.viterbi import by_torch

INF = float("inf")
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(_native.library() is None, reason=_native.backends()["native"])


@pytest.fixture(autouse=True)
def computed_by():
    """Always by the library: torch is the oracle here."""


def levels():
    return sorted(path.name.split(".")[0] for path in _native.FOLDER.glob("*") if path.suffix != ".json")


def draw(batch, steps, k, seed=0, scale=1.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    shapes = (batch, steps, k), (k, k), (k,), (k,)
    return Chain(*(torch.randn(shape, generator=generator, dtype=dtype) * scale for shape in shapes), None)


def bio(k, forbid):
    """Transitions and start of BIO tags: O, B-1, I-1, B-2, I-2, ..."""
    transitions, start = torch.zeros(k, k), torch.zeros(k)
    for inner in range(2, k, 2):
        transitions[:, inner] = start[inner] = forbid
        transitions[[inner - 1, inner], inner] = 0
    return transitions, start


def run(given, labels=None, grad=None):
    """The first pass that the engine would try, and its gradient."""
    found = native.passes(given)[0](given, labels)
    grad = torch.ones(len(given.emissions)) if grad is None else grad
    parts, sound = found.gradient(torch.where(found.sound, grad, 0))
    assert sound is None
    return found, parts


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("first", [0, 40])
def test_random_chains_are_as_in_log_space(level, first, monkeypatch):
    if level > _native.level() and level.startswith("avx"):
        pytest.skip(f"this processor has no {level}")
    library = _native.open_library(_native.FOLDER, level)
    monkeypatch.setattr(_native, "library", lambda: library)
    for seed in range(first, first + 40):
        for name, off in fuzz_native.errors(seed).items():
            assert off <= fuzz_native.BOUNDS[name], f"seed {seed}: {name} off by {off}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(4, 8, 5), (32, 32, 17), (8, 50, 50), (2, 128, 100), (8, 512, 20), (1, 4096, 9)])
def test_training_sizes(size, dtype):
    given = draw(*size, dtype=dtype)
    labels = torch.randint(size[2], size[:2])
    found, parts = run(given, labels, torch.ones(size[0], dtype=dtype))
    assert bool(found.sound.all())
    wanted = logspace.value(given, labels)
    exact = logspace.gradient(torch.ones(size[0]), given, labels)
    bounds = (1e-7, 1e-6, 1e-5) if dtype == torch.float32 else (1e-13, 1e-9, 1e-9)
    assert float(((found.value - wanted) / wanted).abs().max()) < bounds[0]
    for part, own, bound in zip(parts, exact, (bounds[1], *3 * bounds[2:]), strict=True):
        assert float((part - own).abs().max()) < bound * float(own.abs().max())


@pytest.mark.parametrize("forbid", [-INF, -1e4, -100.0])
@pytest.mark.parametrize(("steps", "k"), [(30, 9), (60, 17), (300, 9)])
def test_tag_constraints_need_no_second_pass(forbid, steps, k):
    transitions, start = bio(k, forbid)
    given = draw(4, steps, k)
    given = Chain(given.emissions * 3, transitions + given.transitions, start + given.start, given.end, None)
    found, parts = run(given, torch.zeros(4, steps, dtype=torch.long))
    if forbid < -100:
        assert found.unsound == 0
        assert bool((parts[1][transitions == forbid] == 0).all())


@pytest.mark.parametrize("gap", [34.3, 60.0, 248.0, 700.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("off", [-INF, -300.0])
def test_what_underflows_before_rescaling_is_seen(gap, dtype, off):
    """Two labels that take turns: the mass of one shrinks by the gap at every second step."""
    emissions = torch.zeros(1, 6, 2, dtype=dtype)
    emissions[0, :, 1] = -gap
    emissions[0, 5, 1] = -gap * 1.3
    transitions = torch.tensor([[off, 0.0], [0.0, off]], dtype=dtype)
    for labels in (None, torch.tensor([[1, 0, 1, 0, 1, 0]])):
        given = Chain(emissions, transitions, torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype), None)
        solution = engine.solve(given, labels, "auto")
        torch.testing.assert_close(solution.value, logspace.value(given, labels), rtol=1e-7, atol=1e-7)
        exact = logspace.gradient(torch.ones(1), given, labels)
        for part, own in zip(solution.gradient(torch.ones(1, dtype=dtype)), exact, strict=True):
            torch.testing.assert_close(part.double(), own, rtol=1e-5, atol=1e-6)


def test_backward_vectors_are_vouched_for():
    emissions = torch.zeros(1, 5, 2)
    emissions[0, 0, 1], emissions[0, 3, 1] = -50, -400
    transitions = torch.tensor([[-37.0, -37.0], [0.0, -20.0]])
    labels = torch.tensor([[1, 1, 0, 1, 0]])
    solution = engine.solve(Chain.of(emissions, transitions), labels, "auto")
    assert float(solution.value) == pytest.approx(413.69315, rel=1e-7)
    by_emission, by_transition, _, _ = solution.gradient(torch.ones(1))
    wanted = torch.tensor([[1.0, -1], [-1, 1], [1, -1], [-0.5, 0.5]])
    torch.testing.assert_close(by_emission[0, [0, 2, 3, 4]].float(), wanted, atol=1e-6, rtol=0)
    torch.testing.assert_close(by_transition.float(), torch.tensor([[0.5, 0.5], [-1, 0]]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [12.0, 50.0])
def test_wide_chains_have_finite_gradients(scale):
    for seed in range(20):
        given = draw(4, 9, 3, seed)
        given = given._replace(emissions=given.emissions * 800, transitions=given.transitions * scale)
        labels = torch.randint(3, (4, 9))
        solution = engine.solve(given, labels, "auto")
        exact = logspace.gradient(torch.ones(4), given, labels)
        for part, own in zip(solution.gradient(torch.ones(4)), exact, strict=True):
            torch.testing.assert_close(part.double(), own, rtol=1e-4, atol=1e-5)


def test_a_likelihood_is_never_negative():
    given = Chain.of(torch.tensor([[[20.0, 0], [20, 0]]]), torch.tensor([[-1.6, 0.2], [2.2, 0.8]]))
    labels = torch.zeros(1, 2, dtype=torch.long)
    found, _ = run(given, labels)
    assert float(found.value) == pytest.approx(float(logspace.value(given, labels)), rel=1e-6)
    for seed in range(50):
        given = draw(8, 30, 5, seed, scale=4.0)
        labels = chain.best_labels(given)
        for each in (given, given.double()):
            found, _ = run(each, labels)
            assert bool((found.value[found.sound] >= 0).all())


@pytest.mark.parametrize("legal", [0, 1, 2, 3, 4])
def test_labels_that_few_moves_lead_to(legal):
    """Half of the labels have that many moves into them, some of them the best of all."""
    generator = torch.Generator().manual_seed(legal)
    k = 30
    transitions = torch.rand(k, k, generator=generator) * 0.2
    for label in range(0, k, 2):
        from_others = torch.randperm(k, generator=generator)[: k - legal]
        transitions[from_others, label] = -INF
    given = draw(5, 40, k, scale=2)._replace(transitions=transitions, lengths=torch.tensor([40, 3, 17, 0, 40]))
    path = native.best_path(given)
    assert path.unsound == 0
    wide = given.double()
    assert torch.equal(path.labels, by_torch(wide))
    torch.testing.assert_close(path.score, wide.score(path.labels.clamp(min=0)))


@pytest.mark.parametrize("lengths", [None, torch.arange(30) + 10])
def test_values_of_likely_labels_keep_their_digits(lengths):
    """A loss near 1 over many steps, of which rounding in float32 would be some 4e-7."""
    generator = torch.Generator().manual_seed(0)
    batch, steps, k = 30, 40, 23
    labels = torch.randint(k, (batch, steps), generator=generator)
    sure = torch.randn(batch, steps, k, generator=generator)
    sure.scatter_add_(2, labels[..., None], torch.full((batch, steps, 1), 8.0))
    given = draw(batch, steps, k, scale=0.3)._replace(emissions=sure, lengths=lengths)
    found, _ = run(given, labels)
    wanted = logspace.value(given, labels)
    assert 0.5 < float(wanted.median()) < 5
    assert float(((found.value - wanted) / wanted.clamp(min=1)).abs().max()) < 3e-8


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("sure", [4.0, 6.0, 8.0, 12.0, 16.0])
@pytest.mark.parametrize("size", [(60, 8, 5), (60, 32, 17), (20, 128, 100), (1, 4096, 9)])
def test_values_beside_a_gradient_keep_their_digits(size, sure, scale):
    """From a loss near 0 to one of a half a position; most of them are not computed again in float64."""
    generator = torch.Generator().manual_seed(size[2] + int(sure))
    labels = torch.randint(size[2], size[:2], generator=generator)
    given = draw(*size, scale=1)
    raised = given.emissions.scatter_add(2, labels[..., None], torch.full((*size[:2], 1), sure))
    given = given._replace(emissions=raised, transitions=given.transitions * scale)
    found = native.vouched(given, labels, gradient=True)
    assert found is not None
    wanted = logspace.value(given, labels)
    assert float(((found.value - wanted) / wanted.clamp(min=1)).abs().max()) < 1e-7


def test_gradients_of_likely_labels_keep_their_digits():
    """Differences of two numbers near 1 would not."""
    given = draw(4, 20, 6, scale=8.0, dtype=torch.float64)
    given = Chain._make([*(part.float() for part in given[:4]), None])
    labels = chain.best_labels(given)
    _, parts = run(given, labels)
    _, exact = run(given.double(), labels)
    for part, own in zip(parts, exact, strict=True):
        assert float((part - own).abs().max()) < 1e-5 * float(own.abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("lengths", [(7, 7, 7, 7), (7, 0, 3, 1), (0, 0, 0, 0)])
def test_labels_of_a_mask_are_those_of_its_lengths(lengths, dtype):
    given = draw(4, 7, 5, dtype=torch.float64).to(dtype)
    lengths = torch.tensor(lengths)
    mask = torch.arange(7) < lengths[:, None]
    assert torch.equal(native.labels_of(given, mask), chain.best_labels(given._replace(lengths=lengths)))
    scores = tm.ChainScores(*given[:2], start=given.start, end=given.end, mask=mask)
    assert torch.equal(scores.best_labels(), native.labels_of(given, mask))


@pytest.mark.parametrize("row", [[True, False, True], [False, True, True], [False, True, False]])
def test_a_mask_with_holes_is_laid_out_first(row):
    given, mask = draw(2, 3, 4), torch.tensor([row, [True, True, False]])
    assert native.labels_of(given, mask) is None
    labels = tm.ChainScores(*given[:2], start=given.start, end=given.end, mask=mask).best_labels()
    kept = given._replace(emissions=given.emissions[:1, mask[0]])
    assert torch.equal(labels[0, mask[0]], chain.best_labels(kept)[0])
    assert bool((labels[~mask] == -100).all())


@pytest.mark.parametrize("k", [3, 9, 17, 40])
@pytest.mark.parametrize("forbid", [False, True])
def test_a_row_depends_on_no_other_and_on_no_padding(k, forbid):
    """To the last bit: alone, among others, and padded."""
    given = draw(7, 20, k)
    if forbid:
        given.transitions[0, 1] = -INF
    labels = torch.randint(2, k, (7, 20))
    lengths = torch.tensor([20, 3, 11, 20, 0, 19, 1])
    given = given._replace(lengths=lengths, emissions=given.emissions + 1e4)
    given.emissions[1, 0] = float("nan")
    together, parts = run(given, labels, torch.linspace(1, 2, 7))
    for b in range(7):
        n = int(lengths[b])
        if n == 0:
            continue
        alone = given._replace(emissions=given.emissions[b : b + 1, :n], lengths=None)
        one, own = run(alone, labels[b : b + 1, :n], torch.linspace(1, 2, 7)[b : b + 1])
        assert torch.equal(one.sound, together.sound[b : b + 1])
        assert torch.equal(one.value[one.sound], together.value[b : b + 1][one.sound])
        assert torch.equal(own[0][0], parts[0][b, :n])
        assert bool((parts[0][b, n:] == 0).all())
    best = chain.best_labels(given)
    for b in [0, 2, 3, 5, 6]:
        alone = given._replace(emissions=given.emissions[b : b + 1, : lengths[b]], lengths=None)
        assert torch.equal(chain.best_labels(alone)[0], best[b, : lengths[b]])


@pytest.mark.parametrize("bad", [float("nan"), INF])
@pytest.mark.parametrize("where", range(4))
def test_what_is_no_number_goes_to_torch(bad, where, monkeypatch):
    given = draw(3, 5, 4)
    given[where].view(-1)[1] = bad
    labels = torch.randint(4, (3, 5))
    mine = [engine.solve(given, y, "auto").value for y in (None, labels)] + [chain.best_labels(given)]
    monkeypatch.setattr(_native, "library", lambda: None)
    theirs = [engine.solve(given, y, "auto").value for y in (None, labels)] + [chain.best_labels(given)]
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-6, atol=1e-6)


def test_labels_and_lengths_out_of_range_are_not_followed():
    given = draw(4, 5, 3)
    labels = torch.randint(3, (4, 5))
    labels[0, 2], labels[1, 0], labels[2, 4] = 1 << 60, -1, 3
    found, _ = run(given, labels)
    assert found.sound.tolist() == [False, False, False, True]
    beyond = given._replace(lengths=torch.tensor([-1, 6, 1 << 60, 5]))
    found, _ = run(beyond)
    assert found.sound.tolist() == [False, False, False, True]
    assert native.best_path(beyond).sound.tolist() == [False, False, False, True]


def test_nothing_legal_is_left_to_torch():
    given = draw(2, 4, 3)
    given.emissions[1, 2] = -INF
    found, _ = run(given)
    assert found.sound.tolist() == [True, False]
    assert engine.solve(given, None, "auto").value[1] == -INF
    given.transitions.fill_(-INF)
    found, parts = run(given)
    assert found.unsound == 2
    assert all(bool((part == 0).all()) for part in parts)


def test_one_label_is_certain():
    given = draw(3, 40, 1, scale=7.3)
    found, parts = run(given, torch.zeros(3, 40, dtype=torch.long), torch.tensor([0.1, 0.7, 1.3]))
    assert found.value.tolist() == [0, 0, 0]
    assert all(bool((part == 0).all()) for part in parts)


def test_ties_go_to_the_lowest_last_label_then_backwards():
    generator = torch.Generator().manual_seed(0)
    for k in (2, 5, 9, 17):
        for dtype in (torch.float32, torch.float64):
            shapes = (6, 8, k), (k, k), (k,), (k,)
            parts = (torch.randint(0, 2, shape, generator=generator).to(dtype) * 0.1 for shape in shapes)
            given = Chain(*parts, torch.randint(0, 9, (6,), generator=generator))
            labels = chain.best_labels(given)
            wide = Chain._make([*(part.double().mul(10).round() for part in given[:4]), given.lengths])
            viterbi = sys.modules["torch_multiclass.ops.chain.viterbi"]
            assert torch.equal(labels, viterbi.by_torch(wide))


def test_inputs_of_any_layout():
    given = draw(4, 6, 5)
    labels = torch.randint(5, (4, 6))
    odd = Chain(
        given.emissions.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        given.transitions.t().contiguous().t(),
        torch.stack([given.start, given.start], 1)[:, 0],
        given.end.expand(3, 5)[1],
        torch.full((4, 2), 6)[:, 0],
    )
    plain, parts = run(given, labels)
    strange, own = run(odd, labels.t().contiguous().t())
    assert torch.equal(plain.value, strange.value)
    for one, other in zip(parts, own, strict=True):
        assert torch.equal(one, other)


def test_eight_threads_at_once():
    given, labels = draw(8, 60, 17), torch.randint(17, (8, 60))
    wanted, grads = run(given, labels)
    best = chain.best_labels(given)
    wrong = []

    def work():
        for _ in range(20):
            found, parts = run(given, labels)
            same = [torch.equal(found.value, wanted.value), torch.equal(chain.best_labels(given), best)]
            if not all([*same, *map(torch.equal, parts, grads)]):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_after_a_fork():
    code = """
import os, torch
from torch_multiclass.ops import chain
torch.set_num_threads(1)
def value():
    e = torch.arange(2 * 9 * 4.0).view(2, 9, 4).sin()
    return chain.log_partition(chain.Chain.of(e, torch.eye(4))).tolist()
first = value()
pid = os.fork()
if pid == 0:
    os._exit(0 if value() == first else 1)
print(os.waitpid(pid, 0)[1], value() == first)
"""
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.split() == ["0", "True"], found.stderr


OFFSETS = {"before": (-1,), "after": (1,), "both": (-1, 1)}


@pytest.mark.parametrize("pattern", ["bio", "before", "after", "both", "few", "many", "column"])
@pytest.mark.parametrize("k", [24, 33, 100])
def test_best_paths_among_labels_that_are_barred(pattern, k):
    viterbi = sys.modules["torch_multiclass.ops.chain.viterbi"]
    for seed in range(12):
        given = draw(3, 12, k, seed, scale=1.0 + seed)
        generator = torch.Generator().manual_seed(seed)
        if pattern == "bio":
            transitions, start = bio(k, -INF)
            given = given._replace(transitions=given.transitions + transitions, start=given.start + start)
        elif pattern == "column":
            given.transitions[:, seed] = -INF
        elif pattern in OFFSETS:  # some labels are entered from themselves and from one so many places away only
            given.emissions.mul_(8)  # few labels contend
            for label in range(seed, k, 3):
                own = given.transitions[:, label].clone()
                given.transitions[:, label] = -INF
                for places in (0, *OFFSETS[pattern]):
                    other = label + places * (1 + seed)
                    if 0 <= other < k:
                        given.transitions[other, label] = own[other]
        else:
            share = {"few": 2 / k**2, "many": 0.9}[pattern]
            given.transitions[torch.rand(k, k, generator=generator) < share] = -INF
        if seed % 2:
            given = Chain(*(part.round() for part in given[:4]), None)  # ties
        found = native.best_path(given)
        wide = given.double()
        labels = viterbi.by_torch(wide)
        score = wide.score(labels)
        assert bool((score[~found.sound] == -INF).all())
        assert torch.equal(found.labels[found.sound], labels[found.sound])
        torch.testing.assert_close(found.score[found.sound], score[found.sound], rtol=1e-12, atol=0)


@pytest.mark.parametrize("weight", [[1.0, 1.0, 1.0], [0.25, 0.25, 0.25], [0.5, 2.0, 0.0], [0.0, 0.0, 0.0]])
def test_the_gradient_that_is_computed_beside_the_value(weight):
    given, labels, weight = draw(3, 7, 5), torch.randint(5, (3, 7)), torch.tensor(weight)
    parts = [part.clone().requires_grad_() for part in given[:4]]
    (chain.negative_log_likelihood(Chain(*parts, None), labels) * weight).sum().backward()
    for part, own in zip(parts, logspace.gradient(weight, given, labels), strict=True):
        torch.testing.assert_close(part.grad.double(), own, rtol=1e-5, atol=1e-6)


def test_what_was_changed_after_the_value_is_noticed():
    emissions = torch.randn(2, 4, 3)
    transitions = torch.zeros(3, 3, requires_grad=True)
    value = chain.log_partition(Chain.of(emissions, transitions)).sum()
    emissions.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_masks_are_looked_at_once():
    generator = torch.Generator().manual_seed(0)
    left = torch.arange(6) < torch.tensor([[6], [0], [3], [1]])
    for mask in (left, left | True, left & False, torch.rand(4, 6, generator=generator) < 0.6, left.flip(1), left[:0]):
        lengths, whole, first = native.mask_lengths(mask)
        assert torch.equal(lengths, mask.sum(1))
        assert whole == bool(mask.all())
        assert first == torch.equal(mask, torch.arange(6) < mask.sum(1)[:, None])
        labels = torch.randint(-100, 3, mask.shape, generator=generator)
        labels[mask] = labels[mask].abs()
        assert torch.equal(native.mask_labels(mask, labels, 101), torch.where(mask, labels, 0))
        if mask.any():
            labels[tuple(mask.nonzero()[0])] = -100 if mask.all() else 101
            assert native.mask_labels(mask, labels, 101) is None


EDGES = {
    "an empty batch": (0, 3, 2),
    "no positions": (2, 0, 3),
    "one label": (2, 4, 1),
    "one position": (2, 1, 3),
    "one of each": (1, 1, 1),
}


@pytest.mark.parametrize("size", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("bad", [None, float("nan"), INF, -INF])
def test_what_is_at_the_edge_is_as_torch_has_it(size, bad, monkeypatch):
    given = draw(*size)
    for part in given[:4] if bad is not None else ():
        part.view(-1)[:1] = bad
    labels = torch.zeros(size[:2], dtype=torch.long)

    def results():
        parts = [part.clone().requires_grad_() for part in given[:4]]
        value = chain.negative_log_likelihood(Chain(*parts, None), labels)
        value.sum().backward()
        free = chain.log_partition(given)
        return [value.detach(), free, chain.best_labels(given), chain.legal_labels(given), *chain.best_path(given)], [
            part.grad for part in parts
        ]

    mine, own = results()
    monkeypatch.setattr(_native, "library", lambda: None)
    theirs, gradients = results()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-6, atol=1e-6)
    for one, other in zip(own, gradients, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-5, atol=1e-6)


def test_two_processes_at_once():
    code = """
import torch
from torch_multiclass.ops import chain
torch.set_num_threads(1)
e = torch.arange(8 * 40 * 9.0).view(8, 40, 9).sin()
for _ in range(50):
    value = chain.log_partition(chain.Chain.of(e, torch.eye(9)))
    labels = chain.best_labels(chain.Chain.of(e, torch.eye(9)))
print(value.tolist(), labels.sum().item())
"""
    both = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    first, second = (process.communicate()[0] for process in both)
    assert first == second
    assert first
