"""The error for a PyTorch that lacks something which the lens reads."""

from __future__ import annotations

import torch


class LensUnsupported(RuntimeError):
    """This PyTorch lacks something that the lens reads; the message says what."""


def unsupported(what: str) -> LensUnsupported:
    """The error that says that ``what`` is missing."""
    return LensUnsupported(
        f"torch {torch.__version__} has no {what}; autograd_lens supports torch 2.11 to 2.15"
    )
