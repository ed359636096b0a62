"""What a notebook receives for a figure, and what goes into a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .figure import Figure
from .html import figure_html


def bundle(figure: Figure) -> dict[str, Any]:
    """The figure in the forms a front end may choose from: text, and HTML or a live widget.

    A live widget is offered where a kernel adds something, that is if numbers may be typed in that
    are not on the page. Otherwise HTML does all that a widget does, and still does it when the
    notebook is opened again without its kernel. ``AUTOGRAD_LENS_LIVE=0`` forbids widgets: a book
    build must not store their state.

    JupyterLab prefers a widget to the HTML beside it, even when the widget's kernel is gone and
    there is nothing to show. There the HTML is an output of its own, before the widget's.
    """
    forms = {"text/plain": figure.text()}
    free = any(choice.free for choice in figure.choices)
    if not (free and _kernel_runs() and os.environ.get("AUTOGRAD_LENS_LIVE") != "0"):
        return forms | {"text/html": figure_html(figure)}
    if os.environ.get("JPY_SESSION_NAME"):  # set by Jupyter's server: JupyterLab or Notebook
        from IPython.display import publish_display_data

        publish_display_data({"text/html": figure_html(figure, form="kept")})
    else:
        forms["text/html"] = figure_html(figure)
    from .live import widget

    forms["application/vnd.jupyter.widget-view+json"] = {
        "version_major": 2,
        "version_minor": 0,
        "model_id": widget(figure).model_id,
    }
    return forms


def _kernel_runs() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def save(figure: Figure, path: Path, choice: dict[str, Any]) -> Path:
    """Write ``figure`` to ``path``; see :meth:`autograd_lens.result.Result.save`."""
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".png", ".html", ".txt"):
        raise ValueError(f"save to .svg, .png, .html or .txt, not {path.suffix or path.name!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to save to: make it first")
    _check_choice(figure, choice)
    if suffix == ".html":
        page = figure_html(figure, page=True)
        path.write_text(page, encoding="utf-8")
        return path
    if suffix == ".txt":
        path.write_text(figure.text() + "\n", encoding="utf-8")
        return path
    picture = frame_for(figure, choice).picture
    if picture is None:
        raise ValueError("this figure has no picture; save it as .txt or .html")
    picture = picture.alone
    if suffix == ".svg":
        path.write_text(picture.svg() + "\n", encoding="utf-8")
    else:
        path.write_bytes(picture.png())
    return path


def frame_for(figure: Figure, choice: dict[str, Any]) -> Any:
    """Draw one frame: the one that the figure opens on, except where ``choice`` says otherwise."""
    return figure.draw(**(figure.opening | choice))


def _check_choice(figure: Figure, choice: dict[str, Any]) -> None:
    """Raise ValueError if ``choice`` names something that the figure does not offer."""
    offered = {axis.name: axis for axis in figure.choices}
    for name, value in choice.items():
        if name not in offered:
            raise ValueError(f"no choice {name!r}; this figure has {', '.join(offered) or 'none'}")
        if value not in offered[name].values and not offered[name].free:
            values = [repr(one) for one in offered[name].values]
            if len(values) > 8:
                values[3:-1] = ["…"]
            raise ValueError(f"{name} can be {', '.join(values)}; not {value!r}")
