"""Every scorer passes the suite of scorers."""

import copy
import pickle

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.contracts.scorer import ScorerContract
from torch_multiclass import codes, kernels, scorers
from torch_multiclass.ops.splits import descend
from torch_multiclass.ops.splits.tree import Tree, single


def points(rows=8, width=6):
    """The same in every call: support points and landmarks are the user's."""
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0))


class TestLinear(ScorerContract):
    keys = ("weight", "bias")
    shown = "in_features=6, num_classes=4"

    def make(self, **factory):
        return tm.LinearScorer(6, 4, **factory)


class TestLinearWithoutBias(ScorerContract):
    keys = ("weight",)
    shown = "bias=False"

    def make(self, **factory):
        return tm.LinearScorer(6, 4, bias=False, **factory)


class AveragedScorerContract(ScorerContract):
    keys = tuple(f"scorers.{number}.{name}" for number in range(3) for name in ("weight", "bias"))
    shown = "vote='average'"
    has_norms = False

    def make(self, **factory):
        return tm.AveragedScorer([tm.LinearScorer(6, 4, **factory) for _ in range(3)])


class TestAveraged(AveragedScorerContract):
    def test_is_the_mean(self):
        scorer, x = self.scorer(), self.features(5)
        torch.testing.assert_close(scorer(x), torch.stack([part(x) for part in scorer.scorers]).mean(0))

    def test_votes_are_counted(self):
        scorer, x = tm.AveragedScorer(list(self.scorer().scorers), "majority"), self.features(50)
        ballots = torch.stack([part(x).argmax(1) for part in scorer.scorers])
        expected = torch.nn.functional.one_hot(ballots, 4).float().mean(0)
        torch.testing.assert_close(scorer(x), expected)
        torch.testing.assert_close(scorer(x.view(5, 10, 6)), expected.view(5, 10, 4))
        torch.testing.assert_close(scorer(x[0]), expected[0])
        one = tm.AveragedScorer([tm.LinearScorer(6, 1) for _ in range(4)], "majority")
        torch.testing.assert_close(one(x), torch.stack([part(x).sign() for part in one.scorers]).mean(0))
        assert (one(torch.zeros(2, 6)) == -1).all()  # the bias is 0, and so is the score

    def test_what_is_refused(self):
        first, coded = tm.LinearScorer(6, 4), tm.CodedScorer(6, codes.one_vs_one(4))
        for given, message in (
            ([], "scorers: there are none"),
            (3, "scorers: got 3; accepted is a sequence of scorers"),
            ([first, torch.nn.Linear(6, 4)], r"scorers: got Linear.*; accepted are scorers"),
            ([first, tm.LinearScorer(6, 3)], "scorers: one has 6 features and 3 scores, another 6 and 4"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                tm.AveragedScorer(given)
        with pytest.raises(ValueError, match="vote: got 'mean'; accepted are 'average', 'majority'"):
            tm.AveragedScorer([first], "mean")
        with pytest.raises(TypeError, match="scorers: give CodedScores; accepted are those that give a tensor"):
            tm.AveragedScorer([coded])(self.features(2))


class CodedScorerContract(ScorerContract):
    keys = ("coding_matrix", "absent", "margins.weight", "margins.bias")
    shown = "num_classes=4"


class TestOneVersusOne(CodedScorerContract):
    shown = "num_columns=6"

    def make(self, **factory):
        return tm.CodedScorer(6, codes.one_vs_one(4), **factory)


class TestManyPairs(CodedScorerContract):
    """A code that is mostly zero, whose columns of each class are kept beside it."""

    num_classes = 6

    def make(self, **factory):
        return tm.CodedScorer(6, codes.one_vs_one(6), **factory)

    shown = "num_classes=6, num_columns=15"


class TestErrorCorrecting(CodedScorerContract):
    def make(self, **factory):
        return tm.CodedScorer(6, codes.complete(4), **factory)


class TestKernelMarginsOfACode(ScorerContract):
    keys = ("coding_matrix", "absent", "margins.support", "margins.coefficients", "margins.bias")
    given = ("margins.support",)
    takes_dtype = False

    def make(self, device=None):
        margins = tm.KernelScorer(points(), 6, kernels.Gaussian(0.1), device=device)
        return tm.CodedScorer(margins, codes.one_vs_one(4))


class TestContinuousCode(ScorerContract):
    keys = ("codewords", "margins.weight", "margins.bias")
    shown = "similarity='inner_product'"
    has_norms = False

    def make(self, **factory):
        return tm.ContinuousCodeScorer(6, codes.complete(4), **factory)


class TestGaussianContinuousCode(TestContinuousCode):
    shown = "similarity='gaussian'"

    def make(self, **factory):
        return tm.ContinuousCodeScorer(6, codes.complete(4), "gaussian", **factory)


class KernelScorerContract(ScorerContract):
    keys = ("support", "coefficients", "bias")
    given = ("support",)
    shown = "num_classes=4"
    kernel = kernels.Gaussian(0.2)

    def make(self, **factory):
        return tm.KernelScorer(points(), 4, self.kernel, **factory)


class TestGaussianKernel(KernelScorerContract):
    shown = "Gaussian(gamma=0.2"


class TestPolynomialKernel(KernelScorerContract):
    kernel = kernels.Polynomial(3, 0.5, 1.0)


class TestLaplacianKernel(KernelScorerContract):
    kernel = kernels.Laplacian(0.2)


class TestLearnedSupportAndWidth(KernelScorerContract):
    keys = ("support", "coefficients", "bias", "kernel.log_gamma")
    given = ("support", "kernel.log_gamma")

    def make(self, **factory):
        kernel = kernels.Gaussian(0.2, learn=True).to(**factory)
        return tm.KernelScorer(points(), 4, kernel, learn_support=True, **factory)


class TestNystrom(ScorerContract):
    keys = ("features.landmarks", "features.root", "linear.weight", "linear.bias")
    given = ("features.landmarks", "features.root")
    takes_dtype = False

    def make(self, device=None):
        return tm.NystromScorer(tm.NystromFeatures(points().to(device), kernels.Gaussian(0.2)), 4)


class TestRandomFourier(ScorerContract):
    keys = ("features.frequencies", "linear.weight", "linear.bias")
    given = ("features.frequencies",)

    def make(self, **factory):
        return tm.RandomFourierScorer(6, 4, 16, 0.2, generator=torch.Generator().manual_seed(0), **factory)


class TestChain(ScorerContract):
    keys = (
        "emissions.weight", "emissions.bias", "chain.transitions", "chain.start_transitions", "chain.end_transitions",
    )  # fmt: skip
    steps = (5,)
    shown = "num_tags=4"

    def make(self, **factory):
        return tm.ChainScorer(6, 4, **factory)


class TestConstrainedChain(TestChain):
    shown = "constrained"

    def make(self, **factory):
        return tm.ChainScorer(6, 4, tm.tag_constraints(["O", "B-x", "I-x", "B-y"]), **factory)


class TestSecondOrder(ScorerContract):
    keys = (*(f"first.{key}" for key in TestChain.keys), "trans2")
    steps = (5,)
    shown = "num_tags=4"

    def make(self, **factory):
        return tm.SecondOrderScorer(6, 4, **factory)


class TestSegments(ScorerContract):
    keys = (
        "tags.weight", "tags.bias", "length_scores",
        "kinds.transitions", "kinds.start_transitions", "kinds.end_transitions",
    )  # fmt: skip
    steps = (5,)
    shown = "num_kinds=3, max_length=3, longest=(1, 2, 1)"

    def make(self, **factory):
        return tm.SegmentScorer(6, 3, 3, longest=(1, 2, 1), **factory)


class LabelTreeScorer(tm.LabelTreeScorer):
    """On one tree, so that features are all that a call takes."""

    def forward(self, features):
        device = getattr(features, "device", None)
        return super().forward(features, torch.tensor([-1, 0, 0, 1, 1], device=device))


class TestLabelTree(ScorerContract):
    keys = ("emissions.weight", "emissions.bias", "transitions")
    steps = (5,)

    def make(self, **factory):
        return LabelTreeScorer(6, 4, **factory)


class TestMultilabel(ScorerContract):
    keys = ("margins.weight", "margins.bias")
    shown = "num_classes=4"

    def make(self, **factory):
        return tm.MultilabelScorer(6, 4, **factory)


def tree(seed=0, oblique=False):
    """Four questions, two of them about a category, an inner product and a distance where ``oblique``."""
    draw = np.random.default_rng(seed)
    feature, other = (np.array([f, -1, g, -1, 2, -1, 0, -1, -1]) for f, g in ((0, 3), (6, 7)))
    made = Tree(
        feature=other if oblique else feature,
        threshold=np.where(oblique, 2.0, 0.1) * draw.standard_normal(9),
        missing=draw.random(9) < 0.5,
        yes=np.array([1, -1, 3, -1, 5, -1, 7, -1, -1]),
        no=np.array([2, -1, 4, -1, 6, -1, 8, -1, -1]),
        values=draw.standard_normal((9, 4)),
        features=6,
    )
    if oblique:
        turned = {"directions": draw.standard_normal((1, 6)), "centres": draw.standard_normal((1, 6))}
        subset = {"subset": np.array([-1] * 4 + [0] + [-1] * 4), "subsets": draw.random((1, 4)) < 0.5}
        made = Tree(**{**vars(made), **turned, **subset})
    return made


TABLES = (
    "feature",
    "threshold",
    "missing",
    "branches",
    "roots",
    "values",
    "directions",
    "centres",
    "subset",
    "subsets",
)


class TreesContract(ScorerContract):
    """Grown, not drawn: everything is a buffer, and nothing has a gradient."""

    keys = given = TABLES
    has_norms = False
    shown = "in_features=6, num_classes=4"

    def test_gradients_reach_features_and_every_parameter(self, device):
        assert not list(self.make().parameters())
        assert not self.make()(self.features(3).requires_grad_()).requires_grad

    def test_derivatives(self):
        """There are none."""

    @pytest.mark.parametrize("twin", [copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))])
    def test_copies(self, twin, device):
        scorer, features = self.make(device=device), self.features(3, device=device)
        made = twin(scorer)
        self.close(made(features), scorer(features), rtol=0, atol=0)
        made.values.zero_()
        assert scorer.values.any()

    def test_missing_values(self, device):
        scorer, features = self.make(device=device), self.features(40, device=device)
        features[torch.rand(40, 6) < 0.3] = torch.nan
        assert scorer(features).isfinite().all()

    def test_the_library_and_gathers_agree(self, monkeypatch):
        scorer, features = self.make(), self.features(300)
        features[torch.rand(features.shape) < 0.2] = torch.nan
        found = scorer(features)
        monkeypatch.setattr(descend._native, "library", lambda: None)
        self.close(scorer(features), found)
        monkeypatch.setattr(descend, "_plain", lambda *_: False)
        self.close(scorer(features), found)
        assert scorer(features[:0]).shape == (0, 4)

    def test_what_is_no_tree(self):
        scorer = self.make()
        state = dict(scorer.state_dict())
        outside, nodes = r"branches: holds nodes outside 0\.\.", len(scorer.branches)
        for entry, message in ((0, "branches: lead in circles"), (10**6, outside), (nodes, outside), (-1, outside)):
            state["branches"] = torch.full_like(scorer.branches, entry)
            with pytest.raises(ValueError, match=message):
                self.make().load_state_dict(state)
        with pytest.raises(TypeError, match="trees: got 3; accepted are trees"):
            tm.EnsembleScorer([3])
        with pytest.raises(ValueError, match="trees: there are none"):
            tm.EnsembleScorer([])
        with pytest.raises(ValueError, match="trees: one has 5 features and 4 values, another 6 and 4"):
            tm.EnsembleScorer([tree(), single(np.zeros(4), 5)])
        with pytest.raises(ValueError, match=r"weights: got shape \(2,\); accepted is \(1,\)"):
            tm.EnsembleScorer([tree()], [1.0, 2.0])

    def test_trees_of_other_sizes_load(self):
        scorer, other = self.make(), tm.EnsembleScorer([single(np.zeros(4), 6)] * 3)
        if isinstance(scorer, tm.TreeScorer):
            other = tm.TreeScorer(single(np.zeros(4), 6))
        other.load_state_dict(scorer.state_dict())
        features = self.features(20)
        self.close(other(features), scorer(features), rtol=0, atol=0)
        assert other.depth == scorer.depth


class TestTree(TreesContract):
    def make(self, **factory):
        return tm.TreeScorer(tree(), **factory)


class TestTreeOfManyKinds(TreesContract):
    def make(self, **factory):
        return tm.TreeScorer(tree(oblique=True), **factory)


class TestEnsemble(TreesContract):
    keys = given = (*TABLES, "weights")
    shown = "trees=40"

    def make(self, **factory):
        return tm.EnsembleScorer([tree(seed) for seed in range(40)], np.linspace(0, 1, 40), **factory)


class TestEnsembleOfManyKinds(TestEnsemble):
    shown = "trees=4"

    def make(self, **factory):
        return tm.EnsembleScorer([tree(seed, seed % 2 == 0) for seed in range(4)], **factory)

    def test_without_weights_it_is_the_mean(self):
        features = self.features(20)
        trees = [tm.TreeScorer(tree(seed, seed % 2 == 0))(features) for seed in range(4)]
        torch.testing.assert_close(self.make()(features), torch.stack(trees).mean(0))


@pytest.mark.parametrize("trees", [3, 10, 20, 100])
def test_equally_many_votes_are_a_tie_however_they_are_counted(trees, monkeypatch):
    """Of two classes that have half of the votes each, in any order of the trees, the first wins."""
    draw, half = np.random.default_rng(0), trees // 2
    features = torch.zeros(1, 2)
    scorers = []
    for _ in range(30):
        classes = draw.permutation(np.repeat([1, 2, 0], [half, half, trees - 2 * half]))
        scorers.append(tm.EnsembleScorer([single(np.eye(4)[label], 2) for label in classes]))
    counted = [[scorer(features)[0] for scorer in scorers]]
    monkeypatch.setattr(descend._native, "library", lambda: None)
    counted.append([scorer(features)[0] for scorer in scorers])
    monkeypatch.setattr(descend, "_plain", lambda *_: False)
    counted.append([scorer(features)[0] for scorer in scorers])
    for scores in counted:
        assert all(one[1] == one[2] > one[3] for one in scores)
    assert not tm.EnsembleScorer([single(np.ones(4), 2)], [0.0])(features).any()


def test_every_scorer_passes_it():
    tested = [kind for name, kind in globals().items() if name.startswith("Test")]
    parts = {"Scorer", "Chain", "NystromFeatures", "RandomFourierFeatures"}
    parts |= {"ColumnsScorer", "AttributeScorer", "OutsideScorer"}  # in test_columns.py
    parts |= {"NetworkScorer"}  # in integrations/test_network.py
    assert {type(kind().make()).__name__ for kind in tested} == set(scorers.__all__) - parts
