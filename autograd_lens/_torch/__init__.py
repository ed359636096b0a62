"""The one place where the lens touches what PyTorch does not promise to keep.

======================  ===========================================================
``nodes``               saved tensors, numbers and outputs of a graph's nodes
``tensors``             versions, hooks, storages and parts of tensors
``trees``               tensors in nested containers
``threads``             which thread started a backward
``profiler``, ``cuda``  allocations
``patches``             what is replaced in PyTorch, for as long as it is needed
``surface``             the list of all of it: name, probe, what is lost without it
======================  ===========================================================

Without some of these names a reading would be wrong and not say so. :func:`require` looks for them
once, and raises :class:`LensUnsupported` where one is missing.
"""

from .cuda import start_cuda_history, stop_cuda_history
from .errors import LensUnsupported
from .nodes import (
    argument_saver,
    derivatives_file,
    is_node,
    is_python,
    is_saved_tensor,
    next_sequence_nr,
    outputs_of,
    plain_fields,
    plain_value,
    raw_data,
    raw_fields,
    raw_readers,
    saved_value,
    sequence_nrs,
    unpacked,
)
from .patches import (
    tell_no_more,
    tell_no_more_of_module_calls,
    tell_of_module_calls,
    tell_of_saved_tensor_hooks,
)
from .profiler import (
    allocation,
    is_tracing,
    named_range,
    not_compiled,
    profiling,
    take_event_tree,
    watched_backward,
)
from .surface import PROBES, Probe, require
from .tensors import (
    hooks,
    inner_tensors,
    is_clone_number,
    is_wrapped,
    storage_key,
    version,
    with_graph,
    written_view_nr,
)
from .threads import CAN_SIGN, Sign
from .trees import tensors_and_nodes_in, tensors_in, tree_map

__all__ = [
    "CAN_SIGN",
    "PROBES",
    "LensUnsupported",
    "Probe",
    "Sign",
    "allocation",
    "argument_saver",
    "derivatives_file",
    "hooks",
    "inner_tensors",
    "is_clone_number",
    "is_node",
    "is_python",
    "is_saved_tensor",
    "is_tracing",
    "is_wrapped",
    "named_range",
    "next_sequence_nr",
    "not_compiled",
    "outputs_of",
    "plain_fields",
    "plain_value",
    "profiling",
    "raw_data",
    "raw_fields",
    "raw_readers",
    "require",
    "saved_value",
    "sequence_nrs",
    "start_cuda_history",
    "stop_cuda_history",
    "storage_key",
    "take_event_tree",
    "tell_no_more",
    "tell_no_more_of_module_calls",
    "tell_of_module_calls",
    "tell_of_saved_tensor_hooks",
    "tensors_and_nodes_in",
    "tensors_in",
    "tree_map",
    "unpacked",
    "version",
    "watched_backward",
    "with_graph",
    "written_view_nr",
]
