"use strict";
// The filter language of `ambjudge browse` (views/run_filter.py says what it means), over rows with the same fields.
const runFilter = (function () {
  const TERM = /-?(?:(?:outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(?::|<=|>=|<|>|=))?(?:"[^"]*"?|[^\s"]+)/gu;
  const COMPARISON = /^(outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(<=|>=|<|>|=)(.*)$/u;
  const FACET = /^(outcome\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*):([^]*)$/u;
  const NUMBER = /^\s*[+-]?(?:(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?|inf|infinity|nan)\s*$/i;
  // The fields of rows by their names in filters: FILTER_FIELDS is written in front of this script from views/run_fields.py.
  const named = function (fields, make) {
    return Object.assign(Object.create(null), Object.fromEntries(Object.entries(fields).map(function (entry) { return [entry[0], make(entry[1])]; })));
  };
  const valueOf = function (path) {
    return function (row) { return path.length > 1 ? row[path[0]][path[1]] : row[path[0]]; };
  };
  const WORDS = FILTER_FIELDS.words.map(function (name) { return valueOf(FILTER_FIELDS.texts[name]); });
  const TEXTS = named(FILTER_FIELDS.texts, valueOf);
  const NUMBERS = named(FILTER_FIELDS.numbers, valueOf);
  NUMBERS.stage = function (row) {
    const known = row.stages.filter(function (value) { return value !== null; });
    return known.length ? Math.min.apply(null, known) : null;
  };
  NUMBERS.codes = function (row) { return row.state === "scored" ? row.codes.length : null; };
  const FLAGS = named(FILTER_FIELDS.counts, function (path) {
    const value = valueOf(path);
    return function (row) { return value(row) > 0; };
  });
  FILTER_FIELDS.states.forEach(function (state) { FLAGS[state] = function (row) { return row.state === state; }; });
  FLAGS.unscored = function (row) { return row.unscored > 0 || row.state !== "scored"; };

  // As Python's casefold for all that names of runs are likely to hold.
  const fold = function (text) { return text.toLowerCase().toUpperCase().toLowerCase().replace(/ς/g, "σ"); };
  const bare = function (text) { return text.replace(/^"+|"+$/g, ""); };
  const wrong = function (message) { throw new Error(message); };
  // Of what somebody typed, as much as an error repeats.
  const shown = function (text) { return text.length <= 60 ? text : text.slice(0, 60) + "…"; };

  const word = function (text) {
    const wanted = fold(text);
    return function (row) {
      return WORDS.some(function (value) { return value(row) !== null && fold(value(row)).includes(wanted); });
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
      return [name, holds(TEXTS[name], value)];
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
