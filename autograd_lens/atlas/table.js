/* Filters every table of the atlas in this document. Comments and line breaks are removed
   when it is put into a page, so statements end with a semicolon. */
(w => {
  if (w.lensSheet) return;
  w.lensSheet = true;
  const d = w.document;
  const sheetOf = e => e.target.closest && e.target.closest(".lens-sheet");
  const rowsOf = s => [...s.querySelectorAll("tbody tr")];
  const text = (row, k) => row.cells[k].textContent.trim();
  const words = row => row.querySelector("summary").textContent.split(", ");
  const pressed = (s, name) => [...s.querySelectorAll(`.lens-chips[aria-label=${name}] [aria-pressed=true]`)]
    .map(chip => chip.textContent);
  const filter = s => {
    const kinds = pressed(s, "saves"), notes = pressed(s, "notes");
    const find = s.querySelector(".lens-find").value.toLowerCase().split(/\s+/);
    const rows = rowsOf(s);
    const all = (wanted, there) => wanted.every(one => there.includes(one));
    let shown = 0;
    rows.forEach(row => {
      row.lensText = row.lensText || row.textContent.toLowerCase();
      row.hidden = !(all(kinds, words(row)) && all(notes, text(row, 4).split(", "))
        && find.every(f => row.lensText.includes(f)));
      shown += !row.hidden;
    });
    const told = `${shown} of ${rows.length}`;
    const out = s.querySelector("output");
    if (out.value !== told) out.value = told;
  };
  d.addEventListener("input", e => {
    const s = sheetOf(e);
    if (s && e.target.closest(".lens-controls")) filter(s);
  });
  d.addEventListener("click", e => {
    const s = sheetOf(e);
    const chip = s && e.target.closest(".lens-chips button");
    if (!chip) return;
    chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") !== "true");
    filter(s);
  });
  /* A browser that goes back may restore a control without telling. */
  w.addEventListener("pageshow", () => d.querySelectorAll(".lens-sheet").forEach(s => {
    if (s.querySelector(".lens-find").value) filter(s);
  }));
})(window);
