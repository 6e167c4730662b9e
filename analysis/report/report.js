"use strict";
(function () {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const modes = ["auto", "light", "dark"];
  const use = function (mode) {
    if (mode === "auto") { delete root.dataset.theme; } else { root.dataset.theme = mode; }
    button.textContent = "Colours: " + mode;
    button.dataset.mode = mode;
  };
  let kept = "auto";
  try { kept = localStorage.getItem("ambjudge-theme") || "auto"; } catch (error) { /* private mode: not kept */ }
  use(modes.includes(kept) ? kept : "auto");
  button.hidden = false;
  button.addEventListener("click", function () {
    const next = modes[(modes.indexOf(button.dataset.mode) + 1) % modes.length];
    use(next);
    try { localStorage.setItem("ambjudge-theme", next); } catch (error) { /* not kept */ }
  });

  const order = new Intl.Collator(undefined, { numeric: true });
  const compare = function (a, b, sign) {
    if (a === null || b === null) { return a === b ? 0 : a === null ? 1 : -1; }  // unknown stays last either way
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : order.compare(String(a), String(b)));
  };
  const key = function (cell) {
    if (cell.dataset.n !== undefined) { return Number(cell.dataset.n); }
    return cell.dataset.none !== undefined ? null : cell.textContent;
  };
  document.querySelectorAll("table.sortable").forEach(function (table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const control = document.createElement("button");
      control.type = "button";
      control.append(...head.childNodes);
      head.append(control);
      control.addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows).map(function (row) { return [key(row.cells[column]), row]; });
        rows.sort(function (a, b) { return compare(a[0], b[0], down ? -1 : 1); });
        body.append(...rows.map(function (pair) { return pair[1]; }));
      });
    });
  });
})();
