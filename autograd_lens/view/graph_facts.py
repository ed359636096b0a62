"""What is said of a node: a list of facts, from which both its text and its box are made.

So neither can say what the other leaves out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ..graphs.grad_graph import GradGraph
from ..graphs.mathematics import mathematics, names_of_values, with_values
from ..graphs.record import Node
from ..saving.record import SavedTensor
from .folding import Folded, Joined
from .text import clip, count, grad_words, shape_words, short_bytes, short_name

DETAILED = 60
"""Above so many items a picture and its text leave out formulas and attributes; and a leaf is a
framed row in every node that uses it, since an edge across the whole picture can't be followed."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a node.

    Attributes:
        kind: ``"output"``, ``"shape"``, ``"grad"``, ``"version"``, ``"formula"``, ``"attribute"``,
            ``"saved"``, ``"storage"``, ``"hook"`` or ``"opaque"``.
        words: the line in full.
        brief: the line for a box, where there is little room: a formula in mathematics, a saved
            tensor as ``field → what``. Empty where another line of the box says it, and for a
            place that was not needed.
        saved: the saved tensor.
    """

    kind: str
    words: str
    brief: str
    saved: SavedTensor | None = None


def facts(graph: GradGraph, node: Node, detailed: bool) -> list[Fact]:
    """What is said of a node, in order; formulas and attributes only where it is ``detailed``."""
    if node.leaf is not None:
        return _leaf(graph, node)
    found = _outputs(node)
    if detailed:
        found += _formulas(graph, node)
    found += [
        Fact("saved", saved_words(graph, saved), saved_brief(graph, saved), saved)
        for saved in node.saved
    ]
    found += _hooks(node)
    if node.kind == "opaque":
        found.append(_fact("opaque", "opaque: shows nothing of what it saved"))
    return found


def _fact(kind: str, words: str) -> Fact:
    return Fact(kind, words, clip(words, 40))


def _leaf(graph: GradGraph, node: Node) -> list[Fact]:
    leaf = node.leaf
    grad = f".grad {grad_words(leaf.grad, leaf.grad_values)}"
    found = [_fact("shape", shape_words(leaf.shape)), _fact("grad", grad)]
    if leaf.version:
        found.append(_fact("version", f"version {leaf.version}"))
    for number in sorted(graph.shared_storages.intersection(leaf.storages)):
        # Where a node saved it, its row says the name of the storage.
        names = graph.storages[number].names
        if names[:1] != (node.label,):
            found.append(Fact("storage", _storage(graph, number), storage_name(graph, number)))
    return found + _hooks(node)


def _storage(graph: GradGraph, number: int) -> str:
    names = graph.storages[number].names
    return f"storage {number}" + (f" of {short_name(names[0])}" if names else "")


def storage_name(graph: GradGraph, number: int) -> str:
    """What a box calls a storage: by its owner, or by its number where several nodes hold it.

    Two boxes that say the same name hold the same storage.
    """
    names = graph.storages[number].names
    if names:
        return short_name(names[0], 32)
    return f"storage {number}" if number in graph.shared_storages else ""


def _outputs(node: Node) -> list[Fact]:
    found = []
    for number, output in enumerate(node.outputs):
        if output.name or output.given:
            which = f"output {number}" if len(node.outputs) > 1 else ""
            words = f"{short_name(output.name or 'output')} {shape_words(output.shape)}".rstrip()
            full = f"{which} = {words}".strip()
            found.append(Fact("output", full, clip(f"{which}: {words}" if which else words, 40)))
    return found


def _formulas(graph: GradGraph, node: Node) -> list[Fact]:
    """The formulas, and what the node keeps besides tensors.

    The text has PyTorch's formulas. The box has those in mathematics, inputs with the same one in
    one line, and in a last line the kept values that stand in none of them.
    """
    forms = mathematics(node.name)
    wanted = _inputs_with_gradient(graph, node)
    kept = _attributes(node)
    values = dict(node.attributes) | {name: "" for name, text in kept if _is_open(name, text)}
    inputs_of: dict[str, list[str]] = {}
    for name in wanted:
        if name in forms:
            inputs_of.setdefault(with_values(forms[name], values), []).append(name)
    lines = {
        names[0]: form if len(node.formula) == 1 else f"{', '.join(names)}: {form}"
        for form, names in inputs_of.items()
    }
    found = [
        Fact("formula", f"gradient of {name}: {brief(node.formula[name])}", lines.get(name, ""))
        for name in wanted
    ]
    said = {value for form in forms.values() for value in names_of_values(form)}
    rest = ", ".join(_kept(name, text) for name, text in kept if name not in said)
    for number, (name, text) in enumerate(kept):
        line = "" if number else clip(rest, 60)
        found.append(Fact("attribute", _kept(name, text), line))
    return found


_OPEN = {"start": "from the beginning", "end": "to the end"}
"""What a bound of a slice means that was left out, as in ``x[1:]``."""

_BEYOND = 2**62
"""PyTorch keeps a number from here on, or None, for a bound that was left out or is too large."""


def _is_open(name: str, text: str) -> bool:
    """Whether a value is a bound of a slice that leaves nothing out."""
    if name not in _OPEN:
        return False
    if text == "None":
        return True
    sign = 1 if name == "end" else -1
    return text.lstrip("-").isdigit() and sign * int(text) >= _BEYOND


def _kept(name: str, text: str) -> str:
    """A value that a node keeps, in words: ``dim = 0``."""
    return f"{short_name(name)} = {_OPEN[name] if _is_open(name, text) else text}"


def _attributes(node: Node) -> list[tuple[str, str]]:
    """What a node keeps besides tensors, without what only carries sizes and types."""
    skipped = ("_sizes", "_strides", "_options")
    return [(name, text) for name, text in node.attributes if not name.endswith(skipped)]


def _hooks(node: Node) -> list[Fact]:
    """How many hooks of each kind, and on which tensor unless it is the leaf's own."""
    counts = Counter((hook.kind, hook.target) for hook in node.hooks)
    found = []
    for (kind, target), number in counts.items():
        target = short_name(target)
        words = f"{target} retains its grad"
        if kind != "retain_grad":
            words = count(number, f"{kind} hook") + ("" if node.leaf else f" on {target}")
        found.append(Fact("hook", f"hook: {words}", f"⚑ {clip(words, 60)}"))
    return found


def joined_facts(graph: GradGraph, joined: Joined) -> list[str]:
    """What is said of nodes that are drawn as one."""
    held = {n for index in joined.indices for s in graph.nodes[index].saved for n in s.storages}
    size = sum(graph.storages[number].bytes for number in held)
    found = [count(len(joined.indices), "node")]
    return found + ([f"saved {short_bytes(size)}"] if size else [])


def saved_words(graph: GradGraph, saved: SavedTensor) -> str:
    """One saved tensor: field, shape, bytes, storage and whose it is, versions."""
    if saved.empty:
        return f"saved {saved.field}: {'freed' if saved.freed else 'not needed'}"
    what = f"packed as {short_name(saved.kind)}" if saved.packed else shape_words(saved.shape)
    parts = [f"saved {short_name(saved.field)}: {what}", f"{saved.bytes:,} B"]
    if saved.packed and saved.storage_bytes != saved.bytes:
        parts.append(f"keeps {saved.storage_bytes:,} B alive")
    parts += [_storage(graph, number) for number in saved.storages]
    if saved.stale:
        parts.append(f"CHANGED: version {saved.version}, saved at {saved.saved_version}")
    elif saved.version:
        parts.append(f"version {saved.version}")
    return ", ".join(parts)


def saved_brief(graph: GradGraph, saved: SavedTensor) -> str:
    """The same in a few words: ``self → x, (3,), 12 B``. Empty where nothing was needed."""
    if saved.empty:
        return gone(saved) if saved.freed else ""
    # What a hook has packed may keep several storages alive; the name of one would mislead.
    only = saved.storages if len(saved.storages) == 1 else ()
    words = [name for n in only if (name := storage_name(graph, n))]
    words.append(
        f"packed as {short_name(saved.kind)}" if saved.packed else shape_words(saved.shape)
    )
    words.append(short_bytes(saved.bytes))
    if saved.packed and saved.storage_bytes != saved.bytes:
        words.append(f"keeps {short_bytes(saved.storage_bytes)} alive")
    if saved.stale:
        words.append(f"saved at {saved.saved_version}, now {saved.version}")
    elif saved.version:
        words.append(f"version {saved.version}")
    return clip(f"{short_name(saved.field, 24)} → {', '.join(words)}", 72)


def gone(saved: SavedTensor) -> str:
    """What a box says of a saved tensor that was let go."""
    return f"✓ {short_name(saved.field, 40)} freed"


def notes(graph: GradGraph, folded: Folded) -> dict[str, str]:
    """PyTorch's own formulas, by the title of the boxes that have one."""
    single = (graph.nodes[item] for item in folded.items if item not in folded.joined)
    return {short_name(n.label): _note(n) for n in single if has_note(n, is_detailed(folded))}


def has_note(node: Node, detailed: bool) -> bool:
    """Whether PyTorch's formulas are told of this box."""
    return detailed and bool(node.formula)


def is_detailed(folded: Folded) -> bool:
    """Whether there is room for formulas and attributes."""
    return len(folded.items) <= DETAILED


def _note(node: Node) -> str:
    """PyTorch's own formulas of a node in one line; inputs with the same one together."""
    inputs_of: dict[str, list[str]] = {}
    for name, text in node.formula.items():
        inputs_of.setdefault(brief(text), []).append(name)
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in inputs_of.items())


def _inputs_with_gradient(graph: GradGraph, node: Node) -> list[str]:
    """The inputs that have a formula and need a gradient."""
    skipped: set[str] = set()
    inputs = list(node.formula)
    if len(inputs) == graph.fan_out(node.index) + len(node.no_grad_inputs):
        skipped = {inputs[slot] for slot in node.no_grad_inputs}
    return [name for name in inputs if name not in skipped]


_OBVIOUS = re.compile(
    r"\w+(?:->|\.)"
    r"(?:sym_sizes|sym_strides|sym_numel|sym_size|layout|scalar_type|options|dim)\([^()]*\)"
)
_CALL = re.compile(r"(\w+)\(([^()]*)\)")


def brief(formula: str) -> str:
    """A formula without what only carries sizes and types, and without its check for "undefined".

    >>> brief("mm_mat2_backward(grad, self, mat2.sym_sizes(), mat2.sym_strides(), alpha)")
    'mm_mat2_backward(grad, self, alpha)'
    """
    if " ? " in formula:
        formula = formula.split(" ? ", 1)[1].split(" : ", 1)[0]
    marked = _OBVIOUS.sub("§", formula)
    complex_to_real = re.fullmatch(r"handle_r_to_c\(§, (.*)\)", marked)
    if complex_to_real:
        marked = complex_to_real[1]

    def keep(match: re.Match[str]) -> str:
        arguments = [a for a in match[2].split(", ") if a != "§"]
        if match[2] and not arguments:
            arguments = ["…"]
        return f"{match[1]}({', '.join(arguments)})"

    return _CALL.sub(keep, marked).replace("§", "…")
