"""What comparing the notebooks costs, against only running them, in the same run.

    python -m benchmarks.notebooks

Compared as `make test` does it: pytest with nbval on two workers. Run: nbclient, two notebooks at a
time. Both start from nothing, in turn, and take wall-clock time, since each keeps two kernels busy.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import nbformat

from tools.notebooks import clear, execute
from tools.repository import ROOT, notebook_paths

WORKERS = 2
RUNS = 3
LIMIT = 1.3

COMPARE = [
    *(sys.executable, "-m", "pytest", "-q"),
    *("--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"),
    *("-n", str(WORKERS), "--dist", "loadscope"),
]
RUN = [sys.executable, "-m", "benchmarks.notebooks", "run"]


def seconds(command: list[str]) -> tuple[float, str]:
    """Wall-clock seconds of a command that must succeed, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return taken, done.stdout


def run() -> int:
    """Execute every notebook, two at a time; returns how many code cells have run."""

    def one(path) -> int:
        nb = nbformat.read(path, as_version=4)
        clear(nb)
        execute(nb, path.parent, path.name)
        return sum(bool(cell.get("execution_count")) for cell in nb.cells)

    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(one, notebook_paths()))


def main() -> None:
    """Print the table and the ratio."""
    paths = [str(path.relative_to(ROOT)) for path in notebook_paths()]
    compare, only_run, cells = [], [], set()
    for _ in range(RUNS):
        taken, said = seconds([*COMPARE, *paths])
        compare.append(taken)
        cells.add(int(re.search(r"(\d+) cells compared", said)[1]))
        taken, said = seconds(RUN)
        only_run.append(taken)
        cells.add(int(said.split()[-1]))
    if len(cells) != 1:
        sys.exit(f"not the same cells were run: {sorted(cells)}")
    ours, bare = statistics.median(compare), statistics.median(only_run)
    print(f"Comparing {len(paths)} notebooks of {cells.pop()} cells, against only running them")
    print(
        f"  nbval {ours:.1f} s, nbclient {bare:.1f} s, two at a time: "
        f"ratio {ours / bare:.2f} (limit {LIMIT})"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        print(run())
    else:
        main()
