"""The callback that says how far a head trained by gradients stands from the optimum."""

import lightning as L
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import torch_multiclass as tm
from tests.references import svm as naive
from torch_multiclass.integrations.duality_gap import DualityGap
from torch_multiclass.solvers import DualSVM


class Frozen(L.LightningModule):
    def __init__(self, C, rows, head=None):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 6), nn.Tanh()).requires_grad_(False)
        self.head = head or tm.MulticlassHead(6, 3, loss=tm.CrammerSingerLoss(reduction="sum"))
        self.C, self.rows, self.seen = C, rows, []

    def training_step(self, batch, _):
        x, y = batch
        decay = 0.5 * sum(p.square().sum() for p in self.head.parameters()) * len(x) / self.rows
        return decay + self.C * self.head.loss(self.head(self.backbone(x)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), 0.05)


@pytest.mark.filterwarnings("ignore")  # Lightning's advice
def test_the_gap_closes_and_bounds_the_truth(tmp_path):
    x, y = naive.mixture(3, 120, 4, 1.5, torch.Generator().manual_seed(0))
    model, gap = Frozen(0.5, 120), DualityGap(0.5)
    logged = []

    class Keep(L.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            logged.append({name: float(value) for name, value in trainer.callback_metrics.items()})

    trainer = L.Trainer(
        max_epochs=30,
        accelerator="cpu",
        callbacks=[gap, Keep()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True))
    features = model.backbone(x)
    exact = DualSVM(0.5, tol=1e-6, bias=True).fit(features, y).report
    scores = model.head(features)
    weight, bias = model.head.scorer.weight, model.head.scorer.bias
    losses = tm.functional.crammer_singer_loss(scores, y, reduction="sum")
    primal = float((0.5 * (weight.square().sum() + bias.square().sum()) + 0.5 * losses).detach())
    assert len(logged) == 30
    assert logged[-1]["primal"] == pytest.approx(primal, rel=1e-5)
    assert logged[-1]["gap"] >= (primal - exact.primal) / max(1, primal) - 1e-6
    assert all(entry["gap"] > 0 for entry in logged)
    assert logged[-1]["gap"] < 0.05
    assert logged[-1]["gap"] < logged[0]["gap"] / 4


@pytest.mark.filterwarnings("ignore")  # Lightning's advice
def test_rows_without_a_label_are_left_out(tmp_path):
    x, y = naive.mixture(3, 30, 4, 1.5, torch.Generator().manual_seed(0))
    y[::5] = -100
    model, gap = Frozen(0.5, 30), DualityGap(0.5)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[gap],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, DataLoader(TensorDataset(x, y), batch_size=10))
    weight, bias = model.head.scorer.weight, model.head.scorer.bias
    losses = tm.functional.crammer_singer_loss(model.head(model.backbone(x)), y, reduction="sum")
    primal = float((0.5 * (weight.square().sum() + bias.square().sum()) + 0.5 * losses).detach())
    assert gap.primal(model) == pytest.approx(primal, rel=1e-5)
    exact = DualSVM(0.5, tol=1e-6, bias=True).fit(model.backbone(x), y).report
    assert gap.dual == pytest.approx(exact.dual, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_a_head_that_is_not_linear_is_refused(tmp_path):
    model = Frozen(1.0, 6, tm.OneVsOneHead(6, 3))
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[DualityGap(1.0)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        default_root_dir=tmp_path,
    )
    loader = DataLoader(TensorDataset(torch.randn(6, 4), torch.arange(6) % 3))
    with pytest.raises(TypeError, match="scorer: got CodedScorer; accepted is a LinearScorer"):
        trainer.fit(model, loader)
