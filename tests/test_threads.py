"""Eight threads that use losses, decoders and solvers at once, and a process after a fork, compute what one does."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import torch_multiclass as tm

pytestmark = pytest.mark.filterwarnings("ignore:.*in the last of")
ROOT = Path(__file__).parents[1]
THREADS = 8


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def labels(classes, *shape):
    return torch.randint(classes, shape, generator=torch.Generator().manual_seed(classes))


def of_loss(loss, scores, target, leaf):
    value = loss(scores, target)
    return [value.detach(), *torch.autograd.grad(value, leaf)]


def flat_losses():
    x, y = drawn(9, 5).requires_grad_(), labels(5, 9)
    cost = tm.costs.Matrix(torch.rand(5, 5, generator=torch.Generator().manual_seed(0)).fill_diagonal_(0))
    made = [
        *[tm.CrammerSingerLoss(), tm.CrammerSingerLoss(cost=cost), tm.WestonWatkinsLoss(), tm.MarginRampLoss(0.5)],
        *[tm.AdaBoostLoss(), tm.M3NLoss(cost), tm.SVMStructLoss(), tm.CRFLoss(), tm.StructuredPerceptronLoss()],
    ]
    return [part for loss in made for part in of_loss(loss, x, y, [x])]


def coded_losses():
    code = tm.codes.one_vs_one(5)
    margins, y = drawn(9, 10).requires_grad_(), labels(5, 9)
    scores = tm.CodedScores(margins, code)
    found = [part for name in ("hinge", "logistic") for part in of_loss(tm.CodedLoss(name), scores, y, [margins])]
    scores = tm.CodedScores(margins.detach(), code)
    decoders = [tm.HammingDecoder(), tm.LossBasedDecoder("exponential"), tm.VotingDecoder(), tm.TournamentDecoder()]
    return found + [decoder(scores) for decoder in decoders]


def chains():
    emissions, moves, y = drawn(4, 40, 6).requires_grad_(), drawn(6, 6).requires_grad_(), labels(6, 4, 40)
    lengths = torch.tensor([40, 3, 17, 29])
    found = []
    for loss in (tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.StructuredPerceptronLoss()):
        scores = tm.ChainScores(emissions, moves, lengths=lengths)
        found += of_loss(loss, scores, y, [emissions, moves])
    scores = tm.ChainScores(emissions.detach(), moves.detach(), lengths=lengths)
    found += [tm.ViterbiDecoder()(scores), tm.PosteriorDecoder()(scores), tm.KBestDecoder(3)(scores)]
    return [*found, scores.marginals(), scores.entropy(), scores.sample(2, generator=torch.Generator().manual_seed(1))]


def structures():
    emissions, y = drawn(3, 6, 4), labels(4, 3, 6)
    parents = torch.tensor([[-1, 0, 0, 1, 1, 2]] * 3)
    tree = tm.TreeScores(emissions, drawn(4, 4), parents=parents)
    second = tm.SecondOrderScores(emissions, drawn(4, 4), drawn(4, 4, 4))
    return [part for scores in (tree, second) for part in (tm.CRFLoss()(scores, y), scores.decode().labels)]


def rows(classes=3):
    x, y = drawn(60, 4), labels(classes, 60)
    return 0.3 * x + 4 * torch.nn.functional.one_hot(y, 4), y


def parameters(scorer):
    return [*scorer.parameters(), *scorer.buffers()]


def machines():
    x, y = rows()
    made = [
        tm.solvers.DualSVM(progress=False),
        tm.solvers.DualSVM(kernel=tm.kernels.Gaussian(0.5), progress=False),
        tm.solvers.FrankWolfe(tol=1e-2, progress=False),
        tm.solvers.Pegasos(epochs=2, progress=False),
        tm.solvers.Perceptron(averaged=True, max_passes=3, progress=False),
        tm.solvers.PassiveAggressive(averaged=True, max_passes=3, progress=False),
    ]
    return [part.detach() for solver in made for part in parameters(solver.fit(x, y).scorer)]


def trees():
    x, y = rows()
    made = [
        tm.solvers.DecisionTree(max_leaves=8, progress=False),
        tm.solvers.RandomForest(4, jobs=1, progress=False),
        tm.solvers.AdaBoostMH(5, progress=False),
    ]
    coded = tm.solvers.CodedReduction(tm.codes.one_vs_one(3), tm.solvers.AdaBoost(3), jobs=1, progress=False)
    return [*(solver.fit(x, y).scorer(x) for solver in made), coded.fit(x, y).scorer(x).margins]


WORKS = [flat_losses, coded_losses, chains, structures, machines, trees]


def calculated():
    """What each work comes to, by its name."""
    return {work.__name__: work() for work in WORKS}


def equal(found, wanted):
    return len(found) == len(wanted) and all(map(torch.equal, found, wanted))


def test_eight_threads_at_once():
    """Each begins with another work, so that all are done beside all."""
    wanted = calculated()
    together = threading.Barrier(THREADS)

    def at(number):
        together.wait()
        torch.set_num_threads(1)
        order = WORKS[number % len(WORKS) :] + WORKS[: number % len(WORKS)]
        return [work.__name__ for work in order if not equal(work(), wanted[work.__name__])]

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(at, range(THREADS))) == [[]] * THREADS


AFTER_A_FORK = """
import os, signal, torch
torch.set_num_threads(1)
from tests.test_threads import calculated, equal
first = calculated()
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)  # a lock that another thread held would wait for ever
        found = calculated()
        os._exit(sum(not equal(found[name], first[name]) for name in first))
    children.append(pid)
ends = [os.waitpid(pid, 0)[1] for pid in children]
again = calculated()
print(ends, [name for name in first if not equal(again[name], first[name])])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork():
    """As a data loader does: two children at once, and the parent goes on."""
    done = subprocess.run([sys.executable, "-c", AFTER_A_FORK], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[0, 0] []", done.stderr
