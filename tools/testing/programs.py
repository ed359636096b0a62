"""A test may need a program that Python can't bring: `@pytest.mark.needs("dot")`."""

from __future__ import annotations

import os

import pytest

from tools.programs import find_program


def pytest_runtest_setup(item):
    """Skip a test by name where a program is missing; in CI fail, since a skip would hide that."""
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if find_program(program) is None:
                reason = f"{item.name} needs {program}, which is not installed"
                if os.environ.get("CI") == "true":
                    pytest.fail(f"{reason}; a skip would hide that in CI", pytrace=False)
                pytest.skip(reason)
