"""The film of a recording: what is drawn is what was recorded, and its text is short and stable."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_record_memory import MODELS, every_model, trained
from text_boxes import misplaced
from torch import nn

import autograd_lens as lens
from autograd_lens.memory.roles import ROLES
from autograd_lens.view.draw_record_memory import FRAMES, moments
from autograd_lens.view.figure import Frame
from autograd_lens.view.html import render_pictures
from autograd_lens.view.memory_picture import (
    LISTED,
    LOOKS,
    POINTS,
    Curve,
    Ruler,
    curve,
    picture,
)
from autograd_lens.view.sketch import Words
from autograd_lens.view.theme import follow_theme


def bytes_in(line):
    return int(re.search(r"[\d,]+", line)[0].replace(",", ""))


@every_model
def test_every_frame_shows_what_was_alive(name):
    recording, _, _ = trained(name)
    figure = recording.figure()
    [choice] = figure.choices
    frames = figure.frames()
    assert len(frames) == len(choice.values) <= FRAMES + 2
    for event, frame in zip(choice.values, frames, strict=True):
        sample = recording.at(event)
        head, *lines = frame.text.splitlines()
        assert f": {sample.total:,} bytes are alive" in head
        said = {line.split(":")[0].strip(): bytes_in(line) for line in lines if ": " in line}
        assert said == {role: size for role, size in sample.by_role.items() if size}
        listed = [bytes_in(line) for line in lines[lines.index("the largest:") + 1 :]]
        assert sum(listed) == sample.total, "the blocks in full, or the rest in one line"
        assert (frame.meter.value, frame.meter.total) == (sample.total, recording.peak_bytes)
        svg = frame.picture.svg()
        assert f"<title>here: {sample.total:,} bytes</title>" in svg
        assert f"<title>peak: {recording.peak_bytes:,} bytes</title>" in svg
        names = re.findall(r'data-lens="([^"]*)" class="\1"', svg)
        assert sorted(names) == ["node-now", "node-peak"]
        assert svg.count("<path") >= len(sample.by_role) and " id=" not in svg
        follow_theme(svg)  # raises where a colour has no role
    again = figure.draw(moment=choice.values[1])
    assert again == frames[1] and again.picture.svg() == frames[1].picture.svg()


@every_model
def test_the_film_stops_at_the_ends_of_phases_and_at_the_peak(name):
    recording, _, _ = trained(name)
    stops = moments(recording)
    assert stops == sorted(set(stops)) and stops[0] == -1
    assert {recording.peak_event, *(p.stop - 1 for p in recording.phases)} <= set(stops)
    words = [recording.figure().draw(moment=event).where for event in stops]
    assert words[0] == "before" and words.count("peak") == 1
    assert {"end of forward", "end of backward"} <= set(words)


@every_model
def test_the_curve_keeps_the_extremes(name):
    recording, _, _ = trained(name)
    drawn = curve(recording)
    assert drawn.peak[1] == recording.peak_bytes == max(drawn.stacked[-1])
    assert drawn.stacked[-1][0] == sum(recording.base.values())
    assert drawn.stacked[-1][-1] == sum(recording.end.values())
    assert drawn.xs == tuple(sorted(drawn.xs))
    assert drawn.xs[0] == 0 and drawn.xs[-1] == pytest.approx(1)
    assert len(drawn.xs) <= POINTS + 20
    for lower, upper in zip(drawn.stacked, drawn.stacked[1:], strict=False):
        assert all(a <= b for a, b in zip(lower, upper, strict=True))


@every_model
def test_no_text_of_either_layout_leaves_the_picture_or_meets_another(name):
    recording, _, _ = trained(name)
    for event in (-1, recording.peak_event, len(recording.samples) - 1):
        narrow = recording.figure().draw(moment=event).picture
        for layout in (narrow, narrow.wide):
            assert misplaced(layout) == []
            assert {mark.size for mark in layout.marks if isinstance(mark, Words)} <= {9, 10}
        assert narrow.wide.size[1] < narrow.size[1], "beside the curve it is lower"


def drawn(letters, roles=ROLES, points=POINTS + 20, steps=False):
    """A picture of as much as there can be."""
    places = tuple(k / (points - 1) for k in range(points))
    tops = [
        tuple(round(10**8 * (row + 1 + abs(math.sin(7 * k)))) for k in range(points))
        for row in range(len(roles))
    ]
    phases = tuple((name, k / 4, k / 4 + 0.25) for k, name in enumerate(PHASES))
    made = Curve(roles, places, tuple(tops), phases, (0.5, max(tops[-1])), steps)
    largest = ((roles[-1], letters),) * LISTED
    return picture(made, 0.3, (10**8,) * len(roles), largest)


PHASES = ("forward", "backward", "step", "after")


@pytest.mark.parametrize("letters", ["W" * 200, "layers.11.norm2.weight (64,)", ""])
def test_a_picture_of_much_keeps_its_texts_inside(letters):
    narrow = drawn(letters)
    assert misplaced(narrow) == misplaced(narrow.wide) == []


@pytest.mark.parametrize("steps", [False, True])
def test_two_frames_are_near_enough_for_gzip(steps):
    """It looks 32,768 bytes back. Beyond that, no frame of a film is like the last one to it."""
    frames = [Frame("", lambda: drawn("w" * 60, points=POINTS + 20 * (not steps), steps=steps))]
    [stage], _, _ = render_pictures(frames)
    assert len(stage) < 31_000


def test_places_rise_with_the_events():
    recording, _, _ = trained("mlp")
    ruler = Ruler(recording)
    places = [ruler(event) for event in range(-1, len(recording.samples))]
    assert places == sorted(places) and len(set(places)) == len(places)
    covered = [event for stretch in ruler.evenly(20) for event in stretch]
    assert covered == list(range(len(recording.samples)))


def test_every_role_has_a_look_of_its_own():
    assert tuple(LOOKS) == ROLES
    assert len(set(LOOKS.values())) == len(ROLES)


def test_the_text_states_phases_peak_and_what_lives_there():
    model = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    x = torch.ones(3, 4)

    def step():
        loss = model(x).exp().sum()
        loss.backward()
        optimizer.step()

    # By hand, in bytes: the weight 8 * 4, x 12 * 4, the exponentials 6 * 4, the loss 4.
    assert str(lens.record_memory(step)) == TEXT


TEXT = """\
memory on cpu: 80 bytes before, at most 148, 144 after
             parameter  input  optimizer  gradient  activation  temporary  total
before              32     48          ·         ·           ·          ·     80
forward             32     48          ·         ·          24          4    108
backward            32     48          ·        32           ·          4    116
step                32     48         32        32           ·          4    148
after               32     48         32        32           ·          ·    144
at the peak         32     48         32        32           ·          4    148
at the peak, in the step, aten::clone:
             48  input       x (3, 4)
             32  parameter   weight (2, 4)
             32  gradient    grad of weight (2, 4)
             32  optimizer   momentum_buffer of weight (2, 4)
              4  temporary   made by aten::sum"""


def test_the_text_is_the_same_with_any_number_of_threads():
    here = torch.get_num_threads()
    texts = set()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            model, x = MODELS["transformer"]()
            optimizer = torch.optim.Adam(model.parameters())

            def step(model=model, x=x, optimizer=optimizer):
                model(x).backward()
                optimizer.step()

            texts.add(str(lens.record_memory(step)))
    finally:
        torch.set_num_threads(here)
    assert len(texts) == 1


def test_many_phases_make_a_short_text():
    w = torch.ones(3, requires_grad=True)

    def run():
        for _ in range(40):
            (w * 2).sum().backward()

    recording = lens.record_memory(run)
    assert len(recording.phases) >= 80
    assert len(str(recording).splitlines()) < 30 and "more phases" in str(recording)
    assert len(moments(recording)) <= FRAMES + 2
    recording._repr_mimebundle_()


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "txt"])
def test_it_can_be_saved(suffix, tmp_path):
    recording, _, _ = trained("mlp")
    path = recording.save(tmp_path / f"memory.{suffix}")
    assert path.stat().st_size > 500
    if suffix in ("svg", "png"):
        peak = recording.save(tmp_path / f"peak.{suffix}", moment=recording.peak_event)
        assert peak.read_bytes() != path.read_bytes()


def test_words_that_are_markup_are_escaped():
    model = nn.Module()
    model.register_parameter("weight", nn.Parameter(torch.ones(2000)))
    w = model.weight
    recording = lens.record_memory(lambda: (w * 2).sum().backward(), names={"<b>&": w})
    svg = recording.figure().draw(moment=recording.peak_event).picture.svg()
    assert "&lt;b&gt;&amp;" in svg and "<b>" not in svg
    assert LISTED >= 1


# stderr, in a process of its own: what was written there can't be taken back

STEP = """
import torch
import autograd_lens as lens
w = torch.randn(64, 64, requires_grad=True)
w.grad = torch.zeros(64, 64)
def step():
    w.grad = None
    (torch.ones(64, 64) @ w).exp().sum().backward()
for _ in range(2):
    recording = lens.record_memory(step)
print(recording.end["gradient"])
"""


def stderr_of(program, **more):
    """What a fresh process writes to file descriptor 2."""
    quieted = ("KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL")  # by the lens in this process
    env = {name: value for name, value in os.environ.items() if name not in quieted}
    env |= {"PYTHONPATH": str(Path(lens.__file__).parent.parent)} | more
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert done.stdout == f"{64 * 64 * 4}\n"
    return done.stderr


def test_nothing_on_stderr_when_the_lens_is_imported_first():
    assert stderr_of("import autograd_lens" + STEP) == ""


@pytest.mark.large("nothing is written where the lens is imported first")
def test_with_torch_first_one_line_tells_of_older_memory_that_went():
    (line,) = stderr_of(STEP).splitlines()  # said in the docstring of record_memory
    assert "was allocated before the profiling started" in line


@pytest.mark.large("nothing is written where the lens is imported first")
def test_without_the_log_level_the_profiler_does_write():
    """The control: were this empty, the tests above would say nothing."""
    written = stderr_of("import autograd_lens" + STEP, KINETO_LOG_LEVEL="1")
    assert "USDT" in written or "ActivityProfilerController" in written  # 2.11 for CUDA: the latter
