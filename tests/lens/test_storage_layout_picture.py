"""The drawing of a storage layout: one set of columns, on a phone and on a desk."""

import pytest
import torch
from text_boxes import boxes, misplaced

import autograd_lens as lens
from autograd_lens.view.sketch import Area, Words
from autograd_lens.view.storage_layout_picture import GAP, NARROW, WIDE


def made():
    """Layouts as in the book, and ones whose texts are long."""
    x = torch.arange(12).reshape(3, 4)
    row, cube = torch.arange(6.0), torch.arange(8).reshape(2, 2, 2)
    image = torch.arange(24).reshape(2, 3, 2, 2)
    weight = torch.linspace(-1, 1, 24).reshape(4, 6)
    return {
        "view": (x, x[1:, 1::2]),
        "parts": (row, row[:3], row[3:]),
        "two storages": (cube, cube.transpose(0, 1).contiguous()),
        "broadcast": (torch.arange(3).reshape(3, 1).expand(3, 2), torch.arange(2).expand(3, 2)),
        "image": (image.contiguous(memory_format=torch.channels_last),),
        "long values": (weight, weight.t()[1:3]),
        "complex": (torch.tensor([1e10 - 2.5e-9j, 3 + 4j]),),
        "no dimension": (torch.tensor(3.0),),
        "empty": (torch.zeros(2, 0, 3),),
        "many readers": (torch.zeros(1).expand(1 << 20, 1 << 20),),
        "large": (torch.zeros(50, 60, 70)[:, ::2],),
        "long name": (torch.zeros(2, 3),),
    }


def pictures(case):
    tensors = made()[case]
    names = {"transformer.layers.11.norm2.weight": tensors[0]} if case == "long name" else None
    [frame] = lens.storage_layout(*tensors, names=names).figure().frames()
    return frame.picture, frame.picture.wide


def cells(picture):
    """Left and right end of every cell, in points."""
    found = []
    for mark in picture.marks:
        if isinstance(mark, Area):
            xs = [x for x, _ in mark.points]
            found.append((min(xs), max(xs)))
    return found


@pytest.mark.parametrize("case", made())
def test_all_blocks_stand_on_the_same_columns(case):
    for picture in pictures(case):
        ends = cells(picture)
        starts = [mark.at[0] for mark in picture.marks if getattr(mark, "anchor", "") == "start"]
        left = min(starts)
        widest = max((right - x for x, right in ends), default=0) + GAP
        for x, right in ends:
            per_column = round(widest / (right - x + GAP))  # a cell may be a half or a third
            assert (right - x + GAP) * per_column == pytest.approx(widest)
            assert (x - left) * per_column / widest == pytest.approx(
                round((x - left) * per_column / widest)
            )
        for x in starts:  # titles, and what stands above a plane
            assert (x - left) / max(widest, 1) == pytest.approx(round((x - left) / max(widest, 1)))
        assert not ends or min(x for x, _ in ends) == left


@pytest.mark.parametrize("case", ["view", "parts", "two storages", "broadcast", "image"])
def test_a_cell_of_the_storage_is_as_wide_as_an_element(case):
    for picture in pictures(case):
        assert len({round(right - x, 6) for x, right in cells(picture)}) == 1


@pytest.mark.parametrize("case", made())
def test_no_text_leaves_the_picture_or_its_cell_or_meets_another(case):
    for picture in pictures(case):
        assert misplaced(picture) == []
        ends = cells(picture)
        inside = [m for m in picture.marks if isinstance(m, Words) and m.anchor == "middle"]
        for box in boxes(type(picture)(picture.size, tuple(inside))):
            middle = (box.left + box.right) / 2
            around = [(x, right) for x, right in ends if x < middle < right]
            if around and box.text not in ("·", "…"):
                assert any(x <= box.left and box.right <= right for x, right in around)


@pytest.mark.parametrize("case", sorted(set(made()) - {"long values"}))
def test_what_fits_in_fewer_columns_does_not_scroll(case):
    narrow, wide = pictures(case)
    assert narrow.size[0] <= NARROW.width + 2
    assert wide.size[0] <= WIDE.width + 2


def test_a_storage_wraps_into_lines_of_nearly_one_length_on_a_phone():
    numbers = [str(k) for k in range(12)]

    def lines(picture):
        found = {}
        for mark in picture.marks:
            if isinstance(mark, Words) and mark.role == "muted" and mark.text in numbers:
                found.setdefault(mark.at[1], []).append(mark.text)
        return list(found.values())

    narrow, wide = pictures("view")
    assert lines(wide) == [numbers]
    assert lines(narrow) == [numbers[:6], numbers[6:]]


def test_the_grids_of_tensors_stand_beside_each_other_where_there_is_room():
    def heights(picture):
        return [m.at[1] for m in picture.marks if getattr(m, "text", "").startswith("strides")]

    narrow, wide = pictures("view")
    assert len(set(heights(wide))) == 1
    assert len(set(heights(narrow))) == 2


def test_both_layouts_say_the_same():
    def texts(picture):
        said = (mark.text for mark in picture.marks if isinstance(mark, Words))
        return {word for text in said for word in text.split()}

    narrow, wide = pictures("image")
    assert texts(narrow) == texts(wide)
