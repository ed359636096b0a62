"""The theme's icon fonts and their style sheet, cut down to the icons in use.

The theme ships FontAwesome whole, and this book shows about twenty of its
icons. Rules and glyphs of the others are left out. Always starts from the
theme's own files, so that a second build gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pydata_sphinx_theme

from .fonts import cut
from .pages import PatternMissing

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
SHEET = "styles/pydata-sphinx-theme.css"
FONTS = "vendor/fontawesome/webfonts"
# A rule that gives icons their glyph: .fa-bars:before,.fa-navicon:before{content:"\f0c9"}
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:{1,2}before,?)+)\{content:"[^"]*"\}')


def names_in(texts: Iterable[str]) -> set[str]:
    """The icon names (without `fa-`) that pages or scripts mention."""
    return {name for text in texts for name in re.findall(r"\bfa-([a-z0-9-]+)", text)}


def keep_rules(css: str, used: set[str]) -> str:
    """The style sheet without the rules of unused icons.

    Raises when it holds no icon rule at all, or nothing about a name in use.
    (`fa-solid`, `fa-lg` and the like have rules of another form, which stay.)
    """
    kept: set[str] = set()

    def one(rule: re.Match) -> str:
        names = set(re.findall(r"\.fa-([a-z0-9-]+):", rule[1])) & used
        kept.update(names)
        return rule[0] if names else ""

    css, rules = RULE.subn(one, css)
    if not rules:
        raise PatternMissing(f"no icon rules in the theme's {SHEET}")
    unknown = sorted(name for name in used - kept if f".fa-{name}" not in css)
    if unknown:
        raise PatternMissing(f"no rule in the theme's {SHEET} for the icons {', '.join(unknown)}")
    return css


def glyphs_in(css: str) -> set[int]:
    r"""Every private-use code point that a style sheet writes as `"\f0c9"`."""
    points = {int(code, 16) for code in re.findall(r'"\\([0-9a-f]{4})"', css)}
    return {point for point in points if 0xE000 <= point <= 0xF8FF}


def use_woff(css: str, font: str) -> str:
    """Point `@font-face` at the cut-down `.woff` instead of the whole `.woff2` and `.ttf`."""
    file = f"url(../{FONTS}/{font}"
    whole = f'{file}.woff2) format("woff2"),{file}.ttf) format("truetype")'
    if whole not in css:
        raise PatternMissing(f"no @font-face of {font} in the theme's {SHEET}")
    return css.replace(whole, f'{file}.woff) format("woff")')


def shrink(static: Path, used: set[str]) -> tuple[int, int]:
    """Rewrite sheet and fonts under the built `_static`; gives the bytes before and after."""
    whole = (THEME / SHEET).read_text(encoding="utf-8")
    css = keep_rules(whole, used)
    others = [p.read_text(encoding="utf-8") for p in static.rglob("*.css") if p != static / SHEET]
    points = glyphs_in("\n".join([css, *others]))
    before, after = len(whole.encode()), 0
    fonts = sorted((THEME / FONTS).glob("*.ttf"))
    if not fonts:
        raise PatternMissing(f"no fonts in the theme's {FONTS}")
    for font in fonts:
        target = static / FONTS / f"{font.stem}.woff"
        cut(font, target, points)
        css = use_woff(css, font.stem)
        before += font.with_suffix(".woff2").stat().st_size
        after += target.stat().st_size
    # Text must not wait for the icons.
    css = css.replace("font-display:block", "font-display:swap")
    (static / SHEET).write_text(css, encoding="utf-8")
    return before, after + len(css.encode())
