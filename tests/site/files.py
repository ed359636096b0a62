"""What can be seen in the files of the built site without a browser."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

LOADING_LINKS = {"stylesheet", "preload", "prefetch", "modulepreload", "icon", "manifest"}
FOREIGN_IN_CSS = re.compile(r"""(?:url\(|@import\s+)\s*["']?((?:https?:)?//[^"')\s]+)""")
FOREIGN_IN_JS = re.compile(
    r"""(?:\bimport\(|\bimportScripts\(|\bfetch\(|\.src\s*=|\.href\s*=)\s*["'`](https?://[^"'`]+)"""
)


class Reader(HTMLParser):
    """The ids, links and loaded addresses of one page."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.css: list[str] = []
        self.js: list[str] = []
        self.meta: dict[str, str] = {}
        "The `<meta>` tags, by name or property."
        self.says: dict[str, str] = {}
        "The addresses that a page gives for itself."
        self.title = ""
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        has = {name: value or "" for name, value in attributes}
        self.inside = tag if tag in ("script", "style", "title") else ""
        self.ids |= {has[name] for name in ("id", "name") if has.get(name)}
        self.css.append(has.get("style", ""))
        if tag == "meta":
            key = has.get("name") or has.get("property") or ""
            self.meta[key] = has.get("content", "")
            if key in ("og:url", "og:image", "twitter:image"):
                self.says[key] = has["content"]
        elif tag == "link" and has.get("rel") == "canonical":
            self.says["canonical"] = has["href"]
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag == "link" and LOADING_LINKS & set(has.get("rel", "").split()):
            self.loads.append(has.get("href", ""))
        elif tag != "a" and "src" in has:
            self.loads.append(has["src"])

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "title":
            self.title += data
        elif self.inside:
            (self.css if self.inside == "style" else self.js).append(data)


def pages(site: Path) -> list[str]:
    """The pages of a built site, as addresses below its root."""
    found = (path.relative_to(site) for path in site.rglob("*.html"))
    return sorted(path.as_posix() for path in found if path.parts[0] not in ("_static", "_sources"))


def foreign(site: Path) -> list[str]:
    """What HTML, CSS and JavaScript of a site would load from another host."""
    found = []
    for name in pages(site):
        read = Reader((site / name).read_text(encoding="utf-8"))
        loaded = [url for url in read.loads if re.match(r"(?:https?:)?//", url)]
        loaded += FOREIGN_IN_CSS.findall("\n".join(read.css))
        loaded += FOREIGN_IN_JS.findall("\n".join(read.js))
        found += [f"{name} loads {url}" for url in loaded]
    for suffix, pattern in (("css", FOREIGN_IN_CSS), ("js", FOREIGN_IN_JS)):
        for path in sorted(site.rglob(f"*.{suffix}")):
            for url in pattern.findall(path.read_text(encoding="utf-8")):
                found.append(f"{path.relative_to(site)} loads {url}")
    return found


def dead_links(site: Path, address: str) -> list[str]:
    """Links and loaded files of the site itself that aren't there, anchors included.

    `address` is where the site will be: a link that begins with it is one of its own.
    """
    read = {name: Reader((site / name).read_text(encoding="utf-8")) for name in pages(site)}
    found = []
    for name, page in read.items():
        for link in [*page.links, *page.loads, *page.says.values()]:
            if not urljoin(address + name, link).startswith(address):
                continue
            parts = urlsplit(link)
            target = unquote(urlsplit(urljoin(address + name, link)).path) if parts.path else name
            target = target.removeprefix(urlsplit(address).path)
            target += "index.html" if target.endswith("/") else ""
            if not (site / target).is_file():
                found.append(f"{name}: {link}: no such file")
            elif parts.fragment and target in read:
                if unquote(parts.fragment) not in read[target].ids | {"", "top"}:
                    found.append(f"{name}: {link}: no such place on the page")
    return found


def formulas(source: Path) -> Iterator[str]:
    """The formulas in a source, notebook or Markdown, as `$…$` outside of code."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(`+).+?\1", "", text)
    yield from re.findall(r"\$\$?[^$]+\$\$?", text)


FIGURE = re.compile(r'<figure class="lens"[^>]*>.*?</figure>', re.DOTALL)
CAPTION = re.compile(r'<div class="?lens-caption"?[^>]*>(.*?)</div>', re.DOTALL)
CONTROLS_AND_NUMBERS = re.compile(r"<b>.*?</b>|<span class=lens-numbers>.*?</span>", re.DOTALL)


def silent_figures(html: str) -> list[str]:
    """Figures of a page that do not say what to see.

    A title that is that of a kind may stand once on a page. In a figure with choices each state
    has a sentence, besides what was chosen and the numbers. A verdict is left out: it is one.
    """
    found, titles = [], set()
    for figure in FIGURE.findall(html):
        head = figure[: figure.index(">")]
        title = re.search(r'aria-label="([^"]*)"', head)[1]
        if title.startswith("Check: "):
            continue
        if "data-title=own" not in head:
            if title in titles:
                found.append(f"{title}: the title of its kind, twice; see Result.titled")
            titles.add(title)
        said = CAPTION.findall(figure)
        silent = sum(not CONTROLS_AND_NUMBERS.sub("", one).strip() for one in said)
        if silent and len(said) > 1:
            found.append(f"{title}: {silent} of {len(said)} captions say only what was chosen")
    return found
