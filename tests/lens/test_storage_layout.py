"""A layout against the addresses themselves, on random chains of views."""

import re
from collections import Counter
from functools import partial
from html import unescape
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.testing._internal.two_tensor import TwoTensor

import autograd_lens as lens
from autograd_lens.layouts import tensors
from autograd_lens.layouts.readers import all_readers_at, distinct, readers_at
from autograd_lens.view.storage_layout_text import CELLS, all_shown
from autograd_lens.view.theme import light


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


@pytest.mark.large("the cells of large layouts are compared with the addresses in a window")
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
    pair = chain[-2:]
    layout = lens.storage_layout(*pair)
    for cell in (cell for cells in all_shown(layout) for cell in cells):
        for k, readers in cell.readers.items():
            at = {i: address(pair[k], i) for i in product(*map(range, pair[k].shape))}
            there = [index for index, offset in at.items() if offset == cell.number]
            assert (list(readers.indices), readers.number) == (there[:3], len(there))
            found = layout.readers(cell.number, cell.storage)
            assert [index for number, index in found if number == k] == there


any_strides = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=4)
"""Sizes and strides: `as_strided` makes layouts that no chain of views does."""


@settings(max_examples=300)
@given(any_strides)
def test_distinct_counts_any_strides(pairs):
    shape, stride = tuple(n for n, _ in pairs), tuple(s for _, s in pairs)
    places = {
        sum(i * s for i, s in zip(index, stride, strict=True))
        for index in product(*map(range, shape))
    }
    assert distinct(shape, stride) == len(places)


@settings(max_examples=300)
@given(any_strides)
def test_the_readers_of_every_address(pairs):
    shape, stride = tuple(n for n, _ in pairs), tuple(s for _, s in pairs)
    there = {}
    for index in product(*map(range, shape)):
        at = sum(i * s for i, s in zip(index, stride, strict=True))
        there.setdefault(at, []).append(index)
    for at in range(-1, max(there, default=0) + 2):
        expected = there.get(at, [])
        found = readers_at(shape, stride, at)
        assert (list(found.indices), found.number) == (expected[:3], len(expected))
        assert all_readers_at(shape, stride, at) == expected


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


def other_storages():
    """Ways in which a tensor gets a storage of its own over a part of another one's memory."""
    whole = torch.arange(8.0)
    shared = np.arange(8.0, dtype=np.float32)
    data = bytearray(np.arange(8.0, dtype=np.float32))
    from_bytes = partial(torch.frombuffer, data, dtype=torch.float32)
    return {
        "numpy": (torch.from_numpy(shared), torch.from_numpy(shared[2:])),
        "dlpack": (whole, torch.from_dlpack(whole[2:])),
        "buffer": (from_bytes(), from_bytes(offset=8)),
        "numpy, the part first": (torch.from_numpy(shared[2:]), torch.from_numpy(shared)),
        "neither is whole": (torch.from_numpy(shared[:6]), torch.from_numpy(shared[2:])),
    }


@pytest.mark.parametrize("how", other_storages())
def test_storages_over_one_memory_are_one(how):
    one, other = other_storages()[how]
    layout = lens.storage_layout(one, other)
    assert layout.shares(0, 1) and [s.cells for s in layout.storages] == [8]
    first = min(one.data_ptr(), other.data_ptr())
    for k, tensor in enumerate((one, other)):
        for i in range(len(tensor)):
            cell = (tensor[i].data_ptr() - first) // 4
            assert layout.cells_of(i, k) == range(cell, cell + 1)
            assert (k, (i,)) in layout.readers(cell)
        assert [layout.tensors[k].values[i,] for i in range(len(tensor))] == [
            f"{value:.4g}" for value in tensor.tolist()
        ]
    assert str(layout).count("in a storage of its own that begins at cell 2") == 1


def test_storages_side_by_side_are_two():
    memory = np.arange(8.0, dtype=np.float32)
    halves = torch.from_numpy(memory[:4]), torch.from_numpy(memory[4:])
    layout = lens.storage_layout(*halves)
    assert not layout.shares(0, 1) and [s.cells for s in layout.storages] == [4, 4]


def test_an_element_that_begins_within_another_one():
    """Bytes 1 to 4 as a number: cells are single bytes then."""
    data = bytearray(range(8))
    whole = torch.frombuffer(data, dtype=torch.int32)
    layout = lens.storage_layout(whole, torch.frombuffer(data, dtype=torch.uint8, offset=1))
    assert layout.storages[0].cell == 1 and layout.cells_of(0, 1) == range(1, 2)
    assert layout.readers(4) == [(0, (1,)), (1, (3,))]


def test_nothing_is_read_beyond_the_end_of_a_storage(monkeypatch):
    x = torch.arange(8.0)
    x.untyped_storage().resize_(8)
    seen = []
    monkeypatch.setattr(tensors, "in_memory", lambda t, read=tensors.in_memory: keep(seen, read(t)))
    layout = lens.storage_layout(x)
    assert [memory.tolist() for memory in seen] == [[0.0, 1.0]]
    assert layout.tensors[0].values == {(0,): "0", (1,): "1"}
    assert "it reaches element 7, and its storage ends after 2 elements" in str(layout)
    assert str(layout).endswith("     1      1         1")
    assert layout.readers(1) == [(0, (1,))]


def keep(seen, value):
    seen.append(value)
    return value


def test_elements_beyond_the_end_have_a_question_mark_for_a_value():
    x = torch.arange(8.0)
    x.untyped_storage().resize_(8)
    svg = picture(lens.storage_layout(x))
    texts = Counter(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert texts["?"] == 6 and texts["@7"] == 1


def test_the_picture_says_where_a_storage_begins_and_how_a_tensor_is_read():
    memory = np.arange(5.0, 9.0, dtype=np.float32)
    svg = picture(
        lens.storage_layout(
            torch.from_numpy(memory), torch.from_numpy(memory[1:]), torch.tensor([1j]).conj()
        )
    )
    assert [unescape(said) for said in re.findall(r">strides ([^<]*)</text>", svg)] == [
        "(1,)",
        "(1,), from cell 1",
        "(1,), read conjugated",
    ]


def bits():
    c = torch.tensor([1 + 2j, 3 - 4j])
    return {
        "conj": (c.conj(), "conjugated", ["1+2j", "3-4j"]),
        "imag of conj": (c.conj().imag, "negated", ["2", "-4"]),
        "neg": (torch._neg_view(c), "negated", ["1+2j", "3-4j"]),
        "both": (torch._neg_view(c).conj(), "negated and conjugated", ["1+2j", "3-4j"]),
        "none": (c.conj().resolve_conj(), "", ["1-2j", "3+4j"]),
    }


@pytest.mark.parametrize("which", bits())
def test_values_are_those_in_memory_and_the_bits_are_said(which):
    tensor, words, values = bits()[which]
    layout = lens.storage_layout(tensor)
    assert list(layout.tensors[0].values.values()) == values
    assert layout.tensors[0].reads == words
    assert ("it reads every element" in str(layout)) == bool(words) and words in str(layout)


def test_bytes_are_other_numbers_in_another_dtype():
    x = torch.tensor([1.0, 2.0])
    text = str(lens.storage_layout(x, x.view(torch.int32)))
    assert "cell  value as float32  value as int32" in text
    assert re.search(r"^ +0 +1 +1065353216 +0 +0$", text, re.M)


DTYPES = sorted({str(d) for d in vars(torch).values() if isinstance(d, torch.dtype)})


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_shown_with_its_values_or_without(name):
    dtype = getattr(torch, name.removeprefix("torch."))
    tensor = torch.empty(2, dtype=dtype)
    if tensor.untyped_storage().nbytes() < 2 * tensor.element_size():
        with pytest.raises(TypeError, match="share a byte.* Pass tensor.int_repr"):
            lens.storage_layout(tensor)
        return
    text = str(lens.storage_layout(tensor))
    assert ("value " in text) == (f"values of {name[6:]} can't be shown" not in text)
    assert len(text.splitlines()) == 5
    plain = {"bool", "int64", "uint8", "float32", "bfloat16", "complex64", "float8_e5m2"}
    assert "value " in text or name[6:] not in plain


def test_the_text_says_what_the_cells_hold():
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


def test_every_index_and_every_cell_of_a_small_tensor_is_drawn():
    x = torch.arange(10.0, 22.0).reshape(3, 4)
    svg = picture(lens.storage_layout(x, x.t()[1:], names={"x": x}))
    texts = Counter(unescape(t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    for i, j in product(range(3), range(4)):
        assert texts[f"{i},{j}"] >= 1  # in the strip
        assert texts[f"@{4 * i + j}"] >= 1 and texts[str(10 + 4 * i + j)] >= 1  # in the grid
    assert texts["·"] == 3  # the cells of x[:, 0], which the second tensor does not read


def test_where_all_values_are_their_places_each_is_said_once():
    def texts(tensor):
        found = re.findall(r"<text[^>]*>([^<]*)</text>", picture(lens.storage_layout(tensor)))
        return Counter(map(unescape, found))

    alike = texts(torch.arange(6.0).reshape(2, 3))
    assert not [text for text in alike if "@" in text]
    assert any("values = places" in text for text in alike)
    other = torch.arange(6.0)
    other[2] = 7
    differing = texts(other)
    assert differing["@2"] == differing["7"] == 1
    assert not differing["@3"] and any("values = places or @" in text for text in differing)
    assert not any("values" in text for text in texts(torch.arange(1.0, 7.0)))


def test_an_element_read_twice_is_marked():
    once = picture(lens.storage_layout(torch.arange(3.0)))
    twice = lens.storage_layout(torch.arange(4.0).unfold(0, 2, 1))
    assert light("error") not in once
    assert light("error") in picture(twice)
    assert "error" in twice.figure().legend


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


class Plain(torch.Tensor):
    pass


class PlainParameter(torch.nn.Parameter):
    pass


def freed():
    x = torch.zeros(2)
    x.untyped_storage().resize_(0)
    return x


def fake():
    with FakeTensorMode():
        return torch.zeros(2)


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda: [1], TypeError, "argument 0 must be a tensor, not list"),
        (lambda: torch.eye(2).to_sparse(), TypeError, "sparse_coo.*tensor.to_dense"),
        (lambda: torch.eye(2).to_mkldnn(), TypeError, "_mkldnn.*oneDNN.*Pass tensor.to_dense"),
        (lambda: torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)]), TypeError, "unbind"),
        (lambda: torch.zeros(2, device="meta"), TypeError, "meta tensor"),
        (fake, TypeError, "a FakeTensor, which stands for other tensors or for none"),
        (lambda: torch.nn.LazyLinear(2).weight, TypeError, "no memory yet: run its module"),
        (lambda: torch.zeros(2).as_subclass(Plain), TypeError, r"a Plain.*as_subclass\(torch.Ten"),
        (lambda: PlainParameter(torch.zeros(2)), TypeError, "a PlainParameter.*as_subclass"),
        (lambda: TwoTensor(torch.zeros(2), torch.ones(2)), TypeError, "the tensors that it is ma"),
        (lambda: torch._to_functional_tensor(torch.zeros(2)), TypeError, "functionalization"),
        (freed, ValueError, r"storage was freed.*Pass it before"),
        (lambda: torch.zeros(1, 1, 1, 1, 1), ValueError, "5 dimensions"),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_has_no_layout(make, error, phrase):
    with pytest.raises(error, match=phrase):
        lens.storage_layout(make())


@pytest.mark.parametrize(
    "transform",
    [torch.vmap, torch.func.grad, torch.func.functionalize, torch.func.jacfwd, torch.func.jacrev],
)
def test_inside_a_transform_there_is_no_memory(transform):
    def function(x):
        with pytest.raises(TypeError, match="Pass that one, outside the function"):
            lens.storage_layout(x)
        return x.sum()

    transform(function)(torch.ones(2, 3))


def test_a_plain_tensor_among_fake_ones_is_refused():
    x = torch.zeros(2)
    with FakeTensorMode(), pytest.raises(TypeError, match="Call storage_layout outside of it"):
        lens.storage_layout(x)


@pytest.mark.parametrize(
    "watch", [torch.no_grad, torch.inference_mode, lambda: torch.device("meta")]
)
def test_modes_in_which_memory_is_read_as_ever(watch):
    x = torch.arange(2.0, requires_grad=True)
    expected = str(lens.storage_layout(x))
    with watch():
        assert str(lens.storage_layout(x)) == expected


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: lens.storage_layout(x, start=1.5), TypeError, "start must be an integer"),
        (lambda x: lens.storage_layout(x, start=True), TypeError, "start must be an integer"),
        (lambda x: lens.storage_layout(x, start="1"), TypeError, "start must be an integer"),
        (lambda x: lens.storage_layout(x, note=5), TypeError, "note must be a text, not 5"),
        (lambda x: lens.storage_layout(x).readers("a"), TypeError, "cell must be an integer"),
        (lambda x: lens.storage_layout(x).readers(1.0), TypeError, "cell must be an integer"),
        (lambda x: lens.storage_layout(x).readers(0, "a"), TypeError, "storage must be an int"),
        (lambda x: lens.storage_layout(x).readers(4), IndexError, "4 cells in storage 0; 4 is not"),
        (lambda x: lens.storage_layout(x).readers(0, 1), IndexError, "1 storages; 1 is not"),
        (lambda x: lens.storage_layout(x).offset_of("a"), TypeError, "an index must be an integer"),
        (lambda x: lens.storage_layout(x).offset_of(1.5), TypeError, "an index must be an integer"),
        (lambda x: lens.storage_layout(x).tensors[0].offset_of("a"), TypeError, "must be an int"),
        (lambda x: lens.storage_layout(x).cells_of(0, 5), IndexError, "5 is not among them"),
        (lambda x: lens.storage_layout(x).shares(0, -1), IndexError, "-1 is not among them"),
    ],
)
def test_what_is_no_cell_no_index_and_no_note(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.zeros(4))


def test_whole_numbers_of_other_libraries_are_indices():
    layout = lens.storage_layout(torch.zeros(100), start=np.int64(3))
    assert layout.offset_of(np.int64(2)) == layout.offset_of(torch.tensor([2])) == 2


@pytest.mark.parametrize("start", [0, 500, 99_960, 12_345])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x.view(10, 10, 10, 100).permute(3, 1, 0, 2),
        lambda x: x.flatten().unfold(0, 300, 7),
        lambda x: x.flatten()[3:].unfold(0, 30, 1).unfold(0, 20, 5),
        lambda x: x.t()[::3, 7:],
        lambda x: x[:, :, None].expand(-1, -1, 500),
        lambda x: x.view(torch.int16).t(),
    ],
)
def test_in_a_window_every_cell_is_read_by_whom_the_addresses_say(view, start):
    """Of a tensor as large as one likes: the indices are looked up in a tensor of addresses."""
    x = torch.zeros(100, 1000)
    y = view(x)
    layout = lens.storage_layout(x, y, start=start)
    (cells,) = all_shown(layout)
    assert cells[0].number == start
    numbers = torch.arange(100_000 * (x.element_size() // y.element_size()), dtype=torch.int64)
    offsets = numbers.as_strided(y.shape, y.stride(), y.storage_offset())
    wide = y.element_size() // layout.storages[0].cell
    for cell in cells[::9]:
        there = (offsets == cell.number // wide).nonzero().tolist()
        assert cell.readers[1].number == len(there)
        assert [list(index) for index in cell.readers[1].indices] == there[:3]


def test_every_index_of_a_huge_expanded_tensor_is_counted_and_none_is_looked_at():
    """As many indices as nobody can go through: this test ends, or the work is not bounded."""
    huge = torch.zeros(1).expand(1 << 20, 1 << 20, 1 << 10, 1 << 10)
    layout = lens.storage_layout(huge)
    assert str(layout).endswith("0,0,0,0 0,0,0,1 0,0,0,2 +1,152,921,504,606,846,973")
    assert "1 element, 1,152,921,504,606,846,975 read again" in str(layout)
    assert len(layout._repr_mimebundle_()["text/html"]) < 1 << 20


def test_how_many_more_read_a_cell():
    text = str(lens.storage_layout(torch.zeros(4).expand(1000, 4)))
    assert text.count("+997") == 4


@pytest.mark.large("more readers than are shown are counted, or said to be more, in small layouts")
def test_what_is_too_much_to_count_is_said_to_be_more():
    windows = torch.zeros(40_000).as_strided((10_000,) * 4, (1,) * 4)
    layout = lens.storage_layout(windows, start=30_000)
    assert re.search(r"^ +30000 +\d+,\S+ \d+,\S+ \d+,\S+ and more$", str(layout), re.M)
    assert "error" in layout.figure().legend


def test_start_is_no_part_of_what_is_known():
    x = torch.zeros(1000)
    plain, moved = lens.storage_layout(x), lens.storage_layout(x, start=500)
    assert plain == moved and str(plain) != str(moved)
    assert "start" not in vars(moved)


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


def test_how_it_is_drawn_is_no_part_of_what_is_known():
    x = torch.zeros(100)
    plain, drawn = lens.storage_layout(x), lens.storage_layout(x, start=7)
    assert plain == drawn and str(plain) != str(drawn)
    assert set(vars(plain)) == {"tensors", "storages", "note", "drawing"}
