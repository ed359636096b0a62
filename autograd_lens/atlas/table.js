/* Sorts and filters every table of the atlas in this document. Comments and line breaks are removed
   when it is put into a page, so statements end with a semicolon. */
(w => {
  if (w.lensSheet) return;
  w.lensSheet = true;
  const d = w.document;
  const sheetOf = e => e.target.closest && e.target.closest(".lens-sheet");
  const rowsOf = s => [...s.querySelectorAll("tbody tr")];
  const text = (row, k) => row.cells[k].textContent.trim();
  const words = row => row.querySelector("summary").textContent.split(", ");
  const saves = {
    "anything": k => true,
    "input and output": k => k.includes("input") && k.includes("output")
  };
  const filter = s => {
    const [kind, note] = [...s.querySelectorAll("select")].map(m => m.value);
    const find = s.querySelector(".lens-find").value.toLowerCase().split(/\s+/);
    const rows = rowsOf(s);
    const fits = saves[kind] || (k => k.includes(kind));
    let shown = 0;
    rows.forEach(row => {
      row.lensText = row.lensText || row.textContent.toLowerCase();
      row.hidden = !(fits(words(row)) && (note === "any" || text(row, 4).split(", ").includes(note))
        && find.every(f => row.lensText.includes(f)));
      shown += !row.hidden;
    });
    const told = `${shown} of ${rows.length}`;
    const out = s.querySelector("output");
    if (out.value !== told) out.value = told;
  };
  /* Bytes by their ratio, everything else by its words; equal rows by the name of the op. */
  const ratio = row => {
    const [saved, out] = text(row, 3).split("/").map(Number);
    return saved / Math.max(out, 1);
  };
  const keys = [0, 1, 2, 3, 4].map(k => k === 3 ? ratio : k === 2 ? r => words(r).join() : r => text(r, k));
  const sort = (s, head) => {
    const k = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    const sign = down ? -1 : 1;
    const keyed = rowsOf(s).map(row => [keys[k](row), text(row, 0), row]);
    keyed.sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : x < y ? -1 : 1));
    s.querySelector("tbody").append(...keyed.map(one => one[2]));
    s.querySelectorAll("[aria-sort]").forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    s.querySelector(".lens-rows").scrollTop = 0;
  };
  d.addEventListener("input", e => {
    const s = sheetOf(e);
    if (s && e.target.closest(".lens-controls")) filter(s);
  });
  d.addEventListener("click", e => {
    const s = sheetOf(e);
    const b = s && e.target.closest("thead button");
    if (b) sort(s, b.closest("th"));
  });
  /* A browser that goes back may restore a control without telling. */
  w.addEventListener("pageshow", () => d.querySelectorAll(".lens-sheet").forEach(s => {
    if (s.querySelector(".lens-find").value || [...s.querySelectorAll("select")].some(m => m.selectedIndex)) filter(s);
  }));
})(window);
