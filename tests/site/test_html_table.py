"""Tables on a stage: sorted and opened with no kernel, read without scripts, cards on a phone."""

from __future__ import annotations

import pytest
import torch
from checks import barriers, too_wide

import autograd_lens as lens
from autograd_lens.ledger.groups import natural
from tools.testing.sizes import sized

pytestmark = pytest.mark.needs("chromium")
NET = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
X = torch.ones(32, 64)
LEDGER = lens.saved_tensors(NET(X).exp().sum(), NET, inputs=X)
SIZES = [entry.storage_bytes for entry in LEDGER.entries]
MODULES = LEDGER.by_module()
ROWS = """() => {
  const first = cell => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("small").forEach(one => one.remove());
    return copy.textContent.trim();
  };
  return [...document.querySelectorAll(".lens-sorts > tbody > tr:not(.lens-inside)")]
    .map(row => [...row.cells].map(first));
}"""
LINES = """cell => {
  const range = new Range();
  range.selectNodeContents(cell.lastChild);
  return range.getClientRects().length;
}"""


@pytest.fixture
def sheet(small_page):
    """A function that opens a page with a view."""

    def open_sheet(view=LEDGER, **options):
        html = view._repr_mimebundle_()["text/html"]
        meta = '<meta name="viewport" content="width=device-width">'
        page, journal = small_page(f"{meta}<body><main><h1>t</h1>{html}</main></body>", **options)
        assert journal.problems == []
        return page

    return open_sheet


def column(page, number):
    return [row[number] for row in page.evaluate(ROWS)]


def order(page):
    return [one.get_attribute("aria-sort") for one in page.locator("[aria-sort]").all()]


def test_a_heading_sorts_and_a_third_press_brings_back_the_order(sheet):
    page = sheet()
    labels = [f"{entry.node} {entry.label}" for entry in LEDGER.entries]
    exact = [f"{entry.bytes:,} B" for entry in LEDGER.entries]
    assert len(set(SIZES)) > 2 and SIZES != sorted(SIZES) != SIZES[::-1]
    assert column(page, 0) == labels and order(page) == ["ascending"]
    head = page.get_by_role("button", name="bytes")
    head.press("Enter")
    largest_first = sorted(range(len(SIZES)), key=lambda k: -SIZES[k])
    assert column(page, 3) == [exact[k] for k in largest_first]
    assert column(page, 0) == [labels[k] for k in largest_first], "ties keep their order"
    assert order(page) == ["descending"]
    head.press("Enter")
    assert column(page, 3) == [exact[k] for k in sorted(range(len(SIZES)), key=SIZES.__getitem__)]
    assert order(page) == ["ascending"]
    head.press("Enter")
    assert column(page, 0) == labels and order(page) == []
    page.get_by_role("button", name="field").click()
    assert column(page, 1) == sorted(entry.field for entry in LEDGER.entries)


def test_what_a_row_opens_moves_with_it(sheet):
    page = sheet(MODULES)
    keys = [group.key for group in MODULES.groups]
    page.locator(".lens-sorts summary").first.click()
    page.get_by_role("button", name="module").click()
    assert column(page, 0) == sorted(keys, key=natural)
    row = page.locator("tr:has(details[open]) + tr")
    assert row.is_visible() and "lens-inside" in row.get_attribute("class")
    assert row.locator("tbody tr").count() == MODULES.groups[0].entries


@pytest.mark.parametrize("width", [390, 860])
def test_without_scripts_it_is_complete_and_opens(sheet, width):
    page = sheet(MODULES, script=False, width=width)
    inside = page.locator(".lens-inside")
    assert inside.count() == len(MODULES.groups)
    for k, group in enumerate(MODULES.groups):
        assert not inside.nth(k).is_visible()
        page.locator(".lens-sorts summary").nth(k).press("Enter")
        assert inside.nth(k).is_visible()
        assert inside.nth(k).locator("tbody tr").count() == group.entries
        page.locator(".lens-sorts summary").nth(k).press("Enter")
        assert not inside.nth(k).is_visible()


@pytest.mark.parametrize(
    "width", sized([360, 390, 610, 860], lambda width: width in (390, 610), "two widths are tried")
)
@pytest.mark.parametrize("view", [LEDGER, MODULES], ids=["ledger", "modules"])
def test_nothing_scrolls_sideways(sheet, view, width):
    page = sheet(view, width=width)
    for summary in page.locator(".lens-sorts summary").all():
        summary.click()
    assert too_wide(page) == []
    stage = page.locator(".lens-stage")
    assert stage.evaluate("s => s.scrollWidth - s.clientWidth") == 0
    for word in page.locator("td:has(> .lens-key):visible").all():
        assert word.evaluate(LINES) == 1, "a role stands in one line"
    labels = page.evaluate(
        "() => [...document.querySelectorAll('.lens-sorts > tbody > tr > td:not(:empty)')]"
        ".map(c => getComputedStyle(c, '::before').content).filter(c => c !== 'none').length"
    )
    assert (labels > 0) == (width < 600), "a card says what each value is"


@pytest.mark.parametrize(
    "width, theme",
    sized(
        [(390, "light"), (390, "dark"), (860, "light"), (860, "dark")],
        lambda case: case == (390, "dark"),
        "axe reads it on a phone in dark, and the book's pages",
    ),
)
def test_no_barriers(sheet, width, theme):
    page = sheet(MODULES, width=width, theme=theme)
    page.locator(".lens-sorts summary").first.click()
    assert barriers(page) == []


def test_is_a_table_to_a_screen_reader_on_a_phone_too(sheet):
    page = sheet(width=390)
    assert page.get_by_role("row").count() == len(LEDGER.entries) + 1
    assert page.get_by_role("columnheader").count() == 7
    assert page.get_by_role("rowheader").count() == len(LEDGER.entries)
