"""The figure of a recording of memory."""

from __future__ import annotations

from ..record_memory import MemoryRecording
from .figure import Figure, Frame
from .memory_text import text


def figure(recording: MemoryRecording) -> Figure:
    """Return the figure."""
    return Figure("Memory over a run", lambda: Frame(text(recording)))
