"""The two files of CONTRIBUTING's "Adding a figure", run as they are printed there."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def printed_modules(monkeypatch):
    """Install the printed files as modules of the package, and return the data module."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (autograd_lens/[\w/]+)\.py\n(.*?)```", text, flags=re.S)
    names = [path.replace("/", ".") for path, _ in blocks]
    assert names == ["autograd_lens.leaves", "autograd_lens.view.draw_leaf_sizes"]
    for name, (_, source) in zip(names, blocks, strict=True):
        module = ModuleType(name)
        module.__package__ = name.rpartition(".")[0]
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, name, "exec"), vars(module))
    return importlib.import_module(names[0])


@pytest.mark.needs("dot")
def test_two_new_files_make_a_figure_in_all_forms(printed_modules):
    w, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    sizes = printed_modules.leaf_sizes((w * b).sum(), {"w": w, "b": b})
    assert set(sizes.rows) == {("w", 6), ("b", 3)}
    assert {"w: 6 elements", "b: 3 elements", "2 leaves"} == set(str(sizes).splitlines())
    page = sizes._repr_mimebundle_()["text/html"]
    assert page.count("<template") == 2 and 'class="lens-next"' in page
    assert page.count('data-lens="node0" class="node leaf"') == 3  # first frame, and two more


def test_without_its_drawing_there_is_no_figure(printed_modules, monkeypatch):
    monkeypatch.delitem(sys.modules, "autograd_lens.view.draw_leaf_sizes")
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ModuleNotFoundError, match="draw_leaf_sizes"):
        print(printed_modules.leaf_sizes(x * 2))
