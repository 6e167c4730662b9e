"""The most common failures: texts about failures, grouped by their words.

Four kinds of texts count: a judge's rationale of a criterion not met, the reason of a fired code,
the cause of a failed step, and a problem of a delivered file. Texts are reduced to patterns
(without numbers, quotes and paths), weighted by TF-IDF and grouped by average-linkage clustering on
cosine distance. Nothing is random: the same scorecards give the same groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
weighted words, so that reasons from one template with different details come together."""
MAX_PATTERNS = 1500
"""Patterns that are clustered, the most frequent first; clustering is quadratic in this number. The
others join the nearest group."""
MIN_SHARED_FROM = 30
"""Number of patterns from which on only words that two of them share count: a word of a single
pattern groups nothing, and its weight would hide the common ones."""
MIN_SIMILARITY = 0.3
"""Cosine similarity that a pattern needs to join a group later."""
MAX_STORED = 20_000
"""Patterns kept in memory for each kind; further ones are counted as dropped."""
MAX_JOINED = 200
"""Groups that later patterns may join, the largest first; the others are never displayed."""
MAX_LENGTH = 400
"""Characters of a text that count."""
MAX_EXAMPLE, MAX_LABEL, MAX_EXAMPLE_RUNS = 240, 60, 5
BATCH = 4096
"""Patterns that are compared with the groups at a time."""

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
    "run_ids": pl.List(pl.String),
    "reason": pl.String,
}

_QUOTED = r"""["'`“”‘’][^"'`“”‘’\n]{0,200}["'`“”‘’]"""
_PATH = r"(?:[\w.~-]*/)+[\w.-]*"
_WITH_DIGIT = r"\b[\w-]+_?\d[\w-]*\b"
"""Cases, counts, versions."""
_NUMBER = r"\d+(?:[.,:]\d+)*"
_NOISE = re.compile("|".join((_QUOTED, _PATH, _WITH_DIGIT, _NUMBER)))
_STOP_WORDS = frozenset(
    "a an and are as at most common more be been but by did do does for from had has have in into "
    "is it its nor of on or so than that the their them then there these they this those to was "
    "were which while who will with turn turns run runs".split()
)
"""Words that say nothing about a group; no claim about what a text means rests on them."""


class _Occurrence(NamedTuple):
    """A pattern in one run."""

    turn: int | None
    """Where the failure shows first, if it is known."""
    places: tuple[str, ...]
    """The code, criterion or stage of each text."""


@dataclass
class _Pattern:
    """Texts that are the same but for details."""

    text: str
    """The first of them."""
    runs: dict[int, _Occurrence] = field(default_factory=dict)
    """By the number of the run."""

    @property
    def mentions(self) -> int:
        """The number of texts."""
        return sum(len(occurrence.places) for occurrence in self.runs.values())


@dataclass
class _Group:
    """Patterns about one kind of failure."""

    label: str
    patterns: list[_Pattern]
    mentions: int
    runs: dict[int, int | None]
    places: Counter[str]
    example: str


@dataclass(frozen=True)
class _Text:
    """A text about a failure of one run."""

    kind: str
    place: str
    """Code, criterion or stage."""
    text: str
    turn: int | None


class FailureTexts:
    """Collects the texts of scorecards; `table` groups them.

    Memory grows with the number of distinct patterns.
    """

    def __init__(self) -> None:
        self.patterns: dict[str, dict[str, _Pattern]] = {kind: {} for kind in KINDS}
        self.run_ids: list[str] = []
        self.agents: list[str] = []
        self.run_count = 0
        """Runs that count."""
        self.dropped = 0

    def add(self, card: ScoreCard) -> None:
        """Add the texts of one scorecard."""
        run_number = len(self.run_ids)
        self.run_count += 1
        self.run_ids.append(card.run.id)
        self.agents.append(card.run.agent or "(unknown)")
        for text in _texts_of(card):
            self._count(text, run_number)

    def _count(self, text: _Text, run_number: int) -> None:
        shortened = text.text[:MAX_LENGTH]
        key = pattern(shortened)
        if not key:
            return
        by_key = self.patterns[text.kind]
        if key not in by_key:
            if len(by_key) >= MAX_STORED:
                self.dropped += 1
                return
            by_key[key] = _Pattern(shortened.strip())
        runs = by_key[key].runs
        earlier = runs.get(run_number)
        if earlier is None:
            runs[run_number] = _Occurrence(text.turn, (text.place,))
        else:
            runs[run_number] = earlier._replace(places=(*earlier.places, text.place))

    def restrict(self, numbers: Iterable[int]) -> None:
        """Keep only the texts of these scorecards, by their position among those added."""
        selected = frozenset(numbers).intersection(range(len(self.run_ids)))
        if len(selected) == self.run_count:
            return
        self.run_count = len(selected)
        for by_key in self.patterns.values():
            for key, entry in list(by_key.items()):
                entry.runs = {run: entry.runs[run] for run in entry.runs if run in selected}
                if not entry.runs:
                    del by_key[key]

    def table(self, most: int = 12) -> pl.DataFrame:
        """The largest groups of each kind (SCHEMA), those in most runs first.

        `share` is the share of all runs (0-1) in which a group occurs; `where` names its most
        common codes, criteria or stages; `example` is its most common text, shortened;
        `example_turns` are the turns where it shows in each of `example_runs`; `run_ids` are all
        runs. A kind without texts has one row with the reason.
        """
        rows: list[dict[str, Any]] = []
        for kind in KINDS:
            groups = _group_patterns(self.patterns[kind], most)
            if not groups:
                rows.append({"kind": kind, "reason": "no scorecard has such texts"})
            for rank, group in enumerate(groups, 1):
                rows.append({"kind": kind, "rank": rank, **self._row(group)})
        return pl.DataFrame(rows, schema=SCHEMA)

    def _row(self, group: _Group) -> dict[str, Any]:
        agents = Counter(self.agents[run] for run in group.runs)
        examples = sorted(group.runs)[:MAX_EXAMPLE_RUNS]
        return {
            "label": group.label,
            "runs": len(group.runs),
            "share": len(group.runs) / self.run_count,
            "mentions": group.mentions,
            "patterns": len(group.patterns),
            "where": _most_common(group.places),
            "agents": _most_common(agents),
            "example": group.example,
            "example_runs": [self.run_ids[run] for run in examples],
            "example_turns": [group.runs[run] for run in examples],
            "run_ids": [self.run_ids[run] for run in sorted(group.runs)],
            "reason": None,
        }


def failure_clusters(cards: Iterable[ScoreCard], *, most: int = 12) -> pl.DataFrame:
    """Groups of failures over scorecards; see `FailureTexts.table`."""
    texts = FailureTexts()
    for card in cards:
        texts.add(card)
    return texts.table(most)


def pattern(text: str) -> str:
    """A text in lower case without what differs from run to run.

    That is: quotes, paths, numbers, and names that contain digits.
    """
    return " ".join(_NOISE.sub(" ", text[:MAX_LENGTH].lower()).split())


# The texts of a scorecard


def _texts_of(card: ScoreCard) -> Iterator[_Text]:
    for code in card.codes:
        place = code.code if code.taxonomy == "paper" else f"{code.stage}:{code.code}"
        yield _Text("code", place, code.why, next(iter(code.turns), None))
    for episode in card.episodes:
        place = episode.stage
        if episode.resolved_at is None:
            place = f"{episode.stage} unresolved"
        cause = episode.cause
        if episode.kind not in cause:
            cause = f"{episode.kind}: {cause}"
        yield _Text("step", place, cause, episode.first_turn)
    for stage in card.stages.values():
        for result in stage.criteria:
            if result.status == "scored" and result.value is not None and result.value < 1:
                turn = result.evidence[0].turn if result.evidence else None
                yield _Text("criterion", result.id, result.rationale, turn)
    yield from _problems_of(card)


def _problems_of(card: ScoreCard) -> Iterator[_Text]:
    """Problems of delivered files, each once: S4 and S5 list the same."""
    listed: set[str] = set()
    for stage, result in card.stages.items():
        if result.checks is None:
            continue
        # A problem reads "case: text"; the case is not part of the pattern.
        new = [problem for problem in result.checks.problems if problem not in listed]
        for text in dict.fromkeys(problem.split(": ", 1)[-1] for problem in new):
            yield _Text("deliverable", stage, text, None)
        listed.update(result.checks.problems)


# Grouping


def _group_patterns(by_key: dict[str, _Pattern], most: int) -> list[_Group]:
    """The largest groups of patterns.

    If the texts have no words to compare, each pattern is a group of its own.
    """
    if not by_key:
        return []
    keys = sorted(by_key, key=lambda key: (-len(by_key[key].runs), key))
    patterns = [by_key[key] for key in keys]
    vectorizer = _vectorizer(len(keys))
    try:
        matrix = vectorizer.fit_transform(keys)  # (patterns, words), rows of length 1
    except ValueError:  # no text has a word of more than one letter
        return _largest([[entry] for entry in patterns], most)
    labels = _cluster_labels(matrix, patterns)
    clusters: list[list[_Pattern]] = [[] for _ in range(labels.max() + 1)]
    for entry, label in zip(patterns, labels, strict=True):
        if label >= 0:
            clusters[label].append(entry)
    # A late pattern without a group is left out: it is rarer than any of the clustered ones.
    alone = [
        [entry] for entry, label in zip(patterns[:MAX_PATTERNS], labels, strict=False) if label < 0
    ]
    groups = _largest(clusters + alone, most)
    _label_groups(groups, patterns, matrix, vectorizer.get_feature_names_out())
    return groups


def _vectorizer(count: int) -> Any:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(
        token_pattern=r"(?u)[^\W\d][\w]*[^\W\d_]",
        stop_words=sorted(_STOP_WORDS),
        ngram_range=(1, 2),
        max_features=3000,
        min_df=2 if count >= MIN_SHARED_FROM else 1,
        sublinear_tf=True,
        dtype=np.float64,
    )


def _cluster_labels(matrix: Any, patterns: list[_Pattern]) -> Any:
    """The number of each pattern's cluster, -1 for none. `matrix`: (patterns, words)."""
    import numpy as np

    first = min(len(patterns), MAX_PATTERNS)
    dense = matrix[:first].toarray()
    has_words = dense.sum(axis=1) > 0
    labels = np.full(len(patterns), -1)
    labels[:first][has_words] = _average_linkage(dense[has_words])
    if first < len(patterns) and labels.max() >= 0:
        run_counts = np.array([len(entry.runs) for entry in patterns[:first]])
        centres, numbers = _centres(
            dense[has_words], labels[:first][has_words], run_counts[has_words]
        )
        for start in range(first, len(patterns), BATCH):
            similarity = matrix[start : start + BATCH] @ centres.T
            nearest = numbers[similarity.argmax(axis=1)]
            is_near = similarity.max(axis=1) >= MIN_SIMILARITY
            labels[start : start + BATCH] = np.where(is_near, nearest, -1)
    return labels


def _average_linkage(vectors: Any) -> Any:
    """Cluster numbers of vectors of length 1, by their cosine distance."""
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering

    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=int)
    distance = np.clip(1.0 - vectors @ vectors.T, 0.0, 2.0)
    clustering = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=DISTANCE
    )
    return clustering.fit_predict(distance)


def _centres(vectors: Any, labels: Any, run_counts: Any) -> tuple[Any, Any]:
    """Mean directions and numbers of the clusters in most runs, at most MAX_JOINED."""
    import numpy as np

    count = labels.max() + 1
    runs = np.zeros(count)
    np.add.at(runs, labels, run_counts)
    sums = np.zeros((count, vectors.shape[1]))
    np.add.at(sums, labels, vectors)
    largest = np.argsort(-runs, kind="stable")[:MAX_JOINED]
    return sums[largest] / np.linalg.norm(sums[largest], axis=1, keepdims=True), largest


def _largest(clusters: list[list[_Pattern]], most: int) -> list[_Group]:
    groups = [_merge(patterns) for patterns in clusters]
    groups.sort(key=lambda group: (-len(group.runs), group.example))
    return groups[:most]


def _merge(patterns: list[_Pattern]) -> _Group:
    most_common = max(patterns, key=lambda entry: (len(entry.runs), -len(entry.text), entry.text))
    places: Counter[str] = Counter()
    runs: dict[int, int | None] = {}
    for entry in patterns:
        for run, occurrence in entry.runs.items():
            places.update(occurrence.places)
            runs.setdefault(run, occurrence.turn)
    example = " ".join(most_common.text.split())
    if len(example) > MAX_EXAMPLE:
        example = example[: MAX_EXAMPLE - 1] + "…"
    mentions = sum(entry.mentions for entry in patterns)
    return _Group(example[:MAX_LABEL], patterns, mentions, runs, places, example)


def _label_groups(groups: list[_Group], patterns: list[_Pattern], matrix: Any, words: Any) -> None:
    """Label each group by the words that set it apart from all patterns."""
    import numpy as np

    weights = np.array([len(entry.runs) for entry in patterns], dtype=float)
    overall = np.asarray(matrix.T @ weights).ravel() / weights.sum()
    row_of = {id(entry): row for row, entry in enumerate(patterns)}
    for group in groups:
        rows = [row_of[id(entry)] for entry in group.patterns]
        own = np.asarray(matrix[rows].T @ weights[rows]).ravel() / weights[rows].sum()
        terms = _top_terms(words, own, own - 0.5 * overall)
        if terms:
            group.label = ", ".join(terms)


def _top_terms(words: Any, own: Any, distinctiveness: Any, most: int = 4) -> list[str]:
    """The most distinctive terms, without those that a longer one contains."""
    order = sorted(
        range(len(words)), key=lambda i: (-round(float(distinctiveness[i]), 9), words[i])
    )
    terms: list[str] = []
    for index in order:
        if own[index] <= 0 or len(terms) >= most:
            break
        parts = set(str(words[index]).split())
        if any(parts <= set(term.split()) for term in terms):
            continue
        terms = [term for term in terms if not set(term.split()) <= parts]
        terms.append(str(words[index]))
    return terms


def _most_common(counts: Counter[str], most: int = 3) -> str:
    """`E3 12, E5 4`; ties in the order of the names."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ranked[:most])
