"""Gates on the file: the one form in which notebooks are kept, so that diffs are small."""

from __future__ import annotations

import copy

import nbformat
from nbformat import NotebookNode

from tools.notebooks import CELL_METADATA, KERNEL, LANGUAGE, dumps

REFRESH = "Run `make outputs`."


def no_widget_state(nb: NotebookNode) -> list[str]:
    """No saved widgets: they weigh kilobytes and need another host to be shown."""
    if "widgets" in nb.metadata:
        return [f"the notebook stores widget state. {REFRESH}"]
    return []


def normal_form(nb: NotebookNode) -> list[str]:
    """Valid, with cell ids, and with no metadata but what means something here."""
    found = []
    ids = [cell.get("id") for cell in nb.cells]
    if None in ids or len(set(ids)) < len(ids):
        found.append(f"a cell has no id of its own. {REFRESH}")
    else:
        try:
            nbformat.validate(copy.deepcopy(nb))  # a copy, for it repairs what it validates
        except nbformat.ValidationError as error:
            found.append(f"the notebook is not valid: {str(error).splitlines()[0]}. {REFRESH}")
    if (nb.nbformat, nb.nbformat_minor) != (4, 5):
        found.append(f"the notebook is of format {nb.nbformat}.{nb.nbformat_minor}. {REFRESH}")
    wanted = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    extra = {key: value for key, value in nb.metadata.items() if key != "widgets"}
    if extra != wanted:
        found.append(f"the notebook's metadata is not {wanted}. {REFRESH}")
    for position, cell in enumerate(nb.cells, start=1):
        unknown = sorted(set(cell.metadata) - set(CELL_METADATA))
        if unknown:
            found.append(f"cell {position} has metadata {unknown}. {REFRESH}")
    return found


def as_written(text: str) -> list[str]:
    """The text of the file is what `make outputs` would write for the same content."""
    if text != dumps(nbformat.reads(text, as_version=nbformat.NO_CONVERT)):
        return [f"the file is laid out in another way than ours. {REFRESH}"]
    return []
