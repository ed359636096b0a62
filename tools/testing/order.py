"""In which units and in which order the workers of pytest-xdist take the tests.

A unit is a file, or what is about one chapter in a file: the cells of a notebook share a kernel,
and the tests of a page share the opened page.
"""

from __future__ import annotations

import re

import pytest

# Notebooks first: the book is built from what they print. Then whatever needs no book, so that one
# worker builds it while the other has work. Short units come last, so that both end together.
ORDER = (
    "book/",
    "labs/",
    "tests/site/test_meta.py",  # builds the book
    "tests/jupyter/",
    "tests/notebooks/",
    "tests/lens/",
    "tests/site/",
    "tests/project/",
)
CHAPTER = re.compile(r"\[(?:.*[-/])?(\d\d_\w+|index|search|404)\b")


def unit(nodeid: str) -> str:
    """What goes to one worker as a whole: a file, or what is about one chapter in it."""
    file, _, test = nodeid.partition("::")
    about = CHAPTER.search(test)
    return f"{file}::{about[1]}" if about else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Schedule by `unit`, where `--dist loadscope` is asked for."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid)

    config.option.loadscopereorder = False  # not by how many tests a unit has
    return Units(config, log)


def pytest_collection_modifyitems(items):
    """Sort by `ORDER`; what it does not name comes last."""

    def place(item):
        starts = enumerate(ORDER)
        return next((k for k, start in starts if item.nodeid.startswith(start)), len(ORDER))

    items.sort(key=place)
