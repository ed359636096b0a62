"""Gates on text cells: plain Markdown, and what they quote is what the notebook shows.

A number or a piece of inline code in prose must occur in the code or the outputs of
its own section; prose in a section without code may quote the whole notebook (an
opening, a summary). Numbers are compared by value: `2` is quoted from `2.`, `1,000`
from `1000`; a number with a sign needs that sign. `Tensor.grad` may be quoted from
`x.grad`, and `backward()` from `loss.backward(retain_graph=True)`.

Not looked at: formulas, links, HTML tags, code blocks in another language than
Python, numbers of headings, lists and ordinals, "chapter 3" and its kind, versions
("PyTorch 2.13", "Python 3.11"), years in brackets, and, in inline code, Python's
keywords, file names, `make` and `pip` commands. Write a counting number as a word.
"""

from __future__ import annotations

import keyword
import re

from nbformat import NotebookNode

from tools.gates.cells import markdown_cells, problem, texts
from tools.gates.route import MARK
from tools.gates.sections import FENCE, Section, sections
from tools.repository import setup_cell

NUMBER = re.compile(
    r"(?:(?<![\w.])|(?<=\dx))(?P<sign>[-−+]?)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d[\d_]*(?:\.\d*)?|\.\d+)"
    r"(?P<power>[eE][-+]?\d+)?(?!\d|-?D\b)"
)
# In code and outputs a number may also stand inside a name: `x2`, `float32`.
SHOWN = re.compile(r"[-+−]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")

INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)

PRIVATE = 0xE000  # the first of Unicode's 6,400 characters for private use

# What is taken out of prose before numbers are looked for, in this order.
SILENT = [
    re.compile(r"<!--.*?-->", re.DOTALL),  # comments
    re.compile(r"(?<!\\)\$\$.+?(?<!\\)\$\$", re.DOTALL),  # $$formulas$$
    re.compile(r"(?<![\\$])\$(?=\S)[^$\n]+?(?<=[^\s\\])\$(?![\d$])"),  # $formulas$
    re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL),  # environments of LaTeX
    re.compile(  # [links](there) and ![pictures](there)
        r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)"
    ),
    re.compile(r"!?\[[^\[\]]+\]\[[^\[\]]*\]|^\[[^\]]+\]:.*$", re.MULTILINE),  # [links][there]
    re.compile(r"</?[A-Za-z][^<>]*>|<https?:[^>]*>"),  # tags
    re.compile(r"https?://\S+|&#?\w+;"),  # bare links; entities
]
NOT_QUOTED = [
    re.compile(r"^[ \t>]*#{1,6}[ \t]+(?:[\d.]+[ \t])?", re.MULTILINE),  # "## 3. Leaves"
    re.compile(r"^[ \t>]*(?:\*\*)?\d+[.)](?=[\s*])", re.MULTILINE),  # "1. first", "**1.** first"
    re.compile(r"\b\d+(?:st|nd|rd|th)\b"),
    re.compile(
        r"\b(?:chapter|part|section|exercise|lab|question|appendix)s?\s+"
        r"\d[\d.]*(?:\s*(?:,|to|and|or|–|-)\s*\d[\d.]*)*",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:PyTorch|torch|Python|CUDA|IPython|NumPy|C\+\+)\s*(?:≥|>=|<|<=|==)?\s*"
        r"\d[\d.]*(?:\s*(?:,|to|and|or|–|-)\s*\d[\d.]*)*",
        re.IGNORECASE,
    ),
    re.compile(r"\((?:[^()]*\D)?(?:19|20)\d\d[a-z]?\)"),
]
FREE_CODE = re.compile(
    r"[\w./-]+\.(?:py|cpp|h|cu|yaml|yml|toml|ipynb|md|svg|html|png)|(?:make|pip|python -m) .+"
)
MYST = re.compile(
    r"^[ \t>]*(?:`{3,}|~{3,}|:{3,})[ \t]*\{|\{[a-zA-Z][\w:+.-]*\}`|^\([\w-]+\)=[ \t]*$",
    re.MULTILINE,
)


def no_myst(nb: NotebookNode) -> list[str]:
    """No MyST directive, role or label: GitHub and Colab print them as they are."""
    return [
        problem(position, cell, f"uses MyST ({match[0].strip()!r})", "Write plain Markdown")
        for position, cell in markdown_cells(nb)
        if (match := MYST.search(cell.source))
    ]


def quotes_occur(nb: NotebookNode) -> list[str]:
    """Numbers and inline code in prose occur in the code or outputs of their own section."""
    parts = sections(nb)
    everything = "\n".join(_shown(part) for part in parts)
    found = []
    for part in parts:
        shown = _shown(part)
        where = f"section {part.title!r}" if shown else "the notebook"
        evidence = f"{shown or everything}\n{setup_cell()}"
        for position, text in part.text:
            for quote in unfounded(text, evidence):
                found.append(
                    problem(
                        position,
                        nb.cells[position - 1],
                        f"quotes {quote}, which no code or output of {where} shows",
                        "Show it, correct it, or put it in words",
                    )
                )
    return found


def _shown(part: Section) -> str:
    """All code and all outputs of a section, but the setup cell, which shows nothing."""
    setup = setup_cell()
    return "\n".join(
        text
        for _, cell in part.code
        if cell.source != setup
        for text in [cell.source, *texts(cell)]
    )


def unfounded(text: str, evidence: str) -> list[str]:
    """The numbers and the inline code in `text` that do not occur in `evidence`."""
    spans: list[str] = []

    def set_aside(span: re.Match[str]) -> str:
        # One private character stands for it: code that looks like a link is none.
        spans.append(span[2].strip())
        return chr(PRIVATE + len(spans) - 1)

    text = MARK.sub("", text)  # the short route names other sections
    text = INLINE_CODE.sub(set_aside, FENCE.sub(_checked_fence, text))
    for pattern in SILENT:
        text = pattern.sub(" ", text)
    quoted = [span for number, span in enumerate(spans) if chr(PRIVATE + number) in text]
    for pattern in NOT_QUOTED:
        text = pattern.sub(" ", text)
    values = _values(evidence)
    missing = [f"`{span}`" for span in quoted if not code_occurs(span, evidence)]
    missing += [
        match[0].rstrip(".") for match in NUMBER.finditer(text) if _value(match) not in values
    ]
    return missing


def _checked_fence(fence: re.Match[str]) -> str:
    """A quoted block as inline code, line by line; a block in another language is not looked at."""
    if fence[3].strip() not in ("", "text", "python", "pycon"):
        return ""
    lines = [line.strip() for line in fence[4].split("\n") if line.strip()]
    return "\n".join(f"````` {line} `````" for line in lines)


def _value(match: re.Match[str]) -> tuple[str, float]:
    """A number in prose as sign and value; a minus is kept, a plus is not."""
    sign = "-" if match["sign"] in ("-", "−") else ""
    digits = match["digits"].replace(",", "").replace("_", "")
    return sign, float(digits + (match["power"] or ""))


def _values(evidence: str) -> set[tuple[str, float]]:
    """The numbers that are shown. One that is shown with a minus may be quoted without it."""
    values: set[tuple[str, float]] = set()
    joined = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", evidence)
    for shown in {*SHOWN.findall(evidence), *SHOWN.findall(joined)}:
        size = float(shown.lstrip("+-−").replace("_", ""))
        values.add(("", size))
        if shown[0] in "-−":
            values.add(("-", size))
    return values


def code_occurs(span: str, evidence: str) -> bool:
    """Whether inline code occurs in `evidence`, whatever its spaces and quotation marks."""
    if keyword.iskeyword(span) or FREE_CODE.fullmatch(span):
        return True
    # `Tensor.grad` stands for `.grad` of any tensor, `backward()` for any call of it.
    forms = {span, re.sub(r"^(?:torch\.)?Tensor(?=\.)", "", span)}
    forms |= {form.removesuffix("()") + "(" for form in forms if form.endswith("()")}
    return any(_stands_in(form, evidence) for form in forms)


def _stands_in(form: str, evidence: str) -> bool:
    """Whether `form` occurs as a whole, not as a part of a longer word."""
    tokens = re.findall(r"\w+|\.{3}|[^\w\s]", form.replace("'", '"'))
    pattern = r"\s*".join(
        r"[\s\S]{0,200}?" if token in ("...", "…") else re.escape(token) for token in tokens
    )
    before = r"(?<!\w)" if form[:1].isalnum() or form[:1] == "_" else ""
    after = r"(?!\w)" if form[-1:].isalnum() or form[-1:] == "_" else ""
    return re.search(before + pattern + after, evidence.replace("'", '"')) is not None
