"""Every structure against enumeration in float64: records to 1e-10, and scores, losses and gradients with any mask.

    python -m tests.ops.fuzz_structures [PROBLEMS] [FIRST]

draws that many problems of each structure (2,000 by default), a third with forbidden scores and a third with ties.
"""

from __future__ import annotations

import sys
import time

import torch

from tests.ops.test_independent import TestIndependent
from tests.ops.test_second_order import TestSecondOrder
from tests.ops.test_segments import TestSegments
from tests.ops.test_tree import TestTree
from tests.scores.test_multilabel import TestMultilabelScores
from tests.scores.test_second_order import TestSecondOrderScores
from tests.scores.test_segments import TestSegmentScores
from tests.scores.test_tree import TestTreeScores

RECORDS = (TestSecondOrder, TestSegments, TestTree, TestIndependent)
SCORES = (TestSecondOrderScores, TestSegmentScores, TestTreeScores, TestMultilabelScores)


def of_record(kind: type, seed: int) -> None:
    """A record's sum, marginals, best labels and terms; their derivatives leave no trace of what is forbidden."""
    contract = kind()
    contract.problems = lambda *_: iter([contract.draw(torch.Generator().manual_seed(seed))])
    contract.test_every_function_equals_enumeration()
    contract.test_forbidden_scores_leave_no_trace_in_gradients()


def of_scores(kind: type, seed: int) -> None:
    """Every verb and loss, with labels missing and without; gradients are finite."""
    contract = kind()
    contract.test_verbs_equal_enumeration(seed)
    for partial in (False, True):
        contract.test_losses_equal_enumeration(seed, partial)
    contract.test_no_gradient_is_anything_but_finite(seed)


def main(problems: int = 2000, first: int = 0) -> int:
    """The number of problems that failed, each of which is printed."""
    torch.set_num_threads(1)
    failures = 0
    for check, kinds in ((of_record, RECORDS), (of_scores, SCORES)):
        for kind in kinds:
            wrong, began = 0, time.perf_counter()
            for seed in range(first, first + problems):
                try:
                    check(kind, seed)
                except Exception as error:
                    wrong += 1
                    print(f"{kind.__name__}, seed {seed}: {' '.join(str(error).split())[:200]}")
            failures += wrong
            seconds = time.perf_counter() - began
            print(
                f"{kind.__name__.removeprefix('Test')}: {problems} problems, {wrong} wrong, {seconds:.0f} s", flush=True
            )
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
