"""Codes: the search for one, a one-versus-one step, decoding by the loss and by signs, and calibration.

    python -m benchmarks.codes [--device cuda]

The peers are what one writes without the library: margins of all pairs under a mask of the label's pairs for the
one-versus-one step, and a (B, K, L) tensor of products for decoding.
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

import torch_multiclass as tm
from benchmarks.timing import describe, table, take_turns
from torch_multiclass import codes, metrics

CLASSES, FEATURES, BATCH = 100, 128, 256


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(search(), end="\n\n")
    print(speed(options.device, options.repeats), end="\n\n")
    print(decoding(), end="\n\n")
    print(calibration())


def search() -> str:
    """10,000 draws for 26 classes."""
    rows = []
    for name, columns, draw in (("dense", 48, codes.dense_random), ("sparse", None, codes.sparse_random)):
        for seed in range(3):
            start = time.process_time()
            code = draw(26, columns, generator=torch.Generator().manual_seed(seed))
            seconds = time.process_time() - start
            rows.append([name, str(code.shape[1]), str(seed), f"{seconds:.2f}", f"{codes.min_row_distance(code):g}"])
    header = ["code", "columns", "seed", "CPU s", "smallest row distance"]
    return table(header, rows, f"Best of 10,000 codes for 26 classes ({describe('cpu')})")


def speed(device: str, repeats: int) -> str:
    """A one-versus-one training step, and decoding by the loss, beside the plain way to write them."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(BATCH, FEATURES, generator=generator).to(device).requires_grad_()
    target = torch.randint(CLASSES, (BATCH,), generator=generator).to(device)
    head = tm.OneVsOneHead(FEATURES, CLASSES, device=device)
    code = head.scorer.coding_matrix.float()
    ecoc = tm.ECOCHead(FEATURES, code=codes.dense_random(CLASSES, trials=10, generator=generator), device=device)
    scores, matrix = ecoc(features.detach()), ecoc.scorer.coding_matrix.float()

    def clear() -> None:
        features.grad = None
        head.zero_grad(set_to_none=True)

    def ours() -> None:
        clear()
        head.loss(head(features), target).backward()

    def dense() -> None:
        clear()
        bits = code[target]
        margins = F.linear(features, head.scorer.weight, head.scorer.bias)
        (F.relu(1 - bits * margins) * bits.abs()).sum(-1).mean().backward()

    @torch.no_grad()
    def naive_decode() -> torch.Tensor:
        return F.softplus(-2 * scores.margins[:, None] * matrix).sum(-1).argmin(-1)

    pairs = [
        (f"one-versus-one step, K = {CLASSES}", "dense masked product", ours, dense),
        (f"logistic decoding, L = {matrix.shape[1]}", "(B, K, L) products", lambda: ecoc.predict(scores), naive_decode),
    ]
    rows = []
    for what, peer, mine, theirs in pairs:
        timings = take_turns({"ours": mine, "peer": theirs}, repeats, device=device)
        one, other = timings["ours"], timings["peer"]
        rows.append([what, f"{one.median * 1e3:.2f}", peer, f"{other.median * 1e3:.2f}"])
        rows[-1].append(f"{other.median / one.median:.2f}")
    title = f"D = {FEATURES}, batch {BATCH} ({describe(device)})"
    return table(["what", "ours, ms", "peer", "peer, ms", "times as fast"], rows, title)


def digits(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features in [0, 1] and labels of scikit-learn's digits, shuffled."""
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    return torch.tensor(x / 16, dtype=torch.float32)[order], torch.tensor(y)[order]


def fit(head: tm.Head, x: torch.Tensor, y: torch.Tensor, steps: int = 300) -> None:
    """Full-batch Adam."""
    optimizer = torch.optim.Adam(head.parameters(), 0.02, weight_decay=1e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(head(x), y).backward()
        optimizer.step()


def decoding() -> str:
    """Linear margins for one code of 34 columns on digits: test error of both decodings on three splits."""
    code = codes.dense_random(10, generator=torch.Generator().manual_seed(0))
    rows = []
    for loss in ("hinge", "logistic"):
        for seed in range(3):
            torch.manual_seed(seed)
            x, y = digits(seed)
            head = tm.ECOCHead(64, code=code, loss=loss)
            fit(head, x[:1000], y[:1000])
            scores = head(x[1000:])
            errors = [
                float((decode(scores) != y[1000:]).float().mean())
                for decode in (tm.HammingDecoder(), tm.LossBasedDecoder(loss))
            ]
            rows.append([loss, str(seed), *(f"{100 * error:.2f}" for error in errors)])
    header = ["loss", "seed", "Hamming, error %", "loss-based, error %"]
    return table(header, rows, f"Digits, 797 held out, linear, one code of {code.shape[1]} columns")


def calibration() -> str:
    """Expected calibration error on digits before and after calibration on other held-out examples."""
    code = codes.dense_random(10, generator=torch.Generator().manual_seed(0))
    x, y = digits(0)
    rows = []
    for name in ("one-versus-all", "one-versus-one", "error-correcting"):
        torch.manual_seed(0)
        head = {
            "one-versus-all": lambda: tm.OneVsAllHead(64, 10, "logistic"),
            "one-versus-one": lambda: tm.OneVsOneHead(64, 10, "logistic"),
            "error-correcting": lambda: tm.ECOCHead(64, code=code),
        }[name]()
        fit(head, x[:800], y[:800])
        held_out, fresh = head(x[800:1200]), head(x[1200:])
        errors = []
        for method in (None, "temperature", "platt"):
            if method is not None:
                head.calibrate(held_out, y[800:1200], method)
            metric = metrics.CalibrationError()
            metric.update(head.predict_proba(fresh), y[1200:])
            errors.append(float(metric.compute()))
        rows.append([name, *(f"{100 * error:.1f}" for error in errors)])
    header = ["head", "uncalibrated, %", "temperature, %", "Platt, %"]
    return table(header, rows, "Expected calibration error on digits: 800 to train, 400 to calibrate, 597 to measure")


if __name__ == "__main__":
    main()
