/* What can be measured of a page and of a figure in its states. Wants stage.js. A finding is {kind,
   what, px}; `limits` are the tolerances of measure.py. All boxes are in pixels of the window. */
(w => {
  const d = w.document, look = w.lensLook;
  const short = text => {
    const words = text.trim().replace(/\s+/g, " ");
    return words.length > 40 ? words.slice(0, 39) + "…" : words;
  };
  const nameOf = e => {
    const kind = [...e.classList].find(c => c.startsWith("lens-")) || e.localName;
    const text = short(e.getAttribute("aria-label") || e.textContent);
    return e.children.length > 3 || !text ? kind : `${kind} “${text}”`;
  };
  const beyond = (inner, outer) => Math.max(outer.left - inner.left, inner.right - outer.right,
    outer.top - inner.top, inner.bottom - outer.bottom);
  const sideways = (inner, outer) => Math.max(outer.left - inner.left, inner.right - outer.right);
  const shared = (a, b) => Math.min(Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  const seen = e => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);

  /* SVG */

  const onScreen = (box, matrix) => {
    const corners = [[box.left, box.top], [box.right, box.top], [box.left, box.bottom], [box.right, box.bottom]]
      .map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix));
    const xs = corners.map(p => p.x), ys = corners.map(p => p.y);
    return {left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys)};
  };
  const ruler = d.createElement("canvas").getContext("2d");
  const heights = new Map();
  /* How far the letters reach above and below the line, in em. The box of a text has room for
     accents and a gap to the next line, so two lines would seem to overlap. */
  const inkOf = (style, text) => {
    const font = `${style.fontStyle} ${style.fontWeight} 100px ${style.fontFamily}`, key = font + "\n" + text;
    if (!heights.has(key)) {
      ruler.font = font;
      const m = ruler.measureText(text);
      heights.set(key, [m.actualBoundingBoxAscent / 100, m.actualBoundingBoxDescent / 100]);
    }
    return heights.get(key);
  };
  const painted = style => style.fill !== "none" || style.stroke !== "none";
  /* A drawn text: its letters' box, its size, and the point from which it was written. */
  const textOf = element => {
    const style = getComputedStyle(element), words = element.textContent.trim();
    const count = element.getNumberOfChars();
    if (!words || !painted(style) || !seen(element) || !count) return [];
    const matrix = element.getScreenCTM(), em = parseFloat(style.fontSize), room = element.getBBox();
    const start = element.getStartPositionOfChar(0), end = element.getEndPositionOfChar(count - 1);
    const [up, down] = inkOf(style, words), flat = element.childElementCount === 0;
    const box = flat
      ? {left: Math.min(start.x, end.x), right: Math.max(start.x, end.x), top: start.y - up * em, bottom: start.y + down * em}
      : {left: room.x, right: room.x + room.width, top: room.y, bottom: room.y + room.height};
    const along = {start: 0, middle: 0.5, end: 1}[style.textAnchor], width = box.right - box.left;
    const inside = along * width + (0.5 - along) * Math.min(1, width);
    const anchor = new DOMPoint(box.left + inside, start.y - 0.3 * em).matrixTransform(matrix);
    const scale = Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c));
    return [{element, name: short(words), box: onScreen(box, matrix), size: em * scale, anchor}];
  };
  const shapesOf = (group, limits) => [...group.children]
    .filter(e => e.matches("polygon, path, rect, ellipse, circle") && painted(getComputedStyle(e)))
    .map(e => {
      const b = e.getBBox();
      return onScreen({left: b.x, right: b.x + b.width, top: b.y, bottom: b.y + b.height}, e.getScreenCTM());
    })
    .filter(b => b.right - b.left > limits.line && b.bottom - b.top > limits.line);
  const area = b => (b.right - b.left) * (b.bottom - b.top);
  /* The smallest shape of its group around the point from which a text is written. */
  const boxOf = (text, groups, limits) => {
    const group = text.element.closest("g");
    if (!group || group.closest(".edge")) return null;
    if (!groups.has(group)) groups.set(group, shapesOf(group, limits));
    const {x, y} = text.anchor;
    return groups.get(group)
      .filter(b => b.left <= x && x <= b.right && b.top <= y && y <= b.bottom)
      .sort((a, b) => area(a) - area(b))[0] || null;
  };
  const pictureOf = (svg, limits) => {
    const found = [], groups = new Map(), view = svg.viewBox.baseVal;
    const frame = view && view.width
      ? onScreen({left: view.x, right: view.x + view.width, top: view.y, bottom: view.y + view.height}, svg.getScreenCTM())
      : svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].flatMap(textOf);
    for (const text of texts) {
      const box = boxOf(text, groups, limits);
      const out = box ? beyond(text.box, box) : 0, cut = beyond(text.box, frame);
      if (out > limits.beyond) found.push({kind: "text-leaves-box", what: `“${text.name}”`, px: out});
      if (cut > limits.beyond) found.push({kind: "text-leaves-picture", what: `“${text.name}”`, px: cut});
      if (text.size < limits.least - limits.rounding) found.push({kind: "text-small", what: `“${text.name}”`, px: text.size});
    }
    return found.concat(overlaps(texts, limits.texts, "texts-overlap"));
  };
  /* Pairs of {name, box} that share more than `limit` in both directions. */
  const overlaps = (things, limit, kind, apart = () => true) => {
    const found = [], rows = [...things].sort((a, b) => a.box.top - b.box.top);
    rows.forEach((a, i) => {
      for (let j = i + 1; j < rows.length && rows[j].box.top < a.box.bottom; j++) {
        const px = shared(a.box, rows[j].box), names = [a.name, rows[j].name].sort();
        if (px > limit && apart(a, rows[j]))
          found.push({kind, what: names.map(n => n.includes("“") ? n : `“${n}”`).join(" and "), px});
      }
    });
    return found;
  };

  /* HTML */

  /* What scrolls by itself may be wider than its figure. */
  const inScroller = (e, figure) => {
    for (let a = e.parentElement; a && a !== figure; a = a.parentElement) if (scrolls(a)) return true;
    return false;
  };
  const elementsOf = figure => [...figure.querySelectorAll("*")].filter(
    e => e instanceof HTMLElement && !e.matches("style, script, template") && !e.closest(".lens-frame") && seen(e));
  const leaving = (figure, elements, limits) => {
    const edge = figure.getBoundingClientRect();
    const out = e => {
      const box = e.getBoundingClientRect();
      return box.width && box.height && !inScroller(e, figure) ? beyond(box, edge) : 0;
    };
    return elements.filter(e => out(e) > limits.part && !(e.parentElement !== figure && out(e.parentElement) > limits.part))
      .map(e => ({kind: "part-leaves-figure", what: nameOf(e), px: out(e)}));
  };
  const cut = (figure, elements, limits) => elements.flatMap(e => {
    const style = getComputedStyle(e), held = o => ["hidden", "clip"].includes(o);
    const px = Math.max(held(style.overflowX) ? e.scrollWidth - e.clientWidth : 0,
      held(style.overflowY) ? e.scrollHeight - e.clientHeight : 0);
    return px > limits.part && !e.matches("input") ? [{kind: "part-cut", what: nameOf(e), px}] : [];
  });
  const written = (figure, limits) => {
    const found = [], walk = d.createTreeWalker(figure, NodeFilter.SHOW_TEXT), range = d.createRange();
    while (walk.nextNode()) {
      const text = walk.currentNode;
      let box = text.parentElement;
      if (!text.data.trim() || !(box instanceof HTMLElement) || box.matches("style, script") || !seen(box)) continue;
      const what = `“${short(text.data)}”`, size = parseFloat(getComputedStyle(box).fontSize);
      if (size < limits.least - limits.rounding) found.push({kind: "text-small", what, px: size});
      while (["inline", "contents"].includes(getComputedStyle(box).display)) box = box.parentElement;
      if (scrolls(box) || inScroller(box, figure)) continue;
      range.selectNodeContents(text);
      const edge = box.getBoundingClientRect();
      const px = Math.max(...[...range.getClientRects()].map(line => sideways(line, edge)));
      if (px > limits.beyond) found.push({kind: "text-leaves-box", what, px});
    }
    return found;
  };
  /* The part of a box that its stage shows: what is scrolled out of sight overlaps nothing. */
  const onStage = e => {
    const box = e.getBoundingClientRect(), stage = e.parentElement.closest(".lens-stage");
    if (!stage) return box;
    const edge = stage.getBoundingClientRect();
    return {left: Math.max(box.left, edge.left), right: Math.min(box.right, edge.right),
      top: Math.max(box.top, edge.top), bottom: Math.min(box.bottom, edge.bottom)};
  };
  const BLOCKS = ".lens-head, .lens-controls, .lens-stage, .lens-gauge, figcaption";
  const PARTS = ".lens-head b, .lens-legend span, .lens-controls :is(button, input, output, .lens-menu > span), "
    + ".lens-stage, .lens-meter, .lens-caption, .lens-advice, summary";
  const parts = (figure, limits) => [BLOCKS, PARTS].flatMap(which => {
    const all = [...figure.querySelectorAll(which)].filter(seen).map(
      element => ({element, name: nameOf(element), box: onStage(element)}));
    const apart = (a, b) => !a.element.contains(b.element) && !b.element.contains(a.element);
    return overlaps(all, limits.part, "parts-overlap", apart);
  });
  const caption = figure => {
    const e = figure.querySelector(".lens-caption"), words = e ? e.textContent.trim() : "";
    /* Where there is no picture, its text stands on the stage: a verdict is its own sentence. */
    if (!words && figure.querySelector(".lens-stage > .lens-text")) return [];
    if (!words) return [{kind: "caption-missing", what: e ? "the caption is empty" : "there is no caption", px: 0}];
    const box = e.getBoundingClientRect();
    let hidden = !seen(e) || shared(box, box) < 1;
    for (let a = e; a !== figure.parentElement && !hidden; a = a.parentElement)
      if (getComputedStyle(a).overflowY !== "visible") hidden = shared(box, a.getBoundingClientRect()) < 1;
    return hidden ? [{kind: "caption-hidden", what: `“${short(words)}”`, px: 0}] : [];
  };

  const stateOf = (figure, limits) => {
    const elements = elementsOf(figure);
    return [
      ...[...figure.querySelectorAll(".lens-stage svg")].filter(seen).flatMap(svg => pictureOf(svg, limits)),
      ...written(figure, limits), ...leaving(figure, elements, limits), ...cut(figure, elements, limits),
      ...parts(figure, limits), ...caption(figure),
    ];
  };
  /* Every state, and the opening one again at the end. A finding that returns is the same finding. */
  look.measure = (figure, limits) => {
    const found = new Map(), count = look.states(figure), opening = look.shown(figure);
    let moved = count < 2;
    for (let k = 0; k < count; k++) {
      look.go(figure, k);
      moved = moved || look.shown(figure) !== opening;
      const state = look.name(figure);
      for (const {kind, what, px} of stateOf(figure, limits)) {
        const key = kind + what, known = found.get(key) || {kind, what, px, at: new Map()};
        const worse = kind === "text-small" ? Math.min : Math.max;
        known.px = worse(known.px, px);
        known.at.set(k, state);
        found.set(key, known);
      }
    }
    look.go(figure, look.opening(figure));
    if (!moved) found.set("", {kind: "figure-stuck", what: `${count} states look alike`, px: 0, at: new Map()});
    const findings = [...found.values()].map(({kind, what, px, at}) => ({kind, what, px, states: [...at.values()]}));
    return {title: figure.getAttribute("aria-label") || "", of: count, findings};
  };

  /* The page */

  look.measurePage = limits => {
    const root = d.documentElement, px = root.scrollWidth - root.clientWidth;
    if (px <= limits.part) return [];
    const wide = [...d.querySelectorAll("body *")].filter(
      e => e.getBoundingClientRect().right > root.clientWidth + limits.part && !inScroller(e, root));
    return [{kind: "page-scrolls-sideways", what: wide.slice(0, 3).map(nameOf).join(", ") || "the page", px}];
  };
  look.measurePlace = (figure, limits) => {
    const column = figure.closest("article, main");
    if (!column) return [];
    const px = sideways(figure.getBoundingClientRect(), column.getBoundingClientRect());
    return px > limits.part ? [{kind: "figure-outside-column", what: "the figure", px}] : [];
  };
})(window);
