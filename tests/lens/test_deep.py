"""Deep graphs: complete, without recursion, and harmless when they are let go.

Each runs in a process of its own, since a failure is a crash. Since torch 2.13 a chain that Python
has walked overflows the C stack when it is freed, at about 40,000 nodes on 8 MB and 4,000 on 1 MB.
"""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from independent import alive, saved_storages

import autograd_lens as lens
from autograd_lens.graphs.deallocation import BAND
from tools.testing.sizes import sized

ROOT = Path(__file__).parents[2]

VERBS = sized(
    ["lens.graph", "lens.saved_tensors"],
    lambda verb: verb == "lens.graph",
    "both verbs read a graph in one place",
)

PREAMBLE = """
import sys, threading
import autograd_lens as lens
import torch

def leaf():
    return torch.ones(1, requires_grad=True)

def chain(n, y=None):
    y = leaf() if y is None else y
    for _ in range(n):
        y = y * 1.0
    return y

def rnn(steps):
    w, h, outs = torch.eye(2, requires_grad=True), torch.zeros(1, 2), []
    for _ in range(steps):
        h = torch.tanh(h @ w + 1)
        outs.append(h)
    return torch.stack(outs).sum(), outs

def nodes_in(dot):
    return sum(line.startswith("node") and " -> " not in line for line in dot.splitlines())

def few_frames():
    lens.record_backward(chain(3)), str(lens.graph(chain(3))), lens.graph(chain(3)).to_dot()
    depth, frame = 0, sys._getframe()
    while frame:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + 200)
"""


def in_new_process(body, *, stack_kb=8192, in_thread=False):
    """Run ``body`` with so much stack; return the exit code and what it printed."""
    code = PREAMBLE + "def main():\n" + textwrap.indent(textwrap.dedent(body), "    ")
    if in_thread:
        code += f"threading.stack_size({stack_kb << 10})\n"
        code += "t = threading.Thread(target=lambda: main() or done.append(1))\n"
        code += "done = []; t.start(); t.join(); assert done\n"
        shell = 'exec "$@"'
    else:
        code += "main()\n"
        shell = f'ulimit -s {stack_kb} && exec "$@"'
    code += "print('the end', flush=True)\n"
    command = ["bash", "-c", shell, "bash", sys.executable, "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def ends_well(body, **how):
    code, out, err = in_new_process(body, **how)
    assert (code, out.splitlines()[-1:]) == (0, ["the end"]), err[-2000:]
    return out


@pytest.mark.large("a chain of 20,000 is read and freed on a small stack")
def test_a_chain_of_100_000_is_complete_as_data_text_and_dot():
    ends_well(
        """
        y = chain(100_000)
        few_frames()
        graph = lens.graph(y)
        assert len(graph.nodes) == 100_001, len(graph.nodes)
        assert [(e.source, e.target) for e in graph.edges] == [(k, k + 1) for k in range(100_000)]
        assert graph.depth == 100_001
        text = str(graph)
        assert "graph of 100,001 nodes (1 leaf), 100,000 edges" in text
        assert "[folded: 99,802 nodes, saved " in text, text[-2000:]
        folded = graph.to_dot()
        assert nodes_in(folded) + folded.count("↓") == 200  # a leaf may stand in its user
        whole = lens.graph(y, max_nodes=None).to_dot()
        assert nodes_in(whole) + whole.count("↓") == 100_001
        assert whole.count(" -> ") + whole.count("↓") == 100_000
        del y
        """
    )


@pytest.mark.parametrize(
    "length, in_thread",
    sized(
        [(100_000, False), (20_000, True)],
        lambda case: case[1],
        "a shorter chain is read and freed on a stack as small",
    ),
)
def test_a_deep_chain_on_a_small_stack(length, in_thread):
    ends_well(
        f"""
        y = chain({length})
        few_frames()
        assert len(lens.graph(y).nodes) == {length} + 1
        del y
        """,
        stack_kb=1024,
        in_thread=in_thread,
    )


@pytest.mark.large("a deep chain is read and freed on a small stack, by the same guard")
def test_recording_a_deep_chain_on_a_small_stack():
    ends_well(
        """
        x = leaf()
        y = chain(12_000, x)
        few_frames()
        recording = lens.record_backward(y)
        assert [step.node for step in recording.steps] == list(range(12_001))
        assert x.grad.item() == 1
        del y
        """,
        stack_kb=1024,
    )


SHAPES = {
    "an RNN whose outputs go last": """
        y, outs = rnn(20_000)
        assert len(lens.graph(y).nodes) > 60_000
        del y
        outs.clear()
        """,
    "an RNN whose outputs go one by one, the last first": """
        y, outs = rnn(5_000)
        lens.graph(y)
        del y
        while outs:
            outs.pop()
        """,
    "an interior tensor that outlives the root": """
        middle = chain(9_777)
        y = chain(6_000, middle)
        lens.graph(y)
        del y
        del middle
        """,
    "many interior tensors": """
        parts = [leaf()]
        for _ in range(30):
            parts.append(chain(333, parts[-1]))
        lens.graph(parts[-1])
        del parts[1::2]
        while parts:
            parts.pop()
        """,
    "a graph walked twice, and again when it has grown": """
        y = chain(6_000)
        for _ in range(2):
            lens.graph(y)
            y = chain(3_300, y)
        lens.graph(y)
        lens.graph(y)
        del y
        """,
    "a recording that retains the graph": """
        y = chain(8_000)
        lens.record_backward(y, retain_graph=True)
        del y
        """,
    "a backward of a backward": """
        x = y = leaf()
        for _ in range(4_000):
            y = y.sin()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        del y
        assert lens.graph(g).depth > 8_000
        del g, x
        """,
    "a graph freed in a small thread": """
        box = [chain(8_000)]
        lens.graph(box[0])
        threading.stack_size(1 << 20)
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        """,
    "a wide graph of diamonds": """
        y = leaf()
        for _ in range(4_000):
            y = y * 1.0 + y.exp() * y.sin()
        lens.graph(y)
        del y
        """,
}


@pytest.mark.large("deep chains are read and freed on a small stack")
def test_graphs_of_many_shapes_on_a_small_stack():
    body = "".join(
        f"print({name!r}, flush=True)\n{textwrap.dedent(lines)}" for name, lines in SHAPES.items()
    )
    out = ends_well(body, stack_kb=1024)
    assert out.splitlines() == [*SHAPES, "the end"]


@pytest.mark.parametrize("where", VERBS)
def test_an_interrupt_does_not_leave_a_deep_graph_unguarded(where):
    """Anything may raise on the way; what Python has met by then must be safe to drop."""
    ends_well(
        f"""
        from autograd_lens import _torch
        y = chain(100_000)
        ask, asked = _torch.sequence_nrs, []

        def interrupt(nodes):
            if not asked:
                asked.append(True)
                raise KeyboardInterrupt
            return ask(nodes)

        _torch.sequence_nrs = interrupt
        try:
            {where}(y)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert asked
        del y
        """
    )


@pytest.mark.large("deep chains are read and freed on a small stack")
def test_a_freed_deep_graph_with_a_list_is_dropped_safely():
    ends_well(
        """
        y = chain(100_000, leaf()[torch.tensor([0, 0])]).sum()
        y.backward()
        assert any(entry.freed for entry in lens.saved_tensors(y).entries)
        del y
        """
    )


@pytest.mark.parametrize("where", VERBS)
@pytest.mark.parametrize(
    "length", sized([1400, 1960], lambda length: length == 1960, "the longer chain is freed, too")
)
def test_chains_that_keep_lists_on_the_smallest_stack(where, length):
    """A level of these takes more of the stack than others."""
    ends_well(
        f"""
        i = torch.arange(4)
        y = torch.ones(4, requires_grad=True)
        for _ in range({length}):
            y = y[i]
        {where}(y)
        del y
        """,
        stack_kb=512,
        in_thread=True,
    )


def test_without_the_guard_the_process_crashes():
    """If this fails, PyTorch frees deep graphs safely again: the guard can go."""
    if torch.__version__ < torch.torch_version.TorchVersion("2.13"):
        pytest.skip("the crash came with torch 2.13")
    code, out, err = in_new_process(
        """
        from autograd_lens.graphs import order
        order.lay_guards = lambda *arguments: None
        y = chain(100_000)
        order.engine_order([y.grad_fn])
        print("walked", flush=True)
        del y
        """
    )
    assert out.splitlines() == ["walked"], (out, err)
    assert code < 0, (code, err)
    assert "Segmentation fault" in err


def test_the_guard_keeps_nothing_alive():
    x = torch.ones(4, requires_grad=True)
    y = x
    for _ in range(5 * BAND):
        y = y.exp().log()
    middle = y
    for _ in range(2 * BAND):
        y = y.exp().log()
    upper, all_of_it = saved_storages([y]), saved_storages([middle])
    upper = {key: ref for key, ref in upper.items() if key not in all_of_it}
    assert (len(upper), len(all_of_it)) == (2 * BAND, 5 * BAND), "exp and log share a tensor"
    view = lens.graph(y)
    gc.disable()  # it must not need the collector
    try:
        del y
        assert alive(upper) == []
        assert len(alive(all_of_it)) == len(all_of_it)
        del middle
        assert alive(all_of_it) == []
    finally:
        gc.enable()
    assert len(view.nodes) == 14 * BAND + 1
