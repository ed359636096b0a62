"""How a text of the reader's is shown: every character so that it can be seen.

Names, notes, labels and captions may hold any character. Some have no place in a page, a file or a
terminal: NUL, other control characters, lone surrogates. They are shown as Python would write them
in source code: ``\\x00``. A backslash stays one backslash.
"""

from __future__ import annotations

import unicodedata

LINES = "\n\t"
"""What stays as it is in a text of several lines."""


def printable(text: str, but: str = "") -> str:
    """``text`` with escapes for what can't be seen, except blanks and the characters of ``but``."""
    if text.translate(dict.fromkeys(map(ord, but))).isprintable():
        return text
    return "".join(c if _seen(c) or c in but else repr(c)[1:-1] for c in text)


def _seen(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
