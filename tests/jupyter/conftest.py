"""One JupyterLab for a module of tests, and a picture of the page where a test fails."""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from lab import ROOT, Lab, serve  # noqa: E402  (found through the line above)

PICTURES = ROOT / "_build" / "jupyter"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browsing):
    """A running JupyterLab on an empty folder, with a browser."""
    folder, own = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    with serve(folder, own) as address:
        running = Lab(address, folder, browsing.browser)
        yield running
        running.close_pages()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    given = getattr(item, "funcargs", {})
    opened = given.get("chapter") or given.get("page")
    if report.when == "call" and report.failed and opened is not None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{re.sub(r'[^A-Za-z0-9]+', '-', item.name).strip('-')}.png"
        getattr(opened, "page", opened).screenshot(path=path)
        report.sections.append(("picture of the page", str(path.relative_to(ROOT))))
    return report
