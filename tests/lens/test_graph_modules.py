"""Graphs by module: exact under a recorder, else a guess; equal layers once, and each opens."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import autograd_lens as lens
from autograd_lens.view import graph_groups


class Block(nn.Sequential):
    """Layers with a way around them."""

    def forward(self, x):
        return x + super().forward(x)


class Model(nn.Module):
    """Equal blocks, one after the other."""

    def __init__(self, blocks=12):
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(
            Block(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Dropout(0.5))
            for _ in range(blocks)
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def recorded(model, x=None):
    x = torch.randn(3, 4) if x is None else x
    with lens.record_saved() as recorder:
        loss = model(x).pow(2).sum()
    return loss, recorder


def by_hooks(model, x):
    """The module of each node by a hook of our own: the node of its output, and those it added."""
    made = {}

    def before(module, args):
        module.began = torch._C._autograd._get_sequence_nr()

    def after(name):
        def note(module, args, out):
            for number in range(module.began, torch._C._autograd._get_sequence_nr()):
                made.setdefault(number, name)  # the innermost returns first

        return note

    for name, module in model.named_modules():
        module.register_forward_pre_hook(before)
        module.register_forward_hook(after(name))
    loss, recorder = recorded(model, x)
    return loss, recorder, made


def test_modules_are_exact_under_a_recorder():
    model = Model()
    loss, recorder, made = by_hooks(model, torch.randn(3, 4))
    graph = lens.graph(loss, model, recorder=recorder)
    operations = [node for node in graph.nodes if node.leaf is None]
    assert {node.module for node in operations} >= {"blocks.3", "blocks.3.1", "blocks.3.3", None}
    assert [n.module for n in operations] == [made.get(n.sequence_nr) for n in operations]
    names = dict(model.named_parameters())
    assert {n.label: n.module for n in graph.leaves} == {
        name: name.rpartition(".")[0] for name in names
    }
    assert graph.reading.modules == "recorded"


def test_a_frozen_part_is_told_by_what_it_saved():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].requires_grad_(False)
    graph = lens.graph(model(torch.ones(2, 4)), model)
    assert [n.module for n in graph.nodes if n.name == "AddmmBackward0"] == ["2", "1", "0"]
    assert graph.reading.modules == "guessed"


def test_a_module_of_another_thread_and_one_that_raises_are_no_surprise():
    class Raises(nn.Module):
        def forward(self, x):
            raise ValueError

    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with lens.record_saved() as recorder:
        with pytest.raises(ValueError):
            Raises()(torch.ones(1))
        y = model(torch.ones(2, 4)).exp()
    nodes = lens.graph(y, model, recorder=recorder).nodes
    assert [n.module for n in nodes if n.leaf is None] == [None, "1", "0", "0"][:3] + ["0"] * (
        len([n for n in nodes if n.leaf is None]) - 3
    )
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_pre_hooks


def boxes(graph, opened=""):
    return re.findall(r"\[([\w. …,×]+): [\d,]+ nodes?", graph.figure().draw(open=opened).text)


def test_equal_layers_are_drawn_once_with_their_number():
    model = Model()
    loss, recorder = recorded(model)
    graph = lens.graph(loss, model, recorder=recorder, depth=2)
    assert boxes(graph) == ["head", "blocks.0 … blocks.11, ×12", "embed"]
    model.blocks[5][1] = nn.Tanh()
    loss, recorder = recorded(model)
    graph = lens.graph(loss, model, recorder=recorder, depth=2)
    assert sorted(boxes(graph)) == sorted(
        ["head", "blocks.0 … blocks.4, ×5", "blocks.5", "blocks.6 … blocks.11, ×6", "embed"]
    )


def has_cycle(folded, graph):
    """Whether the boxes and links of a picture lead in a circle."""
    following = {}
    for number in folded.links:
        edge = graph.edges[number]
        start, end = folded.item_of[edge.source], folded.item_of[edge.target]
        following.setdefault(start, set()).add(end)
    left = set(folded.items)
    while free := {item for item in left if not following.get(item, set()) & left}:
        left -= free
    return bool(left)


class Around(nn.Module):
    """A sum outside of the block: a box of several blocks would have a way out and back in."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x).relu()
        return x


@pytest.mark.parametrize("make", [lambda: Model(8), lambda: Around(20)])
@pytest.mark.parametrize("under_recorder", [True, False])
@pytest.mark.parametrize("depth", [None, 1, 2])
def test_boxes_make_no_circle(make, under_recorder, depth):
    model = make()
    loss, recorder = recorded(model)
    options = {"recorder": recorder} if under_recorder else {}
    graph = lens.graph(loss, model, group="module", depth=depth, **options)
    for opened in ("", *graph.figure().choices[0].values[:3]):
        folded = graph_groups.folded(graph, opened)
        assert folded.joined and not has_cycle(folded, graph)


def test_blocks_with_sums_between_them_stay_apart():
    model = Around(6)
    loss, recorder = recorded(model)
    graph = lens.graph(loss, model, recorder=recorder, group="module", depth=2)
    assert boxes(graph) == [f"blocks.{k}" for k in reversed(range(6))]
    guessed = lens.graph(loss, model, group="module", depth=2)
    assert "blocks.1 … blocks.5, ×5" in boxes(guessed), "what is only said to be around is in it"


def test_every_layer_opens():
    model = Model()
    loss, recorder = recorded(model)
    graph = lens.graph(loss, model, recorder=recorder, depth=2)
    (choice,) = graph.figure().choices
    layers = {f"blocks.{k}" for k in range(12)}
    assert set(choice.values) == {"", "embed", "head", *layers}
    inside = graph.figure().draw(open="blocks.4").text
    assert inside.count("blocks.4.0.weight: leaf") == 1
    assert boxes(graph, "blocks.4") == [
        "head",
        "blocks.5 … blocks.11, ×7",
        "blocks.0 … blocks.3, ×4",
        "embed",
    ]


def test_who_gets_boxes():
    small, large = nn.Linear(4, 2), Model()
    x = torch.ones(2, 4)
    assert lens.graph(small(x), small).shown.group is None
    assert lens.graph(large(x), large).shown.group == "module"
    assert lens.graph(large(x), dict(large.named_parameters())).shown.group is None
    assert lens.graph(large(x), large, group=False).shown.group is None
    assert lens.graph(small(x), small, depth=1).shown.group == "module"
    with pytest.raises(ValueError, match="needs the model"):
        lens.graph(large(x), group="module")
    with pytest.raises(TypeError, match="depth must be an integer"):
        lens.graph(large(x), large, depth=0)


def test_parameters_that_no_gradient_reaches_are_named():
    model = nn.ModuleDict({"used": nn.Linear(2, 2), "forgotten": nn.Linear(2, 2)})
    model["used"].bias.requires_grad_(False)
    graph = lens.graph(model["used"](torch.ones(1, 2)), model)
    assert graph.unreached == ("forgotten.weight", "forgotten.bias")
    assert "no gradient reaches forgotten.weight, forgotten.bias" in str(graph).splitlines()[0]


def test_recorders_do_not_have_a_model_compiled_again():
    compiled = []

    def backend(program, _):
        compiled.append(program)
        return program.forward

    torch.compiler.reset()
    run = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), backend=backend)
    for _ in range(3):
        with lens.record_saved():
            run(torch.ones(2, 4))
    assert len(compiled) == 1


def test_recorders_of_several_threads_share_their_hooks():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with lens.record_saved() as first:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(by_hooks, model, torch.ones(2, 4)).result()  # a recorder comes and goes
        y = model(torch.ones(2, 4))
    nodes = lens.graph(y, model, recorder=first).nodes
    assert [node.module for node in nodes[:2]] == ["1", "0"]
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_hooks_always_called
