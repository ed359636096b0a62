"""Write what the branch `published` holds: notebooks that install from where they were published.

    python -m tools.publish https://github.com/OWNER/NAME FOLDER

The launch buttons of the book open this branch, in Colab or Binder. FOLDER gets the chapters and
the student versions of the labs, with the repository's address written in, and what Binder builds
its environment from. It must not exist yet, or be empty. Needs nothing beyond Python: it runs
before anything is installed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.repository import ROOT
from tools.set_repository import checked, set_repository

# What a reader opens; solutions stay where they are.
NOTEBOOKS = ("book/**/*.ipynb", "labs/*.ipynb", "labs/capstone/**/*")
# What `environment.yml` installs from, and what a package must come with.
NEEDED = (
    "environment.yml",
    "constraints.txt",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "LICENSE-text",
    "CITATION.cff",
    "autograd_lens/**/*",
)
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints"}


def published_files(root: Path = ROOT) -> list[Path]:
    """The files to publish, relative to ``root``."""
    found = {
        path.relative_to(root)
        for pattern in (*NOTEBOOKS, *NEEDED)
        for path in root.glob(pattern)
        if path.is_file()
    }
    return sorted(path for path in found if not LEFT_OUT.intersection(path.parts))


def publish(url: str, folder: Path, root: Path = ROOT) -> list[Path]:
    """Write the files into ``folder`` with ``url`` as their address; returns what was written.

    Raises:
        ValueError: ``url`` is no address of a repository.
        FileExistsError: ``folder`` holds something.
    """
    url = checked(url)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a folder that does not exist yet.")
    files = published_files(root)
    for path in files:
        (folder / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, folder / path)
    set_repository(url, folder)
    return files


def main(arguments: list[str]) -> int:
    """Publish into the given folder; 2 where that can't be done."""
    if len(arguments) != 2 or not all(arguments):
        print(
            "usage: python -m tools.publish https://github.com/OWNER/NAME FOLDER", file=sys.stderr
        )
        return 2
    try:
        files = publish(arguments[0], Path(arguments[1]))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    notebooks = sum(path.suffix == ".ipynb" for path in files)
    print(f"{len(files)} files, {notebooks} of them notebooks, in {arguments[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
