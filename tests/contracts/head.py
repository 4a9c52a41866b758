"""The suite that every head passes: it predicts, is calibrated, weighs, smooths, leaves out, and names what it cannot.

A test class makes a head, and inherits everything else::

    class TestMyHead(HeadContract):
        def make(self, **options): ...
"""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch

import torch_multiclass as tm

ROWS, D, T = 60, 6, 5


class HeadContract:
    classes = 4
    sequence = False
    weighs = True
    """Whether a class weight has a meaning."""
    soft = "none"
    """What makes the default loss take distributions: nothing, or the name of a loss that does."""

    def make(self, **options):
        raise NotImplementedError

    def structure(self, rows):
        """Keyword arguments of the head beside features."""
        return {"lengths": torch.arange(rows) % T + 1} if self.sequence else {}

    # ------------------------------------------------------------------------------------------------ material

    def features(self, rows=ROWS, seed=0):
        g = torch.Generator().manual_seed(seed)
        return torch.randn((rows, T, D) if self.sequence else (rows, D), generator=g)

    def target(self, head, scores, seed=0):
        """Labels that the scores make likely, and others now and then."""
        g = torch.Generator().manual_seed(seed)
        labels = head.predict(scores)
        other = labels.roll(T, 0)  # of the same length
        swap = torch.rand(len(labels), generator=g) < 0.3
        return torch.where(swap.view(-1, *[1] * (labels.ndim - 1)), other, labels)

    def ready(self, **options):
        torch.manual_seed(0)
        head = self.make(**options)
        with torch.no_grad():
            for part in head.scorer.parameters():
                part.mul_(3)
        scores = head(self.features(), **self.structure(ROWS))
        return head, scores, self.target(head, scores)

    def likelihood(self, head, scores, target):
        """The mean log probability of the labels, each by itself."""
        p = head.predict_proba(scores)
        if isinstance(head, tm.MultilabelHead):
            return torch.where(target > 0, p, 1 - p).log().mean()
        kept = target >= 0
        return p[kept].gather(-1, target[kept].unsqueeze(-1)).clamp(min=1e-30).log().mean()

    # ------------------------------------------------------------------------------------------------ prediction

    def test_it_predicts(self):
        head, scores, target = self.ready()
        labels, p = head.predict(scores), head.predict_proba(scores)
        assert labels.shape == target.shape
        assert not p.requires_grad
        assert bool(((p >= 0) & (p <= 1)).all())
        assert head.class_scores(scores).shape[: labels.ndim] == labels.shape
        if not isinstance(head, tm.MultilabelHead):
            torch.testing.assert_close(p.sum(-1)[labels >= 0], torch.ones(int((labels >= 0).sum())))

    def test_batches_put_together(self):
        head, scores, _ = self.ready()
        whole = torch.cat([scores[:20], scores[20:]])
        assert torch.equal(head.predict(whole), head.predict(scores))

    # ------------------------------------------------------------------------------------------------ calibration

    def test_calibration_fits_and_changes_no_prediction(self):
        head, scores, target = self.ready()
        labels, before = head.predict(scores), self.likelihood(head, scores, target)
        head.calibrate(scores, target)
        assert torch.equal(head.predict(scores), labels)
        assert self.likelihood(head, scores, target) > before - 1e-6
        other = self.make()
        buffer = io.BytesIO()
        torch.save(head.state_dict(), buffer)
        buffer.seek(0)
        other.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
        for twin in (other, copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
            torch.testing.assert_close(twin.predict_proba(scores), head.predict_proba(scores))
        fresh = self.make()
        other.load_state_dict(fresh.state_dict(), strict=True)  # one that was never calibrated
        torch.testing.assert_close(other.predict_proba(scores), fresh.predict_proba(scores))
        p = head.predict_proba(scores)
        head.reset_parameters()
        assert not torch.equal(head.predict_proba(scores), p)

    def test_calibration_names_what_it_cannot_use(self):
        head, scores, target = self.ready()
        with pytest.raises(ValueError, match="method: got"):
            head.calibrate(scores, target, method="isotonic")
        with pytest.raises(ValueError, match="target: holds no label"):
            head.calibrate(scores, torch.full_like(target, -100))

    # ------------------------------------------------------------------------------------------------ classes

    def test_absent_classes_are_left_out(self):
        head, scores, target = self.ready()
        if isinstance(head, tm.MultilabelHead):
            with pytest.raises(ValueError, match="leave_out_absent: has no meaning with MultilabelHead"):
                head.leave_out_absent(target)
            return
        with pytest.warns(UserWarning, match=rf"target: class\(es\) 1 of {self.classes} have no example"):
            head.leave_out_absent(torch.where(target == 1, 0, target))
        p, labels = head.predict_proba(scores), head.predict(scores)
        assert not bool((labels == 1).any())
        assert bool((p[..., 1] == 0).all())
        other = self.make()
        other.load_state_dict(head.state_dict(), strict=True)
        assert torch.equal(other.predict(scores), labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            head.leave_out_absent(torch.arange(self.classes))
        assert not torch.equal(head.predict(scores), labels)

    def test_balanced_weights(self):
        if not self.weighs:
            for make in (lambda: self.make(weight=[1.0] * self.classes), lambda: self.make(weight="balanced")):
                with pytest.raises(ValueError, match=r"weight: a class weight has no meaning with .*cost matrix"):
                    make()
            with pytest.raises(ValueError, match="balance: a class weight has no meaning"):
                self.make().balance(torch.zeros(3, dtype=torch.long))
            return
        head, scores, target = self.ready(weight="balanced")
        with pytest.raises(RuntimeError, match=r'weight: is "balanced", and no labels have been counted'):
            head.loss(scores, target)
        labels = torch.tensor([0, 0, 0, 1, 1, 3, -100])
        head.balance(labels)
        expected = torch.tensor([6 / 9, 1.0, 1.0, 2.0])
        torch.testing.assert_close(head.criterion.weight, expected)
        for given in (expected, expected.tolist(), expected.numpy()):
            torch.testing.assert_close(self.make(weight=given).loss(scores, target), head.loss(scores, target))
        with pytest.raises(ValueError, match="weight: got 'even'; accepted are 'balanced'"):
            self.make(weight="even")
        assert list(head.state_dict()) == list(self.make().state_dict())

    def test_the_label_that_the_loss_leaves_out_is_left_out(self):
        head, scores, target = self.ready()
        other = copy.deepcopy(head)
        other.criterion.frame["ignore_index"] = 255
        known = torch.arange(len(target)).view(-1, *[1] * (target.ndim - 1)) % 5 > 0
        missing, given = torch.where(known, target, -100), torch.where(known, target, 255)
        temperatures = [one.calibrate(scores, y).temperature for one, y in ((head, missing), (other, given))]
        torch.testing.assert_close(*temperatures)
        labels = torch.tensor([0, 0, 0, 1, 1, 3, 255], dtype=torch.uint8)
        if not isinstance(head, tm.MultilabelHead):
            with pytest.warns(UserWarning, match=r"target: class\(es\) 2 of"):
                other.leave_out_absent(labels)
            with pytest.raises(
                ValueError, match=r"target: label 255 is outside .*; where it marks no label, write -100"
            ):
                head.leave_out_absent(labels)
        if self.weighs:
            other.balance(labels)
            torch.testing.assert_close(other.criterion.weight, torch.tensor([6 / 9, 1.0, 1.0, 2.0]))

    # ------------------------------------------------------------------------------------------------ examples

    def test_a_weight_of_a_row_counts_it_as_often(self):
        head, scores, target = self.ready()
        counts = torch.arange(ROWS) % 3
        again = torch.arange(ROWS).repeat_interleave(counts)
        torch.testing.assert_close(head.loss(scores, target, counts.float()), head.loss(scores[again], target[again]))

    def test_smoothed_labels_and_distributions(self):
        head, scores, target = self.ready()
        if isinstance(head, (tm.SegmentHead, tm.MultilabelHead)):
            return  # labels drawn one by one make no segmentation; of several labels there is no one distribution
        if self.soft == "none":
            with pytest.raises(ValueError, match=r"label_smoothing: got 0\.1 with .*CRFLoss"):
                self.make(label_smoothing=0.1)
            with pytest.raises(TypeError, match=r"target: a distribution over labels has no meaning .*CRFLoss"):
                head.loss(scores, torch.full((*target.shape, self.classes), 1 / self.classes))
            return
        smooth = self.make(label_smoothing=0.1).loss(scores, target)
        known = target.clamp(min=0)
        share = 0.1 / self.classes + 0.9 * torch.nn.functional.one_hot(known, self.classes).float()
        torch.testing.assert_close(head.loss(scores, share), smooth)
        sharp = torch.nn.functional.one_hot(known, self.classes).float()
        torch.testing.assert_close(head.loss(scores, sharp), head.loss(scores, target))

    # ------------------------------------------------------------------------------------------------ derivatives

    def test_forward_mode_and_hessians(self):
        """Against reverse mode, which the suites of losses and scores hold to differences."""
        torch.manual_seed(0)
        head, features = self.make().double(), self.features(3).double()
        structure = self.structure(3)
        target, along = self.target(head, head(features, **structure)), torch.randn_like(features)

        def loss(features):
            return head.loss(head(features, **structure), target)

        leaf = features.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf), leaf)
        value, slope = torch.func.jvp(loss, (features,), (along,))
        torch.testing.assert_close(value, loss(features))
        torch.testing.assert_close(slope, (gradient * along).sum())
        torch.testing.assert_close(torch.func.grad(loss)(features), gradient)
        hessian = torch.autograd.functional.hessian(loss, features)
        torch.testing.assert_close(torch.func.hessian(loss)(features), hessian)

    # ------------------------------------------------------------------------------------------------ what came in

    def test_scores_of_another_width_are_an_error(self):
        head, scores, target = self.ready()
        verbs = (head.predict, head.predict_proba, head.class_scores)
        fits = (lambda given: head.loss(given, target), lambda given: head.calibrate(given, target))
        for other in self.others(scores):
            for verb in (*verbs, *fits):
                with pytest.raises((ValueError, TypeError), match="scores: "):
                    verb(other)

    def others(self, scores):
        """Scores of another number of classes, and features."""
        yield self.features()
        yield torch.cat([scores, scores[..., :1]], -1)

    def test_an_unknown_keyword_is_named(self):
        with pytest.raises(TypeError, match=r"biased: is no argument of .*Head; accepted are .*label_smoothing"):
            self.make(biased=True)

    def test_losses_are_given_by_name_or_themselves(self):
        with pytest.raises(ValueError, match=r"loss: got 'none such'; accepted are "):
            self.make(loss="none such")
        with pytest.raises(TypeError, match="loss: got CrossEntropyLoss; accepted is a torch_multiclass loss"):
            self.make(loss=torch.nn.CrossEntropyLoss())
