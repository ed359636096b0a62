"""The wheel: it holds the package, whole and alone, and works from where pip puts it.

It is built in a copy, since setuptools takes whatever an older build left behind. Nothing is
fetched: the backend and what the package needs are those of this environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tools.notebooks import kernel_manager
from tools.repository import ROOT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
LARGE = pytest.mark.large("the wheel's list of files, and the same package from the checkout")
ADVICE = "No picture: the Graphviz program dot is not installed"

EXAMPLE = """\
import autograd_lens as lens
import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
view = lens.graph(model(torch.ones(2, 3)), model)
"""
FACTS = """\
import json

from autograd_lens import atlas

facts = {
    "file": lens.__file__,
    "page": view._repr_mimebundle_()["text/html"],
    "atlas": len(atlas.load().ops),
}
try:
    facts["svg"] = view.save("x.svg").read_text("utf-8")
except RuntimeError as error:
    facts["refused"] = str(error)
with open("facts.json", "w", encoding="utf-8") as file:
    json.dump(facts, file)
"""
TEXT = "graph of 9 nodes (4 leaves), 8 edges, depth 5, saves 72 B\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "autograd_lens",
        source / "autograd_lens",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(made), "."]
    done = subprocess.run([*PIP, *build], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = made.iterdir()
    return path


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A folder into which pip has installed the wheel."""
    folder = tmp_path_factory.mktemp("site")
    install = ["install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    done = subprocess.run([*PIP, *install], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.needs("dot")), False],
    ids=["with dot", "without dot"],
)
def dot(request):
    return request.param


@pytest.fixture
def environment(site, dot, tmp_path):
    """Variables under which the checkout is not found, and `dot` only where it is wanted."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JPY", "IPYTHON"))}
    path = os.environ["PATH"] if dot else str(tmp_path)
    return kept | {"PYTHONPATH": str(site), "PATH": path, "IPYTHONDIR": str(tmp_path / "ipython")}


def test_it_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    package = {name for name in names if ".dist-info/" not in name}
    here = (path for path in (ROOT / "autograd_lens").rglob("*") if "__pycache__" not in path.parts)
    assert package == {path.relative_to(ROOT).as_posix() for path in here if path.is_file()}
    assert {name.rpartition(".")[2] for name in package} == {"py", "css", "js", "json"}
    about = {name.partition(".dist-info/")[2] for name in names - package}
    assert about == {"METADATA", "RECORD", "WHEEL", "top_level.txt", "licenses/LICENSE"}


def ran(command, folder, environment):
    """What a program printed; nothing of it is an error."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


def judge(folder, site, dot):
    """Hold what `FACTS` wrote to where the package lies and whether there is `dot`."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert facts["file"] == str(site / "autograd_lens" / "__init__.py")
    assert facts["atlas"] > 500
    assert facts["page"].startswith("<figure") and "ReluBackward0" in facts["page"]
    if dot:
        assert "<svg" in facts["page"] and ADVICE not in facts["page"]
        assert facts["svg"].startswith("<svg") and (folder / "x.svg").is_file()
    else:
        assert "<svg" not in facts["page"] and ADVICE in facts["page"]
        assert facts["refused"].startswith(ADVICE) and "\n" not in facts["refused"]
        assert not (folder / "x.svg").exists()


@LARGE
def test_from_a_script(site, dot, environment, tmp_path):
    (tmp_path / "script.py").write_text(f"{EXAMPLE}print(view)\n{FACTS}")
    printed = ran([sys.executable, "script.py"], tmp_path, environment)
    assert printed.startswith(TEXT)
    judge(tmp_path, site, dot)


@LARGE
def test_from_ipython(site, dot, environment, tmp_path):
    code = f"{EXAMPLE}{FACTS}view\n"
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code]
    assert TEXT in ran(command, tmp_path, environment)
    judge(tmp_path, site, dot)


@LARGE
def test_from_a_notebook(site, dot, environment, tmp_path):
    cells = [EXAMPLE, "view", FACTS]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    with tempfile.TemporaryDirectory() as own:  # a short name, as sockets want
        NotebookClient(
            notebook,
            km=kernel_manager(Path(sys.executable), Path(own)),
            timeout=300,
            resources={"metadata": {"path": str(tmp_path)}},
        ).execute(env=environment, cleanup_kc=True)
    nbformat.validate(notebook)
    made, shown, told = (cell.outputs for cell in notebook.cells)
    assert made == told == []
    (view,) = shown
    assert view.data["text/plain"].startswith(TEXT)
    assert view.data["text/html"].startswith("<figure")
    judge(tmp_path, site, dot)
