"""Write contact sheets of the book's figures and pages, and say what can be measured to be wrong.

    python -m tools.look [PAGE ...] [--site FOLDER] [--out FOLDER]      (default: all pages)

Every figure is drawn in its opening and its last state and measured in each; every page is drawn
whole. Both at 390 and 1,280 px in both themes. Open the sheets: what is measured is the least.
The exit status is 0 where nothing was found, 1 where something was, and 2 where it can't look.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from tools.browsing import Browsing, serve
from tools.look.album import look_at_page, write_sheets
from tools.look.index import index_html
from tools.look.problems import Problem, summary
from tools.look.site import BadUsage, chosen
from tools.programs import find_program
from tools.repository import ROOT, site_address


def main(arguments: list[str]) -> int:
    """Look at what the command line names; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.look",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as book/01_tape")
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "html", metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "look", metavar="FOLDER")
    asked = parser.parse_args(arguments)
    begun = time.perf_counter()
    try:
        names = chosen(asked.site, asked.pages)
        program = find_program("chromium")
        if not program:
            raise BadUsage("there is no Chromium on the PATH: `make env` says how to get one")
        prepare_folder(asked.out)
    except BadUsage as error:
        print(f"look: {error}", file=sys.stderr)
        return 2
    with Browsing(program) as browsing:
        problems = look(browsing, asked.site, names, asked.out)
    print(summary(problems) or "Nothing that can be measured is wrong.")
    took = time.perf_counter() - begun
    print(f"{took:.0f} s. Open the sheets: {asked.out / 'index.html'}")
    return 1 if problems else 0


def prepare_folder(out: Path) -> None:
    """Make the folder, and take away the sheets of an earlier run.

    Raises:
        BadUsage: it can't be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for kind in ("figures", "page"):
            for old in out.glob(f"*-{kind}-*.png"):
                old.unlink()
    except OSError as error:
        raise BadUsage(f"{out} can't be written to: {error}") from error


def look(browsing: Browsing, site: Path, names: list[str], out: Path) -> list[Problem]:
    """Look at pages of a site, write sheets and index, and give the problems."""
    problems: list[Problem] = []
    paths: dict[str, list[Path]] = {}
    with serve(site, urlsplit(site_address()).path) as address:  # 404.html has absolute links
        for name in names:
            begun = time.perf_counter()
            print(f"{name}: ", end="", flush=True)
            looked = look_at_page(browsing, address, name)
            paths[name] = write_sheets(looked, out)
            problems += looked.problems
            print(
                f"{len(looked.states)} figures, {sum(looked.states)} states, {len(paths[name])} "
                f"sheets, {len(looked.problems)} problems, {time.perf_counter() - begun:.1f} s"
            )
    (out / "index.html").write_text(index_html(paths, problems), encoding="utf-8")
    return problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
