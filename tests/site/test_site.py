"""Every page of the built book, in a real browser with the network closed."""

import functools
import itertools
import re
from pathlib import Path

import checks
import files
import pytest
import yaml
from bs4 import BeautifulSoup

from tools.browsing import at_rest
from tools.repository import site_address
from tools.testing.sizes import sized

pytestmark = pytest.mark.needs("chromium", "dot")

ROOT = Path(__file__).parents[2]
LIMIT_KB = 500


def sources() -> list[str]:
    """The documents of the table of contents, without suffix."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [c for part in toc.get("parts", [toc]) for c in part["chapters"]]
    sections = [s for c in chapters for s in c.get("sections", [])]
    return [toc["root"], *(entry["file"] for entry in [*chapters, *sections])]


PAGES = ["index.html", *(f"{name}.html" for name in sources()), "search.html", "404.html"]
CHAPTERS = [name for name in PAGES if re.match(r"book/\d\d_", name)]
every_page = pytest.mark.parametrize("name", PAGES)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
both_themes = pytest.mark.parametrize("theme", ["light", "dark"])
both_widths = pytest.mark.parametrize("width", [390, 1200])
one_width = pytest.mark.parametrize(
    "width", sized([390, 1200], lambda width: width == 390, "the same is done on a phone")
)


def is_long(name):
    """Whether a page is a notebook, but for the one that stands for all of them."""
    return (ROOT / name).with_suffix(".ipynb").exists() and name != "book/06_views_strides.html"


ONE_LOOK = pytest.mark.large(
    "each page is looked at once, by turns on a phone in light and on a desk in dark"
)
# A chapter is looked at on a phone in light and on a desk in dark, other pages in all four ways.
WAYS = [(390, "light"), (1200, "dark"), (390, "dark"), (1200, "light")]
LOOKS = [
    pytest.param((name, *way), marks=[] if way == WAYS[turn % 2] else [ONE_LOOK])
    for turn, name in enumerate(PAGES)
    for way in WAYS[: 2 if (ROOT / name).with_suffix(".ipynb").exists() else 4]
]
# Axe and a key for each figure need about 15 s for a long page. Of those the small size has one.
LONG = pytest.mark.large("chapter 6 and the short pages are tested; all are made of the same")
ONE_LONG = [
    pytest.param(*one.values, marks=[*one.marks, *([LONG] if is_long(one.values[0][0]) else [])])
    for one in LOOKS
]


def named(look):
    """The page, its width and its theme, for the name of a test."""
    return "-".join(map(str, look))


@pytest.fixture(scope="module", params=LOOKS, ids=named)
def look(request, address, browsing):
    """A page and its journal: opened once in each look, for the tests that only look at it.

    The last one, which takes parts of the page away, stands below all others.
    """
    name, width, theme = request.param
    before = len(browsing.contexts)
    yield browsing.open(address, name, width=width, theme=theme)
    browsing.close_pages(before)


def test_the_pages_are_those_of_the_table_of_contents(site):
    assert files.pages(site) == sorted(PAGES)


def test_loads_without_an_error_and_asks_no_other_host(look):
    _, journal = look
    assert journal.bytes, "nothing was loaded at all"
    assert journal.problems == []


def test_is_light(look, request, record_property):
    _, journal = look
    name = request.node.callspec.params["look"][0]
    weight = sum(journal.bytes.values()) / 1000
    heaviest = sorted(journal.bytes.items(), key=lambda item: -item[1])[:4]
    parts = [f"{url.split('/')[-1].split('?')[0]} {size // 1000}" for url, size in heaviest]
    line = f"{name}: {weight:.0f} KB in {len(journal.bytes)} files ({', '.join(parts)})"
    record_property("page weight", line)
    assert weight <= LIMIT_KB


def test_figures_have_name_and_twin(look):
    page, _ = look
    assert checks.unnamed_figures(page) + checks.broken_references(page) == []


@pytest.mark.parametrize("look", ONE_LONG, indirect=True, ids=named)
def test_figures_answer_a_key(look):
    page, journal = look
    assert checks.deaf_figures(page) + journal.problems == []


def test_no_maths_is_left_as_source(look):
    page, _ = look
    assert checks.raw_maths(page) == []


@functools.cache
def source_of(path: Path) -> BeautifulSoup:
    """The page as it is sent, before any script."""
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


TO_COME = {
    "book/01_tape.html": "its figures get sentences when it is divided",
    "book/02_saved_tensors.html": "its figures get sentences when it is divided",
    "book/06_views_strides.html": "its figures get sentences when it is divided",
}


@every_page
def test_every_figure_says_what_to_see(site, name):
    silent = files.silent_figures((site / name).read_text("utf-8"))
    if name in TO_COME:
        assert silent, f"{name} need not stand in TO_COME any more"
    else:
        assert silent == []


@every_chapter
def test_no_select(site, name):
    """Chromium lays out each section that holds one when a page is opened, for its autofill."""
    page = (site / name).read_text("utf-8")
    assert page.count("<article") == page.count("</article>") == 1
    assert "<select" not in page[page.index("<article") : page.index("</article>")]


def test_fits_its_width(look):
    page, _ = look
    checks.unfold(page)
    assert checks.too_wide(page) + checks.clipped_maths(page) + checks.cut_controls(page) == []


@pytest.mark.parametrize("look", ONE_LONG, indirect=True, ids=named)
def test_has_no_serious_barrier_and_is_in_order(look):
    page, _ = look
    checks.unfold(page)
    assert checks.disorder(page) == []


# Around each output of ours: what the theme would paint behind it, and frames inside of it.
BOXES = """() => [...document.querySelectorAll(".bd-article .lens")].flatMap(lens => {
  const around = lens.closest(".text_html"), inside = [...lens.querySelectorAll("details")];
  return [around && getComputedStyle(around).backgroundColor,
    ...inside.map(one => getComputedStyle(one).borderTopWidth)].filter(Boolean);
})"""


@pytest.mark.large("the colours of a page are read by axe")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["book/01_tape.html", "book/atlas.html"])
def test_the_theme_puts_no_box_of_its_own_around_ours(visit, name, theme):
    page, _ = visit(name, width=1200, theme=theme)
    page.add_style_tag(content=".bd-article section { content-visibility: visible !important }")
    assert set(page.evaluate(BOXES)) == {"rgba(0, 0, 0, 0)", "0px"}


def test_names_no_other_host(site):
    assert files.foreign(site) == []


def test_every_link_leads_somewhere(site):
    assert files.dead_links(site, site_address()) == []


@pytest.mark.large("one key is pressed in each figure, and the script that answers is one for all")
@every_page
def test_controls_work_by_keyboard(visit, name):
    page, journal = visit(name)
    assert checks.dead_controls(page) + checks.broken_references(page) + journal.problems == []


@pytest.mark.large("where a guess is bad, links still land: a section gets its height when seen")
@every_chapter
def test_sections_out_of_sight_have_about_their_height(visit, name):
    """Nearer than one height for all; how near depends on the fonts of the machine."""
    page, _ = visit(name, width=412)
    wrong = checks.misjudged(page)
    page.add_style_tag(content="section { --tall: 1200px !important }")
    assert len(wrong) < len(checks.misjudged(page)) / 2


@pytest.mark.parametrize(
    "name", sized(PAGES, lambda name: "06_" in name, "one chapter is opened so")
)
def test_without_script_the_first_frame_and_the_twin_are_there(visit, name):
    page, _ = visit(name, script=False)
    assert checks.hidden_without_script(page) == []


@both_themes
def test_without_script_the_colours_of_the_theme_are_there(visit, theme):
    page, _ = visit("book/index.html", script=False, theme=theme)
    colours = page.evaluate(
        "() => ['--pst-color-text-base', '--pst-color-surface', '--pst-color-link'].map("
        "name => getComputedStyle(document.documentElement).getPropertyValue(name))"
    )
    assert all(colours)


@both_themes
def test_the_first_paint_has_the_theme_of_the_system(visit, theme):
    page, _ = visit("book/index.html", theme=theme)
    page.evaluate("() => localStorage.clear()")
    page.route("**/*.js*", lambda route: route.abort())  # the theme's script comes later
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.theme") == theme


@pytest.mark.parametrize(
    "source",
    sized(sources(), lambda source: "06_" in source, "the maths of one chapter is counted"),
)
def test_maths_is_drawn_in_the_build(site, source):
    path = next(p for suffix in ("ipynb", "md") if (p := ROOT / f"{source}.{suffix}").exists())
    page = source_of(site / f"{source}.html")
    assert len(page.select("article .katex")) == len(list(files.formulas(path)))


@pytest.mark.large("what is on a page at first is read by axe for each page")
@pytest.mark.parametrize("state", ["sidebar", "search", "menu"])
@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1200, "light")])
def test_what_opens_has_no_serious_barrier(visit, state, width, theme):
    page, _ = visit("book/01_tape.html", width=width, theme=theme, motion=False)
    if state == "sidebar":
        page.locator("button.primary-toggle").press("Enter")
        if width == 390:  # a dialog; on a desk the sidebar is there, and goes
            page.locator("dialog[open] .bd-links").wait_for()
    elif state == "search":
        page.keyboard.press("Control+k")
        page.locator("#pst-search-dialog input[type=search]").wait_for()
    else:
        page.locator(".article-header-buttons .dropdown-toggle").first.press("Enter")
        page.locator(".article-header-buttons .dropdown-menu.show").wait_for()
    at_rest(page)
    assert checks.barriers(page, without="article.bd-article") == []  # read as a page above


@pytest.mark.parametrize(
    "theme", sized(["light", "dark"], lambda theme: theme == "dark", "it is read in the dark")
)
def test_the_button_that_leads_to_the_top_can_be_read(visit, theme):
    page, _ = visit("book/index.html", width=390, theme=theme)
    button = page.locator("#pst-back-to-top")
    page.mouse.wheel(0, 600)
    page.wait_for_function("() => scrollY > 500")
    at_rest(page)
    page.mouse.wheel(0, -200)
    button.wait_for()
    assert checks.barriers(page) == []
    assert button.is_visible()  # or axe would have passed it over


@one_width
def test_tab_leads_to_the_text_first_and_is_seen(visit, width):
    page, _ = visit("book/index.html", width=width)
    page.keyboard.press("Tab")
    focused = "() => document.activeElement.textContent.trim()"
    assert page.evaluate(focused) == "Skip to main content"
    page.keyboard.press("Enter")
    page.wait_for_url("**/index.html#main-content")
    page.keyboard.press("Tab")
    inside = "() => Boolean(document.activeElement.closest('#main-content'))"
    assert page.evaluate(inside)
    width_of_line = "() => getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(width_of_line) == "3px"


@pytest.mark.parametrize(
    "name", sized(PAGES, lambda name: "index" in name, "the home page is looked at so")
)
def test_nothing_moves_for_who_asked_for_that(visit, name):
    page, _ = visit(name, motion=False)
    assert checks.moving(page) == []


def test_what_moves_is_seen(visit):
    page, _ = visit("book/index.html")
    assert checks.moving(page)


# How many of some parts can be seen, and how many there are.
IN_SIGHT = """parts => {
  const seen = parts.filter(part => {
    const box = part.getBoundingClientRect();
    return box.width && box.height && getComputedStyle(part).visibility === "visible";
  });
  return [seen.length, parts.length];
}"""


@pytest.mark.parametrize(
    ("source", "theme"),
    sized(
        itertools.product(sources(), ("light", "dark")),
        lambda look: "06_" in look[0] and look[1] == "dark",
        "one chapter is printed, from the dark theme",
    ),
)
def test_paper_shows_all_and_no_more(visit, source, theme):
    page, _ = visit(f"{source}.html", theme=theme)
    page.emulate_media(media="print", color_scheme=theme)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article h1").is_visible()
    assert page.locator("article details:not([open])").count() == 0
    for gone in (".bd-sidebar-primary", ".bd-header-article", ".lens-controls", ".copybtn"):
        assert page.locator(gone).evaluate_all(IN_SIGHT)[0] == 0, gone
    for shown in (".lens-stage", ".lens-twin pre.lens-now"):
        seen, there = page.locator(f"article {shown}").evaluate_all(IN_SIGHT)
        assert seen == there, shown
    assert page.evaluate("() => document.documentElement.dataset.theme") == "light"
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("() => document.documentElement.dataset.theme") == theme
    assert page.locator("article details[open]").count() == 0
    if theme == "dark":  # which has to go and come back
        assert page.pdf().startswith(b"%PDF")
        assert page.evaluate("() => document.documentElement.dataset.theme") == theme


@pytest.mark.large("every link leads to a place that is there")
def test_a_section_that_is_not_laid_out_yet_can_be_linked_to(visit):
    page, _ = visit("book/01_tape.html", width=390)
    last = page.locator("article section section").last.get_attribute("id")
    page.goto(page.url + "#" + last)
    at_rest(page)
    top = page.locator(f"#{last}").evaluate("e => e.getBoundingClientRect().top")
    assert -200 < top < page.viewport_size["height"]


@pytest.mark.large("every link leads to a place that is there")
@both_widths
def test_every_heading_is_where_its_link_leads(visit, width):
    page, _ = visit("book/01_tape.html", width=width)
    names = page.evaluate(
        "() => [...document.querySelectorAll('article section section')].map(s => s.id)"
    )
    seen = page.viewport_size["height"] / 3
    where = "name => document.getElementById(name).getBoundingClientRect().top"
    click = 'name => document.querySelector(`a.headerlink[href="#${name}"]`).click()'
    lost = {}
    # Each for itself, from the top, with nothing laid out yet.
    for name in names[-8::-6]:
        page.reload()
        page.evaluate("() => scrollTo(0, 0)")
        page.evaluate(click, name)
        at_rest(page)
        if not -1 <= (top := page.evaluate(where, name)) < seen:
            lost[name] = top
    assert len(names) > 20 and lost == {}


def test_the_root_page_leads_to_the_book_without_script(visit):
    page, _ = visit("index.html", script=False)
    page.wait_for_url("**/book/index.html")


def search(page, word):
    """Type a word into the search dialog, as a reader does."""
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").press_sequentially(word)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?*")
    page.locator("#search-results .search-summary").get_by_text("earch").wait_for()


@one_width
def test_search_finds_a_word_and_leads_to_it(visit, width):
    page, journal = visit("book/index.html", width=width)
    search(page, "backward")
    result = page.locator("#search-results li a").first
    result.press("Enter")
    page.wait_for_url(re.compile(r"/book/[^/]+\.html"))
    assert "backward" in page.locator("article").inner_text()
    assert journal.problems == []


@pytest.mark.large("a search is made, and its result is opened")
def test_the_word_that_was_searched_for_is_marked(visit):
    """Also where it stands in a picture, and in the title of a point in one."""
    page, journal = visit("book/02_saved_tensors.html?highlight=backward")
    assert page.locator("span.highlighted").count() > 20
    assert page.locator("svg rect.highlighted").count() > 0
    assert page.locator("svg title", has_text="backward").count() > 0
    assert journal.problems == []


@pytest.mark.large("a search is made, and its result is opened")
def test_search_finds_nothing_where_nothing_is(visit):
    page, _ = visit("book/index.html")
    search(page, "xylophonequartet")
    page.get_by_text("did not match any documents").wait_for()
    assert page.locator("#search-results li a").count() == 0


@one_width
def test_theme_switch_turns_the_page_dark_and_back(visit, width):
    page, journal = visit("book/index.html", width=width)

    def colours():
        return page.evaluate(
            "() => [document.documentElement.dataset.theme,"
            " getComputedStyle(document.body).backgroundColor]"
        )

    seen = set()
    switch = page.locator("button.theme-switch-button:visible").first
    for _ in range(3):
        switch.press("Enter")
        seen.add(tuple(colours()))
    assert {theme for theme, _ in seen} == {"light", "dark"}
    assert len({background for _, background in seen}) == 2
    assert journal.problems == []


def test_icons_are_drawn_without_a_script(visit):
    page, journal = visit("book/index.html", script=False)
    drawn = page.evaluate(
        "async () => { await document.fonts.ready; return"
        " [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family) }"
    )
    assert any("Font Awesome" in family for family in drawn)
    assert not any("fontawesome.js" in url for url in journal.bytes)
