"""`make atlas-diff`: what it finds, how it exits, and what it says when it can't run."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from autograd_lens import atlas
from tools.atlas.__main__ import CannotRun, find, main
from tools.atlas.compare import changes, table

STORED = atlas.load()


def small() -> atlas.Atlas:
    """A few rows of the stored atlas."""
    names = ("add", "argmax", "exp", "mul", "softmax")
    ops = {name: STORED[name] for name in names}
    nodes = {node for row in ops.values() if row.seen for node, _ in row.seen.nodes}
    formulas = {node: STORED.formulas[node] for node in sorted(nodes)}
    return atlas.Atlas("1.0.0", formulas, ops)


def other(ops=None, formulas=None, gone=()) -> atlas.Atlas:
    """The same, changed."""
    base = small()
    kept = {name: row for name, row in (base.ops | (ops or {})).items() if name not in gone}
    return atlas.Atlas("2.0.0", base.formulas | (formulas or {}), kept)


def seen(name: str, **values) -> atlas.Row:
    row = STORED[name]
    return replace(row, seen=replace(row.seen, **values))


def brief(found) -> list[tuple[str, str]]:
    return [(change.name, change.what) for change in found]


def test_the_same_is_the_same():
    assert changes(small(), other()) == []
    assert "nothing changed" in table(small(), other(), [])


def test_ops_that_came_and_went():
    new = other(ops={"zz": STORED["mul"]}, gone=("exp",))
    found = changes(small(), new)
    assert brief(found) == [("exp", "op gone"), ("zz", "op added")]
    assert found[0].old == "ExpBackward0: output" and found[1].new == "MulBackward0: input"


def test_a_saved_field_that_changed():
    node, saved = STORED["mul"].seen.nodes[0]
    other_place = saved | {"self": "intermediate float64 (5, 1)"}
    lost = {"other": saved["other"]}
    moved = changes(small(), other(ops={"mul": seen("mul", nodes=((node, other_place),))}))
    assert brief(moved) == [("mul", "MulBackward0.self")]
    assert (moved[0].old, moved[0].new) == (saved["self"], other_place["self"])
    (gone,) = changes(small(), other(ops={"mul": seen("mul", nodes=((node, lost),))}))
    assert (gone.what, gone.new) == ("MulBackward0.self", "—")


def test_nodes_graphs_and_abilities():
    nodes = (("TimesBackward0", {}),)
    new = other(
        ops={
            "mul": seen("mul", nodes=nodes, kinds=()),
            "argmax": replace(STORED["exp"], op="argmax"),
            "exp": seen("exp", forward=False, double=None),
            "softmax": seen("softmax", bytes={"output": 8}),
        }
    )
    assert brief(changes(small(), new)) == [
        ("argmax", "graph"),
        ("exp", "double"),
        ("exp", "forward mode"),
        ("mul", "nodes"),
        ("mul", "saves"),
        ("softmax", "bytes"),
    ]


def test_a_formula_that_changed():
    formulas = {"ExpBackward0": {"self": "grad * result.exp()"}, "NewBackward0": {"self": "grad"}}
    (found,) = changes(small(), other(formulas=formulas))
    assert (found.name, found.what) == ("ExpBackward0", "formula self")
    assert found.new == "grad * result.exp()"


class TestCommand:
    @pytest.fixture
    def files(self, tmp_path):
        """Two files that differ in one op."""
        paths = tmp_path / "old.json", tmp_path / "new.json"
        for path, one in zip(paths, (small(), other(gone=("exp",))), strict=True):
            path.write_text(one.to_json(), encoding="utf-8")
        return [str(path) for path in paths]

    def test_same(self, files, capsys):
        assert main(["diff", files[0], files[0]]) == 0
        assert "nothing changed" in capsys.readouterr().out

    def test_different(self, files, capsys):
        assert main(["diff", *files]) == 1
        out = capsys.readouterr().out
        assert "torch 1.0.0 → torch 2.0.0: 5 → 4 ops, 4 → 3 with a graph" in out
        assert "exp  op gone" in out and "1 changes: 1 op gone" in out

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("", "make atlas-diff OLD=2.11.0 NEW=2.14.1"),
            ("none.json", "no such file: none.json"),
            ("no/python", "no such file: no/python"),
            ("two", "is no version"),
            ("1.13.0", "needs torch"),
        ],
    )
    def test_what_can_not_be_found(self, files, name, says, capsys):
        assert main(["diff", files[0], name]) == 2
        assert says in capsys.readouterr().err

    def test_a_bad_file(self, files, tmp_path, capsys):
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps({"torch": "3"}), encoding="utf-8")
        assert main(["diff", files[0], str(bad)]) == 2
        assert "holds no atlas" in capsys.readouterr().err

    @pytest.mark.skipif(os.name == "nt", reason="needs a shell")
    def test_a_python_that_makes_none(self, tmp_path):
        broken = tmp_path / "python"
        broken.write_text("#!/bin/sh\necho 'no torch here' >&2\nexit 3\n")
        broken.chmod(0o755)
        with pytest.raises(CannotRun, match="made no atlas: no torch here"):
            find(str(broken), None, [])

    @pytest.mark.skipif(os.name == "nt", reason="needs a shell")
    def test_a_python_is_asked(self, tmp_path, files):
        """The file that it writes is what is compared."""
        helper = tmp_path / "python"
        helper.write_text(f'#!/bin/sh\nfor last; do :; done\ncp "{files[1]}" "$last"\n')
        helper.chmod(0o755)
        assert set(find(str(helper), None, []).ops) == {"add", "argmax", "mul", "softmax"}

    def test_writing_where_nothing_can_be_written(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(atlas, "run", small)
        assert main(["write", str(tmp_path / "no" / "atlas.json")]) == 2
        assert "No such file" in capsys.readouterr().err
        assert main(["write", str(tmp_path / "atlas.json")]) == 0
        assert atlas.load(tmp_path / "atlas.json") == small()


def test_the_stored_file_is_the_one_that_is_written():
    from tools.atlas.__main__ import STORED as PATH

    assert PATH.read_text("utf-8") == STORED.to_json()
