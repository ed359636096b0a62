"""The atlas as data, and as the file it is stored in.

The file is JSON with one op to a line, so that a change of one op is a change of one line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from .observe import KINDS, Observed


class BadAtlas(ValueError):
    """A file holds no atlas; the message says what is wrong with it, and what to do."""


@dataclass(frozen=True)
class Row:
    """One op.

    Attributes:
        op: its name in the database, a variant after a dot.
        sample: number of the sample that was run.
        inputs: the tensors of that sample in words; ``fixed`` are those without requires_grad.
        seen: what it recorded, or None where it recorded nothing.
        reason: why it recorded nothing.
    """

    op: str
    sample: int = 0
    inputs: tuple[str, ...] = ()
    seen: Observed | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data, as it is stored."""
        if self.seen is None:
            return {"no graph": self.reason}
        plain = {"sample": self.sample, "inputs": self.inputs} | asdict(self.seen)
        return json.loads(json.dumps(plain))

    @property
    def saved_bytes(self) -> int:
        """Bytes of all storages that it is seen to save, each counted once."""
        return sum(self.seen.bytes.values()) if self.seen else 0

    @property
    def kinds(self) -> str:
        """What it saves in words: ``"input, output"``, ``"nothing"``."""
        return ", ".join(self.seen.kinds) or "nothing" if self.seen else "no graph"


@dataclass(frozen=True)
class Atlas:
    """What ops save, by running them.

    Attributes:
        torch: the version that ran them.
        formulas: ``{node: {input: formula}}`` from that version's ``derivatives.yaml``.
        ops: rows by name, in alphabetical order.
    """

    torch: str
    formulas: dict[str, dict[str, str]]
    ops: dict[str, Row] = field(default_factory=dict)

    def __getitem__(self, op: str) -> Row:
        return self.ops[op]

    def recorded(self) -> list[Row]:
        """The rows of ops that recorded a graph."""
        return [row for row in self.ops.values() if row.seen]

    def reasons(self) -> dict[str, list[str]]:
        """Why other ops recorded nothing, the most frequent reason first."""
        found: dict[str, list[str]] = {}
        for row in self.ops.values():
            if not row.seen:
                found.setdefault(row.reason, []).append(row.op)
        return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))

    def words(self, op: str) -> str:
        """Everything about one op, as text."""
        return "\n".join(details(self, self.ops[op]))

    def to_json(self) -> str:
        """The text of the file."""
        formulas = _lines(self.formulas)
        ops = _lines({name: row.to_dict() for name, row in self.ops.items()})
        return (
            f'{{"torch": "{self.torch}",\n"formulas": {{\n{formulas}\n}},\n"ops": {{\n{ops}\n}}}}\n'
        )

    def __str__(self) -> str:
        recorded = self.recorded()
        counted = Counter(row.kinds for row in recorded)
        saves = "\n".join(f"  {number:4} {kinds}" for kinds, number in counted.most_common())
        return (
            f"Atlas of torch {self.torch}: {len(self.ops)} ops, {len(recorded)} record a graph\n"
            f"saved by them:\n{saves}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .table import table_html

        return table_html(self)


def details(atlas: Atlas, row: Row) -> Iterable[str]:
    """The lines of text behind a row: its sample, its nodes, what they save, their formulas."""
    if row.seen is None:
        yield f"{row.op}: no graph, {row.reason}"
        return
    seen = row.seen
    yield f"{row.op}, sample {row.sample}: {'; '.join(row.inputs)}"
    for node, saved in seen.nodes:
        yield node if saved else f"{node} saves nothing"
        yield from (f"  {place}: {what}" for place, what in saved.items())
    sizes = ", ".join(f"{origin} {size} B" for origin, size in seen.bytes.items()) or "0 B"
    yield f"saved: {sizes}; outputs: {seen.output_bytes} B, {_MEMORY.get(seen.view, seen.view)}"
    yield (
        f"backward: {_yes(seen.backward)}; twice: {_yes(seen.double)}; "
        f"forward mode: {_yes(seen.forward)}"
    )
    for node in dict.fromkeys(node for node, _ in seen.nodes):
        for name, text in atlas.formulas.get(node, {}).items():
            yield f"{node} {name} = {text}"


_MEMORY = {"new": "new memory", "view": "a view", "input": "the input itself"}


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "the gradient depends on nothing"}[value]


def _lines(mapping: dict[str, Any]) -> str:
    dumps = json.dumps
    return ",\n".join(
        f"{dumps(key)}: {dumps(value, ensure_ascii=False)}" for key, value in mapping.items()
    )


def load(path: str | Path | None = None) -> Atlas:
    """Read a stored atlas: by default the one of this package.

    Raises:
        BadAtlas: the file can't be read, or holds something else.
    """
    source = files(__package__).joinpath("atlas.json") if path is None else Path(path)
    again = "write it anew with `make atlas`"
    try:
        plain = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadAtlas(f"{source}: {error.strerror}; {again}") from error
    except ValueError as error:
        raise BadAtlas(f"{source} is not JSON ({error}); {again}") from error
    try:
        version, formulas, ops = plain["torch"], plain["formulas"], plain["ops"]
        rows = {name: _row(name, row) for name, row in ops.items()}
    except BadAtlas as error:
        raise BadAtlas(f"{source}: {error}; {again}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise BadAtlas(f"{source} holds no atlas (no torch, formulas, ops); {again}") from error
    return Atlas(version, formulas, rows)


_SEEN = {one.name for one in fields(Observed)}


def _row(name: str, row: dict[str, Any]) -> Row:
    """One row of a file; complains about what no atlas writes."""
    if set(row) == {"no graph"}:
        return Row(name, reason=row["no graph"])
    wanted = _SEEN | {"sample", "inputs"}
    if wrong := wanted ^ set(row):
        which = "lacks" if wrong & wanted else "has an unknown"
        raise BadAtlas(f"op {name!r} {which} {min(wrong & wanted or wrong)!r}")
    if unknown := set(row["kinds"]) - set(KINDS):
        raise BadAtlas(f"op {name!r} saves {min(unknown)!r}, which is none of {', '.join(KINDS)}")
    row = dict(row)
    sample, inputs = row.pop("sample"), tuple(row.pop("inputs"))
    row["nodes"] = tuple((node, saved) for node, saved in row["nodes"])
    row["kinds"] = tuple(row["kinds"])
    return Row(name, sample, inputs, Observed(**row))
