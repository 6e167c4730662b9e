"""What goes wrong most: the words about failures, grouped, so that the largest groups can be read
off.

Four kinds of words: a judge's rationale of a criterion not met, the reason of a fired code, the
cause of a failed step, and what was wrong with a deliverable. Texts are reduced to their pattern
(numbers, quotes and paths out), weighed by TF-IDF and grouped by average-linkage clustering on
cosine distance: no random start, the same cards give the same groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ...judge.card.scorecard import ScoreCard

KINDS = {
    "code": "reasons of fired codes",
    "step": "causes of failed steps",
    "deliverable": "problems of deliverables",
    "criterion": "rationales of criteria not met",
}
DISTANCE = 0.85
"""Mean cosine distance up to which groups merge: patterns that share about a seventh of their
weighted words, so that reasons of one template with different particulars come together."""
MOST_PATTERNS = 1500
"""Patterns that are clustered, the most frequent first; the rest join the nearest group. Quadratic
in this number."""
SHARED_FROM = 30
"""Patterns from which on only words that two of them share count: a word of one pattern alone
groups nothing, and its weight would drown the common ones."""
NEAR = 0.3
"""Cosine similarity that a pattern needs to join a group later."""
MOST_KEPT = 20_000
"""Patterns kept in memory, by kind; further new ones are counted as left over."""
MOST_JOINED = 200
"""Groups that later patterns may join: the largest; the others are far from being shown."""
LENGTH = 400
"""Characters of a text that count."""

SCHEMA: dict[str, Any] = {
    "kind": pl.String,
    "rank": pl.Int64,
    "label": pl.String,
    "runs": pl.Int64,
    "share": pl.Float64,
    "mentions": pl.Int64,
    "patterns": pl.Int64,
    "where": pl.String,
    "agents": pl.String,
    "example": pl.String,
    "example_runs": pl.List(pl.String),
    "example_turns": pl.List(pl.Int64),
    "reason": pl.String,
}

_QUOTED = r"""["'`“”‘’][^"'`“”‘’\n]{0,200}["'`“”‘’]"""
_PATH = r"(?:[\w.~-]*/)+[\w.-]*"
_WITH_DIGIT = r"\b[\w-]+_?\d[\w-]*\b"
"""Cases, counts, versions."""
_NUMBER = r"\d+(?:[.,:]\d+)*"
_NOISE = re.compile("|".join((_QUOTED, _PATH, _WITH_DIGIT, _NUMBER)))
_STOP = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "most",
        "common",
        "more",
        "be",
        "been",
        "but",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "in",
        "into",
        "is",
        "it",
        "its",
        "nor",
        "of",
        "on",
        "or",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "were",
        "which",
        "while",
        "who",
        "will",
        "with",
        "turn",
        "turns",
        "run",
        "runs",
    }
)
"""Words that group nothing: no claim about what a text means rests on them."""


@dataclass
class _Pattern:
    text: str
    mentions: int = 0
    runs: dict[int, int | None] = field(default_factory=dict)
    """Number of a run -> the turn in which it shows, where that is known."""
    where: Counter[str] = field(default_factory=Counter)


class FailureTexts:
    """Collects the words about failures card by card; `table` groups them. Memory grows with
    distinct patterns."""

    def __init__(self) -> None:
        self.patterns: dict[str, dict[str, _Pattern]] = {kind: {} for kind in KINDS}
        self.names: list[str] = []
        self.agents: list[str] = []
        self.left_over = 0

    def add(self, card: ScoreCard) -> None:
        """Takes what one card says about failures."""
        number = len(self.names)
        self.names.append(card.run.id)
        self.agents.append(card.run.agent or "(unknown)")
        for kind, where, text, turn in _texts(card):
            self._note(kind, where, text[:LENGTH], number, turn)

    def _note(self, kind: str, where: str, text: str, run: int, turn: int | None) -> None:
        key = pattern(text)
        if not key:
            return
        known = self.patterns[kind]
        if key not in known:
            if len(known) >= MOST_KEPT:
                self.left_over += 1
                return
            known[key] = _Pattern(text.strip())
        entry = known[key]
        entry.mentions += 1
        entry.runs.setdefault(run, turn)
        entry.where[where] += 1

    def table(self, most: int = 12) -> pl.DataFrame:
        """The largest groups of each kind (SCHEMA), most runs first; kinds without words have one
        row with the reason.

        `share` is the part of all runs (0-1) in which the group occurs; `where` are its commonest
        codes, criteria or stages; `example` is its commonest text, shortened; `example_turns` are
        where it shows in each of `example_runs`.
        """
        rows: list[dict[str, Any]] = []
        for kind in KINDS:
            groups = _groups(self.patterns[kind], most)
            if not groups:
                rows.append({"kind": kind, "reason": "no scorecard has such words"})
            for rank, group in enumerate(groups, 1):
                agents = Counter(self.agents[run] for run in group.runs)
                examples = sorted(group.runs)[:5]
                rows.append(
                    {
                        "kind": kind,
                        "rank": rank,
                        "label": group.label,
                        "runs": len(group.runs),
                        "share": len(group.runs) / len(self.names),
                        "mentions": group.mentions,
                        "patterns": len(group.entries),
                        "where": _commonest(group.where),
                        "agents": _commonest(agents),
                        "example": group.example,
                        "example_runs": [self.names[run] for run in examples],
                        "example_turns": [group.runs[run] for run in examples],
                        "reason": None,
                    }
                )
        return pl.DataFrame(rows, schema=SCHEMA)


def failure_clusters(cards: Iterable[ScoreCard], *, most: int = 12) -> pl.DataFrame:
    """Groups of failures over scorecards; see `FailureTexts.table`."""
    texts = FailureTexts()
    for card in cards:
        texts.add(card)
    return texts.table(most)


def pattern(text: str) -> str:
    """A text without what differs from run to run: quotes, paths, numbers, names with digits; lower
    case."""
    return " ".join(_NOISE.sub(" ", text[:LENGTH].lower()).split())


def _texts(card: ScoreCard) -> Iterator[tuple[str, str, str, int | None]]:
    for code in card.codes:
        where = code.code if code.taxonomy == "paper" else f"{code.stage}:{code.code}"
        yield "code", where, code.why, next(iter(code.turns), None)
    for episode in card.episodes:
        where = episode.stage if episode.resolved_at is not None else f"{episode.stage} unresolved"
        words = (
            episode.cause if episode.kind in episode.cause else f"{episode.kind}: {episode.cause}"
        )
        yield "step", where, words, episode.first_turn
    said: set[str] = set()
    for stage, result in card.stages.items():
        for item in result.criteria:
            if item.status == "scored" and item.value is not None and item.value < 1:
                yield (
                    "criterion",
                    item.id,
                    item.rationale,
                    item.evidence[0].turn if item.evidence else None,
                )
        if result.checks is not None:
            # A problem reads "case: what"; the case is no part of the pattern.
            # S4 and S5 share their checks: each is told once.
            problems = {p.split(": ", 1)[-1]: None for p in result.checks.problems if p not in said}
            said.update(result.checks.problems)
            for problem in problems:
                yield "deliverable", stage, problem, None


@dataclass
class _Group:
    label: str
    entries: list[_Pattern]
    mentions: int
    runs: dict[int, int | None]
    where: Counter[str]
    example: str


def _groups(patterns: dict[str, _Pattern], most: int) -> list[_Group]:
    """The `most` largest groups of patterns; a vocabulary that leaves nothing to compare puts each
    pattern by itself."""
    if not patterns:
        return []
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    keys = sorted(patterns, key=lambda key: (-len(patterns[key].runs), key))
    entries = [patterns[key] for key in keys]
    vectors = TfidfVectorizer(
        token_pattern=r"(?u)[^\W\d][\w]*[^\W\d_]",
        stop_words=sorted(_STOP),
        ngram_range=(1, 2),
        max_features=3000,
        min_df=2 if len(keys) >= SHARED_FROM else 1,
        sublinear_tf=True,
        dtype=np.float64,
    )
    try:
        matrix = vectors.fit_transform(keys)
    except ValueError:  # no word of more than one letter anywhere
        return _largest([[entry] for entry in entries], most)
    head = min(len(keys), MOST_PATTERNS)
    known = np.asarray(matrix[:head].sum(1)).ravel() > 0
    dense = matrix[:head].toarray()
    number = np.full(len(keys), -1)
    if known.sum() > 1:
        distance = np.clip(1.0 - dense[known] @ dense[known].T, 0.0, 2.0)
        number[:head][known] = AgglomerativeClustering(
            n_clusters=None, metric="precomputed", linkage="average", distance_threshold=DISTANCE
        ).fit_predict(distance)
    else:
        number[:head][known] = 0
    if head < len(keys) and number.max() >= 0:
        count = number.max() + 1
        runs = np.zeros(count)
        np.add.at(
            runs,
            number[:head][known],
            [len(entry.runs) for entry, k in zip(entries, known, strict=False) if k],
        )
        largest = np.argsort(-runs, kind="stable")[:MOST_JOINED]
        centres = np.zeros((count, dense.shape[1]))
        np.add.at(centres, number[:head][known], dense[known])
        centres = centres[largest] / np.linalg.norm(centres[largest], axis=1, keepdims=True)
        for start in range(head, len(keys), 4096):
            likeness = matrix[start : start + 4096] @ centres.T
            nearest = largest[likeness.argmax(1)]
            number[start : start + 4096] = np.where(likeness.max(1) >= NEAR, nearest, -1)
    clusters = [
        [entries[m] for m in np.flatnonzero(number == cluster)]
        for cluster in range(number.max() + 1)
    ]
    # Of the later patterns those that join nothing stay out: each is rarer than any of the head.
    groups = _largest(clusters + [[entries[m]] for m in np.flatnonzero(number[:head] < 0)], most)
    words = vectors.get_feature_names_out()
    weight = np.array([len(entry.runs) for entry in entries], dtype=np.float64)
    typical = np.asarray(matrix.T @ weight).ravel() / weight.sum()
    row = {id(entry): at for at, entry in enumerate(entries)}
    for group in groups:
        members = [row[id(entry)] for entry in group.entries]
        own = np.asarray(matrix[members].T @ weight[members]).ravel() / weight[members].sum()
        terms = _top(words, own, own - 0.5 * typical)
        group.label = ", ".join(terms) if terms else group.label
    return groups


def _largest(clusters: list[list[_Pattern]], most: int) -> list[_Group]:
    return sorted(map(_group, clusters), key=lambda group: (-len(group.runs), group.example))[:most]


def _top(words: Any, own: Any, score: Any, most: int = 4) -> list[str]:
    """The heaviest terms, without those that a longer one already says."""
    chosen: list[str] = []
    for at in sorted(range(len(words)), key=lambda i: (-round(float(score[i]), 9), words[i])):
        if own[at] <= 0 or len(chosen) >= most:
            break
        term = str(words[at])
        parts = set(term.split())
        if any(parts <= set(other.split()) for other in chosen):
            continue
        chosen = [other for other in chosen if not set(other.split()) <= parts]
        chosen.append(term)
    return chosen


def _group(entries: list[_Pattern]) -> _Group:
    best = max(entries, key=lambda entry: (len(entry.runs), -len(entry.text), entry.text))
    where: Counter[str] = Counter()
    runs: dict[int, int | None] = {}
    for entry in entries:
        where.update(entry.where)
        runs = entry.runs | runs
    example = " ".join(best.text.split())
    short = example if len(example) <= 240 else example[:239] + "…"
    return _Group(short[:60], entries, sum(entry.mentions for entry in entries), runs, where, short)


def _commonest(counts: Counter[str], most: int = 3) -> str:
    """`E3 12, E5 4`; ties by name."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ranked[:most])
