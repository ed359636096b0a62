"""Re-run every notebook on another PyTorch, or on what Colab has, and show what changed.

Exit status: 0 where nothing changed that is not explained, 1 where something did, 2 where the
canary could not run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from tools.canary import environments, explained
from tools.canary.environments import COLAB, NEWEST, NotInstalled
from tools.canary.report import Report
from tools.canary.rerun import Kernel, rerun
from tools.notebooks import CELL_TIMEOUT
from tools.repository import ROOT, notebook_paths


class BadUsage(ValueError):
    """The canary was asked for something that it can't do; the message says what to ask for."""


def main(arguments: list[str]) -> int:
    """Run the canary; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.canary", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--torch", default="", help='a version, such as 2.15.0, or "newest"')
    which.add_argument("--colab", action="store_true", help="the versions of colab.txt")
    parser.add_argument("--python", type=Path, help="the Python to make the environment with")
    parser.add_argument("--pip-args", default="", help="more arguments for pip install")
    parser.add_argument("--timeout", type=int, default=CELL_TIMEOUT, help="seconds for a cell")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    asked = parser.parse_args(arguments)
    name = ""
    try:
        name = COLAB if asked.colab else wanted(asked.torch)
        paths = [path.resolve() for path in asked.notebooks] or notebook_paths()
        if missing := [str(path) for path in paths if not path.is_file()]:
            raise BadUsage(f"no such notebook: {', '.join(missing)}")
        known = explained.load()
        python = environments.ensure(name, asked.python, asked.pip_args.split())
        report = look(name, python, paths, known, asked.timeout)
    except (BadUsage, NotInstalled, explained.BadExplanation) as error:
        print(f"canary: {error}", file=sys.stderr)
        if name:
            store(name, f"### {name}: the canary did not run\n\n{error}\n", "")
        return 2
    store(name, report.markdown(), report.json())
    print(f"\n{report.text()}", end="")
    return 0 if report.good else 1


def store(name: str, markdown: str, json: str) -> None:
    """Leave the report where a workflow finds it; an empty one is taken away."""
    environments.FOLDER.mkdir(parents=True, exist_ok=True)
    for suffix, text in (".md", markdown), (".json", json):
        path = environments.FOLDER / f"{name}{suffix}"
        path.write_text(text, encoding="utf-8") if text else path.unlink(missing_ok=True)


def wanted(torch: str) -> str:
    """The name of the environment for what was asked: a version that the book can run on."""
    if not torch:
        raise BadUsage("name a version: make canary TORCH=2.15.0, TORCH=newest or COLAB=1")
    if torch == NEWEST:
        return torch
    try:
        version = Version(torch)
    except InvalidVersion:
        raise BadUsage(f"TORCH={torch} is no version; such as 2.15.0, or newest") from None
    (lowest,) = [need.specifier for need in environments.needs() if need.name == "torch"]
    if not SpecifierSet(str(lowest)).contains(version, prereleases=True):
        raise BadUsage(f"TORCH={torch}: the book needs torch{lowest}")
    return str(version)


def look(name: str, python: Path, paths: list[Path], known: list, timeout: int) -> Report:
    """Re-run the notebooks at `paths` with `python`."""
    versions = environments.versions(python)
    if "torch" not in versions:
        raise NotInstalled(f"{python} has no torch")
    runs = []
    for number, path in enumerate(paths, start=1):
        inside = path.is_relative_to(ROOT)
        shown = path.relative_to(ROOT).as_posix() if inside else str(path)
        print(f"[{number}/{len(paths)}] {shown}", flush=True)
        stored = nbformat.read(path, as_version=4)
        runs.append(rerun(stored, path.parent, shown, Kernel(python), timeout=timeout))
    runs, stale = explained.explain(runs, versions, known)
    also = "".join(f", {key} {versions[key]}" for key in ("ipython", "numpy") if key in versions)
    title = f"{name}: torch {versions['torch']}{also}, Python {environments.python_version(python)}"
    return Report(title if name in (NEWEST, COLAB) else title.partition(": ")[2], runs, stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
