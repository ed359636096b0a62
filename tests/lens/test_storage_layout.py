"""A layout against the addresses themselves, on random chains of views."""

import re
from collections import Counter
from html import unescape
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import elements
from torch.multiprocessing.reductions import StorageWeakRef

import autograd_lens as lens
from autograd_lens.layouts import _distinct
from autograd_lens.view.draw_storage_layout import CELLS, readers
from autograd_lens.view.theme import light

dot = pytest.mark.needs("dot")


def address(tensor, index):
    """Elements from the start of the storage, from the address of the element itself."""
    start = tensor.untyped_storage().data_ptr()
    return (tensor[index].data_ptr() - start) // tensor.element_size()


@st.composite
def views(draw):
    """A tensor and a chain of views of it, of at most four dimensions and few elements."""
    shape = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    dtype = draw(st.sampled_from([torch.float32, torch.int64, torch.complex64, torch.bool]))
    base = torch.zeros(shape, dtype=dtype)
    if len(shape) == 4 and draw(st.booleans()):
        base = base.contiguous(memory_format=torch.channels_last)
    chain = [base]
    for _ in range(draw(st.integers(0, 4))):
        chain.append(step(draw, chain[-1]))
    return chain


def step(draw, x):
    """One random operation that gives a view of `x`."""
    d = x.dim()
    kinds = ["unsqueeze"] * (d < 4) + ["expand"] * (d < 4)
    kinds += ["select", "slice", "unfold"] * (d > 0) + ["transpose", "diagonal"] * (d > 1)
    kind = draw(st.sampled_from(kinds or ["alias"]))
    dim = draw(st.integers(0, max(d - 1, 0)))
    size = x.shape[dim] if d else 0
    if kind == "unsqueeze":
        return x.unsqueeze(draw(st.integers(0, d)))
    if kind == "expand":
        return x.expand(draw(st.integers(1, 3)), *x.shape)
    if kind == "select" and size:
        return x.select(dim, draw(st.integers(0, size - 1)))
    if kind == "slice":
        start = draw(st.integers(0, size))
        stop, by = draw(st.integers(start, size)), draw(st.integers(1, 3))
        return x[(slice(None),) * dim + (slice(start, stop, by),)]
    if kind == "unfold" and size and d < 4:
        window = draw(st.integers(1, size))
        return x.unfold(dim, window, draw(st.integers(1, 2)))
    if kind == "transpose":
        return x.transpose(dim, draw(st.integers(0, d - 1)))
    if kind == "diagonal":
        return x.diagonal(draw(st.integers(-1, 1)))
    return x[...]


@settings(max_examples=1000)
@given(views())
def test_offsets_are_those_of_the_addresses(chain):
    layout = lens.storage_layout(*chain)
    for number, (view, tensor) in enumerate(zip(layout.tensors, chain, strict=True)):
        at = {index: address(tensor, index) for index in product(*map(range, tensor.shape))}
        assert {i: layout.offset_of(i, number) for i in view.indices()} == at
        cells = Counter(at.values())
        assert view.distinct == len(cells)
        assert view.overlaps == any(n > 1 for n in cells.values())
        span = range(min(cells), max(cells) + 1) if cells else range(0)
        assert view.holes == sum(cell not in cells for cell in span)
        assert view.contiguous == tensor.is_contiguous()
        # An empty tensor may lie in no memory at all; any other one shares its parent's.
        if tensor.numel():
            assert layout.shares(0, number)


@settings(max_examples=200)
@given(views())
def test_the_picture_says_of_every_cell_who_reads_it(chain):
    layout = lens.storage_layout(*chain[-2:])
    for (storage, cell), found in readers(layout).items():
        assert sorted(found) == sorted(layout.readers(cell, storage))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), max_size=4))
def test_distinct_counts_any_strides(pairs):
    """`as_strided` makes layouts that no chain of views does."""
    shape, stride = tuple(n for n, _ in pairs), tuple(s for _, s in pairs)
    places = {
        sum(i * s for i, s in zip(index, stride, strict=True))
        for index in product(*map(range, shape))
    }
    assert _distinct(shape, stride) == len(places)


def test_too_many_overlapping_elements_are_not_counted():
    huge = torch.zeros(1).expand(1 << 20, 1 << 12)  # stride 0: known without counting
    assert lens.storage_layout(huge).tensors[0].distinct == 1
    windows = torch.zeros(1 << 21).as_strided((1 << 20, 16), (1, 1))
    view = lens.storage_layout(windows)
    assert (view.tensors[0].overlaps, view.tensors[0].holes) == (None, None)
    assert "it spans 1,048,591 elements" in str(view)


def test_sharing_is_seen_from_the_storage():
    x = torch.arange(6.0)
    layout = lens.storage_layout(x, x[3:], x.clone(), x.detach(), names={"x": x})
    assert [t.name for t in layout.tensors] == ["x", "tensor 1", "tensor 2", "tensor 3"]
    assert [layout.shares(0, k) for k in range(4)] == [True, True, False, True]
    x[4] = 40.0  # one name writes, the others read
    assert [t[k] for t, k in ((x[3:], 1), (x.detach(), 4))] == [40.0, 40.0]


def test_memory_shared_through_numpy_is_one_storage():
    x = torch.arange(4.0)
    layout = lens.storage_layout(x, torch.from_numpy(x.numpy()), torch.from_numpy(x.numpy()[:2]))
    assert [layout.shares(0, k) for k in (1, 2)] == [True, True]
    assert [s.cells for s in layout.storages] == [4]


def test_the_twin_says_what_the_cells_hold():
    x = torch.tensor([1.5, 2.0, float("nan"), 4.0])
    assert "cell  value  tensor 0\n     0    1.5         0\n" in str(lens.storage_layout(x))
    assert re.search(r"^ +1 +- +-$", str(lens.storage_layout(x[::2])), re.M)  # a hole: not read
    assert "value" not in str(lens.storage_layout(torch.zeros(1000)))
    wide = str(lens.storage_layout(x, x.view(torch.int16)))
    assert "value" in wide and "1.5" not in wide  # a float fills two cells


def test_a_wider_dtype_covers_several_cells():
    x = torch.zeros(2, 2)
    layout = lens.storage_layout(x, x.view(torch.int16))
    assert layout.storages[0].cell == 2 and layout.storages[0].cells == 8
    assert layout.offset_of((1, 0)) == 2 and layout.cells_of((1, 0)) == range(4, 6)
    assert layout.readers(5) == [(0, (1, 0)), (1, (1, 1))]


def test_formats():
    image = torch.zeros(2, 3, 4, 4)
    last = image.contiguous(memory_format=torch.channels_last)
    both = torch.zeros(2, 1, 4, 4)  # one channel: the two orders are the same
    layout = lens.storage_layout(image, last, both, image.flip(0)[:, :, ::2])
    found = [t.formats for t in layout.tensors]
    assert found == [("contiguous",), ("channels_last",), ("contiguous", "channels_last"), ()]


def test_negative_indices_and_wrong_ones():
    layout = lens.storage_layout(torch.zeros(3, 4))
    assert layout.offset_of((-1, -1)) == layout.offset_of((2, 3)) == 11
    assert lens.storage_layout(torch.zeros(3)).offset_of(2) == 2
    for index, phrase in (((0,), "2 dimensions, not 1"), ((3, 0), "out of range")):
        with pytest.raises(IndexError, match=phrase):
            layout.offset_of(index)
    with pytest.raises(IndexError, match="1 tensors; 1 is not"):
        layout.offset_of((0, 0), 1)


def picture(layout):
    [frame] = layout.figure().frames()
    return frame.picture.svg()


@dot
def test_every_index_and_every_cell_of_a_small_tensor_is_drawn():
    x = torch.arange(10.0, 22.0).reshape(3, 4)
    svg = picture(lens.storage_layout(x, x.t()[1:], names={"x": x}))
    texts = Counter(unescape(t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    for i, j in product(range(3), range(4)):
        assert texts[f"{i},{j}"] >= 1  # in the strip
        assert texts[f"@{4 * i + j}"] >= 1 and texts[str(10 + 4 * i + j)] >= 1  # in the grid
    assert texts["·"] == 3  # the cells of x[:, 0], which the second tensor does not read
    assert elements(svg) == {"node0": {"storage"}, "node1": {"grid"}, "node2": {"grid"}}


@dot
def test_an_element_read_twice_is_marked():
    once = picture(lens.storage_layout(torch.arange(3.0)))
    twice = lens.storage_layout(torch.arange(4.0).unfold(0, 2, 1))
    assert light("error") not in once
    assert light("error") in picture(twice)
    assert "error" in twice.figure().legend


@dot
@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.0),
        torch.zeros(0),
        torch.zeros(2, 0, 3),
        torch.zeros(3, 1, 2, 2).expand(3, 4, 2, 2),
        torch.zeros(50, 60, 70)[:, ::2],
        torch.zeros(1 << 16)[60000:],
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([True]),
        torch.zeros(2, dtype=torch.bfloat16),
    ],
    ids=lambda t: f"{tuple(t.shape)}-{t.dtype}",
)
def test_edges_are_drawn(tensor):
    layout = lens.storage_layout(tensor)
    assert "<svg" in picture(layout)
    shown = min(layout.storages[0].cells, CELLS)
    assert len(str(layout).splitlines()) == 3 + shown


def test_a_window_into_a_large_storage():
    x = torch.zeros(1000)
    assert "1,000 cells of 4 bytes, 0 to 47 shown" in str(lens.storage_layout(x))
    text = str(lens.storage_layout(x[10:], start=500))
    assert "500 to 547 shown" in text and re.search(r"^ +500 +490$", text, re.M)
    assert "900" in str(lens.storage_layout(x.as_strided((2,), (1,), 900)))  # where it is read


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda: [1], TypeError, "argument 0 must be a tensor, not list"),
        (lambda: torch.eye(2).to_sparse(), TypeError, "sparse_coo"),
        (lambda: torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)]), TypeError, "nested"),
        (lambda: torch.zeros(2, device="meta"), TypeError, "meta tensor"),
        (lambda: torch.zeros(1, 1, 1, 1, 1), ValueError, "5 dimensions"),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_has_no_layout(make, error, phrase):
    with pytest.raises(error, match=phrase):
        lens.storage_layout(make())


@pytest.mark.parametrize("start", [-1, 3])
def test_a_start_outside_the_storage(start):
    with pytest.raises(ValueError, match="a cell from 0 to 2"):
        lens.storage_layout(torch.zeros(3), start=start)


def test_it_keeps_no_tensor_and_writes_nothing():
    x = torch.arange(4.0, requires_grad=True)
    version, storage = x._version, StorageWeakRef(x.untyped_storage())
    layout = lens.storage_layout(x, names={"x": x})
    assert x._version == version and not storage.expired()
    del x
    assert storage.expired() and layout.tensors[0].name == "x"
