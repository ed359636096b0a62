"""A real browser with the network closed, and a server for a folder on this machine."""

import contextlib
import functools
import gzip
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
).split()
COMPRESSED = {".woff", ".woff2", ".png", ".jpg", ".webp"}  # gzip gains nothing


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that logs nothing."""

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1; gives the address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
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


class Browsing:
    """One Chromium for a test session; every page gets a context of its own."""

    def __init__(self, program: str):
        self.program = program
        self.contexts = []

    def __enter__(self):
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=self.program, args=ARGUMENTS)
        return self

    def __exit__(self, *exception):
        self.close_pages()
        self.browser.close()
        self.playwright.stop()

    def close_pages(self):
        """Close what `open` has opened."""
        while self.contexts:
            self.contexts.pop().close()

    def open(
        self, address: str, name: str, width: int = 1200, theme: str = "light", script: bool = True
    ) -> tuple[Page, Journal]:
        """Open a page at a width, in a theme, with or without scripts, and wait until it rests."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=theme,
            java_script_enabled=script,
        )
        self.contexts.append(context)
        journal = Journal()

        def gate(route):
            url = route.request.url
            if url.startswith(address):
                route.continue_()
            else:
                journal.foreign.append(url)
                route.abort()

        def weigh(response):
            if not response.url.startswith(address):
                return
            if response.status >= 400:
                journal.missing.append(response.url)
            elif response.status < 300:
                journal.bytes[response.url] = sent_bytes(response.url, response.body())

        context.route("**/*", gate)
        page = context.new_page()
        page.on("pageerror", lambda error: journal.errors.append(f"uncaught: {error}"))
        page.on(
            "console",
            lambda said: said.type == "error" and journal.errors.append(f"console: {said.text}"),
        )
        page.on("requestfinished", lambda request: weigh(request.response()))
        page.goto(address + name, wait_until="networkidle")
        return page, journal


def sent_bytes(url: str, body: bytes) -> int:
    """The size of a file on the wire."""
    if Path(urlsplit(url).path).suffix in COMPRESSED:
        return len(body)
    return len(gzip.compress(body, 6))
