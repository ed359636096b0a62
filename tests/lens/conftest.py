"""Makes the helpers beside this file importable, and every test start from the same numbers."""

import gc
import sys
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

import autograd_lens  # noqa: F401  (before torch: it quiets the profiler)

sys.path.insert(0, str(Path(__file__).parent))

# The same examples each time, and none of Hypothesis' own limits of time: machines are busy.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        # PyTorch's own words on prototypes and on create_graph; not what is tested here.
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.fixture
def one_thread():
    """Small tensors gain nothing from several threads, and a kernel may allocate for each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    """A collection takes half a second with all that is there before a file's first test.

    Tests ask for many collections, and none of them is about what is older than its file.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def opened(browsing, tmp_path):
    """A function that opens a view as a page."""
    from tools.browsing import serve  # here, since the lens alone is tested without Playwright

    before = len(browsing.contexts)
    with serve(tmp_path) as address:

        def open_page(view, **options):
            view.save(tmp_path / "view.html")
            page, journal = browsing.open(address, "view.html", **options)
            assert not journal.problems
            return page

        yield open_page
        browsing.close_pages(before)
