"""What a page says about itself: title, description, card for social media, its one address.

And the files by which a site is found or missed: sitemap.xml, robots.txt, 404.html. Every address
is made from the one that `tools/repository.py` gives.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from docutils import nodes

from .pages import NotLean, PatternMissing

CONFDIR = Path(__file__).resolve().parents[2]
sys.path.append(str(CONFDIR))  # tools/ is not installed

from tools.repository import address, site_address  # noqa: E402

DESCRIPTION_LENGTH = 200
MISSING = "404"
# Pages without a source.
DESCRIPTIONS = {"search": "Search the book for a word.", MISSING: "There is no such page."}


def configure(app, config) -> None:
    """Tell Sphinx and the theme the addresses; buttons for Colab and Binder where they can work.

    Both open the notebook from the branch `published`, which the publishing workflow writes: its
    notebooks install the package from the repository that they are in.
    """
    root = Path(app.confdir)
    if not (root / "pyproject.toml").exists():
        root = CONFDIR
    config.html_baseurl = site_address(root)
    config.html_theme_options = dict(config.html_theme_options) | launch(address(root))


def launch(repository: str) -> dict:
    """The theme's options for a repository: Colab and Binder know GitHub, and not every host."""
    if urlsplit(repository).netloc.lower() != "github.com":
        return {}
    return {
        "repository_url": repository,
        "repository_branch": "published",
        "launch_buttons": {
            "colab_url": "https://colab.research.google.com",
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        },
    }


def card(docname: str) -> str:
    """The picture of a page, from the top of the site."""
    return f"_static/cards/{docname.replace('/', '-')}.png"


def describe(app, pagename: str, template: str, context: dict, doctree) -> None:
    """Give a page its title and its `<meta>` tags (on html-page-context)."""
    book, root = app.config.html_title, app.config.root_doc
    title = nodes_text(context.get("title") or "")
    if pagename == root:
        context["docstitle"] = ""  # else its title is said twice
    if doctree is None:
        context["pageurl"] = None
        text = DESCRIPTIONS.get(pagename, f"{title}: {book}.")
        context["metatags"] = (
            f"{tag('name', 'description', text)}{tag('name', 'robots', 'noindex')}"
        )
        return
    given = app.env.metadata[pagename].get("description")
    text = given or first_paragraph(doctree)
    if not text:
        raise NotLean(f"{pagename}: no paragraph to describe the page by; give it a `description`")
    image = urljoin(app.config.html_baseurl, card(pagename))
    context["metatags"] = "".join(
        [
            tag("name", "description", text),
            tag("property", "og:type", "website" if pagename == root else "article"),
            tag("property", "og:site_name", book),
            tag("property", "og:title", title),
            tag("property", "og:description", text),
            tag("property", "og:url", context["pageurl"]),
            tag("property", "og:image", image),
            tag("property", "og:image:width", "1200"),
            tag("property", "og:image:height", "630"),
            tag("property", "og:image:alt", f"{book}: {title}"),
            tag("name", "twitter:card", "summary_large_image"),
            tag("name", "twitter:title", title),
            tag("name", "twitter:description", text),
            tag("name", "twitter:image", image),
        ]
    )


def tag(key: str, name: str, content: str) -> str:
    """A `<meta>` element."""
    return f'<meta {key}="{name}" content="{escape(content)}">\n'


def nodes_text(html: str) -> str:
    """The text of a title that may hold code."""
    return unescape(re.sub(r"<[^>]+>", "", html)).strip()


def first_paragraph(doctree: nodes.document) -> str:
    """The first sentences of the first paragraph, as many as fit."""
    for paragraph in doctree.findall(nodes.paragraph):
        if text := " ".join(paragraph.astext().split()):
            return shortened(text)
    return ""


def described(page: Path) -> str:
    """The description in a finished page."""
    found = re.search(r'<meta name="description" content="([^"]*)"', page.read_text("utf-8"))
    if not found:
        raise PatternMissing(f"{page.name} has no description: see lean_pages")
    return found[1]


def refuse_twins(descriptions: dict[str, str]) -> None:
    """Raise if two pages have the same description."""
    seen: dict[str, str] = {}
    for name, text in descriptions.items():
        if (other := seen.setdefault(text, name)) != name:
            raise NotLean(f"{other} and {name} have the same description: give one a `description`")


def shortened(text: str, length: int = DESCRIPTION_LENGTH) -> str:
    """Whole sentences up to `length` characters; of a first one that is longer, its beginning."""
    kept = ""
    for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z`])", text):
        if kept and len(kept) + 1 + len(sentence) > length:
            break
        kept = f"{kept} {sentence}".strip()
    if len(kept) > length:
        kept = kept[: length - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
    return kept


def missing_page(app) -> Iterable[tuple[str, dict, str]]:
    """404.html, which a host shows for an address that leads nowhere (on html-collect-pages)."""
    builder, titles = app.builder, app.env.titles
    links = "".join(
        f'<li><a href="{escape(builder.get_relative_uri(MISSING, name))}">'
        f"{escape(titles[name].astext())}</a></li>"
        for name in contents(app.env)
    )
    body = (
        "<section><h1>This page does not exist</h1>"
        "<p>The address is mistyped, or the page has moved. The search may find it, or one of "
        f"these pages:</p><ul>{links}</ul></section>"
    )
    yield MISSING, {"title": "Page not found", "body": body}, "page.html"


def contents(env) -> list[str]:
    """The documents of the book in the order of its table of contents."""
    order, todo = [], [env.config.root_doc]
    while todo:
        name = todo.pop(0)
        if name not in order:
            order.append(name)
            todo = [*env.toctree_includes.get(name, []), *todo]
    return order


def top(site: str) -> str:
    """The way from the top of a host to the site: `/`, or a folder."""
    return urlsplit(site).path


def from_the_top(html: str, site: str) -> str:
    """404.html with addresses that hold at any depth: from the top of the host."""
    pattern = (
        r'(\s(?:href|src|action|data-content_root)=")(?!#|/|[a-z][a-z0-9+.-]*:)(?:\./)?([^"]*)"'
    )
    html, found = re.subn(pattern, lambda m: f'{m[1]}{top(site)}{m[2]}"', html)
    if not found:
        raise PatternMissing("404.html links to nothing: see lean_pages")
    return html


def sitemap(site: str, pages: Iterable[str]) -> str:
    """sitemap.xml of the pages that a reader may be led to."""
    rows = "".join(f"<url><loc>{escape(urljoin(site, page))}</loc></url>\n" for page in pages)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
    )


def robots(site: str) -> str:
    """robots.txt: everything may be read, and this is the list."""
    return f"User-agent: *\nAllow: /\nSitemap: {urljoin(site, 'sitemap.xml')}\n"
