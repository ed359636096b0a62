"""The package is built in layers: what is below knows nothing of what is above."""

import ast
import functools
import sys
from pathlib import Path

import pytest
import torch

import autograd_lens as lens

PACKAGE = Path(lens.__file__).parent
LAYERS = ("_torch", "saving", "graphs", ("ledger", "backprop", "memory"))
"""From the lowest to the highest; what stands together does not know each other."""
BELOW_ALL = {"printable", "result", "progress", "captions"}
"""Modules that know nothing of PyTorch's graphs."""


def imports(path):
    """``(module of the package, at the top)`` of every import of the package in a file.

    An import inside a function, and one that only a type checker sees, is not at the top.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            inside = tuple((node.module or "").split(".")) if node.module else ()
            for alias in node.names:
                target = (*base, *inside) if inside else (*base, alias.name)
                yield target, node in tree.body


def level(room):
    for number, layer in enumerate(LAYERS):
        if room == layer or (isinstance(layer, tuple) and room in layer):
            return number
    return None


MODULES = sorted(path for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_lead_down(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    mine = level(room)
    for target, at_top in imports(path):
        if mine is not None and level(target[0]) is not None and target[0] != room:
            assert level(target[0]) < mine, f"{room} imports {'.'.join(target)}"
        if room not in ("view", "atlas") and target[0] == "view":
            assert not at_top, f"{room} imports the drawing {'.'.join(target)} before it is shown"
        if room in BELOW_ALL and target[0] != room:
            assert target[0] in {"view", *BELOW_ALL}, f"{room} imports {'.'.join(target)}"


def test_no_module_imports_itself_in_a_circle():
    names = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in MODULES}
    above = {}
    for name, path in names.items():
        found = {target for target, at_top in imports(path) if at_top}
        above[name] = {t for t in found if t in names}
    order, left = [], dict(above)
    while left:
        free = [name for name, wanted in left.items() if not wanted & left.keys()]
        assert free, f"imported in a circle: {sorted('.'.join(name) for name in left)}"
        order += free
        for name in free:
            del left[name]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_is_short(path):
    """When it grows beyond this, it was two ideas."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 330


def test_no_module_is_called_as_a_verb():
    """``import autograd_lens.graph`` would give the function, not the module."""
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir()
    }
    assert rooms & set(lens.__all__) == set()


@functools.cache
def inside(filename):
    """A file as the package knows it; empty for a file that is not the package's."""
    path = Path(filename)
    return str(path.relative_to(PACKAGE)) if PACKAGE in path.parents else ""


def deepest_way(call):
    """The longest chain of the package's modules that call one another while ``call`` runs."""
    ways = {()}

    def look(frame, event, _):
        if event != "call":
            return
        way = []
        while frame:
            module = inside(frame.f_code.co_filename)
            if module and way[-1:] != [module]:
                way.append(module)
            frame = frame.f_back
        ways.add(tuple(reversed(way)))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return max(ways, key=len)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("verb", ["graph", "saved_tensors", "record_backward"])
def test_a_verb_is_six_modules_deep_and_calls_go_one_way(verb, recorded):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    with lens.record_saved() as recorder:
        loss = model(torch.randn(5, 3)).sum()
    more = {"recorder": recorder} if recorded and verb == "saved_tensors" else {}
    way = deepest_way(lambda: getattr(lens, verb)(loss, names=model, **more))
    assert 3 <= len(way) <= 6
    assert len(set(way)) == len(way), "a module was entered again from below"
