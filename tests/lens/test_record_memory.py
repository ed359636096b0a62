"""Memory by role against the live objects, against the profiler's own sum, and where it must fail.

Judges that know nothing of the lens: sums over the objects that are alive, and the running total of
the allocator, which the profiler writes beside every event.
"""

import functools
import gc
import sys
import weakref
from dataclasses import dataclass
from threading import Barrier, Event, Thread

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import autograd_lens as lens
from autograd_lens.memory import recorder as memory_recorder
from autograd_lens.memory.blocks import account
from autograd_lens.memory.events import Change


class Block(nn.Module):
    def __init__(self, fused, width=32):
        super().__init__()
        self.fused = fused
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            y = scores.masked_fill(later, -1e9).softmax(-1) @ v
        x = x + y.transpose(1, 2).flatten(-2)
        return x + self.mlp(x)


class Language(nn.Module):
    """Two blocks between an embedding and a head that share a weight."""

    def __init__(self, fused):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.blocks = nn.Sequential(Block(fused), Block(fused))
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        logits = self.head(self.blocks(self.embed(tokens)))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Squared(nn.Sequential):
    def forward(self, x):
        return super().forward(x).square().mean()


MODELS = {
    "mlp": lambda: (Squared(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), torch.randn(8, 16)),
    "transformer": lambda: (Language(False), torch.arange(32).view(2, 16)),
    "transformer with sdpa": lambda: (Language(True), torch.arange(32).view(2, 16)),
    "conv net": lambda: (
        Squared(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2),
            nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4),
        ),
        torch.randn(2, 3, 11, 11),
    ),
}  # fmt: skip


def storages(tensors):
    """Bytes by address of the storages behind tensors."""
    found = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
    return found


def saved_by_hand(loss):
    """Every tensor that the graph keeps, found with a walk of this test's own."""
    found, met, pending = [], set(), [loss.grad_fn]
    while pending:
        node = pending.pop()
        if node is None or node in met:
            continue
        met.add(node)
        pending += [function for function, _ in node.next_functions]
        for field in dir(node):
            if field.startswith("_raw_saved_"):
                raw = getattr(node, field)
                raws = raw if isinstance(raw, (tuple, list)) else [raw]
                found += [one.data for one in raws if one is not None and one.data is not None]
    return found


def allocator(roots):
    """``(running total, change, name of the event above)`` of each allocation, in order of time."""
    found, pending = [], [(root, "") for root in roots]
    while pending:
        event, above = pending.pop()
        if event.name == "[memory]":
            change = event.typed[1]
            found.append((event.start_time_ns, change.total_allocated, change.alloc_size, above))
        pending += [(child, event.name) for child in event.children]
    return [rest for _, *rest in sorted(found)]


@functools.cache
def trained(name):
    """A recorded step with Adam, the bytes alive at its ends, and the allocator's events."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters())
    live, found = {}, []

    def step():
        loss = model(x)
        mine = storages([*model.parameters(), *model.buffers(), x])
        saved = storages(saved_by_hand(loss))
        live["activation"] = sum(size for key, size in saved.items() if key not in mine)
        loss.backward()
        optimizer.step()
        return loss

    with pytest.MonkeyPatch.context() as patch:
        plain = memory_recorder.events_of

        def watched(profile, *rest):
            found.extend(allocator(profile.kineto_results.experimental_event_tree()))
            return plain(profile, *rest)

        patch.setattr(memory_recorder, "events_of", watched)
        recording = lens.record_memory(step)
    state = [value for values in optimizer.state.values() for value in values.values()]
    live["parameter"] = sum(storages(model.parameters()).values())
    live["buffer"] = sum(storages(model.buffers()).values())
    live["input"] = sum(storages([x]).values())
    live["gradient"] = sum(storages(p.grad for p in model.parameters()).values())
    live["optimizer"] = sum(storages(state).values())
    return recording, live, found


every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_roles_are_the_live_objects_to_the_byte(name):
    recording, live, _ = trained(name)
    forward, backward, step = recording.phases
    assert [phase.name for phase in recording.phases] == ["forward", "backward", "step"]
    assert forward.after["activation"] == live["activation"] > 0
    assert backward.after["gradient"] == live["gradient"] > 0
    assert step.after["optimizer"] == live["optimizer"] > live["gradient"]
    for role in ("parameter", "buffer", "input"):
        assert recording.base.get(role, 0) == live[role]
    # What is left when it returns: the loss, and nothing that was saved.
    assert recording.end["activation"] == recording.end["temporary"] == 0
    assert recording.end["kept"] == 4
    assert backward.after["optimizer"] == forward.after["gradient"] == 0


@every_model
def test_the_activation_curve_ends_at_zero_and_goes_down_in_the_backward(name):
    recording, live, _ = trained(name)
    curve = recording.series("activation")
    assert max(curve) == live["activation"] and curve[0] == curve[-1] == 0
    backward = recording.phases[1]
    falls = [s for s in recording.samples[backward.start : backward.stop] if s.change < 0]
    assert -sum(s.change for s in falls if s.role == "activation") == live["activation"]


@every_model
def test_every_event_and_the_peak_are_those_of_the_allocator(name):
    recording, _, events = trained(name)
    base = sum(recording.base.values())
    start = events[0][0] - events[0][1]  # the allocator's total before the first event
    assert recording.series()[1:] == [base + total - start for total, _, _ in events]
    assert [sample.change for sample in recording.samples] == [size for _, size, _ in events]
    peak = max(range(len(events)), key=lambda k: events[k][0])
    assert recording.peak.event == peak
    assert recording.peak_bytes == base + events[peak][0] - start
    assert recording.peak.op in events[peak][2] or events[peak][2].startswith("aten::empty")
    assert sum(block.bytes for block in recording.live_at_peak) == recording.peak_bytes


@every_model
def test_blocks_samples_and_phases_tell_the_same(name):
    recording, _, _ = trained(name)
    for event in (-1, 0, recording.peak_event, len(recording.samples) - 1):
        by_role = dict.fromkeys(recording.roles, 0)
        for block in recording.live_at(event):
            by_role[block.role] += block.bytes
        assert recording.bytes_at(event) == by_role
    covered = [k for phase in recording.phases for k in range(phase.start, phase.stop)]
    assert covered == list(range(len(recording.samples)))
    for phase in recording.phases:
        assert {s.phase for s in recording.samples[phase.start : phase.stop]} == {phase.name}
        assert phase.peak_bytes == max(recording.series()[phase.start : phase.stop + 1])
        assert recording.at(phase.peak_event).total == phase.peak_bytes
    assert recording.peak_bytes == max(phase.peak_bytes for phase in recording.phases)
    (first, *_) = rows = recording.to_dicts()
    assert len(rows) == len(recording.samples)
    assert first["total"] == sum(first[role] for role in recording.roles)


# Negative controls: what it would look like if the mechanism were missing, or the program leaked


def weight_and_input():
    return torch.randn(64, 64, requires_grad=True), torch.randn(64, 64)


SIZE = 64 * 64 * 4


def test_a_kept_activation_does_not_go_down():
    w, x = weight_and_input()
    kept = []

    def step(keep):
        h = (x @ w).exp()
        if keep:
            kept.append(h.detach())
        h.sum().backward()

    assert lens.record_memory(step, False).end["activation"] == 0
    leaky = lens.record_memory(step, True)
    assert leaky.end["activation"] == SIZE
    [block] = [b for b in leaky.blocks if b.role == "activation" and b.died is None]
    assert (block.name, block.shape) == ("ExpBackward0.result", (64, 64))
    assert (block.op, block.phase) == ("aten::exp", "forward")


def test_a_retained_graph_is_still_there():
    w, x = weight_and_input()

    def step(retain):
        loss = (x @ w).exp().sum()
        loss.backward(retain_graph=retain)
        return loss

    assert lens.record_memory(step, False).end["activation"] == 0
    assert lens.record_memory(step, True).end["activation"] == SIZE


@pytest.mark.parametrize(
    ("left_out", "role"),
    [("optimizer", "optimizer"), ("graph", "activation"), ("_grad", "gradient")],
)
def test_without_its_snapshot_a_role_is_not_told(monkeypatch, left_out, role):
    model, x = MODELS["mlp"]()
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        model(x).backward()
        optimizer.step()

    roles = memory_recorder.Roles
    monkeypatch.setattr(roles, left_out, lambda self, *_: None)
    blind = lens.record_memory(step)
    assert not any(blind.series(role))
    lost = blind.end.get("kept", 0)
    assert role == "activation" or lost >= 2704, "kept, for nobody knows what"
    monkeypatch.undo()
    optimizer.zero_grad()
    assert any(lens.record_memory(step).series(role))


def test_older_memory_is_watched_until_it_goes(monkeypatch):
    """Whether the profiler tells of its end, too, depends on what has been at its address."""
    w, x = weight_and_input()

    def step():
        w.grad = None
        (x @ w).sum().backward()

    freed, noted = memory_recorder._Run._freed, []

    def note(self, *key):
        noted.append(key)
        return freed(self, *key)

    monkeypatch.setattr(memory_recorder._Run, "_freed", note)
    w.grad = torch.zeros_like(w)  # made outside of any profiler
    recording = lens.record_memory(step)
    assert len(noted) == 1, "of all that was there before, only the old gradient went"
    assert recording.base["gradient"] == recording.end["gradient"] == SIZE
    assert min(recording.series("gradient")) == 0, "the old one went before the new one came"


def test_older_memory_goes_once_even_if_the_profiler_tells_of_it():
    w, x = weight_and_input()

    def step():
        w.grad = None
        (x @ w).sum().backward()

    for _ in range(3):  # the gradient of the first recording is known to the profiler
        recording = lens.record_memory(step)
        assert recording.end["gradient"] == SIZE
    assert recording.base["gradient"] == SIZE and min(recording.series("gradient")) == 0


# Other ways to run


def phases(recording):
    return [phase.name for phase in recording.phases]


def test_a_function_without_backward():
    w, x = weight_and_input()
    recording = lens.record_memory(lambda: (x @ w).exp().sum())
    assert phases(recording) == ["forward"]
    assert recording.end["activation"] == SIZE, "the graph of what it returned"
    assert recording.peak.op == "aten::exp" and recording.peak.phase == "forward"
    with torch.no_grad():
        plain = lens.record_memory(lambda: (x @ w).exp().sum())
    assert plain.end["kept"] == 4 and plain.end.get("activation", 0) == 0


def test_nothing_happens():
    recording = lens.record_memory(lambda: None)
    assert recording.samples == recording.phases == recording.blocks == ()
    assert recording.peak_bytes == 0 and recording.peak.event == -1
    assert "0 bytes before" in str(recording)
    recording._repr_mimebundle_()


def test_torch_autograd_grad_and_second_derivatives():
    w, x = weight_and_input()
    recording = lens.record_memory(lambda: torch.autograd.grad((x @ w).exp().sum(), w))
    assert phases(recording)[:2] == ["forward", "backward"]
    assert recording.end["gradient"] == SIZE and recording.end["activation"] == 0

    def twice():
        (g,) = torch.autograd.grad((x @ w).exp().sum(), w, create_graph=True)
        g.square().sum().backward()

    recording = lens.record_memory(twice)
    assert phases(recording)[:4] == ["forward", "backward"] * 2
    assert recording.end["gradient"] == SIZE and recording.end["activation"] == 0


def test_accumulation_over_several_backwards_and_several_optimizers():
    model, x = MODELS["mlp"]()
    first = torch.optim.SGD(model[0].parameters(), momentum=0.9, lr=0.1)
    second = torch.optim.Adam(model[2].parameters())

    def step():
        for _ in range(3):
            loss = model(x)
            loss.backward()
        first.step()
        second.step()

    recording = lens.record_memory(step)
    assert phases(recording)[:6] == ["forward", "backward"] * 3
    assert [name for name in phases(recording) if name == "step"] == ["step", "step"]
    state = [v for o in (first, second) for s in o.state.values() for v in s.values()]
    state = [v for v in state if isinstance(v, torch.Tensor)]
    assert recording.end["optimizer"] == sum(storages(state).values())
    assert recording.end["gradient"] == sum(storages(p.grad for p in model.parameters()).values())
    assert all(phase.after["activation"] == 0 for phase in recording.phases[1::2])


def test_a_backward_inside_a_step_belongs_to_the_step():
    model, x = MODELS["mlp"]()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(x)
        loss.backward()
        return loss

    assert phases(lens.record_memory(lambda: optimizer.step(closure)))[0] == "step"


def test_a_loss_from_before():
    w, x = weight_and_input()
    loss = (x @ w).exp().sum()
    recording = lens.record_memory(lambda x: loss.backward(), x)
    assert recording.base["activation"] == SIZE and recording.base["input"] == SIZE + 4
    assert recording.end["activation"] == 0


def test_everything_made_inside():
    def run():
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()

    recording = lens.record_memory(run)
    assert recording.base == dict.fromkeys(recording.roles, 0)
    assert max(recording.series("parameter")) == 8 * 8 * 4 + 8 * 4
    assert sum(recording.end.values()) == 0


def test_a_checkpoint_keeps_its_input_and_makes_the_rest_anew():
    w, _ = weight_and_input()

    def part(a):
        return a.sin().cos().sin().cos()

    def run(spare):
        a = w.exp()
        y = checkpoint(part, a, use_reentrant=False) if spare else part(a)
        del a
        y.sum().backward()

    plain, spared = (lens.record_memory(run, spare) for spare in (False, True))
    assert max(plain.series("activation")) == 4 * SIZE
    # The exponential, which is also the input, and the state of the generator.
    assert max(spared.series("activation")) == SIZE + torch.get_rng_state().nbytes
    assert plain.end["activation"] == spared.end["activation"] == 0
    assert max(spared.series("temporary")) > max(plain.series("temporary"))


def test_the_input_of_a_checkpoint_counts_even_if_no_node_saves_it():
    w, _ = weight_and_input()

    def run():
        checkpoint(torch.sin, w + w, use_reentrant=False).sum().backward()

    recording = lens.record_memory(run)
    sizes = {b.bytes: b.name for b in recording.blocks if b.role == "activation"}
    assert set(sizes) == {SIZE, torch.get_rng_state().nbytes}
    assert sizes[SIZE].endswith("by its hook")
    assert recording.end["activation"] == 0


def test_what_a_function_leads_to_is_known_before():
    model, x = MODELS["mlp"]()
    parameters = sum(storages(model.parameters()).values())

    class Trainer:
        def __init__(self):
            self.model, self.batches = model, [x, x[:2]]

        def run(self):
            self.model(self.batches[0]).backward()

    def called(model, x=x):
        model(x)

    def indirectly():
        called(model)

    for fn, args in (
        (Trainer().run, ()),
        (called, (model,)),
        (functools.partial(called, model), ()),
        (indirectly, ()),
        (model, (x,)),
    ):
        base = lens.record_memory(fn, *args).base
        assert (base["parameter"], base["input"]) == (parameters, 512), fn
        model.zero_grad()

    def hidden():
        return [lambda: globals()["nowhere"] for _ in ()] or gc.garbage

    assert lens.record_memory(hidden).base == {}
    assert lens.record_memory(hidden, names=model).base["parameter"] == parameters
    pairs = lens.record_memory(hidden, names=model.named_parameters())
    assert {block.name for block in pairs.blocks} == {n for n, _ in model.named_parameters()}


def test_names_at_the_peak():
    model, x = MODELS["mlp"]()
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        model(x).backward()
        optimizer.step()

    listed = {block.name: block for block in lens.record_memory(step).live_at_peak}
    assert listed["0.weight"].shape == listed["grad of 0.weight"].shape == (32, 16)
    assert listed["exp_avg_sq of 0.weight"].role == "optimizer"
    assert listed["0.weight"].born == -1 and listed["0.weight"].dtype == torch.float32


# Nothing is left behind, and what can't be done is said


def test_nothing_is_kept_alive():
    model, x = MODELS["mlp"]()
    optimizer = torch.optim.Adam(model.parameters())
    seen = []

    def step(model, x, optimizer):
        loss = model(x)
        seen.append(weakref.ref(loss))
        loss.backward()
        optimizer.step()
        return loss

    recording = lens.record_memory(step, model, x, optimizer)
    assert seen[0]() is None
    weight = weakref.ref(model[0].weight)
    del model, x, optimizer, step
    gc.collect()
    assert weight() is None and recording.peak_bytes > 0


@pytest.mark.parametrize("where", ["forward", "backward", "step"])
def test_an_error_passes_and_everything_is_restored(where):
    w, x = weight_and_input()
    engine = torch.autograd._engine_run_backward
    optimizer = torch.optim.SGD([w], lr=0.1)

    def fails(*_):
        raise KeyError(where)

    def step():
        h = x @ w
        if where == "forward":
            fails()
        if where == "backward":
            h.register_hook(fails)
        h.sum().backward()
        if where == "step":
            handle = optimizer.register_step_pre_hook(fails)
            try:
                optimizer.step()
            finally:
                handle.remove()

    def hooks():
        module = sys.modules["torch.optim.optimizer"]
        both = module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks
        return [list(one) for one in both]

    before = hooks()
    with pytest.raises(KeyError, match=where):
        lens.record_memory(step)
    assert torch.autograd._engine_run_backward is engine
    assert not torch.autograd._profiler_enabled()
    assert hooks() == before
    assert lens.record_memory(lambda: (x @ w).sum().backward()).end["gradient"] == SIZE


def test_one_recording_at_a_time():
    inner = functools.partial(lens.record_memory, lambda: None)
    with pytest.raises(RuntimeError, match="recording already: one recording at a time"):
        lens.record_memory(inner)
    inner()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        with pytest.raises(RuntimeError, match="a profiler runs in this thread"):
            inner()
    inner()


def test_a_profiler_in_another_thread_is_refused():
    """PyTorch has one for the whole process, and crashes with two."""
    runs, over = Event(), Event()

    def other():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            runs.set()
            over.wait()

    thread = Thread(target=other)
    thread.start()
    runs.wait()
    with pytest.raises(RuntimeError, match="a profiler runs in another thread"):
        lens.record_memory(lambda: None)
    over.set()
    thread.join()
    lens.record_memory(lambda: None)


@pytest.mark.parametrize("fn", [torch.ones(2), None, 3, "step", [print]])
def test_what_is_no_function_is_refused(fn):
    words = f"fn must be a function.*not {type(fn).__name__}; pass the function itself"
    with pytest.raises(TypeError, match=words):
        lens.record_memory(fn)


def needs_a_batch(batch, *, scale=1):
    raise AssertionError("not to be called")


def wrapped(*_):
    """Stands for a decorator that brings the arguments along."""
    return torch.ones(3)


@pytest.mark.parametrize(
    ("fn", "args", "options"),
    [
        (lambda: None, [torch.ones(2)], {}),
        (needs_a_batch, [], {}),
        (needs_a_batch, [1], {"sclae": 2}),
        (functools.partial(needs_a_batch, 1), [2], {}),
    ],
)
def test_arguments_that_do_not_fit_are_refused(fn, args, options):
    with pytest.raises(TypeError, match=r"can't be called with .* calls fn\(a, b=c\)"):
        lens.record_memory(fn, *args, **options)
    assert lens.record_memory(functools.wraps(needs_a_batch)(wrapped)).peak_bytes == 12


def test_what_would_run_nothing_is_refused():
    def steps():
        yield torch.ones(2)

    async def step():
        return torch.ones(2)

    for fn in (steps, step):
        with pytest.raises(TypeError, match="fn must be a plain function"):
            lens.record_memory(fn)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu", 0)])
def test_every_name_of_the_cpu(device):
    recording = lens.record_memory(lambda: torch.ones(3), device=device)
    assert (recording.device, recording.peak_bytes) == ("cpu", 12)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"device": 3}, TypeError, 'device must be "cpu" or "cuda", not int'),
        ({"device": "bogus"}, ValueError, 'device must be "cpu" or "cuda", not \'bogus\''),
        ({"device": "meta"}, ValueError, "not on 'meta'"),
        ({"names": 3}, TypeError, "names must be a torch.nn.Module"),
    ],
)
def test_wrong_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        lens.record_memory(lambda: None, **options)


def test_wrong_questions_are_refused():
    recording = lens.record_memory(lambda: torch.ones(3))
    with pytest.raises(ValueError, match="role must be one of parameter, buffer"):
        recording.series("activations")
    for event in (-2, 1):
        with pytest.raises(IndexError, match="events go from -1 to 0"):
            recording.bytes_at(event)


def test_arguments_reach_the_function():
    seen = []
    lens.record_memory(lambda *a, **k: seen.append((a, k)), 1, 2, three=3)
    assert seen == [((1, 2), {"three": 3})]


# What a fresh eye found


def owned(module):
    """Bytes of parameters and of buffers, as they are now."""
    return tuple(sum(t.nbytes for t in all_()) for all_ in (module.parameters, module.buffers))


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 1))


def test_a_step_that_is_compiled_in_the_recording_has_the_phases_it_runs():
    """A compiler calls backward, too, while it traces, and nothing of ours may get in there."""
    net, x = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)), torch.randn(8, 16)
    compiled = torch.compile(net, backend="aot_eager", dynamic=False)

    def step():
        net.zero_grad()
        for _ in range(2):
            compiled(x).square().mean().backward()

    for _ in ("compiles", "is compiled"):
        record = lens.record_memory(step)
        names = [phase.name for phase in record.phases]
        assert names[:4] == ["forward", "backward"] * 2 and "backward" not in names[4:]
        assert record.end["gradient"] == sum(p.nbytes for p in net.parameters())
        assert record.phases[1].before["activation"] > 0 == record.phases[1].after["activation"]
    with torch.profiler.profile() as profile:
        compiled(x).mean().backward()
    assert not [e.key for e in profile.key_averages() if "autograd_lens" in e.key]


def test_what_make_fx_writes_down_has_nothing_of_ours():
    from torch.fx.experimental.proxy_tensor import make_fx

    def slope(x):
        (grad,) = torch.autograd.grad(x.sin().sum(), x)
        return grad

    made = []
    x = torch.ones(2, requires_grad=True)
    record = lens.record_memory(lambda: made.append(make_fx(slope)(x).code))
    assert "record_function" not in made[0] and "cos" in made[0]
    assert "backward" not in [phase.name for phase in record.phases]


def test_the_lens_is_not_compiled():
    from torch._dynamo.utils import counters

    net, x = nn.Linear(16, 4), torch.randn(8, 16)
    optimizer = torch.optim.Adam(net.parameters())

    def step():
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    def frames(run):
        torch._dynamo.reset()
        counters.clear()
        run(torch.compile(step, backend="eager"))
        return counters["frames"]["total"]

    assert frames(lens.record_memory) <= frames(lambda compiled: compiled())


def test_recordings_leave_no_finalizers_behind():
    net, x = small_net(), torch.randn(8, 16)

    def step():
        net.zero_grad(set_to_none=False)
        net(x).mean().backward()

    lens.record_memory(step)
    gc.collect()
    before = len(weakref.finalize._registry)
    lens.record_memory(step)
    gc.collect()
    assert len(weakref.finalize._registry) <= before
    assert not [one for one in gc.get_objects() if type(one) is memory_recorder._Run]


def test_the_end_of_an_older_graph_that_nothing_led_to():
    class Box:
        pass

    net, box = nn.Linear(1000, 8), Box()
    box.loss = net(torch.randn(100, 1000) * 1.5).square().mean()

    def step():
        box.loss.backward()
        del box.loss

    record = lens.record_memory(step)
    assert record.base["activation"] >= 100 * 1000 * 4
    assert record.end["activation"] == 0 and not record.end.get("input")


def test_a_profiler_inside_is_refused():
    net, x = small_net(), torch.randn(8, 16)

    def step():
        with torch.profiler.profile():
            net(x).mean().backward()

    with pytest.raises(RuntimeError, match="a profiler of its own"):
        lens.record_memory(step)
    assert lens.record_memory(lambda: net(x).mean().backward()).end["gradient"]


def test_memory_of_numpy_that_came_meanwhile_was_not_there_before():
    import numpy

    net = nn.Linear(1000, 8)

    def step():
        x = torch.from_numpy(numpy.ones((100, 1000), dtype=numpy.float32))
        net(x).square().mean().backward()

    record = lens.record_memory(step)
    assert not record.base.get("input") and not record.base.get("activation")
    assert record.phases[1].before["activation"] == 100 * 8 * 4  # what square saved


NEW_MEMORY = {
    "data": lambda net: [setattr(p, "data", p.data - 0.1) for p in net.parameters()],
    "another type": lambda net: net.double(),
    "assigned": lambda net: net.load_state_dict(
        {name: tensor.clone() for name, tensor in net.state_dict().items()}, assign=True
    ),
    "a buffer": lambda net: setattr(net[1], "running_mean", net[1].running_mean * 0.5),
}


@pytest.mark.parametrize("how", NEW_MEMORY)
def test_new_memory_of_parameters_and_buffers_is_theirs(how):
    net = small_net()
    before = owned(net)
    record = lens.record_memory(lambda: NEW_MEMORY[how](net) and None)
    assert (record.base["parameter"], record.base["buffer"]) == before
    assert (record.end["parameter"], record.end["buffer"]) == owned(net)
    assert not record.end.get("kept")


def test_a_lazy_model_gets_its_memory():
    net, x = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(1)), torch.randn(4, 3)
    record = lens.record_memory(lambda: net(x).sum().backward())
    assert record.end["parameter"] == record.end["gradient"] == owned(net)[0]


def test_fake_tensors_have_no_memory(recwarn):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        net = nn.Linear(4, 4)
        record = lens.record_memory(lambda: net(torch.ones(2, 4)).sum().backward())
    assert record.peak_bytes < 100, "only numbers"
    assert [phase.name for phase in record.phases] == ["forward"], "nothing runs"
    assert not [w for w in recwarn if "data pointer" in str(w.message)]


def test_a_backward_in_which_nothing_came_or_went_has_a_picture():
    y = torch.ones(2, requires_grad=True) * 1
    start = torch.ones(2)
    record = lens.record_memory(lambda: torch.autograd.grad(y, y, start))
    assert [(phase.name, phase.stop - phase.start) for phase in record.phases] == [("backward", 0)]
    assert str(record) and record._repr_mimebundle_()


class Wrapper(torch.Tensor):
    """A tensor without memory of its own, and without a way to ask for what is behind it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args = [one.inner if isinstance(one, Wrapper) else one for one in args]
        return function(*args, **(kwargs or {}))


def test_a_wrapper_without_memory_is_no_obstacle():
    x, w = Wrapper(torch.randn(8, 16)), torch.randn(16, 4, requires_grad=True)
    record = lens.record_memory(lambda: (x @ w).sum().backward())
    assert record.end["parameter"] == record.end["gradient"] == w.nbytes


def test_a_transform_that_is_compiled_in_the_recording_runs_no_backward():
    w, x = torch.randn(16, 4), torch.randn(8, 16)
    slope = torch.func.grad(lambda w: (x @ w).square().mean())
    compiled = torch.compile(lambda: slope(w), backend="aot_eager")
    for _ in ("compiles", "is compiled"):
        record = lens.record_memory(compiled)
        assert [phase.name for phase in record.phases] == ["forward"]


def test_older_memory_that_goes_in_a_compiled_step_compiles_nothing():
    from torch._dynamo.utils import counters

    class Box:
        pass

    box, y = Box(), torch.ones(3)

    def drop():
        torch._dynamo.graph_break()
        box.old.clear()
        torch._dynamo.graph_break()

    def step():
        drop()
        return y + 1

    torch._dynamo.reset()
    compiled, held = torch.compile(step, backend="eager"), [torch.ones(9)]

    def run():
        box.old = held
        compiled()

    run()
    held.append(torch.ones(9))
    counters.clear()
    record = lens.record_memory(run)
    assert record.base["input"] > record.end["input"]
    assert counters["frames"]["total"] <= 1, "none of the lens"


def test_many_parameters_are_not_claimed_again_and_again(monkeypatch):
    """What has not moved is not looked at again: the modules may be many, and the backwards."""
    net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    roles, claimed = memory_recorder.Roles, []
    tensor = roles.tensor
    monkeypatch.setattr(
        roles,
        "tensor",
        lambda self, role, *rest: claimed.append(role[1]) or tensor(self, role, *rest),
    )
    y = [torch.ones(1, requires_grad=True) * 2 for _ in range(10)]
    lens.record_memory(lambda: [one.backward() for one in y], names=net)
    assert claimed.count("parameter") == 40 + 10


# Roles by owner


def test_indices_of_a_sparse_gradient_stay_the_callers():
    embedding, tokens = nn.Embedding(1000, 3, sparse=True), torch.arange(100)

    def step(tokens):
        embedding(tokens).square().sum().backward()

    for fn, args in ((step, [tokens]), (lambda: step(tokens), [])):
        embedding.zero_grad()
        step(tokens)
        shared = storages([tokens, embedding.weight.grad._indices()])
        assert len(shared) == 1, "else there is no question"
        base = lens.record_memory(fn, *args).base
        assert (base["input"], base["gradient"]) == (tokens.nbytes, 100 * 3 * 4)
    embedding.zero_grad()
    step(tokens)
    assert lens.record_memory(lambda: None, names=embedding).base["gradient"] == (
        tokens.nbytes + 100 * 3 * 4
    ), "its own where nobody else is known"


class Rotary(nn.Module):
    """Tables as models have them: not registered, one of them made when it is first needed."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.table = torch.randn(100, 4)
        self.masks = [torch.ones(8, 1), {"not searched": torch.ones(70)}]
        self.pair = {"cos": torch.randn(9, 4)}
        self.cache = None
        self.last = None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.randn(7, 4)
        h = self.linear(x) * self.table[:8] * self.masks[0] * self.pair["cos"][:8]
        self.last = h
        return (h * self.cache.sum()).sum()


@pytest.mark.parametrize("depth", [0, 1])
def test_tensors_that_a_module_holds_as_attributes_are_buffers(depth):
    model, x = Rotary(), torch.randn(8, 4)
    tables, made = 100 * 16 + 8 * 4 + 9 * 16, 7 * 16
    whole = nn.Sequential(nn.Sequential(model)) if depth else model
    for before in (tables, tables + made):
        recording = lens.record_memory(lambda: whole(x).backward())
        assert (recording.base["buffer"], recording.end["buffer"]) == (before, tables + made)
        assert recording.base["input"] == x.nbytes
        assert recording.end["activation"] == 0
    names = {block.name for block in recording.blocks if block.role == "buffer"}
    place = "0.0." * depth
    assert names == {place + of for of in ("table", "masks[0]", "pair['cos']", "cache")}


def test_a_batch_that_a_module_holds_is_still_the_input():
    model, x = Rotary(), torch.randn(8, 4)
    model.batch = x
    assert lens.record_memory(lambda x: model(x).backward(), x).base["input"] == x.nbytes


def squared(x):
    (x * x).sum().backward()


@dataclass
class Batch:
    x: torch.Tensor


GIVEN = {
    "argument": lambda x: lens.record_memory(squared, x),
    "by name": lambda x: lens.record_memory(squared, x=x),
    "in a list": lambda x: lens.record_memory(lambda xs: squared(xs[0]), [x]),
    "in a dataclass": lambda x: lens.record_memory(lambda batch: squared(batch.x), Batch(x)),
    "by partial": lambda x: lens.record_memory(functools.partial(squared, x)),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_leaf_that_was_given_is_an_input(way):
    x = torch.ones(50, requires_grad=True)
    recording = GIVEN[way](x)
    assert (recording.base, recording.end["gradient"]) == (
        {"input": 200, "gradient": 0, "temporary": 0},
        200,
    )
    assert GIVEN[way](nn.Parameter(x)).base["parameter"] == 200


def test_new_memory_of_a_given_leaf_is_an_input():
    def step(x):
        x.data = x.data * 2
        squared(x)

    recording = lens.record_memory(step, torch.ones(50, requires_grad=True))
    assert recording.end["input"] == 200 and "parameter" not in recording.roles


def test_a_leaf_that_fn_refers_to_is_a_parameter():
    w = torch.ones(50, requires_grad=True)
    assert lens.record_memory(lambda: squared(w)).base["parameter"] == 200


def test_a_leaf_made_inside_is_kept_by_its_graph():
    """As the points between real and generated ones are, of which a WGAN takes the gradient."""
    model = nn.Linear(5, 1)

    def penalty():
        between = torch.rand(50, 5).requires_grad_()
        (grad,) = torch.autograd.grad(model(between).sum(), between, create_graph=True)
        grad.square().sum().backward()

    recording = lens.record_memory(penalty)
    assert recording.base["parameter"] == max(recording.series("parameter")) == 6 * 4
    assert recording.phases[1].before["activation"] >= 50 * 5 * 4
    assert recording.end["activation"] == 0


def test_what_an_optimizer_trains_is_a_parameter():
    def train(x):
        made = torch.ones(30, requires_grad=True)
        optimizer = torch.optim.SGD([x, made], lr=0.1)
        (x.sum() * made).sum().backward()
        optimizer.step()

    recording = lens.record_memory(train, torch.ones(50, requires_grad=True))
    trained = [block.bytes for block in recording.blocks if block.role == "parameter"]
    assert trained == [200, 120] and "input" not in recording.roles


# Other threads


class Trainer:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.x = torch.randn(8, 16)

    def step(self):
        self.model(self.x).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def test_another_thread_is_no_part_of_the_recording():
    """One step of it at chosen moments: in our forward, in our backward and in our step."""
    mine, passes = Trainer(0), []
    mine.step()
    alone = str(lens.record_memory(mine.step))

    def train():
        other = Trainer(len(passes))
        other.model(other.x).square().mean().backward()
        other.optimizer.step()
        passes.append(other)  # with its gradients, which the recording might take for ours

    def elsewhere(*_):
        thread = Thread(target=train)
        thread.start()
        thread.join()

    mine.model[1].register_forward_hook(elsewhere)
    mine.model[1].register_full_backward_hook(elsewhere)
    mine.optimizer.register_step_pre_hook(elsewhere)
    assert str(lens.record_memory(mine.step)) == alone
    assert len(passes) == 3


def test_recordings_beside_threads_that_train():
    """Beside busy threads, too: reading their graphs while they ran crashed the process."""
    mine, over, begun = Trainer(0), Event(), Barrier(3)
    mine.step()
    alone = str(lens.record_memory(mine.step))

    def train(other):
        other.step()
        begun.wait()
        while not over.is_set():
            other.step()
        ended.append(other)

    ended, others = [], [Trainer(1), Trainer(2)]
    threads = [Thread(target=train, args=[other]) for other in others]
    for thread in threads:
        thread.start()
    begun.wait()
    beside = {str(lens.record_memory(mine.step)) for _ in range(20)}
    over.set()
    for thread in threads:
        thread.join()
    assert beside == {alone}
    assert set(ended) == set(others), "no error in them"


def test_memory_that_another_thread_freed_ends_when_its_address_is_used_again():
    stream = [Change(64, 100, "aten::mm"), Change(64, 40, "aten::exp"), Change(64, -40, "")]
    blocks = account(stream, {}, {}).blocks
    assert [(b.bytes, b.born, b.died) for b in blocks] == [(100, 0, 1), (40, 2, 3)]


# What a recording takes itself


def deep_size(value, met):
    """Bytes of an object and of all that it refers to, each counted once."""
    if id(value) in met or isinstance(value, type):
        return 0
    met.add(id(value))
    return sys.getsizeof(value) + sum(deep_size(one, met) for one in gc.get_referents(value))


def test_samples_take_less_than_a_dict_of_roles_each():
    recording, _, _ = trained("transformer")
    assert len(recording.samples) > 500
    peer = deep_size([sample.by_role for sample in recording.samples], set())
    assert deep_size(recording.samples, set()) < 0.8 * peer
    kept = deep_size([recording.samples, recording.blocks], set()) / len(recording.samples)
    assert kept < 2 * peer / len(recording.samples)


def test_the_profile_is_freed_as_it_is_read(monkeypatch):
    plain, left = memory_recorder.events_of, []

    def watched(profile, *rest):
        events = plain(profile, *rest)
        left.append(profile.kineto_results)
        return events

    monkeypatch.setattr(memory_recorder, "events_of", watched)
    lens.record_memory(lambda: torch.ones(3))
    assert left == [None]


def test_what_a_run_needed_is_freed_without_the_collector():
    net, x = small_net(), torch.randn(8, 16)
    gc.collect()
    gc.disable()
    try:
        lens.record_memory(lambda: net(x).mean().backward())
        kinds = memory_recorder._Run, memory_recorder.Roles, torch.autograd.profiler.profile
        assert not [one for one in gc.get_objects() if type(one) in kinds]
    finally:
        gc.enable()
