"""What each part of a run took, summed over the workers; waiting for another one is included."""

from __future__ import annotations

from collections import Counter


def part(nodeid: str) -> str:
    """The part of the run that a test belongs to: `tests/site`, `book`."""
    folders = nodeid.split("::")[0].split("/")[:-1]
    return "/".join(folders[:2]) if folders[:1] == ["tests"] else folders[0] if folders else "."


def pytest_terminal_summary(terminalreporter):
    """Print a table: part, tests, seconds."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "when") and hasattr(report, "duration"):
                seconds[part(report.nodeid)] += report.duration
                tests[part(report.nodeid)] += report.when == "call"
    if len(seconds) < 2:  # one folder: the last line says it
        return
    terminalreporter.section("what each part took, in seconds, waiting included")
    for name, spent in seconds.most_common():
        terminalreporter.write_line(f"{spent:8.1f}  {name} ({tests[name]} tests)")
    terminalreporter.write_line(f"{sum(seconds.values()):8.1f}  in all")
