"""The atlas as a table: HTML that is readable as it is, and sorts and filters with a script.

One row has few elements, since there are hundreds: everything about an op stands folded behind what
it saves, as text. The scripts are guarded listeners on the document: one sorts, as in every table
of the lens, and one filters. They read the cells and need no ids, no data beside the table, no
kernel and no network.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

from ..view.html import sorter, style
from ..view.html_table import breakable
from .common import common_first
from .observe import KINDS
from .rows import Atlas, Row, details

COLUMNS = ("op", "backward", "saves", "bytes saved / out", "notes")
NOTES = (
    "view",
    "in place",
    "not twice",
    "constant gradient",
    "no forward mode",
    "backward raises",
    "hides what it saves",
)


def table_html(atlas: Atlas) -> str:
    """Return the atlas as one element."""
    rows = common_first(atlas.recorded())
    heads = "".join(
        f'<th scope="col"{" data-falls" if "bytes" in name else ""}>'
        f'<button type="button">{name}</button></th>'
        for name in COLUMNS
    )
    body = "\n".join(_row(atlas, row) for row in rows)
    title = f"Atlas: what {len(rows)} ops save, torch {atlas.torch}"
    kinds = [kind for kind in KINDS if any(kind in row.seen.kinds for row in rows)]
    return (
        f'<div class="lens lens-sheet" role="group" aria-label="{escape(title)}">'
        f"<style>{style()}{_asset('table.css')}</style>"
        f'<div class="lens-head"><b>{escape(title)}</b></div>'
        '<div class="lens-controls">'
        '<label>find <input type="search" class="lens-find" autocomplete="off" '
        'placeholder="e.g. relu"></label>'
        f"{_chips('saves', ('nothing', *kinds))}{_chips('notes', NOTES)}"
        f'<output aria-live="polite">{len(rows)} of {len(rows)}</output></div>'
        '<div class="lens-rows" tabindex="0" role="region" aria-label="rows of the atlas">'
        f'<table class="lens-sorts"><thead><tr>{heads}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
        f"<script>{sorter()}{_asset('table.js')}</script></div>"
    )


def _chips(name: str, words: tuple[str, ...]) -> str:
    """A button for each word: those that are pressed are asked for, all of them at once."""
    inner = "".join(
        f'<button type="button" aria-pressed="false">{escape(word)}</button>' for word in words
    )
    return (
        f'<div class="lens-chips" role="group" aria-label="{name}"><span>{name}</span>{inner}</div>'
    )


def _row(atlas: Atlas, row: Row) -> str:
    names = list(dict.fromkeys(node.rpartition("::")[2] for node, _ in row.seen.nodes))
    node = names[0] + (f" and {len(row.seen.nodes) - 1} more" if len(row.seen.nodes) > 1 else "")
    text = "\n".join(details(atlas, row))
    return (
        f"<tr><th scope=row>{breakable(row.op)}<td>{breakable(node)}"
        f"<td><details><summary>{row.kinds}</summary>{escape(text, quote=False)}</details>"
        f'<td data-key="{row.saved_bytes / max(row.seen.output_bytes, 1):.6g}">'
        f"{row.saved_bytes:,} / {row.seen.output_bytes:,}<td>{', '.join(notes(row))}"
    )


def notes(row: Row) -> list[str]:
    """In what an op differs from most: new memory, twice differentiable, forward mode, visible."""
    seen = row.seen
    found = (
        "view" in seen.view,
        seen.view == "input",
        seen.backward and seen.double is False,
        seen.double is None,
        not seen.forward,
        not seen.backward,
        "hidden" in seen.kinds,
    )
    return [note for note, holds in zip(NOTES, found, strict=True) if holds]


@cache
def _asset(name: str) -> str:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/|\n\s*", "", text, flags=re.S)
