"""Account for memory: from events and claims to blocks with a role.

Plain data goes in and comes out. A block has one role for its whole life: that of the first
snapshot that finds it. Two roles may follow on weaker ones (``_FOLLOWS``). A block that no snapshot
found is temporary, or kept if it is still alive at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch

from .events import Change, Event, PhaseBoundary
from .roles import ROLES, Claim, Claims


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of memory from its allocation until it is freed.

    Attributes:
        role: one of ``ROLES``.
        bytes: its size in bytes.
        name: the name of a parameter, ``"grad of weight"``, ``"exp_avg of weight"``, or
            ``"ReluBackward0.result"``: the first node that saved it, and in which field. Empty
            where nothing is known.
        shape, dtype: of the tensor that was found in it, or None.
        op: the operation that allocated it; empty if it is older than the recording.
        phase: in which it was allocated; empty if it is older than the recording.
        born, died: the events at which it was allocated and freed. ``born`` is -1 if it is older
            than the recording, ``died`` is None if it is still alive at the end.
    """

    role: str
    bytes: int
    name: str
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None
    op: str
    phase: str
    born: int
    died: int | None


@dataclass(slots=True)
class _Draft:
    """A block whose role and end are not known yet."""

    bytes: int
    op: str = ""
    born: int = -1
    died: int | None = None
    claim: Claim | None = None
    role: str = ""

    def finished(self, phase: str) -> Block:
        role = self.role or ("kept" if self.died is None else "temporary")
        claim = self.claim or _UNKNOWN
        return Block(
            role, self.bytes, claim.name, claim.shape, claim.dtype,
            self.op, phase, self.born, self.died,
        )  # fmt: skip


_UNKNOWN = Claim("", "", 0, "", None, None)


@dataclass(frozen=True, slots=True)
class Freed:
    """A snapshot of one fact: the memory at this address, older than the recording, was freed."""

    address: int


@dataclass(frozen=True)
class Account:
    """The events put together.

    Attributes:
        blocks: in order of allocation.
        events: for each event its operation, the number of its phase, the number of its block, and
            the change in bytes.
        phases: name of each phase, in order.
    """

    blocks: tuple[Block, ...]
    events: list[tuple[str, int, int, int]]
    phases: list[str]


def account(
    events: Iterable[Event], snapshots: Mapping[int, Claims | Freed], before: Claims
) -> Account:
    """Follow every block through the events.

    Args:
        events: in order of time.
        snapshots: what was found at each mark, by its number.
        before: what was found before the first event.
    """
    book = _Book(before)
    for event in events:
        if isinstance(event, Change):
            book.change(event)
        elif isinstance(event, PhaseBoundary):
            book.boundary(event)
        elif isinstance(found := snapshots[event.number], Freed):
            book.freed(found.address)
        else:
            book.claims(found)
    return book.closed()


_ONES = "aten::ones_like"

_FOLLOWS = {"gradient": ("activation",), "parameter": ("activation", "input")}
"""Roles that a block may take after another one. A gradient may have been an activation before. A
tensor may turn out to be a parameter only when its optimizer runs."""


@dataclass(slots=True)
class _Book:
    before: Claims
    drafts: list[_Draft] = field(default_factory=list)
    live: dict[int, int] = field(default_factory=dict)
    old: set[int] = field(default_factory=set)
    events: list[tuple[str, int, int, int]] = field(default_factory=list)
    phases: list[str] = field(default_factory=lambda: ["outside"])
    depth: int = 0

    def __post_init__(self) -> None:
        self.claims(self.before)

    def change(self, change: Change) -> None:
        if change.bytes > 0:
            if change.address in self.live:  # freed by another thread, which nobody told
                self._free(change.address, "")
            draft = _Draft(change.bytes, change.op, born=len(self.events))
            self.live[change.address] = len(self.drafts)
            self.drafts.append(draft)
            self._event(change.op, len(self.drafts) - 1, change.bytes)
        elif change.address in self.live:
            self._free(change.address, change.op)
        # else: older than the recording and unknown, so it was never counted

    def freed(self, address: int) -> None:
        """The profiler tells that older memory is freed only if an earlier profile saw it made."""
        if address in self.old and address in self.live:
            self._free(address, "")

    def claims(self, found: Claims) -> None:
        for address, claim in found.items():
            number = self.live.get(address)
            role = claim.role
            if number is None:  # older than the recording, or it would be here
                number = self.live[address] = len(self.drafts)
                self.drafts.append(_Draft(claim.bytes))
                self.old.add(address)
                role = claim.role_if_older
            draft = self.drafts[number]
            if not draft.role or draft.role in _FOLLOWS.get(role, ()):
                draft.role, draft.claim = role, claim

    def boundary(self, boundary: PhaseBoundary) -> None:
        """The outermost range counts: a backward inside a step (L-BFGS) belongs to the step."""
        self.depth += 1 if boundary.begins else -1
        if self.depth == (1 if boundary.begins else 0):
            self.phases.append(boundary.phase if boundary.begins else "outside")

    def closed(self) -> Account:
        self._starting_gradients()
        phases = _named(self.phases, {phase for _, phase, _, _ in self.events})
        blocks = tuple(
            draft.finished(phases[self.events[draft.born][1]] if draft.born >= 0 else "")
            for draft in self.drafts
        )
        return Account(blocks, self.events, phases)

    def _starting_gradients(self) -> None:
        """A backward's first gradient is made just before it and freed just after: move it in."""
        spans: dict[int, tuple[int, int]] = {}
        for k, (_, phase, _, _) in enumerate(self.events):
            spans[phase] = spans.get(phase, (k, k))[0], k
        for number, (start, stop) in spans.items():
            if self.phases[number] != "backward":
                continue
            first, last, ones = start - 1, stop + 1, set()
            while first >= 0 and self.events[first][0] == _ONES and self.events[first][3] > 0:
                ones.add(self.events[first][2])
                first -= 1
            while last < len(self.events) and self.events[last][2] in ones:
                last += 1
            for k in range(first + 1, last):
                op, _, block, change = self.events[k]
                self.events[k] = op, number, block, change

    def _free(self, address: int, op: str) -> None:
        number = self.live.pop(address)
        self.old.discard(address)
        draft = self.drafts[number]
        draft.died = len(self.events)
        self._event(op, number, -draft.bytes)

    def _event(self, op: str, block: int, change: int) -> None:
        self.events.append((op, len(self.phases) - 1, block, change))


def _named(phases: list[str], used: set[int]) -> list[str]:
    """Name what is outside of a backward or a step.

    It is the forward if a backward follows or it is the first stretch, and ``"after"`` otherwise.
    A stretch in which nothing happened has no name.
    """
    named = list(phases)
    for number, phase in enumerate(phases):
        if phase == "outside":
            following = phases[number + 1] if number + 1 < len(phases) else ""
            forward = number == 0 or following == "backward"
            named[number] = ("forward" if forward else "after") if number in used else ""
    return named


def roles_used(blocks: Iterable[Block]) -> tuple[str, ...]:
    """The roles that occur, in the order of ``ROLES``."""
    met = {block.role for block in blocks}
    return tuple(role for role in ROLES if role in met)
