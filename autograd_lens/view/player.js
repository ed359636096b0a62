/* Turns the frames of every lens figure in this document. Comments and line breaks are removed when
   it is put into a page, so statements end with a semicolon. */
(w => {
  if (w.lensPlayer) return;
  w.lensPlayer = true;
  const d = w.document;
  const figureOf = e => e.target.closest && e.target.closest("figure.lens");
  /* The frame's number: choices are the digits, the last one varies fastest. */
  const indexOf = f => [...f.querySelectorAll(".lens-choice")].reduce(
    (k, c) => k * +c.dataset.size + (c.tagName === "SELECT" ? c.selectedIndex : +c.value), 0);
  const show = f => {
    const k = indexOf(f);
    const frame = f.querySelectorAll("template.lens-frame")[k];
    if (!frame) return;
    for (const part of frame.content.children) {
      f.querySelector("." + part.className).replaceChildren(...part.cloneNode(true).childNodes);
    };
    f.querySelectorAll(".lens-twin pre").forEach((p, i) => p.classList.toggle("lens-now", i === k));
    f.querySelectorAll("input.lens-choice").forEach(c => {
      const label = JSON.parse(c.dataset.labels)[+c.value];
      c.setAttribute("aria-valuetext", label);
      c.nextElementSibling.value = label;
    });
  };
  const move = (f, by) => {
    const c = f.querySelector(".lens-film .lens-choice");
    const to = +c.value + by;
    if (to < 0 || to > +c.max) return false;
    c.value = to;
    show(f);
    return to < +c.max;
  };
  const stop = f => {
    w.clearInterval(f.lensTimer);
    f.lensTimer = 0;
    const b = f.querySelector(".lens-play");
    if (b) { b.textContent = "▶"; b.setAttribute("aria-label", "play"); };
  };
  const play = f => {
    const c = f.querySelector(".lens-film .lens-choice");
    if (c.value === c.max) { c.value = 0; show(f); } else move(f, 1);
    const b = f.querySelector(".lens-play");
    b.textContent = "❚❚";
    b.setAttribute("aria-label", "pause");
    f.lensTimer = w.setInterval(() => { if (!f.isConnected || !move(f, 1)) stop(f); }, 1300);
  };
  d.addEventListener("input", e => {
    const f = figureOf(e);
    if (f && e.target.matches(".lens-choice")) { stop(f); show(f); };
  });
  d.addEventListener("click", e => {
    const f = figureOf(e);
    const b = f && e.target.closest("button");
    if (!b) return;
    if (b.matches(".lens-play")) { if (f.lensTimer) stop(f); else play(f); }
    else if (b.matches(".lens-prev")) { stop(f); move(f, -1); }
    else if (b.matches(".lens-next")) { stop(f); move(f, 1); };
  });
})(window);
