"""Every verb on every model of the corpus: it works, it shows itself, and it says what is true."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("corpus_checks")

import corpus_checks as checks  # noqa: E402
import torch  # noqa: E402
from corpus import CORPUS, compiled  # noqa: E402

import autograd_lens as lens  # noqa: E402

COMPILED = pytest.param(
    compiled,
    id="compiled",
    marks=pytest.mark.large("a compiled layer is one of the ledger's cases"),
)
MODELS = [*(pytest.param(make, id=name) for name, make in CORPUS.items()), COMPILED]
every_model = pytest.mark.parametrize("make", MODELS)


pytestmark = pytest.mark.usefixtures("one_thread")


@every_model
def test_the_graph_is_that_of_a_walk(make, tmp_path):
    view = checks.graph_is_the_walk(make)
    checks.shows_itself(view, *(leaf.label for leaf in view.leaves))
    checks.is_written_as_a_page(view, tmp_path / "graph.html")


@every_model
def test_saved_bytes_are_those_of_hooks(make, tmp_path):
    view = checks.saved_bytes_are_those_of_hooks(make)
    checks.shows_itself(view, f"{view.total_bytes:,} B", *(entry.field for entry in view.entries))
    checks.is_written_as_a_page(view, tmp_path / "ledger.html")


@every_model
def test_activations_are_those_of_the_allocator(make):
    checks.activations_are_those_of_the_allocator(make)


@every_model
def test_gradients_are_those_of_a_plain_backward(make):
    view = checks.backward_is_the_plain_one(make)
    ends = view.steps[0], view.steps[-1]  # a long film prints its two ends
    checks.shows_itself(view, *(f"step {step.number}  {step.label}" for step in ends))


@pytest.mark.parametrize(
    "make",
    [
        *(
            pytest.param(make, id=name)
            for name, make in CORPUS.items()
            if name != "checkpointed"  # its hooks pack what it saves; no node shows the bytes
        ),
        COMPILED,
    ],
)
def test_saved_bytes_go_as_the_nodes_let_go(make):
    checks.bytes_go_as_the_nodes_let_go(make)


class KeepsOnCtx(torch.autograd.Function):
    """Its ``ctx`` keeps 400 bytes, which no backward lets go."""

    @staticmethod
    def forward(ctx, x):
        ctx.made = torch.ones(100)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_what_ctx_keeps_is_held_after_its_step_too():
    x = torch.randn(3, requires_grad=True)
    view = lens.record_backward(KeepsOnCtx.apply(x.exp()).sum(), names={"x": x})
    steps = {step.label: step.saved_bytes for step in view.steps}
    assert view.saved_bytes == 400 + 12
    assert steps == {
        "SumBackward0": 412, "KeepsOnCtxBackward": 412, "ExpBackward0": 400, "x": 400
    }  # fmt: skip


@every_model
def test_memory_is_that_of_the_allocator(make, tmp_path):
    view = checks.memory_is_that_of_the_allocator(make)
    checks.shows_itself(view, f"{view.peak_bytes:,}", f"{sum(view.end.values()):,}")
    checks.is_written_as_a_page(view, tmp_path / "memory.html")


@pytest.mark.large("every check runs on models of one process, whose nodes are the same")
def test_two_processes_that_average_their_gradients():
    script = Path(__file__).with_name("corpus_ddp.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == ["process 0: 9 nodes", "process 1: 9 nodes"]
