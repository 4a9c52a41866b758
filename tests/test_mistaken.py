"""Mistakes that are made on the first day, and what is said of each: what came, and what is meant."""

import copy
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torch_multiclass as tm
from torch_multiclass import solvers
from torch_multiclass.checks.names import OTHER, PACKAGE, _known

TWO = [[0, 1], [1, 0]]
X, Y = torch.randn(6, 8), torch.arange(6) % 3


def of(kind):
    """The scores of a head."""
    if kind == "chain":
        return tm.ChainHead(8, 3)(X[None])
    return {"coded": tm.OneVsAllHead, "several": tm.MultilabelHead}[kind](8, 3)(X)


IMAGES, PIXELS = torch.randn(2, 5, 6, 7), torch.zeros(2, 6, 7, dtype=torch.long)


@pytest.mark.parametrize(
    "use",
    [
        lambda: tm.CRFLoss()(IMAGES, PIXELS),
        lambda: tm.functional.crammer_singer_loss(IMAGES, PIXELS),
        lambda: tm.M3NLoss()(tm.FlatScores(IMAGES), PIXELS),
        lambda: tm.metrics.MarginDistribution([0.0]).update(IMAGES, PIXELS),
        lambda: tm.metrics.EmpiricalMarginLoss().update(IMAGES, PIXELS),
        lambda: tm.TemperatureScaling().fit(IMAGES, PIXELS),
    ],
)
def test_classes_at_dimension_one(use):
    """As `torch.nn.CrossEntropyLoss` has them."""
    how = r"; where dimension 1 holds the classes, give class_dim=1, or scores.movedim\(1, -1\)$"
    with pytest.raises(ValueError, match=rf"^target: got shape \(2, .*one class index for each row of .*{how}"):
        use()
    with pytest.raises(ValueError, match=r"one class index for each row of scores \(2, 5, 6, 7\)$"):
        tm.CRFLoss()(IMAGES, PIXELS[:, :5])


@pytest.mark.parametrize("part", [{"loss": tm.CRFLoss(class_dim=1)}, {"decoder": tm.ArgmaxDecoder(class_dim=1)}])
def test_a_head_with_classes_elsewhere(part):
    head = tm.MulticlassHead(8, 3, **part)
    scores, target = head(X.view(2, 3, 8).expand(2, 3, 8)[:, :2]), torch.zeros(2, 2, dtype=torch.long)
    with pytest.raises(
        ValueError, match=r"are of 2 classes; accepted are 3, .*; its classes are last, class_dim=-1, wh"
    ):
        head.loss(scores, target) if "loss" in part else head.predict(scores)
    with pytest.raises(ValueError, match=r"are of 8 classes; accepted are 3, as head\(features\) gives them$"):
        tm.MulticlassHead(8, 3).predict(X)


@pytest.mark.parametrize("code", [TWO, torch.eye(2)])
def test_a_code_in_another_place(code):
    with pytest.raises(ValueError, match=r"^num_classes: got .*; accepted is a whole number; a code is code=...$"):
        tm.ECOCHead(8, code)


def chain_scores():
    return tm.ChainHead(8, 3)(X[None])


MASK = torch.ones(1, 6, dtype=torch.bool)
LSTM = nn.LSTM(8, 8, batch_first=True)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: tm.ChainHead(8, 3).loss(chain_scores(), Y[None], MASK),
            "sample_weight: got dtype torch.bool; .*; of a se",
        ),
        (
            lambda: tm.CRFLoss()(chain_scores(), Y[None], MASK),
            r"sample_weight: .*, head\(features, mask=...\) takes the mask$",
        ),
        (
            lambda: tm.M3NLoss()(chain_scores(), Y[None], MASK.float()),
            r"sample_weight: got shape \(1, 6\);.*takes the mask$",
        ),
        (
            lambda: tm.M3NLoss()(chain_scores(), Y[None], torch.ones(2)),
            r"sample_weight: got .*, one weight for each example$",
        ),
        (
            lambda: tm.ChainHead(8, 3)(LSTM(X[None])),
            r"features: got tuple; .*, as features\[0\] where a layer gives its out",
        ),
        (
            lambda: tm.ChainHead(8, 3)(nn.utils.rnn.pack_padded_sequence(X[None], [6], batch_first=True)),
            r"features: got PackedSequence; .*, as pad_packed_sequence\(features, batch_first=True\)\[0\]$",
        ),
        (lambda: tm.ChainHead(8, 3)((1.0, 2.0)), r"features: got tuple; .*, as torch.as_tensor\(features\)$"),
        (lambda: tm.LabelTreeHead(8, 3)(X), "forward: misses parents; accepted is forward"),
        (lambda: tm.LabelTreeHead(8, 3, loss="svmstruct"), r"loss: .*; accepted is SVMStructLoss\(exact=False\)$"),
        (
            lambda: solvers.DualSVM(cost=None),
            r"cost: got NoneType; accepted are 'zero_one', 'hamming', a \(K, K\) matrix",
        ),
        (
            lambda: solvers.DualSVM().fit(X, 2 * (Y % 2) - 1),
            r"target: label -1 is outside .*; of signs: \(labels \+ 1\) // 2$",
        ),
        (lambda: solvers.DualSVM().fit(X, Y - 1), r"target: label -1 is outside 0..1 \(2 classes\)$"),
        (
            lambda: tm.ExpectedCostDecoder(),
            r"ExpectedCostDecoder: misses cost .*; accepted is ExpectedCostDecoder\(cost\)",
        ),
        (
            lambda: tm.LinearScorer(8, 3, 1, 2, 3, 4),
            "LinearScorer: too many positional arguments; accepted is LinearScorer",
        ),
        (
            lambda: tm.MarginRampLoss(),
            r"MarginRampLoss: misses rho \(the width of the ramp.*; accepted is MarginRampLoss\(rho\)",
        ),
    ],
)
def test_what_is_meant_is_said(use, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        use()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: tm.CRFLoss(weight="balanced"), r"weight: got 'balanced'; .*, \(K,\); a head takes 'balanced'$"),
        (
            lambda: tm.MulticlassHead(8, 3, weight="balance"),
            r"weight: got 'balance'; accepted are 'balanced' and one weight",
        ),
        (
            lambda: tm.CRFLoss()(X[:, :3], Y - 1),
            "target: label -1 is outside .*; where it marks no label, write -100, or give the loss ignore_index=-1$",
        ),
        (
            lambda: tm.CrammerSingerLoss(class_dim=1)(IMAGES, torch.full((2, 6, 7), 255, dtype=torch.uint8)),
            "target: label 255 is outside .*; where it marks no label, write -100, or give the loss ignore_index=255$",
        ),
        (lambda: tm.CRFLoss()(X[:, :3], Y + 9), r"target: label 9 is outside 0..2 \(3 classes\)$"),
        (lambda: tm.M3NLoss(class_dim=1)(IMAGES, PIXELS[:, None]), r"target: .*, as target.squeeze\(1\)$"),
        (
            lambda: tm.TemperatureScaling(class_dim=1).fit(IMAGES, torch.full((2, 6, 7), 255)),
            "target: label 255 is outside .*; where it marks no label, write -100, or",
        ),
        (
            lambda: tm.MulticlassHead(8, 3).balance(torch.tensor([0, 1, 2, -1])),
            "target: label -1 is outside .*; where it marks no label, write -100, or",
        ),
        *[
            (lambda use=use: use(IMAGES, torch.rand(2, 6, 7, 5).softmax(-1)), message)
            for use, message in (
                (
                    tm.CRFLoss(class_dim=1),
                    r"target: got shape \(2, 6, 7, 5\); accepted is \(2, 5, 6, 7\), a distribution over labels for "
                    "each example, its classes in dimension 1 as those of the scores$",
                ),
                (
                    lambda s, y: tm.M3NLoss(class_dim=1)(s, y > 0.2),
                    r"target: got shape \(2, 6, 7, 5\); accepted is \(2, 5, 6, 7\), a set of allowed labels for each",
                ),
                (
                    lambda s, y: tm.CRFLoss(class_dim=1)(s, y[:, None, :, :, 0]),
                    r"target: got shape \(2, 1, 6, 7\); accepted is \(2, 5, 6, 7\), target.squeeze\(1\).long\(\) where",
                ),
            )
        ],
        *[
            (
                lambda use=use: use(IMAGES, torch.zeros(2, 6, 7, 5, dtype=torch.long)),
                r"target: got shape \(2, 6, 7, 5\); accepted is \(2, 6, 7\), one class index for each row of "
                r"(class_)?scores \(2, 5, 6, 7\), whose classes are in dimension 1, as target.argmax\(-1\) where it is",
            )
            for use in (
                tm.CrammerSingerLoss(class_dim=1),
                tm.CRFLoss(class_dim=1),
                tm.TemperatureScaling(class_dim=1).fit,
                tm.MulticlassHead(8, 5, decoder=tm.ArgmaxDecoder(class_dim=1)).calibrate,
                tm.metrics.EmpiricalMarginLoss(class_dim=1).update,
            )
        ],
        (
            lambda: tm.M3NLoss(class_dim=1)(IMAGES, torch.zeros(2, 5, 6, 7, dtype=torch.long)),
            r"target: .*, as target.argmax\(1\) where it is one-hot$",
        ),
        (lambda: solvers.DualSVM(kernel="rbf"), r"kernel: got 'rbf'; .*; meant may be kernels.Gaussian\(gamma\)$"),
        (
            lambda: solvers.DualSVM(kernel=tm.kernels.Gaussian(1.0)).set_params(gamma=2.0),
            "set_params: got 'gamma'; .*; meant may be 'kernel__gamma'$",
        ),
    ],
)
def test_what_is_meant_by_what_stands_elsewhere(use, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        use()


class TestMasksTurnedRound:
    """True where there is padding, as in `torch.nn.Transformer`."""

    def test_said_once_in_training(self):
        head, target = tm.ChainHead(8, 3), torch.tensor([[0, 1, 2, -100, -100, -100]])
        with pytest.warns(UserWarning, match="^mask: no label of the target stands where it is True.*=~padding_mask$"):
            head.loss(head(X[None], mask=target == -100), target)
        head.loss(head(X[None], mask=target == -100), target)

    @pytest.mark.parametrize("mask", [[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]])
    def test_not_of_others(self, mask):
        head, target = tm.ChainHead(8, 3), torch.tensor([[0, 1, 2, -100, -100, -100]])
        head.loss(head(X[None], mask=torch.tensor([mask]).bool()), target)
        unknown = tm.ChainHead(8, 3)
        unknown.loss(unknown(X[None], mask=target == -100), torch.full_like(target, -100))


def test_balanced_weights_are_of_one_head():
    loss = tm.CRFLoss()
    heads = [tm.MulticlassHead(8, 3, loss=loss) for _ in range(2)]
    heads[0].balance(torch.tensor([0, 0, 1, 2]))
    assert loss.weight is heads[1].criterion.weight is None
    assert heads[0].criterion.weight.tolist() == pytest.approx([2 / 3, 4 / 3, 4 / 3])


@pytest.mark.parametrize("network", [nn.Linear(2, 1), nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))])
def test_a_network_of_another_width(network):
    with pytest.raises(ValueError, match=r"^network: takes 2 features; accepted is one that takes 3$"):
        tm.scorers.NetworkScorer(network, 3)
    tm.scorers.NetworkScorer(nn.Sequential(nn.LazyLinear(1)), 3)
    tm.scorers.NetworkScorer(nn.Sequential(), 1)


def test_a_tree_takes_the_slack_that_it_knows():
    head = tm.LabelTreeHead(8, 3, loss=tm.SVMStructLoss(exact=False))
    assert head.loss(head(X, parents=torch.arange(6) - 1), Y).isfinite()


CHAIN = tm.scorers.Chain(3)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: tm.ChainHead(CHAIN, 3), r"in_features: got Chain; .*head.scorer.chain = chain puts one in$"),
        (lambda: tm.ChainHead(8, CHAIN), r"num_tags: got Chain; .*head.scorer.chain = chain puts one in$"),
        (lambda: tm.Head(CHAIN, "crf", tm.ViterbiDecoder()), "scorer: got Chain; .*scorer.chain = chain puts one in$"),
        (
            lambda: tm.Head(nn.Linear(8, 3), "crf", tm.ViterbiDecoder()),
            "scorer: got Linear; .* torch_multiclass scorer; head.*calls it$",
        ),
        (
            lambda: tm.MulticlassHead(tm.LinearScorer(8, 3), 3),
            r"in_features: got Lin.*; Head\(scorer, loss, decoder\) t",
        ),
        (
            lambda: tm.ChainHead(nn.Linear(8, 3), 3),
            r"in_features: got Linear; .* number; head\(module\(x\)\) calls it$",
        ),
        (lambda: tm.LabelTreeHead(nn.Linear(8, 3), 3), r"in_features: got Linear; .*; head\(module\(x\)\) calls it$"),
    ],
)
def test_modules_in_another_place(use, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        use()


@pytest.mark.parametrize("kind", ["chain", "coded", "several"])
class TestScoresAreNoTensor:
    """Nor do they have its methods; `hasattr` and copies know nothing of it."""

    WORDS = r"got \w+Scores, the scores of a structure and no tensor; .*predict.*predict_proba.*loss\(scores, target\)"

    @pytest.mark.parametrize("name", ["argmax", "softmax", "view", "max", "sum", "numpy", "backward", "T"])
    def test_methods(self, kind, name):
        scores = of(kind)
        with pytest.raises(AttributeError, match=f"^{name}: {self.WORDS}"):
            getattr(scores, name)
        assert not hasattr(scores, name)
        with pytest.raises(AttributeError, match=r"Scores' object has no attribute 'nonsense'$"):
            scores.nonsense  # noqa: B018

    @pytest.mark.parametrize(
        "use",
        [
            lambda scores: F.cross_entropy(scores, Y),
            lambda scores: nn.CrossEntropyLoss()(scores, Y),
            lambda scores: torch.argmax(scores, -1),
            lambda scores: scores + 1,
            lambda scores: 2 * scores,
            lambda scores: X / scores,
            lambda scores: -scores,
            lambda scores: scores > 0,
        ],
    )
    def test_functions_and_operators(self, kind, use):
        with pytest.raises(TypeError, match=self.WORDS):
            use(of(kind))

    def test_what_scores_do_they_still_do(self, kind):
        scores = of(kind).detach()
        for same in (copy.copy(scores), copy.deepcopy(scores), pickle.loads(pickle.dumps(scores)), scores[:]):
            assert same.shape == scores.shape
        assert len(torch.cat([scores, scores]).shape) == len(scores.shape)


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("", "SpanF1", "metrics.SpanF1"),
        ("", "CRFHead", "ChainHead"),
        ("", "DualSVM", "solvers.DualSVM"),
        ("", "HammingError", "metrics.HammingError"),
        ("", "CRFloss", "CRFLoss"),
        ("", "SolverClassifier", "integrations.sklearn.SolverClassifier"),
        ("losses", "Hinge", "margins.Hinge"),
        ("metrics", "SpanF2", "metrics.SpanF1"),
        ("kernels", "Gausian", "kernels.Gaussian"),
        ("margins", "as_margin_los", "margins.as_margin_loss"),
        ("solvers", "SVM", "solvers.DualSVM"),
        ("solvers", "LinearSVM", "solvers.DualSVM"),
        ("solvers", "AdaBoostClassifier", "solvers.AdaBoostMH"),
        ("solvers", "OneVsRestClassifier", "OneVsAllHead, torch_multiclass.solvers.CodedReduction"),
        ("metrics", "F1", "metrics.SpanF1"),
        ("metrics", "F1Score", "metrics.SpanF1"),
        ("metrics", "ECE", "metrics.CalibrationError"),
        ("losses", "MultiMarginLoss", "CrammerSingerLoss"),
        ("kernels", "RBF", "kernels.Gaussian"),
    ],
)
def test_a_name_that_a_module_lacks(module, name, meant):
    where = getattr(tm, module) if module else tm
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; meant may be torch_multiclass\.{meant}\b"):
        getattr(where, name)
    assert not hasattr(where, name)
    assert getattr(where, name, None) is None
    with pytest.raises(AttributeError, match=r"has no attribute '__nothing__'$"):
        where.__nothing__  # noqa: B018


def test_every_name_that_may_be_meant_is_there():
    for place in {place for places in [*_known().values(), *OTHER.values()] for place in places}:
        if "sklearn" not in place:
            found = tm
            for part in place.removeprefix(f"{PACKAGE}.").split("."):
                found = getattr(found, part)
    assert not set(OTHER) & set(_known())


@pytest.mark.slow
def test_a_name_that_is_lacking_imports_nothing():
    code = (
        "import sys, torch_multiclass as tm; known = set(sys.modules); assert not hasattr(tm, 'SpanF1');"
        "assert not {name for name in set(sys.modules) - known if 'torch' in name or 'sklearn' in name} - "
        "{'torch_multiclass.integrations'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: tm.MulticlassHead(8, 3, loss=tm.CRFLoss), r"CRFLoss\(\)"),
        (lambda: tm.ChainHead(8, 3, loss=tm.MarginRampLoss), r"MarginRampLoss\(\.\.\.\)"),
        (lambda: tm.ChainHead(8, 3, decoder=tm.ViterbiDecoder), r"ViterbiDecoder\(\)"),
        (lambda: tm.Head(tm.LinearScorer, tm.CRFLoss(), tm.ArgmaxDecoder()), r"LinearScorer\(\.\.\.\)"),
        (lambda: solvers.DualSVM(kernel=tm.kernels.Gaussian), r"Gaussian\(\)"),
        (lambda: tm.M3NLoss(cost=tm.costs.ZeroOne), r"ZeroOne\(\)"),
        (lambda: tm.LossBasedDecoder(tm.margins.Hinge), r"Hinge\(\)"),
        (lambda: solvers.CodedReduction(tm.codes.one_vs_one(3), solvers.BinaryLogistic), r"BinaryLogistic\(\)"),
        (lambda: solvers.boost_confidence(solvers.DecisionTree, X, Y, delta=0.1, success=0.5), r"DecisionTree\(\)"),
        (lambda: solvers.planes(tm.LinearScorer(8, 3), tm.M3NLoss, X, Y), r"M3NLoss\(\)"),
        (lambda: solvers.DualSVM().fit(torch.Tensor, Y), None),
        (lambda: tm.MulticlassHead(8, 3, loss=int), None),
    ],
)
def test_a_class_in_the_place_of_what_it_makes(make, name):
    with pytest.raises(TypeError, match=rf"got the class {name[:4]}\w+ \(write {name}\)" if name else r"class \w+;"):
        make()


@pytest.mark.parametrize(
    "name", sorted({name for name in dir(solvers) if hasattr(getattr(solvers, name), "fit")} - {"Solver"})
)
def test_a_fit_of_a_class_in_the_place_of_what_it_makes(name):
    kind = getattr(solvers, name)
    words = rf"^{name}\.fit: got Tensor for self; accepted .*, write {name}\((\.\.\.)?\)\.fit\(features, target\)$"
    for verb in {"fit", "partial_fit", "fit_stream", "path"} & set(dir(kind)):
        assert inspect.isfunction(getattr(kind, verb))
        with pytest.raises(TypeError, match=rf"^{name}\.{verb}: got nothing for self; .*\)\.{verb}\("):
            getattr(kind, verb)()
    with pytest.raises(TypeError, match=words):
        kind.fit(X, Y)


@pytest.mark.parametrize("given", [np.zeros((6, 8), np.float32), [[0.0] * 8] * 6])
def test_arrays_and_lists(given):
    for use in (
        tm.MulticlassHead(8, 3),
        tm.ChainHead(8, 3),
        tm.OneVsOneHead(8, 3),
        lambda x: solvers.DualSVM().fit(x, Y),
    ):
        with pytest.raises(TypeError, match=r"features: got .*; accepted is a torch.Tensor, as torch.as_tensor"):
            use(given)


@pytest.mark.parametrize(
    "solver",
    [
        solvers.DualSVM(),
        solvers.DecisionTree(),
        solvers.AdaBoostMH(2),
        solvers.Perceptron(),
        solvers.CodedReduction(tm.codes.one_vs_all(3), solvers.BinaryLogistic()),
    ],
)
def test_what_takes_arrays_in_place_of_a_solver(solver):
    for x, y in ((X.numpy(), Y.numpy()), (X, Y.numpy()), (X.tolist(), Y)):
        with pytest.raises(TypeError, match=r", as torch.as_tensor\(.*\); .*SolverClassifier takes arrays$"):
            solver.fit(x, y)
    with pytest.raises(TypeError, match=r"^target: got dtype torch.float32; accepted are class indices[^S]*$"):
        solver.fit(X, Y.float())


def test_labels_and_tables_that_are_no_tensors():
    for target in (Y.numpy(), Y.tolist()):
        with pytest.raises(TypeError, match=r"target: got .*, as torch.as_tensor\(target\)$"):
            tm.CRFLoss()(X, target)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"features: got DataFrame; .*, as torch.as_tensor\(features.to_numpy\(\)\)$"):
        tm.LinearScorer(8, 3)(pandas.DataFrame(X.numpy()))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tm.kernels.Gaussian(sigma=2.0), r"^Gaussian: .*meant may be gamma = 1 / \(2 sigma\^2\)"),
        (lambda: tm.kernels.Laplacian(bandwidth=2.0), r"^Laplacian: .*, of a Laplacian 1 / bandwidth"),
        (lambda: tm.kernels.Polynomial(2, coef0=1.0), r"^Polynomial: .*meant may be c$"),
        (lambda: tm.RandomFourierFeatures(8, n_components=9), "meant may be num_features"),
        (
            lambda: tm.MulticlassHead(8, n_classes=3),
            r"^MulticlassHead: misses num_classes .*meant may be num_classes$",
        ),
        (lambda: tm.MulticlassHead(8, 3, class_weight=None), "meant may be weight"),
        (lambda: solvers.DualSVM(gamma=1.0), r"meant may be kernel=kernels\.Gaussian\(gamma\)"),
        (lambda: solvers.DecisionTree(min_samples_leaf=3), "meant may be min_leaf"),
        (lambda: solvers.RandomForest(n_estimators=3), "meant may be trees"),
        (lambda: tm.CRFLoss(smoothing=0.1), "meant may be label_smoothing"),
        (lambda: tm.M3NLoss(costs="zero_one"), "meant may be cost$"),
        (
            lambda: tm.ChainHead(8, 3)(X, attention_mask=Y),
            r"^ChainHead: .*also mask, lengths; meant may be mask=attention",
        ),
        (lambda: tm.SegmentHead(8, 3, 2)(X, length=Y), r"^SegmentHead: .*also mask, lengths; meant may be lengths$"),
        (lambda: tm.ChainHead(8, 3)(X, src_key_padding_mask=Y), r"meant may be mask=~src_key_padding_mask$"),
        (lambda: tm.MulticlassHead(8, 3)(X, mask=Y), r"^MulticlassHead: .*'mask'; accepted is forward\(features\)$"),
        (lambda: tm.OneVsAllHead(8, 3)(X, mask=Y), r"^CodedScorer: .*'mask'; accepted is forward\(features\)$"),
        (lambda: tm.ChainHead(8, 3)(X, mask=torch.ones(6).long()), r"^mask: .*a position counts, as mask\.bool\(\)$"),
        (lambda: solvers.DualSVM().fit(X, Y, sample_weight=Y), "^fit: .*meant may be weight$"),
        (
            lambda: solvers.DualSVM().fit(X),
            r"^fit: misses target \(their labels, .*; accepted is fit\(features, target\)",
        ),
        (lambda: solvers.DualSVM(colour=1), r"argument 'colour'; accepted is DualSVM\(\), by name also C, kernel"),
    ],
)
def test_keywords_of_other_libraries(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_tags_have_an_order():
    tags = ["O", "B-X", "I-X"]
    expected = tm.tag_constraints(tags)
    for given in ({"O": 0, "B-X": 1, "I-X": 2}, {"I-X": 2, "O": 0, "B-X": 1}, dict(O=0, **{"B-X": 1, "I-X": 2}).keys()):
        for ours, own in zip(tm.tag_constraints(given), expected, strict=True):
            assert torch.equal(ours, own)
    assert tm.metrics.SpanF1({"I-X": 2, "O": 0, "B-X": 1}).tags == tags
    for given in (dict(enumerate(tags)), {"O": 0, "B-X": 2}, {"O": 1, "B-X": 2}, {"O": 0.0}, {"O": False}):
        with pytest.raises(ValueError, match=r"tags: got \{.*; accepted is .* or a mapping of them to 0\.\.K-1$"):
            tm.tag_constraints(given)
    for given in (set(tags), frozenset(tags)):
        with pytest.raises(TypeError, match=r"tags: got a set, which has no order; accepted is a sequence"):
            tm.tag_constraints(given)


@pytest.mark.parametrize("loss", ["crf", "crammer_singer", "weston_watkins", "m3n"])
def test_labels_of_another_form(loss):
    head = tm.MulticlassHead(8, 3, loss=loss)
    for target, words in (
        (Y.float(), r"got dtype torch.float32; accepted are class indices of an integer dtype, as target.long\(\)$"),
        (Y[:, None], r"got shape \(6, 1\); accepted is \(6,\), .*, as target.squeeze\(-1\)$"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"target: {words}"):
            head.loss(head(X), target)


def test_one_hot_labels_and_columns_of_floats():
    with pytest.raises(ValueError, match=r"as target.argmax\(-1\) where it is one-hot$"):
        tm.CRFLoss()(X[:, :3], F.one_hot(Y, 3))
    with pytest.raises(ValueError, match=r"target.squeeze\(-1\).long\(\) where they are labels, or a distribution"):
        tm.CRFLoss()(X[:, :3], Y[:, None].float())
    soft = F.one_hot(Y, 3).float()
    torch.testing.assert_close(tm.CRFLoss()(X[:, :3], soft), tm.CRFLoss()(X[:, :3], Y))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hinge", "'crammer_singer' or 'weston_watkins'"),
        (tm.margins.Hinge(), "'crammer_singer' or 'weston_watkins'"),
        ("logistic", "'cross_entropy'"),
        ("exponential", "'adaboost_mh' or"),
        ("CRFLoss", "'crf'"),
        (nn.CrossEntropyLoss(), "'cross_entropy'"),
        (F.cross_entropy, "'cross_entropy'"),
    ],
)
@pytest.mark.parametrize("head", [tm.MulticlassHead, tm.ChainHead, tm.MultilabelHead])
def test_losses_of_a_margin_for_scores_of_classes(head, given, meant):
    with pytest.raises((TypeError, ValueError), match=rf"loss: got .*; accepted .*; meant may be {meant}"):
        head(8, 3, loss=given)


@pytest.mark.parametrize(
    ("given", "meant"), [("cross_entropy", "logistic"), ("m3n", "hinge"), ("bce", "logistic"), ("exp", "exponential")]
)
def test_losses_of_class_scores_for_margins(given, meant):
    with pytest.raises(ValueError, match=rf"loss: got '{given}'; accepted are 'hinge', .*; meant may be '{meant}'$"):
        tm.OneVsAllHead(8, 3, loss=given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: tm.ChainHead(8, 3, loss=tm.CrammerSingerLoss()),
            r"loss: got CrammerSingerLoss, which does not read ChainScores, those of ChainScorer; accepted there are "
            r"CRFLoss, M3NLoss, SVMStructLoss and StructuredPerceptronLoss$",
        ),
        (
            lambda: tm.ChainHead(8, 3, loss="weston_watkins"),
            r"loss: got WestonWatkinsLoss, which does not read ChainScores",
        ),
        (
            lambda: tm.OneVsAllHead(8, 3, loss=tm.CrammerSingerLoss()),
            r"loss: got CrammerSingerLoss, which does not read CodedScores, .* are CodedLoss and the name of a binary "
            r"loss, such as 'logistic'$",
        ),
        (
            lambda: tm.MulticlassHead(8, 3, loss=tm.losses.CodedLoss()),
            r"loss: got CodedLoss, which does not read FlatScores, those of LinearScorer; accepted there are AdaBoost",
        ),
        (
            lambda: tm.MulticlassHead(8, 3, decoder=tm.ViterbiDecoder()),
            r"decoder: got ViterbiDecoder, which does not read FlatScores, .* are ArgmaxDecoder, ExpectedCostDecoder "
            r"and RankingDecoder$",
        ),
        (
            lambda: tm.SegmentHead(8, 3, 2, decoder=tm.ArgmaxDecoder()),
            r"decoder: got ArgmaxDecoder, which does not read SegmentScores, those of SegmentScorer; .* are "
            r"KBestDecoder, PosteriorDecoder and ViterbiDecoder$",
        ),
        (
            lambda: tm.MultilabelHead(8, 3, loss=tm.MarginRampLoss(1.0)),
            r"loss: got MarginRampLoss, which does not read MultilabelScores",
        ),
        (
            lambda: tm.OneVsOneHead(8, 3, decoder=tm.ArgmaxDecoder()),
            r"decoder: got ArgmaxDecoder, which does not read CodedScores, .* are HammingDecoder, LossBasedDecoder, "
            r"TournamentDecoder and VotingDecoder$",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_when_a_head_is_made(make, words):
    with pytest.raises(TypeError, match=f"^{words}"):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: tm.MulticlassHead(8, 3, weight=[1.0, 2.0]),
            r"weight: got shape \(2,\); accepted is \(3,\), one weight",
        ),
        (
            lambda: tm.ECOCHead(8, 3, code="hadamard", weight=[1.0, 2.0]),
            r"weight: got shape \(2,\); accepted is \(3,\)",
        ),
        (lambda: tm.MulticlassHead(8, 3, loss=tm.M3NLoss(weight=[1.0, 2.0])), r"weight: got shape \(2,\)"),
        (lambda: tm.MulticlassHead(8, 3, loss=tm.M3NLoss(cost=TWO)), r"cost: is 2 x 2, but the scores have 3 classes"),
        (lambda: tm.ChainHead(8, 3, loss=tm.SVMStructLoss(cost=TWO)), r"cost: is 2 x 2, but the scores have 3 classes"),
        (
            lambda: tm.MulticlassHead(8, 3, decoder=tm.ExpectedCostDecoder(TWO)),
            r"cost: is 2 x 2, but the scores have 3",
        ),
    ],
)
def test_weights_and_costs_of_other_classes_are_refused_when_a_head_is_made(make, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        make()
    with pytest.raises(ValueError, match=r"^num_classes: got "):
        tm.costs.Matrix(TWO).check_size("2")
    tm.costs.ZeroOne().check_size(3)
    assert tm.MultilabelHead(8, 3, loss=tm.M3NLoss(cost=TWO)).num_classes == 3  # a cost of each label, held or not


@pytest.mark.parametrize("head", ["ChainHead", "SecondOrderHead", "MultilabelHead", "MulticlassHead"])
def test_a_part_of_ones_own_reads_whatever_it_reads(head):
    class Own(tm.Loss):
        def forward(self, scores, target):
            return scores

    class Scored(tm.Scorer):
        in_features, num_classes = 8, 3

        def forward(self, features):
            return features

        def reset_parameters(self):
            pass

    made = getattr(tm, head)(8, 3, loss=Own())
    assert isinstance(made.criterion, Own)
    with pytest.raises(TypeError, match=r"^Own: .* 'sample_weight'; accepted is forward\(scores, target\)$"):
        made.loss(made(torch.zeros(2, 4, 8)), torch.zeros(2, 4, dtype=torch.long), torch.ones(2))
    assert isinstance(tm.heads.Head(Scored(), tm.CRFLoss(), tm.ViterbiDecoder()).decoder, tm.ViterbiDecoder)


def test_a_name_in_other_letters():
    with pytest.raises(ValueError, match=r"^scheme: got 'bio'; accepted are .*; meant may be 'BIO'$"):
        tm.tag_constraints(["O", "B-X"], scheme="bio")
    with pytest.raises(ValueError, match=r"^reduction: got 'avg'; accepted are [^;]*$"):
        tm.CRFLoss(reduction="avg")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tm.metrics.MeanCost(torch.ones(3, 3).fill_diagonal_(0)), "MeanCost: misses num_classes"),
        (lambda: tm.metrics.SpanF1(), "SpanF1: misses tags"),
        (lambda: tm.metrics.BitError(), "BitError: misses num_columns"),
        (lambda: tm.metrics.HierarchicalError(), "HierarchicalError: misses parents"),
        (lambda: tm.metrics.MarginDistribution(), "MarginDistribution: misses thresholds"),
    ],
)
def test_metrics_say_what_a_call_misses(make, words):
    with pytest.raises(TypeError, match=words):
        make()
