"""The history of CUDA memory.

``torch.cuda.memory._record_memory_history`` and ``_snapshot`` give the number of bytes that were
requested from the caching allocator. The profiler gives the rounded size of the block.
"""

from __future__ import annotations

from typing import Any

import torch


def start_cuda_history() -> None:
    """Have the caching allocator record its events, without stack traces.

    Raises ``RuntimeError`` when a recording runs already: a second start would discard it.
    """
    recording = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if recording is not None and recording():
        raise RuntimeError("the history of CUDA memory is being recorded already")
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)


def stop_cuda_history(device: int) -> list[dict[str, Any]]:
    """Stop recording, and return the events of one device, in order."""
    try:
        return torch.cuda.memory._snapshot()["device_traces"][device]
    finally:
        torch.cuda.memory._record_memory_history(None)
