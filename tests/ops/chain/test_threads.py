"""The loops run on one thread, and nobody else notices."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from torch_multiclass.ops import chain
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.chain.threads import LARGE, found, on_one_thread, set_openmp

SMALL = torch.zeros(1, 3, 2)
needs_openmp = pytest.mark.skipif(set_openmp is None, reason="torch here has no OpenMP whose threads could be set")


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@needs_openmp
def test_the_loops_run_on_one_thread_and_the_number_comes_back():
    assert on_one_thread(SMALL, torch.get_num_threads) == 1
    assert torch.get_num_threads() == 2
    assert on_one_thread(torch.zeros(LARGE, 1, 1), torch.get_num_threads) == 2
    with pytest.raises(ZeroDivisionError):
        on_one_thread(SMALL, lambda: 1 // 0)
    assert torch.get_num_threads() == 2


@needs_openmp
def test_threads_born_meanwhile_have_all_their_threads():
    seen = []

    def newborn():
        torch.ones(8, 8) @ torch.ones(8, 8)
        seen.append(torch.get_num_threads())

    def run():
        born = [threading.Thread(target=newborn) for _ in range(5)]
        for thread in born:
            thread.start()
        for thread in born:
            thread.join()
        return torch.get_num_threads()

    assert on_one_thread(SMALL, run) == 1
    assert seen == [2] * 5
    newborn()
    assert seen[-1] == 2


def test_many_threads_at_once_keep_their_own_number():
    record = Chain.of(torch.randn(4, 60, 9), torch.randn(9, 9))
    wanted = chain.log_partition(record)

    def work(index):
        torch.get_num_threads()  # torch sets a new thread up at its first use, with what another thread has just set
        torch.set_num_threads(1 + index % 3)
        for _ in range(5):
            assert torch.equal(chain.log_partition(record), wanted)
            chain.viterbi(record)
            assert torch.get_num_threads() == 1 + index % 3
        return index

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(12))) == list(range(12))
    assert torch.get_num_threads() == 2


def test_what_is_not_there_is_not_found():
    assert found("no_such_function_of_torch") is None
