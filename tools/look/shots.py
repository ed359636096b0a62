"""Pictures of an open page: of its figures, and of the whole of it, however tall.

Knows how Chromium is asked for a picture. Does not know what is on it, nor where it will stand.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Iterator

from PIL import Image
from playwright.sync_api import Page

TALL = 12_000
"""Pixels in one picture: more than about 16,000 Chromium does not draw."""

BOXES = """() => lensLook.figures().map(f => {
  const b = f.getBoundingClientRect();
  return [b.left + scrollX, b.top + scrollY, b.right + scrollX, b.bottom + scrollY];
})"""

SIZE = "() => [document.documentElement.clientWidth, document.documentElement.scrollHeight]"

Box = tuple[int, int, int, int]


class Camera:
    """Takes pictures of one page."""

    def __init__(self, page: Page):
        self.page = page
        self.session = page.context.new_cdp_session(page)

    def capture(self, box: Box, scale: float = 1.0) -> Image.Image:
        """A part of the page, wherever it is: left, top, right and bottom in its pixels."""
        left, top, right, bottom = box
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top, "scale": scale}
        answer = self.session.send(
            "Page.captureScreenshot",
            {"clip": clip, "captureBeyondViewport": True, "optimizeForSpeed": True},
        )
        return Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")

    def figures(self, numbers: Iterable[int]) -> dict[int, Image.Image]:
        """The figures of the page by number, counted from 0; many of them in one go."""
        boxes = [_whole(box) for box in self.page.evaluate(BOXES)]
        found = {}
        for some in _in_reach([(k, boxes[k]) for k in numbers]):
            around = _around([box for _, box in some])
            picture = self.capture(around)
            for k, (left, top, right, bottom) in some:
                x, y = around[:2]
                found[k] = picture.crop((left - x, top - y, right - x, bottom - y))
        return found

    def size(self) -> tuple[int, int]:
        """Width and height of the page."""
        width, height = self.page.evaluate(SIZE)
        return width, height

    def whole(self, scale: float) -> Image.Image:
        """All of the page, scaled."""
        width, height = self.size()
        strip = Image.new("RGB", (round(width * scale), math.ceil(height * scale)))
        step = int(TALL / scale)
        for top in range(0, height, step):
            part = self.capture((0, top, width, min(top + step, height)), scale)
            strip.paste(part, (0, round(top * scale)))
        return strip


def _whole(box: tuple[float, ...]) -> Box:
    left, top, right, bottom = box
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def _around(boxes: list[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _in_reach(boxes: list[tuple[int, Box]]) -> Iterator[list[tuple[int, Box]]]:
    """Cut the boxes, in order, into lists that one picture can hold."""
    some: list[tuple[int, Box]] = []
    for number, box in boxes:
        left, top, right, bottom = _around([box, *(other for _, other in some)])
        if some and bottom - top > TALL:
            yield some
            some = []
        some.append((number, box))
    if some:
        yield some
