"""Backwards recorded while other threads use PyTorch: prints what was found, as JSON.

A program of its own, since what it looks for may end the process. ``python stress.py own RUNS
RECORDERS``: each thread records a model of its own. ``python stress.py shared RUNS RECORDERS
TRAINERS``: they record one model, which others train meanwhile.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import nn

import autograd_lens as lens

Work = Callable[[], None]
INPUT = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(4, 6)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Linear(6, 6), nn.Tanh())]
    return nn.Sequential(*layers).double()


def loss_of(net: nn.Sequential) -> torch.Tensor:
    return net(INPUT).square().sum()


class Stress:
    """Counts what threads find; right is what a recording gives with no thread beside it."""

    def __init__(self) -> None:
        net = model()
        self.order = [step.node for step in lens.record_backward(loss_of(net)).steps]
        self.grads = [parameter.grad for parameter in net.parameters()]
        self.found: Counter[str] = Counter()
        self.counting = threading.Lock()

    def note(self, what: str) -> None:
        with self.counting:
            self.found[what] += 1

    def record(self, net: nn.Sequential) -> None:
        """One recording."""
        try:
            steps = lens.record_backward(loss_of(net), names=net).steps
        except Exception as error:
            self.note(f"recording: {error!r}")
            return
        self.note("recorded")
        if [step.node for step in steps] != self.order:
            self.note("wrong steps")
        if [step.number for step in steps] != list(range(1, len(steps) + 1)):
            self.note("wrong numbers")
        if steps and steps[-1].saved_bytes:
            self.note("wrong saved bytes")

    def record_alone(self, net: nn.Sequential) -> None:
        """One recording of a model that no other thread has."""
        net.zero_grad()
        self.record(net)
        if not self.right(parameter.grad for parameter in net.parameters()):
            self.note("wrong gradients")

    def train(self, net: nn.Sequential) -> None:
        """A backward and a ``grad`` without the lens."""
        try:
            loss_of(net).backward()
            apart = torch.autograd.grad(loss_of(net), list(net.parameters()))
        except Exception as error:
            self.note(f"training: {error!r}")
            return
        self.note("trained")
        if not self.right(apart):
            self.note("training: wrong gradients")

    def right(self, grads) -> bool:
        return all(map(torch.equal, grads, self.grads))

    def together(self, recorders: Sequence[Work], runs: int, trainers: Sequence[Work] = ()) -> None:
        """Start all at once; recorders work so many times, trainers until they are done."""
        start, over = threading.Barrier(len(recorders) + len(trainers)), threading.Event()

        def record(work: Work) -> None:
            start.wait()
            for _ in range(runs):
                work()

        def train(work: Work) -> None:
            start.wait()
            while not over.is_set():
                work()

        recording = [threading.Thread(target=record, args=(work,)) for work in recorders]
        training = [threading.Thread(target=train, args=(work,)) for work in trainers]
        for thread in recording + training:
            thread.start()
        for thread in recording:
            thread.join()
        over.set()
        for thread in training:
            thread.join()


def own(runs: int, recorders: int) -> Counter[str]:
    """Each thread records a model of its own."""
    stress = Stress()
    nets = [model() for _ in range(recorders)]
    stress.together([lambda net=net: stress.record_alone(net) for net in nets], runs)
    return stress.found


def shared(runs: int, recorders: int, trainers: int) -> Counter[str]:
    """All threads share the parameters, so every backward adds to the same ``.grad``."""
    stress, net = Stress(), model()
    stress.together(
        [lambda: stress.record(net)] * recorders, runs, [lambda: stress.train(net)] * trainers
    )
    times = stress.found["recorded"] + stress.found["trained"]
    for parameter, grad in zip(net.parameters(), stress.grads, strict=True):
        if not torch.allclose(parameter.grad, times * grad, rtol=1e-9, atol=1e-12):
            stress.note("wrong sum of gradients")
    return stress.found


def main(kind: str, *numbers: int) -> None:
    print(json.dumps({"own": own, "shared": shared}[kind](*numbers)))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
