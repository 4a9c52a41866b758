"""The machine that the other figures come from: its name, its versions and its measured copy bandwidth.

::

    python -m benchmarks.card --device cuda
"""

from __future__ import annotations

import argparse
import platform
import time

import torch


def copy_bandwidth(device: torch.device, gibibytes: float) -> float:
    """Bytes read and written a second by a copy on the device, the best of ten, in GB/s."""
    source = torch.zeros(int(gibibytes * 2**30), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        _wait(device)
        start = time.perf_counter()
        target.copy_(source)
        _wait(device)
        best = min(best, time.perf_counter() - start)
    return 2 * source.numel() / best / 1e9


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", type=torch.device)
    device = parser.parse_args().device
    on_card = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if on_card else f"CPU ({platform.machine()})"
    bandwidth = copy_bandwidth(device, 2 if on_card else 0.25)
    print(f"device: {name}; copy bandwidth {bandwidth:.0f} GB/s")
    print(f"Python {platform.python_version()}, torch {torch.__version__}, CUDA {torch.version.cuda or 'none'}")


if __name__ == "__main__":
    main()
