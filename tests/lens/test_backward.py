"""A recorded backward is the backward PyTorch would have run, and the record tells it truly."""

import gc

import pytest
import torch
from independent import alive, saved_storages, walk
from models import MODELS
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

import autograd_lens as lens
from autograd_lens.backprop import recorder

EVERY = pytest.mark.parametrize("name", MODELS)


def built(name):
    torch.manual_seed(0)
    return MODELS[name]()


def parts(tensor):
    """What to compare of a gradient: its strided pieces."""
    if tensor is None:
        return []
    if tensor.layout == torch.sparse_coo:
        return [tensor.coalesce().indices(), tensor.coalesce().values()]
    return list(tensor.unbind()) if tensor.is_nested else [tensor]


def assert_same(mine, plain):
    assert (mine is None) == (plain is None)
    for a, b in zip(parts(mine), parts(plain), strict=True):
        assert a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)


@EVERY
def test_gradients_are_bitwise_those_of_a_plain_backward(name):
    loss, leaves = built(name)
    loss.backward()
    recorded_loss, recorded = built(name)
    recording = lens.record_backward(recorded_loss, names=recorded)
    str(recording)
    assert leaves and any(leaf.grad is not None for leaf in leaves.values())
    for key, leaf in leaves.items():
        assert_same(recorded[key].grad, leaf.grad)


@EVERY
def test_the_order_is_the_profilers(name):
    loss, _ = built(name)
    with torch.profiler.profile() as watched:
        loss.backward()
    prefix = "autograd::engine::evaluate_function: "
    calls = [e for e in watched.events() if e.name.startswith(prefix)]
    calls.sort(key=lambda event: event.time_range.start)
    expected = [event.name.removeprefix(prefix) for event in calls]
    loss, leaves = built(name)
    recording = lens.record_backward(loss, names=leaves)
    seen = [recording.graph.nodes[step.node].name for step in recording.steps]
    if name == "checkpoint_reentrant":  # runs a backward of its own inside, which is not seen
        rest = iter(expected)
        assert all(node in rest for node in seen) and 0 < len(seen) < len(expected)
        return
    assert seen == expected
    assert [step.number for step in recording.steps] == list(range(1, len(seen) + 1))


@EVERY
def test_saved_bytes_only_fall_and_end_at_nothing(name):
    loss, leaves = built(name)
    storages = saved_storages([loss])
    recording = lens.record_backward(loss, names=leaves)
    held = [recording.saved_bytes, *(step.saved_bytes for step in recording.steps)]
    assert held == sorted(held, reverse=True)
    assert recording.saved_bytes == recording.graph.saved_bytes
    if name == "checkpoint_reentrant":
        # the frame of the checkpoint keeps its random state on ctx, after backward too
        assert held[-1] == torch.get_rng_state().numel()
    else:
        assert held[-1] == 0
    if name == "checkpoint_recomputed":  # two frames, each with its input and its random state
        assert recording.saved_bytes == 2 * (3 * 4 * 4 + torch.get_rng_state().numel())
    elif name not in ("checkpoint_reentrant", "jagged"):
        assert recording.saved_bytes == sum(size for _, size in storages.values())


def activations_only():
    """A graph that saves nothing but what it made itself: what is let go really dies."""
    x = torch.randn(50, requires_grad=True)
    a = x.exp()
    b = a.sin().tanh()
    c = b.reshape(5, 10) @ (a * b).reshape(10, 5)
    return x, (c.softmax(-1).square() * c.exp()).sum()


def test_saved_bytes_are_those_really_alive_at_every_step():
    x, loss = activations_only()
    storages = saved_storages([loss])
    at_entry = []

    def count(*_):
        at_entry.append(sum(size for ref, size in storages.values() if not ref.expired()))

    for node in walk([loss]):
        node.register_prehook(count)
    recording = lens.record_backward(loss, names={"x": x})
    assert len(set(at_entry)) > 5
    assert [recording.saved_bytes, *(s.saved_bytes for s in recording.steps[:-1])] == at_entry
    assert alive(storages) == [] and recording.steps[-1].saved_bytes == 0
    freed = {(recording.graph.nodes[s.node].name, f) for s in recording.steps for f in s.freed}
    assert ("ExpBackward0", "result") in freed and ("MmBackward0", "mat2") in freed


def test_it_keeps_no_saved_tensor_and_no_gradient():
    x, loss = activations_only()
    h = loss * 1
    h.retain_grad()
    storages = saved_storages([h])
    recording = lens.record_backward(h, names={"x": x, "h": h})
    assert alive(storages) == []
    grads = [StorageWeakRef(t.grad.untyped_storage()) for t in (x, h)]
    x.grad = h.grad = None
    gc.collect()
    assert [ref.expired() for ref in grads] == [True, True]
    assert recording.steps[0].written[0].grad.values == 1.0


def worked_example():
    x = torch.tensor([1.0, 0.0])
    w1 = torch.tensor([[2.0, 1.0], [-1.0, 3.0]], requires_grad=True)
    w2 = torch.tensor([0.5, 0.5], requires_grad=True)
    z = w2 @ torch.relu(w1 @ x)
    return 0.5 * z**2, {"W1": w1, "w2": w2, "z": z}


def test_the_worked_example_number_by_number():
    # a = W1 x = [2, -1], h = [2, 0], z = 1, L = 1/2
    # dz = z = 1, dw2 = dz h = [2, 0], dh = dz w2 = [.5, .5], da = [.5, 0], dW1 = da xᵀ
    loss, names = worked_example()
    recording = lens.record_backward(loss, names=names)
    values = [
        (
            step.label,
            [g and g.values for g in step.incoming],
            [g and g.values for g in step.outgoing],
            [(w.name, w.how, w.grad.values) for w in step.written],
        )
        for step in recording.steps
    ]
    w1 = ((0.5, 0.0), (0.0, 0.0))
    assert values == [
        ("MulBackward0", [1.0], [0.5, None], []),
        ("PowBackward0", [0.5], [1.0], []),
        ("DotBackward0", [1.0], [(2.0, 0.0), (0.5, 0.5)], []),
        ("w2", [(2.0, 0.0)], [], [("w2", "stolen", (2.0, 0.0))]),
        ("ReluBackward0", [(0.5, 0.5)], [(0.5, 0.0)], []),
        ("MvBackward0", [(0.5, 0.0)], [w1, None], []),
        ("W1", [w1], [], [("W1", "stolen", w1)]),
    ]
    # 36 B = h, w2, x of 8 B each, z of 4, the number 0.5 of 8; h is held until relu has run
    assert recording.saved_bytes == 36
    assert [step.saved_bytes for step in recording.steps] == [28, 24, 16, 16, 8, 0, 0]
    assert recording.steps[2].incoming[0].norm == 1.0
    assert recording.steps[4].incoming[0].norm == pytest.approx(0.5**0.5)


class Emits(torch.autograd.Function):
    """Sends back a gradient that it makes itself, and remembers only where that lies."""

    arrived: list[int] = []
    make = staticmethod(torch.ones)

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        made = Emits.make(4)
        Emits.arrived.append(made.data_ptr())
        return made


@pytest.mark.parametrize(
    ("make", "stolen"),
    [
        (torch.ones, True),
        (lambda n: torch.ones(1).expand(n), False),  # its memory is not that of a whole tensor
        (lambda n: torch.ones(2 * n)[::2], False),
    ],
)
def test_a_gradient_is_stolen_exactly_where_a_plain_backward_steals(monkeypatch, make, stolen):
    monkeypatch.setattr(Emits, "make", staticmethod(make))
    x = torch.randn(4, requires_grad=True)
    Emits.apply(x).sum().backward()
    plain = x.grad.data_ptr() == Emits.arrived.pop()
    x.grad = None
    recording = lens.record_backward(Emits.apply(x).sum(), names={"x": x})
    recorded = x.grad.data_ptr() == Emits.arrived.pop()
    assert plain == recorded == stolen
    assert recording.steps[-1].written[0].how == ("stolen" if stolen else "copied")


def test_how_a_gradient_is_added():
    x = torch.randn(4, requires_grad=True)

    def how(**options):
        return lens.record_backward(x.exp().sum(), names={"x": x}, **options).steps[-1].written

    assert [w.how for w in how()] == ["stolen"]
    before = x.grad
    assert [w.how for w in how()] == ["added in place"]
    assert x.grad is before
    assert [w.how for w in how(create_graph=True)] == ["added out of place"]
    assert x.grad is not before and x.grad.grad_fn is not None
    x.grad = None


def test_create_graph_leaves_a_graph_of_the_gradient():
    x = torch.tensor([2.0], requires_grad=True)
    recording = lens.record_backward(x**3, create_graph=True, names={"x": x})
    (second,) = torch.autograd.grad(x.grad, x)
    assert second.item() == 12.0, "d²x³/dx² = 6x"
    assert {step.saved_bytes for step in recording.steps} == {recording.saved_bytes}
    x.grad = None


def test_retain_graph():
    x, loss = activations_only()
    first = lens.record_backward(loss, retain_graph=True)
    grad, x.grad = x.grad, None
    assert {s.saved_bytes for s in first.steps} == {first.saved_bytes}
    assert not any(step.freed for step in first.steps)
    second = lens.record_backward(loss)
    assert torch.equal(x.grad, grad)
    assert [s.node for s in first.steps] == [s.node for s in second.steps]
    with pytest.raises(RuntimeError, match="run the forward again.*second time"):
        lens.record_backward(loss)


def test_inputs_choose_what_is_written_and_what_runs():
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    h = a.exp()
    y = (h * b.sin()).sum()
    recording = lens.record_backward(y, names={"a": a, "b": b, "h": h}, inputs=[b])
    assert a.grad is None and b.grad is not None
    names = [recording.graph.nodes[s.node].label for s in recording.steps]
    assert names == ["SumBackward0", "MulBackward0", "SinBackward0", "b"]


def test_a_gradient_is_the_vector_of_the_product():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    recording = lens.record_backward(x * x, {"x": x}, gradient=torch.tensor([10.0, 1.0]))
    assert recording.steps[0].incoming[0].values == (10.0, 1.0)
    assert x.grad.tolist() == [20.0, 4.0]
    with pytest.raises(RuntimeError, match="pass gradient=.*scalar"):
        lens.record_backward(x * x)


def test_a_list_of_outputs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, z = x * 2, x.exp().sum()
    lens.record_backward([y, z], {"x": x}, gradient=[torch.ones(2), None])
    assert torch.equal(x.grad, 2 + x.detach().exp())
    x.grad = None
    lens.record_backward((x * 2, x.sum()), gradient=(torch.ones(2), None))
    assert x.grad.tolist() == [3.0, 3.0]


class Fails(torch.autograd.Function):
    broken = True

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if Fails.broken:
            raise KeyError("the reader's own mistake")
        return grad * 2


def unwatched(monkeypatch):
    """From here on, a hook of the lens that still runs is an error."""

    def left_behind(*_):
        raise AssertionError("a hook of the lens was left behind")

    monkeypatch.setattr(recorder, "describe", left_behind)


def test_an_error_in_backward_comes_through_and_leaves_no_hook(monkeypatch):
    x = torch.ones(2, requires_grad=True)
    y = Fails.apply(x.exp()).sin().sum()
    monkeypatch.setattr(Fails, "broken", True)
    with pytest.raises(KeyError, match="the reader's own mistake"):
        lens.record_backward(y, retain_graph=True)
    assert x.grad is None
    monkeypatch.setattr(Fails, "broken", False)
    recording = lens.record_backward(y, retain_graph=True)
    assert len(recording.steps) == 5
    unwatched(monkeypatch)
    y.backward()


def test_pytorchs_own_error_comes_through(monkeypatch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lens.record_backward(loss)
    again = x.exp().sum()
    assert len(lens.record_backward(again, retain_graph=True).steps) == 3
    unwatched(monkeypatch)
    again.backward()


def test_a_leaf_node_that_lives_on_is_not_recorded_twice():
    x = torch.ones(2, requires_grad=True)
    node = torch.autograd.graph.get_gradient_edge(x).node
    for _ in range(3):
        recording = lens.record_backward((x * 2).sum(), names={"x": x})
        assert [step.label for step in recording.steps].count("x") == 1
        assert [len(step.written) for step in recording.steps] == [0, 0, 1]
    assert node.variable is x and x.grad.tolist() == [6.0, 6.0]


def test_the_readers_hooks_run_and_see_the_same():
    def run(back):
        torch.manual_seed(0)
        seen = []
        net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        x = torch.randn(2, 3, requires_grad=True)
        net[0].register_full_backward_hook(lambda m, i, o: seen.extend([i[0], o[0]]))
        h = net(x)
        h.register_hook(lambda g: seen.append(g) or g * 2)
        h.grad_fn.register_prehook(lambda g: seen.append(g[0]))
        h.grad_fn.register_hook(lambda i, o: seen.extend([i[0], o[0]]))
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
        back(h.sum())
        return seen

    plain, recorded = run(lambda y: y.backward()), run(lens.record_backward)
    assert len(plain) == 7
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))


def test_incoming_is_what_the_node_gets_after_tensor_hooks():
    x = torch.ones(1, requires_grad=True)
    h = x * 2
    h.register_hook(lambda g: g * 10)
    recording = lens.record_backward(h * 3, names={"x": x, "h": h})
    assert recording.steps[1].incoming[0].values == (30.0,)
    assert x.grad.item() == 60


def test_a_hook_that_takes_the_gradient_away():
    x = torch.ones(2, requires_grad=True)

    def take(tensor):
        tensor.grad = None

    x.register_post_accumulate_grad_hook(take)
    recording = lens.record_backward((x * 2).sum(), names={"x": x})
    assert x.grad is None
    (written,) = recording.steps[-1].written
    assert (written.name, written.how, written.grad) == ("x", "taken by a hook", None)
    str(recording)


def test_retained_gradients_are_recorded_where_they_are_written():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    h.retain_grad()
    recording = lens.record_backward((h * 3).sum(), names={"x": x, "h": h})
    (step,) = [s for s in recording.steps if any(w.how == "retained" for w in s.written)]
    assert recording.graph.nodes[step.node].outputs[0].name == "h"
    assert step.written[0].grad.values == (3.0, 3.0) == tuple(h.grad.tolist())


def test_sparse_gradients():
    loss, leaves = built("sparse_gradients")
    recording = lens.record_backward(loss, names=leaves)
    (weight,) = [s for s in recording.steps if s.label == "weight"]
    assert leaves["weight"].grad.is_sparse
    assert weight.written[0].grad.shape == (6, 3)
    assert weight.written[0].grad.values is None


def test_complex_gradients():
    z = torch.tensor([1 + 2j], requires_grad=True)
    recording = lens.record_backward((z * z.conj()).real.sum(), names={"z": z})
    assert z.grad.tolist() == [2 + 4j], "the gradient of |z|² is 2z"
    assert recording.steps[-1].written[0].grad.values == (2 + 4j,)
    assert recording.steps[-1].written[0].grad.norm == pytest.approx(20**0.5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_gradients_that_are_not_finite(bad):
    x = torch.ones(3, requires_grad=True)
    recording = lens.record_backward((x * bad).sum(), names={"x": x})
    norm = recording.steps[-1].incoming[0].norm
    assert norm != norm or norm == bad
    assert str(bad) in str(recording)


def test_an_empty_tensor():
    x = torch.ones(0, requires_grad=True)
    recording = lens.record_backward((x * 2).sum(), names={"x": x})
    assert recording.steps[-1].incoming[0].norm == 0
    assert x.grad.shape == (0,)
    str(recording)


def test_a_meta_tensor_has_no_numbers():
    x = torch.ones(3, requires_grad=True, device="meta")
    recording = lens.record_backward((x * 2).sum(), names={"x": x})
    assert x.grad.device.type == "meta"
    gradient = recording.steps[-1].incoming[0]
    assert (gradient.shape, gradient.norm, gradient.values) == ((3,), None, None)
    str(recording)


def test_recording_inside_no_grad_is_a_plain_backward():
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    with torch.no_grad():
        lens.record_backward(y)
    assert x.grad.tolist() == [2.0, 2.0]


def test_ddp_of_one_process(tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        net = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        x = torch.randn(4, 3)
        recording = lens.record_backward(net(x).sum(), names=net)
        grads = [p.grad.clone() for p in net.parameters()]
        assert {s.label for s in recording.steps} >= {"module.weight", "module.bias"}
        net.zero_grad()
        net(x).sum().backward()
        assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), grads, strict=True))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda():
    def build():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).cuda()
        return net, net(torch.randn(5, 3, device="cuda")).sum()

    plain, loss = build()
    loss.backward()
    net, loss = build()
    recording = lens.record_backward(loss, names=net)
    for a, b in zip(net.parameters(), plain.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
    assert recording.steps[-1].saved_bytes == 0
    assert {w.how for step in recording.steps for w in step.written} == {"stolen"}
    assert [s.node for s in recording.steps] == list(range(len(recording.graph.nodes)))


def test_a_leaf_inside_and_outside_a_reentrant_checkpoint_keeps_steps_apart():
    w = torch.ones(2, requires_grad=True)
    inner = torch.utils.checkpoint.checkpoint(lambda a: a * w, w * 1, use_reentrant=True)
    steps = lens.record_backward((inner + w).sum(), names={"w": w}).steps
    outer = next(step for step in steps if step.label == "CheckpointFunctionBackward")
    leaves = [step for step in steps if step.label == "w"]
    assert any(sent is not None for sent in outer.outgoing)
    assert len(leaves) == 2 and all(step.outgoing == () for step in leaves)
    assert leaves[0].number > outer.number


def test_the_wrong_gradient_argument_is_named():
    x = torch.ones(2, requires_grad=True)
    for wrong in (torch.nn.Linear(1, 1), {"x": x}, 1.0):
        with pytest.raises(TypeError, match="names for tensors go in names="):
            lens.record_backward((x * 2).sum(), gradient=wrong)
    for gradient in (torch.ones(()), [torch.ones(())]):
        with pytest.raises(TypeError, match="a gradient goes in gradient="):
            lens.record_backward((x * 2).sum(), gradient)
    assert x.grad is None
