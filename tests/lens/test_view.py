"""Pictures hold to their data, in every form: text, SVG, page, file, widget."""

import itertools
import os
import re
import signal
import subprocess
import sys
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import torch
from independent import elements, inline_svgs

import autograd_lens as lens
from autograd_lens.view import live, theme
from autograd_lens.view.bundle import bundle
from autograd_lens.view.draw_backward import figure as film_of
from autograd_lens.view.html import render_pictures

dot = pytest.mark.needs("dot")


@pytest.fixture(autouse=True)
def no_waiting_for_ever():
    """A picture that never comes: two processes waiting for each other. Fails, not hangs."""

    def give_up(*_):
        raise TimeoutError("the picture did not come")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(90)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def example(scale=0.5, power=2):
    """The worked example, with something to choose."""
    x = torch.tensor([1.0, 0.0])
    w1 = torch.tensor([[2.0, 1.0], [-1.0, 3.0]], requires_grad=True)
    w2 = torch.tensor([0.5, 0.5], requires_grad=True)
    h = torch.relu(w1 @ x)
    return scale * (w2 @ h) ** power, {"x": x, "W1": w1, "w2": w2, "h": h}


def diamond():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = x.exp()
    b, c = (a * 3).unbind()
    return b * c + a.sin().sum(), {"x": x, "a": a}


def deep():
    """More nodes than a film shows."""
    x = torch.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(60):
        y = (y * 1.01).sin()
    return y, {"x": x}


FILMS = pytest.mark.parametrize("make", [example, diamond, deep])


def recorded(make):
    output, names = make()
    return lens.record_backward(output, names=names)


def draw(power=2, scale=0.5):
    """A power of the worked example."""
    output, names = example(scale, power)
    return lens.graph(output, names)


def explorer():
    return lens.explore(draw, power=range(1, 4), scale=[0.5, 1.0, 2.0])


FIGURES = pytest.mark.parametrize(
    "figure",
    [
        lambda: draw().figure(),
        lambda: recorded(example).figure(),
        lambda: recorded(deep).figure(),
        lambda: explorer().figure(),
    ],
    ids=["graph", "film", "folded film", "explorer"],
)


# Frames against their data


@dot
@FILMS
def test_every_frame_of_a_film_is_a_fresh_draw(make):
    recording = recorded(make)
    html = recording._repr_mimebundle_()["text/html"]
    stills = inline_svgs(html)
    # the frame after the first step stands in the page, and all of them in templates
    assert stills[0] == stills[2]
    fresh = film_of(recording)
    frames = [fresh.draw(**choice) for choice in fresh.grid()]
    assert len(frames) == len(stills) - 1
    drawn, advice, _ = render_pictures(frames)
    assert stills[1:] == drawn and advice == ""
    texts = re.findall(r"<pre[^>]*>(.*?)</pre>", html, flags=re.S)
    assert [unescape(text) for text in texts] == [frame.text for frame in frames]
    assert str(recording).endswith("\n".join(frame.text for frame in frames))


@dot
@pytest.mark.parametrize("make", [example, diamond])
def test_what_a_frame_shows_is_what_the_recording_says(make):
    recording = recorded(make)
    graph = recording.graph
    svgs = inline_svgs(recording._repr_mimebundle_()["text/html"])[1:]
    assert len(svgs) == len(recording.steps) + 1
    for k, svg in enumerate(svgs):
        drawn = elements(svg)
        ran = [step.node for step in recording.steps[:k]]
        state = {node: "done" for node in ran[:-1]} | {node: "now" for node in ran[-1:]}
        for node in graph.nodes:
            kind = "leaf" if node.leaf else "op"
            noted = {"noted"} if node.formula else set()  # tells PyTorch's formula on a tap
            assert drawn.pop(f"node{node.index}") == {kind, state.get(node.index, "wait")} | noted
        for number, edge in enumerate(graph.edges):
            assert drawn.pop(f"edge{number}") == {state.get(edge.source, "wait")}
        assert not drawn


@dot
def test_a_film_writes_each_gradient_on_its_edge():
    recording = recorded(example)
    last = inline_svgs(recording._repr_mimebundle_()["text/html"])[-1]
    words = [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", last)]
    for gradient in ("[2, 0]", "[0.5, 0.5]", "[0.5, 0]", "[[0.5, 0], [0, 0]]"):
        assert any(gradient in text for text in words), gradient
    assert any(text == ".grad [2, 0]" for text in words)


@dot
@FILMS
def test_nodes_do_not_move_in_a_film(make):
    svgs = inline_svgs(recorded(make)._repr_mimebundle_()["text/html"])
    places = set()
    for svg in svgs:
        boxes = re.findall(
            r'<g data-lens="(node\d+)"[^>]*>\s*<(path|polygon) [^>]*?(?: d| points)="([^"]*)"', svg
        )
        assert boxes
        box = re.search(r'viewBox="[^"]*"', svg)[0]
        places.add((box, tuple((name, shape) for name, _, shape in boxes)))
    assert len(places) == 1


@dot
def test_the_picture_of_a_graph_shows_nodes_and_edges():
    output, names = example()
    view = lens.graph(output, names)
    (svg,) = inline_svgs(view._repr_mimebundle_()["text/html"])
    drawn = elements(svg)
    assert set(drawn) == {
        *(f"node{k}" for k in range(len(view.nodes))),
        *(f"edge{k}" for k in range(len(view.edges))),
    }
    words = unescape(re.sub(r"<[^>]*>", " ", svg))
    for node in view.nodes:
        assert node.label in words
        for saved in node.saved:
            assert saved.empty or f"{saved.field} " in words


@dot
def test_in_a_large_picture_a_leaf_stands_in_every_node_that_uses_it():
    w = torch.ones(1, requires_grad=True)
    y = torch.ones(1)
    for _ in range(70):
        y = y * w
    view = lens.graph(y, {"w": w}, max_nodes=None)
    (svg,) = inline_svgs(view._repr_mimebundle_()["text/html"])
    drawn = elements(svg)
    operations = {f"node{node.index}" for node in view.nodes if node.kind == "op"}
    between = {f"edge{k}" for k, e in enumerate(view.edges) if view.nodes[e.target].kind == "op"}
    assert set(drawn) == operations | between
    assert svg.count("↓ w (1,)") == len(view.edges) - len(between) == 70


@dot
def test_every_frame_of_an_explorer_is_a_fresh_draw():
    shown = explorer()
    html = shown._repr_mimebundle_()["text/html"]
    fresh = [draw(power=p, scale=s) for p in range(1, 4) for s in (0.5, 1.0, 2.0)]
    svgs = inline_svgs(html)[1:]
    assert len(svgs) == len(fresh) == 9
    for svg, view in zip(svgs, fresh, strict=True):
        assert svg == inline_svgs(view._repr_mimebundle_()["text/html"])[0]
    texts = [unescape(t) for t in re.findall(r"<pre[^>]*>(.*?)</pre>", html, flags=re.S)]
    for text, view in zip(texts, fresh, strict=True):
        first, _, rest = text.partition("\n")
        assert re.fullmatch(r"power (= )?\d, scale (= )?[\d.]+", first)
        assert [line[2:] for line in rest.splitlines()] == str(view).splitlines()


def test_the_last_choice_varies_fastest():
    choices = [tuple(choice.values()) for choice in explorer().figure().grid()]
    assert choices == [(p, s) for p in (1, 2, 3) for s in (0.5, 1.0, 2.0)]


# What an inline SVG may hold


@dot
@FIGURES
def test_no_id_no_raw_colour_no_script_in_a_picture(figure):
    html = bundle(figure())["text/html"]
    svgs = inline_svgs(html)
    assert svgs
    for svg in svgs:
        elements(svg)  # well-formed, nothing drawn twice
        assert not re.search(r"\sid=", svg)
        assert "xlink:" not in svg and "<script" not in svg and "<a " not in svg
        paints = re.findall(r'(?:fill|stroke|stop-color|color)="([^"]*)"', svg)
        known = {f"var(--lens-{role})" for role in theme.COLOURS}
        assert paints and set(paints) <= known | {"none"}
        styles = re.findall(r'style="([^"]*)"', svg)
        assert all("#" not in style and "rgb" not in style for style in styles)
        # an image hides the buttons in it, so a picture with boxes that tell something is a group
        role = "group" if 'role="button"' in svg else "img"
        assert f'role="{role}"' in svg and re.search(r'aria-label="[^"]+"', svg)
    assert not re.search(r"\sid=", html)
    assert not re.search(r"https?://(?!www\.w3\.org)", html), "a picture needs no other host"


@dot
def test_names_are_text_and_never_markup():
    name = '<script>alert("1")</script>&amp;'
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    recording = lens.record_backward(y.sum(), names={name: x, "</pre><b>": y})
    for view in (recording, recording.graph):
        html = view._repr_mimebundle_()["text/html"]
        assert "<script>alert" not in html and "</pre><b>" not in html
        for svg in inline_svgs(html):
            elements(svg)
        shown = re.search(r"<pre.*</pre>", html, flags=re.S)[0]
        assert name in unescape(shown)
        assert name in str(view)


def test_labels_of_choices_are_text():
    choices = {"a<b>": '"<i>', "c": "</button>"}
    shown = lens.explore(lambda which: f"<u>{which}", which=choices)
    html = shown._repr_mimebundle_()["text/html"]
    body = html.partition("</style>")[2].partition("<script>")[0]
    for markup in ("a<b>", "<i>", "<u>", "</button></button>"):
        assert markup not in body
    assert "&lt;u&gt;a&lt;b&gt;" in html


# The page


@dot
def test_controls_of_a_page():
    html = explorer()._repr_mimebundle_()["text/html"]
    assert re.findall(r'class="lens-choice[^>]*data-size="(\d+)"', html) == ["3", "3"]
    assert html.count("<template class=lens-frame>") == 9
    assert html.count("<script>") == 1
    still = lens.storage_layout(torch.ones(1))._repr_mimebundle_()["text/html"]
    assert "<script" not in still and "<template" not in still and "lens-controls" in still


def test_too_many_frames_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="225 frames, and a figure takes 200"):
        lens.explore(lambda n, m: "text", n=range(15), m=range(15))


@dot
def test_a_frame_without_a_picture_takes_the_room_of_the_others():
    def tried(works):
        return lens.graph(torch.ones(2, requires_grad=True).exp()) if works else "refused"

    page = lens.explore(tried, works=[True, False])._repr_mimebundle_()["text/html"]
    (width, height) = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', page).groups()
    (text,) = re.findall(r'<div class="lens-instead">.*?</div></div>', page, re.DOTALL)
    assert "refused" in text and f"aspect-ratio:{width}/{height};" in text
    assert (
        "lens-instead"
        not in lens.explore(lambda a: "text", a=[1, 2])
        ._repr_mimebundle_()["text/html"]
        .partition("</style>")[2]
    )


@pytest.mark.parametrize("values", [torch.tensor([1, 2, 4]), np.array([1, 2, 4])])
def test_numbers_in_a_tensor_or_an_array_are_numbers(values):
    (choice,) = lens.explore(lambda n: f"{n!r}", n=values).figure().choices
    assert (choice.control, choice.labels, choice.free) == ("slider", ("1", "2", "4"), True)


@dot
def test_frames_of_different_size_share_one_canvas():
    def grown(lines):
        y = torch.ones(2, requires_grad=True)
        for _ in range(lines):
            y = y.exp()
        return lens.graph(y)

    page = lens.explore(grown, lines=range(1, 4))._repr_mimebundle_()["text/html"]
    boxes = re.findall(r'viewBox="\S+ \S+ (\S+ \S+)"', page)
    assert len(boxes) == 8 and len(set(boxes)) == 2, "two layouts in each of four frames"
    sizes = [lens.graph(torch.ones(2, requires_grad=True).exp()), grown(3)]
    alone = [view.figure().draw().picture.svg() for view in sizes]
    assert len({re.search(r'viewBox="([^"]*)"', svg)[1] for svg in alone}) == 2


def test_the_title_is_the_first_line_of_the_docstring():
    assert explorer().figure().title == "A power of the worked example"


class Doubled:
    def __call__(self, n):
        return f"{2 * n}"


@pytest.mark.parametrize(
    ("function", "title"),
    [
        (lambda n: f"{n}", "n"),
        (partial(draw, power=2), "A power of the worked example"),
        (Doubled(), "Doubled"),
    ],
    ids=["lambda", "partial", "object"],
)
def test_a_function_without_a_name_has_a_title(function, title):
    name = "power" if isinstance(function, partial) else "n"
    assert lens.explore(function, **{name: [1, 2]}).figure().title == title


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: lens.explore("draw", a=[1]), TypeError, "function of the choices"),
        (lambda: lens.explore(draw), ValueError, "at least one choice"),
        (lambda: lens.explore(draw, power=[]), ValueError, "has no values"),
        (lambda: lens.explore(draw, power=3), TypeError, "collection of values"),
        (lambda: lens.explore(draw, powr=[1, 2]), TypeError, "called with powr as keywords"),
        (lambda: lens.explore(lambda a, b: "", a=[1, 2]), TypeError, "argument: 'b'"),
        (lambda: lens.explore(draw, power=range(10**12)), ValueError, "offer fewer values"),
        (lambda: lens.explore(draw, power=itertools.count()), ValueError, "offer fewer values"),
        (lambda: lens.explore(draw, power="ab"), TypeError, "collection of values"),
        (lambda: lens.explore(draw, power=[[1], [2]]), TypeError, "power has a value of type list"),
        (
            lambda: str(lens.explore(lambda a: 3, a=[1])),
            TypeError,
            "a view of the lens or a string",
        ),
        (
            lambda: str(lens.explore(lambda a: recorded(example), a=[1])),
            TypeError,
            "still picture",
        ),
    ],
)
def test_wrong_explorers(call, error, phrase):
    with pytest.raises(error, match=phrase) as caught:
        call()
    assert type(caught.value) is error and "\n" not in str(caught.value)


def test_choices_given_as_a_generator_are_all_there():
    shown = lens.explore(lambda n: f"n is {n}", n=(k for k in (1, 2)))
    assert [frame.text.splitlines()[1].strip() for frame in shown.figure().frames()] == [
        "n is 1",
        "n is 2",
    ]


# Files


@dot
def test_save(tmp_path):
    recording = recorded(example)
    svg = recording.save(tmp_path / "film.svg", step=3)
    assert svg == tmp_path / "film.svg"
    text = svg.read_text(encoding="utf-8")
    assert set(elements(text)) >= {f"node{k}" for k in range(7)}
    assert "var(" not in text and theme.light("gradient") in text, "a file has real colours"
    assert text != recording.save(tmp_path / "first.svg").read_text(encoding="utf-8")
    png = recording.save(str(tmp_path / "film.PNG"))
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page = recording.save(tmp_path / "film.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and 'charset="utf-8"' in page
    assert page.count("<template class=lens-frame>") == 8
    words = recording.save(tmp_path / "film.txt").read_text(encoding="utf-8")
    assert words == str(recording) + "\n"


@dot
def test_a_saved_svg_is_drawn_by_the_browser_alone(tmp_path):
    text = draw().save(tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert 'xmlns="http://www.w3.org/2000/svg"' in text
    assert re.search(r"<svg[^>]* width=", text) and re.search(r"viewBox=", text)


@pytest.mark.parametrize(
    ("path", "choice", "error", "phrase"),
    [
        ("a.pdf", {}, ValueError, "not '.pdf'"),
        ("a", {}, ValueError, "not 'a'"),
        ("a.svg", {"step": 99}, ValueError, "not 99"),
        ("a.svg", {"frame": 1}, ValueError, "no choice 'frame'"),
        ("a.png", {"step": "two"}, ValueError, "not 'two'"),
        ("no/such/folder/a.txt", {}, FileNotFoundError, "make it first"),
    ],
)
def test_what_save_refuses(tmp_path, path, choice, error, phrase):
    with pytest.raises(error, match=phrase):
        recorded(example).save(tmp_path / path, **choice)
    assert list(tmp_path.iterdir()) == []


def test_a_text_has_no_picture_to_save(tmp_path):
    shown = lens.explore(lambda n: f"{n}", n=[1, 2])
    with pytest.raises(ValueError, match="no picture"):
        shown.save(tmp_path / "a.svg")


# Without dot


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    """A machine without Graphviz, and nothing drawn before."""
    from autograd_lens.view import dot as module

    monkeypatch.setenv("PATH", str(tmp_path))
    for name in vars(module).values():
        if hasattr(name, "cache_clear"):
            name.cache_clear()


def test_without_dot_there_is_the_text_and_one_line_of_advice(no_dot, capfd):
    for view in (draw(), recorded(example), explorer()):
        forms = view._repr_mimebundle_()
        html = forms["text/html"]
        assert inline_svgs(html) == []
        (advice,) = re.findall(r'<p class="lens-advice">(.*?)</p>', html)
        assert "dot is not installed" in advice and "\n" not in advice
        assert html.count("dot is not installed") == 1
        assert "<details open>" in html, "the text is all there is: it is open"
        assert forms["text/plain"] == str(view)
        assert "Traceback" not in html
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_without_dot_a_picture_cannot_be_saved(no_dot, tmp_path, suffix):
    with pytest.raises(RuntimeError, match="dot is not installed"):
        draw().save(tmp_path / f"a.{suffix}")
    assert draw().save(tmp_path / "a.html").exists()
    assert draw().save(tmp_path / "a.txt").read_text() == str(draw()) + "\n"


def test_without_dot_a_widget_shows_the_text(no_dot):
    made = live.widget(recorded(example).figure())
    assert "dot is not installed" in made.children[1].value
    made.children[0].children[1].value = 2
    assert "PowBackward0" in made.children[1].value


# Theme


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_light_colours_tell_the_role():
    light = [pair[0] for pair in theme.COLOURS.values()]
    assert len(set(light)) == len(light)
    for pair in theme.COLOURS.values():
        assert len(pair) == 2 and all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in pair)


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("text", ["ink", "muted", "forward", "gradient", "error"])
def test_text_can_be_read(which, ground, text):
    assert contrast(theme.COLOURS[text][which], theme.COLOURS[ground][which]) >= 4.5


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("role", [r for r in theme.COLOURS if r.endswith("-fill")])
def test_ink_can_be_read_on_every_fill(which, role):
    assert contrast(theme.COLOURS["ink"][which], theme.COLOURS[role][which]) >= 4.5


def test_the_page_defines_every_role_in_both_themes():
    css = theme.variables()
    for role, (light, dark) in theme.COLOURS.items():
        assert css.count(f"--lens-{role}:{light};") == 1
        assert css.count(f"--lens-{role}:{dark};") == 2, "said by the page, and by the system"
    sheet = (Path(theme.__file__).parent / "figure.css").read_text()
    used = set(re.findall(r"var\(--lens-([\w-]+)\)", sheet))
    assert used <= set(theme.COLOURS)
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b", sheet), "the style sheet names no colour"


def test_a_colour_without_a_role_is_refused():
    with pytest.raises(ValueError, match="has no role"):
        theme.follow_theme('<svg><path fill="#123456"/></svg>')
    assert theme.follow_theme('<path stroke="transparent"/>') == '<path stroke="none"/>'


# The whole


def test_importing_the_data_imports_no_drawing():
    code = (
        "import sys, autograd_lens as lens; lens.graph; "
        "print([m for m in sys.modules if m in ('graphviz', 'matplotlib', 'ipywidgets') "
        "or m.startswith('autograd_lens.view')])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, env=os.environ
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere to save to: make it first"):
        lens.graph(x * 2).save(tmp_path / "nowhere" / "g.txt")
    assert lens.graph(x * 2).save(tmp_path / "g.txt").exists()


def test_a_state_that_is_only_text_says_what_was_chosen_once():
    def drawn(way):
        return (
            "it raises\n  and says why"
            if way == "b"
            else lens.chart({"y": ([0, 1], [0, 1])}, x="x", y="y")
        )

    page = lens.explore(drawn, way=["a", "b"])._repr_mimebundle_()["text/html"]
    (stage,) = re.findall(r'<pre class="lens-text">(.*?)</pre>', page, flags=re.S)
    assert stage == "it raises\n  and says why"
