"""A chart draws the points it was given, writes them down, and refuses what has no place."""

import re
import warnings
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch

import autograd_lens as lens
from autograd_lens.view.html import render_pictures

NAN = float("nan")
SQUARES = {"square": ([0, 1, 2, 3], [0.0, 1.0, 4.0, 9.0])}


LAYOUTS = ["narrow", "wide"]


def sketch(chart, layout="narrow"):
    """The picture of a chart in one of its layouts."""
    [frame] = chart.figure().frames()
    return frame.picture if layout == "narrow" else frame.picture.wide


def drawn(chart, layout="narrow"):
    """By line, the places of its markers in the picture, and what each says."""
    root = ElementTree.fromstring(sketch(chart, layout).svg())
    ns = "{http://www.w3.org/2000/svg}"
    lines = {}
    for group in root.iter(f"{ns}g"):
        if group.get("data-lens") is None:  # the sample beside a name
            continue
        marks = []
        for mark in group.iter():
            if (title := mark.find(f"{ns}title")) is not None:
                place = re.findall(r"[\d.]+", mark.get("transform") or "")
                place = place or [mark.get("cx"), mark.get("cy")]
                marks.append((*map(float, place), title.text))
        lines[group.get("data-lens")] = marks
    return lines


def affine(marks, points):
    """Whether places are a straight map of the points, one axis at a time."""
    for axis in 0, 1:
        (p0, v0), (p1, v1) = [(marks[k][axis], points[k][axis]) for k in (0, -1)]
        slope = (p1 - p0) / (v1 - v0)
        for mark, point in zip(marks, points, strict=True):
            if abs(mark[axis] - (p0 + slope * (point[axis] - v0))) > 0.11:  # a tenth, rounded
                return False
    return True


def test_the_text_is_the_table_of_the_points():
    chart = lens.chart(
        {"a": ([1, 2], [0.5, 1 / 3]), "b": ([2, 3], [1e6, NAN])}, x="n", y="cost", digits=2
    )
    assert str(chart) == "cost:\nn     a        b\n1   0.5\n2  0.33  1000000\n3            nan"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_point_is_drawn_at_its_place(layout):
    chart = lens.chart(SQUARES | {"line": ([0, 3], [2, 8])}, x="x", y="y")
    lines = drawn(chart, layout)
    assert set(lines) == {"line-0", "line-1"}
    points = list(zip(*SQUARES["square"], strict=True))
    assert [m[2] for m in lines["line-0"]] == [f"square: {x}, {y:.0f}" for x, y in points]
    assert affine(lines["line-0"], points)
    both = lines["line-0"] + lines["line-1"]
    assert affine(both, [*points, (0, 2), (3, 8)])
    assert not affine(lines["line-0"], [(x, y + (x == 2)) for x, y in points])  # it can fail


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_logarithmic_axis_spaces_powers_of_ten_evenly(layout):
    chart = lens.chart({"a": ([1, 10, 100], [1e-3, 1e-2, 1e-1])}, x="x", y="y", log="xy")
    marks = drawn(chart, layout)["line-0"]
    assert affine(marks, [(k, k) for k in range(3)])
    assert not affine(
        drawn(lens.chart({"a": ([1, 10, 100], [1, 2, 3])}, x="x", y="y"), layout)["line-0"],
        [(k, k) for k in range(3)],
    )


def test_a_gap_has_no_marker_and_one_point_has_one():
    marks = drawn(lens.chart({"a": ([0, 1, 2], [0, NAN, 2]), "p": ([1], [1])}, x="x", y="y"))
    assert [len(marks[name]) for name in ("line-0", "line-1")] == [2, 1]


def test_a_line_of_gaps_and_long_names_are_drawn():
    marks = drawn(
        lens.chart({"a " * 40: ([0, 1], [NAN, NAN]), "b " * 40: ([0, 1], [0, 1])}, x="x", y="y")
    )
    assert [len(marks[name]) for name in ("line-0", "line-1")] == [0, 2]


def test_how_a_chart_is_drawn_is_no_part_of_what_was_measured():
    lines = {"a": ([1, 2], [1 / 3, 2 / 3])}
    plain = lens.chart(lines, x="x", y="y")
    others = [
        lens.chart(lines, x="x", y="y", **options)
        for options in ({"digits": 2}, {"log": "y"}, {"x_range": (0, 9)}, {"y_range": (0, 9)})
    ]
    assert set(vars(plain)) == {"title", "lines", "x", "y", "drawing"}
    assert all(other == plain for other in others)
    drawn = {other.figure().draw().picture.svg() for other in (plain, *others)}
    assert len(drawn) == 5, "each is drawn as it was asked for"


@pytest.mark.parametrize("pair", [("a b", "a  b"), ("a", " a"), ("1", 1), ("a\nb", "a b")])
def test_labels_that_look_alike_are_refused(pair):
    one, other = pair
    with pytest.raises(ValueError, match="look alike"):
        lens.chart({one: ([1], [1]), other: ([1], [2])}, x="x", y="y")


@pytest.mark.parametrize(
    "texts", [["1", "2"], [b"1", b"2"], np.array(["1", "2"]), [np.str_("1"), 2]], ids=repr
)
@pytest.mark.parametrize("axis", [0, 1])
def test_digits_in_a_text_are_no_number(texts, axis):
    pair = ([1, 2], texts) if axis else (texts, [1, 2])
    with pytest.raises(TypeError, match=f"{'xy'[axis]} of the line 'a' must hold real numbers"):
        lens.chart({"a": pair}, x="x", y="y")


def test_a_chart_of_gaps_alone_is_refused():
    for lines in {"a": ([1], [NAN])}, {"a": ([1, 2], [NAN, NAN]), "b": ([1], [NAN])}:
        with pytest.raises(ValueError, match="every y is NaN"):
            lens.chart(lines, x="x", y="y")


def test_tensors_are_read():
    xs = torch.arange(4.0, requires_grad=True)
    chart = lens.chart({"square": (xs.detach(), xs**2)}, x="x", y="y")
    assert chart.lines == lens.chart(SQUARES, x="x", y="y").lines


def test_frames_of_an_explorer_share_the_axes_they_are_given():
    def draw(power):
        """Powers"""
        xs = range(4)
        return lens.chart(
            {"y": (xs, [x**power for x in xs])}, x="x", y="y", x_range=(0, 4), y_range=(0, 30)
        )

    explorer = lens.explore(draw, power=range(1, 4))
    first, last = (drawn(explorer.draw(power=p))["line-0"] for p in (1, 3))
    # 1 is 1 at any power: the same place in each frame. 3 and 27 are not.
    assert first[1][:2] == last[1][:2] and first[3][:2] != last[3][:2]
    assert str(explorer).count("power = ") == 3


def test_on_a_page_there_is_no_id_no_reference_and_no_colour_but_a_role():
    label = '<b onclick="x">&amp;'
    chart = lens.chart({label: ([0, 1], [0, 1]), "other": ([0, 1], [1, 0])}, x="<x>", y="y & z")
    [svg], advice, _ = render_pictures(chart.figure().frames())
    assert not advice
    assert not re.search(r'\bid=|href|clip-path|style="(?!max-width)|#[0-9a-f]{6}', svg)
    assert "<b " not in svg and "&lt;b onclick" in svg and "y &amp; z" in svg
    used = {role for role in re.findall(r"var\(--lens-([^)]*)\)", svg)}
    assert used == {"series-1", "series-2", "ink", "line", "paper"}, "no colour of a role"


def test_settings_of_the_reader_change_nothing():
    [before] = lens.chart(SQUARES, x="x", y="y", title="one").figure().frames()
    plain, png = before.picture.svg(), before.picture.png()
    with matplotlib.rc_context({"lines.linewidth": 9, "axes.facecolor": "black"}):
        [after] = lens.chart(SQUARES, x="x", y="y", title="two").figure().frames()
        assert after.picture.svg() == plain
        assert after.picture.png() == png


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "txt"])
def test_save(tmp_path, suffix):
    path = lens.chart(SQUARES, x="x", y="y").save(tmp_path / f"chart.{suffix}")
    start = {"svg": b"<svg xmlns", "png": b"\x89PNG", "html": b"<!doctype", "txt": b"x  square"}
    assert path.read_bytes().removeprefix(b"y:\n").startswith(start[suffix])


def test_a_file_has_the_wide_layout(tmp_path):
    chart = lens.chart(SQUARES, x="x", y="y")
    path = chart.save(tmp_path / "chart.svg")
    assert path.read_text("utf-8").strip() == sketch(chart, "wide").svg() != sketch(chart).svg()


@pytest.mark.parametrize(
    ("lines", "options", "error", "phrase"),
    [
        ([1, 2], {}, TypeError, "must map labels"),
        ({}, {}, ValueError, "1 to 6 lines, not 0"),
        ({str(k): ([1], [1]) for k in range(7)}, {}, ValueError, "not 7"),
        ({"a": [1, 2, 3]}, {}, TypeError, "'a' must be a pair"),
        ({"a": "xy"}, {}, TypeError, "'a' must be a pair"),
        ({"a": (1, 2)}, {}, TypeError, "x of the line 'a' must be a sequence"),
        ({"a": ([1, 2], [1])}, {}, ValueError, "2 x and 1 y"),
        ({"a": ([], [])}, {}, ValueError, "no points"),
        ({"a": ([1], [1j])}, {}, TypeError, "real numbers"),
        ({"a": ([1], [float("inf")])}, {}, ValueError, "y = inf"),
        ({"a": ([NAN], [1])}, {}, ValueError, "x = nan"),
        ({"a": ([0], [1])}, {"log": "x"}, ValueError, "x = 0; a logarithmic axis"),
        ({"a": ([1], [1])}, {"log": "z"}, ValueError, "log must be"),
        ({"a": ([1], [1])}, {"digits": 0}, ValueError, "digits must be"),
        ({"a": ([1], [1])}, {"x_range": (2, 1)}, ValueError, "x_range must be"),
        ({"a": ([1], [1])}, {"x_range": "12"}, ValueError, "x_range must be"),
        ({"a": ([1], [1])}, {"x_range": 3}, ValueError, "x_range must be"),
        ({"a": ([1], [1])}, {"x_range": (1, 2, 3)}, ValueError, "x_range must be"),
        ({"a": ([1], [1])}, {"title": 3}, TypeError, "title must be a text"),
        (
            {"a": ([1], [10**400])},
            {},
            ValueError,
            "y of the line 'a' has a number beyond any float",
        ),
        ({"a": ([1], [1])}, {"log": "y", "y_range": (0, 1)}, ValueError, "y_range starts at 0"),
        ({"a": ([1], [9])}, {"y_range": (0, 1)}, ValueError, "y = 9, outside y_range (0, 1)"),
    ],
)
def test_what_a_chart_refuses(lines, options, error, phrase):
    with pytest.raises(error, match=re.escape(phrase)):
        lens.chart(lines, x="x", y="y", **options)


def drawn_texts(lines, **options):
    svg = lens.chart(lines, **({"x": "x", "y": "y"} | options)).figure().draw().picture.svg()
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_labels_are_drawn_as_they_are_written():
    lines = {"_hidden": ([1, 2], [1, 2]), "$a$": ([1, 2], [2, 1]), "two\nlines": ([1], [1])}
    texts = drawn_texts(lines, x="cost $ of\n$", y="$y_1$")
    assert {"_hidden", "$a$", "two lines", "cost $ of $", "$y_1$"} <= set(texts)


@pytest.mark.parametrize("log", ["", "y"])
@pytest.mark.parametrize("ys", [[2, 3, 4], [1.0000001, 1.0000002, 1.0000004], [20, 30, 70]])
def test_every_axis_has_numbers_and_no_two_alike(ys, log):
    texts = drawn_texts({"a": ([1000, 2000, 3000], ys)}, log=log)
    labels = [text.replace(",", "") for text in texts if text[0].isdigit()]
    heights = [text for text in labels if float(text) < 500]
    assert len(heights) >= 2 and len(set(heights)) == len(heights)


def test_numbers_that_span_every_float_are_drawn():
    assert drawn_texts({"a": ([1, 2], [1e300, -1e300])})


def test_losses_with_a_graph_are_read_without_a_warning(recwarn):
    warnings.simplefilter("always")
    loss = torch.ones(2, requires_grad=True).sum()
    assert lens.chart({"loss": ([0, 1], [loss, loss])}, x="x", y="y").lines[0].points[1] == (1, 2)
    assert not recwarn.list


def test_a_chart_fits_a_phone():
    html = lens.chart(SQUARES, x="x", y="y")._repr_mimebundle_()["text/html"]
    least, _ = re.findall(r"<svg[^>]*min-width:(\d+)px", html)
    # 390 pixels, less the margins of the page, the border of the figure, the padding of the stage.
    assert int(least) <= 390 - 47 - 2 - 16
