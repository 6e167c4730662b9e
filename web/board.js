"use strict";
// The board: chooses among numbers that were computed and rounded when the site was built, and draws them.
(function () {
  const { element, make, listen } = window.AMBJUDGE_PAGE;
  const data = window.AMBJUDGE_BOARD;
  if (!data.labels.length) { listen({ u: function () { location.href = "index.html"; } }); return; }
  const UNKNOWN = "–";
  const ALL = "";
  const CHARTS = ["total_tokens", "turns", "wall_time_s", "cost_usd", "failed"];
  const measures = data.measures.map(function (m, place) { return { key: m[0], name: m[1], unit: m[2], digits: m[3], kind: m[4], place: place }; });
  const stages = measures.filter(function (m) { return m.kind === "stage"; });
  // Scores that rest on judged criteria: of the benchmark's stages S1 to S3.
  const isJudged = function (m) { return m.key === "overall" || m.key === "agentic" || (m.kind === "stage" && m.key !== "S4" && m.key !== "S5"); };
  const filterOf = Object.fromEntries(data.groupings.map(function (grouping) { return [grouping, new Map(data.filters[grouping])]; }));

  // The state of the page, as it stands in the address.
  const state = { track: ALL, task: ALL, tier: ALL, by: "agent", interval: "", sort: "" };
  const placeOf = function (list, name, at) { return list.findIndex(function (entry) { return entry[at] === name; }); };
  const chosen = function () {
    const track = placeOf(data.tracks, state.track, 0);
    const task = data.tasks.findIndex(function (entry) { return entry[1] === state.task && (track < 0 || entry[0] === track); });
    return { track: task < 0 ? track : data.tasks[task][0], task: task, tier: placeOf(data.tiers, state.tier, 0) };
  };
  const keyOf = function (choice) {
    return [choice.track, choice.task, choice.tier].map(function (place) { return place < 0 ? "-" : String(place); }).join(" ");
  };
  const cellOf = function (choice) { return data.cells[keyOf(choice)]; };
  // The rows of a grouping and its codes by label; a grouping of the same runs names that one and has its own labels.
  const groupingOf = function (cell) {
    const grouping = cell[2][data.groupings.indexOf(state.by)];
    if (Array.isArray(grouping[0])) { return grouping; }
    const [sameRows, sameCodes] = cell[2][grouping[0]];
    const codes = Object.assign({}, sameCodes);
    const renamed = sameRows.map(function (row, place) {
      const label = grouping[1][place];
      codes[label] = sameCodes[row[0]];
      return [label].concat(row.slice(1));
    });
    return [renamed, codes];
  };

  const isUnknown = function (value) { return value === null || value === undefined; };
  const figure = function (value, digits) {
    return isUnknown(value) ? UNKNOWN : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
  };
  // Numbers are [value, runs, low, high, low for the same tasks, high for the same tasks, note].
  const ends = function (numbers) {
    if (!numbers) { return [null, null]; }
    const from = state.interval === "same" ? 4 : 2;
    return [numbers[from], numbers[from + 1]].map(function (end) { return isUnknown(end) ? null : end; });
  };
  const rangeText = function (low, high, digits) {
    if (isUnknown(low) && isUnknown(high)) { return ""; }
    if (isUnknown(low)) { return "at most " + figure(high, digits); }
    if (isUnknown(high)) { return "at least " + figure(low, digits); }
    return "[" + figure(low, digits) + ", " + figure(high, digits) + "]";
  };
  const intervalText = function (numbers, digits) { return rangeText(...ends(numbers), digits); };
  const valueOf = function (numbers) { return numbers ? numbers[0] : null; };
  const href = function (terms) { return "index.html#" + encodeURIComponent(terms.filter(Boolean).join(" ")); };
  const selectionTerms = function () {
    const choice = chosen();
    return [
      choice.track < 0 ? "" : data.tracks[choice.track][1],
      choice.task < 0 ? "" : data.tasks[choice.task][2],
      choice.tier < 0 ? "" : data.tiers[choice.tier][1],
    ];
  };

  const heading = function (row, text, kind, action, described) {
    const head = make("th", kind);
    head.scope = "col";
    if (action) {
      const button = make("button", "", text);
      button.type = "button";
      button.setAttribute("aria-label", described);
      button.title = described;
      button.addEventListener("click", action);
      head.append(button);
    } else {
      head.textContent = text;
    }
    row.append(head);
    return head;
  };
  const define = function (key) {
    const entry = element("d-" + key);
    element("definitions").open = true;
    document.querySelectorAll(".target").forEach(function (old) { old.classList.remove("target"); });
    entry.classList.add("target");
    entry.scrollIntoView({ block: "center" });
    entry.focus({ preventScroll: true });
  };
  const openStage = function (key) {
    const dialog = element("stage-" + stages.findIndex(function (m) { return m.key === key; }));
    if (!dialog) { return; }
    const rubrics = Array.from(dialog.querySelectorAll(":scope > details"));
    // With a track chosen, its rubric is open.
    rubrics.forEach(function (part) { part.open = rubrics.length === 1 || (state.track !== ALL && part.dataset.track === state.track); });
    dialog.showModal();
  };
  const title = function (m) { return m.unit ? m.name + ", " + m.unit : m.name; };

  const numbersCell = function (numbers, digits, kind) {
    const td = make("td", kind || "num", figure(valueOf(numbers), digits));
    const interval = intervalText(numbers, digits);
    if (interval) { td.append(make("span", "sub", interval)); }
    return td;
  };
  const plural = function (count, word) { return count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s"); };
  const clear = function (id) {
    const table = element(id);
    table.tHead.rows[0].textContent = "";
    table.tBodies[0].textContent = "";
    return [table.tHead.rows[0], table.tBodies[0]];
  };
  const list = function (names, most) {
    const some = names.slice(0, most).join(", ");
    return names.length > most ? some + " and " + (names.length - most) + " more" : some;
  };

  // Rows are [label, runs, tasks, [agents, models, tiers], presumed, unread, ranges, numbers, notes].
  const rowOf = function (values) {
    const [agents, models, tiers] = values[3].map(function (part) { return part.map(function (place) { return data.labels[place]; }); });
    return { label: values[0], name: data.labels[values[0]], runs: values[1], tasks: values[2], agents: agents, models: models, tiers: tiers, presumed: values[4] === 1, ranges: values[6], numbers: values[7], notes: values[8] };
  };
  const mixtures = function (row) {
    const lines = [];
    const one = function (names, word) {
      if (names.length > 1) { lines.push(["warn", "mixes " + names.length + " " + word + "s: " + list(names, 3)]); }
      else if (names[0] !== row.name && names[0] !== "(unknown)" && state.by !== "agent+model") { lines.push(["", names[0]]); }
    };
    if (state.by === "agent") { one(row.models, "model"); }
    if (state.by === "model") { one(row.agents, "agent"); }
    if (row.tiers.length > 1) { lines.push(["", row.tiers.length + " tiers: " + list(row.tiers, 3)]); }
    return lines;
  };
  const linkOf = function (row) { return href([filterOf[state.by].get(row.label)].concat(selectionTerms())); };

  const SORTS = { name: function (row) { return row.name; }, runs: function (row) { return row.runs; } };
  measures.forEach(function (m) { SORTS[m.key] = function (row) { return valueOf(row.numbers[m.place]); }; });
  const order = new Intl.Collator(undefined, { numeric: true });
  const sorted = function (rows) {
    const key = state.sort.replace(/^-/, "");
    if (!Object.hasOwn(SORTS, key)) { return rows; }
    const sign = state.sort[0] === "-" ? -1 : 1;
    return rows.slice().sort(function (a, b) {
      const [x, y] = [SORTS[key](a), SORTS[key](b)];
      if (x === null || y === null) { return x === y ? 0 : x === null ? 1 : -1; }
      return sign * (typeof x === "number" ? x - y : order.compare(x, y));
    });
  };
  const sortBy = function (key, first) {
    const opposite = first === "-" ? key : "-" + key;
    state.sort = state.sort === first + key ? opposite : first + key;
    show();
    element("sort-" + key).focus();
  };
  const sortButton = function (head, key, name, first) {
    const button = make("button", "sort", "");
    button.type = "button";
    button.id = "sort-" + key;
    button.setAttribute("aria-label", "Sort by " + name);
    button.addEventListener("click", function () { sortBy(key, first); });
    head.append(button);
    if (state.sort.replace(/^-/, "") === key) { head.setAttribute("aria-sort", state.sort[0] === "-" ? "descending" : "ascending"); }
  };

  let rows = [];
  let at = -1;
  const scoreCell = function (row, m) {
    const numbers = row.numbers[m.place];
    const range = { overall: row.ranges[0], agentic: row.ranges[1] }[m.key];
    if (valueOf(numbers) === null && range) {
      const td = make("td", "num", figure(range[0], m.digits) + "–" + figure(range[1], m.digits));
      td.append(make("span", "sub", "range, no point"));
      return td;
    }
    const td = numbersCell(numbers, m.digits);
    if (row.presumed && isJudged(m) && valueOf(numbers) !== null) {
      td.prepend("~");
      if (range && range[0] !== range[1]) { td.append(make("span", "sub", figure(range[0], m.digits) + "–" + figure(range[1], m.digits))); }
    }
    if (numbers && numbers[1] !== row.runs) { td.append(make("span", "sub", "of " + plural(numbers[1], "run"))); }
    return td;
  };
  const drawBoard = function (cell) {
    const [head, body] = clear("board");
    sortButton(heading(head, { agent: "Agent", model: "Model", "agent+model": "Agent · model" }[state.by], "name"), "name", "name", "");
    measures.forEach(function (m) {
      const isStage = m.kind === "stage";
      const described = m.name + (isStage ? ": criteria and formula" : ": what it means");
      const open = function () { if (isStage) { openStage(m.key); } else { define(m.key); } };
      sortButton(heading(head, title(m), "num", open, described), m.key, m.name, m.kind === "resource" ? "" : "-");
    });
    sortButton(heading(head, "Runs", "num"), "runs", "runs", "-");
    rows = sorted(groupingOf(cell)[0].map(rowOf));
    const notes = new Map();
    rows.forEach(function (row) {
      const tr = make("tr");
      const name = make("th", "name");
      name.scope = "row";
      const link = make("a", "", row.name);
      link.href = linkOf(row);
      name.append(link);
      row.notes.forEach(function (place) {
        if (!notes.has(place)) { notes.set(place, notes.size + 1); }
        name.append(make("sup", "", String(notes.get(place))));
      });
      mixtures(row).forEach(function (line) { name.append(make("span", "sub " + line[0], line[1])); });
      tr.append(name);
      measures.forEach(function (m) { tr.append(scoreCell(row, m)); });
      const count = make("td", "num", row.runs.toLocaleString("en"));
      count.append(make("span", "sub", plural(row.tasks, "task")));
      tr.append(count);
      body.append(tr);
    });
    drawNotes(cell, notes);
    at = -1;
  };
  const somePresumed = function () { return rows.some(function (row) { return row.presumed; }); };
  const drawNotes = function (cell, notes) {
    const place = element("notes");
    place.textContent = "";
    if (notes.size) {
      const ordered = make("ol");
      notes.forEach(function (number, note) { ordered.append(make("li", "", data.notes[note])); });
      place.append(ordered);
    }
    // Notes on missing intervals are about those for new tasks.
    const reasons = new Set();
    rows.forEach(function (row) {
      row.numbers.forEach(function (numbers) { if (numbers && numbers.length > 6) { reasons.add(data.notes[numbers[6]]); } });
    });
    cell[1].forEach(function (note) { place.append(make("p", "", data.notes[note] + ".")); });
    const means = rows.flatMap(function (row) { return row.numbers.filter(function (numbers) { return !isUnknown(valueOf(numbers)); }); });
    const without = means.filter(function (numbers) { return isUnknown(numbers[4]); });
    if (state.interval === "same" && without.length) {
      const reason = without.length === means.length ? "too few repeats" : "a mean without one has repeats that do not differ, or too few of them";
      place.append(make("p", "", "No interval for the same tasks: " + reason + "."));
    }
    if (reasons.size) { place.append(make("p", "", "No interval for new tasks: " + Array.from(reasons).join("; ") + ".")); }
    const tasks = new Set(rows.map(function (row) { return row.tasks; }));
    if (tasks.size > 1) { place.append(make("p", "warn", "The rows do not have the same tasks: their means are not of the same work.")); }
  };

  const SVG = "http://www.w3.org/2000/svg";
  const draw = function (tag, values, text) {
    const node = document.createElementNS(SVG, tag);
    Object.keys(values).forEach(function (name) { node.setAttribute(name, values[name]); });
    if (text !== undefined) { node.textContent = text; }
    return node;
  };
  const cut = function (text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; };
  const drawChart = function (m) {
    const [WIDTH, STEP, TEXT] = [360, 34, 12];
    const known = rows.map(function (row) { return row.numbers[m.place]; });
    const largest = Math.max(0, ...known.flatMap(function (numbers) { return [valueOf(numbers), ends(numbers)[1]].filter(function (v) { return v !== null; }); }));
    const x = function (value) { return largest ? (WIDTH - 2) * value / largest : 0; };
    const texts = rows.map(function (row) { return row.name + " " + figure(valueOf(row.numbers[m.place]), m.digits) + " " + intervalText(row.numbers[m.place], m.digits); });
    const svg = draw("svg", { viewBox: "0 0 " + WIDTH + " " + Math.max(1, STEP * rows.length), role: "img", "aria-label": title(m) + ": " + texts.map(function (text) { return text.trim(); }).join("; ") });
    rows.forEach(function (row, place) {
      const top = STEP * place;
      const numbers = row.numbers[m.place];
      const value = valueOf(numbers);
      const [low, high] = ends(numbers);
      const label = draw("text", { x: 0, y: top + TEXT, class: "label" }, cut(row.name, 40));
      label.append(draw("title", {}, row.name));
      svg.append(label, draw("text", { x: WIDTH, y: top + TEXT, class: "value", "text-anchor": "end" }, figure(value, m.digits)));
      svg.append(draw("rect", { class: "ground", x: 0, y: top + 17, width: WIDTH, height: 9 }));
      if (value !== null) { svg.append(draw("rect", { class: "amount", x: 0, y: top + 17, width: x(value), height: 9 })); }
      if (low !== null && high !== null) {
        svg.append(draw("path", { class: "whisker", d: "M" + x(low) + " " + (top + 21.5) + "H" + x(high) + "M" + x(low) + " " + (top + 18) + "v7M" + x(high) + " " + (top + 18) + "v7" }));
      }
    });
    const chart = make("figure");
    chart.append(make("figcaption", "", title(m)), svg);
    return chart;
  };
  const drawCharts = function () {
    const charts = element("charts");
    charts.textContent = "";
    CHARTS.forEach(function (key) {
      const measure = measures.find(function (m) { return m.key === key; });
      if (measure) { charts.append(drawChart(measure)); }
    });
    if (!charts.childElementCount) { charts.textContent = "Nothing is known of it."; }
  };

  // The ratio has one interval, whatever tasks it is for.
  const ratioCell = function (numbers) {
    const td = make("td", "num", figure(valueOf(numbers), 1));
    const interval = rangeText(numbers[2], numbers[3], 1);
    if (interval) { td.append(make("span", "sub", interval)); }
    return td;
  };
  // Codes are, by label, [fired, read, runs, rate, share] for each code, then the ratio.
  const drawCodes = function (cell) {
    const codes = groupingOf(cell)[1];
    const everyone = data.labels.indexOf("(all)");
    const labels = [everyone].concat(rows.map(function (row) { return row.label; })).filter(function (label) { return codes[label]; });
    const [rateHead, rateBody] = clear("rates");
    const [shareHead, shareBody] = clear("shares");
    [rateHead, shareHead].forEach(function (head) {
      heading(head, "", "name");
      data.codes.forEach(function (code) { heading(head, code, "num", function () { define(code); }, code + ": what it means"); });
    });
    heading(shareHead, "E2–E5 : E1", "num");
    const notes = element("code-notes");
    notes.textContent = "";
    codes[everyone].slice(0, data.codes.length).forEach(function (numbers) {
      const rate = numbers[3];
      if (valueOf(rate) === null && rate.length > 6) { notes.append(make("p", "", data.notes[rate[6]] + ".")); }
    });
    labels.forEach(function (label) {
      const own = label === everyone ? "" : filterOf[state.by].get(label);
      const name = function () {
        const head = make("th", "name", label === everyone ? "all runs" : data.labels[label]);
        head.scope = "row";
        return head;
      };
      const [rates, shares] = [make("tr"), make("tr")];
      rates.append(name());
      shares.append(name());
      data.codes.forEach(function (code, place) {
        const [fired, read, , rate, share] = codes[label][place];
        const td = numbersCell(rate, 1);
        if (valueOf(rate) !== null) { td.firstChild.data += " %"; }
        const count = make(fired ? "a" : "span", "sub", fired === null ? "not read" : fired.toLocaleString("en") + " of " + read.toLocaleString("en"));
        if (fired) { count.href = href([own].concat(selectionTerms(), ["code:" + code])); }
        td.append(count);
        rates.append(td);
        const part = numbersCell(share, 1);
        if (valueOf(share) !== null) { part.firstChild.data += " %"; }
        shares.append(part);
      });
      shares.append(ratioCell(codes[label][data.codes.length]));
      rateBody.append(rates);
      shareBody.append(shares);
    });
  };
  const drawStages = function (cell) {
    const [head, body] = clear("stages");
    heading(head, "Code", "name");
    data.stages.forEach(function (stage) {
      data.groups.forEach(function (group) {
        const open = function () { openStage(stage); };
        heading(head, stage + " " + group, "num", open, stage + ": criteria and formula");
      });
    });
    if (!cell[4].flat(2).some(function (numbers) { return valueOf(numbers) !== null; })) {
      const tr = make("tr");
      const td = make("td", "", "No run has both a scored stage and a code that was looked for.");
      td.colSpan = 1 + data.stages.length * data.groups.length;
      tr.append(td);
      body.append(tr);
      return;
    }
    data.codes.forEach(function (code, place) {
      const tr = make("tr");
      const name = make("th", "name", code);
      name.scope = "row";
      tr.append(name);
      cell[4][place].forEach(function (groups) {
        groups.forEach(function (numbers, which) {
          const td = numbersCell(numbers, 1);
          if (somePresumed() && valueOf(numbers) !== null) { td.prepend("~"); }
          if (data.groups[which] !== "difference") { td.append(make("span", "sub", plural(numbers[1], "run"))); }
          tr.append(td);
        });
      });
      body.append(tr);
    });
  };
  const drawMeans = function (cell) {
    const [head, body] = clear("means");
    ["Measure", "Mean", "95 %, " + (state.interval === "same" ? "same tasks" : "new tasks"), "Runs"].forEach(function (text, place) { heading(head, text, place ? "num" : "name"); });
    measures.forEach(function (m) {
      const numbers = cell[3][m.place];
      const name = make("th", "name", title(m));
      name.scope = "row";
      const tr = make("tr");
      const mark = somePresumed() && isJudged(m) && valueOf(numbers) !== null ? "~" : "";
      tr.append(name, make("td", "num", mark + figure(valueOf(numbers), m.digits)), make("td", "num", intervalText(numbers, m.digits) || UNKNOWN), make("td", "num", numbers[1].toLocaleString("en")));
      body.append(tr);
    });
  };

  const option = function (select, value, text, off) {
    const node = make("option", "", text);
    node.value = value;
    node.disabled = off;
    select.append(node);
  };
  const fill = function (id, word, entries) {
    const select = element(id);
    select.textContent = "";
    option(select, ALL, word, false);
    entries.forEach(function (entry) { option(select, entry[0], entry[1], entry[2]); });
    select.value = state[id];
    select.disabled = !entries.length;
  };
  const fillPickers = function (choice) {
    fill("track", "all tracks", data.tracks.map(function (entry) { return [entry[0], entry[0], false]; }));
    const tasks = data.tasks.filter(function (entry) { return choice.track < 0 || entry[0] === choice.track; });
    fill("task", "all tasks", tasks.map(function (entry) { return [entry[1], entry[1], false]; }));
    fill("tier", "all tiers", data.tiers.map(function (entry, place) {
      return [entry[0], entry[0], !cellOf({ track: choice.track, task: choice.task, tier: place })];
    }));
    element("by").value = state.by;
    element("interval").value = state.interval;
  };
  // Where no row has an interval for new tasks, as on a single task, those for the same tasks are shown.
  const usableInterval = function (cell) {
    const numbers = groupingOf(cell)[0].flatMap(function (row) { return row[7]; }).filter(Boolean);
    const has = function (place) { return numbers.some(function (some) { return some.length > place && some[place] !== null; }); };
    return !has(2) && has(4) ? "same" : "new";
  };
  let explicit = false;
  const show = function () {
    const choice = chosen();
    if (choice.track >= 0) { state.track = data.tracks[choice.track][0]; }
    const cell = cellOf(choice);
    if (!cell) {
      fillPickers(choice);
      element("count").textContent = "No run has this combination.";
      rows = [];
      ["board", "rates", "shares", "stages", "means"].forEach(clear);
      element("notes").textContent = "";
      element("code-notes").textContent = "";
      element("charts").textContent = "";
      return;
    }
    if (!explicit) { state.interval = usableInterval(cell); }
    fillPickers(choice);
    const population = state.interval === "same" ? "these tasks run again" : "new tasks of the same kind";
    element("count").textContent = plural(cell[0], "run") + ". Scores are times 100, with 95 % intervals for " + population + ". A click on a stage shows its criteria, on a row its runs.";
    drawBoard(cell);
    drawCharts();
    drawCodes(cell);
    drawStages(cell);
    drawMeans(cell);
  };
  const save = function () {
    const parts = new URLSearchParams();
    ["track", "task", "tier"].forEach(function (name) { if (state[name] !== ALL) { parts.set(name, state[name]); } });
    if (state.by !== "agent") { parts.set("by", state.by); }
    if (explicit) { parts.set("interval", state.interval); }
    if (state.sort) { parts.set("sort", state.sort); }
    history.replaceState(null, "", String(parts) ? "#" + parts : location.pathname);
  };
  const read = function () {
    const parts = new URLSearchParams(location.hash.slice(1));
    const known = function (entries, at, name) { return entries.some(function (entry) { return entry[at] === name; }) ? name : ALL; };
    state.track = known(data.tracks, 0, parts.get("track"));
    state.task = known(data.tasks, 1, parts.get("task"));
    state.tier = known(data.tiers, 0, parts.get("tier"));
    state.by = data.groupings.includes(parts.get("by")) ? parts.get("by") : "agent";
    explicit = ["new", "same"].includes(parts.get("interval"));
    state.interval = explicit ? parts.get("interval") : "";
    state.sort = parts.get("sort") || "";
    show();
  };
  ["track", "task", "tier", "by", "interval"].forEach(function (id) {
    element(id).addEventListener("change", function () {
      state[id] = element(id).value;
      if (id === "interval") { explicit = true; }
      if (id === "track") { state.task = ALL; }
      show();
      save();
    });
  });
  element("board").tHead.addEventListener("click", function (event) { if (event.target.closest("button.sort")) { save(); } });
  element("board").tBodies[0].addEventListener("click", function (event) {
    const tr = event.target.closest("tr");
    if (tr && !event.target.closest("a") && String(window.getSelection()) === "") { location.href = tr.querySelector("a").href; }
  });
  const move = function (to) {
    const lines = element("board").tBodies[0].rows;
    if (!lines.length) { return; }
    if (lines[at]) { lines[at].classList.remove("here"); }
    at = Math.max(0, Math.min(to, lines.length - 1));
    lines[at].classList.add("here");
    lines[at].scrollIntoView({ block: "nearest" });
  };
  window.addEventListener("hashchange", read);
  read();
  const keys = {
    "/": function () { element("track").focus(); },
    j: function () { move(at + 1); }, k: function () { move(at - 1); }, ArrowDown: function () { if (at < 0) { return false; } move(at + 1); return true; }, ArrowUp: function () { if (at < 0) { return false; } move(at - 1); return true; },
    Enter: function () { if (at < 0) { return false; } location.href = linkOf(rows[at]); return true; },
    u: function () { location.href = "index.html"; },
  };
  ["1", "2", "3", "4", "5"].forEach(function (number) {
    keys[number] = function () { if (document.querySelector("dialog[open]")) { return false; } openStage("S" + number); return true; };
  });
  listen(keys);
})();
