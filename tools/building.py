"""Jupyter Book in a process of its own, as `make book` calls it."""

import os
import subprocess
import sys
from pathlib import Path


def build(source: Path, folder: Path) -> subprocess.CompletedProcess:
    """Build the book in `source`; its HTML goes to `folder/_build/html`."""
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(source), "--path-output", str(folder), "-n", "-W", "--keep-going"]
    environment = {**os.environ, "AUTOGRAD_LENS_LIVE": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
