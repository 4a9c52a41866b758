"""One file to copy: a head of this package on a network of your own, trained by plain Lightning.

::

    python minimal.py
"""

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import torch_multiclass as tm


class Classifier(lightning.LightningModule):
    """A network and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2))
        self.head = tm.MulticlassHead(128, 10, loss=tm.CrammerSingerLoss())  # or tm.ECOCHead, tm.OneVsAllHead, …

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores of a batch."""
        return self.head(self.network(rows))

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """The loss of a batch."""
        rows, labels = batch
        return self.head.loss(self(rows), labels)

    def test_step(self, batch: list[torch.Tensor]) -> None:
        """The share of labels that are wrong."""
        rows, labels = batch
        self.log("test_error", (self.head.predict(self(rows)) != labels).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), 1e-3)


def main(epochs: int = 20) -> float:
    """Train and test on digits; the test error."""
    lightning.seed_everything(0)
    rows, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    train, test = random_split(TensorDataset(rows.float() / 16, labels), [0.75, 0.25])
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_model_summary=False
    )
    trainer.fit(model, DataLoader(train, 32, shuffle=True))
    return trainer.test(model, DataLoader(test, 450))[0]["test_error"]


if __name__ == "__main__":
    main()
