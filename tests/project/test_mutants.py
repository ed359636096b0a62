"""`make mutants`: what is changed, which mutants are drawn, and what is made of the results."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tools import mutants
from tools.repository import ROOT

sys.path.insert(0, str(Path(__file__).parent))

from making import planned

NAMES = [f"autograd_lens.check.x_check__mutmut_{k}" for k in range(50)]


def test_what_is_configured_is_there():
    """A glob that finds nothing would leave a module out in silence after it is renamed."""
    settings = mutants.configured()
    modules, tests = (mutants.paths(settings[key]) for key in ("modules", "tests"))
    assert "autograd_lens/verdict.py" in modules and "tests/lens/test_check.py" in tests
    assert all(path.startswith("autograd_lens/") for path in modules)
    assert all(path.startswith("tests/lens/test_") for path in tests)


def test_globs(tmp_path):
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    assert mutants.paths(["c.py", "*.py", "!b.py"], tmp_path) == ["c.py", "a.py"]
    for glob in ("d*.py", "!d*.py"):
        with pytest.raises(mutants.CannotRun, match="finds no file"):
            mutants.paths(["a.py", glob], tmp_path)


def test_mutmut_is_told_which_modules_and_tests():
    parser = ConfigParser()
    parser.read_string(mutants.configuration(["a.py", "b.py"], ["test_a.py"]))
    told = parser["mutmut"]
    assert told["only_mutate"].split() == ["a.py", "b.py"]
    assert told["pytest_add_cli_args_test_selection"] == "test_a.py"
    assert told["process_isolation"] == "forkserver"


def test_the_copy_is_whole_and_no_configuration_hides_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "WORK", tmp_path / "work")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "old").touch()
    mutants.prepare(["autograd_lens/verdict.py"], ["tests/lens/test_check.py"])
    copied = {path.name for path in (tmp_path / "work").iterdir()}
    assert {"autograd_lens", "tests", "tools", "conftest.py", "setup.cfg"} <= copied
    assert "old" not in copied
    assert (tmp_path / "work/autograd_lens/view/player.js").is_file()
    assert "[tool.mutmut]" not in (ROOT / "pyproject.toml").read_text("utf-8")


def test_a_seed_draws_the_same_mutants():
    drawn = mutants.sample(NAMES, 10, 3)
    assert drawn == mutants.sample(reversed(NAMES), 10, 3) and len(set(drawn)) == 10
    assert drawn != mutants.sample(NAMES, 10, 4)
    assert sorted(mutants.sample(NAMES, 100, 3)) == sorted(NAMES)


@pytest.fixture
def mutmut(monkeypatch, tmp_path):
    """Stands for mutmut: `mutmut(statuses)` says what became of the mutants."""
    became = {}
    stats = tmp_path / "mutants" / "mutmut-stats.json"
    stats.parent.mkdir()
    stats.touch()

    def run(command, *names):
        printed = {
            "run": "spinner\rlast words\n",
            "results": "".join(f"    {name}: {status}\n" for name, status in became.items()),
            "show": f"the change of {names[0]}" if names else "",
        }[command]
        return subprocess.CompletedProcess([], int("broken" in became), printed)

    monkeypatch.setattr(mutants, "WORK", tmp_path)
    monkeypatch.setattr(mutants, "prepare", lambda *_: None)
    monkeypatch.setattr(mutants, "mutmut", run)
    return became


@pytest.mark.parametrize(
    ("missed", "status", "rc"),
    [(0, "survived", 0), (5, "survived", 0), (6, "survived", 1), (6, "no tests", 1),
     (6, "timeout", 0)],
)  # fmt: skip
def test_nine_of_ten_have_to_be_noticed(mutmut, capsys, missed, status, rc):
    mutmut |= dict.fromkeys(NAMES, "killed") | dict.fromkeys(NAMES[:missed], status)
    assert mutants.main([]) == rc
    out = capsys.readouterr().out
    assert [f"the change of {name}\n" in out for name in NAMES] == [
        name in NAMES[:missed] for name in NAMES
    ]
    share = 100 if status == "timeout" else 100 - 2 * missed
    assert out.endswith(f"{share}% of 50 mutants were noticed\n")


def test_what_was_not_judged_is_no_verdict(mutmut, capsys):
    mutmut |= dict.fromkeys(NAMES, "killed") | {NAMES[0]: "not checked"}
    assert mutants.main([]) == 2
    said = capsys.readouterr().err
    assert "1 mutants are not judged" in said and said.endswith("last words\n")


def test_tests_that_fail_without_a_mutant_are_no_verdict(mutmut, capsys):
    mutmut |= dict.fromkeys(NAMES, "not checked")
    (mutants.WORK / "mutants" / "mutmut-stats.json").unlink()
    assert mutants.main([]) == 2
    assert "their tests fail without them" in capsys.readouterr().err


def test_make_hands_on_what_it_is_given():
    assert "--sample='200' --seed='0'" in planned("mutants", "STAMP=/")
    given = planned("mutants", "STAMP=/", "SAMPLE=5", "SEED=7", "MODULES=autograd_lens/walk.py")
    assert "tools.mutants --sample='5' --seed='7' autograd_lens/walk.py" in given


@pytest.mark.large("what is made of mutmut's answers is tested without it")
def test_mutmut_itself_finds_what_a_test_misses(monkeypatch, tmp_path, capsys):
    """Two functions, of which a test looks at one."""
    pytest.importorskip("mutmut")
    folder = tmp_path / "autograd_lens"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "two.py").write_text(
        "def seen(a):\n    return a + 1\n\n\ndef unseen(a):\n    return a + 1\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_two.py").write_text(
        "from autograd_lens import two\n\n\n"
        "def test_both():\n    assert two.seen(1) == 2\n    two.unseen(1)\n"
    )
    settings = mutants.configuration(["autograd_lens/two.py"], ["tests/test_two.py"])
    (tmp_path / "setup.cfg").write_text(settings.replace("--small", "-q"))
    (tmp_path / "preloaded.txt").write_text("")
    monkeypatch.setattr(mutants, "WORK", tmp_path)
    monkeypatch.setattr(mutants, "prepare", lambda *_: None)
    assert mutants.main(["--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "x_unseen__mutmut_1: survived" in out and "x_seen" not in out
    assert "2 killed, 2 survived" in out
