"""What an installed wheel must do, run outside the checkout: load its library, and agree with enumeration.

python tests/installed.py [--without-library]
"""

import itertools
import sys

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


if __name__ == "__main__":
    main()
