"""Make the environment of one PyTorch: that version, and the book's other pins.

An environment lies in `_build/canary/NAME` and is used again while nothing that it was made from
has changed; one that was cut short is made again. Where torch wants another version of a package
than `constraints.txt` pins, torch wins.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.repository import ROOT

FOLDER = ROOT / "_build" / "canary"
NEWEST = "newest"
COLAB = "colab"
STAMP = "canary.json"

# Runs in the new environment: every package with its version and what it wants.
INSTALLED = """\
import json
from importlib import metadata
print(json.dumps([[d.metadata["Name"], d.version, d.requires or []]
                  for d in metadata.distributions()]))
"""


class NotInstalled(RuntimeError):
    """An environment could not be made; the message says in one line why."""


def pins(path: Path) -> dict[str, Requirement]:
    """The lines of a list of pins, by package."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in wanted}


def needs() -> list[Requirement]:
    """What the package needs, torch included, and what its tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["test"]
    return [Requirement(line) for line in lines]


def ensure(name: str, python: Path | None = None, pip_args: Iterable[str] = ()) -> Path:
    """Return the Python of the environment for `name`: a version, "newest" or "colab".

    Raises:
        NotInstalled: something could not be installed.
    """
    folder, python = FOLDER / name, python or default_python(name)
    made_from = _made_from(name, python)
    inside = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if name != NEWEST and _stamp(folder) == made_from:
        return inside
    if _stamp(folder) != made_from:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"Making {folder.relative_to(ROOT)}; torch for CUDA takes some minutes", flush=True)
        _run([str(python), "-m", "venv", str(folder)], f"{python} -m venv")
    (folder / STAMP).unlink(missing_ok=True)
    _install(name, inside, list(pip_args))
    (folder / STAMP).write_text(json.dumps(made_from, indent=1))
    return inside


def default_python(name: str) -> Path:
    """Colab's Python for Colab where this machine has it, else the one that runs this."""
    if name == COLAB and (found := shutil.which("python3.13")):
        if subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return Path(found)
    return Path(sys.executable)


def versions(python: Path) -> dict[str, str]:
    """Every installed package with its version."""
    return {name: version for name, (version, _) in _installed(python).items()}


def python_version(python: Path) -> str:
    """The version of a Python, such as 3.13.1."""
    try:
        asked = subprocess.run([str(python), "-V"], capture_output=True, text=True)
    except OSError as error:
        raise NotInstalled(f"{python} does not run: {error}") from error
    if asked.returncode:
        raise NotInstalled(f"{python} does not run: {_last_line(asked.stderr)}")
    return asked.stdout.split()[-1]


def _made_from(name: str, python: Path) -> dict:
    made_from = {
        "name": name,
        "python": python_version(python),
        "needs": sorted(map(str, needs())),
        "constraints": _bare("constraints.txt"),
    }
    if name == COLAB:
        made_from["colab"] = _bare("colab.txt")
    return made_from


def _bare(name: str) -> list[str]:
    return sorted(map(str, pins(ROOT / name).values()))


def _stamp(folder: Path) -> dict | None:
    """What a complete environment was made from."""
    try:
        return json.loads((folder / STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _install(name: str, python: Path, pip_args: list[str]) -> None:
    """torch first, which then tells what it wants of the other packages."""
    colab = pins(ROOT / "colab.txt") if name == COLAB else {}
    torch = {NEWEST: "torch", COLAB: str(colab.get("torch"))}.get(name, f"torch=={name}")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *pip_args]
    _run([*pip, "--upgrade", torch], f"pip install {torch}")

    installed = _installed(python)
    pinned = pins(ROOT / "constraints.txt")
    constraints = python.parent.parent / "constraints.txt"
    kept = kept_pins(pinned, installed)
    constraints.write_text("".join(f"{pin}\n" for pin in kept))
    others = [str(need) for need in needs() if need.name != "torch"]
    torch = f"torch=={installed['torch'][0]}"
    _run([*pip, "-c", str(constraints), torch, *others], "pip install of the book's other pins")
    if colab:
        # Without dependencies: Colab itself mixes versions that no resolver would.
        exact = [str(pin) for key, pin in colab.items() if key != "torch"]
        _run([*pip, "--no-deps", *exact], "pip install of colab.txt")


def kept_pins(
    pinned: dict[str, Requirement], installed: dict[str, tuple[str, list[str]]]
) -> list[Requirement]:
    """The pins that torch, and what it brings, can live with."""
    dropped, seen, todo = {"torch"}, set(), ["torch"]
    while todo:
        name = todo.pop()
        if name in seen or name not in installed:
            continue
        seen.add(name)
        for need in map(Requirement, installed[name][1]):
            if need.marker and not need.marker.evaluate({"extra": ""}):
                continue
            key = canonicalize_name(need.name)
            todo.append(key)
            if key in pinned and not all(
                need.specifier.contains(exact.version, prereleases=True)
                for exact in pinned[key].specifier
            ):
                dropped.add(key)
    return [pin for key, pin in pinned.items() if key not in dropped]


def _installed(python: Path) -> dict[str, tuple[str, list[str]]]:
    done = subprocess.run([str(python), "-I", "-c", INSTALLED], capture_output=True, text=True)
    if done.returncode:
        raise NotInstalled(f"{python} does not run: {_last_line(done.stderr)}")
    return {canonicalize_name(n): (version, wants) for n, version, wants in json.loads(done.stdout)}


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise NotInstalled(f"{what}: {error}") from error
    if done.returncode:
        raise NotInstalled(f"{what} failed: {_last_line(done.stderr, done.stdout)}")


def _last_line(stderr: str, stdout: str = "") -> str:
    """The line of an installer's output that says why, and what forbids it."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ") and _HELP not in line]
    reason = (errors or lines or ["it did not say why"])[-1].removeprefix("ERROR: ")
    forbidden = [line.strip() for line in stdout.splitlines() if "(constraint)" in line]
    return "; ".join([reason, *dict.fromkeys(forbidden)])


_HELP = "ResolutionImpossible"  # pip's last line, which gives an address and no reason
