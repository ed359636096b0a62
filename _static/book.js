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
