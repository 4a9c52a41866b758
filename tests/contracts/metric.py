"""The suite that every metric passes.

A test class says how its metric is made, what a batch of it looks like and how a part of a batch is taken, and inherits
everything else::

    class TestMyMetric(MetricContract):
        def metric(self, **options):
            return metrics.MyMetric(**options)

        def batch(self, rows, device="cpu"):
            return torch.randn(rows, 3, device=device), torch.arange(rows, device=device) % 3

The target is the second argument of ``update``, and -100 in it leaves an example out.
"""

import copy
import io
import itertools
import pickle

import pytest
import torch
from torchmetrics import Metric, MetricCollection

BEFORE_UPDATE = "ignore:The ``compute`` method of metric"


class MetricContract:
    rows = 40
    num_classes = 3
    takes_scores = True
    """Whether the first argument holds numbers, which may be of half precision; else it is labels."""
    probabilities = False
    """Whether these numbers have to be probabilities."""

    def metric(self, **options):
        raise NotImplementedError

    def batch(self, rows, device="cpu"):
        raise NotImplementedError

    # ------------------------------------------------------------------ material
    def part(self, batch, rows):
        """Some examples of a batch."""
        return tuple(argument[rows] for argument in batch)

    def with_scores(self, batch, change):
        """The batch with its first argument's numbers changed."""
        return change(batch[0]), *batch[1:]

    def seen(self, *batches, device="cpu", **options):
        metric = self.metric(**options).to(device)
        for batch in batches:
            metric.update(*batch)
        return metric

    def value(self, *batches, device="cpu", **options):
        return self.seen(*batches, device=device, **options).compute()

    def same(self, found, expected):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)

    def labelled(self, batch, target):
        return batch[0], target, *batch[2:]

    # ------------------------------------------------------------------ counting
    @pytest.mark.parametrize("parts", [(20,), (1, 39), (0, 7), (13, 13), (11, 11, 29)])
    def test_batches_put_together(self, parts, device):
        """Whatever the sizes of the batches, empty ones among them."""
        batch = self.batch(self.rows, device)
        ends = [0, *parts, self.rows]
        pieces = [self.part(batch, slice(a, b)) for a, b in itertools.pairwise(ends)]
        self.same(self.value(*pieces, device=device), self.value(batch, device=device))

    def test_the_order_does_not_matter(self, device):
        one, other = self.batch(self.rows, device), self.batch(7, device)
        self.same(self.value(one, other, device=device), self.value(other, one, device=device))

    def test_two_states_merged(self):
        one, other = self.batch(self.rows), self.batch(7)
        merged = self.seen(one)
        merged.merge_state(self.seen(other))
        self.same(merged.compute(), self.value(one, other))

    def test_states_added_up_as_processes_add_them(self):
        one, other = self.batch(self.rows), self.batch(7)
        parts, summed = [self.seen(one), self.seen(other)], self.metric()
        for name, reduce in summed._reductions.items():
            setattr(summed, name, reduce(torch.stack([getattr(part, name) for part in parts])))
        summed._update_count = 2
        self.same(summed.compute(), self.value(one, other))

    @pytest.mark.filterwarnings(BEFORE_UPDATE)
    def test_nothing_is_zero(self, device):
        assert not self.metric().to(device).compute().any()
        empty = self.part(self.batch(self.rows, device), slice(0, 0))
        assert not self.value(empty, device=device).any()
        batch = self.batch(self.rows, device)
        assert not self.value(self.labelled(batch, torch.full_like(batch[1], -100)), device=device).any()

    def test_ignored_examples_count_for_nothing(self, device):
        batch, more = self.batch(self.rows, device), self.batch(9, device)
        ignored = self.labelled(more, torch.full_like(more[1], -100))
        self.same(self.value(batch, ignored, device=device), self.value(batch, device=device))

    def test_another_label_to_ignore(self, device):
        batch = self.batch(self.rows, device)
        target = batch[1].clone()
        target[::5] = -100
        expected = self.value(self.labelled(batch, target), device=device)
        for label in (-1, 255):
            marked = self.labelled(batch, target.masked_fill(target == -100, label))
            self.same(self.value(marked, device=device, ignore_index=label), expected)

    def test_compute_changes_nothing(self):
        one, other = self.batch(self.rows), self.batch(7)
        metric = self.seen(one)
        first = metric.compute()
        self.same(metric.compute(), first)
        metric.update(*other)
        self.same(metric.compute(), self.value(one, other))

    @pytest.mark.filterwarnings(BEFORE_UPDATE)
    def test_reset(self):
        metric, batch = self.seen(self.batch(self.rows)), self.batch(7)
        metric.reset()
        assert not metric.compute().any()
        metric.reset()
        metric.update(*batch)
        self.same(metric.compute(), self.value(batch))

    def test_forward_gives_the_batch_and_counts_it(self, device):
        one, other = self.batch(self.rows, device), self.batch(7, device)
        metric = self.metric().to(device)
        self.same(metric(*one), self.value(one, device=device))
        self.same(metric(*other), self.value(other, device=device))
        self.same(metric.compute(), self.value(one, other, device=device))

    # ------------------------------------------------------------------ weights
    def test_a_weight_counts_an_example_as_often(self, device):
        """In whatever unit."""
        batch = self.batch(self.rows, device)
        counts = torch.arange(self.rows, device=device) * 7 % 4
        again = torch.arange(self.rows, device=device).repeat_interleave(counts)
        expected = self.value(self.part(batch, again), device=device)
        for weight in (counts, counts.float(), counts.double() * 1e-3, counts * 1000):
            metric = self.metric().to(device)
            metric.update(*batch, sample_weight=weight)
            self.same(metric.compute(), expected)
        if device.type == "cpu":
            self.same(self.weighted(batch, counts.tolist()), expected)
        self.same(self.weighted(batch, torch.ones(self.rows)), self.value(batch))

    def test_a_weight_of_nothing_leaves_an_example_out(self):
        batch, none = self.batch(self.rows), torch.arange(self.rows) % 3 == 0
        if self.takes_scores and not self.probabilities:
            batch = self.with_scores(batch, lambda scores: scores.masked_fill(none.unsqueeze(-1), torch.nan))
        self.same(self.weighted(batch, (~none).float()), self.value(self.part(batch, ~none)))
        assert not self.weighted(batch, torch.zeros(self.rows)).any()

    def test_bad_weights_are_named(self):
        batch, weight = self.batch(self.rows), torch.rand(self.rows)
        for wrong in (-weight, weight * torch.nan, weight[:-1], weight.expand(2, 3, -1), "balanced", 1.0):
            with pytest.raises((TypeError, ValueError), match=r"sample_weight: .*; accepted"):
                self.weighted(batch, wrong)

    def weighted(self, batch, weight):
        metric = self.metric()
        metric.update(*batch, sample_weight=weight)
        return metric.compute()

    # ------------------------------------------------------------------ inputs
    def test_inputs_stay_and_no_history_is_kept(self, device):
        batch = self.batch(self.rows, device)
        before = copy.deepcopy(batch)
        metric = self.seen(batch, device=device)
        for old, new in zip(before, batch, strict=True):
            if isinstance(new, torch.Tensor):
                assert torch.equal(old, new)
        for name in metric._defaults:
            assert not getattr(metric, name).requires_grad
        assert not metric.compute().requires_grad

    @pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
    def test_label_types(self, dtype, device):
        batch = self.batch(self.rows, device)
        self.same(self.value(self.labelled(batch, batch[1].to(dtype)), device=device), self.value(batch, device=device))

    def test_inference_mode(self, device):
        batch = self.batch(self.rows, device)
        expected = self.value(batch, device=device)
        metric = self.metric().to(device)
        with torch.inference_mode():
            metric.update(*batch)
        self.same(metric.compute(), expected)

    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
    def test_half_precision_is_read_in_float32(self, half, device):
        if not self.takes_scores:
            pytest.skip("it takes labels")
        batch = self.with_scores(self.batch(self.rows, device), lambda scores: scores.to(half))
        full = self.with_scores(batch, lambda scores: scores.to(torch.float32))
        self.same(self.value(batch, device=device), self.value(full, device=device))

    def test_a_long_count_loses_nothing(self):
        """A sum in single precision would stand still at 2^24."""
        batch, metric = self.batch(self.rows), self.metric()
        metric.update(*batch)
        expected = metric.compute()
        for name in metric._defaults:
            setattr(metric, name, getattr(metric, name) * 2**25)
        metric.update(*batch)
        for name in metric._defaults:
            state, once = getattr(metric, name), getattr(self.seen(batch), name)
            torch.testing.assert_close(state - once * 2**25, once, rtol=1e-6, atol=1e-7)
        self.same(metric.compute(), expected)

    # ------------------------------------------------------------------ torchmetrics' machinery
    @pytest.mark.parametrize(
        "twin", [copy.deepcopy, lambda metric: metric.clone(), lambda metric: pickle.loads(pickle.dumps(metric))]
    )
    def test_copies_keep_what_was_counted(self, twin):
        one, other = self.batch(self.rows), self.batch(7)
        metric = self.seen(one)
        made = twin(metric)
        made.update(*other)
        self.same(made.compute(), self.value(one, other))
        self.same(metric.compute(), self.value(one))

    def test_state_travels_in_a_checkpoint_where_asked(self):
        one, other = self.batch(self.rows), self.batch(7)
        metric = self.seen(one)
        assert list(metric.state_dict()) == []
        metric.persistent(True)
        buffer = io.BytesIO()
        torch.save(metric.state_dict(), buffer)
        buffer.seek(0)
        resumed = self.metric()
        resumed.persistent(True)
        resumed.load_state_dict(torch.load(buffer, weights_only=True))
        resumed.update(*other)
        self.same(resumed.compute(), self.value(one, other))

    def test_in_a_collection(self):
        batch = self.batch(self.rows)
        both = MetricCollection({"one": self.metric(), "other": self.metric()})
        both.update(*batch)
        for value in both.compute().values():
            self.same(value, self.value(batch))

    def test_it_is_a_metric_and_says_what_it_is(self, device):
        metric = self.seen(self.batch(self.rows, device), device=device)
        assert isinstance(metric, Metric)
        assert metric.higher_is_better in (True, False)
        assert metric.full_state_update is False
        value = metric.compute()
        assert value.is_floating_point()
        assert value.isfinite().all()
        assert value.device.type == device.type
        assert type(metric).__name__ in repr(metric)

    # ------------------------------------------------------------------ bad input
    def test_bad_targets_are_named(self, device):
        batch = self.batch(self.rows, device)
        metric = self.metric().to(device)
        with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
            metric.update(*self.labelled(batch, batch[1].float()))
        with pytest.raises(TypeError, match="target: got list"):
            metric.update(*self.labelled(batch, batch[1].tolist()))
        with pytest.raises(ValueError, match=r"(target|preds): got shape"):
            metric.update(*self.labelled(batch, batch[1][:-1]))

    def test_a_bad_batch_counts_for_nothing(self):
        one, bad = self.batch(self.rows), self.batch(7)
        metric = self.seen(one)
        with pytest.raises((TypeError, ValueError)):
            metric.update(*self.labelled(bad, bad[1].float()))
        self.same(metric.compute(), self.value(one))

    def test_bad_options_are_named(self):
        for wrong in (1.5, "none", None):
            with pytest.raises(TypeError, match="ignore_index: got"):
                self.metric(ignore_index=wrong)
        with pytest.raises(ValueError, match="nonsense"):
            self.metric(nonsense=1)
