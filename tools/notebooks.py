"""Run notebooks and store their outputs in the one form that this repository keeps.

    python -m tools.notebooks [NOTEBOOK ...]      (default: all of them)

Each notebook runs from its own folder in a fresh kernel. What is stored is text
only: pictures are made when the book is built. Running twice changes nothing.
A cell that fails stops the run, and its notebook stays as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools.repository import ROOT, notebook_paths

CELL_TIMEOUT = 300  # seconds

# Sockets in a folder: ports are chosen before they are taken, and two kernels that start at the
# same time may choose the same.
TRANSPORT = "tcp" if os.name == "nt" else "ipc"

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
CELL_METADATA = ("cellView", "jupyter", "nbgrader", "tags")


class CellFailed(RuntimeError):
    """A cell raised an error that it is not tagged to raise."""


def execute(nb: nbformat.NotebookNode, folder: Path, name: str = "notebook") -> None:
    """Run every cell of `nb` in a fresh kernel whose working directory is `folder`."""
    # No widgets: what is stored is text, and a widget's state would be stored too.
    environment = os.environ | {"AUTOGRAD_LENS_LIVE": "0"}
    with tempfile.TemporaryDirectory() as own:
        client = NotebookClient(
            nb,
            km=kernel_manager(Path(sys.executable), Path(own)),
            timeout=CELL_TIMEOUT,
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            store_widget_state=False,
        )
        try:
            client.execute(env=environment, cleanup_kc=True)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise CellFailed(f"{name}, {_failed_cell(nb)}: {error}") from error


def kernel_manager(python: Path, own: Path, options: tuple[str, ...] = ()) -> AsyncKernelManager:
    """What starts a kernel with just this Python, whatever kernels are installed.

    `own` is an empty folder for its files, which must outlive the kernel.
    """
    (own / KERNEL["name"]).mkdir()
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", *options]
    (own / KERNEL["name"] / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": KERNEL["display_name"], "language": "python"})
    )
    return AsyncKernelManager(
        kernel_name=KERNEL["name"],
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(own)], ensure_native_kernel=False),
        transport=TRANSPORT,
        connection_file=str(own / "kernel"),
    )


def _failed_cell(nb: nbformat.NotebookNode) -> str:
    """Which cell, counted from 1, the run stopped in: the last that was started."""
    started = [
        (position, cell)
        for position, cell in enumerate(nb.cells, start=1)
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count)
    ]
    if not started:
        return "before its first cell had run"
    position, cell = started[-1]
    return f"cell {position} ({cell.source.splitlines()[0]!r})"


def clear(nb: nbformat.NotebookNode) -> None:
    """Take away the outputs and execution counts of an earlier run."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def normalise(nb: nbformat.NotebookNode) -> None:
    """Bring `nb`, in place, to the form that is committed. Doing so twice changes nothing."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    nb.nbformat, nb.nbformat_minor = 4, 5
    seen: set[str] = set()
    for position, cell in enumerate(nb.cells):
        cell.id = _cell_id(cell, position, seen)
        seen.add(cell.id)
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}
        )
        if not cell.get("attachments", True):  # JupyterLab writes an empty one
            del cell["attachments"]
        if cell.cell_type == "code":
            cell.outputs = _normal_outputs(cell.outputs)


def _cell_id(cell: nbformat.NotebookNode, position: int, seen: set[str]) -> str:
    """The id a cell has, or one made from its content where it has none of its own."""
    given = cell.get("id")
    if given and given not in seen:
        return given
    return hashlib.sha256(f"{position}\n{cell.source}".encode()).hexdigest()[:8]


def _normal_outputs(outputs: list) -> list:
    """Text only; what one stream wrote in a row as one output; no metadata, no traceback."""
    normal: list = []
    for output in outputs:
        kind = output.output_type
        if kind == "stream":
            last = normal[-1] if normal else None
            if last and last.output_type == "stream" and last.name == output.name:
                last.text += output.text
                continue
        elif kind == "error":
            output.traceback = []
        else:
            text = output.data.get("text/plain")
            if text is None or (kind == "display_data" and not text):
                continue  # the second: where a bar was shown while the cell ran
            output.data = nbformat.from_dict({"text/plain": text})
            output.metadata = nbformat.from_dict({})
        normal.append(output)
    return [output for output in normal if output.get("text") != ""]


def dumps(nb: nbformat.NotebookNode) -> str:
    """The text of the file: one form, so that a diff shows only what changed."""
    return nbformat.writes(nb, version=nbformat.NO_CONVERT, indent=1, ensure_ascii=False) + "\n"


def write(nb: nbformat.NotebookNode, path: Path) -> None:
    """Write `nb` to `path` in one step: a reader sees the old file or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(dumps(nb))
        os.chmod(temporary, path.stat().st_mode if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def refresh(path: Path) -> None:
    """Run the notebook at `path` and store what it printed."""
    nb = nbformat.read(path, as_version=4)
    clear(nb)
    execute(nb, path.parent, path.name)
    normalise(nb)
    nbformat.validate(nb)
    write(nb, path)


def _shown(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def main(arguments: list[str]) -> int:
    """Refresh the given notebooks, or all of them; 1 when a cell failed."""
    paths = [Path(argument) for argument in arguments] or notebook_paths()
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        print(f"no such notebook: {', '.join(missing)}", file=sys.stderr)
        return 2
    for number, path in enumerate(paths, start=1):
        print(f"[{number}/{len(paths)}] {_shown(path)} ", end="", flush=True)
        start = time.perf_counter()
        try:
            refresh(path)
        except CellFailed as error:
            print("failed", flush=True)
            print(f"{error}\nThe file is left as it was.", file=sys.stderr)
            return 1
        print(f"{time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
