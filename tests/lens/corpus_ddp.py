"""The checks of the corpus in two processes that average their gradients.

A script of its own, since its processes import what they run by name: ``python corpus_ddp.py``
prints one line for each process. They talk over this machine's loopback alone.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import corpus_checks as checks
import torch
import torch.distributed as dist
from corpus import Written, call
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import autograd_lens as lens

PROCESSES = 2


def alone():
    """A model, and rows of this process's own."""
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return Written(net, (torch.randn(PROCESSES, 5, 8)[dist.get_rank()],), call)


def parallel():
    """The same, averaged over the processes."""
    written = alone()
    return replace(written, model=DistributedDataParallel(written.model))


def gradients_are_the_mean_of_all():
    """``.grad`` by the lens, against models that know of no other and are averaged by hand."""
    written, single = checks.seeded(parallel), checks.seeded(alone)
    lens.record_backward(written.loss(written.run()), names=written.model)
    single.loss(single.run()).backward()
    for mine, other in zip(written.model.parameters(), single.model.parameters(), strict=True):
        own = other.grad.clone()
        dist.all_reduce(other.grad)
        assert not torch.equal(own, other.grad / PROCESSES), "the processes have the same rows"
        torch.testing.assert_close(mine.grad, other.grad / PROCESSES)


def work(rank, store, folder):
    """All checks, in one of the processes."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=PROCESSES,
        timeout=timedelta(seconds=120),
    )
    graph = checks.graph_is_the_walk(parallel)
    ledger = checks.saved_bytes_are_those_of_hooks(parallel)
    checks.activations_are_those_of_the_allocator(parallel)
    film = checks.backward_is_the_plain_one(parallel)
    checks.bytes_go_as_the_nodes_let_go(parallel)
    memory = checks.memory_is_that_of_the_allocator(parallel)
    gradients_are_the_mean_of_all()
    for view in (graph, ledger, film, memory):
        checks.shows_itself(view)
        checks.is_written_as_a_page(view, Path(folder) / f"{type(view).__name__}-{rank}.html")
    dist.barrier()
    dist.destroy_process_group()
    print(f"process {rank}: {len(graph.nodes)} nodes", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", folder), nprocs=PROCESSES)
