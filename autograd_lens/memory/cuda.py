"""Exact sizes of CUDA memory: what was asked for, from the history of the caching allocator.

The profiler tells of the same allocations in the same order, with the operation that asked, but
with the size of the block that was given: rounded up to 512 bytes, or more. Here the two are put
together. What is counted is what tensors occupy; what the allocator keeps beyond that is not.

Rests on ``c10/cuda/CUDACachingAllocator.cpp`` (``record_trace`` and ``reportMemoryUsageToProfiler``
stand in the same two functions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .events import Border, Change, Mark


def requested(trace: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield ``(address, bytes)`` of a device's trace, bytes negative for a free.

    A free counts when it is asked for: the tensor is gone then, even if a stream still reads it.
    """
    for entry in trace:
        if entry["action"] == "alloc":
            yield entry["addr"], entry["size"]
        elif entry["action"] == "free_requested":
            yield entry["addr"], -entry["size"]


def with_requested_sizes(
    stream: Iterable[Change | Mark | Border], trace: Iterable[Mapping[str, Any]]
) -> list[Change | Mark | Border]:
    """The events of the profiler with the sizes of the allocator's history.

    Raises:
        RuntimeError: an event of the profiler is not in the history.
    """
    known = requested(trace)
    exact: list[Change | Mark | Border] = []
    for event in stream:
        if isinstance(event, Change):
            for address, size in known:  # the history began before the profiler
                if address == event.address and (size > 0) == (event.bytes > 0):
                    event = replace(event, bytes=size)
                    break
            else:
                raise RuntimeError(
                    "the profiler tells of CUDA memory that the allocator's history does not "
                    "know; memory on the GPU can't be recorded here"
                )
        exact.append(event)
    return exact
