"""The cost of ``record_memory``: a training step recorded, plain, and under ``MemTracker``.

``torch.distributed._tools.mem_tracker.MemTracker`` follows memory by role with a dispatch mode: it
sees tensors and nothing that a kernel allocates inside.

``python -m benchmarks.memory`` prints the table; with the name of a model it measures that one in
this process and writes a line of JSON.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import Callable

import autograd_lens as lens

RUNS = 5
MODELS = ("mlp", "transformer", "conv_net")


def _cpu(function: Callable[[], object]) -> float:
    def now() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    start = now()
    function()
    return now() - start


def measure(name: str) -> dict[str, float]:
    """CPU seconds of a step of each kind, medians of alternating runs; and the bytes found.

    Also how many bytes of Python memory a recording keeps for each of its events.
    """
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    from . import models

    torch.set_num_threads(1)
    model, _ = getattr(models, name)()
    batches = {
        "mlp": lambda: torch.randn(64, 64),
        "transformer": lambda: torch.arange(128).view(2, 64),
        "conv_net": lambda: torch.randn(4, 3, 16, 16),
    }
    batch = batches[name]()
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def tracked() -> None:
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            step()
        found["their peak"] = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]

    def recorded() -> None:
        found["our peak"] = lens.record_memory(step).peak_bytes

    found: dict[str, float] = {}
    kinds = {"plain": step, "recorded": recorded, "tracked": tracked}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    step()  # the optimizer's state
    for _ in range(RUNS):
        for kind, run in kinds.items():
            times[kind].append(_cpu(run))
    found["kept"] = _kept_per_event(lambda: lens.record_memory(step))
    return {kind: statistics.median(several) for kind, several in times.items()} | found


def _kept_per_event(record: Callable[[], lens.MemoryRecording]) -> float:
    tracemalloc.start()
    recording = record()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return kept / len(recording.samples)


def main() -> None:
    """Measure each model in a process of its own and print the table."""
    print("A training step with Adam under record_memory, and under torch's MemTracker")
    for name in MODELS:
        command = [sys.executable, "-m", "benchmarks.memory", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        plain = found["plain"]
        print(
            f"  {name:12} plain {1e3 * plain:7.1f} ms  recorded x{found['recorded'] / plain:.1f}"
            f"  MemTracker x{found['tracked'] / plain:.1f}"
            f"  peak {found['our peak']:,.0f} bytes, MemTracker says {found['their peak']:,.0f}"
            f"  keeps {found['kept']:.0f} bytes for each event"
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
