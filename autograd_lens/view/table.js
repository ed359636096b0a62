/* Sorts the tables that figures put into a page, by a click on a heading: once, the other way round,
   and back to the order in which they came. Serves every table of this document. Comments and line
   breaks are removed when it is put into a page, so statements end with a semicolon. */
(w => {
  if (w.lensSorter) return;
  w.lensSorter = true;
  const d = w.document;
  /* What a row opens stands in the row below it, and goes where it goes. */
  const rowsOf = table => [...table.tBodies[0].rows].filter(row => !row.matches(".lens-inside"));
  const withInside = row => {
    const next = row.nextElementSibling;
    return next && next.matches(".lens-inside") ? [row, next] : [row];
  };
  const words = cell => (cell.querySelector("summary") || cell).textContent.trim();
  const key = cell => cell.dataset.key === undefined ? words(cell) : +cell.dataset.key;
  const sort = (table, head) => {
    const first = head.hasAttribute("data-falls") ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const now = head.getAttribute("aria-sort");
    const order = now === first ? second : now === second ? "" : first;
    table.lensRows = table.lensRows || rowsOf(table);
    const sign = order === "descending" ? -1 : 1;
    const keyed = table.lensRows.map(row => [key(row.cells[head.cellIndex]), row]);
    if (order) keyed.sort(([a], [b]) => a < b ? -sign : a > b ? sign : 0);
    table.tBodies[0].append(...keyed.flatMap(([, row]) => withInside(row)));
    table.querySelectorAll("[aria-sort]").forEach(h => h.removeAttribute("aria-sort"));
    if (order) head.setAttribute("aria-sort", order);
    table.closest(".lens-stage, .lens-rows").scrollTop = 0;
  };
  d.addEventListener("click", e => {
    const b = e.target.closest && e.target.closest(".lens-sorts > thead button");
    if (b) sort(b.closest("table"), b.closest("th"));
  });
})(window);
