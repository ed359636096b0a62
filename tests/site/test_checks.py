"""Each check of this folder, on a small page that is wrong: it must say so.

And on its well-made twin, where it must say nothing.
"""

import checks
import files
import pytest

pytestmark = [
    pytest.mark.needs("chromium"),
    pytest.mark.large("`make check` has it where a check or the browser's helper has changed"),
]

PLAYER = """<script>document.addEventListener('input', e => {
  const f = e.target.closest('figure'), t = f.querySelectorAll('template')[e.target.value];
  f.querySelector('.lens-stage').replaceChildren(t.content.cloneNode(true));
})</script>"""
TITLES = """<script>document.addEventListener('input', e => {
  e.target.closest('figure').querySelector('.lens-caption').textContent = e.target.value;
})</script>"""
SLIDER = '<input type="range" class="lens-choice" min="0" max="1" value="0" aria-label="step">'
MENU = """<span class="lens-choice lens-menu"><button aria-pressed="true">a</button>
<button aria-pressed="false">b</button></span>"""
# Turns the frames of a menu, and says in `aria-pressed` what is chosen, or does not say it.
UNTOLD = """<script>document.addEventListener('click', e => {
  const f = e.target.closest('figure'), all = [...f.querySelectorAll('button')];
  const t = f.querySelectorAll('template')[all.indexOf(e.target)];
  f.querySelector('.lens-stage').replaceChildren(t.content.cloneNode(true));
})</script>"""
TOLD = UNTOLD.replace("const t", "all.forEach(b => b.ariaPressed = b === e.target); const t")
FILM = """<style>@media (scripting: none) {{ .lens-controls {{ display: none }} }}</style>
<figure class="lens" role="figure" aria-label="{name}">
<div class="lens-stage"><svg width="50" height="20"><text y="15">a</text></svg></div>
<div class="lens-controls">{controls}</div><p class="lens-caption">c</p>
<details><summary>as text</summary><div class="lens-twin"><pre>{twin}</pre></div></details>
<template class=lens-frame><svg width="50" height="20"><text y="15">a</text></svg></template>
<template class=lens-frame><svg width="50" height="20"><text y="15">b</text></svg></template>
</figure>"""


def film(name="a film", controls=SLIDER, twin="text", player=PLAYER) -> str:
    return FILM.format(name=name, controls=controls, twin=twin) + player


@pytest.mark.parametrize("controls, player", [(SLIDER, PLAYER), (MENU, TOLD)])
def test_a_good_figure_passes_every_check(small_page, controls, player):
    page, journal = small_page(f"<main><h1>t</h1>{film(controls=controls, player=player)}</main>")
    for check in (
        checks.dead_controls,
        checks.deaf_figures,
        checks.unnamed_figures,
        checks.broken_references,
        checks.too_wide,
        checks.clipped_maths,
        checks.cut_controls,
        checks.raw_maths,
        checks.barriers,
    ):
        assert check(page) == []
    assert journal.problems == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<img src="https://elsewhere.invalid/a.png">', "request to another host"),
        ('<script src="//elsewhere.invalid/a.js"></script>', "request to another host"),
        ("<script>fetch('http://127.0.0.1:1/a')</script>", "request to another host"),
        ("<script>nothing.there</script>", "uncaught"),
        ("<script>console.error('oh')</script>", "console: oh"),
        ('<img src="not-there.png">', "not found"),
    ],
)
def test_the_journal_sees(small_page, body, problem):
    page, journal = small_page(body)
    assert any(problem in said for said in journal.problems)


def test_the_journal_weighs(small_page):
    page, journal = small_page("<p>" + "ab" * 50_000)
    assert [0 < size < 10_000 for size in journal.bytes.values()] == [True]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_too_wide_sees(small_page, theme):
    page, _ = small_page('<pre class="long" style="width: 500px">x</pre>', width=390, theme=theme)
    assert "long" in checks.too_wide(page)[0]


def test_too_wide_lets_scroll_what_scrolls_by_itself(small_page):
    page, _ = small_page(
        '<div style="overflow-x: auto"><p style="width: 900px">x</p></div>', width=390
    )
    assert checks.too_wide(page) == []


@pytest.mark.parametrize(
    ("style", "problem"),
    [
        ("display: flex; justify-content: center; overflow: hidden", "on the left"),
        ("overflow: hidden", "on the right"),
    ],
)
def test_clipped_maths_sees(small_page, style, problem):
    formula = '<span class="katex-html"><span class="base" style="display: block; width: 600px;'
    formula += ' flex: none">x</span></span>'
    page, _ = small_page(f'<div class="math" style="{style}">{formula}</div>', width=390)
    assert problem in checks.clipped_maths(page)[0]


@pytest.mark.parametrize(
    "text",
    [
        "so $x^2$ is",
        r"so \(x\) is",
        r"\[x\]",
        "$$x$$",
        '<span class="math">x</span>',
        '<span class="math"><span class="katex">x</span></span>',
        '<span class="katex-error">x</span>',
    ],
)
def test_raw_maths_sees(small_page, text):
    page, _ = small_page(f"<article><p>{text}</p></article>")
    assert checks.raw_maths(page)


def test_raw_maths_leaves_code_alone(small_page):
    page, _ = small_page("<article><p><code>$x$</code></p><pre>$HOME $PATH</pre></article>")
    assert checks.raw_maths(page) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (film(player=""), "changes nothing"),
        (film(controls=""), "no control"),
        (film(controls=SLIDER.replace("<input", "<input hidden")), "can't be seen"),
        (film(controls=SLIDER.replace("<input", '<input tabindex="-1"')), "with Tab"),
        (film(controls=SLIDER.replace('max="1"', 'max="0"')), "one value"),
        (film(player=TITLES), "the same picture"),
        (film(controls=SLIDER.replace("<input", "<input disabled")), "changes nothing"),
        (film(controls='<button class="lens-next">n</button>'), "lens-next changes nothing"),
        (film(controls='<button class="lens-play">p</button>'), "lens-play changes nothing"),
        (film(controls=MENU, player=""), "'b' changes nothing"),
        (film(controls=MENU.replace("<button", "<button tabindex=-1")), "with Tab"),
        (film(controls=MENU, player=UNTOLD), "'b' was chosen, and ['a'] is said to be"),
    ],
)
def test_dead_controls_sees(small_page, body, problem):
    page, _ = small_page(body)
    assert any(problem in said for said in checks.dead_controls(page))


@pytest.mark.parametrize(
    "body",
    [
        film(player=""),
        film(controls=""),
        film(controls=MENU, player=""),
    ],
)
def test_deaf_figures_sees(small_page, body):
    page, _ = small_page(body)
    assert len(checks.deaf_figures(page)) == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (film(name=""), "no accessible name"),
        (film(twin=" "), "no text twin"),
        (film().replace('role="figure"', ""), "no role"),
        (film().replace("<pre>", "<p>"), "no text twin"),
        (film().replace("<svg", "<b", 1), "shows nothing"),
    ],
)
def test_unnamed_figures_sees(small_page, body, problem):
    page, _ = small_page(body)
    assert any(problem in said for said in checks.unnamed_figures(page))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<svg><path fill="url(#gone)"/></svg>', "leads nowhere"),
        ('<svg><use href="#gone"/></svg>', "leads nowhere"),
        (film().replace("<text", '<text id="same"') * 2, "twice"),
    ],
)
def test_broken_references_sees(small_page, body, problem):
    page, _ = small_page(body)
    assert any(problem in said for said in checks.broken_references(page))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (film().replace("<svg", '<svg style="display: none"', 1), "first frame"),
        (film().replace("display: none", ""), "controls"),
        (film().replace("<summary>", "<b>").replace("</summary>", "</b>"), "no twin"),
        (film().replace("<summary>", '<summary onclick="return false" inert>'), "twin"),
    ],
)
def test_hidden_without_script_sees(small_page, body, problem):
    page, _ = small_page(body, script=False)
    assert any(problem in said for said in checks.hidden_without_script(page))


def test_hidden_without_script_accepts_a_good_film(small_page):
    page, _ = small_page(film(), script=False)
    assert checks.hidden_without_script(page) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<main><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='></main>", "image-alt"),
        ("<main><p style='color: #999; background: #aaa'>faint</p></main>", "color-contrast"),
        ("<main><details><button></button></details></main>", "button-name"),
    ],
)
def test_barriers_sees(small_page, body, problem):
    page, _ = small_page(body)
    checks.unfold(page)
    assert any(said.startswith(problem) for said in checks.barriers(page))


WORDS = """<main><h1>t</h1><pre>{}</pre></main>""".format(
    '<span class="n">a</span> <span class="n">word</span> ' * 9
)
FAINT = "color: #999; background: #aaa"


@pytest.mark.parametrize(
    "body",
    [
        WORDS.replace('"n"', f'"n" style="{FAINT}"'),
        WORDS.replace("</pre>", f'<span class="n" style="{FAINT}">word</span></pre>'),
        WORDS + WORDS.replace("<pre>", f'<pre style="{FAINT}">'),
        WORDS + WORDS.replace("<main>", "<main style='background: #222'>"),
        WORDS + WORDS.replace("<main>", "<main style='opacity: .3'>"),
    ],
    ids=["all words", "the last word", "a block", "the ground", "the opacity"],
)
def test_one_faint_word_among_many_that_look_alike_is_seen(small_page, body):
    page, _ = small_page(body)
    assert any(said.startswith("color-contrast") for said in checks.barriers(page))


def test_words_that_look_alike_are_not_all_looked_at(small_page):
    page, _ = small_page(WORDS + WORDS)
    assert page.evaluate(checks.SOME_OF_EACH, 4) == 4 * 9 - 4 - 4
    assert set(page.locator("pre span").all_inner_texts()) == {"a", "word"}


def test_barriers_may_leave_out_a_part(small_page):
    page, _ = small_page("<main><button></button><article><button></button></article></main>")
    said = " ".join(checks.barriers(page, without="article"))
    assert "button-name" in said and "article" not in said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://elsewhere.invalid/a.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//elsewhere.invalid/a.css">'),
        ("a.html", '<img src="http://elsewhere.invalid/a.png">'),
        ("a.html", "<style>a { background: url(https://elsewhere.invalid/a.png) }</style>"),
        ("a.html", "<script>import('https://elsewhere.invalid/a.js')</script>"),
        ("a.css", "@import 'https://elsewhere.invalid/a.css';"),
        ("a.js", 'e.src = "https://elsewhere.invalid/a.js"'),
    ],
)
def test_foreign_sees(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert "elsewhere.invalid" in files.foreign(tmp_path)[0]


def test_foreign_lets_a_reader_follow_links(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://elsewhere.invalid/">there</a>')
    assert files.foreign(tmp_path) == []


def told(title, *captions, own=False):
    """A figure as it stands on a page: a caption, and one for each frame that waits."""
    said = "".join(f"<div class=lens-caption>{caption}</div>" for caption in captions)
    return f'<figure class="lens" aria-label="{title}"{" data-title=own" * own}>{said}</figure>'


CHOSEN = "<b>op = sin</b> <span class=lens-numbers>1 saved tensor</span>"


@pytest.mark.parametrize(
    ("html", "phrase"),
    [
        (told("Saved tensors", "1") + told("Saved tensors", "1"), "of its kind, twice"),
        (told("a", "Look.", CHOSEN, own=True), "a: 1 of 2 captions say only what was chosen"),
        (told("a", CHOSEN, CHOSEN, own=True), "a: 2 of 2 captions"),
    ],
)
def test_silent_figures_sees(html, phrase):
    (found,) = files.silent_figures(html)
    assert phrase in found


def test_silent_figures_lets_speak():
    said = CHOSEN.replace("</b>", ":</b> sin keeps its input.")
    assert files.silent_figures(told("Saved tensors", CHOSEN) + told("a", said, said)) == []
    assert files.silent_figures(told("a", said, own=True) * 2 + told("Check: b", CHOSEN) * 2) == []


@pytest.mark.parametrize(("width", "cut"), [(60, False), (300, True)])
def test_cut_controls_sees(small_page, width, cut):
    page, _ = small_page(
        '<figure class="lens" aria-label="f" style="width:200px"><div class="lens-controls">'
        f'<input style="width:{width}px"></div></figure>'
    )
    assert bool(checks.cut_controls(page)) == cut


def test_dead_links_sees(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">+</a><a href="b/c.html#there">+</a><a href="#gone">-</a>'
        '<a href="b/c.html#gone">-</a><a href="b/d.html">-</a><script src="e.js"></script>'
    )
    (tmp_path / "b" / "c.html").write_text('<p id="there"><a href="../a.html">+</a>')
    assert len(files.dead_links(tmp_path, "https://a.invalid/")) == 4


def test_formulas_are_counted_outside_of_code(tmp_path):
    source = tmp_path / "a.md"
    source.write_text("$a$ and `$b$`\n\n```\n$c$\n```\n\n$$d\n+ e$$\n")
    assert list(files.formulas(source)) == ["$a$", "$$d\n+ e$$"]
