"""What the names in a report mean: scores, stages, criteria, codes, statistics; and their places in
its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from ...error_codes.taxonomy import taxonomy
from ...rubrics.load import builtin_ids, load_rubric
from ...sanitize import sanitize
from ...trajectories.stages import STAGE_NAMES


class Term(NamedTuple):
    """A name as it stands in texts, the same with a word of what it is (`E3 verification`), and its
    explanation."""

    name: str
    title: str
    text: str
    in_prose: bool = True
    """Explained in sentences too; the others are words like others there."""

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return "n-" + re.sub(r"[^a-z0-9]+", "-", self.name.replace("^", "all").lower()).strip("-")


_STAGES = {
    "S1": (
        "What the agent looked up and planned before the work; the mean of the rubric's criteria,"
        " read by the judge, 0 to 1."
    ),
    "S2": (
        "How data, model and surroundings were made ready; the mean of the rubric's criteria, read"
        " by the judge, 0 to 1."
    ),
    "S3": (
        "Whether the agent tried its pipeline and looked at results before it ran everything;"
        " criteria, read by the judge, 0 to 1."
    ),
    "S4": (
        "Whether every case got a result; computed from the delivered files, 0 to 1: nobody"
        " judges it."
    ),
    "S5": (
        "Whether what was delivered has the form that was asked for; computed from the files, 0 to"
        " 1: nobody judges it."
    ),
}
_SCORES = {
    "Overall": "50 times Agentic plus 50 times Task: 0 to 100.",
    "Agentic": "Weighted mean of the stages, 0 to 1: how the work was done.",
    "Task": (
        "The benchmark's own score of the result, 0 to 1 (Dice, accuracy, …): from the run's"
        " report, not judged here."
    ),
}
_NAMES = {
    "cell": (
        "All runs of one agent on one task in one tier. Its runs are repeats of each other;"
        " comparisons within cells compare like with like."
    ),
    "tier": "How much the brief gives away: lite (the method is given), standard, pro.",
    "track": (
        "The kind of task, such as segmentation or vqa: it decides the rubric and the checks of"
        " files."
    ),
    "Holm": (
        "A correction for many tests: over all of a table at most 5 in 100 cohorts without any"
        " effect show one."
    ),
    "BH": "After Benjamini and Hochberg: of what is found at .05, some 5 in 100 are chance.",
    "MDE80": "The smallest true difference that a test at 5 % would find 8 times in 10.",
    "RV": (
        "Robustness value (Cinelli and Hazlett): the share of what is left of both, code and score,"
        " within cells that an unobserved cause would have to explain to erase the effect (a"
        " partial R²)."
    ),
    "placebo p": (
        "How likely differences in stages before the code are by chance; below .05 the runs"
        " differed already, and no effect is claimed."
    ),
    "pass@k": "The chance that at least one of k runs of a task succeeds.",
    "pass^k": "The chance that k runs of a task all succeed.",
    "disqualified": (
        "A second breach of a forbidden access ended the run; by default its scores are 0."
    ),
}
"""In sentences and at the head of columns."""
_HEADINGS = {
    "95 %, new tasks": (
        "Where the mean would lie for other tasks of the same kind, 95 times in 100."
    ),
    "95 %, same tasks": "Where it would lie if these very tasks were run again: only repeats vary.",
    "range": (
        "What the mean can be, whatever a reader would say of criteria that nobody read. Not"
        " chance: more runs do not shrink it."
    ),
    "ranks": "The ranks that new tasks leave possible, for all agents together at 95 %.",
    "share first": (
        "In how many of 100 resamplings of tasks the agent comes first; it describes, it is no"
        " confidence."
    ),
    "missing as 0": "The mean if every run without a score had scored 0.",
    "missing as best": (
        "The mean if every run without a score had scored the most that is possible."
    ),
    "criteria read": "The share of the weight of the judged criteria that was read, not presumed.",
    "p (this one alone)": (
        "How often chance alone would give such a difference, with no allowance for the other tests"
        " of the table."
    ),
    "p (Holm)": (
        "The same, so adjusted that over the whole table at most 5 in 100 cohorts without any"
        " effect show one."
    ),
    "p (BH)": (
        "Adjusted after Benjamini and Hochberg: of what is found at .05, some 5 in 100 are chance."
    ),
    "LOO min": "The smallest value when one task at a time is left out.",
    "LOO max": "The largest value when one task at a time is left out.",
    "compared": (
        "Firings that have a repeat of the same cell, with the same other codes, to be held"
        " against."
    ),
    "clusters": "Tasks: runs of one task are alike, so intervals count tasks, not runs.",
    "fired": "Runs with the code; facts or quotes show where.",
    "fired unread": (
        "Runs in which facts show the code although nobody read them; rates leave them out."
    ),
    "cannot tell": "A reader looked and could not decide: unknown, never absent.",
    "Kendall's tau": "How alike two orders are: 1 the same, 0 unrelated, −1 reversed.",
    "I²": "The share of what differs between groups that is more than chance.",
    "alpha": "Krippendorff's: agreement of raters beyond chance; 1 is perfect, 0 is chance.",
}
"""At the head of columns alone: in sentences they are words like others."""


@cache
def _of_rubric(id: str) -> dict[str, str]:
    """Titles of the criteria of a built-in rubric."""
    return {c.id: c.title for c in load_rubric(id).criteria()} if id in builtin_ids() else {}


def terms_of(
    rubrics: Iterable[str | None], own: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> list[Term]:
    """The names in a report on runs that were judged by these rubrics: scores, stages, codes,
    statistics, criteria.

    `own`: titles of criteria by rubric, of rubrics that do not ship with ambjudge.
    """
    found = [Term(name, name, text) for name, text in _SCORES.items()]
    found += [Term(s, f"{s} {name}", _STAGES[s]) for s, name in STAGE_NAMES.items()]
    found += [Term(c.code, f"{c.code} {c.name}", c.description) for c in taxonomy("paper").codes]
    found += [Term(name, name, text, name in _NAMES) for name, text in (_NAMES | _HEADINGS).items()]
    known = {term.name for term in found}
    titles: dict[str, dict[str, None]] = {}
    for rubric in sorted({id for id in rubrics if id}):
        for id, title in (_of_rubric(rubric) | dict(own.get(rubric, {}))).items():
            if title and id not in known:
                titles.setdefault(id, {})[title] = None
    ours = {id for rubric in builtin_ids() for id in _of_rubric(rubric)}
    return found + [
        Term(id, id, "Criterion: " + "; or ".join(said), id in ours) for id, said in titles.items()
    ]


class Glossary:
    """Explains names where they stand: the first one of a section leads to the list at the end, and
    says what it is when it is pointed at."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = {term.name: term for term in terms}
        self.used: dict[str, Term] = {}
        """What the page names, in order."""
        self._linked: set[str] = set()
        self._prose = {
            escape(name, quote=True): term for name, term in self.terms.items() if term.in_prose
        }
        names = sorted(self._prose, key=len, reverse=True)
        self._pattern = re.compile(
            rf"(?<![\w^@&#-])(?:{'|'.join(map(re.escape, names))})(?![\w^@-])"
        )

    def section(self) -> None:
        """A section begins, in which each name's first use is a link again."""
        self._linked.clear()

    def prose(self, html: str) -> str:
        """Escaped text in which the first use of each name leads to its explanation."""
        return self._pattern.sub(lambda found: self._place(self._prose[found[0]], found[0]), html)

    def name(self, text: str, html: str) -> str:
        """A heading or a cell; where the whole of it is a name, it says what that is when it is
        pointed at."""
        term = self.terms.get(text)
        return html if term is None else f'<abbr title="{_said(term)}">{html}</abbr>'

    def beside(self, texts: Iterable[str]) -> str:
        """Links to those of these names that this section has not explained yet, for a line at a
        table."""
        new = [
            self.terms[text]
            for text in dict.fromkeys(texts)
            if text in self.terms and text not in self._linked
        ]
        return ", ".join(self._place(term, _safe(term.name)) for term in new)

    def listed(self) -> str:
        """The names that were used with their explanations, as a list of definitions."""
        return "".join(
            f'<dt id="{t.anchor}">{_safe(t.title)}</dt><dd>{_safe(t.text)}</dd>'
            for t in self.used.values()
        )

    def _place(self, term: Term, html: str) -> str:
        if term.name in self._linked:
            return html
        self._linked.add(term.name)
        self.used[term.name] = term
        return (
            f'<a class="name" href="#{term.anchor}"><abbr title="{_said(term)}">{html}</abbr></a>'
        )


def _said(term: Term) -> str:
    about = term.title.removeprefix(term.name).strip()
    return _safe(f"{about}: {term.text}" if about else term.text)


def _safe(text: str) -> str:
    return escape(sanitize(text), quote=True)
