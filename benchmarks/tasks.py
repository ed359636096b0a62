"""One measurement per call, as a line of JSON: ``python -m benchmarks.tasks "mlp lens"``."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
from collections.abc import Callable
from typing import Any

import torch
import torchviz

import autograd_lens as lens

from . import models


def _cpu(function: Callable[[], Any], children: bool = False) -> tuple[float, Any]:
    """CPU seconds of a call, of the processes it starts if ``children``; and its result."""
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF

    def now() -> float:
        usage = resource.getrusage(who)
        return usage.ru_utime + usage.ru_stime

    start = now()
    result = function()
    return now() - start, result


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _lens_dot(output: torch.Tensor, names: Any = None) -> str:
    return lens.graph(output, names, max_nodes=None).to_dot()


def _torchviz_dot(output: torch.Tensor, names: Any = None) -> str:
    if names is None:
        return torchviz.make_dot(output).source
    parameters = dict(names.named_parameters())
    return torchviz.make_dot(output, parameters, show_attrs=True, show_saved=True).source


_DOT = {"lens": _lens_dot, "torchviz": _torchviz_dot}


def chain(tool: str) -> dict[str, float]:
    """Walk and write a chain of 100,000 nodes; in a thread with room for torchviz's recursion."""
    output = models.chain(100_000)
    _DOT[tool](models.chain(10))  # imports and tables
    before = _megabytes()
    seconds, source = _cpu(lambda: _DOT[tool](output))
    assert source.count("AddBackward0") >= 100_000, "the graph is not complete"
    return {"seconds": seconds, "megabytes": _megabytes() - before}


def picture(model: str, tool: str) -> dict[str, float]:
    """DOT text, then SVG, of a whole model."""
    module, output = getattr(models, model)()
    _DOT[tool](output, module)  # imports and tables
    dot, source = _cpu(lambda: _DOT[tool](output, module))
    run = ["dot", "-Tsvg"]
    svg, _ = _cpu(
        lambda: subprocess.run(run, input=source.encode(), capture_output=True, check=True), True
    )
    return {"dot": dot, "svg": dot + svg}


def backward(model: str) -> dict[str, float]:
    """Seconds of a plain and of a recorded backward, in turn."""
    module, output = getattr(models, model)()
    plain, recorded = [], []
    for _ in range(7):
        module.zero_grad()
        plain.append(_cpu(lambda: output.backward(retain_graph=True))[0])
        module.zero_grad()
        recorded.append(_cpu(lambda: lens.record_backward(output, retain_graph=True))[0])
    return {"plain": statistics.median(plain), "recorded": statistics.median(recorded)}


def _kilobytes(run: Callable[[], Any]) -> float:
    """The peak of Python memory that a call takes, and its result with it."""
    tracemalloc.start()
    result = run()
    peak = tracemalloc.get_traced_memory()[1] / 1e3
    tracemalloc.stop()
    del result
    return peak


def _timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def forward(model: str) -> dict[str, float]:
    """Least seconds of a forward pass: plain, followed by the ledger, and under MemTracker.

    MemTracker refuses a module that is called more than once; its numbers are left out then.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    make = getattr(models, model)

    def tracked() -> Any:
        with MemTracker() as tracker:
            return tracker, make()

    ways: dict[str, Callable[[], Any]] = {
        "plain": make,
        "ledger": lambda: lens.saved_tensors(make()[1]).total_bytes,
        "tracker": tracked,
    }
    least = {}
    for name, run in ways.items():
        try:
            run()
        except NotImplementedError:
            continue
        least[name] = min(_timed(run) for _ in range(5))
        least[f"{name} kB"] = _kilobytes(run)
    return least


def main(model: str, what: str) -> None:
    """Run one task and print its result."""
    torch.set_num_threads(1)
    by_name = {"backward": backward, "forward": forward}
    if what in by_name:
        result = by_name[what](model)
    else:
        result = chain(what) if model == "chain" else picture(model, what)
    print(json.dumps(result), flush=True)


def _in_thread() -> None:
    """An exception in a thread would leave the process with status 0."""
    try:
        main(*sys.argv[1].split())
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    sys.setrecursionlimit(10**7)
    threading.stack_size(1 << 30)
    worker = threading.Thread(target=_in_thread)
    worker.start()
    worker.join()
