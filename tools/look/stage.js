/* Brings a page and its figures into the state that is to be looked at, through the figures' own
   controls and player. Measures nothing. */
(w => {
  const d = w.document;
  const look = w.lensLook = {};
  look.figures = () => [...d.querySelectorAll("figure.lens")];
  const choices = f => [...f.querySelectorAll(".lens-choice")];
  const buttons = c => [...c.querySelectorAll("button")];
  look.states = f => choices(f).reduce((n, c) => n * +c.dataset.size, 1);
  /* As in player.js: the choices are the digits of a state's number, the last one varies fastest. */
  const digitOf = c => c.matches(".lens-menu")
    ? buttons(c).findIndex(b => b.getAttribute("aria-pressed") === "true") : +c.value;
  const now = f => choices(f).reduce((k, c) => k * +c.dataset.size + digitOf(c), 0);
  const opened = new Map();
  /* The state that a figure had when this was asked first. */
  look.opening = f => {
    if (!opened.has(f)) opened.set(f, now(f));
    return opened.get(f);
  };
  look.go = (f, k) => {
    look.opening(f);
    for (const c of choices(f).reverse()) {
      const digit = k % +c.dataset.size;
      k = (k - digit) / +c.dataset.size;
      if (c.matches(".lens-menu")) buttons(c).forEach((b, i) => b.setAttribute("aria-pressed", i === digit));
      else c.value = digit;
    }
    const one = choices(f)[0];
    if (!one) return;
    if (one.matches(".lens-menu")) one.querySelector('[aria-pressed="true"]').click();
    else one.dispatchEvent(new Event("input", {bubbles: true}));
  };
  look.name = f => choices(f).map(c => c.matches(".lens-menu")
    ? c.querySelector('[aria-pressed="true"]').textContent.trim()
    : (c.dataset.labels ? JSON.parse(c.dataset.labels)[+c.value] : c.value)).join(", ");
  look.shown = f => [".lens-stage", ".lens-gauge", ".lens-caption"].map(
    part => (f.querySelector(part) || f).innerHTML).join();
  /* Takes away all that is no figure, and keeps what gives a figure its place and width. */
  look.alone = () => {
    const kept = new Set();
    for (const f of look.figures()) for (let e = f; e; e = e.parentElement) kept.add(e);
    const article = e => e.closest("article, main") !== null;
    for (const e of kept) {
      if (e.matches("figure.lens")) continue;
      for (const child of e.children)
        if (!kept.has(child) && !child.matches("head, style, script"))
          child.style.setProperty(...article(e) ? ["display", "none"] : ["visibility", "hidden"], "important");
    }
  };
})(window);
