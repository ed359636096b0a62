"""The judge of the ledger: PyTorch's own allocation events, which know nothing of a graph.

A case makes what is there before (leaves, inputs, modules) and yields ``(names, inputs)``, then
runs a forward pass and yields its outputs. What was allocated in between, is still alive when only
the graph is held, and is gone when that is dropped, is what the graph keeps alive.
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile, record_function


@dataclass
class Judged:
    """Sizes of the allocations that only the graph kept alive, and what ``look`` returned.

    ``alive`` are those that were there when only the graph was held; of these, ``sizes`` went with
    it.
    """

    alive: list[int]
    sizes: list[int]
    result: object

    @property
    def bytes(self):
        return sum(self.sizes)


def judge(case, look):
    """Run ``case``; call ``look(nodes, names, inputs)`` while nothing but the graph is held."""
    running = case()
    names, inputs = next(running)
    gc.freeze()  # collections look at what is made from here on, which is quick
    try:
        return _judge(running, names, inputs, look)
    finally:
        gc.unfreeze()


def _judge(running, names, inputs, look):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        outputs = next(running)
        tensors = [t for t in torch.utils._pytree.tree_leaves(outputs) if t.grad_fn is not None]
        nodes = [tensor.grad_fn for tensor in tensors]
        running.close()
        del outputs, tensors, running
        gc.collect()
        with record_function("judge: only the graph is held"):
            pass
        result = look(nodes, names, inputs)
        with record_function("judge: looked"):
            pass
        del nodes
        gc.collect()
    return Judged(*_alive_and_freed(watched), result)


def _alive_and_freed(watched):
    alive, before, found = {}, None, Counter()
    for name, pointer, size in _events(watched):
        if name == "judge: only the graph is held":
            before = dict(alive)
        elif name == "judge: looked":
            assert {k: v for k, v in alive.items() if k in before} == before, "looking freed memory"
            assert set(alive) == set(before), "looking kept memory"
        elif size > 0:
            alive[pointer] = size
        else:
            freed = alive.pop(pointer, None)
            if before is not None and before.get(pointer) == freed is not None:
                found[freed] += 1
    return sorted(before.values()), sorted(found.elements())


def _events(watched):
    """Name, address and signed size of every event, in order of time."""
    events, pending = [], list(watched.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending += event.children
        if event.tag == _EventType.Allocation:
            memory = event.typed[1]
            events.append((event.start_time_ns, "", memory.ptr, memory.alloc_size))
        elif event.name.startswith("judge"):
            events.append((event.start_time_ns, event.name, 0, 0))
    return [event[1:] for event in sorted(events)]


def live_bytes(fn):
    """Bytes that were allocated and not yet freed while ``fn`` ran, after each event; 0 first."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        result = fn()
        with record_function("judge: returned"):
            pass
    series = [0]
    for name, _, size in _events(watched):
        if name:
            break
        series.append(series[-1] + size)
    del result
    return series
