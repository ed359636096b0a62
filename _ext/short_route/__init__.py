"""The short route through a chapter: links between its stops, and a switch.

A Sphinx extension of this book. In the notebooks a stop is a blockquote,
`> **Short route.** Next stop: *Title of a section*`, which reads well anywhere. On a page the
title becomes a link, the sections of the route get the class `on-route`, and `route.js` offers to
hide the others. So do the titles in `> **Parts.** …`, the map of a long chapter. A title that no
section of the page has fails the build.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

MARK = "Short route."
MAP = "Parts."
"""How the blockquote begins that lists a long chapter's parts, each with its first section."""


class NoSuchStop(ExtensionError):
    """The short route leads to a section that the page does not have."""


class ShortRoute(SphinxTransform):
    """Turns the marks of a document into links and classes."""

    default_priority = 900  # ids of sections are final

    def apply(self, **options) -> None:
        """Rewrite the document in place."""
        titles = {section[0].astext(): section for section in self.document.findall(nodes.section)}
        for mark in self.document.findall(lambda node: begins_with(node, MARK)):
            section = mark
            while not isinstance(section, nodes.section):
                section = section.parent
            start = isinstance(section.parent, nodes.document)
            mark["classes"].append("route-start" if start else "route-stop")
            if not start:
                section["classes"].append("on-route")
            self.link(mark, titles, "the short route leads to")
        for parts in self.document.findall(lambda node: begins_with(node, MAP)):
            self.link(parts, titles, "a part begins with")

    def link(self, quote: nodes.block_quote, titles: dict, says: str) -> None:
        """Make a link of each title in a blockquote."""
        for title in list(quote.findall(nodes.emphasis)):
            name = title.astext()
            if name not in titles:
                raise NoSuchStop(
                    f"{self.env.docname}: {says} {name!r}, and no section has that title"
                )
            link = nodes.reference("", "", *title.children, internal=True)
            link["refid"] = titles[name]["ids"][0]
            title.replace_self(link)


def begins_with(node: nodes.Node, words: str) -> bool:
    """Whether `node` is a blockquote that begins with these words in bold."""
    if not isinstance(node, nodes.block_quote):
        return False
    bold = next(node.findall(nodes.strong), None)  # MyST puts an empty text before it
    return bold is not None and bold.astext() == words and node.astext().startswith(words)


def setup(app):
    """Register the transform, its script and its style."""
    here = Path(__file__).parent
    app.connect(
        "builder-inited", lambda app: app.config.html_static_path.append(str(here / "static"))
    )
    app.add_transform(ShortRoute)
    app.add_js_file("route.js")
    app.add_css_file("route.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
