"""Networks as binary learners: by themselves, and through codes."""

import copy
import re
import signal

import lightning as L
import pytest
import torch
from torch import nn

import torch_multiclass as tm
from tests.contracts.solver import SolverContract
from torch_multiclass.integrations.network import NetworkLearner
from torch_multiclass.scorers import NetworkScorer
from torch_multiclass.solvers import CodedReduction, Interrupted


def linear(width):
    return nn.Linear(width, 1)


def small(width):
    return nn.Sequential(nn.Linear(width, 6), nn.Tanh(), nn.Linear(6, 1))


def noisy(width):
    return nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))


def data(rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, 4, generator=generator) / 2
    x[:, :3] += 2 * torch.eye(3)[y]
    return x, y


class TestNetwork(SolverContract):
    solver, binary, certified, constant = NetworkLearner, True, False, "epochs"
    options = {"network": small, "epochs": 30, "batch_size": 10**6}
    close = 1e-3

    def reached(self, report):
        return report.losses[-1]

    def test_a_bias_is_a_constant_feature(self):
        """Its layers have what they have."""

    def test_an_interrupted_fit_keeps_what_it_has(self):
        class Stop(L.Callback):
            def on_train_epoch_end(self, trainer, pl_module):
                if trainer.current_epoch == 2:
                    signal.raise_signal(signal.SIGINT)

        x, y = self.data()
        handler = signal.getsignal(signal.SIGINT)
        with pytest.warns(Interrupted, match="NetworkLearner: ended from the keyboard after [23] passes"):
            scorer, report = self.make(trainer={"callbacks": [Stop()]}).fit(x, y)
        assert signal.getsignal(signal.SIGINT) is handler
        assert report.interrupted
        assert report.iterations in (2, 3)
        assert bool(scorer(x).isfinite().all())

    def test_a_loop_can_end_with_an_interrupted_fit(self):
        """A pass of its own is all epochs, which the suite cannot stop between; the test above does."""

    test_a_second_interrupt_propagates = test_a_loop_can_end_with_an_interrupted_fit

    def test_options_that_are_none(self):
        for bad, words in (
            ({"epochs": 0}, "epochs: got 0"),
            ({"batch_size": 2.5}, "batch_size: got 2.5"),
            ({"network": linear(3)}, "network: got Linear"),
            ({"network": "mlp"}, "network: got 'mlp'"),
            ({"optimizer": 0.1}, "optimizer: got 0.1"),
            ({"trainer": ["gpu"]}, "trainer: got"),
            ({"loss": "mean"}, "loss"),
            ({"progress": "yes"}, "progress: got 'yes'"),
        ):
            with pytest.raises((TypeError, ValueError), match=words):
                self.make(**bad)


def test_the_loss_is_the_weighted_mean():
    """Of a network that stands still."""
    x, y = data()
    weight, signs = torch.rand(60) + 0.1, torch.where(y == 0, 1, -1)
    still = {"optimizer": lambda parameters: torch.optim.SGD(parameters, 0.0), "epochs": 2}
    for loss in ("logistic", "hinge", "squared", "exponential"):
        scorer, report = NetworkLearner(small, loss, batch_size=7, **still).fit(x, signs, weight=weight)
        values = tm.margins.as_margin_loss(loss).value(signs * scorer(x)[:, 0])
        assert report.losses == pytest.approx([float(((weight * values).sum() / weight.sum()).detach())] * 2, rel=1e-5)


def test_a_linear_network_comes_to_the_least_squares():
    """Without a penalty, ``min sum_i w_i (1 - y_i f(x_i))^2`` is a weighted regression on the signs."""
    x, y = data()
    x, weight, signs = x.double(), (torch.rand(60) + 0.1).double(), torch.where(y == 0, 1, -1)
    learner = NetworkLearner(linear, "squared", epochs=600, optimizer=lambda p: torch.optim.Adam(p, 0.02))
    scorer, _ = learner.fit(x, signs, weight=weight)
    wide = torch.cat([x, torch.ones(60, 1).double()], 1)
    right = torch.linalg.lstsq(weight.sqrt()[:, None] * wide, weight.sqrt() * signs).solution
    torch.testing.assert_close(scorer(x)[:, 0], wide @ right, rtol=0, atol=1e-3)


@pytest.mark.parametrize("call", ["multi", "single"])
def test_through_a_code_it_is_the_network_of_each_column(call):
    x, y = data()
    code = torch.tensor([[1, 1, -1, 0], [-1, 1, 1, 1], [1, -1, 1, -1]])
    weight = torch.rand(60) + 0.1
    learner = NetworkLearner(noisy, epochs=10, batch_size=16, generator=torch.Generator().manual_seed(7))
    fits = [CodedReduction(code, learner, call=call, jobs=jobs).fit(x, y, weight=weight) for jobs in (1, 3)]
    (scorer, report), (other, _) = fits
    assert torch.equal(scorer(x).margins, other(x).margins)
    assert report.decoder.loss.name == "logistic"
    assert float((report.decoder(scorer(x)) == y).float().mean()) > 0.9
    if call == "multi":
        asked = code[y, 3] != 0
        seed = torch.Generator().manual_seed(7 + 3)
        alone = NetworkLearner(noisy, epochs=10, batch_size=16, generator=seed)
        right = alone.fit(x[asked], code[y[asked], 3], weight=weight[asked]).scorer(x)
        assert torch.equal(scorer(x).margins[:, 3], right[:, 0])
        assert [len(column.losses) for column in report.columns] == [10] * 4
    twin = copy.deepcopy(scorer)
    twin.load_state_dict(scorer.state_dict())
    assert torch.equal(twin(x).margins, scorer(x).margins)


def test_a_network_that_differs_is_no_resumption(tmp_path):
    x, y = data()
    code = tm.codes.one_vs_all(3)
    CodedReduction(code, NetworkLearner(linear, epochs=2)).fit(x, y, resume=tmp_path)
    again = CodedReduction(code, NetworkLearner(linear, epochs=2)).fit(x, y, resume=tmp_path)
    assert again.report.iterations == 3
    for other, words in (
        (NetworkLearner(linear, epochs=3), "learner.epochs was 2 and is 3"),
        (NetworkLearner(small, epochs=2), "learner.network.code differs"),
        (NetworkLearner(linear, "hinge", epochs=2), "learner.loss"),
    ):
        with pytest.raises(ValueError, match=words):
            CodedReduction(code, other).fit(x, y, resume=tmp_path)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (lambda width: nn.Linear(width, 2), r"network: gives \(2, 2\); accepted is \(2, 1\)"),
        (lambda width: "mlp", "network: made 'mlp'; accepted is a torch.nn.Module"),
        (lambda width: nn.Flatten(0), r"network: gives \(8,\); accepted"),
    ],
)
def test_networks_that_are_none(network, words):
    x, y = data()
    with pytest.raises((TypeError, ValueError), match=words):
        NetworkLearner(network).fit(x, (y > 0).long())


def test_an_optimiser_that_is_none():
    x, y = data()
    with pytest.raises(TypeError, match=r"optimizer: made .*; accepted is a torch\.optim\.Optimizer"):
        NetworkLearner(linear, optimizer=lambda p: 0.1).fit(x, (y > 0).long())


def test_one_sign():
    with pytest.raises(ValueError, match="target: every row has"):
        NetworkLearner(linear).fit(torch.randn(4, 2), torch.ones(4, dtype=torch.long))


def test_a_network_that_diverges_in_one_column_is_named():
    x, y = data()
    x[y == 2] *= 1e30  # the columns that ask class 2 end in numbers without end
    learner = NetworkLearner(linear, "squared", epochs=3, optimizer=lambda p: torch.optim.SGD(p, 0.1))
    with pytest.warns(UserWarning, match="failed in column 1, margin 0: .* not finite; .*column 2"):
        scorer, report = CodedReduction(tm.codes.one_vs_one(3), learner).fit(x, y)
    assert sorted(report.failed) == [1, 2]
    right = (scorer(x).margins[:, 0] > 0) == (y == 0)
    assert float(right[y != 2].float().mean()) > 0.8


def test_a_fit_under_inference_mode():
    x, y = data()
    with torch.inference_mode():
        scorer = NetworkLearner(small, epochs=3).fit(x * 1, (y == 0).long()).scorer
    scorer(x).sum().backward()


def test_a_network_as_a_scorer():
    scorer = NetworkScorer(small(4), 4)
    rows = torch.randn(2, 3, 4)
    assert scorer(rows).shape == (2, 3, 1)
    assert scorer(rows[0, 0]).shape == (1,)
    torch.testing.assert_close(scorer(rows)[..., 0], small_out(scorer, rows))
    before = scorer(rows).detach()
    scorer.reset_parameters()
    assert not torch.equal(before, scorer(rows))
    assert re.search("in_features=4", repr(scorer))
    with pytest.raises(ValueError, match=r"features: got shape \(2, 5\)"):
        scorer(torch.randn(2, 5))
    with pytest.raises(TypeError, match="network: got 3"):
        NetworkScorer(3, 4)


def small_out(scorer, rows):
    first, _, last = scorer.network
    return last(first(rows).tanh())[..., 0]


def test_a_loss_without_end_is_named():
    x, y = data()
    signs = (y == 0).long()
    with pytest.raises(ValueError, match="features: the loss of epoch 1 is not finite; accepted are"):
        NetworkLearner(linear, "exponential", epochs=2).fit(1e6 * x, signs)
