"""A figure as self-contained HTML: no kernel, no network, no ids, either theme.

The frame that a figure opens on stands in the page, so it is there without JavaScript; the others
wait in ``<template>`` elements. One guarded, delegated listener (``player.js``) comes with every
figure and serves all of them, since each notebook output may be a document of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from math import prod
from textwrap import dedent
from types import MappingProxyType

from ..result import refuse_too_many
from .canvas import Canvas, Stage, box_of
from .figure import Choice, Figure, Frame, Picture, ProgramMissing
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
    drawn, parts = _in_one_layout(groups), []
    for group, (pictures, _, room) in zip(groups, drawn, strict=True):
        parts += [frame_parts(frame, svg, room) for frame, svg in zip(group, pictures, strict=True)]
    start = list(figure.grid()).index(figure.opening)
    body = shell(
        figure,
        parts[start],
        start=start,
        controls="".join(map(_control, figure.choices)),
        room=max((frame.caption for frame in frames), key=len),
        texts=[frame.text for frame in frames],
        advice=drawn[-1][1],
        templates="".join(f"<template class=lens-frame>{p}</template>" for p in _wrapped(parts)),
        form=form,
        notes={title: note for frame in frames for title, note in frame.notes.items()},
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
    start: int = 0,
    controls: str = "",
    room: str = "",
    texts: list[str],
    advice: str = "",
    templates: str = "",
    opened: bool = False,
    form: str = "",
    notes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The element around a frame; widgets use it too, without controls.

    ``first`` are the parts of frame ``start``. Where there are controls, the caption has room for
    ``room``, the longest one, so that the picture below it stays where it is. The text stands in a
    ``<details>``, ``opened`` or not; without ``texts`` there is none. ``form`` marks a ``"live"``
    figure and one ``"kept"`` for the time when the live one is gone: of the two, ``figure.css``
    shows one.
    """
    head = f"{figure.head}\n" if figure.head else ""
    legend = "".join(
        f'<span><i class="lens-key lens-{role}"></i>{escape(words)}</span>'
        for role, words in figure.legend.items()
    )
    pres = "".join(
        f'<pre tabindex="0"{" class=lens-now" if k == start else ""}>{escape(text)}</pre>'
        for k, text in enumerate(texts)
    )
    details = (
        f"<details{' open' if advice or opened else ''}><summary>as text</summary>"
        f'<div class="lens-twin">{f"<p>{escape(head.strip())}</p>" if head else ""}{pres}</div>'
        "</details>"
    )
    live = ' aria-live="polite"' if controls else ""
    longest = f' data-room="{escape(room)}"' if controls and room else ""
    sorts = "lens-sorts" in first["lens-stage"]
    return (
        f'<figure class="lens" role="figure" aria-label="{escape(figure.title)}"'
        + (f' data-form="{form}"' if form else "")
        + (" data-title=own>" if figure.own_title else ">")
        + f"<style>{style()}</style>"
        f'<figcaption><div class="lens-head"><b>{escape(figure.title)}</b>'
        f'<span class="lens-legend">{legend}</span></div>'
        + (f'<div class="lens-controls">{controls}</div>' if controls else "")
        + f'<div class="lens-said"{longest}>'
        f'<div class="lens-caption"{live}>{first["lens-caption"]}</div></div>'
        f'<div class="lens-gauge">{first["lens-gauge"]}</div>'
        + (f'<p class="lens-advice">{escape(advice)}</p>' if advice else "")
        + f'</figcaption><div class="lens-stage" tabindex="0" role="group" aria-label="picture">'
        f"{first['lens-stage']}</div>{_notes(notes)}"
        + (details if texts else "")
        + templates
        + (f"<script>{script()}</script>" if controls or notes or sorts else "")
        + "</figure>"
    )


def _notes(notes: Mapping[str, str]) -> str:
    """The line that tells of the box a reader points to; all it may say stands here once."""
    if not notes:
        return ""
    data = escape(json.dumps(notes, ensure_ascii=False))
    return (
        f'<p class="lens-note" aria-live="polite" data-notes="{data}">'
        "Tap an operation for PyTorch’s own formula.</p>"
    )


def frame_parts(frame: Frame, svg: str, room: Stage) -> dict[str, str]:
    """The parts of a frame that change, by the class of the element that holds them.

    A frame without a picture takes the ``room`` of the others' canvas.
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
        own = dedent(frame.text.removeprefix(f"{frame.where}\n"))  # the caption begins with it
        stage = f'<pre class="lens-text">{escape(own)}</pre>'
        if empty := room.room():
            stage = f'<div class="lens-instead">{stage}{empty}</div>'
    said = []
    if frame.where:
        said.append(f"<b>{escape(frame.where)}{':' if frame.caption or frame.numbers else ''}</b>")
    if frame.caption:
        said.append(escape(frame.caption))
    if frame.numbers:
        said.append(f"<span class=lens-numbers>{escape(frame.numbers)}</span>")
    return {"lens-stage": stage, "lens-gauge": meter, "lens-caption": " ".join(said)}


def _wrapped(parts: list[dict[str, str]]) -> list[str]:
    if len(parts) == 1:
        return []
    return [
        "".join(f"<div class={name}>{inner}</div>" for name, inner in part.items())
        for part in parts
    ]


def _in_one_layout(groups: list[list[Frame]]) -> list[tuple[list[str], str, Stage]]:
    """What :func:`render_pictures` returns for each group: wide layouts in all of them or in none.

    A reader who opens a box must find the picture as it was.
    """
    drawn = [render_pictures(group) for group in groups]
    if all(room.wide for *_, room in drawn):
        return drawn
    return [
        render_pictures(group, Stage(wide=None)) if done[-1].wide else done
        for group, done in zip(groups, drawn, strict=True)
    ]


def render_pictures(
    frames: list[Frame], least: Stage | None = None
) -> tuple[list[str], str, Stage]:
    """Draw frames on one canvas, which is at least ``least`` large.

    Returns what stands on the stage for every frame, advice if a program to draw them is missing,
    and the canvas. Where pictures offer a wide layout and it serves, both layouts stand there.
    """
    room = least or Stage()
    pictures = [frame.picture for frame in frames]
    markups = _marked_up(pictures)
    pictures = [None if k in markups else picture for k, picture in enumerate(pictures)]
    svgs, advice = _drawn(pictures)
    stage, narrow = room, room.narrow.around(svgs)
    offering = next((picture for picture in pictures if picture and picture.wide), None)
    if offering and room.wide:
        widely = [picture and (picture.wide or picture) for picture in pictures]
        wide_svgs, _ = _drawn(widely)
        stage = offering.stage(narrow, room.wide.around(wide_svgs))
    elif any(svgs):  # what was once shown in one layout stays so
        stage = Stage(narrow, None)
    stages = _inlined(frames, pictures, svgs, stage.narrow)
    if offering and stage.wide:
        others = _inlined(frames, widely, wide_svgs, stage.wide)
        stages = [one and stage.both(one, other) for one, other in zip(stages, others, strict=True)]
    for number, markup in markups.items():
        stages[number] = markup
    return stages, advice, stage


def _by_class(pictures: list[Picture | None]) -> dict[type[Picture], list[int]]:
    """The places of the pictures of each class, which may be drawn in one go."""
    found: dict[type[Picture], list[int]] = {}
    for number, picture in enumerate(pictures):
        if picture is not None:
            found.setdefault(type(picture), []).append(number)
    return found


def _marked_up(pictures: list[Picture | None]) -> dict[int, str]:
    """What a page shows instead of an SVG, by the place of the picture."""
    found: dict[int, str] = {}
    for kind, numbers in _by_class(pictures).items():
        markups = kind.markups([pictures[number] for number in numbers])
        if markups is not None:
            found |= zip(numbers, markups, strict=True)
    return found


def _drawn(pictures: list[Picture | None]) -> tuple[list[str], str]:
    """An SVG for each picture, and advice if a program to draw them is missing."""
    svgs, advice = [""] * len(pictures), ""
    for kind, numbers in _by_class(pictures).items():
        try:
            drawn = kind.svgs([pictures[number] for number in numbers])
        except ProgramMissing as missing:
            advice = str(missing)
            continue
        for number, svg in zip(numbers, drawn, strict=True):
            svgs[number] = svg
    return svgs, advice


def _inlined(
    frames: list[Frame],
    pictures: list[Picture | None],
    svgs: list[str],
    canvas: Canvas,
) -> list[str]:
    names = [frame.caption or frame.numbers or frame.where for frame in frames]
    centred = [getattr(picture, "centred", True) for picture in pictures]
    each = zip(svgs, names, centred, strict=True)
    return [svg and inline(svg, name, canvas, middle) for svg, name, middle in each]


def inline(svg: str, name: str, canvas: Canvas, centred: bool = True) -> str:
    """An SVG for use in a page: themed, named, at the top of its canvas.

    Where there is less room than it takes, it shrinks as far as its text can be read: see
    :meth:`Canvas.style`.
    """
    left, top, width, _ = box_of(svg)
    left -= (canvas.width - width) / 2 if centred else 0
    role = "group" if 'role="button"' in svg else "img"  # an image hides the buttons in it
    opening = (
        f'<svg viewBox="{left:.6g} {top:.6g} {canvas.width:.6g} {canvas.height:.6g}" '
        f'role="{role}" aria-label="{escape(name or "picture")}" style="{canvas.style()}"'
    )
    # Sphinx marks the word that was searched for, and would measure a title as if it were drawn.
    svg = svg.replace("<title>", '<title class="nohighlight">')
    return follow_theme(opening + svg[svg.index(">") :])


def _control(choice: Choice) -> str:
    name, size = escape(choice.title), len(choice.values)
    labels = escape(json.dumps(choice.labels, ensure_ascii=False))
    if choice.control == "menu":
        # No <select>: for its autofill, Chromium lays out whatever part of a page holds one.
        buttons = "".join(
            f'<button type="button" aria-pressed="{str(k == choice.start).lower()}">'
            f"{escape(label)}</button>"
            for k, label in enumerate(choice.labels)
        )
        return (
            f'<span class="lens-choice lens-menu" role="group" aria-label="{name}" '
            f'data-size="{size}"><span>{name}</span>{buttons}</span>'
        )
    slider = (
        f'<input type="range" class="lens-choice" autocomplete="off" aria-label="{name}" min="0" '
        f'max="{size - 1}" value="{choice.start}" data-size="{size}" data-labels="{labels}">'
    )
    shown = f"<output>{escape(choice.labels[choice.start])}</output>"
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
