// A wide formula scrolls in its own box (book.css). Who has no mouse reaches
// that box with Tab; a formula that fits is no stop.
const letTabReach = () => {
  for (const box of document.querySelectorAll(".katex-display")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", letTabReach);
addEventListener("resize", letTabReach);
document.addEventListener("toggle", letTabReach, true); // hints and answers unfold
