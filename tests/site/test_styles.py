"""Pages look the same with the style rules that were left in as with all of them.

Each page is opened twice, as it is and with the whole style sheets put back, and brought into the
same state; then the computed styles of its elements must be equal.
"""

import re

import checks
import pytest

from tools.browsing import at_rest

pytestmark = [
    pytest.mark.needs("chromium", "dot"),
    pytest.mark.large("axe reads the colours of each page, and nothing on it is wider than it"),
]

CUT = re.compile(r'<style data-sheets="([^"]+)">.*?</style>', re.DOTALL)

# Of elements with the same name, classes and parent two are looked at; with ::before and ::after.
# Properties that are as they are everywhere at the start are left out, to have less to carry.
STYLES = """() => {
  const seen = new Map(), all = {};
  const frame = document.body.appendChild(document.createElement("iframe"));
  const plain = getComputedStyle(frame.contentDocument.body);
  const properties = [...plain].filter(p => !p.startsWith("--"));
  const usual = properties.map(p => plain.getPropertyValue(p));
  frame.remove();
  const id = e => e.id ? "#" + e.id.replace(/\\d+$/, "") : "";
  const name = e => e.localName + "." + [...e.classList].join(".") + id(e);
  for (const e of document.querySelectorAll("html, body, body *")) {
    if (e.closest("template, script, style, noscript")) continue;
    const key = name(e) + " in " + (e.parentElement ? name(e.parentElement) : "");
    const count = seen.get(key) || 0;
    seen.set(key, count + 1);
    if (count > 1) continue;
    for (const pseudo of ["", "::before", "::after"]) {
      const style = getComputedStyle(e, pseudo || null), values = {};
      if (pseudo && style.content === "none") continue;
      properties.forEach((p, i) => {
        const value = style.getPropertyValue(p);
        if (value !== usual[i] || value.includes("px")) values[p] = value;
      });
      all[`${key} (${count})${pseudo}`] = values;
    }
  }
  return all;
}"""


def whole(html: str) -> str:
    """The page with its style sheets as they were."""
    found = CUT.search(html)
    assert found, "the page has no style sheet that was cut"
    links = "".join(f'<link rel="stylesheet" href="{href}">' for href in found[1].split())
    return CUT.sub(links, html)


def without_menus(html: str) -> str:
    """A page that lacks what it needs: the negative control."""
    changed = html.replace(".dropdown-item{", ".dropdown-items{")
    assert changed != html
    return changed


def nothing(page):
    """As the page is opened."""


def everything_open(page):
    """Hints, answers, twins."""
    checks.unfold(page)


def sidebar(page):
    """The contents of the book, on a phone a dialog."""
    page.locator("button.primary-toggle").click()
    at_rest(page)


def page_contents(page):
    """The contents of the page."""
    button = page.locator("button.secondary-toggle")
    if button.is_visible():
        button.click()
        at_rest(page)


def search_dialog(page):
    """Where a word is typed."""
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").fill("word")


def menu(page):
    """The buttons of a chapter."""
    page.locator(".article-header-buttons .dropdown-toggle").first.click()
    page.locator(".article-header-buttons .dropdown-menu.show").wait_for()


def tip(page):
    """What a button says when the pointer is on it."""
    page.locator(".article-header-buttons [data-bs-toggle=tooltip]:visible").first.hover()
    page.locator(".tooltip.show").wait_for()


def copied(page):
    """A block of code has just been copied."""
    page.locator(".highlight").first.hover()
    page.locator("button.copybtn").first.click()


def back_to_top(page):
    """Scrolled down and a little up: the button that leads to the top."""
    page.mouse.wheel(0, 3000)
    page.wait_for_function("() => scrollY > 2000")
    at_rest(page)
    page.mouse.wheel(0, -200)
    page.locator("#pst-back-to-top").wait_for()


def results(page):
    """The results of a search."""
    page.goto(page.url + "?q=backward")
    # The list comes first; an excerpt of each page is fetched afterwards.
    page.get_by_text("Search finished, found").wait_for()
    page.wait_for_load_state("networkidle")


INDEX, CHAPTER = "book/index.html", "book/01_tape.html"
STATES = [
    *((name, nothing, 1200, "light") for name in (INDEX, CHAPTER, "search.html", "404.html")),
    *((name, nothing, 390, "dark") for name in (INDEX, CHAPTER, "search.html", "404.html")),
    *((INDEX, state, 390, "light") for state in (sidebar, page_contents, search_dialog, tip)),
    *((INDEX, state, 1200, "dark") for state in (sidebar, search_dialog, tip)),
    (CHAPTER, everything_open, 390, "light"),
    (CHAPTER, everything_open, 1200, "dark"),
    (CHAPTER, menu, 390, "dark"),
    (CHAPTER, menu, 1200, "light"),
    (CHAPTER, copied, 1200, "dark"),
    (CHAPTER, back_to_top, 390, "light"),
    ("search.html", results, 1200, "light"),
    ("search.html", results, 390, "dark"),
]
DRAWN = ".bd-article section { content-visibility: visible !important }"


def styles(visit, name, state, width, theme, alter=None) -> dict:
    page, _ = visit(name, width=width, theme=theme, motion=False, alter=alter)
    page.add_style_tag(content=DRAWN)
    page.mouse.move(0, 0)
    state(page)
    at_rest(page)
    return page.evaluate(STYLES)


def differences(some: dict, others: dict) -> list[str]:
    """What is not the same, one line each."""
    found = [f"{name} is there once" for name in some.keys() ^ others.keys()]
    for name in some.keys() & others.keys():
        for key in some[name].keys() | others[name].keys():
            if (a := some[name].get(key)) != (b := others[name].get(key)):
                found.append(f"{name}: {key}: {a} and {b}")
    return sorted(found)


@pytest.mark.parametrize(("name", "state", "width", "theme"), STATES)
def test_looks_the_same_with_all_rules(visit, name, state, width, theme):
    cut = styles(visit, name, state, width, theme)
    assert len(cut) > 80
    assert differences(cut, styles(visit, name, state, width, theme, whole))[:20] == []


def test_a_missing_rule_is_seen(visit):
    cut = styles(visit, CHAPTER, menu, 1200, "light")
    lacking = differences(cut, styles(visit, CHAPTER, menu, 1200, "light", without_menus))
    assert any("dropdown-item" in line and "display" in line for line in lacking)


def test_without_script_too(visit):
    page, _ = visit(INDEX, script=False)
    other, _ = visit(INDEX, script=False, alter=whole)
    assert differences(page.evaluate(STYLES), other.evaluate(STYLES))[:20] == []
