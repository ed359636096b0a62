"""Colours and their meaning: the same role has the same colour everywhere, and never stands alone.

A drawing uses the light colours below and nothing else. In a page they are replaced by CSS
variables, so one SVG follows the reader's theme; in a file they stay, so it looks right anywhere.
"""

from __future__ import annotations

import re

COLOURS: dict[str, tuple[str, str]] = {
    # role: (light, dark); light colours are unique, they are what identifies the role in an SVG
    "paper": ("#fefefe", "#12161c"),
    "ink": ("#1c2430", "#e8edf4"),
    "muted": ("#56606e", "#a3afbe"),
    "line": ("#8a94a3", "#6c7888"),
    "panel": ("#f6f7f9", "#1a2028"),
    "forward": ("#1f6fd1", "#79b4ff"),
    "forward-fill": ("#e6f0fc", "#16283f"),
    "gradient": ("#c23a22", "#ff8a73"),
    "gradient-fill": ("#fff3f0", "#3a1f1a"),
    "saved": ("#9a6300", "#ffc14d"),
    "saved-fill": ("#ffe3a8", "#4a3710"),
    "parameter": ("#6b3fc4", "#b99bff"),
    "parameter-fill": ("#f3eefc", "#261d3d"),
    "done": ("#0b7a6f", "#54d1c1"),
    "done-fill": ("#d9f2ee", "#10332f"),
    "state": ("#4f6b12", "#b9d36c"),
    "state-fill": ("#edf3d8", "#28310f"),
    "error": ("#b3123f", "#ff7da0"),
    "error-fill": ("#fde4ec", "#401322"),
    # Lines of a chart: no colour of a role. Light and dark ones alternate, for readers who see
    # few colours.
    "series-1": ("#154a6c", "#3f8fe8"),
    "series-2": ("#d56d11", "#d98a45"),
    "series-3": ("#239464", "#35d890"),
    "series-4": ("#e040aa", "#f05aa8"),
    "series-5": ("#5b5212", "#f6f4b4"),
    "series-6": ("#6a1fe0", "#cdb8f5"),
}

FONT = "Helvetica"
"""Font for measuring text in a drawing; a page uses the first of ``figure.css``'s list it has."""


def light(role: str) -> str:
    """The colour of ``role`` to draw with."""
    return COLOURS[role][0]


_ROLE_OF = {colours[0]: role for role, colours in COLOURS.items()}
_PAINT = re.compile(r'(fill|stroke)="([^"]*)"')


def follow_theme(svg: str) -> str:
    """Replace the colours of an SVG by variables that follow the page's theme.

    Raises:
        ValueError: the SVG uses a colour that has no role.
    """

    def paint(match: re.Match[str]) -> str:
        attribute, colour = match.groups()
        if colour in ("none", "transparent"):
            return f'{attribute}="none"'
        role = _ROLE_OF.get(colour)
        if role is None:
            raise ValueError(f"{attribute} {colour!r} has no role in autograd_lens.view.theme")
        return f'{attribute}="var(--lens-{role})"'

    return _PAINT.sub(paint, svg)


def variables() -> str:
    """CSS that defines the colours for a page in either theme.

    Dark is what the page says (Sphinx, JupyterLab, Colab, VS Code), or else what the system says.
    """

    def block(which: int) -> str:
        return "".join(f"--lens-{role}:{pair[which]};" for role, pair in COLOURS.items())

    said = (
        'html[data-theme="dark"] .lens',
        'body[data-jp-theme-light="false"] .lens',
        'html[theme="dark"] .lens',
        "body.vscode-dark .lens",
    )
    unsaid = (
        "html:not([data-theme]):not([theme]) "
        "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .lens"
    )
    return (
        f".lens{{{block(0)}}}{','.join(said)}{{{block(1)}}}"
        f"@media(prefers-color-scheme:dark){{{unsaid}{{{block(1)}}}}}"
    )
