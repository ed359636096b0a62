"""The checks themselves: what is skipped is named, and nothing is skipped in CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tools.repository import ROOT

NEEDY = """\
import pytest

@pytest.mark.needs("dot", "chromium")
def test_picture():
    pass

def test_plain():
    pass
"""


@pytest.fixture
def run(tmp_path):
    """Run a test that needs programs where there is none."""
    (tmp_path / "test_needy.py").write_text(NEEDY)

    def run(**environment):
        command = [sys.executable, "-m", "pytest", "-p", "conftest"]
        command += [
            "-o",
            f"cache_dir={tmp_path}/cache",
            "-c",
            str(ROOT / "pyproject.toml"),
            "--rootdir",
            str(tmp_path),
            str(tmp_path),
        ]
        clean = {key: value for key, value in os.environ.items() if key != "CI"}
        clean |= {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)} | environment
        return subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True)

    return run


def test_a_missing_program_skips_by_name(run):
    done = run()
    assert done.returncode == 0
    assert "1 passed, 1 skipped" in done.stdout
    assert "test_picture needs dot, which is not installed" in done.stdout


def test_a_missing_program_fails_in_ci(run):
    done = run(CI="true")
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout
    assert "test_picture needs dot, which is not installed" in done.stdout


def test_ci_runs_all_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text("utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert lines[-1] == "make test-all"


def test_documents_name_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"help", "env", "book", "serve", "test", "outputs", "lab", "bench", "clean"} <= targets
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text("utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
        assert named
        assert named <= targets, f"{name}: {named - targets}"


def test_a_python_that_is_too_old_is_named(tmp_path):
    """`make env` says which Python it needs before it touches anything."""
    fake = tmp_path / "python"
    fake.write_text(
        f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 9, 1, 'final', 0)\n"
        "exec(sys.argv[2])\n"
    )
    fake.chmod(0o755)
    done = subprocess.run(
        ["make", "env", f"PYTHON={fake}", f"VENV={tmp_path}/venv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "is 3.9" in done.stderr
    assert not (tmp_path / "venv").exists()
