"""What each backward node must save, read from the formulas of `derivatives.yaml` alone.

A second reader of that file, which shares nothing with `autograd_lens.graphs.formulas` and runs no
operation. A node needs a tensor that its formulas name, unless they ask only for its size or type:
of these the generator keeps numbers instead of the tensor (the replacements in
`tools/autograd/load_derivatives.py` of PyTorch).
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

# After a name, or around it: what needs no tensor.
AFTER = re.compile(
    r"\b(\w+)(?:\.|->)(?:sym_)?(?:sizes|size|strides|numel|options|scalar_type|dim|layout|is_conj|"
    r"blocksize)\([^()]*\)"
)
AROUND = re.compile(
    r"\b(?:zeros_like|to_args_sizes(?:_symint)?|to_args_scalartypes|TensorGeometry)\((\w+)\)"
)
COMMENT = re.compile(r"/\*.*?\*/")


@dataclass(frozen=True)
class Needs:
    """What one node keeps, by the names that its formulas use."""

    inputs: tuple[str, ...]  # tensor arguments in order
    outputs: tuple[str, ...]  # names of results in order, as formulas may spell them
    optional: frozenset[str]  # arguments that may be absent
    by_input: dict[str, frozenset[str]]  # names that the formula of each input uses
    formulas: dict[str, str]

    @property
    def all(self) -> frozenset[str]:
        return frozenset().union(*self.by_input.values())


@cache
def needs() -> dict[str, Needs]:
    """Every generated node with what its formulas need."""
    (folder,) = importlib.util.find_spec("torchgen").submodule_search_locations
    text = Path(folder, "packaged/autograd/derivatives.yaml").read_text("utf-8")
    found: dict[str, Needs] = {}
    counts: Counter[str] = Counter()
    for entry in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        signature = entry["name"]
        base = re.match(r"\w+", signature)[0]
        arguments = re.findall(
            r"[(,] *(Tensor[^ ]*) (\w+)", signature.partition(" -> ")[0].replace("*, ", "")
        )
        names = {
            name for _, name in re.findall(r"([\w\[\]?!()]+) (\w+)(?:=[^,)]*)?[,)]", signature)
        }
        for key, formulas in entry.get("dispatch", {"Default": entry}).items():
            real = {
                name: " ".join(COMMENT.sub("", str(formula)).split())
                for several, formula in formulas.items()
                for name in re.split(r", *", several)
                if name in names and str(formula) not in ("non_differentiable", "None")
            }
            if not real:
                continue
            node = "".join(part.title() for part in base.split("_")) + "Backward"
            node = node.replace("ForwardBackward", "Backward") + ("" if key == "Default" else key)
            tensors = tuple(name for _, name in arguments)
            outputs = _outputs(signature)
            known = {*tensors, *outputs}
            uses = {
                name: frozenset(re.findall(r"\w+", AROUND.sub("", AFTER.sub("", formula)))) & known
                for name, formula in real.items()
            }
            optional = frozenset(n for kind, n in arguments if kind.endswith("?"))
            found[f"{node}{counts[node]}"] = Needs(tensors, outputs, optional, uses, real)
            counts[node] += 1
    return found


def _outputs(signature: str) -> tuple[str, ...]:
    """The results as formulas call them: by their name, else `result`, `result0`, `result1`."""
    returned = signature.rpartition(" -> ")[2].strip()
    parts = returned.strip("()").split(", ") if returned.startswith("(") else [returned]
    if len(parts) == 1:
        return (parts[0].split()[1],) if " " in parts[0] else ("result",)
    return tuple(
        part.split()[1] if " " in part else f"result{number}" for number, part in enumerate(parts)
    )
