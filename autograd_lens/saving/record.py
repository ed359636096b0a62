"""What a node saved, and the storage behind it, as plain data: numbers and names, no tensor."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

ROLES = ("activation", "parameter", "buffer", "input")
"""Whose memory a storage is; an activation is what is none of the others."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A piece of memory that saved tensors or leaves of a graph live in.

    Attributes:
        bytes: its size in bytes.
        role: one of ``ROLES``.
        names: the reader's names for tensors in it; a leaf without a name is ``"leaf 1"``.
    """

    bytes: int
    role: str
    names: tuple[str, ...]

    @property
    def owner(self) -> str | None:
        """All names as one, ``"a = b"``; None where there is none."""
        return " = ".join(self.names) or None


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One tensor that a node keeps for its backward, or the empty place where it was.

    Rests on ``torch/csrc/autograd/saved_variable.h``.

    Attributes:
        node: index of the node; ``name`` its ``grad_fn.name()``.
        field: name of the place in the node, as in ``_saved_self``: ``"self"``; entries of a list
            are ``"tensors[0]"``, an attribute set on ``ctx`` is ``"ctx.name"``, and what a recorder
            saw an opaque node save is ``"recorded[0]"``.
        shape, dtype, device: of the tensor; None when there is none, or a hook packed it.
        bytes: what its elements occupy (elements times item size; all components if sparse).
        storages: numbers of the storages behind it. Equal numbers mean shared memory. If a hook
            packed it, those that the packed object and the unpack hook keep alive (a checkpoint:
            its inputs).
        storage_bytes: size of those storages in bytes: what is really kept alive.
        role: one of ``ROLES``; None when nothing is kept.
        owner: name of the parameter, buffer, input or named tensor whose memory it is, or None.
        version: the version counter now, or None where there is none.
        saved_version: the version counter when the tensor was saved. If the two differ, the node
            raises when it runs. None when it is unknown: for what a hook packed, for an attribute
            of ``ctx``, and in a list for a result (on torch 2.11 for any changed tensor).
        freed: a backward has freed it.
        packed: a saved-tensor hook put something else in its place; ``kind`` says what.
        kind: the type of what is kept: ``"Tensor"``, or what the pack hook returned.
    """

    node: int
    name: str
    field: str
    shape: tuple[int | str, ...] | None = None
    dtype: torch.dtype | None = None
    device: str | None = None
    bytes: int = 0
    storages: tuple[int, ...] = ()
    storage_bytes: int = 0
    role: str | None = None
    owner: str | None = None
    version: int | None = None
    saved_version: int | None = None
    freed: bool = False
    packed: bool = False
    kind: str = ""

    @property
    def label(self) -> str:
        """The name of the node without a C++ namespace."""
        return self.name.rpartition("::")[2]

    @property
    def stale(self) -> bool:
        """True when the tensor was changed in place after it was saved: its node will raise."""
        return self.saved_version is not None and self.saved_version != self.version

    @property
    def empty(self) -> bool:
        """True when nothing is kept here: it was freed, or never needed."""
        return not self.kind

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, strings and lists, ready for JSON or a data frame."""
        row = {f.name: getattr(self, f.name) for f in fields(self)}
        row |= {"label": self.label, "stale": self.stale, "storages": list(self.storages)}
        row["shape"] = None if self.shape is None else list(self.shape)
        row["dtype"] = None if self.dtype is None else str(self.dtype).removeprefix("torch.")
        return row
