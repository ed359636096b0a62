/* Turns the frames of every lens figure in this document. Comments and line breaks are removed when
   it is put into a page, so statements end with a semicolon. */
(w => {
  if (w.lensPlayer) return w.lensPlayer();
  const d = w.document;
  const figureOf = e => e.target.closest && e.target.closest("figure.lens");
  const chosen = menu => [...menu.querySelectorAll("button")].findIndex(b => b.getAttribute("aria-pressed") === "true");
  /* The frame's number: choices are the digits, the last one varies fastest. */
  const indexOf = f => [...f.querySelectorAll(".lens-choice")].reduce(
    (k, c) => k * +c.dataset.size + (c.matches(".lens-menu") ? chosen(c) : +c.value), 0);
  /* A frame waits in a template; on the pages of the book as text, which is quicker to read in. */
  const contentOf = frame => {
    if (frame.content) return frame.content;
    const made = d.createElement("template");
    made.innerHTML = frame.textContent;
    return made.content;
  };
  /* What runs now comes into view, as the picture may be larger than its stage. */
  const reveal = f => {
    const stage = f.querySelector(".lens-stage");
    const now = [...stage.querySelectorAll(".now")].find(one => one.getClientRects().length);
    if (!now) {
      if (stage.querySelector(".wait")) stage.scrollTop = stage.scrollLeft = 0;
      return;
    };
    const a = now.getBoundingClientRect(), b = stage.getBoundingClientRect();
    stage.scrollLeft += Math.min(0, a.left - b.left - 8) + Math.max(0, a.right - b.right + 8);
    stage.scrollTop += Math.min(0, a.top - b.top - 8) + Math.max(0, a.bottom - b.bottom + 8);
  };
  /* On the state that a figure opens on, too: once it is in sight, as a section has no size before. */
  const sight = new w.IntersectionObserver(seen => seen.filter(one => one.isIntersecting).forEach(one => {
    sight.unobserve(one.target);
    reveal(one.target);
  }));
  w.lensPlayer = () => d.querySelectorAll("figure.lens").forEach(f => {
    if (f.lensWatched) return;
    f.lensWatched = true;
    sight.observe(f);
  });
  w.lensPlayer();
  const show = f => {
    const k = indexOf(f);
    const frame = f.querySelectorAll(".lens-frame")[k];
    if (!frame) return;
    for (const part of contentOf(frame).children) {
      f.querySelector("." + part.className).replaceChildren(...part.cloneNode(true).childNodes);
    };
    reveal(f);
    f.querySelectorAll(".lens-twin pre").forEach((p, i) => p.classList.toggle("lens-now", i === k));
    f.querySelectorAll("input.lens-choice").forEach(c => {
      const label = JSON.parse(c.dataset.labels)[+c.value];
      c.setAttribute("aria-valuetext", label);
      c.nextElementSibling.value = label;
    });
  };
  /* A film is one choice with its buttons; a figure may have several. */
  const move = (film, by) => {
    const c = film.querySelector(".lens-choice");
    const to = +c.value + by;
    if (to < 0 || to > +c.max) return false;
    c.value = to;
    show(film.closest("figure.lens"));
    return to < +c.max;
  };
  const face = (film, sign, name) => {
    const b = film.querySelector(".lens-play");
    b.textContent = sign;
    b.setAttribute("aria-label", name);
  };
  const stop = film => {
    if (!film.lensTimer) return;
    w.clearInterval(film.lensTimer);
    film.lensTimer = 0;
    face(film, "▶", "play");
  };
  const play = film => {
    const c = film.querySelector(".lens-choice");
    move(film, c.value === c.max ? -c.max : 1);
    face(film, "❚❚", "pause");
    film.lensTimer = w.setInterval(() => { if (!film.isConnected || !move(film, 1)) stop(film); }, 1300);
  };
  d.addEventListener("input", e => {
    const f = figureOf(e);
    if (!f || !e.target.matches(".lens-choice")) return;
    f.querySelectorAll(".lens-film").forEach(stop);
    show(f);
  });
  /* A browser that goes back may restore a control without telling. */
  w.addEventListener("pageshow", () => d.querySelectorAll("figure.lens").forEach(f => {
    const said = f.querySelectorAll(".lens-twin pre")[indexOf(f)];
    if (said && !said.matches(".lens-now")) show(f);
  }));
  /* A box that opens presses a button of the first menu; the picture keeps the focus. */
  const open = e => {
    const box = figureOf(e) && e.target.closest(".opens");
    if (!box) return false;
    const f = figureOf(e), number = +/opens_(\d+)/.exec(box.getAttribute("class"))[1];
    f.querySelectorAll(".lens-menu button")[number].click();
    f.querySelector(".lens-stage").focus({preventScroll: true});
    return true;
  };
  /* A box with a note tells it under the picture, when it is pointed to, tapped or has the focus. */
  const noted = e => figureOf(e) && e.target.closest(".noted");
  const tell = e => {
    const box = noted(e), line = box && figureOf(e).querySelector(".lens-note");
    /* A page that scrolls by the keyboard moves other boxes under the pointer. */
    const held = d.activeElement.matches(".noted:focus-visible") && d.activeElement !== box;
    if (!line || e.type === "pointerover" && held) return;
    const title = box.querySelector("text").textContent, words = JSON.parse(line.dataset.notes)[title];
    if (words) line.textContent = `${title} in PyTorch: ${words}`;
  };
  for (const kind of ["pointerover", "focusin", "click"]) d.addEventListener(kind, tell);
  /* One box is a stop of the Tab key; the arrows lead to the others. */
  const BY = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1};
  d.addEventListener("keydown", e => {
    const box = BY[e.key] && noted(e);
    if (!box) return;
    const all = [...box.closest("svg").querySelectorAll(".noted")];
    const next = all[all.indexOf(box) + BY[e.key]];
    e.preventDefault();
    if (next) next.focus();
  });
  d.addEventListener("keydown", e => {
    if ((e.key === "Enter" || e.key === " ") && open(e)) e.preventDefault();
  });
  d.addEventListener("click", e => {
    if (open(e)) return;
    const b = figureOf(e) && e.target.closest("button");
    const menu = b && b.closest(".lens-menu");
    if (menu) {
      menu.querySelectorAll("button").forEach(one => one.setAttribute("aria-pressed", one === b));
      figureOf(e).querySelectorAll(".lens-film").forEach(stop);
      show(figureOf(e));
      return;
    };
    const film = b && b.closest(".lens-film");
    if (!film) return;
    const playing = film.lensTimer;
    stop(film);
    if (b.matches(".lens-prev")) move(film, -1);
    else if (b.matches(".lens-next")) move(film, 1);
    else if (!playing) play(film);
  });
})(window);
