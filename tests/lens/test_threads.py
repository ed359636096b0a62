"""While a backward is recorded, other threads use PyTorch: both get what they get alone."""

import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import autograd_lens as lens
from autograd_lens import _torch
from autograd_lens._torch import threads
from autograd_lens.graphs.deallocation import BAND

STRESS = Path(__file__).with_name("stress.py")
ONE_STRESS = pytest.mark.large("three recorders work beside two trainers on one model")
STRESSES = pytest.mark.parametrize(
    ("kind", "runs", "recorders", "trainers"),
    [
        pytest.param("own", 5, 4, 0, id="own models", marks=ONE_STRESS),
        pytest.param("shared", 5, 1, 3, id="three trainers", marks=ONE_STRESS),
        pytest.param("shared", 5, 4, 0, id="four recorders", marks=ONE_STRESS),
        pytest.param("shared", 5, 3, 2, id="both"),
    ],
)


def numbers(kind, runs, recorders, trainers):
    return [runs, recorders] + [trainers] * (kind == "shared")


def assert_right(found, runs, recorders, trainers):
    assert found.pop("recorded") == runs * recorders
    assert (found.pop("trained", 0) > 0) == (trainers > 0)
    assert found == {}


@STRESSES
def test_recordings_beside_other_threads(kind, runs, recorders, trainers):
    asked = map(str, numbers(kind, runs, recorders, trainers))
    ran = subprocess.run(
        [sys.executable, STRESS, kind, *asked], capture_output=True, text=True, cwd=STRESS.parent
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert_right(json.loads(ran.stdout), runs, recorders, trainers)


@ONE_STRESS
def test_recordings_beside_other_threads_in_a_kernel(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="the lens alone is tested without kernels")
    from tools.notebooks import execute

    cells = [
        f"import sys; sys.path.insert(0, {str(STRESS.parent)!r}); import stress",
        'stress.main("own", 3, 4)',
        'stress.main("shared", 3, 1, 3)',
        'stress.main("shared", 3, 4, 0)',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(notebook, tmp_path)
    own, training, recording = ([o.text for o in cell.outputs] for cell in notebook.cells[1:])
    assert_right(json.loads("".join(own)), 3, 4, 0)
    assert_right(json.loads("".join(training)), 3, 1, 3)
    assert_right(json.loads("".join(recording)), 3, 4, 0)


# One other thread, at a moment that the test chooses


def elsewhere(work):
    """Run ``work`` in another thread, to its end; raise here what it raises."""
    raised = []

    def run():
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def on_main():
    return threading.current_thread() is threading.main_thread()


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def accumulator(tensor):
    return torch.autograd.graph.get_gradient_edge(tensor).node


def written(recording):
    return [(w.name, w.how, w.grad.values) for step in recording.steps for w in step.written]


def test_a_backward_in_another_thread_is_no_part_of_the_recording():
    x = leaf(1.0, 2.0)
    h, theirs = x * 2, (x * 10).sum()
    h.register_hook(lambda grad: elsewhere(theirs.backward))
    recording = lens.record_backward((h * 3).sum(), names={"x": x})
    labels = [step.label for step in recording.steps]
    assert labels == ["SumBackward0", "MulBackward0", "MulBackward0", "x"]
    assert written(recording) == [("x", "added in place", (16.0, 16.0))]


def test_a_gradient_that_another_thread_writes_at_the_same_time():
    x = leaf(1.0, 2.0)
    node, h, theirs = accumulator(x), x * 2, (x * 10).sum()

    def add(grads):
        if on_main():
            elsewhere(theirs.backward)

    # Put there after the lens's own hook, so it runs between that and the node itself.
    h.register_hook(lambda grad: node.register_prehook(add) and None)
    recording = lens.record_backward((h * 3).sum(), names={"x": x})
    assert written(recording) == [("x", "beside another thread", (16.0, 16.0))]
    assert "beside another thread: [16, 16]" in str(recording)
    assert "x.grad gets [6, 6]" in recording._repr_mimebundle_()["text/html"]


def test_a_gradient_that_another_thread_is_about_to_write():
    x = leaf(1.0, 2.0)
    node, h = accumulator(x), x * 2
    inside, over = threading.Event(), threading.Event()
    other = threading.Thread(target=(x * 10).sum().backward)

    def stop_there(grads):
        if not on_main():
            inside.set()
            over.wait()

    def begin(grad):
        node.register_prehook(stop_there)
        other.start()
        inside.wait()

    h.register_hook(begin)
    recording = lens.record_backward((h * 3).sum(), names={"x": x})
    over.set()
    other.join()
    assert written(recording) == [("x", "beside another thread", (6.0, 6.0))]
    assert x.grad.tolist() == [16.0, 16.0]


def test_a_second_recording_in_another_thread():
    x = leaf(1.0, 2.0)
    h, second = x * 2, []

    def record(grad):
        elsewhere(lambda: second.append(lens.record_backward((x * 10).sum(), names={"x": x})))

    h.register_hook(record)
    recording = lens.record_backward((h * 3).sum(), names={"x": x})
    assert [step.label for step in recording.steps].count("x") == 1
    assert [step.label for step in second[0].steps] == ["SumBackward0", "MulBackward0", "x"]


def test_the_same_graph_in_another_thread_is_refused():
    x = leaf(1.0, 2.0)
    h = x.exp()
    loss = h.sum()
    once = h.register_hook(lambda grad: once.remove() or elsewhere(again))

    def again():
        loss.backward(retain_graph=True)

    with pytest.raises(RuntimeError, match="another thread ran a backward through the same graph"):
        lens.record_backward(loss, retain_graph=True)
    assert torch.equal(x.grad, 2 * x.detach().exp())
    assert len(lens.record_backward(loss).steps) == 3


def test_backwards_inside_of_backwards_count_in_whichever_thread_they_run():
    # From depth 60 on the engine runs an inner backward in a thread of its own.
    w = leaf(1.0)
    threads = set()
    accumulator_of_w = accumulator(w)
    accumulator_of_w.register_hook(lambda *_: threads.add(threading.get_ident()))

    def nest(depth, a):
        if depth == 0:
            return a * w
        return checkpoint(lambda b: nest(depth - 1, b) * w, a, use_reentrant=True)

    depth = 70
    recording = lens.record_backward(nest(depth, w * 1).sum(), names={"w": w})
    assert [step.label for step in recording.steps].count("w") == depth + 1
    assert len(threads) > 1


def test_a_recording_inside_of_a_recording():
    x = leaf(1.0, 2.0)
    h, other, inner = x * 2, (x * 10).sum(), []
    h.register_hook(lambda grad: inner.append(lens.record_backward(other)))
    outer = lens.record_backward((h * 3).sum(), names={"x": x})
    assert len(inner[0].steps) == 3
    assert [step.label for step in outer.steps].count("x") == 2


@pytest.mark.skipif(not _torch.CAN_SIGN, reason="torch 2.11 has no signs")
def test_a_sign_is_taken_away():
    x = leaf(1.0)
    seen = []

    def look(grad):
        seen.append(threads._signs())
        if len(seen) == 2:
            raise KeyError("the reader's own")

    for _ in range(2):
        h = x * 2
        h.register_hook(look)
        try:
            lens.record_backward(h.sum())
        except KeyError:
            pass
        assert not torch._C._is_key_in_tls(threads._SIGNS)
    assert [len(signs) for signs in seen] == [1, 1]


class Thing:
    """Something in the metadata of a node; says when the node is freed."""

    def __init__(self, freed=lambda: None):
        self.freed = freed

    def __del__(self):
        self.freed()


def deep(thing):
    """A graph that is freed in bands, with a thing in the second one."""
    y = leaf(1.0)
    for number in range(3 * BAND):
        y = y.sin()
        if number == BAND:
            y.grad_fn.metadata["thing"] = thing
    lens.graph(y)
    return [y]


def test_a_deep_graph_is_freed_while_another_thread_frees_one():
    freeing, over = threading.Event(), threading.Event()
    first = deep(Thing(lambda: freeing.set() or over.wait()))
    other = threading.Thread(target=first.clear)
    other.start()
    freeing.wait()
    thing = Thing()
    alive = weakref.ref(thing)
    second = deep(thing)
    del thing
    assert alive() is not None
    second.clear()
    left = alive()
    over.set()
    other.join()
    assert left is None
