"""The stored outputs are what others see too: on other processors, and with Colab's packages.

Not here: another PyTorch (`make canary`), and a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.canary.environments import pins
from tools.canary.report import Report
from tools.canary.rerun import Kernel, execute, rerun
from tools.repository import ROOT, notebook_paths

HERE = Path(sys.executable)
NOTEBOOKS = pytest.mark.parametrize("path", notebook_paths(), ids=lambda path: path.name)


def compare(path: Path, kernel: Kernel, probe: str) -> str:
    """Run a notebook, fail with a table where it differs; what the probe printed."""
    run = rerun(nbformat.read(path, as_version=4), path.parent, path.name, kernel, probe=probe)
    report = Report(f"{path.name}, {kernel.variables or 'with what Colab has'}", [run])
    assert report.good, report.text()
    assert run.cells > 0
    return run.probe


# Processors. PyTorch chooses its kernels by what the processor can do, and sums come out
# differently in the last digits; the variable makes it take others than it would. Figures give
# their text only: their pictures show the same numbers, take long, and nobody compares them.

NO_PICTURES = "--MimeBundleFormatter.enabled=False"
CAPABILITY = "torch.backends.cpu.get_cpu_capability()"
LAST_DIGITS = """\
import torch
x = torch.linspace(-3, 3, 1000)
print([function(x).sum().item() for function in (torch.exp, torch.tanh, torch.sigmoid, torch.sin)])
print([x.softmax(0).square().sum().item(), (x.view(10, 100) @ x.view(100, 10)).sum().item()])"""


def processor(capability: str) -> Kernel:
    """A kernel whose PyTorch uses no more than this; skipped, by name, where it can't."""
    if capability != "default":
        free = {key: value for key, value in os.environ.items() if key != "ATEN_CPU_CAPABILITY"}
        command = [sys.executable, "-c", f"import torch; print({CAPABILITY})"]
        done = subprocess.run(command, env=free, capture_output=True, text=True, check=True)
        if done.stdout.strip() not in ("AVX2", "AVX512"):
            pytest.skip(f"this processor has no AVX2: PyTorch says {done.stdout.strip()}")
    return Kernel(HERE, (), {"ATEN_CPU_CAPABILITY": capability}, (NO_PICTURES,))


@pytest.mark.large("nbval compares each notebook on this processor; prose asks for four digits")
class TestProcessors:
    @NOTEBOOKS
    @pytest.mark.parametrize("capability", ["default", "avx2"])
    def test_same_outputs(self, path, capability):
        printed = compare(path, processor(capability), f"print({CAPABILITY})")
        assert printed == capability.upper(), "PyTorch did not take it"

    def test_figures_give_their_text_only(self, tmp_path):
        source = "import autograd_lens as lens, torch\nx = torch.ones(1, requires_grad=True)"
        nb = new_notebook(cells=[new_code_cell(f"{source}\nlens.graph(x.log())")])
        execute(nb, tmp_path, processor("default"))
        assert [set(output.data) for output in nb.cells[0].outputs] == [{"text/plain"}]
        assert not rerun(nb, tmp_path, "with pictures", Kernel(HERE)).differences

    def test_last_digits_would_be_noticed(self, tmp_path):
        """The negative control: what is printed to its last digit differs between the two."""
        nb = new_notebook(cells=[new_code_cell(LAST_DIGITS), new_code_cell("print('the same')")])
        execute(nb, tmp_path, processor("default"))
        run = rerun(nb, tmp_path, "last digits", processor("avx2"))
        assert [one.cell for one in run.differences] == [1]
        assert not rerun(nb, tmp_path, "last digits", processor("default")).differences


# Colab. Its packages lie in a folder of their own and come before the book's; torch, and what
# both have, is the book's.

MODULES = {
    "graphviz": "graphviz",
    "ipykernel": "ipykernel",
    "ipython": "IPython",
    "ipywidgets": "ipywidgets",
    "jupyter-client": "jupyter_client",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "traitlets": "traitlets",
}
VERSIONS = f"""\
import importlib, json
from importlib import metadata
def version(name, module):
    return [metadata.version(name), getattr(importlib.import_module(module), "__version__", None)]
print(json.dumps({{name: version(name, module) for name, module in {MODULES}.items()}}))"""

LIVE = """\
import autograd_lens as lens
draw = lambda size: f"{size:g} squared is {size**2:g}"
figure = lens.explore(draw, size=[1, 2, 4])
figure

# next
made = figure.widget()
made

# next
import ipywidgets
def within(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from within(child)

parts = {type(part): part for part in within(made)}
picture = parts[ipywidgets.HTML]
seen = [picture.value]
slider = parts.get(ipywidgets.IntSlider) or parts[ipywidgets.SelectionSlider]
slider.value = 1  # a position
seen.append(picture.value)
box = parts.get(ipywidgets.FloatText) or parts[ipywidgets.IntText]
box.set_state({"value": 3})  # what a message from the page does
seen.append(picture.value)
print([[draw(size) in html for html in seen] for size in (1, 2, 3)])

# next
import torch
x = torch.ones(2, requires_grad=True)
lens.record_backward((x * x).sum())

# next
from matplotlib import pyplot
_ = pyplot.plot([0, 1], [0, 1])
pyplot.show()""".split("\n\n# next\n")
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def colab():
    """A kernel with Colab's packages, which `make env` installs beside the book's."""
    folder = Path(sys.prefix, "colab")
    if not folder.is_dir():
        reason = f"{folder} is missing: `make env` could not install colab.txt there"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; a skip would hide that in CI", pytrace=False)
        pytest.skip(reason)
    return Kernel(HERE, folders=(folder,))


def in_use(printed: str) -> dict[str, str]:
    """The versions that a kernel reports, if its modules and their metadata agree."""
    versions = json.loads(printed)
    for name, (package, module) in versions.items():
        assert module in (package, None), f"{name} is {module}, its metadata say {package}"
    return {name: package for name, (package, _) in versions.items()}


def wanted() -> dict[str, str]:
    """The versions of colab.txt."""
    return {
        name: str(pin.specifier).removeprefix("==")
        for name, pin in pins(ROOT / "colab.txt").items()
        if name in MODULES
    }


@pytest.mark.large("nbval compares each notebook with the packages of the book")
class TestColab:
    @NOTEBOOKS
    def test_same_outputs(self, path, colab):
        assert in_use(compare(path, colab, VERSIONS)) == wanted()

    def test_the_books_own_versions_would_be_noticed(self, tmp_path):
        """The negative control: without the folder the versions are others."""
        nb = new_notebook(cells=[])
        found = in_use(rerun(nb, tmp_path, "versions", Kernel(HERE), probe=VERSIONS).probe)
        older = {"ipykernel", "ipython", "ipywidgets", "matplotlib", "numpy"}
        assert older <= {name for name, version in wanted().items() if found[name] != version}

    @pytest.mark.needs("dot")
    def test_figures_and_widgets(self, tmp_path, colab):
        nb = new_notebook(cells=[new_code_cell(source) for source in LIVE])
        kernel = Kernel(HERE, colab.folders, {"AUTOGRAD_LENS_LIVE": "1"})
        assert execute(nb, tmp_path, kernel) == {}
        errors = [output for cell in nb.cells for output in cell.outputs if "ename" in output]
        assert errors == []
        free, made, moved, film, plot = (cell.outputs for cell in nb.cells)
        assert set(free[0].data) == {"text/plain", "text/html", WIDGET}
        assert WIDGET in made[0].data
        each = [[row == column for column in range(3)] for row in range(3)]
        assert moved[0].text == f"{each}\n", "every move shows its own frame"
        assert "<svg" in film[0].data["text/html"]
        assert film[0].data["text/plain"]
        assert "image/png" in plot[0].data
