"""The peer of the page measurements: the same notebooks as most people publish them.

A plain Jupyter Book 1.x without any of this repository's configuration, in which every figure is
an ipywidget with its state saved in the page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CONFIG = """title: Peer
only_build_toc_files: true
execute:
  execute_notebooks: force
  timeout: 600
"""
# Run in each kernel before the first cell: a figure shows itself as its widget and nothing else.
STARTUP = """
def _as_widgets():
    import autograd_lens.result as result

    def bundle(self, include=None, exclude=None):
        return self.widget()._repr_mimebundle_()

    result.Result._repr_mimebundle_ = bundle

_as_widgets()
"""


def build(folder: Path) -> Path:
    """Build the peer in `folder`; gives the folder of its pages."""
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    shutil.copytree(ROOT / "book", source / "book")
    shutil.copy(ROOT / "_toc.yml", source)
    (source / "_config.yml").write_text(CONFIG, encoding="utf-8")
    profile = folder / "ipython"
    startup = profile / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "widgets.py").write_text(STARTUP, encoding="utf-8")
    environment = {**os.environ, "IPYTHONDIR": str(profile)}
    environment.pop("AUTOGRAD_LENS_LIVE", None)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(source), "--path-output", str(folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    html = folder / "_build" / "html"
    if run.returncode or not (html / "index.html").exists():
        sys.exit(f"the peer does not build:\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
    return html
