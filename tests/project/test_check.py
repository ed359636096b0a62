"""`make check`: it finds what has changed, and the tests that belong to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import check
from tools.repository import ROOT

sys.path.insert(0, str(Path(__file__).parent))

from making import planned

in_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout of git's")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A small repository with two commits; a function that runs git in it."""

    def git(*words):
        name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        command = ["git", *name, *words]
        subprocess.run(command, cwd=tmp_path, env=check.HERE, check=True, capture_output=True)

    git("init", "-b", "main")
    for message, file in (("one", "a.py"), ("two", "b.py")):
        (tmp_path / file).write_text("x = 1\n")
        git("add", ".")
        git("commit", "-m", message)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    return git


def test_where_all_is_committed_the_last_commit_counts(repository):
    assert check.changed(None) == ["b.py"]
    assert check.changed("HEAD") == []


def test_what_is_not_committed_counts(repository, tmp_path):
    (tmp_path / "a.py").write_text("x = 2\n")
    (tmp_path / "new.py").write_text("x = 3\n")
    (tmp_path / "b.py").unlink()
    assert check.changed(None) == ["a.py", "b.py", "new.py"], "also what is gone"
    repository("add", ".")
    assert check.changed(None) == ["a.py", "b.py", "new.py"]


def test_any_name_of_a_file_counts(repository, tmp_path):
    names = ["a b.py", "q\"'$x.py", "tests/lens/test_[x].py", "Übung.ipynb"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert check.changed(None) == names
    assert check.belonging(names[2]) == {names[2]}
    repository("add", ".")
    repository("commit", "-m", "three")
    assert check.changed(None) == names


def test_since_a_base_is_since_the_branch_has_left_it(repository, tmp_path):
    repository("checkout", "-b", "branch", "HEAD~1")
    (tmp_path / "c.py").write_text("")
    repository("add", ".")
    repository("commit", "-m", "three")
    assert check.changed("main") == ["c.py"]


def test_the_first_commit_has_none_before_it(repository):
    repository("checkout", "HEAD~1")
    assert check.changed(None) == ["a.py"]


@pytest.mark.parametrize("base", ["nowhere", "--output=x", "HEAD; touch x", ""])
def test_a_base_is_never_an_option_or_a_command(repository, base, tmp_path):
    assert check.main([f"--base={base}"]) == 2
    assert not (tmp_path / "x").exists()


def test_make_hands_a_base_on_as_it_is():
    assert 'BASE"' in (said := planned("check", "BASE=x'; touch y")) and "touch" not in said


def test_a_variable_of_a_hook_names_no_other_repository(repository, monkeypatch, tmp_path):
    run = "from tools import check; print(*check.git('rev-parse', '--show-toplevel'))"
    environment = os.environ | {"GIT_DIR": str(tmp_path / ".git")}
    command = [sys.executable, "-c", run]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == str(ROOT)


def test_a_base_that_git_does_not_know(repository, capsys):
    assert check.main(["--base", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_fault_of_style_is_said(repository, tmp_path, capfd):
    (tmp_path / "c.py").write_text("import os\n")
    assert check.main([]) == 1
    assert "F401" in capfd.readouterr().out
    (tmp_path / "c.py").write_text("x = 1\n")
    assert check.main([]) == 0


@pytest.mark.large("`make check` has it where it has itself changed")
def test_a_test_that_fails_is_said(repository, tmp_path, capfd):
    (tmp_path / "tests" / "lens").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    file = tmp_path / "tests" / "lens" / "test_x.py"
    for result, status in (("True", 0), ("False", 1)):
        file.write_text(f"def test_one():\n    assert {result}\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(check, "TESTED_WHOLE", ("tests/",))  # --small is of our conftest
            assert check.main([]) == status
        assert f"1 {'failed' if status else 'passed'}" in capfd.readouterr().out


def test_where_tools_have_changed_their_large_tests_run_too():
    assert check.size(["autograd_lens/charts.py", "tests/lens/cases.py"]) == ["--small"]
    assert check.size(["autograd_lens/charts.py", "tools/look/album.py"]) == []
    assert check.size(["tests/site/checks.py"]) == []


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("tests/lens/test_chart.py", {"tests/lens/test_chart.py"}),
        ("tests/lens/cases.py", {"tests/lens"}),
        ("autograd_lens/charts.py", {"tests/lens/test_chart.py"}),
        ("autograd_lens/graphs/order.py", {"tests/lens"}),
        ("autograd_lens/view/player.js", {"tests/lens"}),
        ("tools/check.py", {"tests/project/test_check.py"}),
        ("tools/publish.py", {"tests/project/test_workflows.py"}),
        ("tools/__init__.py", {"tests/project"}),
        ("CHANGELOG.md", set()),
    ],
)
def test_what_belongs_to_a_file(file, tests):
    assert (ROOT / file).is_file()
    found = check.belonging(file)
    assert tests <= found and (tests or not found)
    for folder in ("tests/lens", "tests/project"):
        assert folder in tests or folder not in found


@in_git
def test_every_row_gives_a_test_for_some_file():
    files = check.git("ls-files")
    for row in check.BELONGS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(check, "BELONGS", [row])
            assert any(check.belonging(file) for file in files), row


@in_git
def test_all_code_has_tests_that_belong_to_it():
    """But for benchmarks, which are run by hand."""
    code = [
        file
        for file in check.git("ls-files")
        if file.endswith((".py", ".js", ".css")) and not file.startswith(("benchmarks", "_static"))
    ]
    assert [file for file in code if not check.belonging(file)] == []


def test_tests_in_a_folder_that_runs_as_a_whole_are_not_named_twice():
    assert check.without_nested({"tests/lens", "tests/lens/test_a.py", "tests/site/test_b.py"}) == [
        "tests/lens",
        "tests/site/test_b.py",
    ]
