"""One-versus-all, one-versus-one and error-correcting heads: training, probabilities, calibration, state."""

import copy
import io
import math

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from torch import nn

import torch_multiclass as tm
from torch_multiclass import codes, metrics

K = 4


def generator():
    return torch.Generator().manual_seed(0)


def heads(device=None, in_features=6, num_classes=K):
    code = codes.sparse_random(num_classes, 8, trials=50, generator=generator())
    return [
        tm.OneVsAllHead(in_features, num_classes, device=device),
        tm.OneVsOneHead(in_features, num_classes, device=device),
        tm.ECOCHead(in_features, code=code, loss="logistic", device=device),
        tm.ECOCHead(in_features, code=code, loss="exponential", device=device),
        tm.ECOCHead(in_features, code=code, decoder=tm.HammingDecoder(), device=device),
        tm.ContinuousCodeHead(in_features, code=code, device=device),
        tm.ContinuousCodeHead(in_features, code=code, similarity="gaussian", device=device),
    ]


every_head = pytest.mark.parametrize("which", range(7))


def blobs(rows=240, num_classes=K, spread=1.0):
    g = generator()
    centres = 2 * torch.randn(num_classes, 6, generator=g)
    target = torch.arange(rows) % num_classes
    return centres[target] + spread * torch.randn(rows, 6, generator=g), target


def train(head, features, target, steps=60, rate=0.05):
    optimizer = torch.optim.Adam([p for p in head.parameters() if p.requires_grad], rate)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(head(features), target).backward()
        optimizer.step()
    return head


# ---------------------------------------------------------------------------------------------- every head


@every_head
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 3, 6), (0, 6)])
def test_a_head_attaches_to_any_features(which, shape, device):
    head = heads(device)[which]
    scores = head(torch.randn(shape, device=device))
    assert head.predict(scores).shape == shape[:-1]
    assert head.class_scores(scores).shape == (*shape[:-1], K)
    torch.testing.assert_close(head.predict_proba(scores).sum(-1), torch.ones(shape[:-1], device=device))
    head.loss(scores, torch.zeros(shape[:-1], dtype=torch.long, device=device)).backward()
    assert head.scorer.margins.weight.grad is not None


@every_head
def test_training_behind_a_network_separates_the_classes(which, device):
    features, target = (tensor.to(device) for tensor in blobs())
    body, head = nn.Linear(6, 6).to(device), heads(device)[which]
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], 0.02)
    for _ in range(150):
        optimizer.zero_grad()
        head.loss(head(body(features)), target).backward()
        optimizer.step()
    scores = head(body(features))
    assert (head.predict(scores) == target).float().mean() > 0.9
    assert (head.predict_proba(scores).argmax(-1) == target).float().mean() > 0.9


@every_head
def test_state_dict_reloads_strictly_and_is_pinned(which):
    head = heads()[which]
    linear = ["scorer.margins.weight", "scorer.margins.bias"]
    if isinstance(head, tm.ContinuousCodeHead):
        keys = ["scorer.codewords", *linear, "temperature.temperature"]
    else:
        keys = ["scorer.coding_matrix", "scorer.absent", *linear, "temperature.temperature"]
        keys += ["platt.slope", "platt.offset", "platt.fitted"]
        assert head.scorer.coding_matrix.dtype == torch.int8
    assert list(head.state_dict()) == keys
    buffer = io.BytesIO()
    torch.save(head.state_dict(), buffer)
    buffer.seek(0)
    other = heads()[which]
    other.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    features = torch.randn(7, 6)
    assert torch.equal(other.class_scores(other(features)), head.class_scores(head(features)))
    twin = copy.deepcopy(head)
    assert torch.equal(twin.predict(twin(features)), head.predict(head(features)))
    assert "num_classes=4" in repr(head)


@every_head
def test_compile_and_export(which, device):
    head = heads(device)[which]
    features = torch.randn(5, 6, device=device)

    def flat(scores):
        return scores if isinstance(scores, torch.Tensor) else scores.margins

    compiled = torch.compile(head, fullgraph=True, backend="eager")
    torch.testing.assert_close(flat(compiled(features)), flat(head(features)))
    exported = torch.export.export(head, (features,), strict=False).module()(features)
    torch.testing.assert_close(flat(exported), flat(head(features)))
    scorer = torch.export.export(head.scorer, (features,), strict=False).module()(features)
    torch.testing.assert_close(flat(scorer), flat(head(features)))


@every_head
def test_half_precision_and_autocast(which, device):
    head = heads(device)[which]
    features = torch.randn(5, 6, device=device)
    target = torch.tensor([0, 1, 2, 3, -100], device=device)
    with torch.autocast(device.type, torch.bfloat16):
        assert head.loss(head(features), target).dtype == torch.float32
    half = heads(device)[which].bfloat16()
    scores = half(features.bfloat16())
    assert half.loss(scores, target).dtype == torch.float32
    assert half.predict(scores).shape == (5,)


def test_a_code_loaded_from_a_checkpoint_brings_its_columns():
    """The shortcut to a class's columns follows the code that is loaded."""
    one = codes.one_vs_one(5)
    other = one[torch.tensor([3, 0, 4, 1, 2])]
    saved, head = tm.ECOCHead(6, code=other), tm.ECOCHead(6, code=one)
    head.load_state_dict(saved.state_dict())
    features, target = torch.randn(10, 6), torch.arange(10) % 5
    assert head.loss(head(features), target) == saved.loss(saved(features), target)


def test_bad_heads_are_named():
    code = codes.one_vs_all(4)
    with pytest.raises(ValueError, match="code: has 4 rows; accepted are 5, one for each class"):
        tm.ECOCHead(6, 5, code=code)
    with pytest.raises(ValueError, match="num_classes: got tensor"):
        tm.ECOCHead(6, code)  # the code goes by its name
    with pytest.raises(ValueError, match="code: rows 0 and 1 are equal"):
        tm.ECOCHead(6, code=[[1, -1], [1, -1]])
    with pytest.raises(ValueError, match="code: column 1 is all zero"):
        tm.CodedScorer(6, [[1, 0], [-1, 0]])
    with pytest.raises(ValueError, match="num_classes: got None with the code 'hadamard'"):
        tm.ECOCHead(6, code="hadamard")
    with pytest.raises(ValueError, match="code: got 'golay'; accepted are 'one_vs_all'"):
        tm.ECOCHead(6, 4, code="golay")
    with pytest.raises(ValueError, match="similarity: got 'cosine'"):
        tm.ContinuousCodeHead(6, code=code, similarity="cosine")
    with pytest.raises(ValueError, match=r"features: got shape \(2, 5\)"):
        tm.OneVsAllHead(6, 4)(torch.zeros(2, 5))
    with pytest.warns(UserWarning, match="have a single sign") as caught:
        tm.ECOCHead(6, code=[[1, 1], [1, -1]])
    assert len(caught) == 1


def test_codes_by_name():
    assert torch.equal(tm.ECOCHead(6, 4, code="hadamard").scorer.coding_matrix, codes.hadamard(4))
    drawn = [tm.ECOCHead(6, 9, generator=generator()) for _ in range(2)]
    assert torch.equal(drawn[0].scorer.coding_matrix, drawn[1].scorer.coding_matrix)
    assert drawn[0].scorer.margins.weight.shape == (32, 6)


# ------------------------------------------------------------------------------------------ absent classes


@pytest.mark.parametrize("which", range(5))
def test_an_absent_class_is_never_predicted(which, device):
    """Three classes declared, only 0 and 2 present: width 3, class 1 never predicted, one warning that names it."""
    features, target = (tensor.to(device) for tensor in blobs(60, 2))
    target = 2 * target
    head = [
        tm.OneVsAllHead(6, 3),
        tm.OneVsOneHead(6, 3),
        tm.OneVsOneHead(6, 3, decoder=tm.TournamentDecoder()),
        tm.ECOCHead(6, 3, "exponential", code=codes.complete(3)),
        tm.ECOCHead(6, code=codes.complete(3), decoder=tm.HammingDecoder()),
    ][which].to(device)
    target[0] = -100
    with pytest.warns(UserWarning, match=r"class\(es\) 1 of 3 have no example") as caught:
        head.leave_out_absent(target)
    assert len(caught) == 1
    train(head, features, target, 30)
    noise = head(3 * torch.randn(300, 6, device=device))
    probabilities = head.predict_proba(noise)
    assert set(head.predict(noise).tolist()) == {0, 2}
    assert probabilities.shape == (300, 3)
    assert bool((probabilities[:, 1] == 0).all())
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(300, device=device))
    head.leave_out_absent(torch.tensor([0, 1, 2], device=device))
    assert not head.scorer.absent.any()


# ------------------------------------------------------------------------------------------- probabilities


def test_nobody_claims_it():
    head = tm.OneVsAllHead(6, 3)
    scores = tm.CodedScores(torch.tensor([-3.0, -1.0, -2.0]), codes.one_vs_all(3))
    assert head.predict(scores) == 1
    probabilities = head.predict_proba(scores)
    assert bool(probabilities.isfinite().all())
    assert float(probabilities.sum()) == pytest.approx(1)
    assert probabilities.argmax() == 1


def test_certain_pairs_give_finite_probabilities():
    head = tm.OneVsOneHead(6, 3)
    for margins in ([500.0, 500.0, 500.0], [500.0, -500.0, 500.0], [0.0, 0.0, 0.0]):
        p = head.predict_proba(tm.CodedScores(torch.tensor(margins), codes.one_vs_one(3)))
        assert bool(p.isfinite().all())
        assert float(p.sum()) == pytest.approx(1)


def test_coupling_and_vote_may_disagree():
    """Class 0 wins two of three pairs by little; class 1 loses one by little and wins two by much."""
    head = tm.OneVsOneHead(6, 4)
    code = codes.one_vs_one(4)
    margins = torch.tensor([0.1, 0.1, 0.1, 3.0, 3.0, 0.0])
    scores = tm.CodedScores(margins, code)
    assert head.predict(scores) == 0
    assert head.predict_proba(scores).argmax() == 1


# --------------------------------------------------------------------------------------------- calibration


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_calibration_lowers_the_held_out_error_and_changes_no_prediction(which, method, device):
    """Overlapping classes, margins blown up sixfold: the uncalibrated probabilities are far too sure."""
    features, target = (tensor.to(device) for tensor in blobs(3000, spread=3.0))
    head = train(heads(device)[which], features[:1000], target[:1000])
    with torch.no_grad():
        head.scorer.margins.weight.mul_(6)
        head.scorer.margins.bias.mul_(6)
    held_out, fresh = head(features[1000:2000]), head(features[2000:])
    before = head.predict(fresh)
    error = {}
    for step in ("before", "after"):
        metric = metrics.CalibrationError().to(device)
        metric.update(head.predict_proba(fresh), target[2000:])
        error[step] = float(metric.compute())
        if step == "before":
            head.calibrate(held_out, target[1000:2000], method)
    assert torch.equal(head.predict(fresh), before)
    assert error["after"] < 0.6 * error["before"]
    reloaded = heads(device)[which]
    reloaded.load_state_dict(head.state_dict())
    torch.testing.assert_close(reloaded.predict_proba(fresh), head.predict_proba(fresh))


def test_calibration_refuses_what_it_cannot_use():
    head = tm.OneVsAllHead(6, 3)
    scores = head(torch.randn(4, 6)).margins.detach()
    scores = tm.CodedScores(scores, codes.one_vs_all(3))
    with pytest.raises(ValueError, match="method: got 'isotonic'"):
        head.calibrate(scores, torch.zeros(4, dtype=torch.long), "isotonic")
    with pytest.raises(ValueError, match="target: label 3 is outside"):
        head.calibrate(scores, torch.full((4,), 3))
    with pytest.raises(ValueError, match="target: holds no label"):
        head.calibrate(scores, torch.full((4,), -100))


# ---------------------------------------------------------------------------------------- continuous codes


def test_alternating_changes_one_half_at_a_time():
    features, target = blobs()
    head = tm.ContinuousCodeHead(6, code=codes.hadamard(4))
    before = copy.deepcopy(head.state_dict())
    head.learn("code")
    train(head, features, target, 3)
    assert torch.equal(head.scorer.margins.weight, before["scorer.margins.weight"])
    assert not torch.equal(head.scorer.codewords, before["scorer.codewords"])
    code = head.scorer.codewords.detach().clone()
    head.learn("margins")
    train(head, features, target, 3)
    assert torch.equal(head.scorer.codewords, code)
    assert not torch.equal(head.scorer.margins.weight, before["scorer.margins.weight"])
    head.learn()
    assert all(parameter.requires_grad for parameter in head.parameters())


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x), generator=generator())
    x, y = torch.tensor(x / 16.0, dtype=torch.float32)[order], torch.tensor(y)[order]
    return x[:1000], y[:1000], x[1000:], y[1000:]


@pytest.fixture(scope="module")
def start(digits):
    """A code too short to correct anything, its margins learned and fixed."""
    x, y, x_test, y_test = digits
    head = tm.ECOCHead(64, code=codes.dense_random(10, 6, generator=generator()), loss="logistic")
    train(head, x, y, 300, 0.02)
    return head, float((head.predict(head(x_test)) != y_test).float().mean())


@pytest.mark.parametrize("similarity", ["inner_product", "gaussian"])
@pytest.mark.parametrize("what", ["code", "both"])
def test_a_learned_code_beats_its_start_on_held_out_data(similarity, what, digits, start):
    x, y, x_test, y_test = digits
    fixed, error = start
    margin = 1.0 if similarity == "inner_product" else 0.2
    head = tm.ContinuousCodeHead(
        64, None, tm.CrammerSingerLoss(margin), code=fixed.scorer.coding_matrix, similarity=similarity
    )
    head.scorer.load_state_dict({**fixed.scorer.state_dict(), "codewords": fixed.scorer.coding_matrix}, strict=False)
    head.learn(what)
    train(head, x, y, 300, 0.02)
    assert float((head.predict(head(x_test)) != y_test).float().mean()) < error - 0.02


def test_with_the_inner_product_the_code_is_the_linear_multiclass_svm(digits, start):
    """min 1/2 |M|^2 + C sum hinge over the code, margins fixed: convex, so descent meets an exact solver."""
    x, y, _, _ = digits
    x, y, penalty = x[:200], y[:200], 0.05
    margins = start[0](x).margins.detach().double()
    margins = margins / margins.std()
    exact = LinearSVC(
        multi_class="crammer_singer", C=penalty, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0
    ).fit(margins.numpy(), y.numpy())
    head = tm.ContinuousCodeHead(6, code=start[0].scorer.coding_matrix, bias=False, dtype=torch.float64)
    head.learn("code")
    with torch.no_grad():
        head.scorer.margins.weight.copy_(torch.eye(6))

    def objective():
        words = head.scorer.codewords
        return words.square().sum() / 2 + penalty * len(y) * head.loss(head(margins), y)

    best, optimizer = math.inf, torch.optim.SGD([head.scorer.codewords], 0.05)
    for step in range(600):
        optimizer.param_groups[0]["lr"] = 0.05 / (1 + step / 30)
        optimizer.zero_grad()
        value = objective()
        value.backward()
        best = min(best, value.item())
        optimizer.step()
    with torch.no_grad():
        head.scorer.codewords.copy_(torch.tensor(exact.coef_))
        optimum = float(objective())
    assert optimum <= best * (1 + 1e-9)
    assert best == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_calibration_passes_over_labels_of_classes_left_out(method):
    torch.manual_seed(0)
    head = tm.OneVsAllHead(8, 4)
    x, y = torch.randn(200, 8), torch.randint(4, (200,))
    with pytest.warns(UserWarning, match="2"):
        head.leave_out_absent(torch.tensor([0, 1, 3]))
    head.calibrate(head(x), y, method)
    assert 1e-2 < float(head.temperature.temperature) < 1e3
    with pytest.raises(ValueError, match="target: holds no label"):
        head.calibrate(head(x), torch.full((200,), -100), method)


def test_heads_with_codes_are_made_on_meta():
    for head in (tm.OneVsAllHead(8, 4, device="meta"), tm.OneVsOneHead(8, 4, device="meta")):
        assert head.scorer.margins.weight.device.type == "meta"
        assert type(head).__name__ in repr(head)


# ------------------------------------------------------------------------------------------ scores of the head


@pytest.mark.parametrize("verb", ["loss", "predict", "predict_proba", "class_scores", "calibrate"])
@pytest.mark.parametrize("name", ["flat", "continuous", "one_vs_all", "ecoc", "chain"])
def test_scores_of_another_width_are_an_error(name, verb):
    """Features, most likely, in the place of scores: they have a label of their own for every column."""
    head = {
        "flat": lambda: tm.MulticlassHead(64, 12),
        "continuous": lambda: tm.ContinuousCodeHead(64, 12, generator=generator()),
        "one_vs_all": lambda: tm.OneVsAllHead(64, 12),
        "ecoc": lambda: tm.ECOCHead(64, 12, generator=generator()),
        "chain": lambda: tm.ChainHead(64, 12),
    }[name]()
    if verb == "calibrate" and not hasattr(head, verb):
        pytest.skip("no calibration")
    target = torch.zeros(5, dtype=torch.long)
    scores = {"chain": tm.ChainScores(torch.randn(5, 64), torch.zeros(64, 64))}.get(name, torch.randn(5, 64))
    if name in ("one_vs_all", "ecoc"):
        scores = tm.CodedScores(torch.randn(5, 64), codes.one_vs_all(64))
    arguments = (scores, target) if verb in ("loss", "calibrate") else (scores,)
    with pytest.raises(ValueError, match="scores: are of 64 classes; accepted are 12, as head"):
        getattr(head, verb)(*arguments)
    if name in ("one_vs_all", "ecoc"):
        scores = tm.CodedScores(torch.randn(5, 66), codes.one_vs_one(12))
        with pytest.raises(ValueError, match="scores: have 66 columns; accepted are"):
            getattr(head, verb)(scores, *arguments[1:])


def test_a_head_over_another_class_dimension():
    head = tm.MulticlassHead(6, 3, tm.CRFLoss(class_dim=1), tm.ArgmaxDecoder(class_dim=1))
    scores = head(torch.randn(2, 4, 5, 6)).movedim(-1, 1)
    assert head.predict(scores).shape == (2, 4, 5)
    assert head.predict_proba(scores).shape == (2, 4, 5, 3)
    assert head.loss(scores, torch.zeros(2, 4, 5, dtype=torch.long)).ndim == 0
    with pytest.raises(ValueError, match="scores: are of 4 classes; accepted are 3"):
        head.predict(torch.randn(2, 4, 3))


@pytest.mark.parametrize("num_classes", [3, 17, 220])  # 220: the code is not written out
@pytest.mark.parametrize("bias", [True, False])
def test_sparse_gradients_are_those_of_the_pairs_of_the_labels(num_classes, bias, device):
    head = tm.OneVsOneHead(5, num_classes, "logistic", bias=bias, sparse=True, device=device, dtype=torch.float64)
    dense = tm.OneVsOneHead(5, num_classes, "logistic", bias=bias, device=device, dtype=torch.float64)
    dense.load_state_dict(head.state_dict())
    features = torch.randn(4, 5, generator=generator(), dtype=torch.float64).to(device)
    target = torch.tensor([2, 0, -100, 2], device=device)
    inputs = [features.clone().requires_grad_() for _ in range(2)]
    for one, given in zip((head, dense), inputs, strict=True):
        one.loss(one(given), target).backward()
    for (name, sparse), full in zip(head.named_parameters(), dense.parameters(), strict=True):
        assert sparse.grad.layout == torch.sparse_coo, name
        touched = sparse.grad.coalesce().indices()[0]
        assert len(touched) == 2 * (num_classes - 1) - 1  # of two labels, which have a pair in common
        torch.testing.assert_close(sparse.grad.to_dense(), full.grad)
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)


@pytest.mark.parametrize("make", [torch.optim.SparseAdam, torch.optim.SGD])
def test_optimisers_of_sparse_gradients_train(make, device):
    x, y = (part.to(device) for part in blobs(num_classes=20, spread=0.1))
    head = tm.OneVsOneHead(x.shape[1], 20, sparse=True, device=device)
    optimizer, before = make(list(head.parameters()), lr=0.1), float(head.loss(head(x), y).detach())
    for _ in range(20):
        optimizer.zero_grad()
        head.loss(head(x), y).backward()
        optimizer.step()
    assert float(head.loss(head(x), y).detach()) < 0.5 * before


def test_gradients_are_dense_where_all_pairs_count():
    head = tm.OneVsOneHead(3, 4, "logistic", label_smoothing=0.1, sparse=True)
    head.loss(head(torch.randn(2, 3)), torch.tensor([0, 1])).backward()
    assert head.scorer.margins.weight.grad.layout == torch.strided
    with pytest.raises(TypeError, match="sparse"):
        tm.OneVsOneHead(3, 4, sparse="yes")


def test_second_derivatives_of_sparse_gradients():
    head = tm.OneVsOneHead(3, 4, "logistic", sparse=True, dtype=torch.float64)
    x, target = torch.randn(2, 3, generator=generator(), dtype=torch.float64), torch.tensor([0, 3])
    x.requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: head.loss(head(x), target), x)
