"""A maths renderer for Sphinx: KaTeX, run while the book is built.

The page gets HTML (drawn by KaTeX's style sheet and fonts) and MathML (read by
screen readers); no script runs in the reader's browser. KaTeX runs in V8
(mini_racer), so no node is needed. `katex.min.js` beside this file and the
style sheet and woff2 fonts in `_static/katex/` come from the npm package
`katex` and must be of one version: the class names belong together.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

SCRIPT = Path(__file__).with_name("katex.min.js")
STYLE = Path(__file__).parents[2] / "_static" / "katex" / "katex.min.css"


class BadFormula(ExtensionError):
    """A formula that KaTeX refuses; fails the build."""


@cache
def engine() -> MiniRacer:
    """A V8 with KaTeX loaded, checked to be of the same version as its style sheet."""
    v8 = MiniRacer()
    v8.eval(SCRIPT.read_text(encoding="utf-8"))
    check_version(v8.eval("katex.version"), STYLE.read_text(encoding="utf-8"))
    return v8


def check_version(script: str, css: str) -> None:
    """Raise unless the style sheet says it is of the script's version."""
    found = re.search(r'\.katex-version::?after\{content:"([^"]+)"\}', css)
    if not found or found[1] != script:
        raise ExtensionError(
            f"KaTeX {script} in {SCRIPT.name}, but {found[1] if found else 'no version'} in "
            f"{STYLE.name}: take script, style sheet and fonts from one version of npm's katex"
        )


@cache
def to_html(tex: str, display: bool = False) -> str:
    """KaTeX's HTML with MathML for one formula; `BadFormula` when it can't be read.

    Strict: what LaTeX would refuse (such as a Unicode letter in maths) is an
    error here and not a warning that nobody sees.
    """
    options = {"displayMode": display, "output": "htmlAndMathml", "throwOnError": True}
    options["strict"] = "error"
    try:
        return engine().call("katex.renderToString", tex, options)
    except JSEvalException as error:
        reason = re.search(r"(?:Parse)?Error: (.*)", str(error))
        raise BadFormula(reason[1] if reason else str(error)) from None


def rendered(translator, node: nodes.Element, display: bool) -> str:
    """`to_html` of a node, with the page named when the formula is bad."""
    tex = node.astext()
    try:
        return to_html(tex, display)
    except BadFormula as error:
        where = f"{translator.builder.current_docname}, line {node.line or '?'}"
        raise BadFormula(f"{where}: bad formula `{tex}`: {error}") from None


def visit_inline(translator, node: nodes.math) -> None:
    """`$…$`"""
    html = rendered(translator, node, display=False)
    translator.body.append(f'<span class="math notranslate nohighlight">{html}</span>')
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    """`$$…$$`, with its number and anchor when it has a label."""
    html = rendered(translator, node, display=True)
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(f"{html}</div>\n")
    raise nodes.SkipNode
