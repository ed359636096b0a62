"""`make look`: each measurement on a small page that is wrong and on one that is not; the sheets.

Geometry is explicit (`textLength`, boxes), so that no result depends on the fonts installed here.
"""

import contextlib
import subprocess
import sys

import pytest
from PIL import Image, ImageChops

from autograd_lens.view.html import script, style
from tools.browsing import serve
from tools.look import __main__ as command
from tools.look import album, sheets, stage
from tools.look.index import index_html
from tools.look.measure import measure_figures, measure_page
from tools.look.problems import KINDS, LOOKS, WORST, Look, Problem, by_kind, summary
from tools.look.site import BadUsage, chosen, pages
from tools.repository import ROOT

pytestmark = pytest.mark.needs("chromium")

# A tool is tested whole where it has changed.
WHOLE = pytest.mark.large("`make check` has it where tools/look has changed; one part is tested")

PHONE = LOOKS[0]
PLAYER = script()


def words(x, y, text="word", long=40, size=14, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" textLength="{long}" '
        f'lengthAdjust="spacingAndGlyphs"{more}>{text}</text>'
    )


def box(x, y, width, height, paint='fill="none" stroke="black"'):
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {paint}/>'


NO_PAINT = 'fill="none"'


def picture(inner, width=300, height=100, drawn=None):
    return (
        f'<svg viewBox="0 0 {width} {height}" '
        f'style="width: {drawn or width}px; min-width: 0; height: auto">{inner}</svg>'
    )


NODE = f'<g class="node">{box(20, 20, 100, 60)}{words(30, 55, "node", 80)}</g>'
GOOD = picture(NODE + words(150, 55, "beside"))
CONTROLS = (
    '<span class="lens-film"><button class="lens-prev">‹</button><input type="range" '
    """class="lens-choice" min="0" max="1" value="0" data-size="2" data-labels='["one", "two"]'>"""
    '<output>one</output><button class="lens-next">›</button></span>'
)
MENU = (
    '<span class="lens-choice lens-menu" data-size="2"><span>way</span>'
    '<button aria-pressed="true">a</button><button aria-pressed="false">b</button></span>'
)


def figure(*stages, caption="A caption.", head="", controls="", more="", player=PLAYER):
    """A figure as html.py writes it; of several stages, each is a state."""
    frames = "".join(
        f"<script type='text/plain' class=lens-frame><div class=lens-stage>{inner}</div>"
        f"<div class=lens-caption>{caption}</div></script>"
        for inner in stages
    )
    controls = controls or (CONTROLS if len(stages) > 1 else "")
    return (
        f'<figure class="lens" aria-label="a figure"><style>{style()}</style>'
        f'<div class="lens-head"><b>Title</b>{head}</div>'
        + (f'<div class="lens-controls">{controls}</div>' if controls else "")
        + f'<div class="lens-stage">{stages[0]}</div><div class="lens-gauge"></div>'
        f'<figcaption><div class="lens-caption">{caption}</div>'
        "<details><summary>as text</summary><pre>t</pre></details></figcaption>"
        f"{frames if len(stages) > 1 else ''}{more}<script>{player}</script></figure>"
    )


@pytest.fixture(scope="module")
def desk(browsing):
    """One page for all: a function that shows it with another body. Opening one takes a second."""
    context = browsing.browser.new_context(viewport={"width": PHONE.width, "height": 844})
    page, body = context.new_page(), []
    page.route("**/*", lambda route: route.fulfill(body=body[-1], content_type="text/html"))

    def show(inner):
        body.append(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{inner}</html>')
        page.goto("http://small.invalid/")
        return page

    yield show
    context.close()


@pytest.fixture
def measured(desk):
    """A function that gives the problems of a page, given what stands in its `main`."""

    def measured(inner):
        page = desk(f"<main>{inner}</main>")
        stage.prepare(page)
        stage.unfold(page)
        found = measure_page(page, "page", PHONE)
        stage.figures_alone(page)
        return found + measure_figures(page, "page", PHONE)

    return measured


def kinds(problems):
    return {problem.kind for problem in problems}


DRAWN = {
    "beyond the right side": (
        f'<g class="node">{box(20, 20, 100, 60)}{words(30, 55, "node", 130)}</g>',
        "text-leaves-box",
        40,
    ),
    "on both sides": (
        f'<g class="node">{box(50, 20, 100, 60)}'
        f"{words(100, 55, 'node', 140, text_anchor='middle')}</g>",
        "text-leaves-box",
        20,
    ),
    "below": (
        f'<g class="node">{box(20, 20, 100, 30)}{words(30, 60, "node", 80, size=40)}</g>',
        "text-leaves-box",
        10,
    ),
    "into the next cell": (
        f'<g class="node">{box(20, 20, 50, 60)}{box(70, 20, 150, 60)}{words(25, 55, "n", 110)}</g>',
        "text-leaves-box",
        65,
    ),
    "out of a polygon": (
        f'<g class="node"><polygon points="20,20 120,20 120,80 20,80" fill="none" stroke="black"/>'
        f"{words(30, 55, 'node', 130)}</g>",
        "text-leaves-box",
        40,
    ),
    "out of the picture": (words(250, 55, "far", 80), "text-leaves-picture", 30),
    "upright, out of the picture": (
        words(50, 55, "far", 80, transform="rotate(-90 50 55)"),
        "text-leaves-picture",
        25,
    ),
    "small": (words(50, 55, size=9), "text-small", 9),
    "small beside large": (NODE + words(150, 55, size=10), "text-small", 10),
    "two texts": (words(50, 55, "one") + words(70, 55, "two"), "texts-overlap", None),
    "the same text twice": (words(50, 55) + words(50, 55), "texts-overlap", None),
    "lines too close": (words(50, 55, "HHH") + words(50, 58, "HHH"), "texts-overlap", None),
}


@WHOLE
@pytest.mark.parametrize("inner, kind, px", DRAWN.values(), ids=DRAWN)
def test_what_is_wrong_with_a_drawn_text_is_seen(measured, inner, kind, px):
    (problem,) = measured(figure(picture(inner)))
    assert problem.kind == kind
    assert px is None or problem.px == pytest.approx(px, abs=1.5)


def test_text_that_a_small_screen_scales_down_is_seen(measured):
    (problem,) = measured(figure(picture(words(50, 55, long=80, size=16), width=500, drawn=250)))
    assert (problem.kind, round(problem.px, 1)) == ("text-small", 8.0)


FINE = {
    "a node and a text": NODE + words(150, 55),
    "two lines": words(50, 40, "glyph") + words(50, 40 + 1.2 * 14, "Ágly"),
    "two lines set close": words(50, 40, "name") + words(50, 40 + 1.05 * 14, "name"),
    "beside each other": words(50, 55, "one") + words(90, 55, "two"),
    "upright": words(50, 90, long=80, transform="rotate(-90 50 90)"),
    "not painted, over another": words(50, 55) + words(50, 55, fill="none"),
    "hidden, beyond": words(250, 55, long=80, style="visibility: hidden"),
    "on an arrow": '<g class="edge"><path d="M50 40L54 60" stroke="black"/>'
    + words(51, 55)
    + "</g>",
    "beside its node": f'<g class="node">{box(20, 20, 50, 60)}{words(90, 55)}</g>',
    "across a line": f'<g class="node">{box(20, 20, 200, 60)}{box(20, 50, 30, 1)}'
    + words(30, 55, long=100)
    + "</g>",
    "out of a box that is not painted": f'<g class="node">{box(20, 20, 50, 60, NO_PAINT)}'
    + words(30, 55, long=100)
    + "</g>",
    "of eleven pixels": words(50, 55, size=11),
    "nothing": '<text x="50" y="55"></text>',
}


@WHOLE
@pytest.mark.parametrize("inner", FINE.values(), ids=FINE)
def test_a_picture_that_is_well_drawn_passes(measured, inner):
    assert measured(figure(picture(inner))) == []


PARTS = {
    "no caption": (figure(GOOD, caption=""), "caption-missing"),
    "a caption of spaces": (figure(GOOD, caption=" "), "caption-missing"),
    "no element for it": (
        figure(GOOD).replace('<div class="lens-caption">A caption.</div>', ""),
        "caption-missing",
    ),
    "not displayed": (
        figure(GOOD, more="<style>.lens-caption { display: none }</style>"),
        "caption-hidden",
    ),
    "invisible": (
        figure(GOOD, more="<style>figcaption { visibility: hidden }</style>"),
        "caption-hidden",
    ),
    "transparent": (
        figure(GOOD, more="<style>.lens-caption { opacity: 0 }</style>"),
        "caption-hidden",
    ),
    "far away": (
        figure(GOOD, more="<style>.lens-caption { position: absolute; left: -999px }</style>"),
        "caption-hidden",
    ),
    "a button too wide": (
        figure(GOOD, head="<button style='flex: none; width: 500px'>b</button>"),
        "part-leaves-figure",
    ),
    "a figure too low": (
        figure(GOOD, more="<style>.lens { height: 90px }</style>"),
        "part-leaves-figure",
    ),
    "a stage that does not scroll": (
        figure(
            GOOD.replace("300px", "700px"), more="<style>.lens-stage { overflow: hidden }</style>"
        ),
        "part-cut",
    ),
    "a cut caption": (
        figure(GOOD, more="<style>.lens-caption { height: 4px; overflow: hidden }</style>"),
        "part-cut",
    ),
    "over each other": (
        figure(GOOD, more="<style>figcaption { margin-top: -60px !important }</style>"),
        "parts-overlap",
    ),
    "buttons over each other": (
        figure(GOOD, GOOD + " ", more="<style>.lens-next { margin-left: -40px }</style>"),
        "parts-overlap",
    ),
    "a label too long": (
        figure(
            GOOD, head="<span style='display: block; width: 9px; letter-spacing: 20px'>ww</span>"
        ),
        "text-leaves-box",
    ),
    "small HTML": (figure(GOOD, head="<i style='font-size: 9px'>note</i>"), "text-small"),
    "outside the column": (
        f'<div style="margin-right: -30px">{figure(GOOD)}</div>',
        "figure-outside-column",
    ),
    "the page": (
        figure(GOOD) + "<pre style='width: 900px'>x</pre>",
        "page-scrolls-sideways",
    ),
    "stuck": (figure(GOOD, GOOD, player=""), "figure-stuck"),
}


@WHOLE
@pytest.mark.parametrize("inner, kind", PARTS.values(), ids=PARTS)
def test_what_is_wrong_with_the_parts_of_a_figure_is_seen(measured, inner, kind):
    assert kind in kinds(measured(inner))


def test_every_kind_is_shown_to_be_seen():
    assert {kind for _, kind, *_ in [*DRAWN.values(), *PARTS.values()]} == set(KINDS)


WELL_MADE = {
    "still": figure(GOOD),
    "film": figure(GOOD, picture(words(50, 55, "other"))),
    "menu": figure(GOOD, picture(words(50, 55, "other")), controls=MENU),
    "wide, and scrolls": figure(GOOD.replace("width: 300px", "width: 900px")),
    "HTML too wide, and scrolls": figure("<div style='width: 900px'>wide</div>"),
    "a long line, and scrolls": figure("<p style='width: 9px; letter-spacing: 20px'>word</p>"),
    "a part in a part": figure(
        GOOD, head='<span class="lens-legend"><span>leaf <span>two</span></span></span>'
    ),
    "text": figure("<pre class='lens-text'>nothing to draw</pre>"),
    "a verdict": figure("<pre class='lens-text'>✓ w: exact</pre>", caption=""),
    "a row out of sight": figure(
        "<div style='height: 300px'></div><details><summary>row</summary></details>",
        more="<style>.lens-stage { height: 290px; overflow: auto }</style>",
    ),
    "in an answer": f"<details><summary>Answer</summary>{figure(GOOD)}</details>",
    "in a section that is not laid out": '<section style="content-visibility: auto; '
    f'contain-intrinsic-size: auto 40px; margin-top: 9000px">{figure(GOOD)}</section>',
    "none": "<p>no figure</p>",
}


@pytest.mark.parametrize("inner", WELL_MADE.values(), ids=WELL_MADE)
def test_a_well_made_figure_passes(measured, inner):
    assert measured(inner) == []


@pytest.mark.parametrize("tag", ["section", "div"])
def test_what_is_out_of_sight_is_laid_out(desk, tag):
    section = WELL_MADE["in a section that is not laid out"].replace("section", tag)
    page = desk(f"<main>{section}</main>")
    height = f"document.querySelector('{tag}').getBoundingClientRect().height"
    assert page.evaluate(height) == 40
    stage.prepare(page)
    assert page.evaluate(height) > 100


def test_what_is_folded_stays_folded(desk):
    page = desk("<details><summary>s</summary><p>folded</p></details>")
    stage.prepare(page)
    assert not page.locator("p").is_visible()


SECOND = picture(words(270, 55, "far", 80))


@pytest.mark.parametrize("controls, state", [(CONTROLS, "two"), (MENU, "b")])
def test_what_is_wrong_in_the_second_state_only_is_seen(measured, controls, state):
    (problem,) = measured(figure(GOOD, SECOND, controls=controls))
    assert (problem.kind, problem.states, problem.of) == ("text-leaves-picture", (state,), 2)
    assert f"state '{state}' of 2" in str(problem)


def test_what_is_wrong_in_two_states_is_one_problem(measured):
    (problem,) = measured(figure(SECOND, SECOND + "<!-- -->"))
    assert problem.states == ("one", "two")
    assert "every state" in str(problem)


def test_the_states_of_two_choices_are_all_seen(measured):
    stages = [picture(words(50, 50, f"number {k}") + words(270, 80, "far", 80)) for k in range(4)]
    (problem,) = measured(figure(*stages, controls=MENU + CONTROLS))
    assert problem.states == ("a, one", "a, two", "b, one", "b, two")


def test_a_problem_names_its_figure_by_number(measured):
    assert {problem.figure for problem in measured(figure(GOOD) + figure(SECOND))} == {2}


def test_the_list_is_bounded_and_begins_with_the_worst():
    problems = [
        Problem("text-small", "p", PHONE, f"“{k}”", px=float(k), figure=k, title="t")
        for k in range(1, 11)
    ]
    lines = summary(problems).splitlines()
    assert lines[0] == "text under 11 px: 10, in 10 places"
    assert "1.0 px" in lines[1]
    assert lines[WORST + 1] == f"  … and {10 - WORST} more"
    assert len(lines) == WORST + 2


def test_the_list_shows_a_figure_once_for_each_kind():
    same = [Problem("texts-overlap", "p", PHONE, str(k), 1.0 + k, 3, "t") for k in range(4)]
    other = Problem("texts-overlap", "p", PHONE, "other", 0.5, 4, "t")
    lines = summary([*same, other]).splitlines()
    assert len(lines) == 4 and "other" in lines[2] and "3 more" in lines[3]
    assert list(by_kind([other])) == ["texts-overlap"]


def test_no_problems_make_an_empty_list():
    assert summary([]) == ""


# The sheets


def flat(width, height, colour):
    return Image.new("RGB", (width, height), colour)


COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (200, 200, 0)]


def place(image, colour):
    """Left end of a colour on an image, or None."""
    apart = ImageChops.difference(image, flat(*image.size, colour)).convert("L")
    found = apart.point(lambda value: 255 * (value == 0)).getbbox()
    return found and found[0]


def rows(count, height=500):
    sizes = [(358, height), (358, height), (860, height), (860, height)]
    pictures = tuple(flat(*size, colour) for size, colour in zip(sizes, COLOURS, strict=True))
    return [sheets.Row(f"figure {k}", pictures, "1 problem") for k in range(count)]


@pytest.mark.parametrize("count, height, expected", [(1, 500, 1), (9, 700, 2), (2, 9000, 2)])
def test_sheets_of_figures_are_of_a_size_that_can_be_looked_at(count, height, expected):
    drawn = list(sheets.figure_sheets("t", tuple(map(str, LOOKS)), rows(count, height)))
    assert len(drawn) == expected
    for sheet in drawn:
        assert sheet.width <= sheets.WIDE and sheet.height <= sheets.HIGH


def test_a_sheet_has_the_four_looks_side_by_side_and_phones_unscaled():
    (sheet,) = sheets.figure_sheets("t", tuple(map(str, LOOKS)), rows(1))
    places = [place(sheet, colour) for colour in COLOURS]
    assert None not in places and places == sorted(places)
    assert places[1] - places[0] == 358 + sheets.GAP


def test_no_figure_makes_no_sheet():
    assert list(sheets.figure_sheets("t", tuple(map(str, LOOKS)), [])) == []


def test_a_long_page_is_cut_into_columns_and_sheets():
    strips = [("390 light", flat(195, 9000, COLOURS[0])), ("1280 dark", flat(448, 50_000, 0))]
    drawn = list(sheets.page_sheets("t", strips))
    assert len(drawn) == 3
    for sheet in drawn:
        assert sheet.width <= sheets.WIDE and sheet.height <= sheets.HIGH
    assert place(drawn[0], COLOURS[0]) == sheets.GAP


def test_the_four_looks_of_a_short_page_share_a_sheet():
    strips = []
    for look in LOOKS:
        scale = album.scale_of(look.width, 5000)
        strips.append((str(look), flat(int(look.width * scale), int(5000 * scale), 0)))
    assert len(list(sheets.page_sheets("t", strips))) == 1
    assert album.scale_of(390, 150_000) < scale


def test_sheets_are_written_under_numbers(tmp_path):
    paths = sheets.write([flat(2, 2, 0), flat(3, 3, 0)], tmp_path, "a-page")
    assert [path.name for path in paths] == ["a-page-01.png", "a-page-02.png"]
    assert Image.open(paths[1]).size == (3, 3)


def test_the_index_leads_to_the_sheets_and_lists_all_problems(tmp_path):
    some = [Problem("texts-overlap", "p", PHONE, f"<{k}>", 1.0 + k, k + 1, "t") for k in range(20)]
    html = index_html({"a/b": [tmp_path / "a-b-page-01.png"]}, some)
    assert 'href="a-b-page-01.png"' in html and "texts that overlap: 20" in html
    assert all(f"&lt;{k}&gt;" in html for k in range(20))
    assert "Nothing" in index_html({}, [])


# A site from its files to the exit status

PATCH = """<style>
body { margin: 0; background: white }
.patch { height: 60px; background: rgb(200, 0, 0) }
html[data-theme="dark"] .patch { background: rgb(0, 200, 0) }
@media (min-width: 800px) { .patch { background: rgb(0, 0, 200) }
  html[data-theme="dark"] .patch { background: rgb(200, 200, 0) } }
</style>"""
LEADS_ON = '<meta http-equiv="Refresh" content="0; url=book/good.html">'


@pytest.fixture
def small_site(tmp_path):
    """A site of two pages, one of them wrong in the second state of its second figure."""
    site = tmp_path / "site"
    (site / "book").mkdir(parents=True)
    (site / "_static").mkdir()
    (site / "index.html").write_text(LEADS_ON, "utf-8")
    (site / "_static" / "part.html").write_text("no page", "utf-8")
    patch = "<div class='patch'></div>"
    for name, last in (("good", picture(NODE)), ("wrong", SECOND)):
        body = PATCH + figure(patch + GOOD) + figure(GOOD, patch + last)
        (site / "book" / f"{name}.html").write_text(
            f'<!doctype html><html lang="en" data-theme="light"><body><main>{body}</main></html>',
            "utf-8",
        )
    return site


@pytest.fixture
def look(small_site, tmp_path, browsing, monkeypatch, capsys):
    """A function that runs the command on that site; gives the status and what it said."""
    monkeypatch.setattr(command, "Browsing", lambda program: contextlib.nullcontext(browsing))

    def look(*arguments, site=small_site, out=tmp_path / "out"):
        status = command.main([*arguments, "--site", str(site), "--out", str(out)])
        return status, capsys.readouterr()

    return look


def test_the_pages_of_a_site_are_those_that_are_read(small_site):
    assert pages(small_site) == ["book/good", "book/wrong"]


@pytest.mark.parametrize(
    "asked", ["good", "book/good", "book/good.ipynb", "book/good.html", "./book/good.md"]
)
def test_a_page_is_known_by_its_name_and_its_files(small_site, asked):
    assert chosen(small_site, [asked, "good"]) == ["book/good"]


def test_a_page_that_is_not_there_is_refused_with_those_that_are(small_site):
    with pytest.raises(BadUsage, match="no page od; there are: book/good, book/wrong"):
        chosen(small_site, ["od"])


@WHOLE
def test_where_nothing_is_wrong_the_status_is_0(look, tmp_path):
    status, said = look("good")
    assert (status, "Nothing" in said.out) == (0, True)
    assert "Nothing" in (tmp_path / "out" / "index.html").read_text("utf-8")


@WHOLE
def test_what_is_wrong_is_listed_on_the_terminal_and_in_the_index(look, tmp_path):
    status, said = look()
    assert status == 1
    index = (tmp_path / "out" / "index.html").read_text("utf-8")
    for text in (said.out, index):
        assert "text that leaves the picture: 2" in text
        assert "book/wrong, 390 light, figure 2 (a figure), state" in text
    assert "book-good-figures-01.png" in index and "book-wrong-page-01.png" in index


@WHOLE
def test_sheets_show_the_four_looks_and_the_last_state(look, tmp_path):
    look("good")
    out = tmp_path / "out"
    for kind in ("figures", "page"):
        sheet = Image.open(out / f"book-good-{kind}-01.png")
        places = [place(sheet, colour) for colour in COLOURS]
        assert None not in places and places == sorted(places), kind
    assert {path.name for path in out.iterdir()} == {
        "book-good-figures-01.png",
        "book-good-page-01.png",
        "index.html",
    }


@WHOLE
def test_the_last_state_is_drawn_where_there_is_one(small_site, browsing):
    with serve(small_site) as address:
        looked = album.look_at_page(browsing, address, "book/good")
    assert looked.states == [1, 2]
    assert set(looked.figures) == {(0, False), (1, False), (1, True)}
    assert looked.labels[1, True] == "2  a figure — last of 2: two"
    for look in LOOKS:
        opening, last = looked.figures[1, False][look], looked.figures[1, True][look]
        colour = COLOURS[LOOKS.index(look)]
        assert place(opening, colour) is None and place(last, colour) is not None


@WHOLE
def test_sheets_of_an_earlier_run_are_taken_away_and_nothing_else(look, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("old-figures-01.png", "old-page-01.png", "mine.png"):
        (out / name).write_bytes(b"")
    look("good")
    names = {path.name for path in out.iterdir()}
    assert "mine.png" in names and not any(name.startswith("old") for name in names)


def test_what_can_not_be_looked_at_is_said_and_the_status_is_2(look, tmp_path):
    assert "run `make book`" in refused(look(site=tmp_path / "nothing"))
    assert "there are: book/good, book/wrong" in refused(look("nothing"))
    (tmp_path / "file").write_text("")
    assert "can't be written to" in refused(look("good", out=tmp_path / "file"))


def test_without_a_browser_the_status_is_2(look, monkeypatch):
    monkeypatch.setattr(command, "find_program", lambda name: None)
    assert "no Chromium" in refused(look("good"))


def refused(answer):
    status, said = answer
    assert status == 2 and said.out == ""
    return said.err


def test_the_command_line_is_a_module(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tools.look", "--site", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 2 and "make book" in run.stderr and "Traceback" not in run.stderr


def test_a_look_is_called_by_width_and_theme():
    assert list(map(str, LOOKS)) == ["390 light", "390 dark", "1280 light", "1280 dark"]
    assert str(Look(5, "light")) == "5 light"
