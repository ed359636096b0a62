"""One browser for all tests of a process: Playwright starts only once in it."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "site"))

from browsing import Browsing

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browsing():
    """A Chromium; `browsing.open(…)` gives a page with its journal."""
    with Browsing(next(filter(None, map(shutil.which, NAMES)))) as browsing:
        yield browsing
