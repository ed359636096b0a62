"""A chart in a browser: one of its two layouts is shown, and fills the stage with legible text."""

import pytest

import autograd_lens as lens
from tools.testing.sizes import sized

SHOWN = """() => [...document.querySelectorAll(".lens-stage svg")]
  .filter(svg => svg.getClientRects().length)
  .map(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const stage = svg.closest(".lens-stage"), style = getComputedStyle(stage);
    const room = stage.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const sizes = [...svg.querySelectorAll("text")].map(
      text => scale * parseFloat(getComputedStyle(text).fontSize));
    return {layout: svg.parentElement.className, least: Math.min(...sizes),
      most: Math.max(...sizes), free: room - svg.getBoundingClientRect().width,
      scrolls: stage.scrollWidth > stage.clientWidth};
  })"""

LINES = {"parameters, gradients, Adam": ([1, 4], [9, 9]), "activations": ([1, 4], [3, 12])}


@pytest.mark.parametrize(
    ("width", "layout", "fills"),
    sized(
        [
            (360, "lens-narrow", True),
            (390, "lens-narrow", True),
            (430, "lens-narrow", True),
            (580, "lens-narrow", False),
            (610, "lens-wide", True),
            (700, "lens-wide", True),
            (860, "lens-wide", True),
            (1400, "lens-wide", True),
        ],
        lambda case: case[0] in (390, 610),
        "a phone and a small desk are looked at",
    ),
)
@pytest.mark.parametrize("script", [True, False], ids=["scripts", "no scripts"])
def test_one_layout_is_shown_and_fills_its_stage(small_page, width, layout, fills, script):
    body = lens.chart(LINES, x="batch", y="bytes")._repr_mimebundle_()["text/html"]
    page, journal = small_page(f"<body>{body}</body>", width=width, script=script)
    [shown] = page.evaluate(SHOWN)
    assert shown["layout"] == layout and not shown["scrolls"]
    assert shown["least"] >= 11 and shown["most"] <= 16.1
    assert (shown["free"] < 10) == fills
    assert page.get_by_role("img").count() == 1, "what is not shown is not read aloud either"
    assert not journal.problems
