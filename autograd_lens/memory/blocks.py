"""Account for memory: from events and claims to blocks with a role, and the bytes live after each.

Pure data in, pure data out. A block has one role for its whole life: the first snapshot that finds
it decides, except that a gradient may have been an activation before. A block that no snapshot
found is temporary, or kept if it is still there at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch

from .events import Border, Change, Mark
from .roles import ROLES, Claim, Claims


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of memory from its allocation to its end.

    Attributes:
        role: one of ``ROLES``.
        bytes: its size.
        name: what it is where that is known: the name of a parameter, ``"grad of weight"``,
            ``"exp_avg of weight"``, ``"ReluBackward0.result"`` (the first node that saved it, and
            where); empty for others.
        shape, dtype: of the tensor that was found in it, or None.
        op: the operation that made it; empty if it is older than the recording.
        phase: in which it was made; empty likewise.
        born, died: the events at which it came and went; -1 if it is older than the recording, and
            None if it is still there at its end.
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
    phase: str = ""
    born: int = -1
    died: int | None = None
    claim: Claim | None = None

    def finished(self) -> Block:
        claim = self.claim
        if claim is None:
            role = "kept" if self.died is None else "temporary"
            claim = Claim(role, self.bytes, "", None, None)
        return Block(
            claim.role, self.bytes, claim.name, claim.shape, claim.dtype,
            self.op, self.phase, self.born, self.died,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gone:
    """A snapshot that says: the memory at this address, older than the recording, was let go."""

    address: int


@dataclass
class Account:
    """What came of the events.

    Attributes:
        blocks: in order of their birth.
        events: for each event its operation, its phase number, the block, and the change in bytes.
        phases: name of each phase, in order.
    """

    blocks: list[Block] = field(default_factory=list)
    events: list[tuple[str, int, int, int]] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)


def account(
    stream: Iterable[Change | Mark | Border], snapshots: Mapping[int, Claims | Gone], before: Claims
) -> Account:
    """Follow every block through ``stream``.

    Args:
        stream: the events in order of time.
        snapshots: what each mark found, by its number.
        before: what was there at the start.
    """
    clerk = _Clerk(before)
    for event in stream:
        if isinstance(event, Change):
            clerk.change(event)
        elif isinstance(event, Border):
            clerk.border(event)
        elif isinstance(found := snapshots[event.number], Gone):
            clerk.gone(found.address)
        else:
            clerk.claims(found)
    return clerk.closed()


_ONES = "aten::ones_like"


class _Clerk:
    def __init__(self, before: Claims):
        self.drafts: list[_Draft] = []
        self.live: dict[int, int] = {}
        self.old: set[int] = set()
        self.events: list[tuple[str, int, int, int]] = []
        self.phases: list[str] = ["outside"]
        self.depth = 0
        self.claims(before, first=True)

    def change(self, change: Change) -> None:
        if change.bytes > 0:
            draft = _Draft(change.bytes, change.op, born=len(self.events))
            self.live[change.address] = len(self.drafts)
            self.drafts.append(draft)
            self._event(change.op, len(self.drafts) - 1, change.bytes)
        elif change.address in self.live:
            self._free(change.address, change.op)
        # else: older than the recording, and nobody knew of it: it was never counted

    def gone(self, address: int) -> None:
        """The profiler tells of the end of older memory only if an earlier profile saw it begin."""
        if address in self.old and address in self.live:
            self._free(address, "")

    def claims(self, found: Claims, first: bool = False) -> None:
        for address, claim in found.items():
            number = self.live.get(address)
            if number is None:  # older than the recording, else it would be here
                number = self.live[address] = len(self.drafts)
                self.drafts.append(_Draft(claim.bytes))
                self.old.add(address)
                if claim.role == "activation" and not (first or claim.older):
                    claim = Claim("input", claim.bytes, claim.name, claim.shape, claim.dtype)
            draft = self.drafts[number]
            known = draft.claim and draft.claim.role
            if known is None or (known, claim.role) == ("activation", "gradient"):
                draft.claim = claim

    def border(self, border: Border) -> None:
        """The outermost range counts: a backward inside a step (L-BFGS) belongs to the step."""
        self.depth += 1 if border.begins else -1
        if self.depth == (1 if border.begins else 0):
            self.phases.append(border.phase if border.begins else "outside")

    def closed(self) -> Account:
        self._starting_gradients()
        phases = _named(self.phases, {phase for _, phase, _, _ in self.events})
        for draft in self.drafts:
            if draft.born >= 0:
                draft.phase = phases[self.events[draft.born][1]]
        return Account([draft.finished() for draft in self.drafts], self.events, phases)

    def _starting_gradients(self) -> None:
        """The ones that a backward starts from are made just before it, and freed just after."""
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
    """What is outside of a backward or a step leads to one (forward), or comes after it.

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
