"""Every number of a report against one worked out by itself."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.metrics import confusion_matrix

import torch_multiclass as tm
from torch_multiclass.reports.margins import _leaning
from torch_multiclass.reports.proofs import _value
from torch_multiclass.reports.space import _space


def drawn(rows=120, classes=4, seed=0):
    """Features, labels with some unknown, and a head that is right now and then."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 6, generator=g)
    y = (x[:, :classes] + 0.8 * torch.randn(rows, classes, generator=g)).argmax(1)
    y[::11] = -100
    return x, y


def linear(bias=True, classes=4):
    head = tm.MulticlassHead(6, classes, bias=bias)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        head.scorer.weight.copy_(torch.eye(classes, 6) + 0.3 * torch.randn(classes, 6, generator=g))
        if bias:
            head.scorer.bias.copy_(0.1 * torch.randn(classes, generator=g))
    return head


def scored(head, x, y):
    """Scores and labels of the labelled rows."""
    kept = (y != -100).numpy()
    with torch.no_grad():
        return head(x).double().numpy()[kept], y.numpy()[kept]


def margins(scores, y):
    rivals = scores.copy()
    own = scores[np.arange(len(y)), y]
    rivals[np.arange(len(y)), y] = -np.inf
    return own - rivals.max(1)


def named(found, name):
    """A bound by its name."""
    return next(one for one in found["bounds"]["bounds"] if one["name"] == name)


class TestFlat:
    def setup_method(self):
        self.x, self.y = drawn()
        self.head = linear()
        self.scores, self.true = scored(self.head, self.x, self.y)
        self.given = self.scores.argmax(1)
        self.found = tm.report(self.head, (self.x, self.y), batch_size=13).as_dict()

    def test_error(self):
        wrong, m = int((self.given != self.true).sum()), len(self.true)
        one = self.found["error"]["rows"]
        assert (one["wrong"], one["of"]) == (wrong, m)
        assert one["error"] == pytest.approx(wrong / m)
        exact = scipy.stats.binomtest(wrong, m).proportion_ci(0.95, "exact")
        assert one["interval"] == pytest.approx([exact.low, exact.high], abs=1e-9)
        assert self.found["error"]["ignored"] == int((self.y == -100).sum())

    def test_confusion(self):
        table = confusion_matrix(self.true, self.given, labels=range(4))
        assert self.found["confusion"]["counts"] == table.tolist()
        off = table * (1 - np.eye(4, dtype=int))
        worst = self.found["confusion"]["worst"]
        assert worst[0]["count"] == off.max()
        assert sum(one["count"] for one in worst) == off.sum()

    def test_a_cost(self):
        cost = np.array([[0, 1, 7, 2], [3, 0, 1, 1], [1, 1, 0, 0], [9, 1, 1, 0.0]])
        found = tm.report(self.head, (self.x, self.y), cost=cost.tolist()).as_dict()["confusion"]
        assert found["mean_cost"] == pytest.approx(cost[self.true, self.given].mean())
        paid = confusion_matrix(self.true, self.given, labels=range(4)) * cost
        assert found["worst"][0]["count"] * found["worst"][0]["cost"] == paid.max()

    def test_a_hierarchy(self):
        """Classes 0 and 1 under node 4, 2 and 3 under node 5, both under 6: 2 within a family, 4 between."""
        cost = tm.costs.hierarchy([4, 4, 5, 5, 6, 6, -1])
        found = tm.report(self.head, (self.x, self.y), cost=cost).as_dict()["confusion"]
        same = self.true == self.given
        family = self.true // 2 == self.given // 2
        assert found["mean_cost"] == pytest.approx(np.where(same, 0, np.where(family, 2, 4)).mean())

    def test_classes(self):
        for k, one in enumerate(self.found["classes"]["labels"]):
            rows, picked = self.true == k, self.given == k
            assert one["label"] == str(k)
            assert one["error"] == pytest.approx((self.given[rows] != k).mean())
            assert one["precision"] == pytest.approx((self.true[picked] == k).mean())

    def test_margins(self):
        rho = margins(self.scores, self.true)
        found = self.found["margins"]
        assert found["unit"] == pytest.approx(np.ptp(self.scores, axis=1).mean(), rel=1e-5)
        assert found["quantiles"]["0.5"] == pytest.approx(np.median(rho), rel=1e-5)
        for one in found["distribution"]:
            assert one["share"] == pytest.approx((rho <= one["threshold"] + 1e-9).mean(), abs=1e-9)
            if one["threshold"]:
                assert one["loss"] == pytest.approx(np.clip(1 - rho / one["threshold"], 0, 1).mean(), abs=1e-6)

    def test_calibration(self):
        p = np.exp(self.scores - self.scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        top, right = p.max(1), self.given == self.true
        bins = np.ceil(top * 15).astype(int) - 1
        error = sum(abs(right[bins == b].sum() - top[bins == b].sum()) for b in range(15)) / len(top)
        found = self.found["calibration"]
        assert found["calibration_error"] == pytest.approx(error, abs=1e-6)
        assert found["log_loss"] == pytest.approx(-np.log(p[np.arange(len(p)), self.true]).mean(), abs=1e-6)
        assert (found["right"], found["confidence"]) == pytest.approx((right.mean(), top.mean()), abs=1e-6)
        wanted = [(b / 15, (b + 1) / 15, right[bins == b].mean(), top[bins == b].mean()) for b in np.unique(bins)]
        shown = [(one["from"], one["to"], one["right"], one["confidence"]) for one in found["bins"]]
        assert np.array(shown) == pytest.approx(np.array(wanted), abs=1e-6)
        assert [one["labels"] for one in found["bins"]] == [int((bins == b).sum()) for b in np.unique(bins)]

    def test_the_picture_of_margins_that_are_at_most(self):
        rho = margins(self.scores, self.true)
        pyplot = pytest.importorskip("matplotlib.pyplot")
        draw = tm.report(self.head, (self.x, self.y)).pictures["margin_distribution"]
        line = draw(pyplot.figure().subplots()).lines[0]
        pyplot.close("all")
        shares = [(rho <= theta + 1e-6).mean() for theta in line.get_xdata()]
        assert np.abs(np.array(shares) - line.get_ydata()).max() <= 1 / len(rho) + 1e-9
        assert line.get_ydata()[-1] == 1

    def test_the_held_out_bound(self):
        wrong, m = int((self.given != self.true).sum()), len(self.true)
        one = named(self.found, "Clopper–Pearson")
        assert one["value"] == pytest.approx(scipy.stats.beta.ppf(0.95, wrong + 1, m - wrong), abs=1e-9)

    def test_not_of_training_rows(self):
        found = tm.report(self.head, (self.x, self.y), held_out=False)
        assert "held_out=False" in found.gaps["Clopper–Pearson"]
        assert found.as_dict()["bounds"]["bounds"] == []


def uniform(rho, k, radius, m, margin, delta, trace=None):
    """SPEC's formula for scores of norm 1, spelled out."""
    loss = np.clip(1 - rho / margin, 0, 1).mean()
    scales = math.sqrt(math.log(max(1.0, math.log2(2 * radius / margin))) / m)
    if trace is None:
        return loss + 8 * k * radius / (margin * math.sqrt(m)) + scales + math.sqrt(math.log(2 / delta) / (2 * m))
    return loss + 8 * k * math.sqrt(trace) / (margin * m) + 3 * scales + 3 * math.sqrt(math.log(4 / delta) / (2 * m))


class TestMarginBounds:
    NAME = "margin bound, uniform in the margin"

    @pytest.mark.parametrize("bias", [True, False])
    def test_both_forms(self, bias):
        x, y = drawn()
        head = linear(bias)
        found = tm.report(head, (x, y), radius=6.0, delta=0.1).as_dict()
        scores, true = scored(head, x, y)
        weight = head.scorer.weight.detach().double().numpy()
        extra = head.scorer.bias.detach().double().numpy() if bias else np.zeros(4)
        norm = np.sqrt((weight**2).sum(1) + extra**2).max()
        radius = math.hypot(6.0, bias)
        kept = (y != -100).numpy()
        trace = (x.double().numpy()[kept] ** 2).sum() + bias * kept.sum()
        rho = margins(scores, true) / norm
        for suffix, given in (("", None), (", empirical form", trace)):
            one = named(found, self.NAME + suffix)
            margin = one["terms"]["(margin)"] / one["terms"]["(norm)"]
            expected = uniform(rho, 4, radius, len(true), margin, 0.1, given)
            assert one["value"] == pytest.approx(expected, rel=1e-5)
            assert one["terms"]["(norm)"] == pytest.approx(norm, rel=1e-6)
            others = [uniform(rho, 4, radius, len(true), radius / 2**j, 0.1, given) for j in range(8)]
            assert one["value"] <= min(others) + 1e-6  # the best of those tried
            assert one["vacuous"] == (one["value"] >= 1)

    def test_a_bound_that_says_something(self):
        """Many rows of a wide margin: two classes far apart on a line."""
        g = torch.Generator().manual_seed(0)
        y = torch.randint(2, (400_000,), generator=g)
        x = (2.0 * y - 1)[:, None]
        scorer = tm.LinearScorer(1, 2, bias=False)
        with torch.no_grad():
            scorer.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        found = tm.report(scorer, (x, y), radius=1.0).as_dict()
        assert not named(found, self.NAME)["vacuous"]
        assert not named(found, self.NAME + ", empirical form")["vacuous"]

    def test_a_margin_above_the_reach_is_a_gap(self):
        x, y = drawn()
        head = linear(False)
        reach = 6.0 * head.scorer.class_norms().max().item()
        found = tm.report(head, (x, y), radius=6.0, margin=1.01 * reach)
        assert (
            found.gaps[self.NAME]
            == f"margin: got {1.01 * reach:g}; accepted are margins up to radius * norm = {reach:g}."
        )
        assert [one["name"] for one in found.as_dict()["bounds"]["bounds"]] == ["Clopper–Pearson"]
        assert self.NAME in tm.report(head, (x, y), radius=6.0, margin=0.99 * reach).markdown()

    def test_what_is_not_known_is_a_gap(self):
        x, y = drawn()
        assert "radius: not given" in tm.report(linear(), (x, y)).gaps[self.NAME]
        assert "radius: got 1" in tm.report(linear(), (x, y), radius=1.0).gaps[self.NAME]
        kept = y != -100
        tree = tm.solvers.DecisionTree(max_leaves=4).fit(x[kept], y[kept])
        assert "norm of the weights is not known" in tm.report(tree, (x, y)).gaps[self.NAME]
        assert "norm: not given" in tm.report(linear(), (x, y), radius=9.0).gaps["margin bound at margin 1 (slack)"]
        low = tm.report(linear(), (x, y), radius=9.0, norm=0.1).gaps["margin bound at margin 1 (slack)"]
        assert low.startswith("norm: got 0.1")
        nothing = linear(bias=False)
        torch.nn.init.zeros_(nothing.scorer.weight)
        assert tm.report(nothing, (x, y), radius=9.0).gaps[self.NAME] == "all weights are 0."

    def test_a_norm_fixed_before(self):
        x, y = drawn()
        head = linear(False)
        found = tm.report(head, (x, y), radius=6.0, norm=3.0, margin=0.5).as_dict()
        rho, m = margins(*scored(head, x, y)), int((y != -100).sum())
        rest = 4 * 4 * 6.0 * 3.0 / math.sqrt(m) + math.sqrt(math.log(1 / 0.05) / (2 * m))
        slack = "margin bound at margin 1 (slack)"
        assert named(found, slack + ", hinge")["value"] == pytest.approx(
            np.clip(1 - rho, 0, None).mean() + rest, rel=1e-5
        )
        assert named(found, slack + ", ramp")["value"] == pytest.approx(np.clip(1 - rho, 0, 1).mean() + rest, rel=1e-5)
        size = head.scorer.class_norms().max().item()
        assert named(found, self.NAME)["value"] == pytest.approx(
            uniform(rho / size, 4, 6.0, m, 0.5 / size, 0.05), rel=1e-5
        )
        rounded = tm.report(head, (x, y), radius=6.0, norm=size * (1 - 1e-7)).gaps
        assert not any(name.startswith(slack) for name in rounded)
        fixed = named(found, "margin bound, margin fixed before")["value"]
        rest = 4 * 4 * 6.0 * 3.0 / (0.5 * math.sqrt(m)) + math.sqrt(math.log(1 / 0.05) / (2 * m))
        assert fixed == pytest.approx(np.clip(1 - rho / 0.5, 0, 1).mean() + rest, rel=1e-5)

    def test_a_kernel_of_the_distance_knows_its_radius(self):
        x, y = drawn()
        kept = y != -100
        fit = tm.solvers.DualSVM(kernel=tm.kernels.Gaussian(0.3)).fit(x[kept], y[kept])
        one = named(tm.report(fit, (x, y)).as_dict(), self.NAME)
        assert one["terms"]["(radius)"] == 1.0
        assert one["terms"]["(norm)"] == pytest.approx(fit.scorer.class_norms().max().item())

    def test_learned_features_are_said(self):
        x, y = drawn()
        found = tm.report(linear(), (x, y), backbone=torch.nn.Identity(), radius=9.0).as_dict()
        assert any("features were learned" in one for one in named(found, self.NAME)["assumptions"])


class TestCoded:
    def head(self, code, decoder=None, loss="logistic"):
        head = tm.ECOCHead(6, code=code, loss=loss, decoder=decoder)
        g = torch.Generator().manual_seed(2)
        with torch.no_grad():
            head.scorer.margins.weight.copy_(torch.as_tensor(code).float().mT @ torch.eye(len(code), 6))
            head.scorer.margins.bias.copy_(0.2 * torch.randn(code.shape[1], generator=g))
        return head

    @pytest.mark.parametrize("code", [tm.codes.one_vs_all(4), tm.codes.one_vs_one(4), tm.codes.hadamard(4)])
    def test_columns_and_theorem_1(self, code):
        x, y = drawn()
        head = self.head(code)
        found = tm.report(head, (x, y), batch_size=17).as_dict()
        kept = y != -100
        with torch.no_grad():
            f = head.scorer.margins(x[kept]).double().numpy()
        bits = code.numpy()[y[kept].numpy()]
        z = bits * f
        for s, share in enumerate(found["code"]["column_errors"]):
            asked = bits[:, s] != 0
            assert share == pytest.approx((z[asked, s] <= 0).mean(), abs=1e-6)
        loss = np.log1p(np.exp(-2 * z))  # log 2 at zeros
        assert found["code"]["average_binary_loss"] == pytest.approx(loss.mean(), rel=1e-5)
        distance = min((code.shape[1] - int(a @ b)) / 2 for i, a in enumerate(code.int()) for b in code.int()[:i])
        assert found["code"]["min_distance"] == distance
        bound = named(found, "Theorem 1 of Allwein, Schapire and Singer")
        assert bound["value"] == pytest.approx(code.shape[1] * loss.mean() / (distance * math.log(2)), rel=1e-5)
        assert found["error"]["rows"]["error"] <= bound["value"]

    def test_the_average_loss_is_of_the_rows_whose_label_the_head_knows(self):
        x, y = drawn()
        code, other = tm.codes.one_vs_all(4), torch.where(y == 0, 4, y)
        of_all, of_known = (
            tm.report(self.head(code), (x, labels), names=list("abcde")).as_dict()["code"]["average_binary_loss"]
            for labels in (other, torch.where(y == 0, -100, y))
        )
        assert of_all == pytest.approx(of_known, rel=1e-6)

    def test_votes(self):
        x, y = drawn()
        head = tm.OneVsOneHead(6, 4)
        found = tm.report(head, (x, y))
        assert found.as_dict()["margins"]["margins"] is None
        assert "votes" in found.gaps["margins"]
        kept = y != -100
        code = tm.codes.one_vs_one(4).numpy()
        bits = code[y[kept].numpy()]
        with torch.no_grad():
            z = bits * head(x[kept]).margins.numpy()
        wrong = (z <= 0) & (bits != 0)
        r = max(wrong[:, s].sum() / (bits[:, s] != 0).sum() for s in range(6))
        facts = found.as_dict()
        assert named(facts, "one-versus-one, (K - 1) r")["value"] == pytest.approx(3 * r, rel=1e-5)
        q = (bits == 0).mean()
        expected = 6 / 3.5 * (q + 2 * (1 - q) * wrong.sum() / (bits != 0).sum())
        name = "Corollary 2 of Allwein, Schapire and Singer, of signs"
        assert named(facts, name)["value"] == pytest.approx(expected, rel=1e-5)

    def test_hamming_decoding_of_one_versus_one_is_the_vote(self):
        x, y = drawn()
        head = tm.OneVsOneHead(6, 4)
        voted = named(tm.report(head, (x, y)).as_dict(), "one-versus-one, (K - 1) r")
        found = tm.report(head, (x, y), decoder=tm.HammingDecoder()).as_dict()
        assert named(found, "one-versus-one, (K - 1) r") == voted
        assert found["error"]["rows"]["error"] <= voted["value"]
        for decoder in (tm.LossBasedDecoder("hinge"), tm.HammingDecoder()):
            other = self.head(tm.codes.one_vs_all(4), decoder)
            names = [one["name"] for one in tm.report(other, (x, y)).as_dict()["bounds"]["bounds"]]
            assert "one-versus-one, (K - 1) r" not in names

    def test_absent_classes_are_a_gap(self):
        x, y = drawn()
        head = self.head(tm.codes.one_vs_all(4))
        with pytest.warns(UserWarning, match="class"):
            head.leave_out_absent(torch.tensor([0, 1, 2]))
        found = tm.report(head, (x, y), names=["a", "b", "c", "d"])
        count = int((y == 3).sum())
        assert found.gaps["classes without a training example"] == (
            f"d ({count}): never predicted, so that all their rows are wrong."
        )
        assert "cannot be predicted" in found.gaps["bounds of the code"]
        assert found.as_dict()["classes"]["labels"][3]["error"] == 1.0

    def test_a_loss_without_the_property_is_a_gap(self):
        x, y = drawn()
        head = self.head(tm.codes.one_vs_all(4), loss="sigmoid")
        found = tm.report(head, (x, y))
        names = {one["name"] for one in found.as_dict()["bounds"]["bounds"]} | set(found.gaps)
        assert "Theorem 1 of Allwein, Schapire and Singer" in names

    def test_columns_that_failed_are_gaps(self):
        x, y = drawn()
        kept = y != -100
        kept = kept & (y < 3)
        with pytest.warns(UserWarning, match="one sign"):
            fit = tm.solvers.CodedReduction(tm.codes.one_vs_one(4), tm.solvers.BinaryLogistic()).fit(x[kept], y[kept])
        found = tm.report(fit, (x, y))
        assert found.gaps["columns 2, 4, 5"] == "their rows have one sign, or none; their margin is 0."
        assert found.as_dict()["model"]["decoder"] == "LossBasedDecoder(loss='logistic')"


class TestFits:
    def test_boosting(self):
        x, y = drawn()
        kept = y != -100
        fit = tm.solvers.AdaBoostMH(rounds=5).fit(x[kept], y[kept])
        found = tm.report(fit, (x, y), held_out=False).as_dict()
        values = [one["value"] for one in found["bounds"]["bounds"]]
        product = math.prod(fit.report.Z)
        assert values == pytest.approx([4 / 2 * product, product])
        assert found["error"]["rows"]["error"] <= values[0]
        assert found["fit"]["rounds"] == fit.report.rounds

    def test_output_codes(self):
        x, y = drawn()
        kept = y != -100
        code = tm.codes.one_vs_one(4)
        fit = tm.solvers.AdaBoostMO(code, rounds=8).fit(x[kept], y[kept])
        found = tm.report(fit, (x, y), held_out=False).as_dict()
        assert found["model"]["decoder"] == "LossBasedDecoder(loss='exponential')"
        bound = named(found, "AdaBoost.MO, (L/ρ)(q + (1 − q) Π Z)")["value"]
        assert bound == pytest.approx(6 / 3.5 * (0.5 + 0.5 * math.prod(fit.report.Z)), rel=1e-6)

    def test_a_certificate(self):
        x, y = drawn()
        kept = y != -100
        fit = tm.solvers.DualSVM(C=1.0).fit(x[kept], y[kept])
        found = tm.report(fit, (x, y))
        facts = found.as_dict()["fit"]
        assert facts["gap"] == fit.report.gap
        assert facts["support_vectors"] == fit.report.support_vectors
        assert "gap" in found.pictures

    def test_a_forest_and_a_tree(self):
        x, y = drawn()
        kept = y != -100
        forest = tm.solvers.RandomForest(5).fit(x[kept], y[kept])
        assert tm.report(forest, (x, y)).as_dict()["fit"]["oob_error"] == pytest.approx(forest.report.oob_error)
        tree = tm.solvers.DecisionTree(max_leaves=3).fit(x[kept], y[kept])
        assert "tree" in tm.report(tree, (x, y)).pictures


class TestSets:
    def test_numbers(self):
        x, _ = drawn()
        g = torch.Generator().manual_seed(4)
        y = torch.where(x[:, :3] + 0.5 * torch.randn(120, 3, generator=g) > 0, 1, -1)
        y[::5, 1] = -100
        y[::7] = -100
        head = tm.MultilabelHead(6, 3)
        with torch.no_grad():
            head.scorer.margins.weight.copy_(torch.eye(3, 6))
        found = tm.report(head, (x, y), norm=2.0, margin=0.5, radius=9.0, batch_size=50).as_dict()
        some = (y != -100).any(1).numpy()
        y, f = y.numpy()[some], x.double().numpy()[some, :3]
        kept = y != -100
        wrong = (np.sign(f) != y) & kept
        assert found["error"]["rows"]["wrong"] == wrong.any(1).sum()
        assert found["error"]["labels"]["error"] == pytest.approx(wrong.sum() / kept.sum())
        for label, one in enumerate(found["classes"]["labels"]):
            assert one["error"] == pytest.approx(wrong[:, label].sum() / kept[:, label].sum())
        m = len(y)
        ramp = (np.clip(1 - y * f / 0.5, 0, 1) * kept).sum() / m
        reach = 2.0 * math.hypot(9.0, 1.0) / math.sqrt(m)
        expected = ramp + 2 * 3 / 0.5 * reach + 3 * math.sqrt(math.log(1 / 0.05) / (2 * m))
        bound = named(found, "margin bound of sets of labels")
        assert bound["value"] == pytest.approx(expected, rel=1e-5)
        assert bound["trivial"] == 3
        p = 1 / (1 + np.exp(-2 * np.abs(f[kept])))
        assert found["calibration"]["confidence"] == pytest.approx(p.mean(), rel=1e-6)

    def test_one_binary_question(self):
        x, _ = drawn()
        y = torch.where(x[:, 0] > 0.3, 1, -1)
        fit = tm.solvers.BinaryLogistic().fit(x, y)
        found = tm.report(fit, (x, y)).as_dict()
        with torch.no_grad():
            assert found["error"]["rows"]["wrong"] == int((fit.scorer(x)[:, 0].sign() != y).sum())

    def test_what_is_not_known_is_a_gap(self):
        x, y = torch.randn(20, 6), torch.randint(2, (20, 3)) * 2 - 1
        head, name = tm.MultilabelHead(6, 3), "margin bound of sets of labels"
        norm = float(head.scorer.class_norms().detach().max())
        for asked, said in [
            ({}, "norm, margin: not given"),
            ({"norm": 2 * norm, "margin": 0.5}, "radius: not given"),
            ({"norm": norm / 2, "margin": 0.5, "radius": 9.0}, f"norm: got {norm / 2:g}, but a label's weights have"),
        ]:
            assert tm.report(head, (x, y), **asked).gaps[name].startswith(said)
        known = tm.report(head, (x, y), norm=2 * norm, margin=0.5, radius=9.0)
        assert name not in known.gaps


@pytest.mark.parametrize(("classes", "side"), [(3, 3.4), (10, 5.5), (40, 10.0)])
def test_a_picture_of_confusion_grows_with_the_labels_up_to_a_page(classes, side):
    torch.manual_seed(0)
    y = torch.arange(2 * classes) % classes
    report = tm.report(tm.MulticlassHead(4, classes), (torch.randn(len(y), 4), y))
    found = [
        block for section in report.sections for block in section.blocks if getattr(block, "name", "") == "confusion"
    ]
    assert found[0].size == pytest.approx((side + 0.8, side))


def test_probabilities_that_are_given_are_the_ones_that_are_judged():
    generator = torch.Generator().manual_seed(0)
    scorer, y = tm.LinearScorer(3, 4), torch.arange(40) % 4
    x = torch.randn(40, 3, generator=generator)
    with torch.no_grad():
        scores = scorer(x)
    scaling = tm.TemperatureScaling().fit(scores, y)
    found = tm.report(scorer, (x, y), probabilities=scaling, batch_size=7).as_dict()["calibration"]
    expected = scaling(scores).double()
    assert found["confidence"] == pytest.approx(float(expected.amax(1).mean()), abs=1e-6)
    assert found["log_loss"] == pytest.approx(-float(expected.gather(1, y[:, None]).log().mean()), abs=1e-5)
    assert found["probabilities"] == f"those of {scaling}"
    chain = tm.ChainHead(3, 2)
    rows, tags = torch.randn(5, 4, 3, generator=generator), torch.randint(2, (5, 4), generator=generator)
    warm = tm.TemperatureScaling()
    warm.temperature.fill_(2.0)
    found = tm.report(chain, (rows, tags), probabilities=warm).as_dict()["calibration"]
    with torch.no_grad():
        marginals = chain(rows).scale(0.5).marginals()
    assert found["confidence"] == pytest.approx(float(marginals.amax(-1).mean()), abs=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "probabilities: got 3; accepted is a function of the scores"),
        (lambda scores: scores.sum(-1), r"probabilities: give .*; accepted is one for each class, \(12, 3\)"),
        (lambda scores: scores + 2, r"probabilities: give numbers outside 0\.\.1"),
        (lambda scores: scores * float("nan"), r"probabilities: give numbers outside 0\.\.1"),
    ],
)
def test_probabilities_that_are_none(wrong, message):
    x, y = torch.zeros(12, 2), torch.arange(12) % 3
    with pytest.raises((TypeError, ValueError), match=message):
        tm.report(tm.LinearScorer(2, 3), (x, y), probabilities=wrong)
    sets = tm.MultilabelHead(2, 3)
    with pytest.raises(ValueError, match="probabilities: got a function for sets of labels"):
        tm.report(sets, (x, torch.ones(12, 3).long()), probabilities=torch.sigmoid)


@pytest.mark.parametrize("radius", [None, 1.0, 3.0])
def test_a_bias_is_one_more_constant_feature(radius):
    """``|(w, b)|^2 = |w|^2 + b^2`` and ``|(Phi(x), 1)|^2 = |Phi(x)|^2 + 1``."""
    rows, norms = torch.tensor([[3.0, 4.0], [0.0, 1.0]]), torch.tensor([3.0, 5.0])
    space = _space(norms, torch.tensor([-4.0, 12.0]), lambda x: x.square().sum(-1), radius)
    assert space.norms.tolist() == [5.0, 13.0]
    assert space.squares(rows).tolist() == [26.0, 2.0]
    assert space.radius == (None if radius is None else pytest.approx(math.sqrt(radius**2 + 1)))
    plain = _space(norms, None, lambda x: x.square().sum(-1), radius)
    assert (plain.norms.tolist(), plain.squares(rows).tolist(), plain.radius) == ([3.0, 5.0], [25.0, 1.0], radius)


@pytest.mark.parametrize(
    ("value", "trivial", "text"),
    [
        (1e-4, 1, "0.01 %"),
        (9e-5, 1, "0.009 %"),
        (0.25, 1, "25.00 %"),
        (9.99, 1, "999.00 %"),
        (10.0, 1, "1000 %"),
        (0.25, 4, "0.25"),
    ],
)
def test_a_bound_of_a_share_is_in_per_cent(value, trivial, text):
    assert _value(tm.bounds.Bound(value, {}, (), trivial)) == text


@pytest.mark.parametrize(
    ("confidence", "text"),
    [
        (0.75, "too sure of itself, by 25.00 %"),
        (0.25, "not sure enough of itself, by 25.00 %"),
        (0.50004, "as it should be"),
        (0.50006, "too sure of itself, by 0.01 %"),
    ],
)
def test_whether_it_believes_in_itself_too_much(confidence, text):
    assert _leaning({"confidence": confidence, "right": 0.5}) == text
