"""autograd_lens: see what PyTorch's autograd really does.

Import it before ``torch`` where you can: the profiler reads its log level from the environment
when it is first loaded, and would print dated lines to stderr.
"""

import os as _os

_os.environ.setdefault("KINETO_LOG_LEVEL", "99")
_os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

from ._torch import LensUnsupported
from .backprop.recording import record_backward
from .backprop.steps import BackwardRecording, BackwardStep
from .captions import Titled
from .charts import Chart, Line, chart
from .explorer import Explorer, explore
from .graphs.grad_graph import GradGraph, graph
from .graphs.record import Edge, Hook, Leaf, Node, Output
from .layouts.layout import StorageLayout, TensorLayout, storage_layout
from .ledger.groups import SavedGroup, SavedGroups
from .ledger.saved_tensors import OpaqueNode, SavedTensors, saved_tensors
from .memory.blocks import Block
from .memory.recording import MemoryRecording, Phase, Sample, record_memory
from .saving.record import SavedTensor, Storage
from .saving.recorder import SavedRecorder, record_saved
from .verdict import Check, check

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
    "Hook",
    "Leaf",
    "LensUnsupported",
    "Line",
    "MemoryRecording",
    "Node",
    "OpaqueNode",
    "Output",
    "Phase",
    "Sample",
    "SavedGroup",
    "SavedGroups",
    "SavedRecorder",
    "SavedTensor",
    "SavedTensors",
    "Storage",
    "StorageLayout",
    "TensorLayout",
    "Titled",
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
