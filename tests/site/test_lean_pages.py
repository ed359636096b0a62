"""The extension in `_ext/lean_pages`, on small texts: what it rewrites and what it refuses."""

import re
from pathlib import Path

import pytest
from building import build
from fontTools.ttLib import TTFont
from lean_pages import formulas, icons, pages

ROOT = Path(__file__).parents[2]

PAGE = """<html lang="en" data-theme="auto"><head>
<script data-cfasync="false">
  document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";
</script>
<meta name="viewport" content="width=device-width" /><meta name="viewport" content="a" />
<script defer src="_static/scripts/fontawesome.js?digest=1"></script>
<script src="_static/documentation_options.js?v=1"></script>
<script async="async" src="_static/own.js"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'book/index';</script>
<script src="_static/searchtools.js"></script>
<script src="_static/language_data.js"></script>
<script src="searchindex.js"></script>
</head><body><button title="Toggle primary sidebar"></button>
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
    html = pages.root_page("A & B", 'book/"x".html')
    assert "<title>A &amp; B</title>" in html and "url=book/&quot;x&quot;.html" in html


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# A page\n\n$\\frac{a$\n", "index, line 3: bad formula `\\frac{a`"),
        ('# A page\n\n<img src="https://elsewhere.invalid/a.png" alt="">\n', "another host"),
        ("# A page\n\n$\\frac{a}{b}$\n", ""),
    ],
    ids=["bad formula", "another host", "good"],
)
def test_a_build_fails_loudly_and_only_when_it_must(tmp_path, text, problem):
    for name, content in {**TINY, "index.md": text}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    run = build(tmp_path, tmp_path)
    assert bool(run.returncode) == bool(problem), run.stdout + run.stderr
    assert problem in run.stdout + run.stderr
