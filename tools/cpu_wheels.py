"""Which pip arguments bring PyTorch without CUDA's libraries, where nobody needs those.

    python tools/cpu_wheels.py

On Linux PyTorch's default wheels bring several gigabytes for GPUs. Where there is no NVIDIA GPU,
pip is not told of an index of one's own, and PyTorch's index of CPU wheels answers, this prints the
arguments that add that index, and says so on stderr in one line. Everywhere else it prints nothing,
and pip does what it always does.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = 2  # seconds for the index to answer
DRIVER = Path("/proc/driver/nvidia/version")
# The second: in Linux under Windows it is not on the PATH of every user.
NVIDIA_SMI = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
# How pip names, in its variables and in its configuration, where it looks for packages.
OWN_INDEX = re.compile(r"\b(extra[-_]index[-_]url|index[-_]url|no[-_]index)\b", re.IGNORECASE)


def has_nvidia_gpu() -> bool:
    """Whether this machine has a GPU that CUDA's libraries are for."""
    if DRIVER.exists():
        return True
    program = next(filter(None, map(shutil.which, NVIDIA_SMI)), None)
    if program is None:
        return False
    try:
        done = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return True  # there is a driver, and it has trouble: leave everything as it is
    return done.returncode == 0 and "GPU" in done.stdout


def has_index_of_its_own() -> bool:
    """Whether somebody has told pip where to look: a public index must not stand beside that."""
    if any(name.startswith("PIP_") and OWN_INDEX.search(name[4:]) for name in os.environ):
        return True
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True)
    return any(OWN_INDEX.search(line.split("=")[0]) for line in done.stdout.splitlines())


def answers(index: str, patience: float = PATIENCE) -> bool:
    """Whether an index of packages answers in time; finding its address counts, too."""
    good = []

    def ask():
        try:
            with urllib.request.urlopen(f"{index}/torch/", timeout=patience) as answer:
                good.append(answer.status == 200)
        except (OSError, ValueError, http.client.HTTPException):
            good.append(False)  # no network, no such host, refused, too slow, not HTTP

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(patience)
    return good == [True]


def arguments(system: str, index: str = INDEX, patience: float = PATIENCE) -> list[str]:
    """What pip should be given besides, on this system (as `sys.platform` names it)."""
    if not system.startswith("linux") or has_nvidia_gpu() or has_index_of_its_own():
        return []
    return ["--extra-index-url", index] if answers(index, patience) else []


if __name__ == "__main__":
    if found := arguments(sys.platform):
        print(f"No NVIDIA GPU here: PyTorch comes as a CPU wheel from {INDEX}", file=sys.stderr)
        print(*found)
