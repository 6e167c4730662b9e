"use strict";
// The filter language of `ambjudge browse` (views/run_filter.py says what it means), over rows with the same fields.
const runFilter = (function () {
  const TERM = /-?(?:(?:(?:outcome|group)\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(?::|<=|>=|<|>|=))?(?:"[^"]*"?|[^\s"]+)/gu;
  const COMPARISON = /^((?:outcome|group)\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*)(<=|>=|<|>|=)(.*)$/u;
  const FACET = /^((?:outcome|group)\.[\p{L}\p{N}_.-]+|[A-Za-z][\p{L}\p{N}_]*):([^]*)$/u;
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

  // Like Python's casefold, for all that names of runs are likely to hold.
  const fold = function (text) { return text.toLowerCase().toUpperCase().toLowerCase().replace(/ς/g, "σ"); };
  const unquoted = function (text) { return text.replace(/^"+|"+$/g, ""); };
  const refuse = function (message) { throw new Error(message); };
  // What an error repeats of a typed text.
  const excerpt = function (text) { return text.length <= 60 ? text : text.slice(0, 60) + "…"; };

  const word = function (text) {
    const folded = fold(text);
    return function (row) {
      return WORDS.some(function (textOf) { return textOf(row) !== null && fold(textOf(row)).includes(folded); });
    };
  };
  const contains = function (textOf, value) {
    if (value === "none") { return function (row) { return textOf(row) === null; }; }
    return function (row) { const text = textOf(row); return text !== null && fold(text).includes(value); };
  };
  const equals = function (field, value) {
    if (!value) { refuse(excerpt(field) + "= needs a value"); }
    return function (row) { const text = TEXTS[field](row); return text !== null && fold(text) === value; };
  };

  const OUTCOME_PREFIX = "outcome.";
  const outcome = function (facet) {
    const name = facet.slice(OUTCOME_PREFIX.length).toLowerCase();
    return function (row) { return Object.hasOwn(row.outcomes, name) ? row.outcomes[name] : null; };
  };
  const outcomeText = function (facet) {
    const valueOfRow = outcome(facet);
    return function (row) {
      const value = valueOfRow(row);
      if (typeof value === "boolean") { return value ? "yes true" : "no false"; }
      return value === null ? null : String(value);
    };
  };
  const outcomeNumber = function (facet) {
    const valueOfRow = outcome(facet);
    return function (row) {
      const value = valueOfRow(row);
      return value === null || typeof value === "string" ? null : Number(value);
    };
  };

  const GROUP_PREFIX = "group.";
  const groupScore = function (facet) {
    const name = facet.slice(GROUP_PREFIX.length).toLowerCase();
    return function (row) {
      const entry = Array.from(row.groups).find(function (pair) { return pair[0].toLowerCase() === name; });
      return entry === undefined ? null : entry[1];
    };
  };
  const groupText = function (facet) {
    const scoreOf = groupScore(facet);
    return function (row) { const score = scoreOf(row); return score === null ? null : String(score); };
  };

  const includesCode = function (codes, code) { return codes.some(function (other) { return fold(other) === code; }); };
  const hasCode = function (code) {
    if (code === "none") {
      return function (row) { return row.state === "scored" && !row.codes.length && !row.unknown.length; };
    }
    if (code === "any") { return function (row) { return row.codes.length > 0; }; }
    return function (row) { return includesCode(row.codes, code); };
  };
  // A code that was not read is neither there nor absent.
  const lacksCode = function (code) {
    if (code === "none") { return hasCode("any"); }
    if (code === "any") { return hasCode("none"); }
    return function (row) { return row.state === "scored" && !includesCode(row.codes.concat(row.unknown), code); };
  };
  const hasUnreadCode = function (code) {
    if (code === "none") { return function (row) { return row.state === "scored" && !row.unknown.length; }; }
    if (code === "any") { return function (row) { return row.unknown.length > 0; }; }
    return function (row) { return includesCode(row.unknown, code); };
  };

  const comparison = function (name, sign, text) {
    let numberOf = NUMBERS[name.toLowerCase()];
    if (name.startsWith(OUTCOME_PREFIX)) { numberOf = outcomeNumber(name); }
    if (name.startsWith(GROUP_PREFIX)) { numberOf = groupScore(name); }
    if (!numberOf) {
      const others = Object.keys(NUMBERS).filter(function (number) { return !/^s\d/.test(number); });
      refuse("no number '" + excerpt(name) + "'; known: S1 to S5, " + others.join(", "));
    }
    if (!NUMBER.test(text)) {
      refuse(excerpt(name) + sign + excerpt(text) + ": " + (excerpt(text) || "nothing") + " is not a number");
    }
    const digits = text.trim().replace(/_/g, "");
    const infinity = digits[0] === "-" ? -Infinity : Infinity;
    const limit = /inf/i.test(digits) ? infinity : Number(digits);
    const test = {
      "<": function (value) { return value < limit; }, "<=": function (value) { return value <= limit; },
      ">": function (value) { return value > limit; }, ">=": function (value) { return value >= limit; },
      "=": function (value) { return Math.abs(value - limit) < 1e-9; },
    }[sign];
    return function (row) { const value = numberOf(row); return value !== null && test(value); };
  };

  const facetValue = function (term) { return fold(unquoted(term.slice(term.indexOf(":") + 1))); };
  const compileFacet = function (facet, value) {
    if (!value) { refuse(excerpt(facet) + ": needs a value"); }
    if (facet === "code") { return hasCode(value); }
    if (facet === "unread") { return hasUnreadCode(value); }
    if (facet === "text") {
      refuse("text: is not here: a site has no index of what runs say. ambjudge browse has it; a page finds words of its run with /");
    }
    if (facet.startsWith(OUTCOME_PREFIX)) { return contains(outcomeText(facet), value); }
    if (facet.startsWith(GROUP_PREFIX)) { return contains(groupText(facet), value); }
    if (!TEXTS[facet]) { refuse("no facet " + excerpt(facet) + ":; known: " + Object.keys(TEXTS).join(", ") + ", code, unread"); }
    return contains(TEXTS[facet], value);
  };
  // The facet of a term ("" where terms do not group) and its predicate.
  const compileTerm = function (term, marked) {
    if (term.startsWith('"')) { return ["", word(unquoted(term))]; }
    const compared = COMPARISON.exec(term);
    if (compared) {
      const field = compared[1].toLowerCase();
      if (compared[2] === "=" && TEXTS[field]) { return [field, equals(field, fold(unquoted(compared[3])))]; }
      return ["", comparison(compared[1], compared[2], compared[3])];
    }
    const match = FACET.exec(term);
    if (match) {
      const facet = match[1].toLowerCase();
      return [facet, compileFacet(facet, facetValue(term))];
    }
    if (term.toLowerCase() === "marked") { return ["", function (row) { return marked.has(row.number); }]; }
    return ["", FLAGS[term.toLowerCase()] || word(term)];
  };

  // The predicate of a filter; `marked` holds the numbers of marked rows. Error says what is wrong.
  return function (text, marked) {
    const allOf = [];
    const anyOf = new Map();
    (text.match(TERM) || []).forEach(function (term) {
      const negated = term.startsWith("-") && term.length > 1;
      const positive = negated ? term.slice(1) : term;
      const [facet, predicate] = compileTerm(positive, marked || new Set());
      if (negated && facet === "code") {
        allOf.push(lacksCode(facetValue(positive)));
      } else if (negated) {
        allOf.push(function (row) { return !predicate(row); });
      } else if (facet) {
        if (!anyOf.has(facet)) { anyOf.set(facet, []); }
        anyOf.get(facet).push(predicate);
      } else {
        allOf.push(predicate);
      }
    });
    anyOf.forEach(function (alternatives) {
      allOf.push(function (row) { return alternatives.some(function (test) { return test(row); }); });
    });
    return function (row) { return allOf.every(function (test) { return test(row); }); };
  };
})();
