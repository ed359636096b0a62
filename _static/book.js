// What is wider than its box scrolls in it (book.css). Who has no mouse reaches such a box with
// Tab; one that fits is no stop. A box is measured when it is drawn for the first time or changes
// its size: to measure all at once would lay out the whole chapter.
const boxes = "pre, .cell_output > .output, .pst-scrollable-table-container, .katex-display";
const letTabReach = new ResizeObserver(entries => {
  for (const {target: box} of entries) {
    if (box.closest("figure.lens")) continue; // a figure sees to itself
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll(boxes)) letTabReach.observe(box);

// A section that was never laid out has a guessed height, and what a link leads to moves away while
// those above it get their own. The page goes there again until it stays, or the reader moves on.
let journey = 0;
const endJourney = () => { journey++; };
for (const sign of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(sign, endJourney, {passive: true});
const stayAt = id => {
  const target = document.getElementById(decodeURIComponent(id));
  const mine = ++journey;
  let frames = 30;
  const again = () => {
    if (!target || mine !== journey || frames-- === 0) return;
    target.scrollIntoView();
    requestAnimationFrame(again);
  };
  requestAnimationFrame(again);
};
addEventListener("click", event => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) stayAt(link.hash.slice(1));
});
// Not after Back or a reload: there the browser knows where the reader was.
if (location.hash && performance.getEntriesByType("navigation")[0]?.type === "navigate") stayAt(location.hash.slice(1));

// On paper nothing unfolds, and dark is ink: all is open and light, and afterwards as it was.
let asItWas;
addEventListener("beforeprint", () => {
  if (asItWas) return;
  const folded = [...document.querySelectorAll("article details:not([open])")];
  const { theme } = document.documentElement.dataset;
  for (const details of folded) details.open = true;
  document.documentElement.dataset.theme = "light";
  asItWas = () => {
    for (const details of folded) details.open = false;
    document.documentElement.dataset.theme = theme;
  };
});
addEventListener("afterprint", () => {
  asItWas?.();
  asItWas = undefined;
});
