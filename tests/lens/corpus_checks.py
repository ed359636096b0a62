"""What the lens says of a model of the corpus, against what is known without the lens.

Each check takes what makes the model, and makes it as often as it needs: two of them made from one
seed are alike. The judges: a walk, saved-tensor hooks, a plain backward, and the events and objects
that PyTorch's allocator and ``.grad`` leave.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from html import unescape

import torch
from allocations import judge, live_bytes
from independent import saved_by, walk
from torch.autograd.graph import saved_tensors_hooks

import autograd_lens as lens


def seeded(make):
    """A model of the corpus; what it draws later is the same each time, too."""
    torch.manual_seed(0)
    return make()


def tensors_of(outputs):
    """The tensors in what a model returned."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    if is_dataclass(outputs):
        outputs = [getattr(outputs, field.name) for field in fields(outputs)]
    elif isinstance(outputs, dict):
        outputs = outputs.values()
    return [tensor for one in outputs for tensor in tensors_of(one)]


def trained(module):
    """The parameters that require grad by name; one that has several names has them all."""
    names = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.requires_grad:
            names.setdefault(parameter, []).append(name)
    return {" = ".join(several): parameter for parameter, several in names.items()}


def bytes_of(tensors):
    """Bytes of the storages behind tensors, each once."""
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def plain(name):
    """The name of a node without a C++ namespace."""
    return name.rpartition("::")[2]


def graph_is_the_walk(make):
    """Nodes and edges by a walk; the leaves are the parameters that are trained."""
    written = seeded(make)
    outputs = written.run()
    view = lens.graph(outputs, written.model)
    nodes = walk(tensors_of(outputs))
    assert Counter(node.name for node in view.nodes) == Counter(node.name() for node in nodes)
    assert len(view.edges) == sum(
        target is not None for node in nodes for target, _ in node.next_functions
    )
    given = [output for node in view.nodes for output in node.outputs if output.given]
    assert len(given) == len(tensors_of(outputs))
    assert tuple(plain(n.name) for n in view.nodes if n.kind == "opaque") == written.opaque
    assert set(written.closed) <= {node.label for node in view.nodes if node.kind == "custom"}
    leaves = sorted(leaf.label for leaf in view.leaves)
    if written.closed:  # what such a node runs again is no part of this graph
        assert set(leaves) < set(trained(written.model))
    else:
        assert leaves == sorted(trained(written.model))
    return view


def saved_bytes_are_those_of_hooks(make):
    """The total by saved-tensor hooks around the same forward; what is opaque is named."""
    written = seeded(make)
    view = lens.saved_tensors(written.run(), written.model, inputs=written.inputs)
    other, packed = seeded(make), []
    with saved_tensors_hooks(lambda tensor: packed.append(tensor) or tensor, lambda kept: kept):
        outputs = other.run()
    assert tuple(plain(node.name) for node in view.opaque) == written.opaque
    assert all(f"opaque: {name}" in str(view) for name in written.opaque)
    if not written.hooks_see_all:
        assert bytes_of(packed) < view.total_bytes
    elif written.opaque:
        assert view.short_by is None and bytes_of(packed) > view.total_bytes
        assert recorded(make).total_bytes == bytes_of(packed)
    else:
        assert view.total_bytes == bytes_of(packed) + 8 * written.numbers
    del outputs
    return view


def recorded(make):
    """The ledger of a forward that a recorder watched."""
    written = seeded(make)
    with lens.record_saved() as recorder:
        outputs = written.run()
    return lens.saved_tensors(outputs, written.model, inputs=written.inputs, recorder=recorder)


def activations_are_those_of_the_allocator(make):
    """What only the graph keeps alive, by the events of PyTorch's allocator."""
    opaque = seeded(make).opaque

    def case():
        written = seeded(make)
        yield written.model, written.inputs
        yield tensors_of(written.run())

    def look(nodes, names, inputs):
        return lens.saved_tensors(nodes, names, inputs=inputs)

    judged = judge(case, look)
    if opaque:
        assert judged.result.activation_bytes < judged.bytes
    else:
        assert judged.result.activation_bytes == judged.bytes


def backward_is_the_plain_one(make):
    """``.grad`` as by a plain backward of a model that is alike; each node of the graph ran."""
    written, other = seeded(make), seeded(make)
    for _ in range(written.micro_batches):
        torch.manual_seed(1)
        loss = written.loss(written.run())
        nodes = walk([loss])
        view = lens.record_backward(loss, names=written.model)
        torch.manual_seed(1)
        other.loss(other.run()).backward()
    mine, theirs = trained(written.model), trained(other.model)
    assert mine
    for name, parameter in mine.items():
        assert torch.equal(parameter.grad, theirs[name].grad), name
    assert len(view.steps) == len(nodes)
    assert sorted(step.node for step in view.steps) == list(range(len(nodes)))
    wrote = {one.name: one.how for step in view.steps for one in step.written}
    if not written.closed:
        assert set(wrote) == set(mine)
    assert all(how.startswith("added") for how in wrote.values()) == (written.micro_batches > 1)
    return view


def bytes_go_as_the_nodes_let_go(make):
    """Before each step, what all nodes hold, read from the nodes of a graph that is alike."""
    written = seeded(make)
    view = lens.record_backward(written.loss(written.run()), names=written.model)
    other, held = seeded(make), []
    loss = other.loss(other.run())
    nodes = walk([loss])
    for node in nodes:
        node.register_prehook(lambda _: held.append(held_bytes(nodes)))
    loss.backward()
    held.append(held_bytes(nodes))
    assert [view.saved_bytes, *(step.saved_bytes for step in view.steps)] == held


def held_bytes(nodes):
    """Bytes of what nodes have saved, and of the tensors that Python Functions put on ``ctx``."""
    lists = [list(getattr(node, "__dict__", {}).values()) for node in nodes]
    on_ctx = [one for values in lists for one in values if isinstance(one, torch.Tensor)]
    return bytes_of([*saved_by(nodes), *on_ctx])


def memory_is_that_of_the_allocator(make):
    """A step of training: peak and end by the allocator's events, roles by what is alive."""
    written, other = seeded(make), seeded(make)
    optimizer = torch.optim.Adam(written.model.parameters())
    view = lens.record_memory(training(written, optimizer), names=written.model)
    plain_step = training(other, torch.optim.Adam(other.model.parameters()))
    series = live_bytes(plain_step)
    before = sum(view.base.values())
    assert view.peak_bytes - before == max(series)
    assert sum(view.end.values()) - before == series[-1]
    state = [value for values in optimizer.state.values() for value in values.values()]
    gradients = [one.grad for one in trained(written.model).values()]
    assert view.end["gradient"] == bytes_of(gradients) > 0
    assert view.end["optimizer"] == bytes_of(state) > 0
    assert view.base["parameter"] == bytes_of(written.model.parameters())
    assert view.base.get("buffer", 0) == bytes_of(written.model.buffers())
    assert [phase.name for phase in view.phases] == [
        *["forward", "backward"] * written.micro_batches,
        "step",
    ]
    return view


def training(written, optimizer):
    """A step as in every loop."""

    def step():
        torch.manual_seed(1)
        for _ in range(written.micro_batches):
            loss = written.loss(written.run())
            loss.backward()
        optimizer.step()
        return loss

    return step


def shows_itself(view, *words):
    """As text and in a notebook; both say these words."""
    text = str(view)
    forms = view._repr_mimebundle_()
    assert forms["text/plain"] == text
    assert forms["text/html"].startswith("<figure")
    for word in words:
        assert word in text and word in unescape(forms["text/html"])


def is_written_as_a_page(view, path):
    """A document that holds the figure of the notebook."""
    page = view.save(path).read_text("utf-8")
    assert page.startswith("<!doctype html>") and page.count("<figure") == 1
