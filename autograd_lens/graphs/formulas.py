"""The derivative formula behind a node, from the ``derivatives.yaml`` of the installed PyTorch.

PyTorch generates ``MmBackward0`` and its like from that file
(``tools/autograd/load_derivatives.py`` in its sources): the n-th entry for an operator ``mm``
becomes ``MmBackward<n>``. The same count is made here, so the formula shown is the one that was
compiled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

import yaml

from .. import _torch

_NONE: Mapping[str, str] = {}


def formula(node_name: str) -> Mapping[str, str]:
    """Return ``{input: formula}`` for a node such as ``"MmBackward0"``.

    Empty when the node was not generated from an entry of its own (leaves, custom Functions,
    ``_foreach_`` operations, C++ classes written by hand) or the installation has no such file.
    """
    return _table().get(node_name.removesuffix("_copy"), _NONE)


@cache
def _table() -> dict[str, Mapping[str, str]]:
    path = _torch.derivatives_file()
    if path is None:
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    table: dict[str, Mapping[str, str]] = {}
    seen: Counter[str] = Counter()
    for entry in yaml.load(path.read_text(), Loader=loader):
        operator = re.split(r"[.(]", entry["name"])[0]
        inputs = set(
            re.findall(r"(\w+)(?:=[^,]*)?\s*[,)]", entry["name"].rpartition(") ->")[0] + ")")
        )
        # One entry may hold formulas for several autograd keys; each makes a node of its own.
        for key, by_input in entry.get("dispatch", {"Default": entry}).items():
            formulas = {
                single: " ".join(str(text).split())
                for several, text in by_input.items()
                for single in several.replace(" ", "").split(",")
                if single in inputs and str(text) not in ("non_differentiable", "None")
            }
            if not formulas:
                continue
            prefix = _prefix(operator) + ("" if key == "Default" else key)
            table[f"{prefix}{seen[prefix]}"] = formulas
            seen[prefix] += 1
    return table


def _prefix(operator: str) -> str:
    """``_log_softmax`` → ``LogSoftmaxBackward``, spelled as the generator does."""
    camel = "".join(part.title() for part in operator.split("_"))
    return (camel + "Backward").replace("ForwardBackward", "Backward")
