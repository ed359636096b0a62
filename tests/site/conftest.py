"""A local server for the built site, and a browser that reaches nothing else."""

import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tools.browsing import serve
from tools.repository import site_address

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "_ext")]  # the helpers beside this file; `lean_pages`


@pytest.fixture(scope="session")
def address(site) -> str:
    """Where the site is served, with a slash at the end: below the folder it is published in."""
    with serve(site, urlsplit(site_address()).path) as address:
        yield address


@pytest.fixture
def small_page(tmp_path, browsing):
    """A function that serves a hand-written page and opens it: the negative controls."""
    before = len(browsing.contexts)
    with serve(tmp_path) as address:

        def open_page(body: str, **options):
            html = f'<!doctype html><html lang="en"><head><title>t</title></head>{body}</html>'
            (tmp_path / "page.html").write_text(html, encoding="utf-8")
            return browsing.open(address, "page.html", **options)

        yield open_page
        browsing.close_pages(before)


@pytest.fixture
def visit(address, browsing):
    """A function that opens a page of the site: `visit("book/index.html", width=390)`."""
    before = len(browsing.contexts)
    yield lambda name, **options: browsing.open(address, name, **options)
    browsing.close_pages(before)


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
        for line in sorted(set(lines)):
            terminalreporter.write_line(line)
