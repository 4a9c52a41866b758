"""Bad arguments that torch or NumPy would answer with words of their own."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import torch_multiclass as tm
from torch_multiclass import scorers

SCORES, TARGET = torch.zeros(3, 2), torch.tensor([0, 1, 0])


@pytest.mark.parametrize("make", [tm.LinearScorer, tm.ChainScorer])
@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_sparse_features_are_a_matrix(make, sparse):
    features = torch.ones(3, 2, 4)
    scorer = make(4, 2)
    scorer(sparse(features[0]))
    with pytest.raises(ValueError, match=r"features: are sparse, of shape \(3, 2, 4\); accepted is a sparse matrix"):
        scorer(sparse(features))


@pytest.mark.parametrize("function", ["crf_loss", "crammer_singer_loss", "m3n_loss", "structured_perceptron_loss"])
def test_a_reduction_is_a_word(function):
    for reduction in (np.zeros((2, 0)), np.array(["mean", "sum"]), torch.zeros(2), None):
        with pytest.raises(ValueError, match=r"reduction: got .*; accepted are 'mean'"):
            getattr(tm.functional, function)(SCORES, TARGET, reduction=reduction)


def test_a_reduction_of_a_code_is_a_word():
    scores = tm.CodedScores(torch.zeros(3, 2), tm.codes.one_vs_all(2))
    with pytest.raises(ValueError, match=r"reduction: got .*; accepted are 'mean'"):
        tm.functional.coded_loss(scores, TARGET, reduction=np.zeros((2, 0)))


@pytest.mark.parametrize("smoothing", [torch.zeros(0), torch.zeros(2), np.zeros(2), "x", -0.1, 1.1, float("nan"), True])
def test_a_smoothing_is_a_number(smoothing):
    with pytest.raises((TypeError, ValueError), match=r"label_smoothing: got .*; accepted is a number from 0 to 1"):
        tm.functional.crf_loss(SCORES, TARGET, label_smoothing=smoothing)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_target_is_named():
    nested = torch.nested.nested_tensor([torch.zeros(2, dtype=torch.complex64)] * 2, layout=torch.strided)
    with pytest.raises(TypeError, match="target: "):
        tm.functional.crf_loss(SCORES, nested)


@pytest.mark.parametrize("verb", ["margin_max", "margin_log_partition"])
def test_the_verbs_take_costs_as_the_losses_do(verb):
    scores = tm.FlatScores(torch.tensor([[0.0, 2.0], [1.0, 0.5], [0.0, 0.0]]))
    matrix = [[0.0, 1.0], [3.0, 0.0]]
    expected = getattr(scores, verb)(TARGET, tm.costs.Matrix(torch.tensor(matrix)))
    for cost in (matrix, torch.tensor(matrix)):
        torch.testing.assert_close(getattr(scores, verb)(TARGET, cost), expected)


@pytest.mark.parametrize("class_dim", [np.zeros(0), np.zeros(2), "x"])
def test_the_dimension_of_classes_is_a_number(class_dim):
    scores = tm.CodedScores(torch.zeros(3, 2), tm.codes.one_vs_all(2))
    for given, function in ((SCORES, tm.functional.crf_loss), (scores, tm.functional.average_binary_loss)):
        with pytest.raises(TypeError, match="class_dim: got"):
            function(given, TARGET, class_dim=class_dim)


@pytest.mark.parametrize("scores", [1.0, None, tm.costs.ZeroOne(), SCORES, tm.FlatScores(SCORES)])
@pytest.mark.parametrize("head", [tm.OneVsAllHead, tm.OneVsOneHead])
def test_a_coded_head_is_calibrated_on_its_scores(head, scores):
    with pytest.raises(TypeError, match=r"scores: got .*; accepted are CodedScores"):
        head(4, 2).calibrate(scores, TARGET)


@pytest.mark.parametrize("trees", [torch.zeros(0), torch.zeros(3), np.zeros(3), None, 3])
def test_trees_come_in_a_sequence(trees):
    with pytest.raises(TypeError, match=r"trees: got .*; accepted are trees"):
        tm.EnsembleScorer(trees)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_targets_and_arrays_of_scores_are_refused_by_name():
    nested = torch.nested.nested_tensor([torch.zeros(3)])
    with pytest.raises((TypeError, ValueError), match=r"^target: "):
        tm.functional.crammer_singer_loss(SCORES, nested)
    with pytest.raises(TypeError, match=r"^scores: got .*; accepted are CodedScores"):
        tm.OneVsOneHead(2, 3).predict_proba(np.zeros(0))


@pytest.mark.parametrize("loss", [None, "cross_entropy", tm.CRFLoss()])
def test_a_smoothing_of_a_head_is_a_number(loss):
    with pytest.raises(ValueError, match=r"label_smoothing: got .*; accepted is a number from 0 to 1"):
        tm.MulticlassHead(3, 4, loss, label_smoothing=torch.zeros(3, 3))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_distribution_is_dense_and_beside_coded_scores():
    scores, soft = tm.CodedScores(torch.zeros(3, 2), tm.codes.one_vs_all(2)), torch.ones(3, 2)
    for bad in (b"ab", [0, 1], torch.nested.nested_tensor([torch.zeros(3)]), SCORES):
        with pytest.raises(TypeError, match=r"^scores: got"):
            tm.CodedLoss()(bad, soft)
    with pytest.raises((TypeError, ValueError), match=r"^target: "):
        tm.CodedLoss()(scores, soft.to_sparse())
    for smoothing in (torch.zeros(0, 3), np.zeros((2, 0), int)):
        with pytest.raises(ValueError, match=r"label_smoothing: got .*; accepted is a number from 0 to 1"):
            tm.functional.coded_loss(scores, TARGET, label_smoothing=smoothing)


def test_a_temperature_is_a_number():
    with pytest.raises(ValueError, match=r"temperature: got .*; accepted is a finite number > 0"):
        tm.FlatScores(SCORES).margin_log_partition(TARGET, tm.costs.ZeroOne(), {1, 2})
    with pytest.raises(ValueError, match=r"temperature: got .*; accepted is a finite number > 0"):
        tm.ChainScores(SCORES[None], torch.zeros(2, 2)).margin_log_partition(TARGET[None], temperature=[])


def test_a_kernel_takes_two_sets_of_rows():
    for bad in (torch.nn.Linear(2, 2), lambda rows: rows @ rows.mT):
        with pytest.raises(TypeError, match=r"^kernel: got .* a function that returns a Gram block"):
            tm.kernels.as_kernel(bad)
    assert tm.kernels.as_kernel(torch.matmul).function is torch.matmul  # a builtin, which does not say what it takes
    assert tm.kernels.as_kernel(torch.nn.Bilinear(2, 2, 1)).function.out_features == 1


def test_left_out_classes_do_not_let_other_scores_through():
    head = tm.MulticlassHead(2, 3)
    with pytest.warns(UserWarning, match="2"):
        head.leave_out_absent(torch.tensor([0, 1]))
    with pytest.raises(TypeError, match=r"^scores: got"):
        head.predict([1.0, [2.0]])


def test_rows_of_a_gram_matrix_have_its_columns():
    kernel, few = tm.kernels.Precomputed(torch.tensor([0, 2])), torch.zeros(2, 2)
    with pytest.raises(ValueError, match=r"left: got 2 values a row; accepted are more than 2"):
        kernel(few, few)
    with pytest.raises(ValueError, match=r"features: got 3 rows of 2 values; accepted are no more rows than columns"):
        tm.kernels.Precomputed().diagonal(torch.zeros(3, 2))
    for bad in (1.0, "x", np.zeros(3), torch.zeros(())):
        with pytest.raises((TypeError, ValueError), match="right: got"):
            tm.kernels.Precomputed()(few, bad)
    with pytest.raises(ValueError, match=r"columns: got shape \(\)"):
        tm.kernels.Precomputed(torch.tensor(1))


@pytest.mark.parametrize(
    "scores", [tm.FlatScores(SCORES), tm.ChainScores(SCORES[None], torch.zeros(2, 2))], ids=["flat", "chain"]
)
def test_exactness_is_yes_or_no(scores):
    target = TARGET if isinstance(scores, tm.FlatScores) else TARGET[None]
    with pytest.raises(TypeError, match=r"exact: got .*; accepted are True and False"):
        scores.slack_max(tm.costs.ZeroOne(), target, exact=torch.ones(2))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_set_of_labels_is_named():
    nested = torch.nested.nested_tensor([torch.ones(2, dtype=torch.bool)] * 2, layout=torch.jagged)
    with pytest.raises(TypeError, match=r"^target: got a nested tensor"):
        tm.ChainScores(SCORES[None], torch.zeros(2, 2)).relative_to(nested)


def test_no_rows_have_no_leaves_and_labels_of_any_integer_are_compared():
    trees = tm.solvers.RandomForest(3).fit(torch.randn(9, 2), torch.arange(9) % 2).scorer
    assert trees.leaves(torch.zeros(0, 2)).shape == (0, 3)
    error = tm.metrics.HammingError()
    error.update(torch.tensor([1, 2]), torch.tensor([1, 3], dtype=torch.uint16))
    assert float(error.compute()) == 0.5


def test_a_machine_whose_mistakes_cost_nothing_is_zero():
    x, y = torch.randn(6, 4), torch.tensor([1, 1, 1, 0, 0, 0])
    scorer, report = tm.solvers.DualSVM(cost=torch.zeros(2, 2)).fit(x, y)
    assert report.converged
    assert not scorer(x).any()


WIDE = [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_integers_of_any_kind_are_labels_columns_and_tags(dtype):
    """torch computes next to nothing with the wider ones without a sign."""
    ones = torch.ones(2, 3, dtype=dtype)
    assert tm.MultilabelScores(torch.arange(6.0).view(2, 3)).score(ones).tolist() == [3, 12]
    with pytest.raises(ValueError, match="labels: hold other numbers"):
        tm.MultilabelScores(torch.zeros(2, 3)).score(torch.full((2, 3), 2, dtype=torch.long).to(dtype))
    metric = tm.metrics.MeanCost("zero_one", num_classes=2)
    metric.update(ones, torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert metric.compute() == pytest.approx(1 / 6)
    with pytest.raises(ValueError, match=r"preds: label 1 is outside 0\.\.0"):
        tm.metrics.MeanCost("zero_one", num_classes=1).update(ones, torch.zeros(2, 3, dtype=torch.long))
    kernel = tm.kernels.Precomputed(torch.tensor([0, 2]).to(dtype))
    assert kernel.diagonal(torch.arange(9.0).view(3, 3)[:2]).tolist() == [0, 5]


@pytest.mark.parametrize("dtype", [torch.int32, torch.float8_e5m2, torch.complex64])
@pytest.mark.parametrize("verb", ["predict", "predict_proba", "class_scores"])
@pytest.mark.filterwarnings("ignore:target. class")
def test_a_head_answers_for_real_scores(verb, dtype):
    for head in (tm.MulticlassHead(4, 3), tm.OneVsOneHead(4, 3)):
        head.leave_out_absent(torch.tensor([0, 1]))
        with pytest.raises(TypeError, match="scores: got "):
            getattr(head, verb)(torch.zeros(2, 3).to(dtype))


def test_what_has_no_values_is_named():
    meta = torch.ones(2, device="meta")
    x, y = torch.eye(2), torch.arange(2)
    with pytest.raises(ValueError, match="Cs: is on meta"):
        tm.solvers.DualSVM().path(x, y, meta)
    with pytest.raises(ValueError, match="thresholds: is on meta"):
        tm.metrics.MarginDistribution(meta)
    outside = scorers.OutsideScorer(SimpleNamespace(decision_function=lambda X: X[:, 0]), 2)
    with pytest.raises(ValueError, match="features: is on meta"):
        outside(meta)
    head = tm.OneVsAllHead(2, 3, device="meta")
    with pytest.warns(UserWarning, match="have no example"):
        head.leave_out_absent(torch.tensor([0, 1]))


@pytest.mark.parametrize("bias", [np.zeros(0), np.zeros(3), torch.zeros(2), 1, "tied"])
def test_a_bias_is_a_word_or_a_flag(bias):
    for solver in (tm.solvers.DualSVM, tm.solvers.BinaryLeastSquares):
        with pytest.raises(TypeError, match=r"bias: got .*; accepted is True, False or 'free'"):
            solver(bias=bias)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_features_and_scores_are_named():
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(2)], layout=torch.strided)
    for solver in (tm.solvers.DualSVM(), tm.solvers.BinaryLeastSquares(), tm.solvers.Pegasos()):
        with pytest.raises(TypeError, match="features: got a nested tensor"):
            solver.fit(nested, torch.tensor([0, 1]))
    for function in (tm.functional.margin, tm.functional.weston_watkins_loss):
        with pytest.raises(TypeError, match="scores: got a nested tensor"):
            function(nested, torch.zeros(2, 2))


def test_the_cutting_planes_of_what_is_none():
    scorer, loss, x, y = tm.LinearScorer(3, 2), tm.M3NLoss(), torch.eye(3), torch.tensor([0, 1, 0])
    asked = {"scorer": scorer, "loss": loss, "features": x, "target": y}
    for name, given in (("scorer", None), ("loss", abs), ("features", [1]), ("target", [0, 1, 0])):
        with pytest.raises(TypeError, match=f"{name}: got .*; accepted is"):
            tm.solvers.planes(**{**asked, name: given})
    with pytest.raises(ValueError, match=r"features: got shape \(3,\); accepted is \(B, D\)"):
        tm.solvers.planes(scorer, loss, x[0], y)
    with pytest.raises(ValueError, match=r"target: got shape \(2,\); accepted is \(3, \.\.\.\)"):
        tm.solvers.planes(scorer, loss, x, y[:2])
    with pytest.raises(ValueError, match=r"weight: got shape \(7,\).*\(8,\)"):
        tm.solvers.planes(scorer, loss, x, y, weight=torch.zeros(7))
    with pytest.raises(TypeError, match="weight: got tuple"):
        tm.solvers.planes(scorer, loss, x, y, weight=())


def test_columns_are_scorers():
    one = tm.LinearScorer(3, 1)
    for columns in (np.zeros(0), torch.zeros(2), one):
        with pytest.raises(TypeError, match="columns: got "):
            scorers.ColumnsScorer(columns, 3)
    with pytest.raises(TypeError, match=r"columns: one is nan; accepted are scorers and None"):
        scorers.ColumnsScorer([one, float("nan")], 3)
    with pytest.raises(TypeError, match=r"scorer: got 1\.0; accepted is a scorer"):
        scorers.AttributeScorer(1.0, 2)
    with pytest.raises(TypeError, match="silent: got "):
        scorers.AttributeScorer(one, 2, silent=torch.zeros(()))
    with pytest.raises(ValueError, match=r"silent: 2 is outside 0\.\.1 \(2 columns\)"):
        scorers.AttributeScorer(one, 2, silent=[0, 2])
    with pytest.raises(TypeError, match=r"emissions: got list"):
        scorers.Chain(3)([1.0])


@pytest.mark.filterwarnings("ignore:Sparse")
def test_scorers_of_dense_features_say_so():
    class First:
        def decision_function(self, X):
            return X[:, 0]

    network, outside = scorers.NetworkScorer(nn.Linear(3, 1), 3), scorers.OutsideScorer(First(), 3)
    for scorer in (
        tm.KernelScorer(torch.eye(3), 2),
        network,
        outside,
        scorers.AttributeScorer(tm.LinearScorer(5, 1), 2),
    ):
        for form in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr):
            with pytest.raises(TypeError, match=r"features: got a tensor of layout .*; accepted are dense ones"):
                scorer(form(torch.eye(3)))


def test_a_chain_keeps_no_tensor_of_the_users():
    constraints = tm.tag_constraints(["O", "B-X", "I-X"])
    before = [part.clone() for part in constraints]
    chain = scorers.Chain(3, constraints)
    with torch.no_grad():
        chain.allowed_transitions.fill_(7.0)
    assert all(torch.equal(*pair) for pair in zip(constraints, before, strict=True))
    versions = [part._version for part in constraints]
    chain.reset_parameters()
    assert [part._version for part in constraints] == versions


def test_names_and_labels_of_regions():
    pytest.importorskip("matplotlib")
    points, target = torch.randn(3, 2), torch.tensor([0, 1, 0])
    with pytest.raises(TypeError, match="labels: got "):
        tm.plots.regions(lambda x: (x[:, 0] > 0).long(), points, target, labels=torch.zeros(()))
    for label_of in (nn.Linear(2, 2), lambda x: x, lambda x: None, lambda x: x[:, 0]):
        with pytest.raises(ValueError, match=r"label_of: gave .*; accepted is \(40000,\) of integers"):
            tm.plots.regions(label_of, points, target)


def test_a_matrix_of_costs_of_a_report_has_values():
    head = tm.MulticlassHead(4, 2)
    with pytest.raises(ValueError, match=r"cost: is on meta"):
        tm.report(head, (torch.randn(3, 4), torch.tensor([0, 1, 0])), cost=torch.zeros(2, 2, device="meta"))


@pytest.mark.filterwarnings("ignore:target. class")
def test_a_number_is_no_scores_of_a_head_that_leaves_out_a_class():
    for head in (tm.MulticlassHead(4, 2), tm.SegmentHead(4, 2, 3)):
        head.leave_out_absent(torch.tensor([0, 0]))
        with pytest.raises((TypeError, ValueError), match=r"^(scores|class_dim): .*; accepted"):
            head.predict_proba(torch.tensor(0.0))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_integers_of_any_kind_are_lengths_parents_and_codes(dtype):
    lengths, parents = torch.tensor([3, 1]), torch.tensor([[2, 2, 2], [1, 1, 1]])
    emissions, moves = torch.arange(12.0).view(2, 3, 2).sin(), torch.eye(2)
    made = {
        "chain": lambda lengths: tm.ChainScores(emissions, moves, lengths=lengths),
        "second": lambda lengths: tm.SecondOrderScores(emissions, moves, torch.zeros(2, 2, 2), lengths=lengths),
        "segments": lambda lengths: tm.SegmentScores(emissions[..., None], torch.zeros(1, 1), lengths=lengths),
        "tree": lambda lengths: tm.TreeScores(emissions, moves, torch.tensor([-1, 0, 1]), lengths=lengths),
    }
    for make in made.values():
        torch.testing.assert_close(make(lengths.to(dtype)).log_partition(), make(lengths).log_partition())
        with pytest.raises(ValueError, match=r"lengths: 4 is outside 0\.\.3"):
            make(torch.tensor([4, 1]).to(dtype))
    with pytest.raises(ValueError, match="parents: "):
        tm.TreeScores(emissions, moves, parents.to(dtype))
    code, margins = torch.eye(3, dtype=torch.int64), torch.randn(4, 3)
    expected, found = (tm.CodedScores(margins, each) for each in (code, code.to(dtype)))
    for decoder in (tm.HammingDecoder(), tm.LossBasedDecoder("hinge")):
        assert torch.equal(decoder(found), decoder(expected))
    with pytest.raises(ValueError, match="code: holds the entry 2"):
        tm.CodedScores(margins, (2 * code).to(dtype))
    tm.OneVsAllHead(3, 3).loss(expected, torch.tensor([0, 1, 2, 2]).to(dtype))
    x, y = torch.eye(3).repeat(5, 1), torch.arange(15) % 3
    found = tm.solvers.boost_confidence(tm.solvers.Perceptron(), x, y.to(dtype), delta=0.1, success=0.5)
    assert (
        found.report.errors
        == tm.solvers.boost_confidence(tm.solvers.Perceptron(), x, y, delta=0.1, success=0.5).report.errors
    )


def test_a_constant_of_a_bound_has_a_value():
    pytest.importorskip("lightning")
    from torch_multiclass.integrations.duality_gap import DualityGap

    with pytest.raises(ValueError, match="C: is on meta"):
        DualityGap(torch.zeros(1, device="meta"))
    for name in ("features", "scorer"):
        with pytest.raises(TypeError, match=f"{name}: got .*; accepted is a function of the module"):
            DualityGap(1.0, **{name: torch.zeros(2)})


@pytest.mark.parametrize("scheme", [np.zeros(0, np.uint16), np.zeros((2, 3)), torch.zeros(2), "IOB3", 1.0])
def test_a_scheme_is_a_word(scheme):
    with pytest.raises(ValueError, match=r"to: got .*; accepted are"):
        tm.convert_tags(["O"], scheme)
    with pytest.raises(ValueError, match=r"scheme: got .*; accepted are"):
        tm.tag_spans(["O"], scheme)


@pytest.mark.parametrize("classes", [np.zeros((2, 3)), torch.zeros(2), "3"])
def test_a_number_of_classes_beside_preferences_is_a_number(classes):
    signs = torch.tensor([[1, -1, 1], [1, 1, -1]])
    with pytest.raises((TypeError, ValueError), match="num_classes: got "):
        tm.solvers.ConstraintClassifier().partial_fit(torch.eye(2), signs, num_classes=classes)


def test_a_calibration_is_beside_its_scores():
    scores = tm.CodedScores(torch.zeros(2, 3), tm.codes.one_vs_all(3))
    for scaling, given, name in [
        (tm.TemperatureScaling(device="meta"), torch.zeros(2, 3), "class_scores"),
        (tm.TemperatureScaling(device="meta"), tm.ChainScores(torch.zeros(1, 2, 3), torch.zeros(3, 3)), "class_scores"),
        (tm.PlattScaling(3, device="meta"), scores, "scores"),
        (tm.PlattScaling(3), scores.to("meta"), "scores"),
    ]:
        with pytest.raises(ValueError, match=f"{name}: is on .*, but the calibration is on .*; accepted is one device"):
            scaling(given)
    assert tm.TemperatureScaling()(torch.zeros(2, 3, device="meta")).is_meta  # a number goes with any device


def test_a_head_that_leaves_out_a_class_is_beside_its_scores():
    head = tm.MulticlassHead(2, 3, device="meta")
    with pytest.warns(UserWarning, match="have no example"):
        head.leave_out_absent(torch.tensor([0, 1]))
    for scores in (torch.zeros(2, 3), tm.scores.FlatScores(torch.zeros(2, 3))):
        with pytest.raises(ValueError, match="scores: is on cpu, but the head is on meta; accepted is one device"):
            head.class_scores(scores)


@pytest.mark.parametrize("verb", ["margin_max", "slack_max", "slack_bounds", "margin_log_partition"])
def test_a_cost_is_beside_its_scores(verb):
    cost = (1 - torch.eye(2)).to("meta")
    with pytest.raises(ValueError, match=r"cost: is on meta, but .* is on cpu; accepted is one device"):
        getattr(tm.scores.FlatScores(SCORES), verb)(cost=cost, target=TARGET)


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-21, 1e21])
def test_a_temperature_is_one_that_scores_can_be_divided_by(temperature):
    flat, chain = tm.scores.FlatScores(torch.ones(1, 2)), tm.ChainScores(torch.ones(1, 3, 2), torch.ones(2, 2))
    target, labels = torch.tensor([0]), torch.zeros(1, 3, dtype=torch.long)
    for ask in (
        lambda t: flat.log_partition(temperature=t),
        lambda t: flat.margin_log_partition(target, temperature=t),
        lambda t: chain.log_partition(temperature=t),
        lambda t: chain.relative_to(labels, unobserved="sum", temperature=t),
        lambda t: chain.rsample(temperature=t),
        lambda t: tm.CRFLoss(temperature=t),
    ):
        with pytest.raises(ValueError, match=r"temperature: got .*; accepted are 1e-20 to 1e\+20"):
            ask(temperature)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_scores_of_another_dimension_of_classes():
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(2)], layout=torch.strided)
    with pytest.raises(TypeError, match="scores: got "):
        tm.functional.crf_loss(nested, torch.zeros(2, dtype=torch.long), class_dim=0)


@pytest.mark.parametrize("huge", [10**400, -(10**400), float("nan"), True, "x"])
def test_a_number_beyond_all_floats_is_none(huge):
    with pytest.raises(ValueError, match=r"prune: got .*; accepted are None"):
        tm.solvers.DecisionTree(prune=huge)
    with pytest.raises(ValueError, match=r"p: got .*; accepted is a number >= 1"):
        tm.solvers.DualSVM(p=huge)
    assert tm.solvers.DecisionTree(prune=float("inf")).prune == float("inf")


@pytest.mark.parametrize("label", [float("inf"), float("nan"), -1.0, 0.5])
def test_a_region_has_a_label(label):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="target: holds what is no label"):
        tm.plots.regions(lambda rows: rows[:, 0].long(), torch.eye(2), [0.0, label])


def test_a_calibration_is_fitted_beside_its_scores():
    scores, labels = tm.CodedScores(torch.randn(4, 3), tm.codes.one_vs_all(3)), torch.tensor([0, 1, 2, 0])
    for fit in (
        lambda: tm.TemperatureScaling(device="meta").fit(torch.randn(4, 3), labels),
        lambda: tm.PlattScaling(3, device="meta").fit(scores, labels),
        lambda: tm.SecondOrderHead(3, 2, device="meta").calibrate(torch.randn(4, 2), labels % 2),
        lambda: tm.MulticlassHead(3, 3, device="meta").calibrate(torch.randn(4, 3), labels),
    ):
        with pytest.raises(ValueError, match=r"scores: is on cpu, but the calibration is on meta; accepted is one"):
            fit()


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.0, 1.0])
def test_half_a_confidence_is_a_number(delta):
    with pytest.raises(ValueError, match=r"delta: got .*; accepted is a number in \(0, 1\)"):
        tm.bounds.uniform_margin_error(0.1, num_classes=3, radius=1.0, norm=2.0, margin=0.5, rows=1, delta=delta)


@pytest.mark.parametrize("kind", [np.int32, np.uint32, torch.tensor, lambda n: torch.tensor(n, dtype=torch.uint32)])
def test_a_count_of_any_kind_makes_a_code(kind):
    for make in (tm.codes.dense_random, tm.codes.sparse_random):
        code = make(kind(5), kind(9), trials=kind(20), generator=torch.Generator().manual_seed(0))
        assert torch.equal(code, make(5, 9, trials=20, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="k: "):
        tm.codes.dense_random(torch.tensor(2**63 + 5, dtype=torch.uint64))


@pytest.mark.parametrize("huge", [10**400, -(10**400)])
def test_a_number_of_a_bound_is_a_float(huge):
    with pytest.raises(ValueError, match="delta: got"):
        tm.bounds.confidence_runs(delta=huge, success=0.5)
    with pytest.raises(ValueError, match="pair_error: got"):
        tm.bounds.one_vs_one_error(pair_error=huge, num_classes=4)


def test_a_code_of_more_classes_than_fit_is_refused_at_once():
    with pytest.raises(ValueError, match=r"k: got 4294967295 .*; accepted are so few that"):
        tm.codes.dense_random(2**32 - 1, trials=2)


@pytest.mark.parametrize("huge", [2**20, 2**32 - 1, 2**40, torch.tensor(2**31 - 1), torch.tensor(2**62)])
@pytest.mark.parametrize(
    "name", ["one_vs_all", "one_vs_one", "complete", "minimal", "hadamard", "dense_random", "sparse_random"]
)
def test_a_code_that_no_memory_holds_is_refused_at_once(name, huge):
    if name in ("minimal", "dense_random", "sparse_random"):  # with few columns more fit
        huge = max(huge, 2**40)
    with pytest.raises(ValueError, match=rf"k: got {int(huge)} .*; accepted are (so few that a code fits|at most 16)"):
        tm.codes.by_name(name, huge)


@pytest.mark.parametrize("kind", tm.checks.INTEGERS)
def test_a_length_of_any_kind_of_integer(kind):
    assert tm.spans_to_tags([(0, 1, "X"), (2, 3, "Y")], torch.tensor(4, dtype=kind)) == ["B-X", "O", "B-Y", "O"]
    with pytest.raises(ValueError, match=r"spans: got .*; accepted are spans in 0..2 that"):
        tm.spans_to_tags([(0, 1, "X"), (2, 3, "Y")], torch.tensor(2, dtype=kind))


@pytest.mark.parametrize("asked", [torch.zeros(1, device="meta"), "yes", 1, 0.0, torch.tensor(True)])
def test_whether_values_are_read_is_true_false_or_none(asked):
    scores, signs = torch.zeros(2, 3), torch.tensor([[1, -1, 1], [-1, 1, 1]])
    shares, sets, labels = torch.full((2, 3), 1 / 3), torch.ones(2, 3, dtype=torch.bool), torch.tensor([0, 1])
    f = tm.functional
    for loss, target in (
        *((f.adaboost_loss, target) for target in (signs, labels)),
        *((f.crf_loss, target) for target in (shares, sets, labels)),
        *((f.m3n_loss, target) for target in (sets, labels)),
    ):
        with pytest.raises(TypeError, match=r"validate_args: got .*; accepted are True, False and None"):
            loss(scores, target, validate_args=asked)


@pytest.mark.parametrize(
    "asked", [tm.metrics.TokenAccuracy, tm.metrics.UnknownWordAccuracy, tm.metrics.SentenceAccuracy]
)
@pytest.mark.parametrize("away", ["preds", "unknown"])
def test_what_a_metric_of_sequences_counts_is_on_one_device(asked, away):
    given = {"preds": torch.zeros(2, 3, dtype=torch.long), "unknown": torch.ones(2, 3, dtype=torch.bool)}
    given[away] = given[away].to("meta")
    if asked is not tm.metrics.UnknownWordAccuracy:
        given.pop("unknown")
    if away in given:
        with pytest.raises(ValueError, match=rf"{away}: is on meta, but target is on cpu; accepted is one device"):
            asked().update(target=torch.zeros(2, 3, dtype=torch.long), **given)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_a_nested_code_and_points_without_values_are_refused():
    nested = torch.nested.nested_tensor([torch.ones(3, dtype=torch.int8)] * 2)
    for asked in (tm.codes.row_distances, tm.codes.min_row_distance, tm.codes.correctable, tm.codes.check):
        with pytest.raises(TypeError, match=r"code: got a nested tensor; accepted"):
            asked(nested)
    points = torch.zeros(2, 3, device="meta")
    with pytest.raises(ValueError, match=r"support: is on meta and has no values; accepted"):
        tm.KernelScorer(points, 2, device="cpu")
    assert tm.KernelScorer(points, 2).support.is_meta
    assert tm.KernelScorer(torch.zeros(2, 3), 2, device="meta").support.is_meta


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_sparse_tensors_in_the_place_of_numbers_are_named(sparse):
    one = sparse(torch.ones(1, 1))
    with pytest.raises(ValueError, match="C: got "):
        tm.solvers.DualSVM(one)
    with pytest.raises(ValueError, match="regularisation: got "):
        tm.solvers.Pegasos(regularisation=one)
