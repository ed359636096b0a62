"""Graphs that nobody thought of: the lens against the plainest walk, and against plain backward."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import walk

import autograd_lens as lens

OPERATIONS = {
    "exp": lambda a, b: (a / 4).tanh().exp(),
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "square": lambda a, b: a * a,
    "mm": lambda a, b: a @ b / 8,
    "transpose": lambda a, b: a.t() + b,
    "relu": lambda a, b: torch.relu(a),
    "cut": lambda a, b: torch.cat([a[:1], b[1:]]),
    "split": lambda a, b: torch.stack(a.unbind()[::-1]),
    "max": lambda a, b: a.max(dim=1, keepdim=True).values * b,
    "detach": lambda a, b: a.detach() + b,
    "in_place": lambda a, b: (a * 2).add_(b),
    "in_place_view": lambda a, b: _assign(a * 1, b),
    "custom": lambda a, b: Third.apply(a, b)[0],
    "number": lambda a, b: a * 1.5,
}


class Third(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b, None)
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b, _ = ctx.saved_tensors
        return g * b + h, g * a + h


def _assign(a, b):
    a[1] = b[0]
    return a


@st.composite
def programs(draw):
    steps = []
    for k in range(draw(st.integers(1, 14))):
        place = st.integers(0, 2 + k)
        steps.append((draw(st.sampled_from(sorted(OPERATIONS))), draw(place), draw(place)))
    last = st.integers(0, 2 + len(steps))
    return steps, draw(st.lists(last, min_size=1, max_size=3))


def run(program):
    """Three leaves, of which one needs no gradient, and the outputs that the program names."""
    steps, chosen = program
    torch.manual_seed(0)
    made = [torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)]
    made.append(torch.randn(3, 3, requires_grad=True))
    leaves = made[1:3]
    for name, a, b in steps:
        made.append(OPERATIONS[name](made[a], made[b]))
    outputs = [made[k] for k in chosen if made[k].grad_fn is not None]
    return outputs, leaves


often = settings(max_examples=60)


@often
@given(programs())
def test_nodes_and_edges_are_those_of_a_plain_walk(program):
    outputs, leaves = run(program)
    if not outputs:
        return
    graph = lens.graph(outputs, {"p": leaves[0], "q": leaves[1]})
    nodes = walk(outputs)

    def identity(sequence, name, variable):
        if variable is None:
            return sequence, name
        return next((n for n, t in zip("pq", leaves, strict=True) if t is variable), "?")

    plain = {
        node: identity(node._sequence_nr(), node.name(), getattr(node, "variable", None))
        for node in nodes
    }
    mine = [n.label if n.kind == "leaf" else (n.sequence_nr, n.name) for n in graph.nodes]
    assert sorted(map(str, mine)) == sorted(map(str, plain.values()))
    assert len(set(mine)) == len(mine)
    assert sorted(
        (str(mine[e.source]), str(mine[e.target]), e.slot, e.input_nr) for e in graph.edges
    ) == sorted(
        (str(plain[node]), str(plain[target]), slot, nr)
        for node in nodes
        for slot, (target, nr) in enumerate(node.next_functions)
        if target is not None
    )
    assert all(edge.source < edge.target for edge in graph.edges)
    for number, node in enumerate(graph.nodes):
        leaving = [edge.slot for edge in graph.edges if edge.source == number]
        assert not set(leaving) & set(node.no_grad_inputs)
    str(graph), graph.to_dot()


@often
@given(programs())
def test_recorded_gradients_are_bitwise_plain_ones(program):
    outputs, leaves = run(program)
    if not outputs:
        return
    torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])
    again, recorded = run(program)
    recording = lens.record_backward(again, gradient=[torch.ones_like(t) for t in again])
    for a, b in zip(leaves, recorded, strict=True):
        assert (a.grad is None) == (b.grad is None)
        assert a.grad is None or torch.equal(a.grad, b.grad)
    assert sorted(s.node for s in recording.steps) == list(range(len(recording.graph.nodes)))
    assert recording.steps[-1].saved_bytes == 0
