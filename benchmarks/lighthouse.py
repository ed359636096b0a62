"""Lighthouse, from npm, on a folder served as a web host would: gzip, HTTP/1.1, no other host.

Lighthouse is no package of the book: `installed` fetches it into `_build/` when a measurement asks
for it, and needs node 20 and npm. The device it plays is its default, a phone on slow 4G.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

VERSION = "12.2.3"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run "
    '--host-resolver-rules="MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"'
)
COMPRESSIBLE = (".html", ".css", ".js", ".svg", ".json", ".xml", ".txt")
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")


class Gzipping(http.server.SimpleHTTPRequestHandler):
    """A file server that compresses text, as hosts of static pages do."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Answer with the file, compressed where that helps."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        found = path.is_file()
        body = path.read_bytes() if found else b"not found"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", self.guess_type(str(path)) if found else "text/plain")
        if path.suffix in COMPRESSIBLE and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = _compressed(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Log nothing."""


@functools.lru_cache(maxsize=64)
def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, 6)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1; gives the address."""
    handler = functools.partial(Gzipping, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def installed(folder: Path) -> Path:
    """The program, installed into `folder` if it is not there yet."""
    program = folder / "node_modules" / ".bin" / "lighthouse"
    manifest = folder / "node_modules" / "lighthouse" / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text())["version"] != VERSION:
        if not shutil.which("npm"):
            sys.exit("Lighthouse needs node 20 and npm: install them and run this again.")
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run([*command, f"lighthouse@{VERSION}"], check=True)
    return program


def audit(program: Path, url: str) -> dict[str, float]:
    """One run: the four scores, of 100, and the times, bytes and requests behind them."""
    chrome = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chrome is None:
        sys.exit(f"Lighthouse needs a browser: none of {', '.join(CHROMIUM)} is installed.")
    command = [str(program), url, "--quiet", "--output=json", f"--chrome-flags={FLAGS}"]
    run = subprocess.run(
        [*command, f"--only-categories={','.join(CATEGORIES)}"],
        env={**os.environ, "CHROME_PATH": chrome},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        sys.exit(f"Lighthouse failed on {url}:\n{run.stderr}")
    found = json.loads(run.stdout)
    audits = found["audits"]
    requests = audits["network-requests"]["details"]["items"]
    failed = [
        f"{name}: {ref['id']}"
        for name in CATEGORIES[1:]
        for ref in found["categories"][name]["auditRefs"]
        if ref["weight"]
        and (audits[ref["id"]]["score"] or 0) < 1
        and audits[ref["id"]]["scoreDisplayMode"] not in ("notApplicable", "manual", "informative")
    ]
    result = {name: round(100 * found["categories"][name]["score"]) for name in CATEGORIES}
    return result | {
        "FCP ms": audits["first-contentful-paint"]["numericValue"],
        "LCP ms": audits["largest-contentful-paint"]["numericValue"],
        "TBT ms": audits["total-blocking-time"]["numericValue"],
        "CLS": audits["cumulative-layout-shift"]["numericValue"],
        "SI ms": audits["speed-index"]["numericValue"],
        "KB": sum(item.get("transferSize") or 0 for item in requests) / 1000,
        "requests": len(requests),
        "elsewhere": sum(1 for i in requests if not i["url"].startswith((_origin(url), "data:"))),
        "failed": failed,
    }


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3]) + "/"


def median(runs: list[dict]) -> dict:
    """The run with the median performance, so that its numbers belong together."""
    middle = statistics.median_low([run["performance"] for run in runs])
    return next(run for run in runs if run["performance"] == middle)
