"""One browser for all tests of a process (Playwright starts only once in it); the built site."""

import os
from pathlib import Path

import pytest

from tools.programs import find_program
from tools.repository import notebook_paths
from tools.testing.notebooks import executed

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def browsing():
    """A Chromium; `browsing.open(…)` gives a page with its journal."""
    from tools.browsing import Browsing  # here, since the lens alone is tested without Playwright

    with Browsing(find_program("chromium")) as browsing:
        yield browsing


@pytest.fixture(scope="session")
def site(tmp_path_factory, request) -> Path:
    """The folder of the built site.

    The book is built once, whichever worker of pytest-xdist needs it first. `LENS_SITE` says where:
    a folder `…/_build/html`; if a site is there, it is taken as it is. `make test` builds it from
    what the notebooks have shown while they were compared; otherwise the build runs them.
    """
    from filelock import FileLock

    from tools.building import build

    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent  # the workers of one run have it in common
    html = Path(os.environ.get("LENS_SITE") or shared / "book" / "_build" / "html").resolve()
    failed = shared / "book-failed"
    with FileLock(shared / "book.lock"):
        if failed.exists():
            pytest.fail("the book does not build (another worker has reported why)")
        if not (html / "index.html").exists():
            assert html.parts[-2:] == ("_build", "html"), f"LENS_SITE={html} holds no built site"
            shown = executed(request.session, notebook_paths(ROOT, folders=("book",)))
            run = build(ROOT, html.parents[1], shown)
            if run.returncode:
                failed.touch()
                said = f"{run.stdout[-6000:]}\n{run.stderr[-3000:]}"
                pytest.fail(f"the book does not build:\n{said}")
    return html
