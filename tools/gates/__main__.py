"""Print what the gates find: `python -m tools.gates [NOTEBOOK ...]`."""

from __future__ import annotations

import sys

import nbformat

from tools.gates import GATES, problems
from tools.repository import notebook_paths, setup_cell


def main(arguments: list[str]) -> int:
    """Check the given notebooks, or all; 1 when there is a problem."""
    if arguments == ["--setup-cell"]:
        print(setup_cell())
        return 0
    total = 0
    paths = arguments or notebook_paths()
    for path in paths:
        for gate, found in problems(nbformat.read(path, as_version=4)).items():
            total += len(found)
            print(*(f"{path}: {line} [{gate}]" for line in found), sep="\n")
    print(f"{len(paths)} notebooks, {len(GATES)} gates, {total} problems")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
