"""The ledger against PyTorch's allocation events, to the byte, on models and on every edge case."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from allocations import judge
from ledger_cases import CASES, EVERY, MODELS, OPAQUE, leaf
from torch import nn
from torch.utils.checkpoint import checkpoint

import autograd_lens as lens
from autograd_lens.ledger.groups import natural

pytestmark = pytest.mark.usefixtures("one_thread")


def ledger(nodes, names, inputs):
    return lens.saved_tensors(nodes, names, inputs=inputs)


def activations(view):
    """Sizes of the storages that the ledger calls activations; no event tells of an empty one."""
    sizes = zip(view.storages, view.roles, strict=True)
    return sorted(size for size, role in sizes if role == "activation" and size)


def opaque_kinds(view):
    return {node.name.rpartition("::")[2] for node in view.opaque}


@pytest.mark.parametrize("name", EVERY)
def test_it_equals_the_allocation_events(name):
    judged = judge(EVERY[name], ledger)
    view = judged.result
    assert view.activation_bytes == sum(activations(view))
    assert opaque_kinds(view) == set(OPAQUE.get(name, ()))
    if name == "saved_on_cpu":  # on the CPU it packs the tensor itself: a cycle that nothing frees
        assert judged.bytes == 0 and judged.alive == activations(view)
    elif opaque_kinds(view):
        assert judged.bytes > view.activation_bytes, "nothing is missing, so nothing is opaque"
    else:
        assert activations(view) == judged.sizes
    if name not in ("packed_to_disk", "a_view_of_a_larger_input"):
        assert judged.alive, "the case keeps nothing alive"
    assert view.total_bytes == sum(
        (view.activation_bytes, view.parameter_bytes, view.buffer_bytes, view.input_bytes)
    )


@pytest.mark.parametrize("name", EVERY)
def test_one_storage_has_one_number_in_every_verb(name):
    def look(nodes, names, inputs):
        view, graph = ledger(nodes, names, inputs), lens.graph(nodes, names)
        shown = [s for node in graph.nodes for s in node.saved if s.freed or not s.empty]
        return view, graph, shown

    view, graph, shown = judge(EVERY[name], look).result
    own = [entry for entry in view.entries if entry.node < len(graph.nodes)]
    places = [[(s.node, s.field, s.storages) for s in each] for each in (own, shown)]
    assert places[0] == places[1]
    sizes = [storage.bytes for storage in graph.storages]
    for entry in view.entries:
        assert sum(view.storages[number] for number in entry.storages) == entry.storage_bytes
    for saved in shown:
        assert sum(sizes[number] for number in saved.storages) == saved.storage_bytes


def test_the_opaque_kinds_are_three_at_most():
    kinds = {kind for kinds in OPAQUE.values() for kind in kinds}
    assert {kind for kind in kinds if not kind.startswith("Foreach")} <= {"CopySlices"}
    assert not any(name in OPAQUE and OPAQUE[name] for name in MODELS)


# The judge can fail: a ledger with one idea left out differs from the events


def without(keep):
    """The sum of the activations of the entries that ``keep`` keeps."""
    return lambda view: sum(
        view.storages[n]
        for n in {n for e in view.entries if e.role == "activation" and keep(e) for n in e.storages}
        if view.roles[n] == "activation"
    )


LEFT_OUT = {
    "counting elements": (
        "a_view_of_a_much_larger_storage",
        lambda view: sum(e.bytes for e in view.entries if e.role == "activation"),
    ),
    "counting shared storages twice": (
        "mlp",
        lambda view: sum(e.storage_bytes for e in view.entries if e.role == "activation"),
    ),
    "no ctx": ("tensors_on_ctx", without(lambda e: not e.field.startswith("ctx."))),
    "no hooks": ("checkpoint_not_reentrant", without(lambda e: not e.packed)),
    "no lists": ("tensor_lists", without(lambda e: "[" not in e.field)),
}


@pytest.mark.parametrize("idea", LEFT_OUT)
def test_without_one_idea_the_sum_is_another(idea):
    name, count = LEFT_OUT[idea]
    judged = judge(EVERY[name], ledger)
    assert judged.bytes == judged.result.activation_bytes
    assert judged.bytes != count(judged.result)


def test_inputs_that_are_not_given_count_as_activations():
    judged = judge(
        CASES["a_view_of_a_larger_input"], lambda n, names, _: lens.saved_tensors(n, names)
    )
    assert judged.result.activation_bytes == judged.bytes + 1000 * 2 * 4


# Nothing is run


def test_no_unpack_hook_and_no_recomputation_runs():
    unpacked, forwards = [], []
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(3, 4, requires_grad=True)

    def run(x):
        forwards.append(1)
        return net(x)

    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: t.detach().clone(), lambda t: (unpacked.append(1), t)[1]
    ):
        y = x.exp()
    z = checkpoint(run, y, use_reentrant=False).sum()
    view = lens.saved_tensors(z, net, inputs=x)
    str(view), view.to_dicts(), view.by_module()
    assert (unpacked, forwards) == ([], [1])
    z.backward()
    assert (unpacked, forwards) == ([1], [1, 1]), "backward does run both"


def test_a_checkpoint_has_the_plain_places_and_its_argument_alone():
    net, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), torch.randn(3, 4, requires_grad=True)
    plain = lens.saved_tensors(net(x), net, inputs=x)
    y = checkpoint(net, x, use_reentrant=False, preserve_rng_state=False)
    view = lens.saved_tensors(y, net, inputs=x)
    places = [[(e.name, e.field) for e in ledger.entries] for ledger in (plain, view)]
    assert places[0] == places[1] and view.nodes == plain.nodes
    assert {e.kind for e in view.entries} == {"_Holder"}
    assert view.storages == (x.nbytes,) and view.total_bytes == view.input_bytes == x.nbytes
    assert lens.graph(y).saved_bytes == x.nbytes


def test_it_allocates_nothing_and_keeps_nothing():
    x = torch.randn(64, 64, requires_grad=True)
    y = checkpoint(nn.Linear(64, 64), x.exp(), use_reentrant=False).sum()
    with torch.profiler.profile(profile_memory=True) as watched:
        view = lens.saved_tensors(y)
        str(view)
    assert [e.key for e in watched.key_averages() if e.cpu_memory_usage] == []
    assert b"_rebuild" not in pickle.dumps(view.reading), "it holds a tensor; a node would refuse"


def test_nothing_is_installed():
    """No hook and no patch before the call or after it: a forward pass costs what it did."""
    import torch.nn.modules.module as module

    def installed():
        hooks = (module._global_forward_hooks, module._global_forward_pre_hooks)
        modes = torch.utils._python_dispatch._len_torch_dispatch_stack()
        run = torch.autograd._engine_run_backward
        return [
            *map(len, hooks),
            modes,
            id(run),
            torch._C._autograd._saved_tensors_hooks_is_enabled(),
        ]

    before = installed()
    net = nn.Linear(3, 3)
    y = net(torch.ones(1, 3)).exp().sum()
    node_hooks = dict(y.grad_fn.metadata)
    lens.saved_tensors(y, net)
    assert installed() == before
    assert not net._forward_hooks and not net._backward_hooks
    assert dict(y.grad_fn.metadata) == node_hooks == {}
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None


# Freed, changed


def test_a_freed_graph_shows_what_was_let_go():
    x = torch.randn(3, requires_grad=True)
    y = (x.exp() * x).sin().sum()
    before = lens.saved_tensors(y, {"x": x})
    y.backward()
    after = lens.saved_tensors(y, {"x": x})
    assert [e.field for e in after.entries] == [e.field for e in before.entries]
    assert all(e.freed and e.role is None and e.shape is None for e in after.entries)
    assert after.total_bytes == 0 and len(after.entries) == 4
    assert str(after).startswith("0 saved tensors of 5 nodes, 4 freed; keeps 0 B in 0 storages")
    assert after.by_node_kind().groups == ()


def test_a_changed_tensor_shows_both_versions_and_the_node_that_raises():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    z = (y * 2).sum()
    y.add_(1)
    y.add_(1)
    view = lens.saved_tensors([z, y])
    (stale,) = view.stale
    assert (stale.name, stale.field) == ("ExpBackward0", "result")
    assert (stale.saved_version, stale.version) == (0, 2)
    (line,) = [line for line in str(view).splitlines() if "CHANGED" in line]
    assert line.split()[1:3] == ["ExpBackward0", "result"]
    # The node's name ends in Backward0 in the message of 2.11.
    message = r"output 0 of Exp(Backward0)?, is at version 2; expected version 0"
    with pytest.raises(RuntimeError, match=message):
        z.backward()


def test_a_tensor_that_was_changed_before_it_was_saved_is_not_stale():
    x = torch.randn(3, requires_grad=True)
    y = (x * 2).add_(1)
    view = lens.saved_tensors(y.exp() * y)
    assert view.stale == ()
    assert {(e.saved_version, e.version) for e in view.entries if e.shape == (3,)} >= {(1, 1)}


# Roles, modules, groups


def test_roles_and_owners():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    net[2].requires_grad_(False)
    x = torch.randn(5, 4)
    view = lens.saved_tensors(net(x).sum(), net, inputs={"batch": x})
    found = {(e.role, e.owner) for e in view.entries}
    assert found == {
        ("activation", None),
        ("parameter", "2.weight"),
        ("parameter", "1.weight"),
        ("buffer", "1.running_mean"),
        ("buffer", "1.running_var"),
        ("input", "batch"),
    }
    assert view.input_bytes == 5 * 4 * 4 and view.buffer_bytes == 2 * 4 * 4
    # without the module nothing is known of what needs no gradient
    bare = lens.saved_tensors(net(x).sum())
    assert bare.buffer_bytes == bare.input_bytes == 0
    assert bare.parameter_bytes == 4 * 4
    assert bare.total_bytes == view.total_bytes


def test_a_leaf_that_is_given_is_an_input():
    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    view = lens.saved_tensors(x * w, inputs=x)
    assert [(e.role, e.owner) for e in view.entries] == [
        ("parameter", "leaf 2"),
        ("input", "input"),
    ]


def test_modules_are_told_by_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 4)
            self.block = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
            self.head = nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.block(self.embed(x).tanh())).sin().sum()

    net = Net()
    view = lens.saved_tensors(net(torch.arange(3)), net)
    assert {(e.label, view.module_of(e)) for e in view.entries} == {
        ("SinBackward0", ""),
        ("MmBackward0", "embed = head"),
        ("AddmmBackward0", "block.2"),
        ("GeluBackward0", "block"),
        ("AddmmBackward0", "block.0"),
        ("TanhBackward0", ""),
        ("EmbeddingBackward0", "embed = head"),
    }
    assert {g.key for g in view.by_module(1).groups} == {"(model)", "embed = head", "block"}


def test_groups_add_up_when_what_they_share_is_counted_once():
    view = judge(MODELS["mlp"], ledger).result
    for groups in (view.by_node_kind(), view.by_module()):
        assert groups.total_bytes == view.total_bytes
        assert sum(g.bytes for g in groups.groups) - groups.total_bytes in range(
            sum(g.shared_bytes for g in groups.groups) + 1
        )
        assert [g.bytes for g in groups.groups] == sorted(g.bytes for g in groups.groups)[::-1]
        assert all(sum(g.by_role.values()) == g.bytes for g in groups.groups)
    only = view.grouped(lambda entry: "all")
    assert [(g.bytes, g.shared_bytes) for g in only.groups] == [(view.total_bytes, 0)]


def test_sorting_keeps_everything():
    view = judge(MODELS["mlp"], ledger).result
    by_bytes = view.sorted()
    assert sorted(map(repr, by_bytes.entries)) == sorted(map(repr, view.entries))
    sizes = [e.storage_bytes for e in by_bytes.entries]
    assert sizes == sorted(sizes, reverse=True)
    assert view.sorted("node").entries == view.entries
    with pytest.raises(ValueError, match="sort by one of node, bytes"):
        view.sorted("size")


def test_dictionaries_are_plain():
    import json

    view = judge(MODELS["mlp"], ledger).result
    rows = json.loads(json.dumps(view.to_dicts()))
    assert [row["dtype"] for row in rows] == ["float32"] * len(view.entries)
    assert [tuple(row["shape"]) for row in rows] == [e.shape for e in view.entries]
    assert json.dumps(view.by_module().to_dicts())


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_nodes_are_numbered_as_in_the_graph(name):
    def look(nodes, names, inputs):
        return lens.saved_tensors(nodes, names), lens.graph(nodes, names)

    view, graph = judge(MODELS[name], look).result
    nodes = [(k, s.field) for k, n in enumerate(graph.nodes) for s in n.saved if not s.empty]
    assert [(e.node, e.field) for e in view.entries] == nodes
    assert all(graph.nodes[e.node].name == e.name for e in view.entries)
    assert view.total_bytes == graph.saved_bytes and view.nodes == len(graph.nodes)


# What a fresh eye found


def test_a_freed_list_is_no_surprise():
    """A list that was freed can't be read."""
    y = torch.randn(4, requires_grad=True)[torch.tensor([0, 1])].sum()
    y.backward()
    (entry,) = lens.saved_tensors(y).entries
    assert (entry.label, entry.field, entry.freed) == ("IndexBackward0", "indices", True)


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return x * w + b

    @staticmethod
    def backward(ctx, grad):
        x, w, _ = ctx.saved_tensors
        return grad * w, grad * x, grad


def test_every_changed_tensor_of_a_list_is_stale():
    x, w, b = torch.ones(3), leaf(3), leaf(3)
    y = Weighted.apply(x, w, b)
    with torch.no_grad():
        w.add_(1), b.add_(1), b.add_(1)
    view = lens.saved_tensors(y * 1)
    versions = {e.field: (e.saved_version, e.version) for e in view.entries}
    assert versions["tensors[0]"] == (0, 0)
    if torch.__version__ < torch.torch_version.TorchVersion("2.13"):
        pytest.skip("PyTorch names the first that was changed, and no other")
    assert [entry.field for entry in view.stale] == ["tensors[1]", "tensors[2]"]
    assert versions["tensors[1]"] == (0, 1) and versions["tensors[2]"] == (0, 2)


def test_the_class_of_a_function_is_not_kept():
    def look(ledger):
        weight = torch.randn(10)

        class Local(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * weight

            @staticmethod
            def backward(ctx, grad):
                return grad * weight

        ledger(Local.apply(torch.randn(10, requires_grad=True)) * 1)
        return weakref.ref(weight)

    for way in (lens.saved_tensors, lens.graph, lambda y: None):
        reference = look(way)
        gc.collect()
        assert reference() is None


def test_a_lazy_parameter_that_was_not_used_is_no_obstacle():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.other = nn.Linear(3, 3), nn.LazyLinear(4)

        def forward(self, x):
            return self.used(x).sin()

    net, x = Net(), torch.randn(2, 3)
    view = lens.saved_tensors(net(x), net, inputs=x)
    assert view.input_bytes == x.nbytes and view.activation_bytes == x.nbytes
    assert "used.weight" in str(lens.graph(net(x), net))
    record = lens.record_memory(lambda: net(x).sum().backward())
    assert record.end["parameter"] == record.end["gradient"] == 12 * 4
    assert lens.saved_tensors(net(x), inputs=net.other.weight).input_bytes == 0


def test_names_of_inputs_stay_on_one_line():
    x = torch.ones(2, requires_grad=True)
    (entry, _) = lens.saved_tensors(x * x, inputs={"a\nb": x}).entries
    assert entry.owner == "a\\nb"


# Bad arguments


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda y: lens.saved_tensors(3), TypeError, "pass a tensor"),
        (lambda y: lens.saved_tensors(y.detach()), ValueError, "does not require grad"),
        (lambda y: lens.saved_tensors(y, 3), TypeError, "names must be"),
        (lambda y: lens.saved_tensors(y, inputs=3), TypeError, "inputs must be a tensor"),
        (lambda y: lens.saved_tensors(y, inputs=nn.Linear(1, 1)), TypeError, "as names"),
        (lambda y: lens.saved_tensors(y).by_module(), ValueError, "pass the model"),
        (lambda y: lens.saved_tensors(y).by_module(0), ValueError, "at least 1"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(torch.ones(2, requires_grad=True).exp())
    assert "\n" not in str(caught.value)


# Memory that is no tensor; whose memory it is


class PutsOnCtx(torch.autograd.Function):
    """Keeps what a function makes of its input."""

    @staticmethod
    def forward(ctx, x, make):
        ctx.kept = make(x.detach())
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


@pytest.mark.parametrize(
    ("make", "kind", "size"),
    [
        (lambda x: x.clone().numpy(), None, 4000),  # of a tensor: its storage
        (lambda x: np.arange(500.0), "ndarray", 4000),
        (lambda x: [np.arange(500.0)[::2]], "ndarray", 4000),  # the array that owns the memory
        (lambda x: x.clone().untyped_storage(), "UntypedStorage", 4000),
        (lambda x: {"raw": bytes(4000)}, "bytes", 4000),
        (lambda x: bytearray(4000), "bytearray", 4000),
        (lambda x: x.tolist, "Tensor", 4000),  # a bound method keeps its object
        (lambda x: "a text", None, 0),
    ],
)
def test_memory_on_ctx_counts_whatever_holds_it(make, kind, size):
    x = torch.randn(1000, requires_grad=True)
    ledger = lens.saved_tensors(PutsOnCtx.apply(x, make), {"x": x})
    assert ledger.total_bytes == size
    if kind:
        (entry,) = ledger.entries
        assert entry.kind == kind and entry.storage_bytes == size
        assert entry.field.startswith("ctx.kept")


@pytest.mark.parametrize("pack", [lambda t: t.numpy().copy(), lambda t: t.numpy().tobytes()])
def test_what_a_hook_packs_into_other_memory_counts(pack):
    x = torch.randn(1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: pack(t.detach()), torch.tensor):
        y = x.exp()
    (entry,) = lens.saved_tensors(y).entries
    assert entry.packed and entry.storage_bytes == 4000
    assert lens.saved_tensors(y).activation_bytes == 4000


def test_tables_and_masks_of_a_module_are_buffers():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.mask = torch.ones(4, 4)
            self.tables = {"cos": torch.rand(4), "sin": torch.rand(4)}

        def forward(self, x):
            x = self.linear(x) * self.mask
            return x * self.tables["cos"]

    model = Masked()
    ledger = lens.saved_tensors(model(torch.ones(4, 4)).sum(), model)
    owners = {entry.owner: entry.role for entry in ledger.entries}
    assert owners["mask"] == owners["tables['cos']"] == "buffer"
    assert "tables['sin']" not in owners


def test_a_leaf_that_is_no_parameter_of_the_model_is_an_input():
    model = nn.Linear(4, 1)
    between = torch.rand(8, 4, requires_grad=True)
    out = model(between).tanh()
    (gradient,) = torch.autograd.grad(out.sum(), between, create_graph=True)
    roles = {e.owner: e.role for e in lens.saved_tensors((out, gradient), model).entries}
    assert roles["weight"] == "parameter"
    ledger = lens.saved_tensors(out, model)
    assert {e.owner: e.role for e in ledger.entries if e.owner and "leaf" in e.owner} == {
        "leaf 2": "input"
    }
    # without a Module a leaf is what is trained
    assert lens.saved_tensors(out).input_bytes == 0


@pytest.mark.parametrize(
    "by, key",
    [
        ("node", lambda entry, _: entry.node),
        ("field", lambda entry, _: entry.field),
        ("module", lambda entry, module: natural(module or "")),
        ("bytes", lambda entry, _: -entry.storage_bytes),
    ],
)
def test_entries_are_sorted_by_what_is_asked_for(by, key):
    model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(12)])
    ledger = lens.saved_tensors(model(torch.ones(2, 3)).sum(), model)
    found = ledger.sorted(by)
    keys = [key(entry, found.module_of(entry)) for entry in found.entries]
    assert keys == sorted(keys) and len(set(map(str, keys))) > 1
    assert {str(entry) for entry in found.entries} == {str(entry) for entry in ledger.entries}


def test_a_dictionary_of_an_entry_names_its_module():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    ledger = lens.saved_tensors(model(torch.ones(2, 3)).sum(), model)
    assert [row["module"] for row in ledger.to_dicts()] == ["1", "1", "0"]


def test_numbers_in_names_are_sorted_as_numbers():
    assert sorted(["b.10", "b.2", "a.3", "b"], key=natural) == ["a.3", "b", "b.2", "b.10"]
    assert natural("2a") < natural("10a") and natural("1") < natural("a1")
