"""autograd_lens: see what PyTorch's autograd really does.

Import it before ``torch`` where you can: the profiler reads its log level from the environment
when it is first loaded, and would print dated lines to stderr.
"""

import os as _os

_os.environ.setdefault("KINETO_LOG_LEVEL", "99")
_os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

from .backward import BackwardRecording, BackwardStep, record_backward
from .chart import Chart, Line, chart
from .check import Check, check
from .explore import Explorer, explore
from .graph import GradGraph, graph
from .memory_blocks import Block
from .node import Edge, Leaf, Node, Output
from .record_memory import MemoryRecording, Phase, Sample, record_memory
from .record_saved import SavedRecorder, record_saved
from .saved import Saved
from .saved_tensors import (
    OpaqueNode,
    SavedEntry,
    SavedGroup,
    SavedGroups,
    SavedTensors,
    saved_tensors,
)
from .storage_layout import StorageLayout, TensorLayout, storage_layout

__version__ = "0.1.0"
__all__ = [
    "BackwardRecording",
    "BackwardStep",
    "Block",
    "Chart",
    "Check",
    "Edge",
    "Explorer",
    "GradGraph",
    "Leaf",
    "Line",
    "MemoryRecording",
    "Node",
    "OpaqueNode",
    "Output",
    "Phase",
    "Sample",
    "Saved",
    "SavedEntry",
    "SavedGroup",
    "SavedGroups",
    "SavedRecorder",
    "SavedTensors",
    "StorageLayout",
    "TensorLayout",
    "chart",
    "check",
    "explore",
    "graph",
    "record_backward",
    "record_memory",
    "record_saved",
    "saved_tensors",
    "storage_layout",
]
