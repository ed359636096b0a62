"""What every committed notebook must satisfy, one function per demand.

    python -m tools.gates [NOTEBOOK ...]      (default: all of them)

nbval re-runs a notebook and compares what it prints. It passes a notebook that was
never run, and it can be told to look away; a gate closes each of these holes.
Other gates keep the notebooks readable on GitHub and in Colab, and their prose true.

A gate takes a notebook and returns problems: where, what is wrong, what to do.
"""

from __future__ import annotations

from collections.abc import Callable

from nbformat import NotebookNode

from tools.gates import form, names, outputs, prose, route, source

Gate = Callable[[NotebookNode], list[str]]

_ALL: list[Gate] = [
    outputs.executed_in_order,
    outputs.nothing_on_stderr,
    outputs.no_address,
    outputs.no_absolute_path,
    outputs.text_only,
    outputs.small_outputs,
    outputs.expected_errors_only,
    outputs.plain_characters,
    outputs.one_output_per_stream,
    outputs.no_output_metadata,
    form.no_widget_state,
    form.normal_form,
    source.compared_by_nbval,
    source.setup_first,
    source.short_cells,
    source.no_trailing_semicolon,
    source.answers_hidden_everywhere,
    source.figures_are_asserted,
    names.figures_keep_their_names,
    prose.no_myst,
    prose.quotes_occur,
    route.short_route,
]

GATES: dict[str, Gate] = {gate.__name__: gate for gate in _ALL}


def problems(nb: NotebookNode) -> dict[str, list[str]]:
    """The problems of `nb` by the gate that found them; empty when all pass."""
    found = {name: gate(nb) for name, gate in GATES.items()}
    return {name: list_ for name, list_ in found.items() if list_}
