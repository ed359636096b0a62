"""Jupyter Book in a process of its own, as `make book` calls it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml


def build(source: Path, folder: Path, executed: Sequence[Path] = ()) -> subprocess.CompletedProcess:
    """Build the book in `source`; its HTML goes to `folder/_build/html`.

    Every notebook is run, but for those whose `executed` form is given: their pages show what that
    run showed, if no cell has changed since.
    """
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(source), "--path-output", str(folder), "-n", "-W", "--keep-going"]
    environment = {**os.environ, "AUTOGRAD_LENS_LIVE": "0"}
    with tempfile.TemporaryDirectory() as own:
        if executed:
            command += ["--config", str(config_with_cache(source, Path(own), executed))]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=1800
        )


def config_with_cache(source: Path, own: Path, executed: Sequence[Path]) -> Path:
    """A configuration like that of `source`, with a cache that holds the `executed` notebooks."""
    from jupyter_cache import get_cache

    cache = get_cache(own / "cache")
    for path in executed:
        cache.cache_notebook_file(path, check_validity=True)
    config = yaml.safe_load((source / "_config.yml").read_text("utf-8"))
    config["execute"] |= {"execute_notebooks": "cache", "cache": str(own / "cache")}
    # Jupyter Book looks for these beside the configuration.
    extensions = config["sphinx"]["local_extensions"]
    config["sphinx"]["local_extensions"] = {k: str(source / v) for k, v in extensions.items()}
    (own / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return own / "_config.yml"
