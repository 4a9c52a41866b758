"""What an installed wheel must do, run outside the checkout: load its library, and agree with enumeration, run recipes.

python tests/installed.py [--without-library]
"""

import itertools
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import torch_multiclass as tm


def main() -> None:
    """Raise if the installation is not what it should be."""
    used = tm.backends()["native"]
    print(used)
    assert used.startswith("not used" if "--without-library" in sys.argv else "in use"), used
    generator = torch.Generator().manual_seed(0)
    for dtype, digits in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        emissions, transitions = (
            torch.randn(*shape, generator=generator, dtype=dtype) for shape in ((1, 4, 3), (3, 3))
        )
        scores = tm.ChainScores(emissions, transitions)
        every = torch.tensor(list(itertools.product(range(3), repeat=4)))
        by_hand = tm.ChainScores(emissions.expand(len(every), 4, 3), transitions).score(every)
        decoded = tm.ViterbiDecoder()(scores)
        assert decoded[0].tolist() == every[by_hand.argmax()].tolist()
        assert abs(float(scores.log_partition()) - float(by_hand.logsumexp(0))) < digits
    recipes()


def recipes() -> None:
    """The command lists the recipes and, where their extra is installed, trains and uses a classifier and a machine."""
    listed = command(Path.cwd())
    assert "classify" in listed, listed
    if find_spec("lightning") is None:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit = ("classify", "fit", "--config", "digits_ecoc", "--trainer.max_epochs=1", "--trainer.accelerator=cpu")
        command(folder, *fit, "--trainer.enable_progress_bar=false")
        (best,) = folder.rglob("best.ckpt")
        command(folder, "classify", "predict", "--ckpt_path", str(best), "--trainer.enable_progress_bar=false")
        assert len((folder / "labels.txt").read_text().splitlines()) == 450
        assert "test error" in command(folder, "svm", "fit", "--tol", "0.01")
        assert "written: " in command(folder, "report", "runs/svm")
        from torch_multiclass.recipes import load

        for kept, width in (("runs/svm", (3, 64)), ("runs/digits_ecoc", (3, 1, 8, 8))):
            assert len(load(folder / kept).predict(np.zeros(width))) == 3


def command(folder: Path, *options: str) -> str:
    """What ``torch-multiclass`` prints, run in a folder."""
    script = Path(sysconfig.get_path("scripts")) / "torch-multiclass"
    if not script.is_file():
        raise SystemExit(f"error: there is no {script}; accepted is a Python with the wheel: pip install dist/*.whl")
    return subprocess.run([script, *options], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
