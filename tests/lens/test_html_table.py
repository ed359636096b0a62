"""The ledger's tables on a page hold exactly what its text holds, and more rows of a large one."""

import re
from html.parser import HTMLParser

import pytest
import torch
from ledger_cases import EVERY

import autograd_lens as lens
from autograd_lens.atlas import load
from autograd_lens.atlas.common import COMMON, common_first
from autograd_lens.view.draw_saved_tensors import MOST_ROWS, row_texts, source
from autograd_lens.view.html import figure_html
from autograd_lens.view.html_table import markup
from autograd_lens.view.ledger_table import (
    MOST_INSIDE,
    MOST_ON_A_PAGE,
    groups_table,
    ledger_table,
)
from autograd_lens.view.ledger_text import group_texts
from autograd_lens.view.text import exact_bytes
from autograd_lens.view.theme import COLOURS

dot = pytest.mark.needs("dot")


def ledger(name):
    torch.manual_seed(0)
    running = EVERY[name]()
    names, inputs = next(running)
    outputs = next(running)
    return lens.saved_tensors(outputs, names, inputs=inputs)


def stale():
    x, w = torch.randn(3, requires_grad=True), torch.randn(3)
    z = (x * w).exp().sum()
    w.add_(1)
    return lens.saved_tensors(z, {"x": x}, inputs={"w": w})


def freed():
    x = torch.randn(3, requires_grad=True)
    z = x.exp().sin().sum()
    z.backward()
    return lens.saved_tensors(z, {"x": x})


def many(count, large=()):
    """So many saved tensors of 12 B; those whose numbers are in ``large`` have 4,000 B."""
    x = torch.ones(3, requires_grad=True)
    wide = torch.ones(1000, requires_grad=True)
    made = [(wide if k in large else x).exp().sum() for k in range(count)]
    return lens.saved_tensors(torch.stack(made[::-1]).sum())


class Tables(HTMLParser):
    """The rows of a page's tables: each cell as ``(label, words, small words, colours)``."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.inside, self.below, self.heads = [], [], [], []
        self.depth = 0
        self.tag = ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "table":
            self.depth += 1
        elif tag == "tr" and self.depth:
            (self.rows if self.depth == 1 else self.inside).append([])
        elif tag in ("th", "td") and self.depth:
            cell = {"label": named.get("data-label"), "words": "", "small": "", "colours": []}
            cell |= {"key": named.get("data-key"), "widths": [], "scope": named.get("scope")}
            (self.rows if self.depth == 1 else self.inside)[-1].append(cell)
        elif tag == "i":
            self.cell["colours"].append(named["class"].split()[-1].removeprefix("lens-"))
            self.cell["widths"] += [named["style"]] if "style" in named else []
        elif tag == "p" and self.depth == 0:
            self.below.append("")
        if tag in ("small", "p"):
            self.tag = tag

    @property
    def cell(self):
        return (self.rows if self.depth == 1 else self.inside)[-1][-1]

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell["words"] = self.cell["words"].strip()
        self.depth -= tag == "table"
        self.tag = "" if tag == self.tag else self.tag

    def handle_data(self, data):
        if self.depth:
            self.cell["small" if self.tag == "small" else "words"] += data
        elif self.tag == "p" and self.below:
            self.below[-1] += data


def tables(table):
    """The headings, the rows, the rows that they open, and the lines below."""
    found = Tables(markup(table))
    heads, *rows = found.rows
    assert [cell["scope"] for cell in heads] == ["col"] * len(heads)
    rows = [row for row in rows if len(row) == len(heads)]
    assert all(row[0]["scope"] == "row" for row in rows)
    for row in rows:
        assert [c["label"] for c in row[1:]] == [c["words"] for c in heads[1:]]
    return [cell["words"] for cell in heads], rows, found.inside, found.below


UNIT = re.compile(r" \([\d.]+ [kMGT]B\)")


def as_text(row):
    """The cells of a row of the ledger as its text alternative has them."""
    node, field, shape, size, role, version, note = row
    shape = shape | {"words": shape["words"].replace("\N{NO-BREAK SPACE}", " ")}
    if shape["words"] == "freed":
        return [node["words"], field["words"], "freed", "", "", "", "", set()]
    saved, _, now = version["words"].partition(" → ")
    if version["small"]:
        assert version["small"] == "not known when saved"
        saved, now = "", saved.removesuffix(" now")
    notes = {note["words"], note["small"]}
    (exact, b) = size["words"].split()
    assert b == "B"
    for more in filter(None, size["small"].split(", keeps ")):
        if "alive" in more:
            notes.add("keeps " + UNIT.sub("", more).removeprefix("keeps "))
        else:
            assert re.fullmatch(r"[\d.]+ [kMGT]B", more)
    return [
        node["words"],
        field["words"],
        f"{shape['words']} {shape['small']}".strip(),
        exact,
        role["words"],
        saved,
        now or saved,
        notes - {""},
    ]


def with_notes(cells):
    return [*cells[:-1], set(filter(None, cells[-1].split(", ")))]


@pytest.mark.parametrize("make", [*EVERY, stale, freed], ids=lambda m: getattr(m, "__name__", m))
def test_a_table_holds_exactly_the_facts_of_the_text(make):
    view = ledger(make) if isinstance(make, str) else make()
    _, rows, _, below = tables(ledger_table(view))
    texts = [with_notes(cells) for cells in row_texts(view)]
    if not view.entries:
        assert rows == []
        return
    found = iter(as_text(row) for row in rows)
    assert all(row in found for row in texts), "the rows of the text, in their order"
    assert len(rows) == min(len(view.entries), MOST_ON_A_PAGE)
    lines = str(view).splitlines()
    assert [line for line in below if not line.startswith("…")] == [
        line for line in lines if line.startswith(("opaque:", "total:"))
    ]


@pytest.mark.parametrize("name", ["mlp", "transformer", "toy", "rnn"])
def test_groups_hold_exactly_the_facts_of_the_text(name):
    groups = ledger(name).by_node_kind()
    heads, rows, inside, _ = tables(groups_table(groups))
    assert heads == ["node kind", "bytes", "entries", "shared", "roles"]
    found = [
        [row[k]["words"].removesuffix(" B") for k in (0, 2, 1, 3)]
        + [re.sub(r" B(?=,|$)", "", UNIT.sub("", row[4]["words"]))]
        for row in rows
    ]
    assert found[:MOST_ROWS] == group_texts(groups)
    opened = sum(cell["scope"] == "row" for row in inside for cell in row)
    assert opened == sum(min(group.entries, MOST_INSIDE) for group in groups.groups)


def test_a_module_opens_on_its_entries():
    view = ledger("mlp")
    table = groups_table(view.by_module())
    assert len(table.rows) == 3
    names = {None: "(outside)", "": "(model)"}
    for row, group in zip(table.rows, view.by_module().groups, strict=True):
        modules = [view.module_of(entry) for entry in view.entries]
        named = zip(view.entries, [names.get(one, one) for one in modules], strict=True)
        mine = [entry for entry, name in named if name == group.key]
        mine.sort(key=lambda entry: -entry.storage_bytes)
        assert [e.node for e in mine] == [one.cells[0].key for one in row.inside.rows]
        assert [e.field for e in mine] == [one.cells[1].text for one in row.inside.rows]


def test_what_a_group_does_not_list_is_counted():
    (group,) = many(30, large={3}).grouped(lambda entry: "all").groups
    (row,) = groups_table(many(30, large={3}).grouped(lambda entry: "all")).rows
    assert len(row.inside.rows) == MOST_INSIDE and row.inside.rows[0].cells[3].text == "4,000 B"
    assert row.inside.below == (
        f"… {group.entries - MOST_INSIDE} more entries of at most 12 B each",
    )


@pytest.mark.parametrize("at", [0, 150, 349])
def test_a_large_ledger_shows_what_keeps_most(at):
    view = many(350, large={at})
    table = ledger_table(view)
    assert len(table.rows) == MOST_ON_A_PAGE
    sizes = [row.cells[3].key for row in table.rows]
    assert sizes.count(4000) == 1
    nodes = [row.cells[0].key for row in table.rows]
    assert nodes == sorted(nodes), "in the order of the ledger"
    (below,) = table.below
    assert below == (
        f"… {350 - MOST_ON_A_PAGE} more rows of at most 12 B each, "
        f"which keep {exact_bytes(12 * (350 - MOST_ON_A_PAGE))} more"
    )


@pytest.mark.parametrize("at", [0, 20, 49])
def test_text_and_file_of_a_large_ledger_show_what_keeps_most(at):
    view = many(50, large={at, 48})
    shown = {}
    for name, lines in (("text", str(view).splitlines()), ("file", source(view).split("<TR>"))):
        shown[name] = [line for line in lines if "4,000" in line or "4 kB" in line]
        assert sum("ExpBackward0" in line for line in lines) == MOST_ROWS
    assert len(shown["text"]) == len(shown["file"]) == 2
    places = [int(line.split()[0]) for line in str(view).splitlines()[2:-1]]
    assert places == sorted(places), "in the order of the ledger"
    more = f"… {50 - MOST_ROWS} more rows of at most 12 B each, which keep "
    more += f"{12 * (50 - MOST_ROWS)} B more"
    assert str(view).splitlines()[-1] == more and more in source(view)


def test_a_page_stays_light_however_many_rows_there_are():
    sizes = [len(figure_html(many(count).figure())) for count in (MOST_ON_A_PAGE, 2000)]
    assert sizes[1] < 1.05 * sizes[0] < 200_000
    groups = many(2000).grouped(lambda entry: entry.node)
    assert len(figure_html(groups.figure())) < 300_000


@pytest.mark.parametrize(
    ("by", "order"),
    [("node", (0, "ascending")), ("bytes", (3, "descending")), ("role", None), ("module", None)],
)
def test_the_order_is_said_where_a_column_is_in_order(by, order):
    view = ledger("transformer").sorted(by)
    table = ledger_table(view)
    assert table.sorted_by == order
    assert markup(table).count("aria-sort") == (order is not None)
    if order:
        keys = [row.cells[order[0]].key for row in table.rows]
        assert keys == sorted(keys, reverse=order[1] == "descending")


def test_bars_are_as_long_as_what_is_kept_alive():
    view = ledger("a_view_of_a_much_larger_storage")
    _, rows, _, _ = tables(ledger_table(view))
    largest = max(entry.storage_bytes for entry in view.entries)
    assert largest == 8000
    for row, entry in zip(rows, view.entries, strict=True):
        (width,) = row[3]["widths"]
        assert float(width[6:-1]) == pytest.approx(100 * entry.storage_bytes / largest, rel=0.01)
        assert float(row[3]["key"]) == entry.storage_bytes
    groups = ledger("mlp").by_node_kind()
    _, rows, _, _ = tables(groups_table(groups))
    for row, group in zip(rows, groups.groups, strict=True):
        shares = [float(width[6:-1]) for width in row[1]["widths"]]
        wanted = [100 * size / groups.groups[0].bytes for size in group.by_role.values() if size]
        assert shares == pytest.approx(wanted, rel=0.01)


def test_what_was_changed_and_what_was_freed_stand_out_by_a_word_and_a_colour():
    assert "error-words" in markup(ledger_table(stale()))
    assert ">CHANGED: this node will raise<" in markup(ledger_table(stale()))
    assert '<span class="lens-muted-words">freed<' in markup(ledger_table(freed()))
    assert "lens-error" not in markup(ledger_table(ledger("mlp")))
    assert stale().figure().draw().caption.startswith("1 entry was changed in place")


def test_bytes_have_a_unit_beside_the_exact_number():
    assert exact_bytes(999) == "999 B"
    assert exact_bytes(809_631_744) == "809,631,744 B (810 MB)"
    frame = ledger("mlp").figure().draw()
    assert "122,880 B (123 kB)" in frame.numbers
    assert frame.caption == "mat2 of 3 AddmmBackward0 keeps most: 65.5 kB."


def test_tables_that_take_turns_have_room_for_the_longest():
    views = {"mlp": ledger("mlp"), "toy": ledger("toy")}

    def draw(case):
        return views[case]

    page = lens.explore(draw, case=list(views))._repr_mimebundle_()["text/html"]
    rows = {int(number) for number in re.findall(r'data-rows="(\d+)"', page)}
    assert rows == {max(len(view.entries) for view in views.values())}


def test_a_table_and_a_drawing_take_turns():
    x = torch.ones(3, requires_grad=True)
    views = {"table": ledger("mlp"), "layout": lens.storage_layout(x), "text": "nothing"}

    def draw(case):
        return views[case]

    page = lens.explore(draw, case=list(views))._repr_mimebundle_()["text/html"]
    assert page.count("<table") == 2  # the one that is shown, and its frame
    assert 'lens-text">nothing<' in page
    page = lens.explore(draw, case=["layout", "table"])._repr_mimebundle_()["text/html"]
    assert page.count("<table") == 1


def test_no_type_is_smaller_than_12_px():
    from autograd_lens.view.html import _asset

    sizes = re.findall(r"font(?:-size)?:([\d.]+)px", _asset("table.css"))
    assert sizes and min(map(float, sizes)) >= 12


@dot
@pytest.mark.parametrize(
    "make",
    [
        stale,
        lambda: lens.graph(stale_output()),
        lambda: lens.record_backward(stale_output()),
        lambda: lens.storage_layout(torch.arange(6).reshape(2, 3)),
        lambda: lens.chart({"line": ([1, 2], [3, 4])}, x="x", y="y"),
        lambda: lens.record_memory(lambda: stale_output().backward()),
        lambda: lens.check("it", torch.zeros(2), torch.ones(2)),
    ],
)
def test_a_png_is_opaque(make, tmp_path):
    import io

    from matplotlib.image import imread

    pixels = imread(io.BytesIO(make().save(tmp_path / "a.png").read_bytes()))
    assert pixels.shape[2] == 3 or pixels[..., 3].min() == 1
    paper = [int(COLOURS["paper"][0][k : k + 2], 16) / 255 for k in (1, 3, 5)]
    assert list(pixels[0, 0, :3]) == pytest.approx(paper, abs=0.01)


def stale_output():
    x = torch.randn(3, requires_grad=True)
    return x.exp().sum()


def test_the_atlas_knows_every_common_operation():
    rows = common_first(load().recorded())
    assert [row.op for row in rows][: len(COMMON)] == list(COMMON)
    rest = [row.op for row in rows][len(COMMON) :]
    assert rest == sorted(rest) and len(rows) == len(load().recorded())
