"""The picture that a link to a page shows elsewhere: its title on a drawing of a small graph."""

from __future__ import annotations

import textwrap
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SIZE = (1200, 630)
PAPER, INK, MUTED = "#14181e", "#f2f4f7", "#aab3bf"
FORWARD, GRADIENT, SAVED, PARAMETER = "#6ea8fe", "#ff8a70", "#f0b849", "#b794f6"
NODES = ((905, 420, FORWARD), (1070, 470, SAVED), (1070, 300, FORWARD), (905, 190, PARAMETER))
EDGES = ((1, 0), (0, 2), (1, 2), (3, 2))


def draw(title: str, book: str, target: Path) -> None:
    """Write the card of a page as a PNG of 1200 by 630 pixels."""
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
    axes.axis("off")
    for a, b in EDGES:
        axes.annotate(
            "",
            NODES[b][:2],
            NODES[a][:2],
            arrowprops={
                "arrowstyle": "-|>",
                "color": GRADIENT,
                "lw": 4,
                "shrinkA": 36,
                "shrinkB": 30,
            },
        )
    for x, y, colour in NODES:
        axes.plot(x, y, "o", markersize=46, markerfacecolor=PAPER, markeredgecolor=colour, mew=5)
    above = book if title != book else "An executable book"
    lines = textwrap.wrap(title, 19, max_lines=4, placeholder="…")
    axes.text(80, 470, above, color=MUTED, fontsize=27, va="center", parse_math=False)
    text = "\n".join(lines)
    axes.text(80, 400, text, color=INK, fontsize=42, va="top", weight="bold", parse_math=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_png(target, metadata={"Software": None})
