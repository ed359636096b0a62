"""Style sheets as data: read with tinycss2, and written again without a needless byte.

Knows what a selector asks for by name. Does not know the cascade: order is kept, and that is all
that is needed to leave rules out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import tinycss2
from tinycss2 import ast

GROUPS = {"media", "supports", "container"}
ANY_OF = {"is", "where", "has", "matches", "-webkit-any", "-moz-any"}


@dataclass(frozen=True)
class Selector:
    """One selector of a list, and whether it could match."""

    text: str
    tokens: Sequence[ast.Node]

    def possible(self, has: Callable[[str], bool]) -> bool:
        """Whether `has` knows every element, class, id and attribute that must be there."""
        return _possible(self.tokens, has)


@dataclass(frozen=True)
class Style:
    """A style rule: selectors, and declarations as (name, text)."""

    selectors: tuple[Selector, ...]
    declarations: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Group:
    """Rules under a condition, such as `@media print`."""

    condition: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Named:
    """`@font-face` or `@keyframes`, with the name by which others refer to it."""

    kind: str
    name: str
    text: str


Rule = Style | Group | Named


class Unreadable(ValueError):
    """A style sheet holds what this module does not know how to keep."""


def read(css: str, url: Callable[[str], str] = str) -> tuple[Rule, ...]:
    """The rules of a style sheet; `url` gives the new address for one that it names."""
    return tuple(_rules(tinycss2.parse_stylesheet(css, True, True), url))


def imports(css: str) -> list[str]:
    """The addresses that a style sheet imports at its head."""
    nodes = tinycss2.parse_stylesheet(css, True, True)
    heads = [n for n in nodes if n.type == "at-rule" and n.lower_at_keyword == "import"]
    return [next(t.value for t in n.prelude if t.type in ("string", "url")) for n in heads]


def write(rules: Iterable[Rule]) -> str:
    """The rules as text."""
    return "".join(map(_write, rules))


def _write(rule: Rule) -> str:
    if isinstance(rule, Named):
        return rule.text
    if isinstance(rule, Group):
        return f"{rule.condition}{{{write(rule.rules)}}}"
    selectors = ",".join(selector.text for selector in rule.selectors)
    return f"{selectors}{{{';'.join(f'{name}:{text}' for name, text in rule.declarations)}}}"


def _rules(nodes: Iterable[ast.Node], url: Callable[[str], str]) -> Iterable[Rule]:
    for node in nodes:
        if node.type == "error":
            raise Unreadable(f"line {node.source_line}: {node.message}")
        if node.type == "qualified-rule":
            found = tinycss2.parse_declaration_list(node.content, True, True)
            # What a browser can't read as a declaration it leaves out too.
            declarations = [d for d in found if d.type == "declaration"]
            yield Style(
                tuple(Selector(_text(part, url), part) for part in _split(node.prelude)),
                tuple((d.name, _value(d, url)) for d in declarations),
            )
        elif node.lower_at_keyword in GROUPS:
            inner = tinycss2.parse_rule_list(node.content, True, True)
            condition = f"@{node.lower_at_keyword} {_text(node.prelude, url)}"
            yield Group(condition, tuple(_rules(inner, url)))
        elif node.lower_at_keyword == "font-face":
            found = tinycss2.parse_declaration_list(node.content, True, True)
            pairs = [(d.lower_name, _value(d, url)) for d in found if d.type == "declaration"]
            family = dict(pairs)["font-family"].strip("\"'")
            body = ";".join(f"{name}:{text}" for name, text in pairs)
            yield Named("font-face", family, f"@font-face{{{body}}}")
        elif node.lower_at_keyword.endswith("keyframes"):
            name = _text(node.prelude, url)
            text = f"@{node.lower_at_keyword} {name}{{{_text(node.content, url)}}}"
            yield Named("keyframes", name, text)
        elif node.lower_at_keyword not in ("charset", "import"):
            raise Unreadable(f"line {node.source_line}: @{node.lower_at_keyword}")


def _value(declaration: ast.Declaration, url: Callable[[str], str]) -> str:
    # An empty value, which a custom property may have, is a space in every browser.
    return (_text(declaration.value, url) or " ") + ("!important" if declaration.important else "")


def _text(tokens: Sequence[ast.Node], url: Callable[[str], str]) -> str:
    """Tokens as text: comments out, spaces single, addresses replaced."""
    return tinycss2.serialize(list(_tidy(tokens, url))).strip()


def _tidy(tokens: Iterable[ast.Node], url: Callable[[str], str]) -> Iterable[ast.Node]:
    for token in tokens:
        if token.type == "comment":
            continue
        if token.type == "whitespace":
            token = ast.WhitespaceToken(token.source_line, token.source_column, " ")
        elif token.type == "url":
            new = url(token.value)
            quoted = f'url("{new}")' if set(new) & set(" '\"()<>%") else f"url({new})"
            token = ast.URLToken(token.source_line, token.source_column, new, quoted)
        elif token.type == "function":
            inner = list(_tidy(token.arguments, url))
            token = ast.FunctionBlock(token.source_line, token.source_column, token.name, inner)
        elif token.type in ("() block", "[] block", "{} block"):
            inner = list(_tidy(token.content, url))
            token = type(token)(token.source_line, token.source_column, inner)
        yield token


def _split(tokens: Sequence[ast.Node]) -> list[list[ast.Node]]:
    """A list of selectors, at its commas."""
    parts: list[list[ast.Node]] = [[]]
    for token in tokens:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _possible(tokens: Sequence[ast.Node], has: Callable[[str], bool]) -> bool:
    before = None
    for token in tokens:
        if token.type == "ident" and before != ":":
            # An element is lower case in a page, except in SVG.
            if not has(token.value) and not (before != "." and has(token.lower_value)):
                return False
        elif token.type == "hash" and not has(token.value):
            return False
        elif token.type == "[] block":
            name = next(t.value for t in token.content if t.type == "ident")
            if not has(name):
                return False
        elif token.type == "function" and token.lower_name in ANY_OF:
            if not any(_possible(part, has) for part in _split(token.arguments)):
                return False
        before = token
    return True
