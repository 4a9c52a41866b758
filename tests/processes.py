"""Two processes that train or measure together, and end without a trace."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

available = dist.is_available() and dist.is_gloo_available()


def in_two_processes(function: Callable[..., Any], folder: Path, *arguments: Any) -> list[Any]:
    """What ``function(rank, *arguments)`` returns in each of two processes of one group; an error there is one here."""
    multiprocessing.spawn(_enter, (function, str(folder), arguments), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]


def _enter(rank: int, function: Callable[..., Any], folder: str, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.save(function(rank, *arguments), f"{folder}/{rank}.pt")
    # A module in a cycle keeps the group, and with it threads, beyond its end; the first to leave must not close the
    # connection that the other still reads; and C++ destructors at exit abort where a thread still runs.
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
