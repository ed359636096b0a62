"""Live widgets, driven from Python as a front end drives them. In JupyterLab: tests/jupyter."""

import re
from fractions import Fraction
from html import unescape

import ipywidgets as widgets
import pytest
import torch
from independent import inline_svgs

import autograd_lens as lens
from autograd_lens.view import live
from autograd_lens.view.bundle import bundle
from autograd_lens.view.figure import Choice, Figure, Frame

dot = pytest.mark.needs("dot")


def recording():
    """A film of five nodes."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return lens.record_backward((x.exp() * x).sum(), names={"x": x})


def rows(made):
    """The controls of each choice, by class."""
    return [
        {type(control).__name__: control for control in row.children} for row in made.children[:-2]
    ]


def picture(made):
    return made.children[-2].value


def as_text(made):
    return made.children[-1]


def counted():
    """A function of two numbers, and the calls that it got."""
    calls = []

    def pair(a, b=0):
        """A pair"""
        calls.append((a, b))
        return f"a is {a!r}, b is {b!r}"

    return pair, calls


class Kernel:
    kernel = object()


def test_a_widget_only_where_a_kernel_runs_and_nothing_forbids_it(monkeypatch):
    import IPython

    film = recording().figure()
    still = lens.graph(torch.ones(1, requires_grad=True) * 2).figure()
    free = lens.explore(lambda size: f"{size}", size=[1, 2, 4]).figure()
    widget_form = "application/vnd.jupyter.widget-view+json"
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "1")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert set(bundle(free)) == {"text/plain", "text/html"}
    monkeypatch.setattr(IPython, "get_ipython", lambda: Kernel)
    forms = bundle(free)
    assert set(forms) == {"text/plain", "text/html", widget_form}
    assert set(forms[widget_form]) == {"version_major", "version_minor", "model_id"}
    assert set(bundle(still)) == {"text/plain", "text/html"}, "nothing to choose"
    assert set(bundle(film)) == {"text/plain", "text/html"}, "the page can do all of it"
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "0")
    assert set(bundle(free)) == {"text/plain", "text/html"}


def test_only_controls_and_arguments_that_colab_has():
    """ipywidgets 7.7.1 knows no keyword beyond these traits, and says so on stderr."""
    source = open(live.__file__, encoding="utf-8").read()
    made = set(re.findall(r"widgets\.([A-Z]\w+)", source)) - {"Widget"}
    assert made == {
        "Button", "Checkbox", "Dropdown", "FloatText", "HBox", "HTML", "IntSlider", "IntText",
        "Label", "Layout", "Play", "VBox",
    }  # fmt: skip
    for call in re.findall(r"widgets\.Button\((.*?)\)", source, flags=re.S):
        assert set(re.findall(r"(\w+)=", call)) <= {"description", "tooltip", "layout"}


def test_under_jupyters_server_the_page_is_kept_in_an_output_of_its_own(monkeypatch):
    import IPython

    published = []
    free = lens.explore(lambda size: f"{size}", size=[1, 2, 4]).figure()
    monkeypatch.setattr(IPython, "get_ipython", lambda: Kernel)
    monkeypatch.setattr(IPython.display, "publish_display_data", published.append)
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "1")
    monkeypatch.setenv("JPY_SESSION_NAME", "chapter.ipynb")
    forms = bundle(free)
    assert set(forms) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    (kept,) = published
    assert set(kept) == {"text/html"}, "no second text: what is compared stays the same"
    assert kept["text/html"].count(' data-form="kept"') == 1
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "0")
    assert "text/html" in bundle(free) and len(published) == 1


# Films


@dot
def test_the_slider_of_a_live_film_changes_the_picture():
    film = recording()
    made = film.widget()
    (row,) = rows(made)
    as_text(made).value = True
    frames = film.figure().frames()
    assert row["IntSlider"].value == 1, "it opens on the first step"
    seen = []
    for k in range(len(frames)):
        row["IntSlider"].value = k
        seen.append(picture(made))
    assert len(set(seen)) == len(frames)
    page = inline_svgs(film._repr_mimebundle_()["text/html"])[1:]
    for html, frame, svg in zip(seen, frames, page, strict=True):
        assert inline_svgs(html) == [svg]
        assert frame.text in unescape(html)
        assert "<script" not in html


def test_the_buttons_of_a_live_film_stop_at_its_ends():
    made = live.widget(Figure("f", lambda n: Frame(f"at {n}"), (Choice("n", (5, 6, 7), "film"),)))
    back, slider, label, forth, play = made.children[0].children
    assert (play.min, play.max) == (0, 2)
    seen = []
    for button in (back, forth, forth, forth, back):
        button.click()
        seen.append(slider.value)
        assert f"at {5 + slider.value}" in picture(made)
        assert label.value == str(5 + slider.value)
    assert seen == [0, 1, 2, 2, 1]


# Menus, sliders, numbers


def test_a_live_menu_and_a_free_number():
    shown = lens.explore(
        lambda which, size: f"{which} of {size}", which={"a": "the a", "b": "the b"}, size=[1, 2, 4]
    )
    made = live.widget(shown.figure())
    assert "a of 1" in picture(made)
    which, size = rows(made)
    which["Dropdown"].index = 1
    assert "b of 1" in picture(made)
    size["IntSlider"].value = 2
    assert "b of 4" in picture(made)
    size["IntText"].value = 3
    assert "b of 3" in picture(made)
    assert "IntText" not in which and "FloatText" not in which, "a menu takes what it offers"


def test_whole_numbers_stay_whole():
    made = live.widget(lens.explore(lambda n: f"{torch.ones(n).shape}", n=[1, 2, 4]).figure())
    (row,) = rows(made)
    row["IntText"].value = 7
    assert "torch.Size([7])" in picture(made), "7.0 would be no shape"


@pytest.mark.parametrize("values", [[0.5, 1.0, 2.0], [1, 2, 2.5], [Fraction(1, 2), 1, 2]])
def test_other_numbers_are_floats(values):
    pair, _ = counted()
    made = live.widget(lens.explore(pair, a=values).figure())
    (row,) = rows(made)
    assert f"a is {values[0]!r}" in unescape(picture(made))
    row["FloatText"].value = 3
    assert "a is 3.0" in picture(made)


def test_slider_and_box_stay_in_step():
    pair, calls = counted()
    figure = lens.explore(pair, a=[1, 2, 8]).figure()
    made = live.widget(figure)
    (row,) = rows(made)
    slider, box = row["IntSlider"], row["IntText"]

    def walk():
        """What the slider goes through, from end to end."""
        values = []
        for place in range(slider.max + 1):
            slider.value = place
            assert f"a is {box.value}," in picture(made)
            values.append(box.value)
        return values

    calls.clear()
    slider.value = 2
    assert box.value == 8
    box.value = 2
    assert slider.value == 1
    assert calls == [], "the page's values were drawn already"
    box.value = 5
    assert (slider.value, slider.max) == (2, 3) and "a is 5" in picture(made)
    assert calls == [(5, 0)], "each change asks once"
    assert walk() == [1, 2, 5, 8], "what was typed can be chosen again"
    box.value = -3
    box.value = 100
    assert (slider.value, slider.max, box.value) == (5, 5, 100)
    assert walk() == [-3, 1, 2, 5, 8, 100]
    assert calls == [(5, 0), (-3, 0), (100, 0)]
    assert figure.choices[0].values == (1, 2, 8), "the page keeps its grid"


def test_a_grid_that_falls_takes_a_number_at_its_place():
    pair, _ = counted()
    made = live.widget(lens.explore(pair, a=[1.0, 0.1, 0.01]).figure())
    (row,) = rows(made)
    for typed in (0.5, 3.0, 0.001):
        row["FloatText"].value = typed
        assert f"a is {typed}" in picture(made)
    slider, values = row["IntSlider"], []
    for place in range(slider.max + 1):
        slider.value = place
        values.append(row["FloatText"].value)
    assert values == [3.0, 1.0, 0.5, 0.1, 0.01, 0.001]


def test_two_free_choices_do_not_disturb_each_other():
    pair, calls = counted()
    made = live.widget(lens.explore(pair, a=[1, 2, 3], b=[0.5, 1.5, 2.5]).figure())
    first, second = rows(made)
    calls.clear()
    second["FloatText"].value = 9.5
    assert "a is 1, b is 9.5" in picture(made)
    first["IntText"].value = 7
    assert "a is 7, b is 9.5" in picture(made)
    second["IntSlider"].value = 0
    assert "a is 7, b is 0.5" in picture(made)
    first["IntSlider"].value = 0
    assert "a is 1, b is 0.5" in picture(made)
    assert calls == [(1, 9.5), (7, 9.5), (7, 0.5)]


@pytest.mark.parametrize("control", ["film", "slider", "menu"])
def test_a_free_number_joins_any_control(control):
    choice = Choice("n", (1, 3, 5), control, ("one", "three", "five"), free=True)
    made = live.widget(Figure("f", lambda n: Frame(f"n is {n}"), (choice,)))
    (row,) = rows(made)
    row["IntText"].value = 4
    assert "n is 4" in picture(made)
    if control == "menu":
        menu = row["Dropdown"]
        assert [label for label, _ in menu.options] == ["one", "three", "4", "five"]
        assert menu.index == 2
    else:
        assert (row["IntSlider"].value, row["IntSlider"].max) == (2, 3)
    if control == "film":
        assert row["Play"].max == 3


def test_only_numbers_can_be_free():
    with pytest.raises(ValueError, match="'which' is free, so its values must be numbers"):
        Choice("which", ("a", "b"), free=True)


# What may go wrong, and what must not move


def test_an_error_in_a_live_draw_is_shown_and_the_controls_still_work():
    def sometimes(n):
        if n == 2:
            raise ZeroDivisionError("n < 2 was expected")
        return f"drawn {n}"

    figure = Figure("A figure", lambda n: Frame(sometimes(n)), (Choice("n", (1, 2, 3), "film"),))
    made = live.widget(figure)
    (row,) = rows(made)
    row["IntSlider"].value = 1
    assert picture(made).count("ZeroDivisionError: n &lt; 2 was expected") == 1
    assert "could not be drawn" in picture(made)
    assert "drawn 1" not in picture(made) and "Traceback" not in picture(made)
    row["IntSlider"].value = 2
    assert "drawn 3" in picture(made) and "ZeroDivisionError" not in picture(made)


@dot
def test_a_live_explorer_whose_function_fails_for_a_typed_number():
    def root(size):
        """A root."""
        if size < 0:
            raise ValueError("size must be positive")
        return lens.graph(torch.ones(1, requires_grad=True) * size)

    made = live.widget(lens.explore(root, size=[1.0, 2.0, 3.0]).figure())
    (row,) = rows(made)
    row["FloatText"].value = -1.0
    assert "size must be positive" in picture(made)
    row["FloatText"].value = 7.0
    assert len(inline_svgs(picture(made))) == 2, "in both layouts"


def test_the_text_stays_open_while_pictures_change():
    made = live.widget(lens.explore(lambda n: f"n is {n}", n=[1, 2, 4]).figure())
    (row,) = rows(made)
    assert "<details" not in picture(made)
    as_text(made).value = True
    for index in (1, 2):
        row["IntSlider"].value = index
        assert "<details open>" in picture(made)
    as_text(made).value = False
    assert "<details" not in picture(made)


@dot
def test_the_canvas_of_a_live_figure_never_shrinks():
    def grown(lines):
        y = torch.ones(2, requires_grad=True)
        for _ in range(lines):
            y = y.exp()
        return lens.graph(y)

    made = live.widget(lens.explore(grown, lines=[1, 2, 3]).figure())
    (row,) = rows(made)

    def canvas():
        return re.search(r'viewBox="\S+ \S+ (\S+ \S+)"', picture(made))[1]

    sizes = []
    for index in (0, 2, 0):
        row["IntSlider"].value = index
        sizes.append(canvas())
    assert sizes[0] != sizes[1] == sizes[2]


def test_a_widget_is_made_of_what_every_front_end_draws():
    made = recording().widget()
    assert isinstance(made, widgets.VBox)
    assert [type(child).__name__ for child in made.children] == ["HBox", "HTML", "Checkbox"]


# Choices


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, True, 1.0], "1 and True, which are equal"),
        ([0, 2, 0.0], "0 and 0.0, which are equal"),
        ([Fraction(1, 2), 0.5], "are equal"),
        (["a", "b", "a"], "'a' and 'a', which are equal"),
        ([1, "1"], "1 and '1', which look alike"),
        ([float("nan"), float("nan")], "look alike"),
        (["\0", "\\x00"], "look alike"),
        ({1: "same", 2: "same"}, "1 and 2, which look alike"),
        (torch.tensor([1.0, 1.0]), "1.0 and 1.0, which are equal"),
    ],
    ids=str,
)
def test_choices_that_can_not_be_told_apart_are_refused(values, why):
    """A frame is found by its value, and a reader finds it by its label."""
    with pytest.raises(ValueError, match=re.escape(why)):
        lens.explore(lambda a: repr(a), a=values)


def test_a_label_tells_equal_values_of_two_types_apart_if_the_function_looks_them_up():
    kinds = {"a whole number": 1, "a bool": True, "a float": 1.0}
    text = str(lens.explore(lambda kind: repr(kinds[kind]), kind=list(kinds)))
    assert [line.strip() for line in text.splitlines()[1::2]] == ["1", "True", "1.0"]


@pytest.mark.parametrize("name", ["draw", "path", "self", "figure", "name", "choices", "title"])
def test_a_choice_may_have_any_name(name, tmp_path):
    explorer = lens.explore(lambda **chosen: repr(chosen), **{name: ["one", "two"]})
    assert f"{name} = two\n  {{'{name}': 'two'}}" in str(explorer)
    assert "'two'" in unescape(explorer._repr_mimebundle_()["text/html"])
    made = explorer.widget()
    (row,) = rows(made)
    row["Dropdown"].index = 1
    assert f"{{'{name}': 'two'}}" in unescape(picture(made))
    assert "two" in explorer.save(tmp_path / "all.txt", **{name: "two"}).read_text()
