"""The table of the atlas: read without scripts, sorted and filtered with them."""

from __future__ import annotations

import pytest
from checks import barriers, too_wide

from autograd_lens import atlas
from autograd_lens.atlas.common import COMMON, common_first

pytestmark = pytest.mark.needs("chromium")
STORED = atlas.load()
ROWS = common_first(STORED.recorded())
OPS = [row.op for row in ROWS]
SHOWN = """() => [...document.querySelectorAll("tbody tr")]
  .filter(row => !row.hidden).map(row => row.cells[0].textContent)"""


@pytest.fixture
def sheet(small_page):
    """A function that opens a page with the table, once or several times."""

    def open_sheet(copies=1, **options):
        body = f"<main><h1>Atlas</h1>{STORED._repr_html_() * copies}</main>"
        page, journal = small_page(f"<body>{body}</body>", **options)
        assert journal.problems == []
        return page

    return open_sheet


def shown(page) -> list[str]:
    return page.evaluate(SHOWN)


def test_opens_on_the_operations_that_everybody_knows(sheet):
    page = sheet()
    assert shown(page)[: len(COMMON)] == list(COMMON)
    assert shown(page)[len(COMMON) :] == sorted(set(OPS) - set(COMMON))
    assert page.locator(".lens-find").get_attribute("placeholder") == "e.g. relu"


def test_filters(sheet):
    page = sheet()

    def press(name):
        chip = page.get_by_role("button", name=name, exact=True)
        was = chip.get_attribute("aria-pressed")
        chip.press("Enter")
        assert chip.get_attribute("aria-pressed") == ("false" if was == "true" else "true")

    assert shown(page) == OPS
    press("output")
    assert shown(page) == [r.op for r in ROWS if "output" in r.seen.kinds]
    assert page.locator("output").inner_text() == f"{len(shown(page))} of {len(OPS)}"
    press("input")
    assert shown(page) == [r.op for r in ROWS if {"input", "output"} <= {*r.seen.kinds}]
    press("input"), press("output")
    press("nothing"), press("view")
    assert shown(page) == [r.op for r in ROWS if r.seen.view == "view" and not r.seen.kinds]
    press("nothing"), press("view")
    press("backward raises")
    assert shown(page) == [r.op for r in ROWS if not r.seen.backward]
    press("backward raises")
    page.locator(".lens-find").fill("SOFTMAX backward0")
    found = shown(page)
    assert {"softmax", "log_softmax"} <= set(found) and "mul" not in found and len(found) < 40
    page.locator(".lens-find").fill("no op is called so")
    assert shown(page) == [] and page.locator("output").inner_text().startswith("0 of")
    page.locator(".lens-find").fill("")
    assert shown(page) == OPS


def test_sorts_by_keyboard(sheet):
    page = sheet()
    heads = page.locator("thead button")

    def ratio(row):
        return float(f"{row.saved_bytes / max(row.seen.output_bytes, 1):.6g}")

    def order():
        return page.locator("[aria-sort]").get_attribute("aria-sort")

    heads.nth(3).focus()
    page.keyboard.press("Enter")
    assert shown(page) == [r.op for r in sorted(ROWS, key=ratio, reverse=True)]
    assert order() == "descending"
    page.keyboard.press("Enter")
    assert shown(page) == [r.op for r in sorted(ROWS, key=ratio)]
    assert order() == "ascending"
    heads.nth(0).click()
    assert shown(page) == sorted(OPS) and order() == "ascending"
    heads.nth(0).click()
    assert shown(page) == sorted(OPS, reverse=True) and order() == "descending"
    heads.nth(0).click()
    assert shown(page) == OPS and page.locator("[aria-sort]").count() == 0


@pytest.mark.large("one table answers by itself")
def test_two_tables_answer_alone_and_once(sheet):
    page = sheet(copies=2)
    first, second = page.locator(".lens-sheet").all()
    first.locator(".lens-find").fill("softmax")
    assert second.locator("output").inner_text() == f"{len(OPS)} of {len(OPS)}"
    first.locator("thead button").nth(0).click()
    assert first.locator("[aria-sort]").get_attribute("aria-sort") == "ascending"  # once
    assert second.locator("[aria-sort]").count() == 0
    first.get_by_role("button", name="nothing").click()
    assert second.locator("[aria-pressed=true]").count() == 0


def test_without_its_script_nothing_answers(sheet):
    """The negative control of the tests above, and what a reader without scripts has."""
    page = sheet(script=False)
    assert not page.locator(".lens-find").is_visible()
    row = page.locator("tbody tr").filter(has_text="MulBackward0").first
    row.locator("summary").click()
    assert "saved: " in row.inner_text() and "mul_tensor_backward" in row.inner_text()


@pytest.mark.large("the page of the atlas, which has this table, is read by axe")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_barriers(sheet, width, theme):
    page = sheet(width=width, theme=theme)
    page.locator("summary").nth(2).click()
    assert too_wide(page) == []
    assert barriers(page) == []
    roles = page.evaluate("() => document.querySelectorAll('.lens-sheet *').length")
    assert roles < 7000  # a phone has to hold them


def test_is_a_table_to_a_screen_reader(sheet):
    page = sheet()
    assert page.get_by_role("row").count() > 3
    assert page.get_by_role("rowheader", name="mul", exact=True).count() == 1
    assert page.get_by_role("columnheader").count() == 5
