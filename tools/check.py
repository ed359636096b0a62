"""Check what has changed: style, gates, the tests that belong to it, and the changed notebooks.

    python -m tools.check [--base REV]

Looks at what is not committed yet; where all is committed, at the last commit; with `--base`, at
all that has come since. Where tools have changed, it runs their large tests too. Before a push,
`make test` runs everything that the small size has.

Which tests belong to a file stands in `BELONGS`. Choosing them by what they execute was tried
(pytest-testmon): it made tests of the package 1.45 times as long (15.2 s of processor time for 197
tests, 10.5 s without), needs a first run of everything, and does not see what runs in another
process: kernels, pages, and the tests of deep graphs, which matter most when a walk has changed.
"""

from __future__ import annotations

import argparse
import glob
import os
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from tools.repository import NOTEBOOK_FOLDERS, ROOT

# A file that has changed, and the tests that belong to it: all rows that fit, `*` for anything.
# {file} is the file, {stem} its name without folder and ending. A row with `otherwise` in front
# counts for a file to which no other row gives a test.
BELONGS = [
    ("tests/*/test_*.py", "{file}"),
    ("autograd_lens/verdict.py", "tests/lens/test_check*.py"),
    ("autograd_lens/view/draw_check.py", "tests/lens/test_check*.py"),
    ("autograd_lens/*chart*.py", "tests/lens/test_chart*.py"),
    ("autograd_lens/view/axis.py", "tests/lens/test_chart*.py"),
    ("autograd_lens/view/coincidence.py", "tests/lens/test_chart*.py"),
    ("autograd_lens/view/line_labels.py", "tests/lens/test_chart*.py"),
    ("autograd_lens/view/traces.py", "tests/lens/test_chart*.py"),
    ("autograd_lens/view/sketch.py", "tests/lens/test_record_memory_figure.py"),
    ("autograd_lens/layouts/*", "tests/lens/test_storage_layout*.py"),
    ("autograd_lens/view/*storage_layout*.py", "tests/lens/test_storage_layout*.py"),
    ("autograd_lens/*memory*", "tests/lens/test_record_memory*.py"),
    ("autograd_lens/progress.py", "tests/lens/test_progress.py"),
    ("autograd_lens/*explore*.py", "tests/lens/test_live.py tests/lens/test_view.py"),
    ("autograd_lens/atlas/*", "tests/lens/test_atlas.py tests/site/test_atlas.py"),
    ("autograd_lens/backprop/*", "tests/lens/test_backward.py tests/lens/test_threads.py"),
    ("autograd_lens/view/draw_backward.py", "tests/lens/test_backward.py"),
    ("autograd_lens/printable.py", "tests/lens/test_any_text.py"),
    ("otherwise autograd_lens/*", "tests/lens"),
    ("tests/lens/corpus*.py", "tests/lens/test_corpus.py"),
    ("otherwise tests/lens/*", "tests/lens"),
    ("_ext/*", "tests/site/test_lean_pages.py tests/site/test_short_route.py"),
    ("otherwise tests/site/*", "tests/site/test_checks.py"),
    ("otherwise tests/notebooks/*", "tests/notebooks"),
    ("otherwise tests/project/*", "tests/project"),
    ("otherwise tests/jupyter/*", "tests/jupyter"),
    ("tests/conftest.py", "tests/site/test_checks.py"),
    ("tools/browsing.py", "tests/site/test_checks.py tests/site/test_look.py"),
    ("tools/look/*", "tests/site/test_look.py"),
    ("tools/testing/*", "tests/project/test_testing.py tests/notebooks/test_comparison.py"),
    ("conftest.py", "tests/project/test_testing.py tests/notebooks/test_comparison.py"),
    ("tools/gates/*", "tests/notebooks"),
    ("tools/notebooks.py", "tests/notebooks"),
    ("tools/*.py", "tests/project/test_{stem}.py"),
    ("tools/building.py", "tests/project/test_testing.py"),
    ("tools/programs.*", "tests/project/test_checks.py"),
    ("tools/publish.py", "tests/project/test_workflows.py"),
    ("tools/set_repository.py", "tests/project/test_address.py"),
    ("tools/repository.py", "tests/project/test_address.py tests/project/test_workflows.py"),
    ("tools/canary/*", "tests/project/test_canary.py"),
    ("tools/atlas/*", "tests/project/test_atlas_diff.py"),
    ("otherwise tools/*", "tests/project"),
    ("*.ipynb", "tests/notebooks/test_committed.py"),  # the gates, and the form of the file
    ("book/*.md", "tests/project/test_snippets.py"),
    (
        "README.md",
        "tests/project/test_snippets.py tests/project/test_checks.py "
        "tests/project/test_docstrings.py",
    ),
    (
        "CONTRIBUTING.md",
        "tests/lens/test_adding_a_figure.py tests/project/test_checks.py "
        "tests/project/test_docstrings.py",
    ),
    (".github/*", "tests/project/test_workflows.py"),
    ("pyproject.toml", "tests/project/test_environment.py tests/project/test_address.py"),
    ("pyproject.toml", "tests/project/test_wheel.py tests/project/test_mutants.py"),
    ("constraints.txt", "tests/project/test_environment.py"),
    ("environment.yml", "tests/project/test_environment.py"),
    ("colab.txt", "tests/project/test_environment.py"),
    ("Makefile", "tests/project/test_checks.py"),
    (".ci/*", "tests/project/test_checks.py"),
]


# Whoever changes these wants the large tests too: `make test` leaves out most tests of tools.
TESTED_WHOLE = ("tools/", "conftest.py", "tests/project/", "tests/site/")


class NoSuchRevision(ValueError):
    """Git does not know what the change is to be compared with."""


# In a hook of git's these name a repository, which is not that of the tests' own small ones.
HERE = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(*words: str) -> list[str]:
    """What git prints, cut at NUL characters (`-z`) or lines.

    Raises:
        NoSuchRevision: git refuses, or is not there.
    """
    command = ["git", *words]
    try:
        done = subprocess.run(command, cwd=ROOT, env=HERE, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NoSuchRevision("git is not installed") from error
    if done.returncode:
        raise NoSuchRevision(done.stderr.strip())
    return [part for part in done.stdout.split("\0" if "-z" in words else "\n") if part]


def changed(base: str | None) -> list[str]:
    """The files that have changed, from the root of the repository; also those that are gone.

    With a base: since this branch has left it.

    Raises:
        NoSuchRevision: git knows no such base.
    """
    if base is None:
        before = "HEAD" if git("status", "--porcelain", "-z") else "HEAD~1"
        try:
            (since,) = git("rev-parse", "--verify", before)
        except NoSuchRevision:  # no commit before the first
            (since,) = git("hash-object", "-t", "tree", "/dev/null")
    else:
        try:
            (commit,) = git("rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
        except NoSuchRevision as error:
            raise NoSuchRevision(f"git knows no commit {base!r} ({error})") from error
        (since,) = git("merge-base", commit, "HEAD")
    new = git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted({*git("diff", "-z", "--name-only", "--no-renames", "--relative", since), *new})


def notebooks(files: Iterable[str]) -> list[str]:
    """Those that are notebooks with stored outputs."""
    folders = tuple(f"{one}/" for one in NOTEBOOK_FOLDERS)
    return [
        file
        for file in files
        if file.endswith(".ipynb") and file.startswith(folders) and (ROOT / file).is_file()
    ]


def belonging(file: str) -> set[str]:
    """The tests that belong to a file, as files and folders that are there."""

    def found(name: str) -> set[str]:
        rows = [tests.split() for pattern, tests in BELONGS if fnmatch(name, pattern)]
        names = {"file": glob.escape(file), "stem": glob.escape(Path(file).stem)}
        patterns = [one.format(**names) for tests in rows for one in tests]
        paths = (path for pattern in patterns for path in ROOT.glob(pattern))
        return {path.relative_to(ROOT).as_posix() for path in paths}

    return found(file) or found(f"otherwise {file}")


def without_nested(tests: Iterable[str]) -> list[str]:
    """The tests without those that lie in a folder which is there as a whole."""
    tests = set(tests)
    return sorted(one for one in tests if str(Path(one).parent) not in tests)


def size(files: Iterable[str]) -> list[str]:
    """The option that leaves out large tests, unless tools or their tests have changed."""
    return [] if any(file.startswith(TESTED_WHOLE) for file in files) else ["--small"]


def main(arguments: list[str]) -> int:
    """Check what has changed; 0 when all is well, 1 when not, 2 when git knows no such base."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--base", metavar="REV", help="a branch or commit: all that came since")
    asked = parser.parse_args(arguments)
    try:
        files = changed(asked.base)
    except NoSuchRevision as error:
        print(f"check: {error}", file=sys.stderr)
        return 2
    books = notebooks(files)
    tests = without_nested(one for file in files for one in belonging(file))
    print(
        f"{len(files)} files have changed: {len(books)} notebooks; tests: {', '.join(tests) or 0}"
    )
    python = [sys.executable, "-m"]
    steps = [[*python, "ruff", "check", "."], [*python, "ruff", "format", "--check", "."]]
    if books:
        steps.append([*python, "tools.gates", *books])
    if books or tests:
        steps.append([*python, "pytest", *PYTEST, *size(files), *books, *tests])
    # 5 is pytest's word for no tests: those that belong here are only in `make test-all`.
    return int(
        any(subprocess.run(step, cwd=ROOT, env=HERE).returncode not in (0, 5) for step in steps)
    )


# As in the Makefile, with less to read.
PYTEST = (
    "-q --nbval --nbval-current-env --nbval-cell-timeout=300 "
    "--nbval-kernel-startup-timeout=300 -n 2 --dist loadscope"
).split()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
