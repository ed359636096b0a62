"""A reader's sentence on a layout: in the text, in the caption, and nowhere without one."""

import torch

import autograd_lens as lens

SENTENCE = "Dimensions 0 and 1 merge."


def test_a_note_opens_text_and_caption():
    x = torch.arange(6).reshape(2, 3)
    noted = lens.storage_layout(x, x.t(), note=SENTENCE)
    frame = noted.figure().draw()
    assert frame.text.splitlines()[0] == SENTENCE
    assert frame.caption == f"{SENTENCE} 2 tensors over one storage of 6 cells."
    assert str(lens.storage_layout(x, note=SENTENCE)).startswith(SENTENCE)


def test_without_a_note_nothing_is_added():
    x = torch.arange(6)
    plain = lens.storage_layout(x).figure().draw()
    noted = lens.storage_layout(x, note=SENTENCE).figure().draw()
    assert noted.text == f"{SENTENCE}\n{plain.text}"
    assert noted.caption == f"{SENTENCE} {plain.caption}"


def test_the_frames_of_a_film_carry_their_notes():
    x = torch.arange(4)
    film = lens.explore(lambda step: lens.storage_layout(x, note=f"Step {step}."), step=range(3))
    captions = [film.figure().draw(step=step).caption for step in range(3)]
    assert [caption.split(" float")[0].split(" tensor")[0] for caption in captions] == [
        "Step 0.",
        "Step 1.",
        "Step 2.",
    ]
