"""Weigh the built pages and let Lighthouse judge them, ours and a peer's: ``make bench-pages``.

The peer is a plain Jupyter Book of the same notebooks (`peer_book`). Each page is visited three
times, in turn, and the run with the median performance counts. Requests to other hosts are refused,
so the peer's weight is without the maths and widget scripts that it would load from elsewhere.
Exits with 1 where a page of ours misses a limit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import lighthouse, peer_book

ROOT = peer_book.ROOT
RUNS = 3
LIMIT_KB, LIMIT_PERFORMANCE = 500, 90


def pages(site: Path) -> list[str]:
    """The pages that have a source."""
    return sorted(path.relative_to(site).as_posix() for path in (site / "book").rglob("*.html"))


def measure(sites: dict[str, Path], names: list[str], runs: int) -> dict[tuple[str, str], dict]:
    """The median run of each page of each site."""
    program = lighthouse.installed(ROOT / "_build" / "lighthouse")
    found: dict[tuple[str, str], list[dict]] = {}
    for number in range(runs):
        for site, folder in sites.items():
            with lighthouse.serve(folder) as address:
                for name in names:
                    run = lighthouse.audit(program, address + name)
                    found.setdefault((site, name), []).append(run)
                    print(f"run {number + 1}: {site} {name} {run['performance']}", file=sys.stderr)
    return {key: lighthouse.median(several) for key, several in found.items()}


def missed(name: str, run: dict) -> list[str]:
    """The limits that a page of ours misses."""
    wanted = {
        f"{run['KB']:.0f} KB, more than {LIMIT_KB}": run["KB"] <= LIMIT_KB,
        f"performance below {LIMIT_PERFORMANCE}": run["performance"] >= LIMIT_PERFORMANCE,
        f"accessibility below 100 ({', '.join(run['failed'])})": run["accessibility"] == 100,
        "requests to other hosts": run["elsewhere"] == 0,
    }
    return [f"{name}: {problem}" for problem, holds in wanted.items() if not holds]


def table(found: dict[tuple[str, str], dict]) -> str:
    """The results, a line for each page."""
    columns = [*lighthouse.CATEGORIES, "KB", "requests", "elsewhere", "FCP ms", "LCP ms", "TBT ms"]
    lines = [f"{'':28}" + "".join(f"{name.split('-')[0][:11]:>12}" for name in columns)]
    for (site, name), run in found.items():
        lines.append(f"{site:6}{name:22}" + "".join(f"{run[c]:12.0f}" for c in columns))
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Measure the built site, or the folder given, against the peer."""
    ours = Path(arguments[0]) if arguments else ROOT / "_build" / "html"
    if not (ours / "index.html").exists():
        sys.exit(f"{ours} holds no built book: run `make book` first")
    sites = {"ours": ours, "peer": peer_book.build(ROOT / "_build" / "peer")}
    found = measure(sites, pages(ours), RUNS)
    print(f"Lighthouse {lighthouse.VERSION}, mobile, median of {RUNS}; gzip; no other host\n")
    print(table(found))
    rows = [{"site": site, "page": name, **run} for (site, name), run in found.items()]
    (ROOT / "_build" / "bench-pages.json").write_text(json.dumps(rows, indent=1) + "\n")
    problems = [
        p for (site, name), run in found.items() if site == "ours" for p in missed(name, run)
    ]
    print("\n".join(["", *problems]) if problems else "\nEvery limit holds.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
