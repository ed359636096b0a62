"""The history of CUDA memory.

``torch.cuda.memory._record_memory_history`` and ``_snapshot`` tell what was asked of the caching
allocator, to the byte; the profiler tells the rounded size of the block that it gave.
"""

from __future__ import annotations

from typing import Any

import torch


def start_cuda_history() -> None:
    """Have the caching allocator write down what it is asked for, without stack traces.

    Raises ``RuntimeError`` when it does so already: a second start would throw that away.
    """
    recording = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if recording is not None and recording():
        raise RuntimeError("the history of CUDA memory is being recorded already")
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)


def stop_cuda_history(device: int) -> list[dict[str, Any]]:
    """Stop that, and return what was written down for a device, in order."""
    try:
        return torch.cuda.memory._snapshot()["device_traces"][device]
    finally:
        torch.cuda.memory._record_memory_history(None)
