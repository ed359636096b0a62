"""A real browser with the network closed, and a server for a folder on this machine."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Error, Page, Request, sync_playwright

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
).split()
PATIENCE = 120  # seconds until something that must happen counts as missing; machines are busy
# An animation that repeats for ever does not count, nor one in a section that is not laid out: it
# does not begin before the section is.
AT_REST = """async () => {
  await document.fonts.ready;
  const counts = animation => animation.playState === "running"
    && animation.effect?.getComputedTiming().endTime < Infinity
    && animation.effect.target?.checkVisibility({contentVisibilityAuto: true});
  const layout = () => [scrollX, scrollY, document.documentElement.scrollHeight].join();
  for (let calm = 0, last = "", frames = 0; calm < 10; calm++, frames++) {
    await new Promise(requestAnimationFrame);
    if (layout() !== last || document.getAnimations().some(counts)) [calm, last] = [0, layout()];
    if (frames > 3000) throw new Error("the page does not come to rest");
  }
}"""
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine itself
COMPRESSED = {".woff", ".woff2", ".png", ".jpg", ".webp"}  # gzip gains nothing


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that logs nothing, and knows 404.html as hosts of static pages do."""

    top = "/"

    def translate_path(self, path):
        """The file at an address below `top`; one that isn't there for any other."""
        below = path.startswith(self.top)
        return super().translate_path(path[len(self.top) - 1 :] if below else "/nothing-there")

    def send_error(self, code, message=None, explain=None):
        """404.html where the folder has one."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.exists() or Path(urlsplit(self.path).path).suffix != ".html":
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Say nothing of a request."""


@contextlib.contextmanager
def serve(folder: Path, top: str = "/") -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1, below `top`; gives the address."""
    kind = type("Below", (Quiet,), {"top": top})
    handler = functools.partial(kind, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}{top}"
        server.shutdown()
        thread.join()


@dataclass
class Journal:
    """What happened while a page was open."""

    errors: list[str] = field(default_factory=list)
    "Errors in the console and uncaught exceptions."
    foreign: list[str] = field(default_factory=list)
    "Requests to another host; all of them were refused."
    missing: list[str] = field(default_factory=list)
    "Requests that the site answered with an error."
    bytes: dict[str, int] = field(default_factory=dict)
    "Bytes by address, as a server that compresses would send them."

    @property
    def problems(self) -> list[str]:
        """Everything that a page must not do."""
        return [
            *self.errors,
            *(f"request to another host: {url}" for url in self.foreign),
            *(f"not found: {url}" for url in self.missing),
        ]


def at_rest(page: Page) -> None:
    """Wait for fonts, for what fades or slides, and until the layout is the same for ten frames.

    What answers later than that is not waited for: give that a condition of its own. A page that
    leads on to another is left behind.
    """
    try:
        page.evaluate(AT_REST)
    except Error as error:
        if "context was destroyed" not in error.message:
            raise
        page.wait_for_load_state()
        at_rest(page)


def leads_on(page: Page) -> bool:
    """Whether a page is about to give way to another, as the root page does."""
    try:
        return page.locator("meta[http-equiv=refresh]").count() > 0
    except Error:
        return True


def until(page: Page, condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait until something holds; whether it does, at the latest after some seconds.

    The page goes on meanwhile. A condition that the page itself can judge is better given to
    Playwright's `wait_for_function`.
    """
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(20)
    return True


class Browsing:
    """One Chromium for a test session; every page gets a context of its own."""

    def __init__(self, program: str):
        self.program = program
        self.contexts = []
        self.weights: dict[str, int] = {}
        "Bytes on the wire of files that were weighed before: all but documents."

    def __enter__(self):
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=self.program, args=ARGUMENTS)
        return self

    def __exit__(self, *exception):
        self.close_pages()
        self.browser.close()
        self.playwright.stop()

    def close_pages(self, but: int = 0):
        """Close what `open` has opened, but not the first of it."""
        while len(self.contexts) > but:
            self.contexts.pop().close()

    def open(
        self,
        address: str,
        name: str,
        width: int = 1200,
        theme: str = "light",
        script: bool = True,
        motion: bool = True,
        alter: Callable[[str], str] | None = None,
    ) -> tuple[Page, Journal]:
        """Open a page at a width, in a theme, with or without scripts, and wait until it rests.

        Without `motion`, the reader has asked for less of it. `alter` changes the HTML of pages.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=theme,
            java_script_enabled=script,
            reduced_motion="no-preference" if motion else "reduce",
        )
        context.set_default_timeout(1000 * PATIENCE)
        self.contexts.append(context)
        journal = Journal()
        asked: list[Request] = []
        ended: list[Request] = []

        def gate(route):
            url = route.request.url
            if url.startswith(address) and alter and route.request.resource_type == "document":
                answer = route.fetch()
                route.fulfill(response=answer, body=alter(answer.text()))
            elif url.startswith(address):
                route.continue_()
            else:
                journal.foreign.append(url)
                route.abort()

        def miss(response):
            if response.status >= 400 and response.url.startswith(address):
                journal.missing.append(response.url)

        context.route("**/*", gate)
        page = context.new_page()
        page.on("response", miss)
        page.on("pageerror", lambda error: journal.errors.append(f"uncaught: {error}"))
        page.on(
            "console",
            lambda said: said.type == "error" and journal.errors.append(f"console: {said.text}"),
        )
        page.on("request", lambda request: asked.append(request))
        page.on("requestfinished", lambda request: ended.append(request))
        page.on("requestfailed", lambda request: ended.append(request))
        page.goto(address + name)
        until(page, lambda: not leads_on(page))
        if script:  # without, no frame calls back, and nothing moves
            at_rest(page)
        if not until(page, lambda: len(ended) == len(asked)):
            raise TimeoutError(f"{name}: {len(asked) - len(ended)} requests do not end")
        for request in ended:
            if request.url.startswith(address):
                self.weigh(request, journal)
        return page, journal

    def weigh(self, request: Request, journal: Journal) -> None:
        """Note what a file weighs, if the site has it.

        It is asked for again: the browser forgets the body of a page that has led on to another.
        """
        response = request.response()
        if response is None or response.status >= 300:
            return
        if request.resource_type == "document" or request.url not in self.weights:
            with DIRECTLY.open(request.url, timeout=PATIENCE) as answer:
                self.weights[request.url] = sent_bytes(request.url, answer.read())
        journal.bytes[request.url] = self.weights[request.url]


def sent_bytes(url: str, body: bytes) -> int:
    """The size of a file on the wire."""
    if Path(urlsplit(url).path).suffix in COMPRESSED:
        return len(body)
    return len(gzip.compress(body, 6))
