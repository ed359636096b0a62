"""Finds the modules, classes, functions and files that docstrings and documents name.

It reads source text for the names, and imports modules to see whether they are there. What a name
without a prefix means is looked up where it stands: in the class, then in the module.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

_ROLE = re.compile(
    r":(?:mod|class|func|meth|attr|data|exc|obj):`(?:[^`<]*<)?~?([\w.]+)>?`", re.ASCII
)
_DOTTED = re.compile(r"(?<![\w/.-])autograd_lens(?:\.[A-Za-z_]\w*)+", re.ASCII)
_LENS = re.compile(r"(?<![\w.])lens(?:\.[A-Za-z_]\w*)+", re.ASCII)


@dataclass(frozen=True)
class Named:
    """A name in a docstring or comment.

    Attributes:
        line: where the text begins in which it stands.
        name: as it is written.
        owner: the class around it, ``"Outer.Inner"``; empty outside of classes.
    """

    line: int
    name: str
    owner: str


def names_in(source: str) -> list[Named]:
    """Every name that docstrings and comments of a module give to code of this repository."""
    return list(dict.fromkeys(_names(source)))


def _names(source: str) -> Iterator[Named]:
    for line, text, owner in _texts(source):
        for pattern in (_ROLE, _DOTTED):
            for match in pattern.finditer(text):
                yield Named(line, match[match.re.groups], owner)
        for match in _LENS.finditer(text):
            yield Named(line, f"autograd_{match[0]}", owner)


def _texts(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, text and class of every docstring and comment; a docstring may follow an attribute."""
    tree = ast.parse(source)
    spans = [(n.lineno, n.end_lineno, owner) for n, owner in _classes(tree)]
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, owner = pending.pop()
        if isinstance(node, ast.ClassDef):
            owner = f"{owner}.{node.name}".lstrip(".")
        for child in ast.iter_child_nodes(node):
            pending.append((child, owner))
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                if isinstance(child.value.value, str):
                    yield child.lineno, child.value.value, owner
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            around = [owner for first, last, owner in spans if first <= line <= last]
            yield line, token.string, max(around, key=len, default="")


def _classes(tree: ast.AST, outer: str = "") -> Iterator[tuple[ast.ClassDef, str]]:
    for child in ast.iter_child_nodes(tree):
        inner = outer
        if isinstance(child, ast.ClassDef):
            inner = f"{outer}.{child.name}".lstrip(".")
            yield child, inner
        yield from _classes(child, inner)


def exists(named: Named, module: ModuleType) -> bool:
    """Whether a name means something in ``module``, or can be imported."""
    scopes = [module]
    if named.owner and (owner := _attribute(module, named.owner)) is not None:
        scopes.insert(0, owner)
    return any(_has(scope, named.name) for scope in scopes) or _can_be_imported(named.name)


def _can_be_imported(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        return length == len(parts) or _has(module, ".".join(parts[length:]))
    return False


def _attribute(scope: Any, name: str) -> Any:
    for part in name.split("."):
        scope = getattr(scope, part, None)
    return scope


def _has(scope: Any, name: str) -> bool:
    """Whether ``scope`` has an attribute; a field or slot of a class has no value there."""
    first, _, rest = name.partition(".")
    if hasattr(scope, first):
        return not rest or _has(getattr(scope, first), rest)
    kinds = scope.__mro__ if isinstance(scope, type) else ()
    declared = any(first in vars(kind).get("__annotations__", {}) for kind in kinds)
    return declared and not rest


_SPAN = re.compile(r"`([^`\n]+)`|\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_PATH = re.compile(r"(?:\.?[\w-]+/)+(?:[\w.*-]+)?|[\w-]+\.(?:py|md|toml|txt|yml|ipynb|json|cff)")


def paths_in(document: str) -> list[str]:
    """Files and folders that a Markdown document names, in prose and in its shell commands."""
    shell = [body for language, body in _FENCE.findall(document) if language == "bash"]
    prose = _FENCE.sub("", document)
    spans = [one or other for one, other in _SPAN.findall(prose)]
    return [
        word
        for text in [*spans, *shell]
        for word in re.split(r"[\s=,:]+", text)
        if _PATH.fullmatch(word) and not _is_elsewhere(word)
    ]


def _is_elsewhere(word: str) -> bool:
    """Made by a command, a placeholder, a media type, or not written yet (the labs)."""
    made = ("_build/", ".venv/", "other/", "labs/", "$")
    return word.startswith(made) or re.search("NN|OWNER|text/|image/", word) is not None


def path_exists(root: Path, word: str) -> bool:
    """Whether a document's word for a file or folder leads to one.

    A file without a folder may stand anywhere, and a page of the book is named without its suffix.
    Several are meant where there is an asterisk.
    """
    if "*" in word:
        return any(root.glob(word.strip("/")))
    if "/" in word:
        return (root / word).exists() or (root / f"{word}.ipynb").exists()
    folders = ("autograd_lens", "tools", "tests", "_ext", ".github", "book", "benchmarks")
    return (root / word).exists() or any(
        found for folder in folders for found in (root / folder).rglob(word)
    )
