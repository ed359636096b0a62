"""`make env` takes PyTorch's CPU wheels where nobody needs others and their index answers."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tools import cpu_wheels
from tools.repository import ROOT

sys.path.insert(0, str(Path(__file__).parent))

from making import planned


@pytest.fixture
def index():
    """A function that serves an index which answers with a status, or with nothing."""
    servers, over = [], threading.Event()

    def serve(status):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if status is None:  # it accepts, and then says nothing until the test has ended
                    over.wait()
                    return
                self.send_response(status)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/whl/cpu"

    yield serve
    over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def plain(monkeypatch):
    """A machine without a GPU, whose pip was told nothing."""
    monkeypatch.setattr(cpu_wheels, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(cpu_wheels, "has_index_of_its_own", lambda: False)


def test_an_index_that_answers_is_taken(index, plain):
    here = index(200)
    assert cpu_wheels.arguments("linux", here, patience=60) == ["--extra-index-url", here]


@pytest.mark.parametrize("status", [404, 503])
def test_an_index_without_torch_is_not_taken(index, plain, status):
    assert cpu_wheels.arguments("linux", index(status), patience=60) == []


def test_an_index_that_says_nothing_is_not_waited_for(index):
    assert not cpu_wheels.answers(index(None), patience=0.2)


def test_an_address_that_is_not_found_is_not_waited_for(monkeypatch):
    """A look-up of an address knows no limit of time."""
    over = threading.Event()

    def urlopen(*_, **__):
        over.wait()
        raise OSError("no such host")

    monkeypatch.setattr(cpu_wheels.urllib.request, "urlopen", urlopen)
    assert not cpu_wheels.answers("http://127.0.0.1", patience=0.2)
    over.set()


def test_no_index_is_there(plain):
    assert cpu_wheels.arguments("linux", "http://127.0.0.1:9") == []
    assert cpu_wheels.arguments("linux", "no address") == []


def test_elsewhere_pip_does_what_it_always_does(index, plain, monkeypatch):
    here = index(200)
    for system in ("darwin", "win32"):
        assert cpu_wheels.arguments(system, here, patience=60) == []
    for name in ("has_nvidia_gpu", "has_index_of_its_own"):
        with monkeypatch.context() as patch:
            patch.setattr(cpu_wheels, name, lambda: True)
            assert cpu_wheels.arguments("linux", here, patience=60) == []


@pytest.mark.parametrize(
    ("variables", "configured", "own"),
    [
        ({}, "", False),
        ({"PIP_DEFAULT_TIMEOUT": "9"}, "global.timeout='60'", False),
        ({"PIP_INDEX_URL": "x"}, "", True),
        ({"PIP_NO_INDEX": "1"}, "", True),
        ({}, "global.index-url='https://example.org/simple'", True),
        ({}, "install.extra-index-url='https://example.org/simple'", True),
    ],
)
def test_what_pip_was_told(variables, configured, own, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = subprocess.CompletedProcess([], 0, stdout=configured)
    monkeypatch.setattr(cpu_wheels.subprocess, "run", lambda *_, **__: done)
    assert cpu_wheels.has_index_of_its_own() == own


@pytest.mark.parametrize(
    ("script", "gpu"),
    [
        ("echo 'GPU 0: One (UUID: x)'", True),
        ("echo 'No devices were found'", False),
        ("echo 'GPU 0: lost'; exit 9", False),
    ],
)
def test_a_gpu_is_one_that_the_driver_lists(script, gpu, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(cpu_wheels, "NVIDIA_SMI", (str(program),))
    monkeypatch.setattr(cpu_wheels, "DRIVER", tmp_path / "none")
    assert cpu_wheels.has_nvidia_gpu() == gpu
    (tmp_path / "version").write_text("1")
    monkeypatch.setattr(cpu_wheels, "DRIVER", tmp_path / "version")
    assert cpu_wheels.has_nvidia_gpu()


def test_make_env_gives_pip_what_is_printed_unless_somebody_chose():
    def said(*given):
        return planned("env", "VENV=_build/none", "PYTHON=python3", *given)

    assert "$(python3 tools/cpu_wheels.py) -c constraints.txt" in said()
    assert "cpu_wheels" not in said("PIP_ARGS=--no-index")
    assert "--no-index -c constraints.txt" in said("PIP_ARGS=--no-index")


def test_it_runs_without_the_environment():
    """`make env` calls it before there is one: nothing but Python's own modules."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import runpy; runpy.run_path('tools/cpu_wheels.py')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
