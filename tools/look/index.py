"""The page that leads to the sheets and lists every problem.

Knows HTML. Does not know how sheets are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tools.look.problems import KINDS, Problem, by_kind

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;"
    "max-width:70rem;padding:0 1rem}a{display:inline-block;margin:0 1rem 1rem 0;"
    "vertical-align:top}img{display:block;width:15rem;height:12rem;object-fit:cover;"
    "object-position:top left;border:1px solid}li{overflow-wrap:anywhere}"
)


def index_html(sheets: dict[str, list[Path]], problems: Sequence[Problem]) -> str:
    """The page: the problems of each kind, then the sheets of each page, given by its name."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Contact sheets</title><style>{STYLE}</style></head><body>"
        f"<h1>Contact sheets</h1>{_problems(problems)}"
        + "".join(f"<h2>{escape(name)}</h2>{_sheets(paths)}" for name, paths in sheets.items())
        + "</body></html>\n"
    )


def _problems(problems: Sequence[Problem]) -> str:
    if not problems:
        return "<p>Nothing that can be measured is wrong. Open the sheets.</p>"
    return "".join(
        f"<details><summary>{escape(KINDS[kind].title)}: {len(some)}</summary><ul>"
        + "".join(f"<li>{escape(str(problem))}</li>" for problem in some)
        + "</ul></details>"
        for kind, some in by_kind(problems).items()
    )


def _sheets(paths: list[Path]) -> str:
    return "".join(
        f'<a href="{escape(path.name)}"><img src="{escape(path.name)}" loading="lazy" alt="">'
        f"{escape(path.stem)}</a>"
        for path in paths
    )
