"""Run every measurement in fresh processes and print tables: ``make bench``.

Each number is the median of an odd number of alternating runs. CPU time, not wall-clock time, where
one process works alone: the machine may be shared. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys

from . import memory, notebooks

RUNS = 5
FORWARDS = ("toy", "mlp", "conv_net", "transformer", "transformer_sdpa", "rnn")


def measure(task: str, limit: float | None = None) -> dict[str, float]:
    """Run one task of ``benchmarks.tasks`` in a new process; an empty result means it ran too long.

    The stack is large so that torchviz, which recurses, can walk a long chain.
    """
    command = [sys.executable, "-m", "benchmarks.tasks", task]
    # A group of its own: what runs too long is stopped with the `dot` that it started.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            said, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {}
    if process.returncode:
        sys.exit(f"{task} failed:\n{errors}")
    return json.loads(said.splitlines()[-1])


def alternate(tasks: tuple[str, ...], runs: int = RUNS) -> list[dict[str, float]]:
    """Medians of several tasks, run in turn so that a busy moment hits all of them."""
    results: list[list[dict[str, float]]] = [[] for _ in tasks]
    for _ in range(runs):
        for number, task in enumerate(tasks):
            results[number].append(measure(task))
    return [
        {key: statistics.median(run[key] for run in several) for key in several[0]}
        for several in results
    ]


def main() -> None:
    """Print the tables."""
    if sys.argv[1:]:
        sys.exit(f"usage: python -m benchmarks\n\n{__doc__}")
    print("Graph of a chain of 100,000 additions, complete DOT, against torchviz (limit 1.5)")
    lens, torchviz = alternate(("chain lens", "chain torchviz"))
    _row("CPU seconds", lens["seconds"], torchviz["seconds"], "s", 2)
    _row("memory above the chain's own", lens["megabytes"], torchviz["megabytes"], "MB", 0)

    print("\nAttributes and saved tensors on, against torchviz")
    for model in ("conv_net", "transformer"):
        lens, torchviz = alternate((f"{model} lens", f"{model} torchviz"))
        _row(f"{model}: DOT", 1e3 * lens["dot"], 1e3 * torchviz["dot"], "ms", 1)
        _row(f"{model}: SVG", 1e3 * lens["svg"], 1e3 * torchviz["svg"], "ms", 0)

    print("\nRNN of 500 steps as SVG, nothing folded")
    lens, _ = alternate(("rnn lens", "rnn lens"), 1)
    peer = measure("rnn torchviz", limit=60)
    words = f"{peer['svg']:.1f} s" if peer else "more than 60 s, stopped"
    print(f"  lens {lens['svg']:.1f} s of dot (limit 10 s), torchviz {words}")

    print("\nrecord_backward against a plain backward, same model")
    for model in ("mlp", "conv_net", "transformer", "rnn"):
        (times,) = alternate((f"{model} backward",), 1)
        _row(model, 1e3 * times["recorded"], 1e3 * times["plain"], "ms", 1)

    print("\nA model made and run, then its ledger, against the same under MemTracker")
    print("(limit: a third of the time that MemTracker adds)")
    for model in FORWARDS:
        (times,) = alternate((f"{model} forward",), 1)
        if "tracker" in times:
            added = (1e3 * (times[way] - times["plain"]) for way in ("ledger", "tracker"))
            _row(f"{model}: added", *added, "ms", 1)
            _row("  peak of Python memory", times["ledger kB"], times["tracker kB"], "kB", 0)
        else:
            print(f"  {model:32} MemTracker refuses it: a module is called more than once")
        _row("  against nothing at all", 1e3 * times["ledger"], 1e3 * times["plain"], "ms", 1)

    print()
    memory.main()

    print()
    notebooks.main()


def _row(name: str, ours: float, theirs: float, unit: str, digits: int) -> None:
    ratio = ours / theirs if theirs else float("nan")
    print(f"  {name:32} {ours:8.{digits}f} {unit}  {theirs:8.{digits}f} {unit}  ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
