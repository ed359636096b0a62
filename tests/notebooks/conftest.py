"""A notebook that every gate accepts, for tests to spoil in one place."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.notebooks import normalise
from tools.repository import setup_cell

OPENING = """\
# A good notebook

At the end you can read `x.grad` and say why it holds 4. ([Source](https://example.org/2.0))"""

PROSE = """\
## 1. What a leaf keeps

**Predict.** What is the derivative of $x^2$ at 2, and where does it go?

<details><summary>Answer</summary>

It goes to `Tensor.grad`, which is `tensor(4.)` after `backward()`; see chapter 7, PyTorch 2.13.

</details>"""

FIGURE = """\
view = lens.graph(y)
assert view.nodes[0].name == y.grad_fn.name()
view"""


def code(source, *outputs, **metadata):
    """A code cell with outputs; its execution count is filled in by `good`."""
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def shown(kind, text):
    """An output with one text, as a kernel sends it."""
    return new_output(kind, data={"text/plain": text})


@pytest.fixture
def good():
    """An executed notebook in the form in which notebooks are committed."""
    nb = new_notebook(
        cells=[
            new_markdown_cell(OPENING),
            code(setup_cell()),
            new_markdown_cell(PROSE),
            code(
                "x = torch.tensor(2., requires_grad=True)\ny = x**2\ny.backward()\nx.grad",
                shown("execute_result", "tensor(4.)"),
            ),
            code(FIGURE, shown("display_data", "PowBackward0 -> AccumulateGrad")),
            code('print("x", x.shape)', new_output("stream", name="stdout", text="x ()\n")),
            new_markdown_cell("## Twice\n\nA second `backward()` raises a `RuntimeError`."),
            code(
                "y.backward()",
                new_output("error", ename="RuntimeError", evalue="spent", traceback=[]),
                tags=["raises-exception"],
            ),
            code(
                "assert x.grad == 4",
                tags=["hide-cell"],
                jupyter={"source_hidden": True, "outputs_hidden": True},
                cellView="form",
            ),
        ]
    )
    count = 0
    for cell in nb.cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count
    normalise(nb)
    nbformat.validate(nb)
    return nb
