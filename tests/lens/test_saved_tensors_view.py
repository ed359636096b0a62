"""The ledger's text and pictures hold to its data."""

import re
from dataclasses import replace
from html import unescape

import pytest
import torch
from allocations import judge
from independent import elements
from ledger_cases import EVERY, MODELS

import autograd_lens as lens
from autograd_lens.ledger.saved_tensors import SavedTensors
from autograd_lens.view.draw_saved_tensors import BAR, MOST_ROWS
from autograd_lens.view.theme import COLOURS, follow_theme

dot = pytest.mark.needs("dot")


def ledger(name):
    def look(nodes, names, inputs):
        return lens.saved_tensors(nodes, names, inputs=inputs)

    return judge(EVERY[name], look).result


def stale():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    z = (y * 2).sum()
    y.add_(1)
    return lens.saved_tensors(z, {"x": x})


def words_in(svg):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def test_the_text_is_the_same_every_time_and_bounded():
    texts = [str(ledger("transformer")) for _ in range(2)]
    assert texts[0] == texts[1]
    assert "0x" not in texts[0]
    for view in (ledger("transformer"), ledger("convolutions")):
        for shown in (view, view.sorted(), view.by_module(), view.by_node_kind()):
            assert len(str(shown).encode()) < 4000
    lines = texts[0].splitlines()
    assert len(lines) == 1 + 1 + MOST_ROWS + 1
    view = ledger("transformer")
    by_size = view.sorted().entries  # of equal ones the first of the graph
    rest = by_size[MOST_ROWS:]
    shown = {n for e in by_size[:MOST_ROWS] for n in e.storages}
    more = sum(view.storages[n] for n in {n for e in rest for n in e.storages} - shown)
    most = f"… {len(rest)} more rows of at most {rest[0].storage_bytes:,} B each"
    assert lines[-1] == f"{most}, which keep {more:,} B more"


@pytest.mark.parametrize("name", ["toy", "mlp", "tensors_on_ctx", "checkpoint_not_reentrant"])
def test_a_line_says_what_its_entry_is(name):
    view = ledger(name)
    lines = str(view).splitlines()[2:]
    assert len(lines) == len(view.entries)
    for line, entry in zip(lines, view.entries, strict=True):
        assert line.startswith(f"{entry.node} {entry.label}")
        assert re.search(rf"\s{entry.bytes:,}\s+{entry.role}\b", line)
        assert f" {entry.field} " in line
        assert (f"keeps {entry.storage_bytes:,} B" in line) == (entry.storage_bytes != entry.bytes)
        assert (str(entry.shape) if entry.shape is not None else f"packed as {entry.kind}") in line
        assert entry.owner is None or entry.owner in line


def test_shared_storages_are_said():
    line = next(line for line in str(ledger("mlp")).splitlines() if "same storage" in line)
    assert re.search(r"ReluBackward0 +result .* same storage as \d+ mat1$", line)


@dot
@pytest.mark.parametrize("make", [lambda: ledger("mlp"), stale, lambda: ledger("lstm")])
def test_the_picture_shows_every_cell_of_the_text(make):
    view = make()
    (frame,) = view.figure().frames()
    svg = frame.picture.svg()
    assert elements(svg) == {"node0": {"ledger"}}
    drawn = words_in(svg)
    for entry in view.entries[:MOST_ROWS]:
        assert f"{entry.node} {entry.label}" in drawn
        assert drawn.count(entry.field) >= 1 and entry.role in drawn
    roles = {e.role for e in view.entries[:MOST_ROWS]}
    for role, colour in ("activation", "saved"), ("parameter", "parameter"):
        assert (f'fill="{COLOURS[f"{colour}-fill"][0]}"' in svg) == (role in roles)
    assert follow_theme(svg)


@dot
def test_what_was_changed_is_red_and_said():
    view = stale()
    svg = view.figure().draw().picture.svg()
    red = COLOURS["error"][0]
    (line,) = re.findall(rf'<text[^>]*fill="{red}"[^>]*>(CHANGED[^<]*)<', svg)
    assert line == "CHANGED: this node will raise"
    assert view.figure().legend["error"] == "changed since it was saved"
    assert red not in ledger("toy").figure().draw().picture.svg()


@dot
def test_bars_are_as_long_as_bytes():
    groups = ledger("mlp").by_node_kind()
    svg = groups.figure().draw().picture.svg()
    pieces = {role: [] for role in ("saved", "parameter")}
    for role, found in pieces.items():
        fill = COLOURS[f"{role}-fill"][0]
        for points in re.findall(rf'<polygon fill="{fill}"[^>]*points="([^"]*)"', svg):
            xs = [float(point.split(",")[0]) for point in points.split()]
            found.append(max(xs) - min(xs))
    largest = groups.groups[0].bytes
    expected = [
        g.by_role["activation"] / largest for g in groups.groups if "activation" in g.by_role
    ]
    assert [w / BAR for w in pieces["saved"]] == pytest.approx(expected, abs=0.03)
    assert set(words_in(svg)) >= {g.key for g in groups.groups}


def test_an_empty_ledger_shows_itself():
    view = lens.saved_tensors(torch.ones(2, requires_grad=True).sum())
    first, second = str(view).splitlines()
    assert first == "0 saved tensors of 2 nodes; keeps 0 B in 0 storages"
    assert second == "no node saved a tensor"
    assert view.figure().draw().picture is None
    assert view.by_node_kind()._repr_mimebundle_()["text/html"]


def test_opaque_nodes_are_named():
    text = str(ledger("in_place_on_a_view"))
    assert "opaque: CopySlices (node 1, 2) shows nothing of what it saved" in text


@pytest.mark.parametrize("name", MODELS)
def test_it_makes_a_page(name, monkeypatch):
    """Without Graphviz, which only files need."""
    monkeypatch.setenv("PATH", "")
    view = ledger(name)
    for shown in (view, view.by_node_kind()):
        html = shown._repr_mimebundle_()["text/html"]
        assert "<table" in html and "<svg" not in html and "not installed" not in html
        assert shown.figure().head in unescape(html)
        assert shown.figure().draw().caption in unescape(html)


def test_a_long_ledger_is_printed_in_a_few_walks_over_its_storages():
    class Counted(tuple):
        walks = 0

        def __getitem__(self, which):
            Counted.walks += isinstance(which, slice)
            return super().__getitem__(which)

    x = torch.ones(3, requires_grad=True)
    ledger = lens.saved_tensors(torch.stack([(x * k).exp() for k in range(300)]))
    reading = replace(ledger.reading, storages=Counted(ledger.reading.storages))
    assert str(SavedTensors(reading)) == str(ledger)
    assert Counted.walks < 10
