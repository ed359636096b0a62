"""The extension in `_ext/lean_pages`, on small texts: what it rewrites and what it refuses."""

import re
import shutil
from pathlib import Path, PurePath

import pytest
from fontTools.ttLib import TTFont
from lean_pages import (
    cards,
    code,
    css,
    figures,
    fonts,
    formulas,
    heights,
    icons,
    pages,
    scripts,
    styles,
)

from tools.building import build

ROOT = Path(__file__).parents[2]

PAGE = """<html lang="en" data-theme="auto"><head>
<script data-cfasync="false">
  document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";
</script>
<meta name="viewport" content="width=device-width" /><meta name="viewport" content="a" />
<link rel="preload" as="script" href="_static/scripts/bootstrap.js" />
<script defer src="_static/scripts/fontawesome.js?digest=1"></script>
<script src="_static/documentation_options.js?v=1"></script>
<script async="async" src="_static/own.js"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'book/index';</script>
<script src="_static/searchtools.js"></script>
<script src="_static/language_data.js"></script>
<script src="searchindex.js"></script>
</head><body><div id="pst-primary-sidebar" class="a"></div>
<div id="jb-print-docs-body" class="onlyprint"><h1>again</h1></div><div id="searchbox"></div>
<button title="Toggle primary sidebar"></button>
<a href="https://elsewhere.invalid/">a link</a>
<script type="application/vnd.jupyter.widget-state+json">{"state": {}}</script>
</body></html>"""


def test_a_page_becomes_lean_once():
    once = pages.lean(PAGE)
    assert pages.lean(once) == once
    assert "fontawesome" not in once and "searchindex" not in once and "widget-state" not in once
    assert once.count("viewport") == 1
    assert '<script defer src="_static/documentation_options.js' in once
    assert '<script async="async" src="_static/own.js">' in once
    assert '<script type="module">DOCUMENTATION_OPTIONS' in once
    assert "auto" not in once and '<html lang="en" data-theme="light">' in once
    assert 'aria-label="Toggle primary sidebar"' in once
    assert '<div id="pst-primary-sidebar" role="complementary"' in once
    assert "again" not in once and "preload" not in once


def test_the_search_page_keeps_its_index():
    lean = pages.lean(PAGE, is_search=True)
    assert '<script defer src="searchindex.js">' in lean


@pytest.mark.parametrize(
    "part",
    [
        "fontawesome.js",
        "searchtools.js",
        "language_data.js",
        "searchindex.js",
        "<script>DOCUMENTATION_OPTIONS",
        "<head>",
        "</head>",
        'name="viewport"',
        "Toggle primary sidebar",
        "pst-primary-sidebar",
        'id="searchbox"',
        'rel="preload"',
        ' data-theme="auto"',
        '|| "auto"',
    ],
)
def test_a_missing_pattern_raises(part):
    assert part in PAGE
    with pytest.raises(pages.PatternMissing):
        pages.lean(PAGE.replace(part, "<other>"))


def test_no_script_to_defer_raises():
    with pytest.raises(pages.PatternMissing):
        pages.defer_scripts("<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>")


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://elsewhere.invalid/a.js"></script>',
        '<script defer="defer" src="//elsewhere.invalid/a.js"></script>',
        '<link rel="stylesheet" href="https://elsewhere.invalid/a.css" />',
        '<img alt="" src="http://elsewhere.invalid/a.png">',
        '<script>const THEBE_JS_URL = "https://elsewhere.invalid/thebe.js";</script>',
    ],
)
def test_another_host_raises(tag):
    with pytest.raises(pages.OtherHost, match="elsewhere.invalid"):
        pages.lean(PAGE.replace("</body>", f"{tag}</body>"))


def test_the_root_page_escapes_what_it_is_given():
    html = pages.root_page("A & B", 'book/"x".html', 'https://a.invalid/"')
    assert "<title>A &amp; B</title>" in html and "url=book/&quot;x&quot;.html" in html
    assert 'href="https://a.invalid/&quot;"' in html


@pytest.mark.parametrize("display", [True, False])
def test_a_formula_becomes_html_and_mathml(display):
    html = formulas.to_html(r"\frac{a}{b}", display)
    assert "<mfrac>" in html and 'class="katex-html"' in html
    assert ("katex-display" in html) == display


@pytest.mark.parametrize("tex", [r"\frac{a", r"\nosuchcommand", "½z", r"\begin{matrix} a"])
def test_a_bad_formula_raises(tex):
    with pytest.raises(formulas.BadFormula):
        formulas.to_html(tex)


def test_style_sheet_and_script_are_of_one_version():
    version = formulas.engine().eval("katex.version")
    css = formulas.STYLE.read_text(encoding="utf-8")
    formulas.check_version(version, css)
    with pytest.raises(formulas.ExtensionError, match="one version"):
        formulas.check_version("0.0.1", css)
    with pytest.raises(formulas.ExtensionError, match="no version"):
        formulas.check_version(version, "")


def test_every_maths_font_that_the_style_sheet_names_is_there():
    named = re.findall(r"url\((fonts/[^)]+)\)", formulas.STYLE.read_text(encoding="utf-8"))
    there = sorted((formulas.STYLE.parent / "fonts").iterdir())
    assert sorted(named) == [f"fonts/{path.name}" for path in there] != []


def test_only_used_icons_keep_their_rule():
    css = '.fa-a:before,.fa-b:before{content:"\\f001"}.fa-c:before{content:"\\f002"}.fa-lg{x:y}'
    kept = icons.keep_rules(css, {"b", "lg"})
    assert kept == '.fa-a:before,.fa-b:before{content:"\\f001"}.fa-lg{x:y}'
    assert icons.glyphs_in(kept) == {0xF001}
    with pytest.raises(pages.PatternMissing, match="nosuch"):
        icons.keep_rules(css, {"nosuch"})
    with pytest.raises(pages.PatternMissing, match="no icon rules"):
        icons.keep_rules(".fa-lg{x:y}", {"lg"})
    with pytest.raises(pages.PatternMissing, match="font-face"):
        icons.use_woff("@font-face{}", "fa-solid-900")


def test_fonts_hold_the_used_glyphs_and_no_other(tmp_path):
    (tmp_path / "styles").mkdir()
    (tmp_path / icons.FONTS).mkdir(parents=True)
    (tmp_path / "own.css").write_text('a:before{content:"\\f00c"}')
    before, after = icons.shrink(tmp_path, {"bars", "solid"})
    assert after < before
    glyphs = TTFont(tmp_path / icons.FONTS / "fa-solid-900.woff").getBestCmap()
    assert {0xF0C9, 0xF00C} <= set(glyphs) and 0xF1F8 not in glyphs  # bars, check; no trash
    again = icons.shrink(tmp_path, {"bars", "solid"})
    assert again == (before, after)


def has(*names: str):
    """Whether a page has a name, for a page that has these."""
    return set(names).__contains__


@pytest.mark.parametrize(
    ("selector", "possible"),
    [
        ("a.b:hover > c[d] ~ #e::before", True),
        ("*", True),
        (":root", True),
        ("A", True),
        (".A", False),
        ("a.x", False),
        ("#x", False),
        ("x", False),
        ("a[x=b]", False),
        ("a:not(.x, #x)", True),
        ("a:nth-child(2n+1)", True),
        (":is(.x, .b)", True),
        (":is(.x, #x) a", False),
        ("a:has(> .x)", False),
        (":where(a, x) .b", True),
        (r".\\62", True),
    ],
)
def test_a_selector_needs_its_names(selector, possible):
    (rule,) = css.read(f"{selector.replace(chr(92) * 2, chr(92))}{{color:red}}")
    assert rule.selectors[0].possible(has("a", "b", "c", "d", "e")) == possible


def test_only_rules_that_can_match_stay_in_their_order():
    sheet = """@charset "utf-8"; .a, .x { color : red  !important; --empty: ; }
    /* why */ @media print { .x { color: blue } }
    @media (min-width: 3px) { .b::after { content: "x  y" } }
    @container one (min-width: 3px) { .b { top: 0 } .x { top: 1px } }
    @container (max-width: 9px) { .a { top: 0 } .x { top: 0 } }
    .x { margin: 0 } .a { *zoom: 1; background: url(pic/a.png) }"""
    rules = css.read(sheet, lambda url: f"../{url}")
    assert css.write(styles.kept(rules, has("a", "b"))) == (
        ".a{color:red!important;--empty: }"
        '@media (min-width: 3px){.b::after{content:"x  y"}}'
        "@container one (min-width: 3px){.b{top:0}}"
        "@container (max-width: 9px){.a{top:0}}"
        ".a{background:url(../pic/a.png)}"
    )


def test_what_nothing_refers_to_goes():
    sheet = """:root{--a:1;--b:var(--c);--c:2;--d:var(--e);--e:3;--f:4}
    a{margin:var(--b);animation:turn 1s}
    @keyframes turn{to{rotate:1turn}}@keyframes fade{to{opacity:0}}
    @font-face{font-family:"One";src:url(a)}@font-face{font-family:Two;src:url(b)}
    b{font-family:One}"""
    left = css.write(styles.referred(list(css.read(sheet)), "element.style.width = 'var(--f)'"))
    assert ":root{--b:var(--c);--c:2;--f:4}" in left
    assert "turn{" in left and "fade" not in left and '"One"' in left and "Two" not in left


@pytest.mark.parametrize("sheet", ["@layer a{b{c:d}}", "a{b:c} }", "a{b:c"])
def test_a_sheet_that_is_not_understood_raises_or_reads_as_in_a_browser(sheet):
    if sheet == "a{b:c":
        assert css.write(css.read(sheet)) == "a{b:c}"
        return
    with pytest.raises(css.Unreadable):
        css.read(sheet)


def test_a_page_gets_its_sheets_cut_and_in_their_order(tmp_path):
    static, page = tmp_path / "_static", tmp_path / "book" / "a.html"
    (static / "scripts").mkdir(parents=True)
    bootstrap = " ".join(text or name for name, text in styles.BOOTSTRAP.items())
    (static / "scripts" / "bootstrap.js").write_text(bootstrap)
    (static / "own.js").write_text("e.classList.add('made-later')")
    (static / "one.css").write_text(
        '@import "two.css"; .made-later { color: red } .never { top: 0 }'
    )
    (static / "two.css").write_text("p { background: url(b.png) }")
    html = """<head><link href="../_static/one.css?v=1" rel="stylesheet" />
<script defer src="../_static/scripts/bootstrap.js?v=2"></script><script src="../_static/own.js">
</script></head><p>"""
    style = re.search("<style[^>]*>(.*)</style>", styles.inline(html, page, tmp_path))[1]
    assert style == "p{background:url(../_static/b.png)}.made-later{color:red}"
    with pytest.raises(pages.PatternMissing, match="no style sheet"):
        styles.inline("<head></head>", page, tmp_path)
    with pytest.raises(pages.NotLean, match="no such file"):
        styles.inline('<link rel="stylesheet" href="gone.css">', page, tmp_path)
    (static / "scripts" / "bootstrap.js").write_text(bootstrap.replace("collapsing", ""))
    styles._text.cache_clear()
    with pytest.raises(pages.PatternMissing, match="collapsing"):
        styles.inline(html, page, tmp_path)


FIGURE = """<figure class="lens" role="figure" aria-label="x"><style>.lens{top:0}</style><b></b>
<template class=lens-frame></template><script>(w => {})(window);</script></figure>"""


def test_figures_share_one_style_and_one_script():
    page = f"<head></head><body>{FIGURE}<p>{FIGURE}</body>"
    html = figures.hoist(page)
    assert html.count("<style>.lens{top:0}</style>\n</head>") == html.count("<style") == 1
    assert html.count("<script>(w => {})(window);</script>\n</body>") == html.count("<script>") == 1
    assert figures.hoist("<head></head><body></body>") == "<head></head><body></body>"
    for part in ("<style>.lens{top:0}</style>", "<script>(w => {})(window);</script>", "</head>"):
        with pytest.raises(pages.PatternMissing):
            figures.hoist(
                page.replace(part, "", 1) if "script" not in part else page.replace(part, "")
            )


HEADED = """<figure class="lens" role="figure" aria-label="{0}" data-title=own><style>a</style>\
<figcaption><div class="lens-head"><b>{0}</b></div></figcaption></figure>"""


def test_figures_have_numbers_and_addresses():
    titles = ["What is kept?", "Check: w", "What is kept?", "1 &lt; 2"]
    html, count = figures.number("".join(map(HEADED.format, titles)), "6", 2)
    assert re.findall(r'id="([^"]*)"', html) == [
        "figure-what-is-kept",
        "figure-what-is-kept-2",
        "figure-1-2",
    ]
    assert re.findall(r'href="#([^"]*)">([^<]*)</a><b>', html) == [
        ("figure-what-is-kept", "Figure 6.3"),
        ("figure-what-is-kept-2", "Figure 6.4"),
        ("figure-1-2", "Figure 6.5"),
    ]
    assert count == 5
    assert ">Figure 1<" in figures.number(HEADED.format("x"), "", 0)[0]
    with pytest.raises(pages.PatternMissing, match="1 figures and 0 heads"):
        figures.number('<figure class="lens">', "", 0)


KEYED = (
    '<div class="lens-head"><span class="lens-legend">'
    '<span><i class="lens-key lens-saved"></i>saved tensor</span></span></div>'
)


def test_keys_lead_to_the_legend():
    linked = figures.link_legend(KEYED, "../legend.html")
    assert linked.count('<a class="lens-how" href="../legend.html">legend</a></span></div>') == 1
    without = re.sub("<span><i.*?</span>", "", KEYED)
    assert figures.link_legend(without, "legend.html") == without, "no keys, nothing to explain"


def test_a_further_page_belongs_to_its_chapter():
    chapters = ["book/01_tape.html", "book/01_tape/roots.html", "book/atlas.html"]
    assert [figures.chapter_of(PurePath(page)) for page in chapters] == ["1", "1", ""]


def test_frames_that_wait_are_text_on_a_page():
    frame = "<div class=lens-stage><svg><path d='M0 0'/></svg></div>"
    filled = FIGURE.replace("<template class=lens-frame>", f"<template class=lens-frame>{frame}")
    html = figures.hoist(f"<head></head><body>{filled}</body>")
    assert "<template" not in html
    assert f'<script type="text/plain" class=lens-frame>{frame}</script>' in html
    for broken in ("</SCRIPT>", "<script>", "<!--"):
        with pytest.raises(pages.NotLean, match="would end the script"):
            figures.hoist(f"<head></head><body>{filled.replace('<path', broken + '<path')}</body>")


PYGMENTS = """html[data-theme="light"] .highlight { background: #fff; color: #000 }
html[data-theme="dark"] .highlight { background: #000; color: #fff }
""" + "".join(
    f'html[data-theme="{theme}"] .highlight .{name} {{ color: {colour} }}\n'
    for theme, plain, marked in (("light", "#000", "red"), ("dark", "#fff", "blue"))
    for name, colour in {"n": plain, "p": plain, "k": marked, "ow": marked, "o": "green"}.items()
)


def test_code_has_marks_only_where_it_looks_different():
    look = code.looks(PYGMENTS)

    def slim(text):
        start, end = '<p><span class="n">k</span></p><div class="highlight"><pre>', "</pre></div>"
        new = code.slim(start + text + end, look)
        assert new.startswith(start) and new.endswith(end)
        return new.removeprefix(start).removesuffix(end)

    plain = '<span></span><span class="n">a</span><span class="p">,</span><span class="w"> </span>'
    assert slim(plain) == "a, "
    assert slim('<span class="k">in</span> <span class="ow">not</span>') == (
        '<span class="k">in not</span>'
    )
    for apart in (
        '<span class="k">in</span> <span class="o">+</span>',
        '<span class="k">in</span>a<span class="k">in</span>',
        "<span></span>\n",
    ):
        assert slim(apart) == apart
    once = slim('<span class="k">a</span><span class="n">b</span><span class="o">+</span>')
    assert slim(once) == once == '<span class="k">a</span>b<span class="o">+</span>'


def test_code_that_differs_in_one_theme_keeps_its_mark():
    other = '"dark"] .highlight .n {{ color: {}'.format
    sheet = PYGMENTS.replace(other("#fff"), other("red"))
    html = '<div class="highlight"><pre><span class="n">a</span></pre></div>'
    assert code.slim(html, code.looks(sheet)) == html
    assert code.slim(html, code.looks(PYGMENTS)) != html
    with pytest.raises(pages.PatternMissing, match="two themes"):
        code.looks(PYGMENTS.replace('"dark"', '"light"'))


def test_heights_are_guessed_for_the_sections_of_a_chapter():
    section = "<section class=a><h2>t</h2>{}</section>"
    html = f"<section><h1>T</h1>{section}{section}</section>"

    def heights_of(one, two):
        new = heights.guess(html.format(one, two))
        assert re.sub(r' style="[^"]*"', "", new) == html.format(one, two)
        return [int(n) for n in re.findall(r'<section style="--tall:(\d+)px" class=a>', new)]

    empty, short = heights_of("", "<p>word</p>")
    assert empty < short
    assert heights_of("<p>" + "word " * 100 + "</p>", "")[0] > short + 200
    lines = '<div class="highlight"><pre>a\nb\nc\n</pre></div>'
    assert heights_of(lines, "")[0] > empty + 60
    fold = f"<details><summary>s</summary>{lines}</details>"
    assert empty < heights_of(fold, "")[0] < heights_of(lines, "")[0]
    frame = f"<script>{lines}</script>"
    figure = f'<figure><svg viewBox="0 0 300 600"><text>t</text></svg>{frame}</figure>'
    assert heights_of(figure, "")[0] > empty + 600
    wide = figure.replace(
        "<script>", '<div class="lens-wide"><svg><text>t</text></svg></div><script>'
    )
    assert heights_of(wide, "") == heights_of(figure, ""), "a phone does not show it"
    rows = "<table>" + "<tr><td>word</td></tr>" * 90 + "</table>"
    table = f'<figure><div class="lens-table" data-rows="{{}}">{rows}</div></figure>'
    few, more, many = (heights_of(table.format(n), "")[0] for n in (1, 3, 90))
    assert few < more < many < few + 600, "a stage scrolls a long table"
    unclosed = "<p>word<ul><li>one<li>two</ul>"
    assert len(heights_of(unclosed, unclosed)) == 2


def test_buttons_to_copy_code_come_with_their_code():
    import sphinx_copybutton

    template = Path(sphinx_copybutton.__file__).parent / "_static" / "copybutton.js_t"
    script = template.read_text(encoding="utf-8")
    new = scripts.patched_copy(script)
    assert scripts.EACH not in new and "rootMargin" in new
    assert scripts.patched_copy(new) == new
    with pytest.raises(pages.PatternMissing):
        scripts.patched_copy(script.replace("codeCells.forEach", "for"))


def test_the_part_of_the_script_that_measures_everything_is_there_to_be_left_out():
    script = (icons.THEME / scripts.SCRIPT).read_text(encoding="utf-8")
    assert scripts.MEASURED not in scripts.patched(script)
    with pytest.raises(pages.PatternMissing):
        scripts.patched(scripts.patched(script))


def test_maths_fonts_hold_the_glyphs_of_the_formulas(tmp_path):
    html = f"<p>A ½</p>{formulas.to_html('x')}<p>B</p>"
    points = fonts.drawn_in([html, "<p>C</p>"])
    assert points == {ord("x")}
    before, after = fonts.cut_katex(tmp_path, points)
    assert after < before / 5
    assert set(TTFont(tmp_path / "KaTeX_Math-Italic.woff").getBestCmap()) == points
    with pytest.raises(pages.PatternMissing):
        fonts.cut_katex(tmp_path / "gone", points)


def test_a_card_is_the_same_each_time(tmp_path):
    one, two = tmp_path / "one.png", tmp_path / "a" / "two.png"
    cards.draw(
        "A title with $ and _ that is very long, so long that it does not fit", "A book", one
    )
    cards.draw(
        "A title with $ and _ that is very long, so long that it does not fit", "A book", two
    )
    assert one.read_bytes() == two.read_bytes()


TINY = {
    "_toc.yml": "format: jb-book\nroot: index\n",
    "_config.yml": f"""title: tiny
sphinx:
  local_extensions: {{lean_pages: {ROOT / "_ext"}}}
  config:
    html_math_renderer: katex
    html_context: {{default_mode: auto}}
    extensions: [myst_nb, sphinx_togglebutton, sphinx_copybutton, jupyter_book, sphinx_comments,
      sphinx_external_toc, sphinx_design, sphinx_book_theme, lean_pages]
""",
}


@pytest.mark.large("the book is built, and what a build refuses is refused above, piece by piece")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# A page\n\n$\\frac{a$\n", "index, line 3: bad formula `\\frac{a`"),
        ('# A page\n\nA.\n\n<img src="https://elsewhere.invalid/a.png" alt="">\n', "another host"),
        ("# A page\n\n```python\n1\n```\n", "no paragraph to describe the page by"),
        ("# A page\n\n$\\frac{a}{b}$\n", ""),
    ],
    ids=["bad formula", "another host", "no description", "good"],
)
def test_a_build_fails_loudly_and_only_when_it_must(tmp_path, text, problem):
    for name, content in {**TINY, "index.md": text}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    shutil.copytree(ROOT / "_static" / "katex", tmp_path / "_static" / "katex")
    run = build(tmp_path, tmp_path)
    assert bool(run.returncode) == bool(problem), run.stdout + run.stderr
    assert problem in run.stdout + run.stderr
