"""What the tests know of a graph without the lens: the plainest walk there is, and small tools."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import torch
from torch.multiprocessing.reductions import StorageWeakRef


def walk(outputs):
    """Every node reachable from ``outputs``, in no promised order, each once."""
    pending = [t.grad_fn for t in outputs if t.grad_fn is not None]
    met = []
    seen = set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            met.append(node)
            pending += [target for target, _ in node.next_functions if target is not None]
    return met


def saved_storages(outputs):
    """Weak references to the storages that the nodes keep, read field by field."""
    refs = {}
    for tensor in saved_by(walk(outputs)):
        storage = tensor.untyped_storage()
        refs[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
    return refs


def saved_by(nodes):
    """The plain tensors that ``nodes`` keep, read field by field."""
    found = []
    for node in nodes:
        for field in dir(type(node)):
            if not field.startswith("_raw_saved_"):
                continue
            try:
                raw = getattr(node, field)
            except RuntimeError:  # a Python Function that was released
                continue
            for one in raw if isinstance(raw, (tuple, list)) else (raw,):
                tensor = one.data
                if type(tensor) in (torch.Tensor, torch.nn.Parameter) and _plain(tensor):
                    found.append(tensor)
    return found


def _plain(tensor):
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.layout == torch.strided and not tensor.is_nested and not wrapped


def alive(refs):
    return [ref for ref, _ in refs.values() if not ref.expired()]


def edge_set(graph):
    """Edges by the labels of their ends: ``(source, target, slot, input_nr)``, sorted."""
    label = [node.label for node in graph.nodes]
    return sorted((label[e.source], label[e.target], e.slot, e.input_nr) for e in graph.edges)


def labels(graph):
    return [node.label for node in graph.nodes]


def saved_fields(graph, label):
    """``{field: Saved}`` of the only node with that label."""
    (node,) = [node for node in graph.nodes if node.label == label]
    return {saved.field: saved for saved in node.saved}


def elements(svg):
    """``{data-lens or id: classes}`` of the nodes and edges of an SVG, which must be XML."""
    root = ElementTree.fromstring(svg)
    found = {}
    for element in root.iter():
        name = element.get("data-lens")
        if name:
            assert name not in found, f"{name} is drawn twice"
            found[name] = set(element.get("class", "").split()) - {"node", "edge"}
    return found


def inline_svgs(html):
    return re.findall(r"<svg.*?</svg>", html, flags=re.S)
