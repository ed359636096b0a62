"""The text of a recording of memory, and words for its blocks and phases.

It states what follows from the function alone: bytes by role at the ends of phases, the peak, and
what lived then. It does not state the number of events, which may depend on the number of threads.
The peak may too, in the backward of a convolution, in ``scaled_dot_product_attention`` and in
bfloat16 products on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..memory.blocks import Block
from ..memory.recording import MemoryRecording, Phase
from .tables import text_table
from .text import count, shape_words, short_name

MOST_PHASES = 12
"""Number of phases in the table. Of more, it shows the first and the last ones."""

MOST_BLOCKS = 6
"""Number of blocks that are listed: the largest ones."""


def text(recording: MemoryRecording) -> str:
    """The text alternative: a table of the phases, and what lives at the peak."""
    total = sum(recording.end.values())
    head = (
        f"memory on {recording.device}: {sum(recording.base.values()):,} bytes before, "
        f"at most {recording.peak_bytes:,}, {total:,} after"
    )
    where = peak_words(recording)
    listed = lines(recording.live_at_peak)
    return "\n".join([head, table(recording), f"at the peak{where and ', ' + where}:", *listed])


def peak_words(recording: MemoryRecording) -> str:
    """Where the peak is: ``in the backward, aten::mm``. Empty if it is before the first event."""
    peak = recording.peak
    words = [f"in the {peak.phase}"] * bool(peak.phase not in ("", "after"))
    words += ["after the last backward or step"] * (peak.phase == "after")
    return ", ".join(words + [peak.op] * bool(peak.op))


def table(recording: MemoryRecording) -> str:
    """Bytes by role before the first event, at the end of each phase, and at the peak."""
    roles = [role for role in recording.roles if any(recording.series(role))]
    rows = [["", *roles, "total"], _row("before", recording.base, roles)]
    phases: list[Phase | None] = list(recording.phases)
    if len(phases) > MOST_PHASES:
        half = MOST_PHASES // 2
        phases[half:-half] = [None]
    for phase in phases:
        if phase is None:
            left_out = count(len(recording.phases) - MOST_PHASES, "more phase")
            rows.append([f"… {left_out}", *[""] * (len(roles) + 1)])
        else:
            rows.append(_row(phase.name, phase.after, roles))
    rows.append(_row("at the peak", recording.peak.by_role, roles))
    return text_table(rows, range(1, len(rows[0])))


def _row(name: str, by_role: dict[str, int], roles: list[str]) -> list[str]:
    numbers = [by_role.get(role, 0) for role in roles]
    return [name, *(f"{n:,}" if n else "·" for n in numbers), f"{sum(by_role.values()):,}"]


def lines(blocks: Iterable[Block], most: int = MOST_BLOCKS) -> list[str]:
    """The largest blocks, one per line, and one line for the rest."""
    blocks = list(blocks)
    listed = [f"  {b.bytes:>13,}  {b.role:<10}  {block_words(b)}".rstrip() for b in blocks[:most]]
    rest = blocks[most:]
    if rest:
        listed.append(f"  {sum(b.bytes for b in rest):>13,}  in {count(len(rest), 'more block')}")
    return listed


def block_words(block: Block) -> str:
    """What a block is, and which operation made it, as far as that is known."""
    words = [short_name(block.name)] * bool(block.name) + [shape_words(block.shape)] * bool(
        block.shape
    )
    if not block.name and block.op:
        words.append(f"made by {block.op}")
    return " ".join(words)
