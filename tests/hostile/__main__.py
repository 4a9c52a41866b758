"""A long run by hand."""

import argparse
import sys
import time

import torch

from tests import hostile

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=hostile.__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a regular expression over names such as functional.crf_loss")
    asked = parser.parse_args()
    torch.set_num_threads(1)

    def told(number: int, fault: hostile.Fault | None) -> None:
        if fault is not None:
            print(hostile.report([fault]), file=sys.stderr, flush=True)
        if number % 10_000 == 0:
            print(f"{number} calls, {time.process_time():.0f} s of the processor", file=sys.stderr, flush=True)

    count, found = hostile.run(asked.calls, asked.seed, asked.only, told)
    print(hostile.report(found))
    print(f"{count} calls, {len(found)} faults")
    sys.exit(bool(found))
