"""Exact sizes of CUDA memory: what was asked for, from the history of the caching allocator.

The profiler tells of the same allocations in the same order. It knows the operation that asked, but
only the size of the block that was given: rounded up to 512 bytes, or more. Here the two are put
together. Counted is what tensors occupy, not what the allocator keeps beyond that.

Rests on ``c10/cuda/CUDACachingAllocator.cpp`` (``record_trace`` and ``reportMemoryUsageToProfiler``
stand in the same two functions).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .events import Change, Event


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
    events: Iterable[Event], trace: Iterable[Mapping[str, Any]]
) -> list[Event]:
    """The events of the profiler with the sizes of the allocator's history.

    Raises:
        RuntimeError: an event of the profiler is not in the history, or the history has other
            allocations at the same addresses, so that one can't tell which is which.
    """
    events, trace = list(events), list(trace)
    _refuse_other_threads(events, trace)
    known = requested(trace)
    exact: list[Event] = []
    for event in events:
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


def _refuse_other_threads(events: Iterable[Event], trace: Iterable[Mapping[str, Any]]) -> None:
    """The history is that of all threads, and does not say whose an allocation was."""
    ours = Counter(one.address for one in events if isinstance(one, Change) and one.bytes > 0)
    sizes: defaultdict[int, list[int]] = defaultdict(list)
    for address, size in requested(trace):
        if size > 0 and address in ours:
            sizes[address].append(size)
    if any(len(of_all) > ours[key] and len(set(of_all)) > 1 for key, of_all in sizes.items()):
        raise RuntimeError(
            "another thread allocated CUDA memory while fn ran, at the same addresses: "
            "record while no other thread uses this device"
        )
