"""Two sizes of one set of tests: `make test` runs the small one, `make test-all` all of them.

A test belongs to the large size alone if it is slow and what it holds seldom breaks alone. Its mark
says what would still show the fault in the small size:

    @pytest.mark.large("each page is opened once, at one width and in one theme")

A test whose mark has no such sentence fails. Without `--small`, pytest runs what it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest


def sized(values: Iterable, small: Callable[..., bool], still: str) -> list:
    """Parameters for `pytest.mark.parametrize`, of which only the `small` ones are in both sizes.

    Args:
        values: one value each, or a tuple where a test has several parameters.
        small: takes such a value and says whether the small size has it.
        still: the sentence of the mark that the others get.
    """

    def one(value):
        several = value if isinstance(value, tuple) else (value,)
        return pytest.param(*several, marks=[] if small(value) else pytest.mark.large(still))

    values = list(values)
    if not any(map(small, values)):
        raise ValueError(f"none of {values} is in the small size")
    return [one(value) for value in values]


def pytest_addoption(parser):
    """`--small` for `make test`, `--list-large` for whoever wants to know what that leaves out."""
    group = parser.getgroup("sizes of the test run")
    group.addoption("--small", action="store_true", help="leave out what is marked as large")
    group.addoption(
        "--list-large", action="store_true", help="list what is marked as large, and run nothing"
    )


def pytest_configure(config):
    """A list is made by one process."""
    if config.getoption("list_large") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--list-large lists, and runs nothing: leave out -n")


def pytest_collection_modifyitems(config, items):
    """Leave out the marked tests where `--small` is given."""
    large = [item for item in items if sentences(item)]
    if config.getoption("list_large"):
        kept, left_out = large, [item for item in items if not sentences(item)]
    elif config.getoption("small"):
        kept, left_out = [item for item in items if not sentences(item)], large
    else:
        return
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def sentences(item) -> list[str]:
    """What still shows the fault in the small size; none for a test that both sizes have."""
    marks = (mark.args for mark in item.iter_markers("large"))
    return [args[0] for args in marks if well_made(args)]


def well_made(args: tuple) -> bool:
    """Whether a mark was given one sentence."""
    return len(args) == 1 and isinstance(args[0], str) and bool(args[0].strip())


def pytest_runtest_setup(item):
    """Fail where a mark says nothing."""
    for mark in item.iter_markers("large"):
        if not well_made(mark.args) or mark.kwargs:
            pytest.fail(
                "`large` takes one sentence: what would still show the fault in `make test`?",
                pytrace=False,
            )


def pytest_runtestloop(session):
    """With `--list-large`: print each test with its sentence, and run nothing."""
    if not session.config.getoption("list_large"):
        return None
    found: dict[tuple[str, str], int] = {}
    for item in session.items:
        key = (item.nodeid.partition("[")[0], sentences(item)[0])
        found[key] = found.get(key, 0) + 1
    for (name, sentence), count in found.items():
        print(f"{name} ({count})\n    {sentence}")
    print(f"{sum(found.values())} tests are only in `make test-all`.")
    return True
