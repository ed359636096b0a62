"""Run a notebook with a given Python and environment, and say what differs from what is stored.

Whatever happens to a cell is a difference, never a crash: the cells after it run all the same. What
is compared is the form that is committed (`tools.notebooks.normalise`). Which Python it is, and
whether a difference is one that was expected, is not known here.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell

from tools.notebooks import CELL_TIMEOUT, kernel_manager, normalise
from tools.repository import ROOT

PATIENCE = 20  # seconds for a kernel to answer after a cell that took too long
NOTHING = "(nothing)"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Kernel:
    """Where a notebook runs: a Python, folders before its packages, further variables, options."""

    python: Path
    folders: tuple[Path, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()  # of the kernel

    def environment(self) -> dict[str, str]:
        """The variables of the process. The package is always this checkout's."""
        path = os.pathsep.join(map(str, (*self.folders, ROOT)))
        # No widgets: what is stored is text, as in `tools.notebooks.execute`.
        fixed = {"PYTHONPATH": path, "PYTHONNOUSERSITE": "1", "AUTOGRAD_LENS_LIVE": "0"}
        return os.environ | fixed | self.variables


@dataclass(frozen=True)
class Difference:
    """One cell that shows something else than what is stored."""

    notebook: str
    cell: int  # counted from 1, all cells
    id: str
    source: str
    before: str
    after: str
    reason: str = ""  # why, where that is known


@dataclass(frozen=True)
class Run:
    """What became of one notebook: how many cells were compared, and which differ."""

    notebook: str
    cells: int
    differences: tuple[Difference, ...]
    probe: str = ""  # what the additional cell printed


def rerun(
    stored: nbformat.NotebookNode,
    folder: Path,
    name: str,
    kernel: Kernel,
    *,
    probe: str = "",
    timeout: int = CELL_TIMEOUT,
) -> Run:
    """Run `stored` in `folder` with `kernel` and compare.

    `probe` is the source of one more cell, which runs last in the same kernel; what it prints is
    in the result and is not compared.
    """
    before = copy.deepcopy(stored)
    normalise(before)
    after = copy.deepcopy(before)
    if probe:
        after.cells.append(new_code_cell(probe))
    notes = execute(after, folder, kernel, timeout)
    normalise(after)  # the probe too: what a cell prints can arrive in pieces
    printed = _text(after.cells.pop().outputs) if probe else ""
    differences = []
    for position, (old, new) in enumerate(zip(before.cells, after.cells, strict=True)):
        if old.cell_type != "code":
            continue
        texts = _texts(old.outputs, new.outputs)
        note = notes.get(position, "")
        if note or texts[0] != texts[1]:
            differences.append(
                Difference(
                    notebook=name,
                    cell=position + 1,
                    id=old.id,
                    source=old.source,
                    before=texts[0] or NOTHING,
                    after=note or texts[1] or NOTHING,
                )
            )
    cells = sum(cell.cell_type == "code" for cell in before.cells)
    return Run(name, cells, tuple(differences), printed)


def execute(
    nb: nbformat.NotebookNode, folder: Path, kernel: Kernel, timeout: int = CELL_TIMEOUT
) -> dict[int, str]:
    """Run every cell of `nb`, in place, also after one that fails.

    Returns, by position from 0, what happened to the cells that have no outcome of their own:
    those that took too long, that the kernel died in, or that were not run.
    """
    notes: dict[int, str] = {}
    code = [k for k, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    for position in code:
        nb.cells[position].outputs, nb.cells[position].execution_count = [], None
    with tempfile.TemporaryDirectory() as specs:
        client = NotebookClient(
            nb,
            km=kernel_manager(kernel.python, Path(specs), kernel.options),
            timeout=timeout,
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            store_widget_state=False,
        )
        client.log.disabled = True  # what it would say is in the result
        reached, why = 0, "no kernel"
        errors = Path(specs, "stderr")
        try:
            with (
                errors.open("w") as stderr,
                client.setup_kernel(env=kernel.environment(), stderr=stderr, cleanup_kc=True),
            ):
                why = "the kernel was gone"
                for position in code:
                    reached += 1
                    try:
                        client.execute_cell(nb.cells[position], position)
                    except CellTimeoutError:
                        notes[position] = f"did not end within {timeout} s"
                        if not _interrupted(client):
                            break
                    except DeadKernelError:
                        notes[position] = "the kernel died"
                        break
        except (DeadKernelError, RuntimeError, OSError) as error:
            said = errors.read_text("utf-8", "replace").split("\n") if errors.exists() else []
            why = f"{why} ({[str(error), *filter(None, said)][-1]})"
        for position in code[reached:]:
            notes[position] = f"{NOT_RUN}: {why}"
    return notes


def _interrupted(client: NotebookClient) -> bool:
    """Interrupt a cell that takes too long; whether the kernel answers afterwards."""
    run_sync(client.km.interrupt_kernel)()
    try:
        run_sync(client.kc.wait_for_ready)(timeout=PATIENCE)
    except RuntimeError:
        return False
    return True


def _texts(old: list, new: list) -> tuple[str, str]:
    """Both cells' outputs as text, equal only where nothing differs."""
    texts = _text(old), _text(new)
    if texts[0] == texts[1] and _parts(old) != _parts(new):
        return _text(old, exact=True), _text(new, exact=True)
    return texts


def _text(outputs: list, exact: bool = False) -> str:
    """What a reader sees. Anything but stdout and results says what it is."""
    lines = []
    for kind, text in _parts(outputs):
        if exact:
            lines.append(f"{kind}: {text!r}")
        elif kind == "error":
            lines.append(f"raised {text}")
        elif kind == "stderr":
            lines.append(f"{kind}: {text}")
        else:
            lines.append(text)
    return "\n".join(line.removesuffix("\n") for line in lines)


def _parts(outputs: Iterable) -> list[tuple[str, str]]:
    """Kind and text of each output in the committed form."""
    parts = []
    for output in outputs:
        if output.output_type == "stream":
            parts.append((output.name, output.text))
        elif output.output_type == "error":
            parts.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            parts.append((output.output_type, output.data.get("text/plain", "")))
    return parts
