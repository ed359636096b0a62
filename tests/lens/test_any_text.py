"""Names, notes and labels may hold any text: every verb shows it, in every form."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch
from independent import inline_svgs

import autograd_lens as lens
from autograd_lens.printable import LINES, printable

dot = pytest.mark.needs("dot")

TEXTS = {
    r"$\lambda$": r"$\lambda$",
    r"C:\data\x": r"C:\data\x",
    r"\1": r"\1",
    r"\g<0>": r"\g<0>",
    r"\N\G\l": r"\N\G\l",
    "end\\": "end\\",
    "a\x00b": r"a\x00b",
    "\x1b[31mred": r"\x1b[31mred",
    "\x7f\x9b": r"\x7f\x9b",
    "\ud800": r"\ud800",
    "\uffff": r"\uffff",
    "\u202eleft": r"\u202eleft",
    "a\bb": r"a\x08b",
    "<b>&amp;\"'</b>": "<b>&amp;\"'</b>",
    'fill="red"': 'fill="red"',
    "--><!--]]>": "--><!--]]>",
    "{x|y} %s {0}": "{x|y} %s {0}",
    "lr=0.125": "lr=0.125",
    "é漢🙂": "é漢🙂",
}
"""By text, what is seen of it."""

EVERY = pytest.mark.parametrize("text", TEXTS, ids=ascii)


def leaf():
    return torch.ones(2, requires_grad=True)


def graph(text):
    x = leaf()
    return lens.graph((x * 2).sum(), {text: x})


def record_backward(text):
    x = leaf()
    return lens.record_backward((x * 2).sum(), names={text: x})


def saved_tensors(text):
    x = leaf()
    return lens.saved_tensors((x * x).sum(), {text: x})


def record_memory(text):
    x = leaf()
    return lens.record_memory(lambda: (x * x).sum().backward(), names={text: x})


def storage_layout(text):
    return lens.storage_layout(torch.ones(2), names={text: torch.ones(2)})


def named_layout(text):
    x = torch.ones(2)
    return lens.storage_layout(x, names={text: x})


def chart(text):
    return lens.chart({text: ([1, 2], [3, 4]), "other": ([1, 2], [1, 1])}, x="x", y="y")


def axes(text):
    return lens.chart({"line": ([1, 2], [3, 4])}, x=text, y=text, title=text)


def note(text):
    return lens.storage_layout(torch.ones(2), note=text)


def check(text):
    return lens.check(text, torch.ones(2), torch.zeros(2))


def expected(text):
    return lens.check("it", "nothing", text, reveal=True)


def explore(text):
    return lens.explore(lambda size: text, size=[1, 2, 3])


def choice(text):
    return lens.explore(lambda **_: "text", **{text: {"a": text, "b": "b"}})


def grouped(text):
    x = leaf()
    return lens.saved_tensors((x * x).sum()).grouped(lambda entry: text, title=text)


def packed(text):
    """A tensor packed as an object of a class of this name."""
    x = leaf()
    holder = type(text, (), {})
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: holder(), lambda held: x):
        return lens.saved_tensors((x * x).sum())


def module_of_long_name(text):
    model = torch.nn.Sequential()
    model.add_module(text.replace(".", "_"), torch.nn.Linear(2, 2))
    return lens.graph(model(torch.ones(1, 2)).sum(), model, group="module")


def explore_names(text):
    def draw(**chosen):
        return "text"

    draw.__doc__ = text
    return lens.explore(draw, **{text: {"a": text, "b": "b"}})


DRAWN = [graph, record_backward, saved_tensors, record_memory, named_layout, chart, axes]
"""The text stands in the picture."""

WRITTEN = [note, check, explore, choice]
"""The text stands beside the picture."""


class Words(HTMLParser):
    """The text of a page, as a browser has it; what is in attributes, too."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_data(self, data):
        self.found.append(data)

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name == "aria-label"]


UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202e\ufffe\uffff]")


def assert_seen(text, words):
    assert TEXTS[text] in words
    assert not UNFIT.search(words)


@EVERY
@pytest.mark.parametrize("make", DRAWN + WRITTEN, ids=lambda make: make.__name__)
def test_a_text_is_seen(make, text, tmp_path):
    view = make(text)
    assert_seen(text, str(view))
    page = view._repr_mimebundle_()["text/html"]
    assert_seen(text, "".join(Words(page).found))
    for suffix in "txt", "html":
        file = view.save(tmp_path / f"view.{suffix}").read_text(encoding="utf-8")
        assert_seen(text, file if suffix == "txt" else "".join(Words(file).found))
    widget = view.widget()
    shown = [child.value for child in widget.children if type(child).__name__ == "HTML"]
    assert_seen(text, "".join(Words("".join(shown)).found))


@dot
@EVERY
@pytest.mark.parametrize("make", DRAWN, ids=lambda make: make.__name__)
def test_a_text_is_drawn(make, text, tmp_path):
    view = make(text)
    svg = view.save(tmp_path / "view.svg").read_text(encoding="utf-8")
    drawn = ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter()]
    assert any(TEXTS[text] in words for words in drawn)
    page = view._repr_mimebundle_()["text/html"]
    for inlined in inline_svgs(page)[:1]:
        drawn = ["".join(one.itertext()) for one in ElementTree.fromstring(inlined).iter()]
        assert any(TEXTS[text] in words for words in drawn)
    for table in re.findall("<table.*?</table>", page, flags=re.S):
        assert_seen(text, "".join(Words(table).found))
    assert "<svg" in page or "<table" in page
    assert view.save(tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")


LONG = "name" * 1250
CLIPPED = [
    graph,
    record_backward,
    module_of_long_name,
    saved_tensors,
    grouped,
    packed,
    record_memory,
    named_layout,
    chart,
    axes,
    check,
    explore_names,
]


def longest(words):
    """The most characters of the long name that stand together."""
    return max(map(len, re.findall("[name]+", words)), default=0)


@dot
@pytest.mark.parametrize("make", CLIPPED, ids=lambda make: make.__name__)
def test_a_long_name_is_clipped(make):
    view = make(LONG)
    figure = view.figure()
    beside = [figure.title, figure.head, *figure.legend.values()]
    for frame in figure.frames():
        beside += [frame.text, frame.caption, frame.where, str(frame.meter)]
        beside += [frame.picture.svg()] if frame.picture else []
    beside += Words(view._repr_mimebundle_()["text/html"]).found
    said = "\n".join([str(view), *beside])
    assert "…" in said
    assert longest(said) <= 80


@pytest.mark.parametrize("make", [record_memory, named_layout, chart, check])
def test_clipped_names_that_differ_at_their_end_are_told_apart(make):
    assert str(make(LONG + ".weight")) != str(make(LONG + ".bias"))


def test_blanks_and_lines():
    assert printable("a\xa0b\u3000c") == "a\xa0b\u3000c"
    assert printable("a\nb\tc\rd") == r"a\nb\tc\rd"
    assert printable("a\nb\tc\rd", LINES) == "a\nb\tc\\rd"
    several = lens.explore(lambda size: "one\n\ttwo", size=[1, 2, 3])
    assert "one\n  \ttwo" in str(several)


@dot
def test_numbers_are_drawn_as_they_are():
    x = torch.tensor([0.25, 1.125], requires_grad=True)
    svgs = inline_svgs(lens.record_backward((x * x).sum())._repr_mimebundle_()["text/html"])
    assert ".grad [0.5, 2.25]" in svgs[-1]
    cells, *_ = inline_svgs(lens.storage_layout(x)._repr_mimebundle_()["text/html"])
    assert {"0.25", "1.125"} <= set(re.findall(r">([\d.]+)<", cells))
