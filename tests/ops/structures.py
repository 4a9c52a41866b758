"""What the record of every structure is held to: enumeration, derivatives, padding, neighbours, compile."""

import math
import os

import pytest
import torch

from torch_multiclass.ops import chain as chains

INF = math.inf
THOROUGH = bool(os.environ.get("THOROUGH"))
PROBLEMS = 2000 if THOROUGH else 60


def forbid(g, x):
    """A third of the problems forbid a quarter of the entries; another third holds numbers that tie."""
    how = int(torch.randint(0, 3, (), generator=g))
    if how == 1:
        return torch.where(torch.rand(x.shape, generator=g) < 0.25, -INF, x)
    return x.round() if how == 2 else x


def lengths_of(g, batch, steps):
    """Lengths, 0 included; None for a third of the problems."""
    return None if torch.rand((), generator=g) < 0.33 else torch.randint(0, steps + 1, (batch,), generator=g)


def close(ours, expected):
    torch.testing.assert_close(ours, torch.stack(expected).to(ours), rtol=0, atol=1e-10)


class RecordContract:
    """A subclass draws records, enumerates their rows and takes them apart."""

    def problems(self, count=PROBLEMS):
        for seed in range(count):
            yield self.draw(torch.Generator().manual_seed(seed))

    def test_every_function_equals_enumeration(self):
        for record in self.problems():
            rows = self.rows(record)
            close(record.log_partition(), [row.log_partition() for row in rows])
            close(record.marginals(), [row.marginals() for row in rows])
            for ours, row in zip(record.best_labels(), rows, strict=True):
                if row.possible:
                    self.check_best(record, ours, row)
            every = [row.spread(row.labels) for row in rows]
            for b, (row, paths) in enumerate(zip(rows, every, strict=True)):
                one = self.row(record, b)
                torch.testing.assert_close(one.terms(paths[None]).sum(2)[0], row.scores, rtol=0, atol=1e-10)

    def check_best(self, record, ours, row):
        """The first of the best labellings; any of them where only rounding says which is the best."""
        best, score = row.best()
        if torch.equal(ours, best):
            return
        assert not all(torch.equal(p[p.isfinite()], p[p.isfinite()].round()) for p in self.leaves(record))
        place = (row.labels == ours[row.where]).all(1)
        assert abs(row.scores[place] - score) < 1e-12

    def test_as_a_chain(self):
        for record in self.problems(40):
            if hasattr(record, "as_chain"):
                chain, label = record.as_chain()
                torch.testing.assert_close(chains.log_partition(chain), record.log_partition(), rtol=0, atol=1e-10)
                at = torch.zeros(*chain.emissions.shape[:2], record.num_labels, dtype=torch.float64)
                of_labels = at.index_add(2, label, chains.marginals(chain)) * record.inside()[..., None]
                torch.testing.assert_close(of_labels, record.marginals(), rtol=0, atol=1e-10)

    def test_terms_stand_at_their_positions(self):
        for record in self.problems(20):
            labels = record.best_labels()[:, None]
            terms = record.terms(labels)[:, 0]
            at = torch.stack(list(record.by_position(terms))).sum(0)
            torch.testing.assert_close(at.sum(1), terms.sum(1))

    def test_a_unary_score_and_a_factor(self):
        for record in self.problems(20):
            unary = torch.randn(*record.best_labels().shape, record.num_labels, dtype=torch.float64)
            plain, more = self.rows(record), self.rows(record.plus(unary).times(0.5))
            for b, (row, changed) in enumerate(zip(plain, more, strict=True)):
                extra = sum((unary[b, t, row.labels[:, n]] for n, t in enumerate(row.where)), torch.zeros(1))
                torch.testing.assert_close(0.5 * (row.scores + extra), changed.scores, rtol=0, atol=1e-10)

    def test_first_and_second_derivatives(self):
        done = 0
        for record in self.problems(40):
            leaves = self.leaves(record)
            if done == 5 or not all(p.isfinite().all() for p in leaves):
                continue
            done += 1
            leaves = [p.clone().requires_grad_() for p in leaves]
            torch.autograd.gradcheck(lambda *p, r=record: self.rebuild(r, p).log_partition(), leaves)
            torch.autograd.gradgradcheck(lambda *p, r=record: self.rebuild(r, p).log_partition(), leaves)
            torch.autograd.gradcheck(lambda *p, r=record: self.rebuild(r, p).marginals(), leaves)
        assert done == 5

    def test_forbidden_scores_leave_no_trace_in_gradients(self):
        for record in self.problems(40):
            leaves = [p.clone().requires_grad_() for p in self.leaves(record)]
            value = self.rebuild(record, leaves).log_partition()
            gradients = torch.autograd.grad(value.sum(), leaves, allow_unused=True, create_graph=True)
            for gradient, part in zip(gradients, leaves, strict=True):
                if gradient is not None:
                    assert gradient.isfinite().all()
                    assert (gradient[part == -INF] == 0).all()
            squares = sum((g**2).sum() for g in gradients if g is not None)
            if not getattr(squares, "requires_grad", False):
                continue  # nothing is possible, or nothing counts
            again = torch.autograd.grad(squares, leaves, allow_unused=True)
            assert all(g.isfinite().all() for g in again if g is not None)

    def test_padding_and_neighbours_do_not_matter(self):
        for seed, record in enumerate(self.problems(40)):
            batch = len(record.best_labels())
            for b in range(batch):
                alone = self.row(record, b)
                torch.testing.assert_close(alone.log_partition()[0], record.log_partition()[b], rtol=1e-14, atol=1e-14)
                assert torch.equal(alone.best_labels()[0], record.best_labels()[b])
            padded = self.extended(record, 2, [math.nan, INF, -INF][seed % 3])
            if padded is None:
                continue
            leaves = [p.clone().requires_grad_() for p in self.leaves(padded)]
            value = self.rebuild(padded, leaves).log_partition()
            assert torch.equal(value, record.log_partition())
            assert torch.equal(padded.best_labels()[:, :-2], record.best_labels())
            assert (padded.best_labels()[:, -2:] == -100).all()
            for gradient in torch.autograd.grad(value.sum(), leaves, allow_unused=True):
                assert gradient is None or gradient.isfinite().all()

    def test_samples_are_drawn_from_the_distribution(self):
        done = 0
        for record in self.problems(40):
            row = self.rows(self.row(record, 0))[0]
            if done == 4 or not row.possible or not row.where:
                continue
            done += 1
            n = 4000
            drawn = self.row(record, 0).sample(n, torch.Generator().manual_seed(done))[0]
            one_hot = torch.nn.functional.one_hot(drawn.clamp(min=0), record.num_labels) * (drawn >= 0)[..., None]
            torch.testing.assert_close(one_hot.double().mean(0), row.marginals(), rtol=0, atol=4 * 0.5 / n**0.5)
            scores = record.terms(drawn[None].expand(len(record.best_labels()), -1, -1)).sum(2)[0]
            assert (scores > -INF).all()
        assert done == 4

    @pytest.mark.slow
    def test_captured_graphs_hold_one_node(self):
        record = self.draw(torch.Generator().manual_seed(1))
        leaves = [p.nan_to_num(neginf=-3).detach() for p in self.leaves(record)]

        def value(*parts):
            return self.rebuild(record, parts).log_partition()

        compiled = torch.compile(value, fullgraph=True, backend="aot_eager")
        ours = [p.clone().requires_grad_() for p in leaves]
        plain = [p.clone().requires_grad_() for p in leaves]
        torch.testing.assert_close(compiled(*ours), value(*plain))
        for a, b in zip(
            torch.autograd.grad(compiled(*ours).sum(), ours, allow_unused=True),
            torch.autograd.grad(value(*plain).sum(), plain, allow_unused=True),
            strict=True,
        ):
            torch.testing.assert_close(a if a is not None else torch.zeros(1), b if b is not None else torch.zeros(1))
        decode = torch.compile(lambda *p: self.rebuild(record, p).best_labels(), fullgraph=True, backend="aot_eager")
        assert torch.equal(decode(*leaves), self.rebuild(record, leaves).best_labels())
        marginals = torch.compile(lambda *p: self.rebuild(record, p).marginals(), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(marginals(*leaves), self.rebuild(record, leaves).marginals())
        with torch.inference_mode():
            torch.testing.assert_close(self.rebuild(record, leaves).marginals(), marginals(*leaves))

    def test_transforms(self):
        record = self.draw(torch.Generator().manual_seed(3))
        leaves = [p.nan_to_num(neginf=-3).detach() for p in self.leaves(record)]

        def value(first):
            return self.rebuild(record, [first, *leaves[1:]]).log_partition().sum()

        first = leaves[0].clone().requires_grad_()
        torch.testing.assert_close(torch.func.grad(value)(leaves[0]), torch.autograd.grad(value(first), first)[0])
        many = torch.stack([leaves[0], 2 * leaves[0]])
        torch.testing.assert_close(torch.func.vmap(value)(many), torch.stack([value(many[0]), value(many[1])]))

    def test_half_precision_is_computed_in_float32(self):
        record = self.draw(torch.Generator().manual_seed(5))
        half = [p.to(torch.bfloat16) for p in self.leaves(record)]
        value = self.rebuild(record, half).log_partition()
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, self.rebuild(record, [p.float() for p in half]).log_partition())

    def test_an_empty_batch(self):
        record = self.nothing(self.draw(torch.Generator().manual_seed(6)))
        assert record.log_partition().shape == (0,)
        assert record.best_labels().shape[0] == 0
        assert record.marginals().shape[0] == 0

    def nothing(self, record):
        return record.rows(torch.tensor([], dtype=torch.long))

    def row(self, record, b):
        return record.rows(torch.tensor([b]))

    def test_the_k_best(self):
        for record in self.problems(PROBLEMS // 3):
            labels, scores = record.k_best(5)
            for b, row in enumerate(self.rows(record)):
                if row.where:
                    expected, values = row.top(5)
                    torch.testing.assert_close(scores[b], values, rtol=0, atol=1e-10)
                    apart = -values[values > -INF].diff()
                    if bool((apart > 1e-9).all()):  # else the order is one of rounding
                        assert torch.equal(labels[b], expected)
