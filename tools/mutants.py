"""Change the lens a little, many times, and see whether its tests notice: mutmut on a sample.

    python -m tools.mutants [--sample N] [--seed N] [GLOB ...]

Which modules are changed, and by which tests they are judged, stands in `[tool.mutants]` of
`pyproject.toml`; GLOB names other modules. A sample of the mutants is drawn by the seed. The exit
status is 0 where the tests notice at least 90 of 100, 1 where they notice fewer, 2 where mutmut
could not run.

mutmut imports PyTorch and the tests once, then forks for each mutant and runs only the tests that
call the changed function. cosmic-ray and mutatest start a process each, which imports PyTorch
again. What mutmut leaves alone: whatever stands outside of functions, and functions with a
decorator, so properties too.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.repository import ROOT

WORK = ROOT / "_build" / "mutants"
"""mutmut works on a copy: it writes beside what it reads."""

COPIED = ("autograd_lens", "tests/lens", "tests/conftest.py", "tools", "conftest.py")
NAMED = ("pyproject.toml", "CONTRIBUTING.md")

PRELOADED = ("autograd_lens", "torch", "torch.testing", "numpy", "hypothesis", "pytest")
"""What is imported before the forks. Not the tests: when pytest collects them a second time in a
process, a parameter with a line break in its name gets another name, and is not found."""

ENOUGH = 0.9
"""The share of mutants that tests have to notice."""

NOTICED = {"killed", "timeout", "segfault"}
MISSED = {"survived", "no tests"}


class CannotRun(RuntimeError):
    """mutmut could not do its work; the message says why."""


def main(arguments: list[str]) -> int:
    """Do what the command line asks; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "modules", nargs="*", metavar="GLOB", help="such as autograd_lens/verdict.py"
    )
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    settings = configured()
    try:
        prepare(asked.modules or settings["modules"], settings["tests"], settings["left_out"])
        names = sample(every_mutant(), asked.sample, asked.seed)
        print(f"{len(names)} mutants, drawn by the seed {asked.seed}", flush=True)
        found = judged(names, asked.workers)
    except CannotRun as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    for name in sorted(name for name, status in found.items() if status != "killed"):
        print(mutmut("show", name).stdout)
    print(report(found))
    return 0 if share(found) >= ENOUGH else 1


def configured() -> dict[str, list[str]]:
    """The modules and the tests that `pyproject.toml` names, as globs."""
    import tomllib  # here, since the lens is tested on Python 3.10, too

    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutants"]


def paths(globs: list[str], root: Path = ROOT) -> list[str]:
    """What the globs find; those with `!` in front take away again.

    Raises:
        CannotRun: one finds nothing, as after a file has got another name.
    """
    found: list[str] = []
    for glob in globs:
        here = sorted(path.relative_to(root).as_posix() for path in root.glob(glob.lstrip("!")))
        if not here:
            raise CannotRun(f"{glob} finds no file: mend [tool.mutants] in pyproject.toml")
        if glob.startswith("!"):
            found = [path for path in found if path not in here]
        else:
            found += [path for path in here if path not in found]
    return found


def prepare(modules: list[str], tests: list[str], left_out: Sequence[str] = ()) -> None:
    """Make a fresh copy, with mutmut's configuration in it."""
    shutil.rmtree(WORK, ignore_errors=True)
    for name in COPIED:
        source, target = ROOT / name, WORK / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for name in NAMED:
        shutil.copy(ROOT / name, WORK)
    (WORK / "preloaded.txt").write_text("\n".join(PRELOADED), "utf-8")
    # Beside a pyproject.toml without a section of its own, mutmut reads this.
    (WORK / "setup.cfg").write_text(configuration(paths(modules), paths(tests), left_out), "utf-8")


def configuration(modules: list[str], tests: list[str], left_out: Sequence[str] = ()) -> str:
    """What mutmut is to know. A fork server has run no test yet: threads don't survive a fork."""
    lists = {
        "source_paths": ["autograd_lens"],
        "only_mutate": modules,
        "also_copy": [*COPIED, *NAMED],
        "pytest_add_cli_args": ["--small", *(f"--deselect={test}" for test in left_out)],
        "pytest_add_cli_args_test_selection": tests,
        "process_isolation": ["forkserver"],
        "forkserver_warmup": ["import"],
        "preload_modules_file": ["preloaded.txt"],
        "timeout_constant": ["20"],  # a child collects the tests again, which is not measured
    }
    lines = [f"{key} = " + "\n    ".join(some) for key, some in lists.items()]
    return "\n".join(["[mutmut]", *lines, ""])


def mutmut(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of its commands in the copy."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # it finds the copy itself
    return subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=WORK,
        env=kept | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def every_mutant() -> list[str]:
    """Make all mutants, and learn which tests call what; their names.

    mutmut does both before it looks for the mutants that it is asked for. Here there is none.
    """
    done = mutmut("run", "none")
    names = list(results())
    if not (WORK / "mutants" / "mutmut-stats.json").exists() or not names:
        raise CannotRun(f"no mutants, or their tests fail without them:\n{ending(done.stdout)}")
    return names


def sample(names: list[str], size: int, seed: int) -> list[str]:
    """Some of them, the same ones each time for a seed."""
    names = sorted(names)
    return sorted(random.Random(seed).sample(names, min(size, len(names))))


def judged(names: list[str], workers: int) -> dict[str, str]:
    """Run the tests on each of these mutants; what became of it."""
    done = mutmut("run", "--max-children", str(workers), *names)
    found = {name: status for name, status in results().items() if name in set(names)}
    undecided = {n: s for n, s in found.items() if s not in NOTICED | MISSED}
    if done.returncode or undecided:
        raise CannotRun(f"{len(undecided)} mutants are not judged:\n{ending(done.stdout)}")
    return found


def results() -> dict[str, str]:
    """What became of each mutant, by its name."""
    listed = mutmut("results", "--all", "true").stdout
    return dict(re.findall(r"^    (\S+__mutmut_\d+): (.+)$", listed, re.MULTILINE))


def ending(output: str) -> str:
    """The last lines of what a program with a spinner has printed."""
    return "\n".join(line.rpartition("\r")[2] for line in output.splitlines()[-30:])


def share(found: dict[str, str]) -> float:
    """The share of mutants that was noticed."""
    return sum(status in NOTICED for status in found.values()) / len(found)


def report(found: dict[str, str]) -> str:
    """How many mutants of each module came to which end, and the share that was noticed."""
    modules: dict[str, Counter[str]] = {}
    for name, status in found.items():
        modules.setdefault(name.rpartition(".")[0], Counter())[status] += 1
    lines = [
        f"{module}: " + ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
        for module, counts in sorted(modules.items())
    ]
    return "\n".join([*lines, f"{share(found):.0%} of {len(found)} mutants were noticed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
