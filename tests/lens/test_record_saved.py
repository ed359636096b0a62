"""The recorder around a forward, for nodes that show nothing of what they saved."""

import re
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from allocations import judge
from ledger_cases import CASES, EVERY
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import autograd_lens as lens

MASK, WHERE = torch.tensor([True, False, True, True]), torch.tensor([0, 2])

# In-place operations on a view ``v`` of four numbers, with a further operand ``o`` of four.
IN_PLACE = {
    "mul_": lambda v, o: v.mul_(o),
    "mul_ twice": lambda v, o: v.mul_(o).mul_(o),
    "mul_ with itself": lambda v, o: v.mul_(v),
    "div_": lambda v, o: v.div_(o),
    "add_": lambda v, o: v.add_(o),
    "sub_": lambda v, o: v.sub_(o, alpha=2),
    "pow_ of a number": lambda v, o: v.pow_(2),
    "pow_": lambda v, o: v.pow_(o),
    "atan2_": lambda v, o: v.atan2_(o),
    "hypot_": lambda v, o: v.hypot_(o),
    "fmod_": lambda v, o: v.fmod_(o),
    "xlogy_": lambda v, o: v.xlogy_(o),
    "exp_": lambda v, o: v.exp_(),
    "tanh_": lambda v, o: v.tanh_(),
    "sin_": lambda v, o: v.sin_(),
    "log_": lambda v, o: v.log_(),
    "rsqrt_": lambda v, o: v.rsqrt_(),
    "abs_": lambda v, o: v.abs_(),
    "lgamma_": lambda v, o: v.lgamma_(),
    "clamp_": lambda v, o: v.clamp_(0.6, 1.0),
    "addcmul_": lambda v, o: v.addcmul_(o, o.exp()),
    "addcdiv_": lambda v, o: v.addcdiv_(o, o.exp()),
    "lerp_": lambda v, o: v.lerp_(o, o.sigmoid()),
    "cumsum_": lambda v, o: v.cumsum_(0),
    "cumprod_": lambda v, o: v.cumprod_(0),
    "masked_fill_": lambda v, o: v.masked_fill_(MASK, o.sum()),
    "index_add_": lambda v, o: v.index_add_(0, WHERE, o[:2]),
    "index_copy_": lambda v, o: v.index_copy_(0, WHERE, o[:2]),
    "index_fill_": lambda v, o: v.index_fill_(0, WHERE, 2.0),
    "scatter_": lambda v, o: v.scatter_(0, WHERE, o[:2]),
    "scatter_add_": lambda v, o: v.scatter_add_(0, WHERE, o[:2]),
    "assigned": lambda v, o: v.__setitem__(slice(1, 3), o[:2] * 2),
    "assigned at indices": lambda v, o: v.__setitem__(WHERE, o[:2]),
    "assigned at a mask": lambda v, o: v.__setitem__(MASK, o[MASK]),
    "fill_": lambda v, o: v.fill_(o.sum()),
    "zero_": lambda v, o: v.zero_(),
    "relu_": lambda v, o: F.relu_(v),
    "leaky_relu_": lambda v, o: F.leaky_relu(v, 0.1, inplace=True),
    "silu_": lambda v, o: F.silu(v, inplace=True),
    "dropout_": lambda v, o: F.dropout(v, 0.5, inplace=True),
    "addmm_": lambda v, o: v.view(2, 2).addmm_(o.view(2, 2), o.view(2, 2)),
    "addr_": lambda v, o: v.view(2, 2).addr_(o[:2], o[2:]),
    "renorm_": lambda v, o: v.view(2, 2).renorm_(2, 0, 1.0),
    "mul_ by a number": lambda v, o: v.mul_(3.0),
    "mul_ by complex": lambda v, o: torch.view_as_complex(v[1:3].view(1, 2)).mul_(1j),
}
# Functions of two lists of three tensors of three numbers.
FOREACH = {
    "mul": lambda a, b: torch._foreach_mul(a, b),
    "add": lambda a, b: torch._foreach_add(a, b),
    "maximum": lambda a, b: torch._foreach_maximum(a, b),
    "exp": lambda a, b: torch._foreach_exp(a),
    "log": lambda a, b: torch._foreach_log(a),
    "tanh": lambda a, b: torch._foreach_tanh(a),
    "lerp": lambda a, b: torch._foreach_lerp(a, b, 0.3),
    "addcmul": lambda a, b: torch._foreach_addcmul(a, b, b),
    "two, of which one result is used": lambda a, b: torch._foreach_exp(torch._foreach_mul(a, b))[
        1
    ],
}


def leaf(*shape):
    return (torch.rand(*shape) + 0.5).requires_grad_()


def in_place(operation):
    def case(recorder):
        x, o = leaf(6), leaf(4)
        yield {"x": x, "o": o}, [MASK, WHERE]
        with recorder:
            y = x * 2.0
            operation(y[1:5], o)
        yield y.sum()

    return case


def foreach(operation):
    def case(recorder):
        a, b = [leaf(3) for _ in range(3)], [leaf(3) for _ in range(3)]
        yield {str(k): one for k, one in enumerate(a + b)}, ()
        with recorder:
            y = operation([t.exp() for t in a], [t.sin() for t in b])
        yield y

    return case


RECORDED = {
    **{f"view: {name}": in_place(operation) for name, operation in IN_PLACE.items()},
    **{f"foreach: {name}": foreach(operation) for name, operation in FOREACH.items()},
}


def under_recorder(case):
    """The case with its forward under a recorder; and the recorder."""
    recorder = lens.record_saved()
    return (lambda: case(recorder)), recorder


def look(recorder):
    return lambda nodes, names, inputs: lens.saved_tensors(
        nodes, names, inputs=inputs, recorder=recorder
    )


def activations(view):
    sizes = zip(view.storages, view.roles, strict=True)
    return sorted(size for size, role in sizes if role == "activation" and size)


@pytest.mark.parametrize("name", RECORDED)
def test_what_opaque_nodes_keep_is_counted_to_the_byte(name):
    case, recorder = under_recorder(RECORDED[name])
    judged = judge(case, look(recorder))
    view = judged.result
    assert view.opaque and all(one.recorded for one in view.opaque)
    missing = list(judged.sizes)
    for size in activations(view):
        missing.remove(size)
    numbers = {"view: mul_ by a number": [8], "view: mul_ by complex": [16]}
    assert missing == numbers.get(name, []), "only Python numbers never reach a hook"
    assert sum(missing) <= view.short_by == 16 * name.startswith("view") * len(view.opaque)


def test_without_a_recorder_those_bytes_are_missing():
    """And the text says so."""
    for name in ("view: mul_", "foreach: exp"):
        case, recorder = under_recorder(RECORDED[name])
        judged = judge(case, look(None))
        view = judged.result
        assert view.activation_bytes < judged.bytes and view.short_by is None
        assert str(view).endswith(
            "total: short by what those saved; lens.record_saved() can count that"
        )
        assert not any(one.recorded for one in view.opaque)
        assert [one.at_most for one in view.opaque] == [None] * len(view.opaque)


def test_a_node_of_which_nothing_is_known_is_not_called_empty():
    """TorchScript's node keeps tensors too, and has no fields."""

    @torch.jit.script
    def scripted(x, w):
        a = torch.tanh(x * w)
        return a * torch.sigmoid(a + x)

    x, w = leaf(100), leaf(100)
    for _ in range(4):  # until it runs its own graph
        with lens.record_saved() as recorder:
            y = scripted(x.exp(), w).sum()
    views = [lens.saved_tensors(y), lens.saved_tensors(y, recorder=recorder)]
    for view in views:
        assert ["DifferentiableGraph" in one.name for one in view.opaque] == [True]
        assert str(view).endswith("total: short by what those saved"), "no recorder helps"
        assert view.short_by is None


def test_it_is_said_what_may_be_missing():
    case, recorder = under_recorder(RECORDED["view: mul_"])
    text = str(judge(case, look(recorder)).result)
    assert "opaque: CopySlices (node 1) as recorded" in text
    assert text.endswith("total: short by at most 16 B, if they saved Python numbers")
    case, recorder = under_recorder(RECORDED["foreach: exp"])
    view = judge(case, look(recorder)).result
    assert "total:" not in str(view) and view.short_by == 0


def inside(case, recorder):
    """A case of the ledger with its forward under a recorder."""

    def run():
        running = case()
        yield next(running)
        with recorder:
            outputs = next(running)
        yield outputs

    return run


@pytest.mark.parametrize("name", [name for name in EVERY if name != "func_grad"])
def test_under_it_the_ledger_says_the_same(name):
    def rows(view):
        return [
            (e.node, e.field, re.sub(r"j\d+", "j", str(e.shape)), e.dtype, e.bytes, e.storage_bytes,
             e.role, e.saved_version, e.version, e.packed, e.kind)
            for e in view.entries
            if not e.field.startswith("recorded")
        ]  # fmt: skip

    torch.manual_seed(0)
    plain = judge(EVERY[name], look(None)).result
    torch.manual_seed(0)
    recorder = lens.record_saved()
    recorded = judge(inside(EVERY[name], recorder), look(recorder)).result
    assert rows(recorded) == rows(plain)
    if not plain.opaque:
        assert recorded.total_bytes == plain.total_bytes


def test_torch_func_grad_refuses_it():
    with pytest.raises(RuntimeError, match="saved tensor hooks"):
        judge(inside(CASES["func_grad"], lens.record_saved()), look(None))


# What it must not do


def in_place_model(x):
    y = x * 2
    y[1:3].tanh_()
    return (y * y.exp()).sum()


def test_gradients_are_what_they_were():
    x = leaf(4)
    (plain,) = torch.autograd.grad(in_place_model(x), x)
    with lens.record_saved():
        y = in_place_model(x)
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.equal(slope, plain)
    (curve,) = torch.autograd.grad(slope.sum(), x)
    (slope,) = torch.autograd.grad(in_place_model(x), x, create_graph=True)
    assert torch.equal(curve, torch.autograd.grad(slope.sum(), x)[0])


def test_a_changed_tensor_still_raises():
    """PyTorch compares no version where there is a hook, so this hook does."""
    x = leaf(4)
    for overwrite in (lambda y: y.add_(1), lambda y: y[:2].zero_()):
        messages = []
        for recorder in (lens.record_saved(), saved_tensors_hooks(lambda t: t, lambda t: t), None):
            with recorder or torch.enable_grad():
                y = x.exp()
                z = y.sin().sum()
                overwrite(y)
            try:
                z.backward()
                messages.append("none")
            except RuntimeError as error:
                messages.append(str(error).partition("operation: ")[2])
        assert messages[1] == "none", "another hook loses the check"
        assert messages[0].partition("version 1; expected version 0 instead")[1]
        assert messages[2].partition("version 1; expected version 0 instead")[1]


def test_it_keeps_nothing_alive():
    """Also not what an operation saved of its own result, which could keep its node alive."""
    x = leaf(4)
    recorder = lens.record_saved()
    with recorder:
        y = in_place_model(x)
    assert len(list(recorder.alive())) == 4
    del y
    assert list(recorder.alive()) == []
    with lens.record_saved() as recorder:
        y = in_place_model(x)
    y.backward()
    assert list(recorder.alive()) == [], "a backward lets go of them"


OTHERS = {
    "a result, before": (lambda x, o: x.sigmoid(), None),
    "an operand, before": (lambda x, o: x.sin(), None),
    "a result, after": (None, lambda x, o: x.sigmoid()),
    "an operand, after": (None, lambda x, o: x.sin()),
    "an operand that is a view, after": (None, lambda x, o: x[:2].sin()),
    "another write, before": (lambda x, o: (x * 1.5)[:2].mul_(o), None),
    "another write, after": (None, lambda x, o: (x * 1.5)[:2].tanh_()),
}


@pytest.mark.parametrize("write", ["mul_", "add_", "tanh_", "sin_", "assigned"])
@pytest.mark.parametrize("other", OTHERS)
def test_what_another_graph_keeps_is_not_counted(other, write):
    before, after = OTHERS[other]

    def recorded(alone):
        torch.manual_seed(0)
        x, o = leaf(6), leaf(4)
        with lens.record_saved() as recorder:
            y = x * 2.0
            view = y[1:5]
            kept = [before(x, o[:2]) if before and not alone else None]
            IN_PLACE[write](view, o)
            kept += [after(x, o[:2]) if after and not alone else None]
        view = lens.saved_tensors(y.sum(), {"x": x, "o": o}, recorder=recorder)
        return activations(view), kept

    assert recorded(alone=False)[0] == recorded(alone=True)[0]


class Squares(torch.autograd.Function):
    """Saves what it made and a copy of its operand."""

    @staticmethod
    def forward(ctx, v, *others):
        ctx.save_for_backward(v.exp(), v.clone())
        return v.exp().sum()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], *[None] * (len(ctx.needs_input_grad) - 1)


def cut(v):
    return v.exp().sum()


# Each makes `y`, whose graph is asked for, and something else, which is kept.
NEIGHBOURS = {
    "a Function, of a view": lambda y, a, o, other: (
        y[:2].mul_(o),
        Squares.apply(y[2:], o) if other else None,
    ),
    "a Function, of the view that was written": lambda y, a, o, other: (
        (v := y[:2]).mul_(o),
        Squares.apply(v) if other else None,
    ),
    "a reentrant checkpoint": lambda y, a, o, other: (
        (v := y[:2]).mul_(o),
        checkpoint(cut, v, use_reentrant=True) if other else None,
    ),
    "a checkpoint": lambda y, a, o, other: (
        (v := y[:2]).mul_(o),
        checkpoint(cut, v, use_reentrant=False) if other else None,
    ),
    "the same line, on another tensor": lambda y, a, o, other: [
        F.dropout(t, 0.5, inplace=True) for t in ([a, y[:2]] if other else [y[:2]])
    ],
    "the same line, with a factor": lambda y, a, o, other: [
        t.mul_(f)
        for t, f in ([(a, o.detach()[0]), (y[:2], o.detach())] if other else [(y[:2], o.detach())])
    ],
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_nor_is_a_neighbour_in_time(name):
    def recorded(other):
        torch.manual_seed(0)
        x, o = leaf(4), leaf(2)
        with lens.record_saved() as recorder:
            y, a = x * 2.0, x * 3.0
            kept = NEIGHBOURS[name](y, a, o, other)
        view = lens.saved_tensors(y.sum(), {"x": x, "o": o}, inputs=o.detach(), recorder=recorder)
        rows = [e.shape for e in view.entries if e.field.startswith("recorded")]
        return view.activation_bytes, rows, kept

    assert recorded(True)[:2] == recorded(False)[:2]


def test_nor_are_the_arguments_of_a_checkpoint_after_a_list():
    x, h = [leaf(3), leaf(3)], leaf(5).exp()
    with lens.record_saved() as recorder:
        total = torch._foreach_add(x, 1.0)
        kept = checkpoint(cut, h, use_reentrant=False)
    view = lens.saved_tensors(total, recorder=recorder)
    assert (view.activation_bytes, view.short_by) == (0, 0) and kept.requires_grad


def test_a_list_of_views_of_several_tensors_is_not_called_recorded():
    a, b = leaf(4), leaf(3)
    with lens.record_saved() as recorder:
        ya, yb = a * 2, b * 2
        torch._foreach_tanh_([ya[:2], yb[:2]])
    view = lens.saved_tensors([ya, yb], recorder=recorder)
    assert [one.recorded for one in view.opaque] == [False, False] and view.short_by is None


def test_hooks_run_on_a_thread_without_python():
    @torch.jit.script
    def child(x, o):
        return (x * o).exp()

    @torch.jit.script
    def forked(x, o):
        future = torch.jit.fork(child, x, o)
        return (x * x).sum() + torch.jit.wait(future).sum()

    x, o = leaf(3), leaf(3)
    with lens.record_saved():
        y = forked(x, o)
    y.backward()
    torch.testing.assert_close(x.grad, 2 * x + o * (x * o).exp())


@pytest.mark.parametrize("first", [lens.record_saved, torch.autograd.graph.save_on_cpu])
def test_hooks_that_are_left_in_another_order(first):
    x, o = leaf(6), leaf(4)
    hooks, recorder = first(), lens.record_saved()
    hooks.__enter__()
    recorder.__enter__()
    hooks.__exit__(None, None, None)  # takes away those of the recorder
    y = x * 2
    y[1:5].mul_(o)
    recorder.__exit__(None, None, None)
    assert lens.saved_tensors(y, recorder=recorder).short_by is None
    assert saved_tensors_hooks.__enter__.__module__ == "torch.autograd.graph"
    with pytest.raises(RuntimeError, match="was not entered"):
        recorder.__exit__(None, None, None)


def test_nor_is_what_runs_before_a_list():
    x = [leaf(3), leaf(3)]
    with lens.record_saved() as recorder:
        y = [t * 1.5 for t in x]
        kept = y[0].sin()
        result = torch._foreach_exp(y)
    view = lens.saved_tensors(result, recorder=recorder)
    assert len([e for e in view.entries if e.field.startswith("recorded")]) == 2 and kept.numel()


def test_a_forward_that_it_did_not_see_is_not_called_recorded():
    x = leaf(4)
    before = in_place_model(x)
    with lens.record_saved() as recorder:
        within = in_place_model(x)
    after = in_place_model(x)
    seen = [
        lens.saved_tensors(y, recorder=recorder).opaque[0].recorded for y in (before, within, after)
    ]
    assert seen == [False, True, False]


INSIDE = {
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "another recorder": lens.record_saved,
    "hooks": lambda: saved_tensors_hooks(lambda t: t.detach(), lambda t: t),
}


@pytest.mark.parametrize("name", INSIDE)
def test_hooks_that_are_entered_inside_come_first_and_it_is_said(name):
    x = leaf(4)
    with lens.record_saved() as recorder:
        before, within, after = (x * 2 for _ in range(3))
        before[1:3].sin_()
        with INSIDE[name]():
            within[1:3].sin_()
        after[1:3].sin_()
    views = [lens.saved_tensors(y, recorder=recorder) for y in (before, within, after)]
    assert [view.short_by for view in views] == [16, None, 16]
    assert saved_tensors_hooks.__enter__.__module__ == "torch.autograd.graph", "left as it was"


def test_a_checkpoint_inside_is_not_called_recorded():
    def write(x):
        y = x * 2
        y[1:3].sin_()
        return y

    with lens.record_saved() as recorder:
        y = checkpoint(write, leaf(4).exp(), use_reentrant=False)
    view = lens.saved_tensors(y, recorder=recorder)
    assert view.opaque and view.short_by is None


class Writes(torch.autograd.Function):
    """Writes into its first argument and saves two tensors of its own."""

    @staticmethod
    def forward(ctx, v, o):
        ctx.mark_dirty(v)
        ctx.save_for_backward(v.clone(), o * 1)
        return v.mul_(o)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


@pytest.mark.skipif(not hasattr(torch.autograd.Function.apply, "__func__"), reason="2.15: in C++")
def test_a_function_that_writes_into_a_view():
    def case(recorder):
        x, o = leaf(6), leaf(4)
        yield {"x": x, "o": o}, ()
        with recorder:
            y = x * 2.0
            Writes.apply(y[1:5], o)
        yield y.sum()

    case, recorder = under_recorder(case)
    judged = judge(case, look(recorder))
    assert activations(judged.result) == judged.sizes == [8, 16, 16]


def test_what_is_no_result_is_saved_as_it_is():
    """A new ``.data`` of a leaf is seen, and an attribute of a mask is there."""
    w, x = leaf(3), torch.ones(3, requires_grad=True)
    with lens.record_saved():
        product = (w * x).sum()
    w.data = torch.full((3,), 9.0)
    product.backward()
    assert x.grad.tolist() == [9, 9, 9]

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, mask):
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, g):
            (mask,) = ctx.saved_tensors
            return g * mask * mask.scale, None

    mask = torch.ones(3)
    mask.scale = 7
    x.grad = None
    with lens.record_saved():
        product = Scaled.apply(x, mask).sum()
    product.backward()
    assert x.grad.tolist() == [7, 7, 7]


def test_it_forgets_what_is_gone():
    recorder, x = lens.record_saved(), leaf(4)
    with recorder:
        for _ in range(20):
            in_place_model(x).backward()
        assert list(recorder.alive()) == [] and not recorder._recorded


def test_leaving_what_was_not_entered():
    with pytest.raises(RuntimeError, match="was not entered"):
        lens.record_saved().__exit__(None, None, None)


@pytest.mark.large("45 writes chosen by hand are recorded on views")
def test_every_operation_of_the_op_database_on_a_view():
    """In place on a view, every op that can: what is counted is what the events say."""
    from torch.testing._internal.common_methods_invocations import op_db

    compared, wrong = 0, []
    for op in op_db:
        write = op.inplace_variant
        if write is None or not op.supports_autograd or torch.float64 not in op.dtypes:
            continue
        try:
            samples = list(op.sample_inputs("cpu", torch.float64, requires_grad=True))[:4]
        except Exception:  # some need what is not installed
            continue
        for sample in samples:
            if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
                continue
            case, recorder = under_recorder(_written(write, sample))
            try:
                judged = judge(case, look(recorder))
            except (RuntimeError, ValueError):  # in place, it refuses these arguments
                continue
            missing, extra = Counter(judged.sizes), Counter(activations(judged.result))
            missing, extra = missing - extra, extra - missing
            compared += 1
            if extra or missing.total() > 1 or set(missing) - {8}:
                wrong.append((op.name, dict(missing), dict(extra)))
    assert not wrong
    assert compared > 250


def _written(write, sample):
    def case(recorder):
        def anew(value):
            if not isinstance(value, torch.Tensor):
                return value
            return value.detach().clone().requires_grad_(value.requires_grad)

        values, shape = anew(sample.input).detach(), sample.input.shape
        args, kwargs = torch.utils._pytree.tree_map(anew, (sample.args, sample.kwargs))
        base = torch.zeros(values.numel() + 5, dtype=values.dtype, requires_grad=True)
        given = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if torch.is_tensor(t)]
        leaves = {str(k): t for k, t in enumerate([base, *given])}
        yield leaves, [t for t in given if not t.requires_grad]
        with recorder:
            y = base * 2.0
            view = y[2 : 2 + values.numel()].view(shape)
            with torch.no_grad():
                view.copy_(values)
            write(view, *args, **kwargs)
        yield y.sum()

    return case


def test_one_recorder_for_each_forward():
    recorder = lens.record_saved()
    with recorder:
        pass
    with pytest.raises(RuntimeError, match="call lens.record_saved.. again"), recorder:
        pass


@pytest.mark.parametrize("recorder", [True, lens.record_saved, saved_tensors_hooks])
def test_anything_else_in_its_place_is_refused(recorder):
    with pytest.raises(TypeError, match="with lens.record_saved"):
        lens.saved_tensors(leaf(2).exp(), recorder=recorder)
