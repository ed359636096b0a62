"""What counts as quoted, what as shown, and what is let alone."""

from __future__ import annotations

import pytest

from tools.gates.prose import unfounded
from tools.gates.sections import sections

EVIDENCE = """\
x = torch.tensor([2., -0.5], requires_grad=True)
loss.backward(retain_graph=True)
view = lens.graph(loss, model)
print({'a': 1000})
tensor([1.7321e+00, 12,345])
AccumulateGrad x2 float32
x.grad_
"""


@pytest.mark.parametrize(
    "text",
    [
        "It holds 2, or -0.5, or 0.5.",
        "There are 1,000 of them, or 1000; and 12,345, or 12345.",
        "About 1.7321.",
        "A 2x2 block, of 32 bits.",
        "Use `requires_grad=True` and `requires_grad = True`.",
        "`Tensor.backward()`, `torch.Tensor.backward`, `backward()`, `loss.backward(...)`",
        '`{"a": 1000}` and `AccumulateGrad`',
        "$x^3 + 7$ and $$\n\\frac{1}{9}\n$$ and \\begin{align}8\\end{align}",
        "[`engine.cpp` line 99](https://example.org/L99) and <https://example.org/77>",
        "![7 nodes](pictures/7.png) and https://example.org/8",
        "### 3.1 Leaves\n\n1. first\n2) second\n\n> 3. third",
        "The 3rd time; see chapters 3 and 4, exercise 7 and Part 9.",
        "PyTorch 2.13, torch >= 2.11, Python 3.11 to 3.13 (Author, 2017), (2019)",
        "`None`, `lambda`, `01_tape.ipynb`, `torch/csrc/autograd/engine.cpp`, `make book`",
        "<a id='7'></a><!-- 9 -->",
        "A 3D picture, a 4-D tensor, `x2`, but x3 is a name.",
        "```python\nview = lens.graph(loss, model)\n```",
        "```cpp\nint a = 77;\n```",
        "A number in words: seven.",
        "It costs $2 or so.",
        "**7.** first &rarr; &#8594;\n\n> **Predict.** Which has a `.grad_`?",
        "Two backticks: `` x = torch ``.",
    ],
)
def test_founded_or_free(text):
    assert unfounded(text, EVIDENCE) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("It holds 3.", ["3"]),
        ("It holds -2.", ["-2"]),
        ("It holds −2.", ["−2"]),
        ("It holds 0.51, not .7", ["0.51", ".7"]),
        ("12,346 of 12,345", ["12,346"]),
        ("A 3x2 block", ["3"]),
        ("A 2x3 block", ["3"]),
        ("It takes 10ms and 1e5 steps", ["10", "1e5"]),
        ("**5** and *6* and (7) and 8%", ["5", "6", "7", "8"]),
        ("| 5 | 2 |", ["5"]),
        ("## Only 9 nodes", ["9"]),
        ("1. It holds 9", ["9"]),
        ("`x.gradient`", ["`x.gradient`"]),
        ("`back`", ["`back`"]),
        ("`Accumulate`", ["`Accumulate`"]),
        ("`x[0](y)` is no link", ["`x[0](y)`"]),
        ("`<b>` is no tag, `$a$` no formula", ["`<b>`", "`$a$`"]),
        ("<details><summary>9</summary>\n\n`y.grad`\n\n</details>", ["`y.grad`", "9"]),
        ("```\ntensor([3.])\n```", ["`tensor([3.])`"]),
        ("```python\nlens.graph(loss)\n```", ["`lens.graph(loss)`"]),
        ("`1000` and `100`", ["`100`"]),
    ],
)
def test_unfounded(text, missing):
    assert unfounded(text, EVIDENCE) == missing


def test_sections_are_cut_at_headings(good):
    found = sections(good)
    assert [part.title for part in found] == ["(opening)", "1. What a leaf keeps", "Twice"]
    assert [len(part.code) for part in found] == [1, 3, 2]


def test_a_comment_in_a_code_block_is_no_heading(good):
    good.cells[2].source += "\n\n```python\n## not a heading\n```\n\n### nor this"
    assert len(sections(good)) == 3


def test_one_cell_may_hold_two_headings(good):
    good.cells[2].source += "\n\n## Another\n\ntext"
    titles = [part.title for part in sections(good)]
    assert titles == ["(opening)", "1. What a leaf keeps", "Another", "Twice"]
