"""A JupyterLab of its own for a test: a free port, no token, nobody's settings, gone at the end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, Locator, Page

from tools.browsing import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
RUN = 600  # seconds until a notebook has run; the machine may be busy

SETTINGS = {
    # All cells in the page, so that what is not in view can be counted.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "docmanager-extension/plugin": {"autosave": False},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

# What the notebook in front holds, as JupyterLab knows it.
CELLS = """() => {
  const panel = jupyterapp.shell.currentWidget;
  return [...panel.content.model.cells].filter(cell => cell.type === "code").map(cell => ({
    count: cell.executionCount,
    errors: cell.outputs.toJSON().filter(o => o.output_type === "error").map(o => o.ename),
    stderr: cell.outputs.toJSON().filter(o => o.name === "stderr").map(o => o.text),
    tags: cell.getMetadata("tags") || [],
  }));
}"""
AT_REST = """() => {
  const panel = jupyterapp.shell.currentWidget;
  const kernel = panel && panel.sessionContext && panel.sessionContext.session
    && panel.sessionContext.session.kernel;
  return kernel && kernel.status === "idle" && panel.content.widgets.length > 0;
}"""
# A cell that runs has no count yet. After an error, the cells below never get one.
HAS_RUN = f"""() => ({AT_REST})() && (cells => cells.every(cell => cell.count)
  || cells.some(cell => cell.errors.length && !cell.tags.includes("raises-exception")))(({CELLS})())
"""


@dataclass
class Lab:
    """A running JupyterLab and the browser that looks at it."""

    address: str
    folder: Path
    browser: Browser
    problems: list[str] = field(default_factory=list)
    "Errors in the console, uncaught exceptions, and requests to another host (all refused)."
    contexts: list[BrowserContext] = field(default_factory=list)

    def open(self, notebook: str) -> Page:
        """Open a notebook in JupyterLab and wait until its kernel rests."""
        context = self.browser.new_context(viewport={"width": 1300, "height": 900})
        context.set_default_timeout(1000 * PATIENCE)
        self.contexts.append(context)
        context.route("**/*", self._gate)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("console", self._heard)
        page.goto(f"{self.address}/lab/tree/{quote(notebook)}?reset")
        accept_kernel(page)
        page.wait_for_function(AT_REST)
        return page

    def _gate(self, route) -> None:
        if route.request.url.startswith(f"{self.address}/"):
            route.continue_()
        else:
            self.problems.append(f"request to another host: {route.request.url}")
            route.abort()

    def _heard(self, said) -> None:
        if said.type == "error":
            self.problems.append(f"console: {said.text}")

    def stop_kernels(self) -> None:
        """Shut down every kernel, as *Shut Down All* does."""
        for session in json.loads(request(f"{self.address}/api/sessions")):
            request(f"{self.address}/api/sessions/{session['id']}", "DELETE")
        assert json.loads(request(f"{self.address}/api/kernels")) == []

    def close_pages(self) -> None:
        """Close what `open` has opened; what goes wrong while it closes is nobody's concern."""
        heard = list(self.problems)
        while self.contexts:
            self.contexts.pop().close()
        self.problems[:] = heard


def accept_kernel(page: Page) -> None:
    """Answer the dialog that asks for a kernel, if it comes."""
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    dialog = page.locator(".jp-Dialog").get_by_role("button", name="Select", exact=True)
    page.wait_for_function(f"() => document.querySelector('.jp-Dialog') || ({AT_REST})()")
    if dialog.count():
        dialog.click()


def run_all(page: Page) -> list[dict]:
    """*Run → Run All Cells*; returns what JupyterLab then knows of every code cell."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(HAS_RUN, timeout=1000 * RUN)
    return page.evaluate(CELLS)


def command(page: Page, name: str, **arguments) -> None:
    """Run one of JupyterLab's commands, as its menus and keys do."""
    page.evaluate(
        "([name, arguments]) => jupyterapp.commands.execute(name, arguments)", [name, arguments]
    )


def changed(page: Page, stage: Locator, before: str) -> bool:
    """Wait until ``stage`` shows something else than ``before``; whether it does in the end."""
    return until(page, lambda: stage.inner_html() != before)


def request(url: str, method: str = "GET") -> bytes:
    """Ask the server for something."""
    asked = urllib.request.Request(url, method=method)
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        return answer.read()


def environment(own: Path) -> dict[str, str]:
    """The variables of a JupyterLab whose files all lie in the folder ``own``."""
    kept = {k: v for k, v in os.environ.items() if k != "AUTOGRAD_LENS_LIVE"}
    folders = {f"JUPYTER_{what}_DIR": str(own / what.lower()) for what in ("CONFIG", "DATA")}
    return kept | folders | {
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(own / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
        "IPYTHONDIR": str(own / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel of this environment, not of the system
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }  # fmt: skip


@contextlib.contextmanager
def serve(folder: Path, own: Path) -> Iterator[str]:
    """Run JupyterLab on ``folder``; gives its address. Server and kernels end with the block."""
    for name, value in SETTINGS.items():
        path = own / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
        "--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    log = own / "log"
    with log.open("w") as said:
        server = subprocess.Popen(
            command, env=environment(own), stdout=said, stderr=said, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while not _answers(address):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab does not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()  # it then ends its kernels
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait(PATIENCE)


def _answers(address: str) -> bool:
    try:
        return bool(request(f"{address}/api"))
    except (OSError, urllib.error.URLError):
        return False
