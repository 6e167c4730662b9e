"use strict";
(function () {
  const page = document.body.dataset.page;
  const element = function (id) { return document.getElementById(id); };
  const typing = function (event) { return /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox"; };
  const make = function (tag, kind, text) {
    const node = document.createElement(tag);
    if (kind) { node.className = kind; }
    if (text !== undefined) { node.textContent = text; }
    return node;
  };
  if (window.top !== window.self) { document.documentElement.classList.add("framed"); }
  const help = function () { element("help").showModal(); };
  if (element("keys")) { element("keys").addEventListener("click", help); }

  // `keys` maps a key to what it does; an action that returns false leaves the key to the browser.
  const listen = function (keys) {
    keys["?"] = help;
    document.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event) || element("help").open) { return; }
      if (event.key === "Enter" && /^(A|BUTTON|SUMMARY)$/.test(event.target.tagName)) { return; }
      if (Object.hasOwn(keys, event.key) && keys[event.key](event) !== false) { event.preventDefault(); }
    });
  };

  // The style of a score in [0, 1], and the score in figures, as in judge/card/view_parts.py.
  const grade = function (score) {
    if (score === null) { return "unknown"; }
    if (score >= 0.8) { return "good"; }
    return score >= 0.4 ? "warn" : "bad";
  };
  // Half to even on the decimal digits, as in rounding.py: 83.75 is 83.8, 83.25 is 83.2.
  const fixed = function (value, digits) {
    const size = Math.abs(value);
    const scaled = size < 1e-6 ? 0 : Number(size + "e" + digits);
    const low = Math.floor(scaled);
    const up = scaled - low > 0.5 || (scaled - low === 0.5 && low % 2 === 1);
    const text = Number(low + (up ? 1 : 0) + "e-" + digits).toFixed(digits);
    return (value < 0 && Number(text) ? "-" : "") + text;
  };
  const figure = function (score, digits, presumed) {
    return score === null ? "–" : (presumed ? "~" : "") + fixed(score, digits);
  };
  const rowsOf = function (data) {
    return data.rows.map(function (values, number) {
      const row = { number: number, rubricNumber: values[data.fields.length], signs: values[data.fields.length + 1] };
      data.fields.forEach(function (name, at) { row[name] = values[at]; });
      row.groups = new Map(Object.entries(row.groups));
      return row;
    });
  };

  // The stages of which some row has a score, and the groups of criteria of rubrics of one's own.
  const MOST_GROUPS = 12;
  const partsOf = function (rows) {
    const groups = Array.from(new Set(rows.flatMap(function (r) { return Array.from(r.groups.keys()); }))).slice(0, MOST_GROUPS);
    const stages = [0, 1, 2, 3, 4].filter(function (i) { return rows.some(function (r) { return r.stages[i] !== null; }); });
    return stages.map(function (i) {
      return { name: "S" + (i + 1), read: i < 3, of: function (r) { return r.stages[i]; } };
    }).concat(groups.map(function (name) {
      return { name: name, read: true, of: function (r) { return r.groups.has(name) ? r.groups.get(name) : null; } };
    }));
  };

  const index = function () {
    const STEP = 100;
    const rows = rowsOf(window.AMBJUDGE);
    const table = element("runs");
    const body = table.tBodies[0];
    const filter = element("filter");
    const marked = new Set();
    let shown = rows;
    let drawn = 0;
    let at = -1;
    let sorted = null;
    let down = false;
    const text = function (value) { return value === null ? "" : String(value); };
    const parts = partsOf(rows);
    const stage = function (part) {
      return { name: part.name, kind: "num fine", key: part.of, cell: function (r, td) {
        td.textContent = figure(part.of(r), 2, r.presumed && part.read); td.classList.add(grade(part.of(r)));
      } };
    };
    const scores = function (r) { return parts.map(function (part) { return part.of(r); }); };
    const lowest = function (r) { return scores(r).reduce(function (a, b) { return a === null || (b !== null && b < a) ? b : a; }, null); };
    const bars = function (stages) {
      const draw = function (tag, values) {
        const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
        Object.keys(values).forEach(function (name) { node.setAttribute(name, values[name]); });
        return node;
      };
      const svg = draw("svg", { viewBox: "0 0 " + 10 * stages.length + " 20", preserveAspectRatio: "none", role: "img", "aria-label": stages.map(function (v) { return figure(v, 2, false); }).join(" ") });
      stages.forEach(function (v, i) {
        svg.append(draw("rect", { class: "ground", x: 10 * i, y: 0, width: 8, height: 20 }));
        if (v !== null) { svg.append(draw("rect", { class: grade(v), x: 10 * i, y: 19 * (1 - v), width: 8, height: 1 + 19 * v })); }
      });
      return svg;
    };
    const score = function (name, field, digits, scale, presumed) {
      return { name: name, kind: "num" + (field === "overall" ? "" : " fine"), key: function (r) { return r[field]; }, cell: function (r, td) {
        // Where too little was read there is a range and no point.
        td.textContent = field === "overall" && r.overall === null && r.span ? r.span.map(function (v) { return figure(v, digits, false); }).join("–") : figure(r[field], digits, presumed && r.presumed);
        td.classList.add(grade(r[field] === null ? null : r[field] / scale));
      } };
    };
    const plain = function (name, field, kind) {
      return { name: name, kind: kind, key: function (r) { return r[field]; }, cell: function (r, td) { td.textContent = text(r[field]); } };
    };
    const flags = function (r) { return (r.contradictions ? "!" : "") + (r.unscored ? "?" : "") + (r.unverified ? "≠" : "") + (r.presumed ? "~" : ""); };
    // As views/outcome_columns.py writes them: yes, no, figures, or the text itself.
    const room = parts.length > 3 ? [""] : ["", " wide2"];
    const outcome = function (spec, place) {
      const valueOf = function (r) { return Object.hasOwn(r.outcomes, spec.name) ? r.outcomes[spec.name] : null; };
      return { name: spec.title, title: spec.name, kind: "num" + (place < room.length ? room[place] : " wide3"), key: function (r) { const value = valueOf(r); return typeof value === "boolean" ? Number(value) : value; }, cell: function (r, td) {
        const value = valueOf(r);
        if (typeof value === "boolean") { td.textContent = value ? "yes" : "no"; td.classList.add(value ? "good" : "bad"); return; }
        td.textContent = typeof value === "string" ? value : figure(value, spec.digits, false);
      } };
    };
    const allColumns = [
      { name: "Run", kind: "name", always: true, key: function (r) { return r.id; }, cell: function (r, td) {
        const link = make(r.page ? "a" : "span", "", r.id);
        if (r.page) { link.href = "pages/" + r.page + ".html"; }
        td.append(link, make("span", "sub", [r.agent, r.task, r.tier].filter(Boolean).join(" · ")));
      } },
      plain("Agent", "agent", "wide1 text agent"),
      { name: "Model", kind: "wide3 text", key: function (r) { return r.model === r.agent ? null : r.model; }, cell: function (r, td) { td.textContent = r.model === r.agent ? "" : text(r.model); } },
      plain("Task", "task", "wide1 text"), plain("Tier", "tier", "wide2"),
      ...window.AMBJUDGE.outcomes.map(outcome), ...parts.map(stage),
      { name: "Stages", kind: "bars", key: lowest, cell: function (r, td) { td.append(bars(scores(r))); } },
      score("Agentic", "agentic", 2, 1, true), score("Task score", "task_score", 2, 1, false), score("Overall", "overall", 1, 100, true),
      { name: "Codes", kind: "codes", always: true, key: function (r) { return r.codes.join(" ") || (r.read && !r.unknown.length ? "" : null); }, cell: function (r, td) {
        td.append(make("span", "code", r.codes.join(" ")), make("span", "unknown", r.unknown.length ? " ?" : ""));
      } },
      { name: "End", kind: "wide2", key: function (r) { return r.ended; }, cell: function (r, td) {
        td.textContent = text(r.ended); if (r.disqualified || r.ended === "cut" || r.ended === "breach") { td.classList.add("bad"); }
      } },
      plain("Turns", "turns", "num wide2"), plain("Parts", "parts", "num wide2"), plain("Failed steps", "failed_steps", "num wide3"),
      { name: "Cost", kind: "num wide3", key: function (r) { return r.cost; }, cell: function (r, td) { td.textContent = r.cost === null ? "" : "$" + fixed(r.cost, 2); } },
      plain("Judge", "judge", "wide3"),
      { name: "Flags", kind: "flags", key: function (r) { return flags(r) || null; }, cell: function (r, td) { td.textContent = flags(r); } },
    ];
    // A column in which no run has a value is not drawn.
    let columns = allColumns.filter(function (column) {
      if (column.name === "Stages" && window.AMBJUDGE.outcomes.length) { return false; }
      return column.always || rows.some(function (r) { const key = column.key(r); return (key !== null && key !== "") || (column.name === "Overall" && r.span); });
    });
    // A table of few columns has room for all of them on narrower screens.
    if (columns.length <= 14) { columns = columns.map(function (column) { return Object.assign({}, column, { kind: (column.kind || "").replace("wide3", "wide2") }); }); }
    const order = new Intl.Collator(undefined, { numeric: true });
    const compare = function (a, b) {
      if (a === null || b === null) { return a === b ? 0 : a === null ? 1 : -1; }
      return (down ? -1 : 1) * (typeof a === "number" && typeof b === "number" ? a - b : order.compare(a, b));
    };
    const draw = function (upTo) {
      const some = document.createDocumentFragment();
      for (; drawn < Math.min(upTo, shown.length); drawn += 1) {
        const row = shown[drawn];
        const tr = make("tr", marked.has(row.number) ? "marked" : "");
        columns.forEach(function (column) { const td = make("td", column.kind); column.cell(row, td); tr.append(td); });
        some.append(tr);
      }
      body.append(some);
      element("more").hidden = drawn >= shown.length;
    };
    const move = function (to) {
      if (!shown.length) { at = -1; return; }
      if (body.rows[at]) { body.rows[at].classList.remove("here"); }
      at = Math.max(0, Math.min(to, shown.length - 1));
      if (at >= drawn) { draw(at + STEP); }
      body.rows[at].classList.add("here");
      body.rows[at].scrollIntoView({ block: "nearest" });
    };
    const show = function () {
      filter.setCustomValidity("");
      let test;
      try { test = runFilter(filter.value, marked); } catch (error) {
        filter.setCustomValidity(error.message);
        element("count").textContent = error.message;
        element("count").classList.add("bad");
        return;
      }
      shown = rows.filter(test);
      if (sorted !== null) { shown.sort(function (a, b) { return compare(columns[sorted].key(a), columns[sorted].key(b)) || a.number - b.number; }); }
      body.textContent = "";
      drawn = 0;
      at = -1;
      draw(STEP);
      const all = rows.length.toLocaleString("en");
      element("count").classList.remove("bad");
      element("count").textContent = (shown.length === rows.length ? all : shown.length.toLocaleString("en") + " of " + all) + (rows.length === 1 ? " run" : " runs") + (marked.size ? ", " + marked.size + " marked" : "");
    };
    const mark = function (place) {
      const row = shown[place];
      if (!row || !row.page) { return; }
      if (!marked.delete(row.number)) { marked.add(row.number); }
      body.rows[place].classList.toggle("marked", marked.has(row.number));
      const pair = Array.from(marked).map(function (number) { return encodeURIComponent(rows[number].page); });
      element("compare").hidden = marked.size !== 2;
      element("compare").href = "compare.html?a=" + pair[0] + "&b=" + pair[1];
      element("count").textContent = marked.size + " marked" + (marked.size === 2 ? ": c compares them" : "");
    };
    columns.forEach(function (column, number) {
      const head = make("th", column.kind);
      const button = make("button", "", column.name);
      if (column.title && column.title !== column.name) { button.title = column.title; }
      button.type = "button";
      head.scope = "col";
      head.append(button);
      table.tHead.rows[0].append(head);
      button.addEventListener("click", function () {
        down = sorted === number && !down;
        sorted = number;
        Array.from(table.tHead.rows[0].cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        show();
      });
    });
    body.addEventListener("click", function (event) {
      const tr = event.target.closest("tr");
      if (tr && !event.target.closest("a")) { const place = Array.prototype.indexOf.call(body.rows, tr); move(place); if (event.shiftKey) { mark(place); } }
    });
    element("more").firstElementChild.addEventListener("click", function () { draw(drawn + STEP); });
    if ("IntersectionObserver" in window) {
      new IntersectionObserver(function (entries) { if (entries.some(function (e) { return e.isIntersecting; })) { draw(drawn + STEP); } }, { rootMargin: "600px" }).observe(element("more"));
    }
    let due = 0;
    filter.addEventListener("input", function () {
      clearTimeout(due);
      due = setTimeout(function () { show(); history.replaceState(null, "", filter.value ? "#" + encodeURIComponent(filter.value) : location.pathname); }, 80);
    });
    filter.addEventListener("keydown", function (event) {
      if (event.key === "Escape" || event.key === "Enter") { filter.blur(); if (event.key === "Enter") { clearTimeout(due); show(); move(0); } event.preventDefault(); }
    });
    const read = function () {
      try { filter.value = decodeURIComponent(location.hash.slice(1)); } catch (error) { filter.value = ""; }
      show();
    };
    window.addEventListener("hashchange", read);
    table.hidden = false;
    read();
    listen({
      "/": function () { filter.focus(); filter.select(); },
      j: function () { move(at + 1); }, k: function () { move(at - 1); }, ArrowDown: function () { move(at + 1); }, ArrowUp: function () { move(at - 1); },
      g: function () { move(0); }, G: function () { move(shown.length - 1); },
      " ": function () { if (at < 0) { return false; } mark(at); move(at + 1); return true; },
      Enter: function () { if (at < 0 || !shown[at].page) { return false; } location.href = "pages/" + shown[at].page + ".html"; return true; },
      c: function () { if (marked.size !== 2) { return false; } location.href = element("compare").href; return true; },
    });
  };

  const run = function () {
    const turns = Array.from(document.querySelectorAll("details.turn"));
    const quotes = Array.from(document.querySelectorAll("mark")).filter(function (mark) { return !/-\d+$/.test(mark.id); });
    const failures = turns.filter(function (turn) { return turn.querySelector(".piece.failed"); });
    const links = new Map(Array.from(document.querySelectorAll(".map a"), function (a) { return [a.hash.slice(1), a]; }));
    let at = -1;
    let quote = -1;
    const reveal = function (node) {
      for (let up = node; up; up = up.parentElement) { if (up.tagName === "DETAILS") { up.open = true; } }
    };
    const here = function (turn) {
      at = turns.indexOf(turn);
      document.querySelectorAll(".here").forEach(function (old) { old.classList.remove("here"); });
      turn.classList.add("here");
      if (links.has(turn.id)) { links.get(turn.id).classList.add("here"); }
    };
    const go = function (node, open) {
      const turn = node.closest("details.turn");
      if (open) { reveal(node); }
      if (turn) { here(turn); }
      node.scrollIntoView({ block: node.tagName === "MARK" ? "center" : "start" });
    };
    const turnTo = function (to) { if (turns.length) { go(turns[Math.max(0, Math.min(to, turns.length - 1))], false); } };
    const quoteTo = function (step) {
      if (!quotes.length) { return; }
      quote = (quote + step + quotes.length) % quotes.length;
      document.querySelectorAll("mark.now").forEach(function (old) { old.classList.remove("now"); });
      quotes[quote].classList.add("now");
      go(quotes[quote], true);
    };
    const among = function (some, step) {
      if (!some.length) { return; }
      const places = some.map(function (turn) { return turns.indexOf(turn); });
      const next = step > 0 ? places.find(function (p) { return p > at; }) : places.slice().reverse().find(function (p) { return p < at; });
      go(turns[next === undefined ? places[step > 0 ? 0 : places.length - 1] : next], true);
    };
    const stage = function (event) {
      const kind = "s" + event.key;
      const starts = turns.filter(function (turn, n) { return turn.classList.contains(kind) && !(n && turns[n - 1].classList.contains(kind)); });
      among(starts, 1);
    };
    const target = function () {
      const node = location.hash ? element(decodeURIComponent(location.hash.slice(1))) : null;
      if (!node) { return; }
      document.querySelectorAll(".target").forEach(function (old) { old.classList.remove("target"); });
      node.classList.add("target");
      if (node.tagName === "MARK") { quote = quotes.indexOf(node); }
      go(node, true);
    };
    const unfold = function () {
      const open = turns.some(function (turn) { return !turn.open; });
      turns.forEach(function (turn) { turn.open = open; });
      if (element("unfold")) { element("unfold").textContent = open ? "Fold all" : "Unfold all"; }
    };
    const find = element("find");
    if (find) {
      element("unfold").addEventListener("click", unfold);
      let place = -1;
      find.addEventListener("keydown", function (event) {
        if (event.key === "Escape") { find.blur(); }
        if (event.key !== "Enter") { return; }
        event.preventDefault();
        const wanted = find.value.toLowerCase();
        const hits = turns.filter(function (turn) { return wanted && turn.textContent.toLowerCase().includes(wanted); });
        element("found").textContent = wanted ? hits.length + (hits.length === 1 ? " turn" : " turns") : "";
        if (!hits.length) { return; }
        const next = hits.find(function (turn) { return turns.indexOf(turn) > place; }) || hits[0];
        place = turns.indexOf(next);
        go(next, true);
        find.focus({ preventScroll: true });
      });
      find.addEventListener("input", function () { place = -1; element("found").textContent = ""; });
    }
    if ("IntersectionObserver" in window) {
      const seen = new IntersectionObserver(function (entries) {
        entries.forEach(function (entry) {
          const link = links.get(entry.target.id);
          if (link) { link.classList.toggle("seen", entry.isIntersecting); }
        });
      });
      turns.forEach(function (turn) { seen.observe(turn); });
    }
    window.addEventListener("hashchange", target);
    target();
    listen({
      j: function () { turnTo(at + 1); }, k: function () { turnTo(at - 1); },
      Enter: function () { if (at < 0) { return false; } turns[at].open = !turns[at].open; return true; },
      o: unfold, e: function () { quoteTo(1); }, E: function () { quoteTo(-1); },
      f: function () { among(failures, 1); }, F: function () { among(failures, -1); },
      1: stage, 2: stage, 3: stage, 4: stage, 5: stage,
      "/": function () { if (!find) { return false; } find.focus(); find.select(); return true; },
      u: function () { location.href = "../index.html"; },
    });
  };

  const comparing = function () {
    const data = window.AMBJUDGE;
    const rows = rowsOf(data);
    const asked = new URLSearchParams(location.search);
    const pair = ["a", "b"].map(function (side) { return rows.find(function (row) { return row.page === asked.get(side); }); });
    if (!pair[0] || !pair[1]) {
      element("problem").textContent = "Mark two runs in the table of runs with the space bar, then press c.";
      element("problem").hidden = false;
      listen({ u: function () { location.href = "index.html"; } });
      return;
    }
    const frames = Array.from(document.querySelectorAll("iframe"));
    const table = element("differences").querySelector("table");
    const body = table.tBodies[0];
    const open = function (row) {
      frames.forEach(function (frame, side) {
        const place = row ? row.places[side] : "";
        // Only names that the table of runs holds become addresses.
        frame.src = "pages/" + pair[side].page + ".html" + (place ? "#" + place : "");
      });
    };
    const lines = [];
    const numbers = function (name, values, digits, place) {
      const known = values[0] !== null && values[1] !== null;
      // The difference of the stored decimals, without the noise of a subtraction.
      const gap = known ? Number((values[1] - values[0]).toFixed(9)) : 0;
      const differ = known && Number(fixed(gap, digits)) !== 0;
      lines.push({ name: name, cells: values.map(function (v) { return figure(v, digits, false); }), change: differ ? (gap > 0 ? "+" : "−") + fixed(Math.abs(gap), digits) : "", kind: differ ? (gap > 0 ? "good" : "bad") : "", always: true, places: [place, place] });
    };
    numbers("Overall", pair.map(function (r) { return r.overall; }), 1, "");
    numbers("Agentic", pair.map(function (r) { return r.agentic; }), 2, "");
    numbers("Task", pair.map(function (r) { return r.task_score; }), 2, "");
    partsOf(pair).forEach(function (part) { numbers(part.name, pair.map(part.of), 2, part.name); });
    lines.push({ name: "Codes", cells: pair.map(function (r) { return r.codes.join(" ") + (r.unknown.length ? " ?" : "") || "none"; }), change: "", kind: "", always: true, places: ["", ""] });
    const names = pair.map(function (r) { return data.rubrics[r.rubricNumber].map(function (c) { return c[0]; }); });
    const titles = new Map(pair.flatMap(function (r) { return data.rubrics[r.rubricNumber]; }));
    Array.from(new Set(names[0].concat(names[1]))).forEach(function (id) {
      const at = names.map(function (some) { return some.indexOf(id); });
      const signs = at.map(function (place, side) { return place < 0 ? "" : pair[side].signs[place]; });
      lines.push({ name: id, title: titles.get(id), cells: signs, change: signs[0] === signs[1] ? "" : "≠", kind: "warn", always: signs[0] !== signs[1], places: at.map(function (place) { return place < 0 ? "" : "c" + place; }) });
    });
    let shown = [];
    let at = -1;
    const move = function (to) {
      at = Math.max(0, Math.min(to, shown.length - 1));
      Array.from(body.rows).forEach(function (tr, n) { tr.classList.toggle("here", n === at); });
      body.rows[at].scrollIntoView({ block: "nearest" });
    };
    const draw = function () {
      shown = lines.filter(function (line) { return line.always || element("all").checked; });
      body.textContent = "";
      shown.forEach(function (line, number) {
        const tr = make("tr");
        const head = make("th", "", line.name);
        head.scope = "row";
        if (line.title) { head.append(make("span", "sub", line.title)); }
        tr.append(head, make("td", "", line.cells[0]), make("td", "", line.cells[1]), make("td", line.kind, line.change));
        tr.addEventListener("click", function () { move(number); open(line); });
        body.append(tr);
      });
      at = -1;
    };
    pair.forEach(function (row, side) {
      const head = table.tHead.rows[0].cells[side + 1];
      const link = make("a", "", row.id);
      link.href = "pages/" + row.page + ".html";
      head.append(link, make("span", "sub", row.judge));
      frames[side].title = row.id;
    });
    element("all").addEventListener("change", draw);
    element("differences").hidden = false;
    draw();
    open(null);
    listen({
      j: function () { move(at + 1); }, k: function () { move(at - 1); },
      Enter: function () { if (at < 0 || !shown[at].page) { return false; } open(shown[at]); return true; },
      u: function () { location.href = "index.html"; },
    });
  };

  // board.js draws its page with these.
  window.AMBJUDGE_PAGE = { element: element, make: make, grade: grade, listen: listen };
  const pages = { index: index, run: run, compare: comparing };
  if (pages[page]) { pages[page](); }
})();
