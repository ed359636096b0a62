"""What nbval compares, how much it compared, and what each notebook showed while it did.

nbval runs every notebook once and compares its text. With `--executed FOLDER`, what the run showed
is kept there, pictures too: `make test` builds the book from that, so no notebook runs twice.
"""

from __future__ import annotations

import copy
import os
import shutil
import time
from pathlib import Path

import pytest

# Pictures are not stored with a notebook; its text, which is, is compared strictly.
PICTURES = (
    "text/html",
    "image/png",
    "image/svg+xml",
    "application/vnd.jupyter.widget-view+json",
)
COMPARED = "notebook cell compared"
PATIENCE = 1800  # seconds for all notebooks to run
CELLS = pytest.StashKey[dict[Path, list[pytest.Item]]]()


def pytest_addoption(parser):
    """`--executed FOLDER`, for `make test`."""
    parser.getgroup("notebooks").addoption(
        "--executed", metavar="FOLDER", help="keep there what the compared notebooks have shown"
    )


def pytest_configure(config):
    """No widgets in kernels, which inherit this: they would add messages, and the text is the same.

    What an earlier run has left in the folder is removed once, before any worker begins.
    """
    os.environ["AUTOGRAD_LENS_LIVE"] = "0"
    if folder(config) and not hasattr(config, "workerinput"):
        shutil.rmtree(folder(config), ignore_errors=True)


def folder(config) -> Path | None:
    """Where executed notebooks are kept, if they are."""
    given = config.getoption("executed")
    return config.rootpath / given if given else None


def pytest_collectstart(collector):
    """Leave pictures out of nbval's comparison."""
    if hasattr(collector, "skip_compare"):  # a notebook of nbval's
        collector.skip_compare = (*collector.skip_compare, *PICTURES)


def pytest_itemcollected(item):
    """Give kernels time: nbval gives up when one says nothing for five seconds after a cell."""
    if is_cell(item):
        item.output_timeout = 120


def pytest_collection_finish(session):
    """Note which cells of which notebook this run has, in order."""
    cells = session.stash[CELLS] = {}
    for item in filter(is_cell, session.items):
        cells.setdefault(item.path, []).append(item)


def is_cell(item) -> bool:
    """Whether a test is a cell of a notebook."""
    return hasattr(item, "cell_num")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Note how many outputs a cell has; after the last cell keep what the notebook showed."""
    report = yield
    if not is_cell(item):
        return report
    if report.when == "call" and not report.skipped:
        if item.options["check"] and item.cell.execution_count is not None:
            # A report travels from pytest-xdist's workers with its properties.
            report.user_properties.append((COMPARED, len(item.cell.outputs)))
    cells = item.session.stash[CELLS][item.path]
    over = report.when == "call" or (report.when == "setup" and not report.passed)  # no kernel
    if over and item is cells[-1] and folder(item.config):
        keep(kept(item.config, item.path), cells)
    return report


def kept(config, path: Path) -> Path:
    """Where the executed form of a notebook is kept."""
    return folder(config) / path.relative_to(config.rootpath)


def keep(target: Path, cells: list) -> None:
    """Store a notebook with what it has just shown: as a whole, or not at all.

    If it did not run to its end without an unexpected error, an empty file is stored instead: the
    build then runs it, and says what is wrong.
    """
    import nbformat  # here, since the lens alone is tested without it

    nb = copy.deepcopy(cells[0].parent.nb)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    text = ""
    if len(cells) == len(code) and all(map(ran, cells)):
        for count, (cell, item) in enumerate(zip(code, cells, strict=True), start=1):
            cell.outputs, cell.execution_count = item.test_outputs, count
        text = nbformat.writes(nb)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(target)  # in one step: another worker waits for it


def ran(item) -> bool:
    """Whether a cell has run, in a kernel that lives, and raised nothing that it should not."""
    if item.test_outputs is None or not item.parent.kernel.is_alive():
        return False
    raised = any(output.output_type == "error" for output in item.test_outputs)
    return not raised or item.options["check_exception"]


def executed(session, paths: list[Path]) -> list[Path]:
    """The executed notebooks of this run, when all have run; none if the run does not have them.

    Waits for those that another worker runs. They come before everything that needs a book
    (`order`), so no two workers wait for each other.
    """
    if not folder(session.config) or not all(path in session.stash[CELLS] for path in paths):
        return []
    found = [kept(session.config, path) for path in paths]
    if hasattr(session.config, "workerinput"):
        end = time.monotonic() + PATIENCE
        while not all(path.exists() for path in found) and time.monotonic() < end:
            time.sleep(0.1)
    whole = all(path.exists() and path.stat().st_size for path in found)
    return found if whole else []


def pytest_terminal_summary(terminalreporter, config):
    """Say how much was compared."""
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
