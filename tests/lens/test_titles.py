"""Titles, captions and labels of one's own: in the page and in the text, or a clear refusal."""

import re
from html import unescape

import pytest
import torch

import autograd_lens as lens


def recording():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return lens.record_backward((x * x).exp().sum(), {"x": x})


def saved(op):
    x = torch.ones(3, requires_grad=True)
    return lens.saved_tensors(getattr(x, op)(), {"x": x})


def explored(**how):
    return lens.explore(saved, op=["sin", "exp"], **how)


def page_of(result):
    """The HTML without its style and script, as a reader sees it before touching anything."""
    html = result._repr_mimebundle_()["text/html"]
    return re.sub(r"<style>.*?</style>|<script>.*?</script>", "", html, flags=re.S)


def opening(result):
    """The words of the caption that the page opens on."""
    (said,) = re.findall(r'<div class="lens-caption"[^>]*>(.*?)</div>', page_of(result))
    return unescape(re.sub(r"<[^>]*>", "", said))


def test_a_title_stands_over_the_picture_and_the_text():
    plain = recording()
    titled = plain.titled("When is exp's result let go?")
    assert str(titled) == f"When is exp's result let go?\n{plain}"
    assert titled.figure().title == "When is exp's result let go?"
    assert "data-title=own" in page_of(titled) and "data-title=own" not in page_of(plain)
    assert titled.result is plain


def test_a_sentence_for_some_steps_and_the_others_keep_theirs():
    plain, said = recording(), "exp has used its result, and lets go of it."
    titled = plain.titled("When?", {2: said})
    before, after = plain.figure().frames(), titled.figure().frames()
    assert (after[2].caption, after[2].numbers) == (said, before[2].caption)
    assert after[2].text == f"{said}\n{before[2].text}"
    assert [after[k] == before[k] for k in range(4)] == [True, True, False, True]
    assert f"{said}\nstep 2" in str(titled)


def test_one_sentence_or_a_function_speaks_in_every_state():
    for caption in ("Look.", lambda step: "Look."):
        frames = recording().titled("When?", caption).figure().frames()
        assert {frame.caption for frame in frames} == {"Look."}
    explorer = explored(caption=lambda op: f"{op} is drawn.")
    assert [frame.caption for frame in explorer.figure().frames()] == [
        "sin is drawn.",
        "exp is drawn.",
    ]
    assert "op = exp\n  exp is drawn.\n" in str(explorer)


def test_the_numbers_come_after_the_sentence():
    explorer = explored(caption={"sin": "sin keeps its input.", "exp": "exp keeps its result."})
    assert opening(explorer).startswith("op = sin: sin keeps its input. self of 0 SinBackward0")
    assert "<span class=lens-numbers>self of 0 SinBackward0 keeps 12 B. 1 saved" in page_of(
        explorer
    )


def test_a_label_takes_the_place_of_a_keyword():
    explorer = explored(labels={"op": "operation"})
    assert opening(explorer).startswith("operation = sin")
    assert 'aria-label="operation"' in page_of(explorer)
    assert str(explorer).startswith("operation = sin\n")
    assert explorer.figure().draw(op="exp").text.startswith("operation = exp\n")


@pytest.mark.parametrize("made", [explored, lambda **how: explored().titled("What?", **how)])
def test_a_figure_opens_where_it_is_told(made):
    figure = made(opens_on={"op": "exp"})
    assert "op = exp" in opening(figure)
    page = page_of(figure)
    assert re.findall(r'aria-pressed="(\w+)"', page) == ["false", "true"]
    pres = re.findall(r"<pre[^>]*>", page)
    assert ["lens-now" in pre for pre in pres] == [False, True]
    assert str(figure).index("op = sin") < str(figure).index("op = exp"), "the text keeps its order"


def test_a_film_opens_on_its_first_step():
    film = recording()
    assert opening(film).startswith("step 1 of 4")
    assert 'value="1" data-size="5"' in page_of(film)
    assert opening(film.titled("When?", opens_on={"step": 3})).startswith("step 3 of 4")


def test_the_file_shows_the_opening_state(tmp_path):
    film = recording()
    path = film.save(tmp_path / "film.svg")
    assert path.read_text() == film.save(tmp_path / "one.svg", step=1).read_text()
    assert path.read_text() != film.save(tmp_path / "two.svg", step=2).read_text()


def test_the_longest_caption_has_its_room():
    explorer = explored(caption={"sin": "Short.", "exp": "This one is longer, and nothing jumps."})
    assert 'data-room="This one is longer, and nothing jumps."' in page_of(explorer)


@pytest.mark.parametrize(
    ("how", "error", "phrase"),
    [
        ({"title": 3}, TypeError, "title must be a text, not int"),
        ({"title": " "}, ValueError, "ask the question"),
        ({"caption": 3}, TypeError, "a sentence, a mapping .* or a function"),
        ({"caption": {9: "no such step"}}, ValueError, "9, which is no value of step"),
        ({"caption": {1: 2}}, TypeError, "the caption for 1 is a int, not a sentence"),
        ({"opens_on": {"stop": 1}}, ValueError, "no choice 'stop' to open on; there is step"),
        ({"opens_on": {"step": 7}}, ValueError, "step has no value 7"),
    ],
)
def test_what_does_not_fit_a_recording_is_refused_at_once(how, error, phrase):
    with pytest.raises(error, match=phrase):
        recording().titled(**{"title": "When?"} | how)


@pytest.mark.parametrize(
    ("how", "error", "phrase"),
    [
        ({"caption": {"sin": "only this"}}, ValueError, "caption has no sentence for 'exp'"),
        ({"caption": {"sin": "a", "exp": " "}}, ValueError, "no sentence for 'exp'"),
        ({"caption": ["a", "b"]}, TypeError, "a sentence, a mapping"),
        ({"labels": {"opp": "operation"}}, ValueError, "labels has 'opp'; the choices are op"),
        ({"labels": {"op": 3}}, TypeError, "the label of op is a int"),
        ({"labels": "operation"}, TypeError, "labels must map choices to words"),
        ({"opens_on": {"op": "cos"}}, ValueError, "op has no value 'cos'"),
    ],
)
def test_what_does_not_fit_an_explorer_is_refused_at_once(how, error, phrase):
    with pytest.raises(error, match=phrase):
        explored(**how)


def test_a_mapping_for_several_choices_is_refused():
    with pytest.raises(ValueError, match="one choice; this one has a, b: give a function"):
        lens.explore(lambda a, b: "text", a=[1, 2], b=[1, 2], caption={1: "x", 2: "y"})
    with pytest.raises(ValueError, match="one choice; this one has none"):
        saved("sin").titled("What?", {1: "x"})


def test_a_function_that_returns_no_sentence_is_told():
    with pytest.raises(TypeError, match="caption must return a sentence, not int"):
        str(explored(caption=lambda op: 3))
