"""What docstrings and documents name is there: a renamed module leaves no name behind."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import pytest
import torch

import autograd_lens as lens

sys.path.insert(0, str(Path(__file__).parent))  # for the helper beside this file

from naming import Named, exists, names_in, path_exists, paths_in

from tools.repository import ROOT

PACKAGES = ("autograd_lens", "tools", "_ext")
SOURCES = sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))


def module_of(path) -> types.ModuleType:
    """The module of a source file; an extension is imported as Sphinx does."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


@pytest.mark.parametrize("package", PACKAGES)
def test_names_in_docstrings_and_comments_exist(package):
    sources = [path for path in SOURCES if path.is_relative_to(ROOT / package)]
    assert len(sources) > 5
    wrong = []
    for path in sources:
        named = names_in(path.read_text(encoding="utf-8"))
        module = module_of(path) if named else None
        wrong += [
            f"{path.relative_to(ROOT)}:{one.line} names {one.name}"
            for one in named
            if not exists(one, module)
        ]
    assert not wrong, "\n".join(wrong)


def test_many_names_are_looked_at():
    count = sum(len(names_in(path.read_text(encoding="utf-8"))) for path in SOURCES)
    assert count > 60


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "README.md"])
def test_files_that_documents_name_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    named = paths_in(text)
    assert len(named) > 1
    assert [word for word in named if not path_exists(ROOT, word)] == []


VERBS = [name for name in lens.__all__ if inspect.isfunction(getattr(lens, name))]
READ_PYTORCH = set(VERBS) - {"chart", "check", "explore"}


@pytest.mark.parametrize("name", lens.__all__)
def test_what_is_public_is_described(name):
    """Fields of data are listed by name; a verb tells arguments, errors, and what it rests on."""
    public = getattr(lens, name)
    text = inspect.getdoc(public)
    assert text and text[0].isupper()
    described = re.findall(r"^ {4}([\w, ]+):", text, re.M)
    words = {word for names in described for word in names.split(", ")}
    if dataclasses.is_dataclass(public):
        fields = {one.name for one in dataclasses.fields(public) if one.name[0] != "_"}
        undescribed = {one for one in fields - words if f"``{one}``" not in text}
        assert not undescribed
    if name in VERBS:
        parameters = set(inspect.signature(public).parameters) - {"options"}
        assert parameters <= words
        assert "Raises:" in text
        assert ("Rests on" in text) == (name in READ_PYTORCH)


def test_sources_of_pytorch_that_docstrings_name_exist():
    """Those that an installation has: headers and Python."""
    installed = Path(torch.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    named = set(re.findall(r"``((?:torch|c10)/[\w/]+\.(?:h|py))``", text))
    assert len(named) >= 5
    roots = (installed.parent, installed / "include")
    assert [one for one in named if not any((root / one).exists() for root in roots)] == []


MODULE = types.ModuleType("planted")
exec("class Kept:\n    size: int\n    def length(self): ...\nclass Other: ...", MODULE.__dict__)


@pytest.mark.parametrize(
    "text",
    [
        "See :mod:`autograd_lens.graphs.order`.",
        "See :func:`~autograd_lens.graphs.order.engine_order`.",
        "See :func:`its order <autograd_lens.graphs.order.engine_order>`.",
        "The steps of autograd_lens.graphs.order.",
        "What ``lens.graph`` reads.",
        "Makes a :class:`Kept`, of :attr:`Kept.size` elements.",
        "Calls :meth:`Kept.length` of :class:`torch.Tensor`.",
    ],
)
def test_a_name_that_exists_is_found(text):
    found = names_in(f'"""{text}"""\n')
    assert found and all(exists(one, MODULE) for one in found)


@pytest.mark.parametrize(
    "text",
    [
        "See :mod:`autograd_lens.graph.order`.",
        "See :func:`~autograd_lens.graphs.order.engine`.",
        "See :func:`its order <autograd_lens.graphs.engine_order>`.",
        "The steps of autograd_lens.walk.",
        "What ``lens.graphs_of`` reads.",
        "Makes a :class:`Keeps`.",
        "Has :attr:`Kept.sizes`.",
        "Calls :meth:`length`, which another class has.",
        "Of a field of a field: :attr:`Kept.size.bits`.",
    ],
)
@pytest.mark.parametrize(
    "place", ['"""{}"""\n', "# {}\n", 'def f():\n    """{}"""\n', 'A = 1\n"""{}"""\n']
)
def test_a_planted_name_is_noticed(text, place):
    (one,) = names_in(place.format(text))
    assert not exists(one, MODULE)


def test_a_name_is_looked_up_in_its_class():
    inside = 'class Kept:\n    """Has :meth:`length`."""\n    # and :attr:`size`\n    x = 1\n'
    assert all(exists(one, MODULE) for one in names_in(inside))
    assert [one.owner for one in names_in(inside)] == ["Kept", "Kept"]
    outside = names_in(inside.replace("Kept", "Other"))
    assert [exists(one, MODULE) for one in outside] == [False, False]
    assert not exists(Named(1, "length", ""), MODULE)


def test_code_is_no_text():
    assert names_in('x = "autograd_lens.no_such_thing"\nimport autograd_lens.view\n') == []


def test_planted_files_are_noticed(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "there.py").touch()
    named = paths_in(
        "`tools/there.py`, `there.py`, [one](tools/gone.py), `tools/*.txt`, and\n"
        "`tools/there.py tools/lost.py`; but https://example.org/tools/x.py, `text/plain`\n"
        "```bash\npython tools/missing.py $PWD/_build/x FILE=tools/there.py\n```\n"
        "```python\n# tools/made_by_the_reader.py\n```\n"
    )
    missing = [word for word in named if not path_exists(tmp_path, word)]
    assert missing == ["tools/gone.py", "tools/*.txt", "tools/lost.py", "tools/missing.py"]
    assert len(named) == 8
