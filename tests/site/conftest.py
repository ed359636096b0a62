"""The built site, a local server for it, and a browser that reaches nothing else.

`LENS_SITE` may name a folder that holds a built site; otherwise the book is
built once, into a temporary folder, and shared by the workers of pytest-xdist.
"""

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from filelock import FileLock

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "_ext")]  # the helpers beside this file; `lean_pages`

from browsing import Browsing, serve  # noqa: E402  (found through the line above)
from building import build  # noqa: E402

from tools.repository import site_address  # noqa: E402


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the built site."""
    if given := os.environ.get("LENS_SITE"):
        assert (Path(given) / "index.html").exists(), f"LENS_SITE={given} holds no built site"
        return Path(given).resolve()
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent  # the workers of one run have it in common
    html, failed = shared / "book" / "_build" / "html", shared / "book-failed"
    with FileLock(shared / "book.lock"):
        if failed.exists():
            pytest.fail("the book does not build (another worker has reported why)")
        if not (html / "index.html").exists():
            run = build(ROOT, shared / "book")
            if run.returncode:
                failed.touch()
                said = f"{run.stdout[-6000:]}\n{run.stderr[-3000:]}"
                pytest.fail(f"the book does not build:\n{said}")
    return html


@pytest.fixture(scope="session")
def browsing():
    """A Chromium; `browsing.open(…)` gives a page with its journal."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    with Browsing(next(filter(None, map(shutil.which, names)))) as browsing:
        yield browsing


@pytest.fixture(scope="session")
def address(site) -> str:
    """Where the site is served, with a slash at the end: below the folder it is published in."""
    with serve(site, urlsplit(site_address()).path) as address:
        yield address


@pytest.fixture
def small_page(tmp_path, browsing):
    """A function that serves a hand-written page and opens it: the negative controls."""
    with serve(tmp_path) as address:

        def open_page(body: str, **options):
            html = f'<!doctype html><html lang="en"><head><title>t</title></head>{body}</html>'
            (tmp_path / "page.html").write_text(html, encoding="utf-8")
            return browsing.open(address, "page.html", **options)

        yield open_page
        browsing.close_pages()


@pytest.fixture
def visit(address, browsing):
    """A function that opens a page of the site: `visit("book/index.html", width=390)`."""
    yield lambda name, **options: browsing.open(address, name, **options)
    browsing.close_pages()


def pytest_terminal_summary(terminalreporter):
    """Print what each page weighs."""
    lines = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "page weight" and getattr(report, "when", "") == "call"
    ]
    if lines:
        terminalreporter.section("page weight (gzip)")
        for line in sorted(lines):
            terminalreporter.write_line(line)
