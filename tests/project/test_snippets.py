"""The Python that README and the index page show runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.needs("dot")
@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_the_python_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks, f"{page} shows no Python"
    for block in blocks:
        known = {}
        exec(compile(block, page, "exec"), known)
        assert known["loss"].grad_fn is not None
        gradients = [weight.grad for weight in known["model"].parameters()]
        assert all(gradient is not None for gradient in gradients), "record_backward ran"
    for path in re.findall(r'\.save\("([^"]+)"', "".join(blocks)):
        assert (tmp_path / path).stat().st_size > 0
