"""Memory of a GPU: sizes from the caching allocator's history, and a step where there is one."""

import pytest
import torch

import autograd_lens as lens
from autograd_lens import _torch
from autograd_lens.memory.blocks import account
from autograd_lens.memory.cuda import requested, with_requested_sizes
from autograd_lens.memory.events import Change, Mark, PhaseBoundary
from autograd_lens.memory.roles import SAVED, Claim

# A snapshot's trace as torch.cuda.memory._snapshot()["device_traces"][0] has it: 100 and 40 bytes
# asked for, of blocks of 512; a segment that the allocator gets and returns is no tensor's memory.
TRACE = [
    {"action": "alloc", "addr": 7, "size": 8, "stream": 0},  # before the profiler began
    {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0},
    {"action": "alloc", "addr": 4096, "size": 100, "stream": 0},
    {"action": "alloc", "addr": 4608, "size": 40, "stream": 0},
    {"action": "free_requested", "addr": 4096, "size": 100, "stream": 0},
    {"action": "free_completed", "addr": 4096, "size": 100, "stream": 0},
    {"action": "alloc", "addr": 4096, "size": 300, "stream": 0},
    {"action": "free_requested", "addr": 4096, "size": 300, "stream": 0},
    {"action": "free_completed", "addr": 4096, "size": 300, "stream": 0},
    {"action": "snapshot", "addr": 0, "size": 0, "stream": 0},
]
STREAM = [
    Change(4096, 512, "aten::mm"),
    Change(4608, 512, "aten::exp"),
    Mark(0),
    PhaseBoundary("backward", True),
    Change(4096, -512, "MmBackward0"),
    Change(4096, 512, "aten::mul"),
    PhaseBoundary("backward", False),
    Change(4096, -512, ""),
]
EXACT = [100, 40, -100, 300, -300]


def changes(stream):
    return [event.bytes for event in stream if isinstance(event, Change)]


def test_a_trace_is_read_as_what_was_asked_for():
    assert [size for _, size in requested(TRACE)] == [8, *EXACT]


def test_events_get_the_sizes_that_were_asked_for():
    exact = with_requested_sizes(STREAM, TRACE)
    assert changes(exact) == EXACT and changes(STREAM) != EXACT
    assert [type(event) for event in exact] == [type(event) for event in STREAM]
    assert [e.op for e in exact if isinstance(e, Change)][:2] == ["aten::mm", "aten::exp"]


def test_a_history_that_does_not_fit_is_no_reason_to_guess():
    for trace in (TRACE[:3], [], [dict(entry, addr=1) for entry in TRACE]):
        with pytest.raises(RuntimeError, match="history does not know"):
            with_requested_sizes(STREAM, trace)


def test_allocations_of_another_thread_at_the_same_addresses_are_refused():
    theirs = [dict(TRACE[2], size=60), dict(TRACE[4], size=60)]
    with pytest.raises(RuntimeError, match="another thread allocated CUDA memory"):
        with_requested_sizes(STREAM, [TRACE[0], *theirs, *TRACE[1:]])
    elsewhere = [dict(entry, addr=9999) for entry in theirs]
    assert changes(with_requested_sizes(STREAM, [*elsewhere, *TRACE])) == EXACT


def test_from_a_trace_to_roles():
    claims = {4096: Claim(*SAVED, 100, "MmBackward0.self", (25,), torch.float32)}
    found = account(with_requested_sizes(STREAM, TRACE), {0: claims}, {})
    assert [(b.role, b.bytes, b.born, b.died) for b in found.blocks] == [
        ("activation", 100, 0, 2),
        ("kept", 40, 1, None),
        ("temporary", 300, 3, 4),
    ]
    assert [found.phases[phase] for _, phase, _, _ in found.events] == [
        "forward", "forward", "backward", "backward", "after",
    ]  # fmt: skip


def test_the_history_is_begun_and_ended_as_it_should_be(monkeypatch):
    calls = []
    monkeypatch.setattr(
        torch.cuda.memory, "_record_memory_history", lambda *a, **k: calls.append((a, k))
    )
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"device_traces": [[], TRACE]})
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: False, raising=False)
    _torch.start_cuda_history()
    assert calls == [(("all",), {"context": None, "clear_history": True})]
    assert _torch.stop_cuda_history(1) is TRACE
    assert calls[-1] == ((None,), {})
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: True, raising=False)
    with pytest.raises(RuntimeError, match="being recorded already"):
        _torch.start_cuda_history()
    assert len(calls) == 2, "what the reader records is left alone"


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is here")
def test_cuda_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match="asks for CUDA, and this PyTorch finds none"):
        lens.record_memory(lambda: None, device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_step_on_a_gpu_is_exact():
    model = torch.nn.Sequential(torch.nn.Linear(33, 65), torch.nn.Tanh(), torch.nn.Linear(65, 3))
    model.cuda()
    x = torch.randn(7, 33, device="cuda")
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):
        recording = lens.record_memory(step)
        assert recording.device == "cuda:0"
        state = [v for s in optimizer.state.values() for v in s.values() if v.is_cuda]
        assert recording.end["optimizer"] == sum(t.untyped_storage().nbytes() for t in state)
        grads = [p.grad for p in model.parameters()]
        assert recording.end["gradient"] == sum(t.untyped_storage().nbytes() for t in grads)
        assert recording.end["activation"] == 0 and recording.end["kept"] == 4
        assert {"forward", "backward", "step"} <= {phase.name for phase in recording.phases}
        assert recording.peak.op.startswith(("aten::", "Optimizer"))
