"""The two layouts of a graph's picture: when there are two, what they say, which one is shown."""

import re
from importlib.resources import files

import pytest
import torch
from independent import elements

import autograd_lens as lens
from autograd_lens.view import dot as dot_module
from autograd_lens.view.canvas import WIDE, WIDER, Canvas, Stage, box_of
from autograd_lens.view.dot import LOWER, DotPicture
from autograd_lens.view.html import render_pictures
from autograd_lens.view.live import widget
from tools.testing.sizes import sized

dot = pytest.mark.needs("dot")
chromium = pytest.mark.needs("chromium")


def chain(length):
    """So many operations, one after the other."""
    x = y = torch.ones(2, requires_grad=True)
    for _ in range(length):
        y = y.exp()
    return lens.graph(y, {"x": x})


def product():
    """Two leaves, one shared storage with a row."""
    x, w = (torch.ones(3, requires_grad=True) for _ in range(2))
    return lens.graph((x * w).exp().sum(), {"x": x, "w": w})


def broad():
    """One operation and many leaves: from left to right it is a tower."""
    return lens.graph(torch.stack([torch.ones(2, requires_grad=True) for _ in range(4)]))


def film():
    """A short film with gradients on its edges."""
    w = torch.ones(2, requires_grad=True)
    return lens.record_backward(w.sum(), {"w": w})


def long_film():
    """A film that is too wide from left to right."""
    w = torch.ones(2, requires_grad=True)
    return lens.record_backward(w.exp().sin().sum(), {"w": w})


def explorer(*lengths):
    """Graphs of several lengths as one figure."""
    return lens.explore(chain, length=list(lengths))


def modules():
    """A graph that fits while its modules are closed, and not when one is open."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    return lens.graph(model(torch.ones(2, 3)).sum(), model, group="module")


def page_of(view):
    return view._repr_mimebundle_()["text/html"]


def layouts(view):
    """How many SVGs of each layout a page holds; a page with one layout has no such words."""
    html = page_of(view)
    return tuple(
        len(re.findall(rf'<div class="lens-{kind}[^"]*"><svg', html)) for kind in ("narrow", "wide")
    )


@dot
@pytest.mark.parametrize(
    ("view", "each"),
    [
        (chain(1), 1),
        (chain(3), 1),
        (product(), 1),
        (film(), 3 + 1),
        (explorer(1, 2), 2 + 1),
        (broad(), 0),
        (chain(5), 0),
        (chain(9), 0),
        (long_film(), 0),
        (explorer(1, 2, 5), 0),
        (explorer(9, 1), 0),
        (modules(), 0),
    ],
)
def test_all_frames_have_two_layouts_or_none_has(view, each):
    assert layouts(view) == (each, each)
    if each:
        pictures = [frame.picture for frame in view.figure().frames()]
        narrow = Canvas().around(DotPicture.svgs(pictures))
        wide = Canvas().around(DotPicture.svgs([picture.wide for picture in pictures]))
        assert wide.height <= 0.7 * narrow.height
        assert wide.letters * WIDER / wide.width >= 11, (
            "its text is legible where it is first shown"
        )


@pytest.mark.parametrize(
    ("wide", "serves"),
    [
        (Canvas(400, 139, 10.5), True),
        (Canvas(400, 141, 10.5), False),
        (Canvas(605, 139, 10.5), True),
        (Canvas(607, 139, 10.5), False),
        (Canvas(607, 139, 12), True),
    ],
)
def test_a_wide_layout_is_lower_and_legible_or_there_is_none(wide, serves):
    assert LOWER == 0.7 and WIDER == 635
    narrow = Canvas(200, 200, 10.5)
    assert DotPicture.stage(narrow, wide) == Stage(narrow, wide if serves else None)


@dot
@pytest.mark.parametrize("make", [lambda: chain(3), product, film])
def test_both_layouts_say_the_same_and_read_in_the_same_order(make):
    view = make()
    for frame in view.figure().frames():
        down, across = frame.picture.svg(), frame.picture.wide.svg()
        assert elements(down) == elements(across)
        said = [sorted(re.findall(r">([^<>]+)</text>", svg)) for svg in (down, across)]
        assert said[0] == said[1]
        (_, _, width, height), (_, _, wide, low) = box_of(down), box_of(across)
        assert height > low and wide > width
        for svg, axis in ((down, 1), (across, 0)):
            place = places(svg, axis)
            graph = getattr(view, "graph", view)
            assert all(place[edge.source] < place[edge.target] for edge in graph.edges)


def places(svg, axis):
    """Where the first text of each node stands, from the left (0) or from the top (1)."""
    found = re.findall(
        r'data-lens="node(\d+)".*?<text[^>]*? x="(-?[\d.]+)" y="(-?[\d.]+)"', svg, flags=re.S
    )
    return {int(node): float(at[axis]) for node, *at in found}


@dot
def test_a_long_graph_is_laid_out_once(monkeypatch):
    sources = []
    real = dot_module._pipe
    monkeypatch.setattr(
        dot_module, "_pipe", lambda source, form: sources.append(source) or real(source, form)
    )
    dot_module._render.cache_clear()
    page_of(chain(8))
    assert len(sources) == 1 and "rankdir=LR" not in sources[0]
    page_of(chain(3))
    assert len(sources) == 3 and "rankdir=LR" in sources[2]


@dot
def test_a_file_goes_from_the_top_down(tmp_path):
    view = chain(3)
    view.save(tmp_path / "x.svg")
    _, _, width, height = box_of((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert height > width
    view.save(tmp_path / "x.png")
    head = (tmp_path / "x.png").read_bytes()[16:24]
    assert int.from_bytes(head[:4], "big") < int.from_bytes(head[4:], "big")
    assert "rankdir=TB" in view.to_dot()


@dot
def test_a_live_figure_changes_its_layout_once_at_most():
    room = None
    shown = []
    for length in (1, 2, 5, 1):
        (stage,), _, room = render_pictures(chain(length).figure().frames(), room)
        shown.append("lens-wide" in stage)
    assert shown == [True, True, False, False]
    live = widget(explorer(1, 5).figure())
    assert live.children[-2].value.count("<svg") == 2
    live.children[0].children[0].index = 1
    assert live.children[-2].value.count("<svg") == 1


def test_styles_and_drawings_know_one_width():
    style = files("autograd_lens.view").joinpath("figure.css").read_text(encoding="utf-8")
    table = files("autograd_lens.view").joinpath("table.css").read_text(encoding="utf-8")
    for width in WIDE, WIDER:
        assert style.count(f"@container lens-stage (min-width:{width}px)") == 1
    assert style.count("@container lens-stage") == 2
    assert f"@container(max-width:{WIDE - 1}px)" in table


WIDTHS = sized(
    [(390, "narrow"), (610, "narrow"), (700, "wide"), (860, "wide")],
    lambda case: case[0] in (390, 700),
    "a phone and a small desk are looked at",
)


@dot
@chromium
@pytest.mark.parametrize(("width", "layout"), WIDTHS)
def test_what_is_not_shown_is_no_stop_and_is_not_read(opened, width, layout):
    page = opened(product(), width=width)
    stage = page.locator(".lens-stage")
    assert stage.locator("svg:visible").count() == 1
    assert stage.locator(f".lens-{layout} svg").is_visible()
    boxes = stage.get_by_role("button")
    names = [box.locator("text").first.text_content() for box in boxes.all()]
    assert names == ["SumBackward0", "ExpBackward0", "MulBackward0"]
    stage.focus()
    page.keyboard.press("Tab")
    focused = "document.activeElement.closest('.lens-narrow, .lens-wide')?.classList[0]"
    assert page.evaluate(focused) == f"lens-{layout}"
    for _ in range(boxes.count() + 1):
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == f"lens-{layout}"
    assert page.locator(".lens-note").inner_text().startswith("MulBackward0 in PyTorch")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) is None, "a picture is one stop"


@dot
@chromium
@pytest.mark.parametrize("script", [True, False], ids=["scripts", "no scripts"])
def test_a_film_is_legible_and_does_not_scroll_from_left_to_right(opened, script):
    page = opened(film(), width=610, script=script)
    scrolls = "s => [s.scrollWidth > s.clientWidth, s.scrollHeight > s.clientHeight]"
    for _ in range(3 if script else 1):
        assert page.locator(".lens-wide svg").is_visible()
        assert page.locator(".lens-stage").evaluate(scrolls) == [False, False]
        if script:
            page.get_by_role("button", name="next").click()
