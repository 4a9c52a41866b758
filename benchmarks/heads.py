"""Train the recipes' heads on a device, from their configurations but without the command line.

::

    python -m benchmarks.heads --device cuda

It reads the YAML itself, so that it also runs where jsonargparse is not installed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import lightning as L
import torch
import yaml

from recipes.console import BestAndLast, quiet
from recipes.models import Classifier

CONFIGS = Path(__file__).parents[1] / "recipes" / "configs"


def maker(spec: dict[str, Any]) -> partial:
    """What makes the object that ``class_path`` and ``init_args`` describe."""
    module, name = spec["class_path"].rsplit(".", 1)
    arguments = spec.get("init_args", {})
    nested = {key: maker(value)() for key, value in arguments.items() if isinstance(value, dict)}
    return partial(getattr(import_module(module), name), **{**arguments, **nested})


def train(config: dict[str, Any], accelerator: str, seed: int, epochs: int | None) -> tuple[float, float]:
    """Test error of the best weights, and the seconds of training and testing."""
    L.seed_everything(seed, verbose=False)
    data = maker(config["data"])()
    settings = dict(config["model"])
    backbone, head = maker(settings.pop("backbone")), maker(settings.pop("head"))
    model = Classifier(data.classes, data.input_shape, backbone, head, **settings)
    with tempfile.TemporaryDirectory() as folder:
        best = BestAndLast(Path(folder))
        trainer = L.Trainer(
            accelerator=accelerator,
            devices=1,
            max_epochs=epochs or config["trainer"]["max_epochs"],
            callbacks=[best],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        start = time.perf_counter()
        trainer.fit(model, data)
        trainer.test(model, data, ckpt_path=best.best_model_path, verbose=False)
        return float(trainer.callback_metrics["test_error"]), time.perf_counter() - start


def main() -> None:
    """One line a configuration of the digits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", type=torch.device)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--epochs", default=None, type=int, help="default: as configured")
    arguments = parser.parse_args()
    quiet()
    accelerator = "gpu" if arguments.device.type == "cuda" else "cpu"
    print(f"{'configuration':<32}{'test error':>12}{'seconds':>10}", flush=True)
    for path in sorted(CONFIGS.glob("digits_*.yaml")):
        error, seconds = train(yaml.safe_load(path.read_text()), accelerator, arguments.seed, arguments.epochs)
        print(f"{path.stem:<32}{error:>12.2%}{seconds:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
