"""Every metric, of which each of two processes has seen a part: as if one had seen all."""

import pytest
import torch

from tests.metrics.test_plot import MADE
from tests.processes import available, in_two_processes
from torch_multiclass import metrics


def value(name, rows):
    """Of some of 40 examples that are the same in every process."""
    made = MADE[name]()
    torch.manual_seed(0)
    batch = made.batch(40)
    metric = made.metric()
    metric.update(*made.part(batch, rows))
    return metric.compute()


def on_a_shard(rank):
    rows = slice(0, 13) if rank == 0 else slice(13, None)
    return {name: value(name, rows).tolist() for name in metrics.__all__}


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs torch.distributed")
def test_every_metric_of_two_processes_with_uneven_shards(tmp_path):
    whole = {name: value(name, slice(None)) for name in metrics.__all__}
    for found in in_two_processes(on_a_shard, tmp_path):
        assert set(found) == set(whole)
        for name, one in whole.items():
            torch.testing.assert_close(torch.tensor(found[name], dtype=one.dtype), one, rtol=1e-5, atol=1e-6, msg=name)
