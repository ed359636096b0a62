"""What `make` would run, whatever make, shell or hook the tests themselves run under."""

from __future__ import annotations

import os
import subprocess

from tools.repository import ROOT

# Make hands these on to what it starts, and takes its variables from the environment.
INHERITED = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PART", "BASE", "SITE", "PAGES")


def planned(target: str, *given: str) -> str:
    """The commands of a target, without running them."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in INHERITED and not name.endswith("_ARGS")
    }
    done = subprocess.run(
        ["make", "-n", target, *given], cwd=ROOT, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
