"""Programs that Python can't bring, and under which names they may be installed."""

from __future__ import annotations

import shutil

PROGRAMS = {
    "dot": ("dot",),
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
}


def find_program(name: str) -> str | None:
    """The path of a program in `PROGRAMS`, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS[name])), None)
