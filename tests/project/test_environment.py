"""The three lists of packages agree: pyproject.toml, constraints.txt, environment.yml."""

from __future__ import annotations

import re
from importlib import metadata

import pytest
import tomllib
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
GROUPS = PROJECT["optional-dependencies"]
DIRECT = [
    Requirement(line) for lines in [PROJECT["dependencies"], *GROUPS.values()] for line in lines
]
# Built with torch and named by it; not in the list, see its head.
CUDA = re.compile(r"nvidia-|cuda-|triton")


def pins() -> dict[str, Requirement]:
    """The lines of constraints.txt by package."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    assert len({canonicalize_name(pin.name) for pin in found}) == len(found), "a package twice"
    return {canonicalize_name(pin.name): pin for pin in found}


def version(pin: Requirement) -> Version:
    """The one version that a pin allows."""
    (specifier,) = pin.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, f"{pin} is no exact pin"
    return Version(specifier.version)


def conda() -> tuple[list[str], list[str]]:
    """The packages of environment.yml: from conda, and from pip."""
    found = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    (pip,) = [entry["pip"] for entry in found if isinstance(entry, dict)]
    return [entry for entry in found if isinstance(entry, str)], pip


def test_pins_are_exact_and_public():
    for pin in pins().values():
        assert pin.url is None
        assert version(pin).local is None, f"{pin} names a build of one platform"


@pytest.mark.parametrize("wanted", DIRECT, ids=str)
def test_what_is_wanted_is_pinned(wanted):
    pin = pins()[canonicalize_name(wanted.name)]
    assert wanted.specifier.contains(version(pin))
    assert pin.marker is None


def test_jupyter_book_is_of_the_first_generation():
    assert version(pins()["jupyter-book"]) < Version("2")
    (wanted,) = [wanted for wanted in DIRECT if wanted.name == "jupyter-book"]
    assert not wanted.specifier.contains("2.0.0")


def test_opening_a_notebook_compiles_no_grammar():
    """`rfc3987-syntax` does on import, in each of pytest's processes; nothing here needs it."""
    assert "rfc3987-syntax" not in pins()


def test_runtime_needs_nothing_else():
    names = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert names == {"torch", "graphviz", "matplotlib", "ipywidgets", "pyyaml"}


def test_everything_installed_for_them_is_pinned_at_its_version():
    """Follow what the wanted packages want, as far as it is installed here."""
    pinned, seen = pins(), set()
    todo = [(canonicalize_name(wanted.name), wanted.extras) for wanted in DIRECT]
    while todo:
        name, extras = todo.pop()
        if (name, frozenset(extras)) in seen or CUDA.match(name):
            continue
        seen.add((name, frozenset(extras)))
        installed = metadata.distribution(name)
        assert name in pinned, f"add {name}=={installed.version} to constraints.txt"
        here = Version(installed.version)
        assert version(pinned[name]) == Version(here.public), (
            f"{name} is {here} here and {version(pinned[name])} in constraints.txt: "
            "run `make env`, or set the pin"
        )
        for line in installed.requires or []:
            needs = Requirement(line)
            marker = needs.marker
            if not marker or any(marker.evaluate({"extra": extra}) for extra in ["", *extras]):
                todo.append((canonicalize_name(needs.name), needs.extras))
    assert len(seen) > 100


def test_conda_environment_has_the_same_versions():
    _, pip = conda()
    named = {canonicalize_name(Requirement(line).name): line for line in pip if line[0] != "-"}
    pinned = pins()
    assert set(named) == {canonicalize_name(wanted.name) for wanted in DIRECT}
    for name, line in named.items():
        assert version(Requirement(line)) == version(pinned[name])
    assert {"-c constraints.txt", "-e ."} <= set(pip)


def test_conda_environment_brings_python_and_dot():
    packages, _ = conda()
    assert {"python=3.11", "graphviz", "pip"} == set(packages)


def test_python_versions_agree():
    assert PROJECT["requires-python"] == ">=3.10"
    assert "(3, 11) <= v <= (3, 13)" in (ROOT / "Makefile").read_text("utf-8")
    assert "3.11 to 3.13" in (ROOT / "README.md").read_text("utf-8")
