"""The workflows of GitHub Actions, as far as they can be judged without GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from tools import publish
from tools.repository import ROOT, address, setup_cell

sys.path.insert(0, str(Path(__file__).parent))

from making import planned
from workflows import CHECKS, calls, read, steps

FOLDER = ROOT / ".github" / "workflows"
PATHS = sorted(FOLDER.glob("*.y*ml"))
NEW = "https://github.com/someone/a-fork"

GOOD = """\
name: good
on: [push]
permissions: {}
jobs:
  whole:
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          persist-credentials: false
      - run: python -m tools.set_repository "$URL"
        env:
          URL: https://github.com/${{ github.repository }}
      - run: |
          sudo bash tools/programs.sh
          make test
      - if: failure()
        uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        with:
          path: _build
"""

# For each check, what makes the good workflow bad, and a word of what is said of it.
BAD = [
    ("unpinned", "@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "@v4", "checkout@v4"),
    ("unpinned", " # v4.2.2", "", "checkout@11bd"),
    ("unpinned", "683 # v4.2.2", "68 # v4.2.2", "checkout@11bd"),
    ("unpinned", "actions/checkout@", "./.github/workflows/none.yml # ", "none.yml"),
    ("unpinned", "- uses: actions/checkout@", "- 'uses': actions/checkout@", "2 uses, and 1"),
    ("rights", "permissions: {}\n", "", "not stated"),
    ("rights", "permissions: {}", "permissions: write-all", "write-all"),
    ("rights", "    permissions:\n      contents: read\n", "", "job whole: permissions are not"),
    ("rights", "contents: read", "contents: write", "job whole may write contents"),
    ("rights", "contents: read", "id-token: write", "job whole may write id-token"),
    ("rights", "on: [push]", "on: [pull_request]", None),
    ("rights", "          persist-credentials: false\n", "          depth: 1\n", "credentials"),
    ("interpolated", '"$URL"', "https://x/${{ github.head_ref }}", "github.head_ref"),
    ("interpolated", "          make test\n", "          echo '${{ github.actor }}'\n", "actor"),
    ("dangerous_triggers", "on: [push]", "on: [push, pull_request_target]", "pull_request_target"),
    (
        "dangerous_triggers",
        "on: [push]",
        "on:\n  workflow_run:\n    workflows: [x]",
        "workflow_run",
    ),
    ("endless", "    timeout-minutes: 10\n", "", "whole"),
    ("endless", "timeout-minutes: 10", "timeout-minutes: 1000", "whole"),
    ("missing_calls", "make test", "make everything", "make everything"),
    ("missing_calls", "tools.set_repository", "tools.no_such_tool", "python -m tools.no_such_tool"),
    ("missing_calls", "tools/programs.sh", "tools/no_programs.sh", "tools/no_programs.sh"),
    ("silent_failures", "- if: failure()", "- if: success()", "whole"),
    ("silent_failures", "actions/upload-artifact@", "actions/cache@", "whole"),
]


def test_there_are_workflows():
    assert {"test.yml", "publish.yml"} <= {path.name for path in PATHS}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
@pytest.mark.parametrize("check", CHECKS)
def test_a_workflow_passes(path, check):
    assert CHECKS[check](path.read_text("utf-8")) == []


@pytest.mark.parametrize("check", CHECKS)
def test_the_good_example_passes(check):
    assert CHECKS[check](GOOD) == []


@pytest.mark.parametrize(("check", "good", "bad", "phrase"), BAD)
def test_a_bad_example_is_found(check, good, bad, phrase):
    assert GOOD.count(good) == 1
    found = CHECKS[check](GOOD.replace(good, bad))
    if phrase is None:
        assert found == [], "a pull request may read"
    else:
        assert any(phrase in line for line in found)


def test_a_job_that_writes_is_never_started_by_a_pull_request():
    flow = GOOD.replace("name: good", "name: publish").replace("  whole:", "  notebooks:")
    flow = flow.replace("contents: read", "contents: write")
    assert CHECKS["rights"](flow) == []
    assert CHECKS["rights"](flow.replace("[push]", "[push, pull_request]"))


def test_every_check_has_a_bad_example():
    assert {check for check, _, _, phrase in BAD if phrase} == set(CHECKS)


# test.yml


@pytest.fixture
def test_flow():
    return read((FOLDER / "test.yml").read_text("utf-8"))


def test_it_runs_on_what_the_project_supports(test_flow):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    first, last = re.search(r"\(3, (\d+)\) <= v <= \(3, (\d+)\)", makefile).groups()
    whole = test_flow["jobs"]["whole"]["strategy"]["matrix"]["python"]
    assert whole == [f"3.{minor}" for minor in range(int(first), int(last) + 1)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    alone = test_flow["jobs"]["lens"]["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={alone[0]}"
    assert not set(alone) & set(whole)


def test_pushes_and_pull_requests_start_it_and_the_newest_wins(test_flow):
    assert {"push", "pull_request", "workflow_call"} == set(test_flow["on"])
    assert test_flow["concurrency"]["cancel-in-progress"] is True
    assert "github.ref" in test_flow["concurrency"]["group"]


def test_the_whole_is_all_parts_of_make_test_all(test_flow):
    job = test_flow["jobs"]["whole"]
    assert "make test-all" in [step.get("run", "") for step in job["steps"]]
    assert job["env"]["PART"] == "${{ matrix.part }}"
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert sorted(job["strategy"]["matrix"]["part"]) == sorted(folders)
    text = (FOLDER / "test.yml").read_text("utf-8")
    assert calls(text)["target"] == {"env", "test-all"}


def test_the_parts_are_the_whole():
    """`make test-all` with each part in turn names all that it names without one."""

    def named(part):
        (line,) = re.findall(r"--durations=20(.*)", planned("test-all", f"PART={part}", "STAMP=/"))
        return line.split()

    assert named("") == [], "what pyproject.toml names as testpaths"
    with pytest.raises(AssertionError, match="the parts are lens notebooks site jupyter project"):
        planned("test-all", "PART=nothing")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    whole = {path for path in project["tool"]["pytest"]["ini_options"]["testpaths"]}
    parts = [
        path
        for part in sorted((ROOT / "tests").glob("[!_]*/"))
        for path in named(part.name)
        if part.name != "__pycache__"
    ]
    assert len(parts) == len(set(parts))
    there = {path for path in whole if (ROOT / path).exists()} - {"tests"}
    assert set(parts) == there | {
        f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")
    }


def test_the_lens_is_tested_with_what_its_tests_import(test_flow):
    """Without the book's environment, only what is named is there."""
    install = next(
        step["run"]
        for step in test_flow["jobs"]["lens"]["steps"]
        if "install" in step.get("run", "")
    )
    named = set(install.split())
    assert {".", "pytest", "pytest-xdist", "hypothesis"} <= named
    plugins = [*(ROOT / "tools" / "testing").glob("*.py"), ROOT / "tools" / "programs.py"]
    tests = [*(ROOT / "tests" / "lens").glob("*.py"), ROOT / "tests" / "conftest.py"]
    imported = {
        name
        for path in [*tests, *plugins, ROOT / "conftest.py", ROOT / "tools" / "repository.py"]
        for name in re.findall(r"^(?:import|from) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    ours = {path.stem for path in tests} | {"autograd_lens", "tools"}
    installed = named | {"torch", "ipywidgets", "graphviz", "matplotlib", "numpy", "yaml"}
    assert imported - ours - set(sys.stdlib_module_names) <= installed


# publish.yml


@pytest.fixture
def publish_flow():
    return read((FOLDER / "publish.yml").read_text("utf-8"))


def test_only_what_passed_the_tests_is_published(publish_flow):
    assert publish_flow["on"]["push"] == {"branches": ["main"]}
    jobs = publish_flow["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/test.yml"
    assert jobs["build"]["needs"] == "test"
    assert jobs["pages"]["needs"] == jobs["notebooks"]["needs"] == "build"
    ignored = read((FOLDER / "test.yml").read_text("utf-8"))["on"]["push"]["branches-ignore"]
    assert ignored == ["main", "published"], "main would be tested twice"


def test_the_address_is_that_of_the_repository_it_runs_in(publish_flow):
    assert publish_flow["env"]["REPOSITORY"] == "https://github.com/${{ github.repository }}"
    scripts = [step.get("run", "") for step in publish_flow["jobs"]["build"]["steps"]]
    rewrite = scripts.index('python -m tools.set_repository "$REPOSITORY"')
    assert rewrite < scripts.index("make book")
    for path in PATHS:
        assert "github.com/someone" not in path.read_text("utf-8")


@pytest.fixture
def small_tree(tmp_path):
    """The files that are published, in a folder of their own, with some that are not."""
    root = tmp_path / "tree"
    for path in [
        *publish.published_files(),
        *(Path("tools", n) for n in os.listdir(ROOT / "tools")),
    ]:
        if (ROOT / path).is_file():
            (root / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, root / path)
    for extra in ("labs/lab01_x.ipynb", "labs/solutions/lab01_x.ipynb", "labs/capstone/start.py"):
        (root / extra).parent.mkdir(parents=True, exist_ok=True)
        (root / extra).write_text(json.dumps({"cells": [], "source": setup_cell()}))
    (root / "autograd_lens" / "__pycache__").mkdir()
    (root / "autograd_lens" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (root / ".gitignore").write_text("*.ipynb\n")
    return root


def test_published_are_notebooks_and_what_they_need(small_tree, tmp_path):
    written = publish.publish(NEW, tmp_path / "out", small_tree)
    names = {path.as_posix() for path in written}
    chapters = {path.relative_to(ROOT).as_posix() for path in (ROOT / "book").glob("*.ipynb")}
    assert chapters and chapters <= names
    assert {"labs/lab01_x.ipynb", "labs/capstone/start.py"} <= names
    assert {"environment.yml", "constraints.txt", "pyproject.toml"} <= names
    assert not {name for name in names if "solutions" in name or "__pycache__" in name}
    assert all((tmp_path / "out" / path).is_file() for path in written)
    assert address(tmp_path / "out") == NEW
    assert address(small_tree) == address(), "the tree itself stays as it was"
    for path in written:
        if path.suffix == ".ipynb":
            text = (tmp_path / "out" / path).read_text("utf-8")
            assert address() not in text and f"git+{NEW}" in text


def test_what_binder_installs_is_there(tmp_path):
    """environment.yml names files of the repository; the package's metadata names more."""
    publish.publish(NEW, tmp_path / "out")
    environment = (tmp_path / "out" / "environment.yml").read_text("utf-8")
    for name in re.findall(r"- -c (\S+)", environment):
        assert (tmp_path / "out" / name).is_file()
    assert "- -e ." in environment
    project = tomllib.loads((tmp_path / "out" / "pyproject.toml").read_text("utf-8"))["project"]
    for name in [project["readme"], *project["license-files"]]:
        assert (tmp_path / "out" / name).is_file()
    for name in ("figure.css", "player.js"):
        assert (tmp_path / "out" / "autograd_lens" / "view" / name).is_file()


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        ([], "usage: "),
        (["", "x"], "usage: "),
        (["nonsense", "new"], "is not an address like"),
        ([NEW, "full"], "is not empty"),
    ],
)
def test_what_publishing_refuses(arguments, phrase, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert publish.main(arguments) == 2
    assert phrase in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_scripts_of_the_job_push_the_branch(publish_flow, small_tree, tmp_path):
    """Run what the job runs, in a clone, with a bare repository in the place of GitHub."""
    job = publish_flow["jobs"]["notebooks"]
    origin, runner = tmp_path / "origin.git", tmp_path / "runner"
    runner.mkdir()
    environment = os.environ | job["env"] | {
        "REPOSITORY": NEW,
        "RUNNER_TEMP": str(runner),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)
    environment = {k: v for k, v in environment.items() if k not in ("GIT_DIR", "GIT_WORK_TREE")}

    def run(script, cwd=small_tree):
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=cwd, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shutil.copyfile(ROOT / ".gitignore", small_tree / ".gitignore")  # Python writes caches there
    run(f"git init -q --bare {origin}")
    run(
        f"git init -q -b main . && git add -A && git commit -qm x && git remote add origin {origin}"
    )
    for _ in range(2):  # a second time, the branch is there already
        for step in steps((FOLDER / "publish.yml").read_text("utf-8")):
            if step in job["steps"] and "run" in step:
                run(step["run"])
        shutil.rmtree(runner / "published")
    assert run("git status --porcelain") == "", "the checkout stays as it was"
    names = run("git ls-tree -r --name-only published", origin).splitlines()
    assert "book/01_tape.ipynb" in names and "labs/lab01_x.ipynb" in names
    assert not any("solutions" in name for name in names)
    assert f"git+{NEW}" in run("git show published:book/01_tape.ipynb", origin)
    assert run("git rev-list --count published", origin) == "1\n"
