"""What a workflow must be: pinned, with few rights, and calling only what exists.

Each check takes the text of a workflow and returns what is wrong with it, a line each.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tools.repository import ROOT

PIN = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+")
# The rights beyond reading that jobs have, and who may have them.
WRITES = {
    ("publish", "pages"): {"pages", "id-token"},
    ("publish", "notebooks"): {"contents"},
}


def read(text: str) -> dict:
    """The workflow; YAML 1.1 takes its key ``on`` for a truth value."""
    flow = yaml.safe_load(text)
    flow["on"] = flow.pop(True, flow.get("on"))
    return flow


def steps(text: str) -> list[dict]:
    """The steps of all jobs."""
    return [step for job in read(text)["jobs"].values() for step in job.get("steps", [])]


def unpinned(text: str) -> list[str]:
    """Actions that are not named by commit, with their version beside it."""
    found = re.findall(r"^\s*-?\s*uses:\s*(.*?)\s*$", text, re.MULTILINE)
    flow = read(text)
    used = [step["uses"] for step in steps(text) if "uses" in step]
    used += [job["uses"] for job in flow["jobs"].values() if "uses" in job]
    if len(used) != len(found):
        return [f"{len(used)} uses, and {len(found)} lines that say so"]
    return [
        line
        for line in found
        if not PIN.fullmatch(line)
        and not (line.startswith("./.github/workflows/") and (ROOT / line).is_file())
    ]


def rights(text: str) -> list[str]:
    """Rights that are not stated, or that are more than a job needs."""
    flow = read(text)
    wrong = []
    if flow.get("permissions") not in ({}, {"contents": "read"}):
        wrong.append(f"the workflow's permissions are {flow.get('permissions', 'not stated')}")
    for name, job in flow["jobs"].items():
        given = job.get("permissions")
        if not isinstance(given, dict):
            wrong.append(f"job {name}: permissions are {given or 'not stated'}")
            continue
        writes = {scope for scope, right in given.items() if right not in ("read", "none")}
        if extra := writes - WRITES.get((flow.get("name"), name), set()):
            wrong.append(f"job {name} may write {', '.join(sorted(extra))}")
        if writes and {"pull_request", "pull_request_target"} & set(flow["on"]):
            wrong.append(f"job {name} writes in a workflow that pull requests start")
        for step in job.get("steps", []):
            if step.get("uses", "").startswith("actions/checkout@"):
                keeps = step.get("with", {}).get("persist-credentials", True)
                if keeps and "contents" not in writes:
                    wrong.append(f"job {name} keeps credentials that it does not need")
    return wrong


def interpolated(text: str) -> list[str]:
    """Scripts with an expression in them: what it gives would be run. ``env`` is the way."""
    return [step["run"] for step in steps(text) if "${{" in step.get("run", "")]


def dangerous_triggers(text: str) -> list[str]:
    """Triggers that give a stranger's code the rights of this repository."""
    return sorted({"pull_request_target", "workflow_run", "issue_comment"} & set(read(text)["on"]))


def endless(text: str) -> list[str]:
    """Jobs without a limit of time (a job that calls a workflow can't have one)."""
    return [
        name
        for name, job in read(text)["jobs"].items()
        if "uses" not in job and not 0 < job.get("timeout-minutes", 0) <= 180
    ]


def calls(text: str) -> dict[str, set[str]]:
    """What scripts call of this repository: make targets, Python modules, files."""
    scripts = "\n".join(step.get("run", "") for step in steps(text))
    return {
        "target": set(re.findall(r"\bmake ([a-z][\w-]*)", scripts)),
        "module": set(re.findall(r"\bpython3? -m ((?:tools|benchmarks)[\w.]*)", scripts)),
        "file": set(re.findall(r"(?<![\w/$.-])((?:tools|tests|\.ci)/[\w./-]+)", scripts)),
    }


def missing_calls(text: str, root: Path = ROOT) -> list[str]:
    """What scripts call and this repository does not have."""
    targets = re.findall(r"^([a-z-]+):.*## ", (root / "Makefile").read_text("utf-8"), re.MULTILINE)
    called = calls(text)
    wrong = [f"make {target}" for target in called["target"] - set(targets)]
    for module in called["module"]:
        path = root.joinpath(*module.split("."))
        if not path.with_suffix(".py").is_file() and not (path / "__main__.py").is_file():
            wrong.append(f"python -m {module}")
    wrong += [name for name in called["file"] if not (root / name).exists()]
    return sorted(wrong)


def silent_failures(text: str) -> list[str]:
    """Jobs that build or test, and leave no report when they fail."""
    silent = []
    for name, job in read(text)["jobs"].items():
        scripts = "\n".join(step.get("run", "") for step in job.get("steps", []))
        uploads = [
            step
            for step in job.get("steps", [])
            if step.get("uses", "").startswith("actions/upload-artifact@")
            and "failure()" in str(step.get("if", ""))
        ]
        if re.search(r"make (test|book)\b|-m pytest", scripts) and not uploads:
            silent.append(name)
    return silent


CHECKS = {
    check.__name__: check
    for check in (
        unpinned,
        rights,
        interpolated,
        dangerous_triggers,
        endless,
        missing_calls,
        silent_failures,
    )
}
