"""Codes: the search for one, a one-versus-one step, decoding by the loss and by signs, and calibration.

    python -m benchmarks.codes [--device cuda]

The peers are what one writes without the library: margins of all pairs under a mask of the label's pairs for the
one-versus-one step, and a (B, K, L) tensor of products for decoding; for predictions also scikit-learn's
classifiers, from features of which they make the margins in NumPy. Where no library does the same, the seconds that are
asked stand in the peer's place.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier

import torch_multiclass as tm
from benchmarks.chains import peak_memory
from benchmarks.timing import Row, Timing, describe, table, take_turns
from torch_multiclass import codes, metrics

CLASSES, FEATURES, BATCH = 100, 128, 256


USES_LIBRARY = True


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(search(), end="\n\n")
    print(speed(options.device, options.repeats), end="\n\n")
    if options.device == "cpu":
        print(many(options.repeats), end="\n\n")
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
    ours, dense = one_vs_one_steps(CLASSES, device)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(BATCH, FEATURES, generator=generator).to(device)
    ecoc = tm.ECOCHead(FEATURES, code=codes.dense_random(CLASSES, trials=10, generator=generator), device=device)
    scores, matrix = ecoc(features), ecoc.scorer.coding_matrix.float()

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


def many(repeats: int) -> str:
    """The lines of the one table, by themselves."""
    printed = []
    for row in rows(repeats):
        ours, theirs = (part.median if isinstance(part, Timing) else part for part in (row.ours, row.theirs))
        ratio = "" if not theirs else f"{theirs / ours:.2f}"
        asked = "" if row.asked is None else f"{row.asked:g}"
        memory = "" if row.memory is None else f"{row.memory:.0f}"
        printed.append([row.name, f"{ours * 1e3:.2f}", row.peer, f"{(theirs or 0) * 1e3:.2f}", ratio, asked, memory])
    header = ["what", "ours, ms", "peer", "peer, ms", "times as fast", "asked", "MiB"]
    return table(header, printed, f"Heads with codes ({describe('cpu')})")


def rows(repeats: int) -> Iterator[Row]:
    """The lines of the one table."""
    yield from small(repeats)
    yield from hundred(repeats)
    yield from thousands(max(3, repeats // 3))


def asked(name: str, run: Callable[[], object], seconds: float | None, repeats: int, loops: int = 1) -> Row:
    """A line of seconds for each of the loops that a run makes, beside those that are asked."""
    timing = take_turns({"ours": run}, repeats)["ours"]
    each = Timing([second / loops for second in timing.seconds], [second / loops for second in timing.wall])
    return Row(name, each, "" if seconds is None else "asked", seconds, None if seconds is None else 1.0)


def small(repeats: int) -> Iterator[Row]:
    """Ten classes: predictions of 32 rows, and the loss."""
    x, y = digits(0)
    features, target = x[:32], y[:32]
    coded = tm.ECOCHead(64, 10, generator=torch.Generator().manual_seed(0))
    ridge = RidgeClassifier()
    fitted: dict[str, tuple[tm.Head, Any, float | None]] = {
        "one-versus-all": (tm.OneVsAllHead(64, 10), OneVsRestClassifier(ridge), 100e-6),
        "ECOC": (coded, OutputCodeClassifier(ridge, code_size=3.4, random_state=0), 100e-6),
        "one-versus-one": (tm.OneVsOneHead(64, 10), OneVsOneClassifier(ridge), None),
    }
    for name, (head, peer, seconds) in fitted.items():
        peer.fit(x.numpy(), y.numpy())
        yield asked(f"{name} predict (32, 10), scores given", predicting(head, head(features)), seconds, repeats, 100)
        runs = {"ours": predicting(head, features), "peer": repeat(partial(peer.predict, features.numpy()), 5)}
        timed = take_turns(runs, repeats)
        ours, theirs = timed["ours"].median / 100, timed["peer"].median / 5
        yield Row(f"{name} predict (32, 10), features given", ours, "scikit-learn", theirs, 1.0)
    margins = torch.randn(32, 10, requires_grad=True)
    scores, loss = tm.CodedScores(margins, codes.one_vs_all(10)), tm.CodedLoss("logistic")
    bits = F.one_hot(target, 10).float()
    timed = take_turns(
        {
            "ours": repeat(lambda: loss(scores, target).backward()),
            "peer": repeat(lambda: F.binary_cross_entropy_with_logits(margins, bits).backward()),
            "cross": repeat(lambda: F.cross_entropy(margins, target).backward()),
        },
        repeats,
    )
    ours = timed["ours"].median / 100
    yield Row("CodedLoss (32, 10)", ours, "F.binary_cross_entropy_with_logits", timed["peer"].median / 100)
    yield Row("CodedLoss (32, 10), against", ours, "F.cross_entropy", timed["cross"].median / 100)


def predicting(head: tm.Head, given: object) -> Callable[[], None]:
    """100 predictions from scores or from features."""
    return repeat(lambda: head.predict(head(given) if isinstance(given, torch.Tensor) else given))


def repeat(run: Callable[[], object], loops: int = 100) -> Callable[[], None]:
    """A run many times over, for what is too short to be timed."""

    def runs() -> None:
        for _ in range(loops):
            run()

    return runs


def hundred(repeats: int) -> Iterator[Row]:
    """One versus one of 100 classes: a step, and probabilities."""
    step, dense = one_vs_one_steps(CLASSES, "cpu")
    timed = take_turns({"ours": step, "peer": dense}, repeats)
    name = f"one-versus-one step, K = {CLASSES}, D = {FEATURES}, B = {BATCH}"
    yield Row(name, timed["ours"], "all margins under a mask", timed["peer"], 2.0, peak_memory(step, "cpu"))
    head = tm.OneVsOneHead(FEATURES, CLASSES)
    scores = head(torch.randn(1024, FEATURES))
    yield asked(f"one-versus-one probabilities (1024, {CLASSES})", lambda: head.predict_proba(scores), 90e-3, repeats)


def one_vs_one_steps(num_classes: int, device: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """A training step without the optimiser, ours and with the margins of all pairs under a mask."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(BATCH, FEATURES, generator=generator).to(device).requires_grad_()
    target = torch.randint(num_classes, (BATCH,), generator=generator).to(device)
    head = tm.OneVsOneHead(FEATURES, num_classes, device=device)
    code = head.scorer.coding_matrix.float()

    def ours() -> None:
        features.grad = None
        head.zero_grad(set_to_none=True)
        head.loss(head(features), target).backward()

    def dense() -> None:
        features.grad = None
        head.zero_grad(set_to_none=True)
        bits = code[target]
        margins = F.linear(features, head.scorer.margins.weight, head.scorer.margins.bias)
        (F.relu(1 - bits * margins) * bits.abs()).sum(-1).mean().backward()

    return ours, dense


def thousands(repeats: int) -> Iterator[Row]:
    """One versus one of 1,000 classes, one versus all of 10,000, and the search for a code of 1,000.

    A step is with its optimiser. 256 rows touch 38 % of the 499,500 pairs, 32 rows 6 %: what sparse gradients save.
    """
    for title, make, limits in (
        ("one-versus-one, K = 1,000", lambda: tm.OneVsOneHead(FEATURES, 1000), (1.0, 0.35, 0.5)),
        ("one-versus-all, K = 10,000", lambda: tm.OneVsAllHead(FEATURES, 10_000), (None, None, None)),
    ):
        head = make()
        features, target = torch.randn(BATCH, FEATURES), torch.randint(head.num_classes, (BATCH,))
        optimizer = torch.optim.SGD(head.parameters(), 0.01)

        def step(head=head, features=features, target=target, optimizer=optimizer) -> None:
            optimizer.zero_grad()
            head.loss(head(features), target).backward()
            optimizer.step()

        runs = {"construct": make, "step": step, "predict": lambda head=head, x=features: head.predict(head(x))}
        for (name, run), limit in zip(runs.items(), limits, strict=True):
            row = asked(f"{title}, {name}, D = {FEATURES}, B = {BATCH}", run, limit, repeats)
            yield row._replace(memory=peak_memory(run, "cpu"))
            optimizer.zero_grad()
    for rows in (BATCH, 32):
        yield sparse_step(rows, repeats)
    for name, draw in (("dense", codes.dense_random), ("sparse", codes.sparse_random)):
        start = time.process_time()
        draw(1000, generator=torch.Generator().manual_seed(0), progress=False)
        seconds = time.process_time() - start
        limit = 10.0 if name == "dense" else None
        yield Row(
            f"{name} random code, K = 1,000, best of 10,000", seconds, "asked" if limit else "", limit, limit and 1.0
        )


def sparse_step(batch: int, repeats: int) -> Row:
    """A step of one versus one with sparse gradients, beside the same with dense ones."""
    features, target = torch.randn(batch, FEATURES), torch.randint(1000, (batch,))

    def stepping(sparse: bool) -> Callable[[], None]:
        head = tm.OneVsOneHead(FEATURES, 1000, sparse=sparse)
        optimizer = torch.optim.SGD(head.parameters(), 0.01)

        def step() -> None:
            optimizer.zero_grad()
            head.loss(head(features), target).backward()
            optimizer.step()

        return step

    steps = {"ours": stepping(True), "peer": stepping(False)}
    timed, memory = take_turns(steps, repeats), peak_memory(steps["ours"], "cpu")
    name = f"one-versus-one, K = 1,000, step with sparse gradients, D = {FEATURES}, B = {batch}"
    return Row(name, timed["ours"], "dense gradients", timed["peer"], memory=memory)


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
