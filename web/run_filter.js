"use strict";
// The filter language of `ambjudge browse` (views/run_filter.py says what it means), over rows with the same fields.
const runFilter = (function () {
  const TERM = /-?(?:(?:outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(?::|<=|>=|<|>|=))?(?:"[^"]*"?|[^\s"]+)/gu;
  const COMPARISON = /^(outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(<=|>=|<|>|=)(.*)$/u;
  const FACET = /^(outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*):([^]*)$/u;
  const NUMBER = /^\s*[+-]?(?:(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?|inf|infinity|nan)\s*$/i;
  const WORDS = ["id", "agent", "model", "task", "track", "tier"];
  const TEXTS = Object.assign(Object.create(null), {
    id: "id", run: "id", agent: "agent", model: "model", task: "task", track: "track", tier: "tier", ended: "ended",
    judge: "judge", rubric: "rubric", path: "page", primary: "primary",
  });
  const known = function (values) { return values.filter(function (value) { return value !== null; }); };
  const NUMBERS = Object.assign(Object.create(null), {
    stage: function (r) { const some = known(r.stages); return some.length ? Math.min.apply(null, some) : null; },
    agentic: function (r) { return r.agentic; }, taskscore: function (r) { return r.task_score; },
    overall: function (r) { return r.overall; }, turns: function (r) { return r.turns; },
    failed: function (r) { return r.failed_calls; }, cost: function (r) { return r.cost; },
    codes: function (r) { return r.state === "scored" ? r.codes.length : null; }, repeat: function (r) { return r.repeat; },
  });
  for (let i = 0; i < 5; i += 1) { NUMBERS["s" + (i + 1)] = function (r) { return r.stages[i]; }; }
  const FLAGS = Object.assign(Object.create(null), {
    unscored: function (r) { return r.unscored > 0 || r.state !== "scored"; },
    scored: function (r) { return r.state === "scored"; }, waiting: function (r) { return r.state === "waiting"; },
    error: function (r) { return r.state === "error"; }, contradictions: function (r) { return r.contradictions > 0; },
    disqualified: function (r) { return r.disqualified; }, unverified: function (r) { return r.unverified > 0; },
    presumed: function (r) { return r.presumed > 0; },
  });

  // As Python's casefold for all that names of runs are likely to hold.
  const fold = function (text) { return text.toLowerCase().toUpperCase().toLowerCase().replace(/ς/g, "σ"); };
  const bare = function (text) { return text.replace(/^"+|"+$/g, ""); };
  const wrong = function (message) { throw new Error(message); };
  // Of what somebody typed, as much as an error repeats.
  const shown = function (text) { return text.length <= 60 ? text : text.slice(0, 60) + "…"; };

  const word = function (text) {
    const wanted = fold(text);
    return function (row) {
      return WORDS.some(function (name) { return row[name] !== null && fold(row[name]).includes(wanted); });
    };
  };
  const holds = function (text, wanted) {
    if (wanted === "none") { return function (row) { return text(row) === null; }; }
    return function (row) { const found = text(row); return found !== null && fold(found).includes(wanted); };
  };
  const OUTCOME = "outcome.";
  const outcome = function (name) {
    const key = name.slice(OUTCOME.length).toLowerCase();
    return function (row) { return Object.hasOwn(row.outcomes, key) ? row.outcomes[key] : null; };
  };
  const outcomeText = function (name) {
    const found = outcome(name);
    return function (row) {
      const value = found(row);
      return typeof value === "boolean" ? (value ? "yes true" : "no false") : value === null ? null : String(value);
    };
  };
  const outcomeNumber = function (name) {
    const found = outcome(name);
    return function (row) { const value = found(row); return value === null || typeof value === "string" ? null : Number(value); };
  };
  const among = function (codes, wanted) { return codes.some(function (code) { return fold(code) === wanted; }); };
  const code = function (wanted) {
    if (wanted === "none") {
      return function (r) { return r.state === "scored" && !r.codes.length && !r.unknown.length; };
    }
    if (wanted === "any") { return function (r) { return r.codes.length > 0; }; }
    return function (r) { return among(r.codes, wanted); };
  };
  const without = function (wanted) {
    if (wanted === "none" || wanted === "any") { return code(wanted === "none" ? "any" : "none"); }
    return function (r) { return r.state === "scored" && !among(r.codes.concat(r.unknown), wanted); };
  };
  const unread = function (wanted) {
    if (wanted === "none") { return function (r) { return r.state === "scored" && !r.unknown.length; }; }
    if (wanted === "any") { return function (r) { return r.unknown.length > 0; }; }
    return function (r) { return among(r.unknown, wanted); };
  };
  const comparison = function (name, sign, text) {
    const field = name.startsWith(OUTCOME) ? outcomeNumber(name) : NUMBERS[name.toLowerCase()];
    if (!field) { wrong("no number '" + shown(name) + "'; known: S1 to S5, " + Object.keys(NUMBERS).filter(function (n) { return !/^s\d/.test(n); }).join(", ")); }
    if (!NUMBER.test(text)) { wrong(shown(name) + sign + shown(text) + ": " + (shown(text) || "nothing") + " is not a number"); }
    const plain = text.trim().replace(/_/g, "");
    const limit = /inf/i.test(plain) ? (plain[0] === "-" ? -Infinity : Infinity) : Number(plain);
    const test = {
      "<": function (v) { return v < limit; }, "<=": function (v) { return v <= limit; },
      ">": function (v) { return v > limit; }, ">=": function (v) { return v >= limit; },
      "=": function (v) { return Math.abs(v - limit) < 1e-9; },
    }[sign];
    return function (row) { const value = field(row); return value !== null && test(value); };
  };

  // The name of a facet ("" for what does not group) and its predicate.
  const one = function (text, marked) {
    if (text.startsWith('"')) { return ["", word(bare(text))]; }
    const compared = COMPARISON.exec(text);
    if (compared) { return ["", comparison(compared[1], compared[2], compared[3])]; }
    const facet = FACET.exec(text);
    if (facet) {
      const name = facet[1].toLowerCase();
      const value = fold(bare(facet[2]));
      if (!value) { wrong(shown(name) + ": needs a value"); }
      if (name === "code") { return [name, code(value)]; }
      if (name === "unread") { return [name, unread(value)]; }
      if (name === "text") { wrong("text: is not here: a site has no index of what runs say. ambjudge browse has it; a page finds words of its run with /"); }
      if (name.startsWith(OUTCOME)) { return [name, holds(outcomeText(name), value)]; }
      if (!TEXTS[name]) { wrong("no facet " + shown(name) + ":; known: " + Object.keys(TEXTS).join(", ") + ", code, unread"); }
      return [name, holds(function (row) { return row[TEXTS[name]]; }, value)];
    }
    if (text.toLowerCase() === "marked") { return ["", function (row) { return marked.has(row.number); }]; }
    return ["", FLAGS[text.toLowerCase()] || word(text)];
  };

  // The predicate of a filter; `marked` holds the numbers of marked rows. Error says what is wrong.
  return function (text, marked) {
    const all = [];
    const any = new Map();
    (text.match(TERM) || []).forEach(function (term) {
      const negative = term.startsWith("-") && term.length > 1;
      const rest = negative ? term.slice(1) : term;
      const pair = one(rest, marked || new Set());
      const name = pair[0];
      const test = pair[1];
      if (negative) {
        all.push(name === "code" ? without(fold(bare(rest.slice(rest.indexOf(":") + 1)))) : function (row) { return !test(row); });
      } else if (name) {
        if (!any.has(name)) { any.set(name, []); }
        any.get(name).push(test);
      } else { all.push(test); }
    });
    any.forEach(function (group) { all.push(function (row) { return group.some(function (test) { return test(row); }); }); });
    return function (row) { return all.every(function (test) { return test(row); }); };
  };
})();
