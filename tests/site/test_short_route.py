"""The short route on the built page: its links, and the button that hides the rest."""

import re

import pytest
from short_route import NoSuchStop
from sphinx.application import Sphinx

from tools.testing.sizes import sized

PAGE = "book/01_tape.html"
pytestmark = pytest.mark.needs("chromium", "dot")
SHOWN = (
    "() => [...document.querySelectorAll('article > section > section')]"
    ".filter(s => s.checkVisibility()).map(s => s.id)"
)


def test_each_stop_leads_to_the_next(visit):
    page, _ = visit(PAGE)
    stops = page.evaluate("() => [...document.querySelectorAll('section.on-route')].map(s => s.id)")
    links = page.evaluate(
        "() => [...document.querySelectorAll('.route-start a, .route-stop a')]"
        ".map(a => a.getAttribute('href').slice(1))"
    )
    assert len(stops) > 5
    assert links == stops


@pytest.mark.parametrize(
    "width", sized([390, 1200], lambda width: width == 390, "the same is done on a phone")
)
def test_the_button_hides_what_is_not_on_the_route(visit, width):
    page, journal = visit(PAGE, width=width)
    whole = page.evaluate(SHOWN)
    button = page.get_by_role("button", name="Show the short route only")
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    short = page.evaluate(SHOWN)
    assert short == page.evaluate(
        "() => [...document.querySelectorAll('section.on-route')].map(s => s.id)"
    )
    assert 0 < len(short) < len(whole) / 2
    # A link to a hidden section brings the chapter back, at that section.
    hidden = next(name for name in whole if name not in short)
    page.evaluate("name => { location.hash = name }", hidden)
    page.wait_for_function("name => document.getElementById(name).checkVisibility()", arg=hidden)
    assert page.evaluate(SHOWN) == whole
    assert button.get_attribute("aria-pressed") == "false"
    # Also if it was followed before.
    button.press("Enter")
    page.evaluate("name => document.querySelector(`a[href='#${name}']`).click()", hidden)
    page.wait_for_function("name => document.getElementById(name).checkVisibility()", arg=hidden)
    button.press("Enter")
    button.press("Enter")
    assert page.evaluate(SHOWN) == whole
    assert journal.problems == []


def test_without_a_script_there_is_no_button_and_all_is_shown(visit):
    page, _ = visit(PAGE, script=False)
    assert page.locator(".route-switch").count() == 0
    assert page.locator("section.on-route").count() > 5


def test_a_page_without_a_route_has_no_button(visit):
    page, _ = visit("book/index.html")
    assert page.locator(".route-switch").count() == 0


@pytest.mark.parametrize("kind", ["Short route.", "Parts."])
@pytest.mark.parametrize(("title", "fits"), [("Here we `are`", True), ("Nowhere", False)])
def test_a_title_that_no_section_bears_fails_the_build(title, fits, kind, tmp_path):
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser", "short_route"]\n')
    (tmp_path / "index.md").write_text(
        f"# Chapter\n\n> **{kind}** See *{title}*.\n\n## Here we `are`\n\nAnd *this* is no link.\n"
    )
    app = Sphinx(tmp_path, tmp_path, tmp_path / "out", tmp_path / "tree", "html", status=None)
    if fits:
        app.build()
        page = (tmp_path / "out" / "index.html").read_text("utf-8")
        assert re.search(r'<blockquote.*href="#here-we-are".*</blockquote>', page, re.S)
        assert "<em>this</em>" in page
    else:
        with pytest.raises(NoSuchStop, match="index: .* 'Nowhere', and no section"):
            app.build()
