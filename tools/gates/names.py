"""Gate on names that a figure reads later: none of them may change its meaning.

A live figure calls its `draw` whenever the reader chooses, long after the cells below have run. If
one of them has bound a name of `draw`'s anew, the figure shows something else, or an error.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable

from nbformat import NotebookNode

from tools.gates.cells import code_cells, problem


def figures_keep_their_names(nb: NotebookNode) -> list[str]:
    """No later cell binds a name anew that a figure's `draw` reads, at any depth of calls."""
    cells = [(position, cell, _parsed(cell.source)) for position, cell in code_cells(nb)]
    found = []
    read: dict[str, set[str]] = {}  # by function, the names it reads
    for place, (position, cell, source) in enumerate(cells):
        if source is None:
            continue
        read |= _functions(source)
        for draw in _explored(ast.parse(source)):
            needed = _reached(draw, read) - {draw}  # the figure holds the function itself
            for later, _, text in cells[place + 1 :]:
                for name in sorted(needed & _bound(text)) if text is not None else []:
                    needed.discard(name)
                    wrong = f"shows `{draw}`, which reads `{name}`; cell {later} binds that anew"
                    found.append(problem(position, cell, wrong, "Rename one"))
    return found


def _parsed(source: str) -> str | None:
    """The cell without its magics, or None where it is no Python."""
    text = re.sub(r"^([ \t]*)[%!].*", r"\1pass", source, flags=re.MULTILINE)
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return text


def _explored(tree: ast.AST) -> list[str]:
    """Names of the functions that the cell gives to `lens.explore`."""
    return [
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "lens.explore"
        and node.args
        and isinstance(node.args[0], ast.Name)
    ]


def _functions(source: str) -> dict[str, set[str]]:
    """By name of each function and class of a cell (and lambda bound to a name), what it reads."""
    read: dict[str, set[str]] = {}
    table = symtable.symtable(source, "cell", "exec")
    for inner in table.get_children():
        read.setdefault(inner.get_name(), set()).update(_global_names(inner))
    for node in ast.parse(source).body:  # corners = {"relu": lambda x: …}: read through its name
        if isinstance(node, ast.Assign) and any(isinstance(n, ast.Lambda) for n in ast.walk(node)):
            names = _global_names(symtable.symtable(ast.unparse(node), "cell", "exec"))
            bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
            read |= {name: names - bound for name in bound}
    return read


def _global_names(table: symtable.SymbolTable) -> set[str]:
    top = table.get_type() == "module"
    names = {
        s.get_name()
        for s in table.get_symbols()
        if s.is_referenced() and (s.is_global() or (top and not s.is_assigned()))
    }
    return names.union(*(_global_names(inner) for inner in table.get_children()))


def _reached(function: str, read: dict[str, set[str]]) -> set[str]:
    """What a function reads, and the functions that it calls, and so on."""
    met, todo = set(), [function]
    while todo:
        name = todo.pop()
        if name not in met and not hasattr(builtins, name):
            met.add(name)
            todo += read.get(name, ())
    return met


def _bound(source: str) -> set[str]:
    """The names that a cell binds at its top level."""
    table = symtable.symtable(source, "cell", "exec")
    return {
        s.get_name()
        for s in table.get_symbols()
        if (s.is_assigned() or s.is_namespace()) and not s.is_imported()
    }
