"""How a chart is drawn: two layouts, names of lines, lines on each other, colours, ticks."""

import itertools
import math
import re
from dataclasses import dataclass

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from text_boxes import boxes, misplaced

import autograd_lens as lens
from autograd_lens.view.axis import Axis, fitted
from autograd_lens.view.canvas import SMALLEST, Canvas
from autograd_lens.view.figure import Choice, Figure, Frame, Picture
from autograd_lens.view.html import figure_html, render_pictures
from autograd_lens.view.line_labels import spread
from autograd_lens.view.sketch import Sketch, Words, width_of, wrapped
from autograd_lens.view.theme import COLOURS
from autograd_lens.view.traces import LOOKS, SHAPES, Trace

NAN = float("nan")
STEPS = range(5)


def chart(lines, **options):
    return lens.chart(lines, **({"x": "x", "y": "y"} | options))


def layouts(result):
    """The narrow and the wide picture of a chart."""
    picture = result.figure().draw().picture
    return picture, picture.wide


def many(count, name="line {}", spacing=1.0):
    """So many lines, whose ends are ``spacing`` apart."""
    return {name.format(k): (STEPS, [k * spacing + x for x in STEPS]) for k in range(count)}


CHARTS = {
    "one": chart({"loss": (STEPS, STEPS)}),
    "its axis says its name": chart({"y": (STEPS, STEPS)}),
    "six": chart(many(6)),
    "six that end in one point": chart(
        {f"row {k}": (STEPS, [k * (4 - x) for x in STEPS]) for k in range(6)}
    ),
    "six with long names": chart(many(6, "a name that has many words, number {}")),
    "a word without an end": chart(many(3, "w" * 45 + "{}")),
    "wide letters": chart(many(6, "MMMM WWWW @@@@ %%%% {}")),
    "long titles": chart(many(2), x="m" * 50, y="W" * 40),
    "a line of gaps": chart(many(2) | {"gaps": (STEPS, [NAN] * 5)}),
    "a line that ends early": chart(
        {"a": (STEPS, STEPS), "early": ([1, 2], [1, 2]), "one": ([1], [1])}
    ),
    "bytes": chart(
        {"a": ([1, 8, 64], [1, 10**6, 10**14]), "b": ([1, 8], [5, 7])}, y="bytes", log="xy"
    ),
    "far numbers": chart({"a": ([-1e300, 1e300], [-1e300, 1e300]), "b": ([0], [5e-324])}),
    "long numbers": chart({"a": ([123456, 123457], [0.1234561, 0.1234562])}),
    "zero": chart({"a": (STEPS, [0] * 5), "b": (STEPS, [0] * 5), "c": (STEPS, [0] * 5)}),
}  # fmt: skip
PICTURES = {
    f"{name}, {layout}": (result, picture)
    for name, result in CHARTS.items()
    for layout, picture in zip(("narrow", "wide"), layouts(result), strict=True)
}
EVERY = [pytest.param(picture, id=name) for name, (_, picture) in PICTURES.items()]


@pytest.mark.parametrize("picture", EVERY)
def test_no_text_leaves_the_picture_or_meets_another(picture):
    assert len(boxes(picture)) >= 4
    assert misplaced(picture) == []


def test_a_misplaced_text_is_found():
    marks = (Words((5, 5), "one"), Words((8, 9), "other"), Words((5, 40), "far"))
    assert misplaced(Sketch((50, 50), marks)) == [("one", "other")]
    assert misplaced(Sketch((50, 42), marks[2:])) == ["far"]


@pytest.mark.parametrize("picture", EVERY)
def test_every_marker_and_stroke_stays_inside(picture):
    width, height = picture.size
    for trace in traces(picture, named=False):
        for x, y in [marker.at for marker in trace.markers]:
            assert 0 <= x <= width and 0 <= y <= height
        assert all(0 <= x <= width for stroke in trace.strokes for x, _ in stroke.points)


def traces(picture, named=True):
    """The lines of a picture; with ``named=False`` also the samples beside their names."""
    return [mark for mark in picture.marks if isinstance(mark, Trace) and (mark.name or not named)]


@pytest.mark.parametrize(("result", "picture"), PICTURES.values(), ids=PICTURES)
def test_no_name_of_a_line_is_lost(result, picture):
    words = "".join(box.text for box in boxes(picture)).replace(" ", "")
    for line in result.lines:
        assert line.label.replace(" ", "") in words


def test_names_stand_at_the_ends_of_lines_where_they_fit():
    for picture in layouts(CHARTS["six"]):
        ends = [max(marker.at for marker in trace.markers) for trace in traces(picture)]
        for k, end in enumerate(ends):
            (name,) = [box for box in boxes(picture) if box.text == f"line {k}"]
            assert name.left > end[0]
            assert abs((name.top + name.bottom) / 2 - end[1]) < 2, "it is beside its end"


def test_names_stand_above_the_axes_where_they_do_not_fit():
    for picture in layouts(CHARTS["a word without an end"]):
        highest = min(marker.at[1] for trace in traces(picture) for marker in trace.markers)
        assert all(box.bottom < highest for box in boxes(picture) if "w" in box.text)


def test_names_stay_in_the_order_of_the_ends():
    for picture in layouts(chart(many(6, spacing=0.01))):
        found = {box.text: box.top for box in boxes(picture) if box.text.startswith("line")}
        assert sorted(found, key=found.get) == [f"line {k}" for k in (5, 4, 3, 2, 1, 0)]


def test_spread_moves_boxes_as_little_as_they_must():
    assert spread([10, 50], [10, 10], 0, 100) == [10, 50]
    assert spread([50, 50], [10, 10], 0, 100) == [45, 55]
    assert spread([0, 100], [10, 10], 0, 100) == [5, 95]
    assert spread([0, 2, 14], [10, 10, 10], 0, 100) == [5, 15, 25]
    assert spread([30, 20, 20], [10, 10, 10], 0, 100) == pytest.approx([33.3, 13.3, 23.3], abs=0.1)


@pytest.mark.parametrize("text", ["a b c", "graph of its gradient", "w" * 60, "a " + "b" * 30])
def test_a_wrapped_text_keeps_every_letter_and_its_room(text):
    lines = wrapped(text, 50)
    assert all(width_of(line) <= 50 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("family", ["DejaVu Sans", "DejaVu Serif", "STIXGeneral"])
def test_names_have_room_in_three_fonts(family):
    """The first two are wider than those of most pages; Matplotlib brings them along."""
    for name in [
        *(f"layer {k}" for k in range(3)),
        "graph of its gradient",
        "Adam",
        "10⁻³",
        "10⁻¹⁶",
    ]:
        drawn = TextPath((0, 0), name, size=9, prop=FontProperties(family=family))
        assert drawn.get_extents().width <= width_of(name, 9), name


# Lines that coincide


def seen(picture, one, other):
    """Whether of two lines that have all points in common both are visible, the later inside."""
    first, later = traces(picture)[one], traces(picture)[other]
    strokes = all(a.width >= b.width + 2 for a in first.strokes for b in later.strokes)
    near = [
        (a, b)
        for a in first.markers
        for b in later.markers
        if math.dist(a.at, b.at) < 0.1
    ]  # fmt: skip
    return bool(near) and strokes and all(a.radius >= b.radius + 1 for a, b in near)


def test_lines_that_coincide_are_both_visible():
    same = {"a": (STEPS, [4, 3, 2, 1, 0]), "b": (STEPS, STEPS), "c": (STEPS, [4, 3, 2, 1, 0])}
    for picture in layouts(chart(same)):
        assert seen(picture, 0, 2)
        assert not seen(picture, 2, 0), "the later one would hide it"
        assert {stroke.width for stroke in traces(picture)[1].strokes} == {1.8}


def test_three_lines_that_coincide_are_all_visible():
    for picture in layouts(CHARTS["zero"]):
        assert seen(picture, 0, 1) and seen(picture, 1, 2) and seen(picture, 0, 2)


def test_a_line_is_wider_only_where_another_runs_on_it():
    lines = {"a": (range(5), [0, 1, 2, 3, 4]), "b": (range(5), [0, 1, 2, 9, 9])}
    for picture in layouts(chart(lines)):
        wide, slim = traces(picture)[0].strokes
        assert wide.width > slim.width == 1.8
        assert [len(stroke.points) for stroke in (wide, slim)] == [3, 3]


@pytest.mark.parametrize(
    "other",
    [
        ([0, 1, 4], [1, 1, 1]),  # other points of the same line
        ([0.5, 3.5], [1, 1]),
        ([4, 3, 2, 1, 0], [1, 1, 1, 1, 1]),  # from right to left
    ],
)
def test_lines_coincide_whatever_their_points_are(other):
    for picture in layouts(chart({"a": (STEPS, [1] * 5), "b": other}, y_range=(0, 2))):
        assert all(stroke.width > 3 for stroke in traces(picture)[0].strokes)


def test_a_stroke_below_another_is_hollow():
    svg = layouts(CHARTS["zero"])[0].svg()
    group = re.search(r'<g data-lens="line-0".*?<g ', svg)[0]
    widths = [float(width) for width in re.findall(r'stroke-width="([\d.]+)"', group)]
    assert [COLOURS["series-1"][0], COLOURS["paper"][0]] == re.findall(r'stroke="(#\w+)"', group)
    assert widths[0] - widths[1] == pytest.approx(2.2), "an edge at either side"


def test_markers_of_many_points_do_not_thicken_their_line():
    dense = {"a": (range(1000), [math.sin(k / 50) for k in range(1000)])}
    for picture in layouts(chart(dense)):
        (trace,) = traces(picture)
        assert len(trace.markers) == 1000
        widest = max(2 * marker.radius for marker in trace.markers) + trace.edge()
        assert widest <= min(stroke.width for stroke in trace.strokes)
        assert trace.inside() == "series-1", "a dot makes no hole in it"
        assert traces(layouts(CHARTS["one"])[0])[0].inside() == "paper"


def test_no_two_lines_look_alike_without_colour():
    shapes = [look.shape for look in LOOKS]
    assert len(set(shapes)) == len({look.dashes for look in LOOKS}) == len(LOOKS)
    assert set(shapes) - {"circle"} == set(SHAPES)


# Colours


def linear(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def contrast(one, other):
    """As WCAG defines it."""
    bright = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))
        for colour in (one, other)
    )
    return (bright[1] + 0.05) / (bright[0] + 0.05)


# How a colour looks to readers who lack one kind of cone (Machado, Oliveira, Fernandes 2009).
SIGHT = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def lab(colour, sight):
    """CIE L*a*b*."""
    rgb = linear(colour)
    r, g, b = (
        min(1, max(0, sum(m * c for m, c in zip(row, rgb, strict=True)))) for row in SIGHT[sight]
    )
    xyz = (
        (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
        0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
        (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883,
    )
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one, other, sight="all cones"):
    return math.dist(lab(one, sight), lab(other, sight))


THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
SERIES = [look.role for look in LOOKS]


@THEMES
def test_lines_stand_out_from_the_paper(theme):
    paper = COLOURS["paper"][theme]
    assert all(contrast(COLOURS[role][theme], paper) >= 3 for role in SERIES)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@THEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_any_reader_can_tell_the_colours_of_lines(theme, sight):
    pairs = itertools.combinations([COLOURS[role][theme] for role in SERIES], 2)
    assert min(apart(*pair, sight) for pair in pairs) >= 14  # 2.3 is what an eye can just tell


@THEMES
def test_no_line_has_the_colour_of_a_role(theme):
    roles = ["forward", "gradient", "saved", "parameter", "done", "error"]
    for line, role in itertools.product(SERIES, roles):
        assert apart(COLOURS[line][theme], COLOURS[role][theme]) >= 15, (line, role)


# Ticks


def labels(axis, most=6):
    return [label for _, label in axis.ticks(most)]


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([1, 1e6], {}, ["10⁰", "10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"]),
        ([1e-4, 1e-1], {}, ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]),
        ([1, 1000], {}, ["1", "10", "100", "1,000"]),
        ([1e-17, 1e-1], {}, ["10⁻¹⁶", "10⁻¹⁴", "10⁻¹²", "10⁻¹⁰", "10⁻⁸"]),
        ([60, 180], {}, ["60", "70", "80", "90", "100"]),
        ([1, 30], {}, ["1", "2", "5", "10", "20"]),
        ([1, 4, 256], {}, ["1", "2", "4", "8", "16", "32", "64", "128", "256"]),
        ([100, 10**7], {"words": "bytes"}, ["100 B", "1 kB", "10 kB", "100 kB", "1 MB", "10 MB"]),
        ([1e-3, 1e3], {"words": "bytes, times"}, None),
    ],
)
def test_ticks_of_a_logarithmic_axis(values, options, expected):
    found = labels(fitted(values, None, log=True, **options), 9)
    if expected is None:
        assert not any(label.endswith("B") for label in found), "a ratio has no unit"
    else:
        assert found[: len(expected)] == expected


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0, 0], {"words": "bytes of activations"}, ["0", "1 B"]),
        ([0, 4096], {"words": "bytes"}, ["0", "1 kB", "2 kB", "3 kB", "4 kB"]),
        ([900, 1000], {"words": "bytes"}, ["0", "0.2 kB", "0.4 kB", "0.6 kB", "0.8 kB", "1 kB"]),
        ([0, 0], {}, ["0", "1"]),
        ([7, 7], {}, ["0", "2", "4", "6", "8"]),
        ([2, 3], {}, ["2", "3"]),
        ([-2, 2], {}, ["-2", "-1", "0", "1", "2"]),
        ([0, 2e6], {}, ["0", "0.5×10⁶", "10⁶"]),
        ([0, 2e-5], {}, ["0", "0.5×10⁻⁵", "10⁻⁵", "1.5×10⁻⁵", "2×10⁻⁵"]),
        ([0, 1e300], {}, ["0"]),
    ],
)
def test_ticks_of_an_axis_with_equal_steps(values, options, expected):
    found = labels(fitted(values, None, from_zero=True, **options))
    assert found[: len(expected)] == expected


@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_on_any_axis_and_no_two_labels_are_alike(log):
    numbers = [5e-324, 1e-300, 1e-9, 0.25, 1, 1 + 1e-7, 1 + 1e-15, 3, 60, 180, 4096, 1e9, 1.7e308]
    for low, high in itertools.combinations(numbers, 2):
        for ends in [(low, high)] + ([] if log else [(-high, low), (-high, -low), (0.0, high)]):
            for most in (2, 5, 9):
                ticks = Axis(*ends, log).ticks(most)
                shares = [Axis(*ends, log).share(value) for value, _ in ticks]
                assert 1 <= len(ticks) <= most, (ends, ticks)
                assert shares == sorted(shares) and -1e-6 <= shares[0] and shares[-1] <= 1 + 1e-6
                assert len({label for _, label in ticks}) == len(ticks)


def test_an_axis_has_one_notation():
    for low, high in itertools.combinations([10.0**k for k in range(-9, 10)], 2):
        found = labels(fitted([low, high], None, log=True), 5)
        assert len({"10" in label and label[-1] in "⁰¹²³⁴⁵⁶⁷⁸⁹" for label in found}) == 1, found


def test_what_cannot_be_negative_begins_at_zero():
    for words in ("bytes", "peak, bytes", "count"):
        for values in ([0, 0], [5, 10], [0, 3], [7, 7]):
            assert fitted(values, None, words=words, from_zero=True).low == 0
    assert fitted([-1, 3], None, from_zero=True).low == -1
    assert fitted([1000, 1001], None, from_zero=True).low == 1000


# Two layouts on a page


def sizes(svg):
    return [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]


@pytest.mark.parametrize("name", CHARTS)
def test_text_is_legible_on_a_phone_and_not_large_on_a_desk(name):
    html = CHARTS[name]._repr_mimebundle_()["text/html"]
    stages = re.findall(
        r'<div class="lens-(narrow|wide)"><svg viewBox="\S+ \S+ (\S+) \S+"[^>]*'
        r'style="max-width:(\d+)px;min-width:(\d+)px"(.*?)</svg>',
        html,
    )
    assert [stage[0] for stage in stages] == ["narrow", "wide"]
    for (_, width, most, least, svg), room in zip(stages, (350, 826), strict=True):
        assert int(least) <= room <= int(most), "it takes all of the stage"
        painted = [size * room / float(width) for size in sizes(svg)]
        assert painted and min(painted) >= 11 and max(painted) <= 16
        assert min(sizes(svg)) * int(least) / float(width) >= 10.99


@dataclass(frozen=True)
class Square(Picture):
    side: float
    wide: Picture | None = None

    def svg(self):
        """A square."""
        return f'<svg viewBox="0 0 {self.side} {self.side}"><text font-size="9">a</text></svg>'

    def png(self):
        """Nothing."""
        return b""


def page(*pictures):
    frames = [Frame("text", picture and (lambda p=picture: p)) for picture in pictures]
    figure = Figure("t", lambda k: frames[k], (Choice("k", tuple(range(len(frames)))),))
    return figure_html(figure)


def canvases(html, kind):
    return re.findall(rf'<div class="lens-{kind}[^"]*"><svg viewBox="\S+ \S+ (\S+) \S+"', html)


def test_all_frames_share_a_canvas_in_either_layout():
    html = page(Square(100, Square(500)), Square(120, Square(300)))
    assert set(canvases(html, "narrow")) == {"120"} and set(canvases(html, "wide")) == {"500"}


def test_a_frame_with_one_layout_shows_it_at_every_width():
    html = page(Square(100, Square(500)), Square(120))
    assert canvases(html, "narrow") == ["120"] * 3
    assert canvases(html, "wide") == ["500"] * 3


def test_a_frame_without_a_picture_takes_the_room_of_both_layouts():
    html = page(Square(100, Square(500)), None)
    empty = r'<div class="lens-(narrow|wide)[^"]*"><div style="aspect-ratio:(\d+)/'
    rooms = re.findall(empty, html)
    assert rooms == [("narrow", "100"), ("wide", "500")]


def test_a_live_frame_without_a_picture_takes_the_room_of_the_one_before():
    _, _, before = render_pictures(next(iter(CHARTS.values())).figure().frames())
    _, _, after = render_pictures([Frame("text")], before)
    assert after == before and after.narrow.most > 1


def test_pictures_of_one_layout_are_not_wrapped():
    assert '<div class="lens-narrow' not in page(Square(100), Square(200))


@pytest.mark.parametrize("letters", [6.0, 8.25, 9.0, 12.0, 20.0])
def test_a_picture_shrinks_as_far_as_its_text_is_legible(letters):
    natural = 400 * 4 / 3
    canvas = Canvas().around([f'<svg viewBox="0 0 400 100"><text font-size="{letters}">'])
    most, least = map(int, re.findall(r"(\d+)px", canvas.style()))
    assert least <= most and letters * least / 400 >= SMALLEST - 0.02
    assert most == max(round(natural), least)
