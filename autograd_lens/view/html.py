"""A figure as self-contained HTML: no kernel, no network, no ids, either theme.

The first frame stands in the page, so it is there without JavaScript; the others wait in
``<template>`` elements. One guarded, delegated listener (``player.js``) comes with every figure and
serves all of them, since each notebook output may be a document of its own.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from math import prod

from ..result import refuse_too_many
from .figure import Choice, Figure, Frame, ProgramMissing
from .theme import follow_theme, variables


def figure_html(figure: Figure, *, page: bool = False, form: str = "") -> str:
    """Return the figure as one ``<figure>`` element, or as a whole document.

    ``form`` is what :func:`shell` takes.

    Raises:
        ValueError: the choices make too many frames.
    """
    refuse_too_many(prod(len(choice.values) for choice in figure.choices))
    frames = figure.frames()
    groups = [[frame] for frame in frames] if figure.variants else [frames]
    parts, advice = [], ""
    for group in groups:
        pictures, advice, size = render_pictures(group)
        parts += [frame_parts(frame, svg, size) for frame, svg in zip(group, pictures, strict=True)]
    body = shell(
        figure,
        parts[0],
        controls="".join(map(_control, figure.choices)),
        texts=[frame.text for frame in frames],
        advice=advice,
        templates="".join(f"<template class=lens-frame>{p}</template>" for p in _wrapped(parts)),
        form=form,
    )
    if not page:
        return body
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(figure.title)}</title></head><body>{body}</body></html>\n"
    )


def shell(
    figure: Figure,
    first: dict[str, str],
    *,
    controls: str = "",
    texts: list[str],
    advice: str = "",
    templates: str = "",
    opened: bool = False,
    form: str = "",
) -> str:
    """The element around a frame; widgets use it too, without controls.

    The text stands in a ``<details>``, ``opened`` or not; without ``texts`` there is none. ``form``
    marks a ``"live"`` figure and one ``"kept"`` for the time when the live one is gone: of the two,
    ``figure.css`` shows one.
    """
    head = f"{figure.head}\n" if figure.head else ""
    legend = "".join(
        f'<span><i class="lens-key lens-{role}"></i>{escape(words)}</span>'
        for role, words in figure.legend.items()
    )
    pres = "".join(
        f'<pre tabindex="0"{"" if k else " class=lens-now"}>{escape(text)}</pre>'
        for k, text in enumerate(texts)
    )
    details = (
        f"<details{' open' if advice or opened else ''}><summary>as text</summary>"
        f'<div class="lens-twin">{f"<p>{escape(head.strip())}</p>" if head else ""}{pres}</div>'
        "</details>"
    )
    live = ' aria-live="polite"' if controls else ""
    sorts = "lens-sorts" in first["lens-stage"]
    return (
        f'<figure class="lens" role="figure" aria-label="{escape(figure.title)}"'
        + (f' data-form="{form}">' if form else ">")
        + f"<style>{style()}</style>"
        f'<div class="lens-head"><b>{escape(figure.title)}</b>'
        f'<span class="lens-legend">{legend}</span></div>'
        + (f'<div class="lens-controls">{controls}</div>' if controls else "")
        + f'<div class="lens-stage" tabindex="0" role="group" aria-label="picture">'
        f"{first['lens-stage']}</div>"
        f'<div class="lens-gauge">{first["lens-gauge"]}</div>'
        f'<figcaption><div class="lens-caption"{live}>{first["lens-caption"]}</div>'
        + (f'<p class="lens-advice">{escape(advice)}</p>' if advice else "")
        + (details if texts else "")
        + f"</figcaption>{templates}"
        + (f"<script>{script()}</script>" if controls or sorts else "")
        + "</figure>"
    )


def frame_parts(frame: Frame, svg: str, size: tuple[float, float]) -> dict[str, str]:
    """The parts of a frame that change, by the class of the element that holds them.

    A frame without a picture takes the room of the others' canvas, whose ``size`` this is.
    """
    meter = ""
    if frame.meter is not None:
        share = 100 * frame.meter.value / frame.meter.total if frame.meter.total else 0
        meter = (
            f'<div class="lens-meter">{escape(frame.meter.label)}'
            f'<div><i style="width:{share:.4g}%"></i></div></div>'
        )
    stage = svg
    if frame.picture is None:  # nothing to draw: the text is the picture
        stage = f'<pre class="lens-text">{escape(frame.text)}</pre>'
        if all(size):
            room = f"aspect-ratio:{size[0]:.6g}/{size[1]:.6g};{_width(size)}"
            stage = f'<div class="lens-instead">{stage}<div style="{room}"></div></div>'
    colon = ":" if frame.caption else ""
    where = f"<b>{escape(frame.where)}{colon}</b> " if frame.where else ""
    return {
        "lens-stage": stage,
        "lens-gauge": meter,
        "lens-caption": where + escape(frame.caption),
    }


def _wrapped(parts: list[dict[str, str]]) -> list[str]:
    if len(parts) == 1:
        return []
    return [
        "".join(f"<div class={name}>{inner}</div>" for name, inner in part.items())
        for part in parts
    ]


def render_pictures(
    frames: list[Frame], least: tuple[float, float] = (0.0, 0.0)
) -> tuple[list[str], str, tuple[float, float]]:
    """Draw frames on one canvas, which is at least ``least`` large.

    Returns what stands on the stage for every frame, advice if a program to draw them is missing,
    and the size of the canvas.
    """
    svgs, advice = [""] * len(frames), ""
    markups: dict[int, str] = {}
    by_class: dict[type, list[int]] = {}
    for number, frame in enumerate(frames):
        if frame.picture is not None:
            by_class.setdefault(type(frame.picture), []).append(number)
    for kind, numbers in by_class.items():
        pictures = [frames[number].picture for number in numbers]
        markup = kind.markups(pictures)
        if markup is not None:
            markups |= zip(numbers, markup, strict=True)
            continue
        try:
            drawn = kind.svgs(pictures)
        except ProgramMissing as missing:
            advice = str(missing)
            continue
        for number, svg in zip(numbers, drawn, strict=True):
            svgs[number] = svg
    size = _canvas(svgs, least)
    names = [frame.caption or frame.where for frame in frames]
    centred = [getattr(frame.picture, "centred", True) for frame in frames]
    each = zip(svgs, names, centred, strict=True)
    inlined = [svg and inline(svg, name, size, middle) for svg, name, middle in each]
    for number, markup in markups.items():
        inlined[number] = markup
    return inlined, advice, size


_BOX = re.compile(r'viewBox="(-?[\d.]+) (-?[\d.]+) ([\d.]+) ([\d.]+)"')


def inline(svg: str, name: str, size: tuple[float, float], centred: bool = True) -> str:
    """An SVG for use in a page: themed, named, on a canvas of ``size``, at the top.

    It is drawn as large as it is, and down to three quarters of that where there is less room.
    """
    left, top, width, height = map(float, _BOX.search(svg).groups())
    left -= (size[0] - width) / 2 if centred else 0
    role = "group" if 'role="button"' in svg else "img"  # an image hides the buttons in it
    opening = (
        f'<svg viewBox="{left:.6g} {top:.6g} {size[0]:.6g} {size[1]:.6g}" role="{role}" '
        f'aria-label="{escape(name or "picture")}" style="{_width(size)}"'
    )
    # Sphinx marks the word that was searched for, and would measure a title as if it were drawn.
    svg = svg.replace("<title>", '<title class="nohighlight">')
    return follow_theme(opening + svg[svg.index(">") :])


def _width(size: tuple[float, float]) -> str:
    """The style of what is drawn on a canvas of ``size``."""
    natural = size[0] * 4 / 3  # Graphviz and Matplotlib measure in points
    least = min(natural, max(250, natural * 0.75))
    return f"max-width:{natural:.0f}px;min-width:{least:.0f}px"


def _canvas(svgs: list[str], least: tuple[float, float]) -> tuple[float, float]:
    """Width and height that hold each of several SVGs: with one canvas, nothing jumps."""
    boxes = [_BOX.search(svg) for svg in svgs if svg]
    if not all(boxes):
        raise ValueError("an SVG has no viewBox")
    sizes = [least] + [(float(box[3]), float(box[4])) for box in boxes]
    return max(width for width, _ in sizes), max(height for _, height in sizes)


def _control(choice: Choice) -> str:
    name, size = escape(choice.title), len(choice.values)
    labels = escape(json.dumps(choice.labels, ensure_ascii=False))
    if choice.control == "menu":
        # No <select>: for its autofill, Chromium lays out whatever part of a page holds one.
        buttons = "".join(
            f'<button type="button" aria-pressed="{str(not k).lower()}">{escape(label)}</button>'
            for k, label in enumerate(choice.labels)
        )
        return (
            f'<span class="lens-choice lens-menu" role="group" aria-label="{name}" '
            f'data-size="{size}"><span>{name}</span>{buttons}</span>'
        )
    slider = (
        f'<input type="range" class="lens-choice" autocomplete="off" aria-label="{name}" min="0" '
        f'max="{size - 1}" value="0" data-size="{size}" data-labels="{labels}">'
    )
    shown = f"<output>{escape(choice.labels[0])}</output>"
    if choice.control == "slider":
        return f"<label>{name} {slider}{shown}</label>"
    return (
        f'<span class="lens-film"><button type="button" class="lens-prev" '
        f'aria-label="previous {name}">‹</button>{slider}{shown}'
        f'<button type="button" class="lens-next" aria-label="next {name}">›</button>'
        f'<button type="button" class="lens-play" aria-label="play">▶</button></span>'
    )


@cache
def style() -> str:
    """The CSS of every figure."""
    return variables() + _asset("figure.css") + _asset("table.css")


@cache
def script() -> str:
    """The JavaScript of every figure that answers."""
    return _asset("player.js") + sorter()


@cache
def sorter() -> str:
    """The JavaScript that sorts a table, for a page that has no figure."""
    return _asset("table.js")


def _asset(name: str) -> str:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/|\n\s*", "", text, flags=re.S)
