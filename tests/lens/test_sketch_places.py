"""What gives marks of a sketch their places: lanes, outlines, widths of texts."""

import math
import re
from itertools import pairwise

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from autograd_lens.view.folding import Group, fold
from autograd_lens.view.lanes import Lanes, nearest
from autograd_lens.view.outline import Outline
from autograd_lens.view.sketch import Sketch, Words, box, width_of
from autograd_lens.view.traces import path_of


@pytest.mark.parametrize("events", [1, 2, 200])
def test_events_stand_in_their_lane_from_left_to_right(events):
    lanes = Lanes(("forward", "hook", "backward"), events)
    places = {name: [lanes.place(name, k) for k in range(events)] for name in lanes.names}
    width, height = lanes.size
    for row in places.values():
        assert all(a[0] < b[0] and a[1] == b[1] for a, b in pairwise(row))
        assert all(0 < x < width and 0 < y < height for x, y in row)
    tops = [row[0][1] for row in places.values()]
    assert tops == sorted(set(tops))
    assert [{x for x, _ in column} for column in zip(*places.values(), strict=True)] == [
        {x} for x, _ in places["hook"]
    ]
    assert {mark.text for mark in lanes.marks() if isinstance(mark, Words)} > set(lanes.names)


def test_moments_are_few_and_hold_both_ends():
    assert nearest(range(1000), 5) == [0, 249, 499, 749, 999]
    assert nearest([3, 4], 5) == [3, 4]


def test_an_outline_keeps_the_order_and_moves_what_is_inside_to_the_right():
    outline = Outline([None, 0, 1, 0, None])
    assert outline.depths == [0, 1, 2, 1, 0]
    xs, ys = zip(*outline.places(), strict=True)
    assert xs[0] == xs[4] < xs[1] == xs[3] < xs[2]
    assert all(a < b for a, b in pairwise((*ys, outline.height)))
    assert len(outline.marks()) == 2 * 3  # an elbow for each row that is in another


def test_a_tree_whose_inside_is_joined_is_an_outline():
    parents = [None, *range(30), 0, 31, 32]
    links = [(parent, k) for k, parent in enumerate(parents) if parent is not None]
    inside = Group("inside of 1")
    folded = fold(len(parents), links, dict.fromkeys(range(2, 31), inside), None)
    row_of = {item: row for row, item in enumerate(folded.items)}
    above = [parents[item] for item in folded.items]
    outline = Outline([p if p is None else row_of[folded.item_of[p]] for p in above])
    assert list(folded.items) == [0, 1, 2, 31, 32, 33]
    assert outline.depths == [0, 1, 2, 1, 2, 3]


@pytest.mark.parametrize(
    "text",
    ["aten.addmm", "AutogradCPU", "ADInplaceOrView", "mmmm WWW", "illi (3, 4)", "0123456789"],
)
def test_a_text_is_not_wider_than_its_room(text):
    """DejaVu Sans is wider than what a page has as a rule; Matplotlib brings it along."""
    drawn = TextPath((0, 0), text, size=10, prop=FontProperties(family="DejaVu Sans"))
    assert drawn.get_extents().width <= width_of(text, 10) <= 2 * drawn.get_extents().width


def test_a_box_has_a_name_on_the_page():
    named = Sketch((20, 20), (box((2, 10), (5, 4), "panel", "ink", "node3"),)).svg()
    assert '<path data-lens="node3" class="node3" d="M2 8h5v4h-5z' in named
    assert "data-lens" not in Sketch((20, 20), (box((2, 10), (5, 4), "panel", "ink"),)).svg()


def test_a_path_goes_through_its_points():
    """Places are written as distances, which must not add up to an error."""
    points = [(k * 1.37, 50 + 40 * math.sin(k)) for k in range(200)]
    points += [points[-1], (300.04, points[-1][1]), (300.04, 0.0)]
    x = y = 0.0
    reached = []
    for letter, numbers in re.findall(r"([Mlhv])([-.\d ]+)", path_of(points)):
        a, b = ([float(n) for n in re.findall(r"-?[\d.]+", numbers)] + [0.0])[:2]
        if letter == "M":
            x, y = a, b
        else:
            x, y = x + (a if letter in "lh" else 0), y + {"l": b, "h": 0, "v": a}[letter]
        reached.append((x, y))
    assert len(reached) == len(points) - 1, "a place that is there twice is one"
    del points[200]
    for there, point in zip(reached, points, strict=True):
        assert there == pytest.approx(point, abs=0.051)
