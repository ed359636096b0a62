"""Make the stored atlas anew, or show what changed between two versions of PyTorch.

    python -m tools.atlas write [PATH]     (default: the file of the package)
    python -m tools.atlas diff OLD NEW

OLD and NEW are each a version of PyTorch (an environment is made, as for the canary), the
Python of an environment that has PyTorch and expecttest, or a file. The exit status of `diff` is 0
where the two are the same, 1 where they differ, and 2 where it can't tell.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import autograd_lens  # noqa: F401  (before torch: it quiets the profiler)
from autograd_lens import atlas
from tools.atlas.compare import changes, table
from tools.repository import ROOT

STORED = ROOT / "autograd_lens" / "atlas" / "atlas.json"


class CannotRun(RuntimeError):
    """There is no atlas to be had for what was asked; the message says why."""


def main(arguments: list[str]) -> int:
    """Do what the command line asks; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.atlas",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="run the op database and store what it shows")
    write.add_argument("path", nargs="?", type=Path, default=STORED)
    diff = commands.add_parser("diff", help="compare two")
    diff.add_argument("old", help="a version such as 2.11.0, a Python, or a file")
    diff.add_argument("new")
    diff.add_argument("--python", type=Path, help="the Python to make environments with")
    diff.add_argument("--pip-args", default="", help="more arguments for pip install")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "write":
            return store(asked.path)
        pair = [find(one, asked.python, asked.pip_args.split()) for one in (asked.old, asked.new)]
    except (CannotRun, atlas.BadAtlas, atlas.NoDatabase) as error:
        print(f"atlas: {error}", file=sys.stderr)
        return 2
    found = changes(*pair)
    print(table(*pair, found), end="")
    return 1 if found else 0


def store(path: Path) -> int:
    """Run everything and write the file."""
    made = atlas.run()
    try:
        path.write_text(made.to_json(), encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"{path}: {error.strerror}") from error
    print(f"{made}\n{path}")
    return 0


def find(name: str, python: Path | None, pip_args: list[str]) -> atlas.Atlas:
    """The atlas for what a command line names: a file, a Python or a version of PyTorch.

    Raises:
        CannotRun: it is none of these, or that PyTorch makes no atlas.
    """
    if not name:
        raise CannotRun("name two versions: make atlas-diff OLD=2.11.0 NEW=2.14.1")
    path = Path(name)
    if path.is_file():
        return made_by(path) if os.access(path, os.X_OK) else atlas.load(path)
    if len(path.parts) > 1 or path.suffix == ".json":
        raise CannotRun(f"no such file: {name}")
    from tools.canary.__main__ import BadUsage, wanted
    from tools.canary.environments import NotInstalled, ensure

    try:
        return made_by(ensure(wanted(name), python, pip_args))
    except (BadUsage, NotInstalled) as error:
        raise CannotRun(str(error)) from error


def made_by(python: Path) -> atlas.Atlas:
    """The atlas that another Python makes, with this repository's code and its own PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "atlas.json")
        command = [str(python.absolute()), "-m", "tools.atlas", "write", str(path)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        print(f"Running the op database with {python}", flush=True)
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True
            )
        except OSError as error:
            raise CannotRun(f"{python} does not run: {error.strerror}") from error
        if done.returncode or not path.exists():
            said = (done.stderr.strip() or done.stdout.strip() or "it did not say why").splitlines()
            raise CannotRun(f"{python} made no atlas: {said[-1]}")
        return atlas.load(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
