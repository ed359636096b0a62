"""How pytest treats this repository: notebooks, missing programs, and what it reports."""

from __future__ import annotations

import os
import re
import shutil

import pytest

# Pictures are not stored with a notebook; its text, which is, is compared strictly.
PICTURES = (
    "text/html",
    "image/png",
    "image/svg+xml",
    "application/vnd.jupyter.widget-view+json",
)

# What a test may need besides Python, and under which names it may be found.
PROGRAMS = {
    "dot": ("dot",),
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
}

COMPARED = "notebook cell compared"

# What the workers of pytest-xdist begin with. The first builds the book, for which others would
# have to wait; what is short comes last, so that both end together.
ORDER = (
    "tests/site/test_meta.py",
    "book/",
    "labs/",
    "tests/notebooks/",
    "tests/jupyter/",
    "tests/site/",
    "tests/project/",
    "tests/",
)
CHAPTER = re.compile(r"\[(?:.*[-/])?(\d\d_\w+|index|search|404)\b")


def pytest_configure(config):
    # Kernels inherit it: a widget would add comm messages, and the text is the same.
    os.environ.setdefault("AUTOGRAD_LENS_LIVE", "0")


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):  # a notebook of nbval's
        collector.skip_compare = (*collector.skip_compare, *PICTURES)


def unit(nodeid):
    """What goes to one worker as a whole: a file, or what is about one chapter in it."""
    file, _, test = nodeid.partition("::")
    about = CHAPTER.search(test)
    return f"{file}::{about[1]}" if about else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid)

    config.option.loadscopereorder = False  # not by how many tests a unit has
    return Units(config, log)


def pytest_collection_modifyitems(items):
    def place(item):
        return next((k for k, start in enumerate(ORDER) if item.nodeid.startswith(start)), 99)

    items.sort(key=place)


def find_program(name):
    """The path of a program in `PROGRAMS`, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS[name])), None)


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if find_program(program) is None:
                reason = f"{item.name} needs {program}, which is not installed"
                if os.environ.get("CI") == "true":
                    pytest.fail(f"{reason}; a skip would hide that in CI", pytrace=False)
                pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    cell = getattr(item, "cell", None)
    if report.when == "call" and not report.skipped and hasattr(item, "cell_num"):
        if item.options["check"] and cell.execution_count is not None:
            # A report travels from pytest-xdist's workers with its properties.
            report.user_properties.append((COMPARED, len(cell.outputs)))
    return report


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("nbval", False):
        return
    compared = {
        report.nodeid: outputs
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, outputs in getattr(report, "user_properties", [])
        if name == COMPARED
    }
    notebooks = {nodeid.split("::")[0] for nodeid in compared}
    terminalreporter.write_line(
        f"notebooks: {len(compared)} cells compared in {len(notebooks)} notebooks, "
        f"{sum(compared.values())} stored outputs"
    )
