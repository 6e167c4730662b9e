"""What the names in a report mean, and the links from where they stand to their explanations."""

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
    """A name with its explanation."""

    name: str
    title: str
    """The name with a word about what it is, such as `E3 verification`."""
    text: str
    in_prose: bool = True
    """Whether the name is explained in sentences too; the others are ordinary words there."""

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return "n-" + re.sub(r"[^a-z0-9]+", "-", self.name.replace("^", "all").lower()).strip("-")


_STAGES = {
    "S1": (
        "What the agent looked up and planned before the work; the mean of the rubric's criteria,"
        " judged, 0 to 1."
    ),
    "S2": (
        "How data, model and environment were prepared; the mean of the rubric's criteria, judged,"
        " 0 to 1."
    ),
    "S3": (
        "Whether the agent tried its pipeline and looked at results before it ran everything; the"
        " mean of the rubric's criteria, judged, 0 to 1."
    ),
    "S4": (
        "Whether every case got a result; computed from the delivered files, 0 to 1, not judged."
    ),
    "S5": (
        "Whether the delivered files have the demanded format; computed from the files, 0 to 1, not"
        " judged."
    ),
}
_SCORES = {
    "Overall": "50 times Agentic plus 50 times Task: 0 to 100.",
    "Agentic": "Weighted mean of the stages, 0 to 1: how the work was done.",
    "Task": (
        "The benchmark's own score of the result, 0 to 1 (Dice, accuracy, …), from the run's"
        " report, not judged here."
    ),
}
_NAMES = {
    "cell": (
        "All runs of one agent on one task in one tier. Its runs are repeats of each other;"
        " comparisons within cells compare like with like."
    ),
    "tier": "How much guidance the brief gives: lite (the method is given), standard, pro.",
    "track": (
        "The kind of task, such as segmentation or vqa; it decides the rubric and the checks of the"
        " files."
    ),
    "Holm": (
        "A correction for many tests: of 100 cohorts without any effect, at most 5 show one"
        " anywhere in the table."
    ),
    "BH": (
        "The correction of Benjamini and Hochberg: of the effects found at .05, about 5 in 100 are"
        " chance."
    ),
    "MDE80": "The smallest true difference that a test at 5 % detects 8 times in 10.",
    "RV": (
        "Robustness value (Cinelli and Hazlett): the share of the remaining variance of both code"
        " and score within cells that an unobserved cause would have to explain to erase the effect"
        " (a partial R²)."
    ),
    "placebo p": (
        "How likely the differences in stages before the code are by chance. Below .05 the runs"
        " differed before the code, and no effect is claimed."
    ),
    "pass@k": "The probability that at least one of k runs of a task succeeds.",
    "pass^k": "The probability that k runs of a task all succeed.",
    "disqualified": ("A second forbidden access ended the run; by default its scores are 0."),
}
"""Explained in sentences and in headings."""
_HEADINGS = {
    "95 %, new tasks": (
        "Where the mean would be for other tasks of the same kind, 95 times in 100."
    ),
    "95 %, same tasks": (
        "Where the mean would be if these very tasks were run again: only repeats vary."
    ),
    "95 %, these runs": (
        "Where people's labels of all these very runs would put the mean: only the judge's errors"
        " vary, so labels narrow it and more runs do not."
    ),
    "range": (
        "Worst and best case of the mean over every possible verdict on criteria that nobody"
        " judged. It is not about chance: more runs do not shrink it."
    ),
    "ranks": "The ranks that remain possible for new tasks, for all agents together at 95 %.",
    "failure rate": (
        "The share of runs that failed by the benchmark's rule: without a submission that can be"
        " scored (of answers, half have to be valid), disqualified, or with a Task below the limit"
        " of the track, which synthesis alone has."
    ),
    "cells": "Tasks and tiers with a score, of those on which any agent has one.",
    "of cells": "The tasks and tiers on which any agent ran or has a score.",
    "mean, common tasks": "The mean over the tasks and tiers on which all agents have a score.",
    "missing as 0": "The mean if every score that is missing, or was never run for, were 0.",
    "missing as best": "The mean if every such score were the best possible one.",
    "criteria read": (
        "The share of the weight of the judged criteria that was judged, not presumed."
    ),
    "p (this one alone)": (
        "How often chance alone would give such a difference, not corrected for the other tests of"
        " the table."
    ),
    "p (Holm)": (
        "The same, corrected so that of 100 cohorts without any effect at most 5 show one anywhere"
        " in the table."
    ),
    "p (BH)": (
        "The same, corrected by Benjamini and Hochberg: of the effects found at .05, about 5 in 100"
        " are chance."
    ),
    "LOO min": "The smallest value if one task at a time is left out.",
    "LOO max": "The largest value if one task at a time is left out.",
    "compared": (
        "Firings that have a repeat of the same cell, with the same other codes, to compare with."
    ),
    "clusters": "Tasks: runs of one task are alike, so intervals count tasks, not runs.",
    "fired": "Runs with the code; facts or quotes show where.",
    "runs read": "Runs that were read for the code, of all runs with the score.",
    "status": (
        "ok: tested. few firings: an interval, but no test and no claim. confounded: the runs"
        " differed before the code, so nothing is claimed. refused: not estimated, for a reason."
    ),
    "fired unread": (
        "Runs in which facts show the code although nobody read them; rates leave them out."
    ),
    "cannot tell": "A judge looked and could not decide: unknown, never absent.",
    "Kendall's tau": "How similar two orders are: 1 the same, 0 unrelated, −1 reversed.",
    "I²": "The share of the differences between groups that is not chance.",
    "alpha": "Krippendorff's: agreement of raters beyond chance; 1 is perfect, 0 is chance.",
}
"""Explained in headings only; in sentences they are ordinary words."""


@cache
def _criterion_titles(rubric_id: str) -> dict[str, str]:
    """Criterion -> title, of a built-in rubric; empty for others."""
    if rubric_id not in builtin_ids():
        return {}
    return {criterion.id: criterion.title for criterion in load_rubric(rubric_id).criteria()}


def terms_of(
    rubrics: Iterable[str | None], titles: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> list[Term]:
    """The names in a report on runs that were judged by these rubrics.

    They are scores, stages, codes, statistics and criteria. `titles`: rubric -> criterion -> title,
    of rubrics that do not ship with ambjudge.
    """
    terms = [Term(name, name, text) for name, text in _SCORES.items()]
    for stage, name in STAGE_NAMES.items():
        terms.append(Term(stage, f"{stage} {name}", _STAGES[stage]))
    for code in taxonomy("paper").codes:
        terms.append(Term(code.code, f"{code.code} {code.name}", code.description))
    terms += [Term(name, name, text) for name, text in _NAMES.items()]
    terms += [Term(name, name, text, in_prose=False) for name, text in _HEADINGS.items()]
    return terms + _criterion_terms(rubrics, titles, {term.name for term in terms})


def _criterion_terms(
    rubrics: Iterable[str | None], titles: Mapping[str, Mapping[str, str]], defined: set[str]
) -> list[Term]:
    """Criteria with the titles that these rubrics give them."""
    built_in = {id for rubric_id in builtin_ids() for id in _criterion_titles(rubric_id)}
    return [
        Term(id, id, f"Criterion: {'; or '.join(all_titles)}", in_prose=id in built_in)
        for id, all_titles in titles_of_criteria(rubrics, titles).items()
        if id not in defined
    ]


def titles_of_criteria(
    rubrics: Iterable[str | None], titles: Mapping[str, Mapping[str, str]]
) -> dict[str, list[str]]:
    """The titles that these rubrics give each criterion, by its id. `titles`: as in `terms_of`."""
    by_id: dict[str, dict[str, None]] = {}
    for rubric_id in sorted({rubric_id for rubric_id in rubrics if rubric_id}):
        own_titles = _criterion_titles(rubric_id) | dict(titles.get(rubric_id, {}))
        for criterion_id, title in own_titles.items():
            if title:
                by_id.setdefault(criterion_id, {})[title] = None
    return {criterion_id: list(all_titles) for criterion_id, all_titles in by_id.items()}


class Glossary:
    """Explains names where they stand.

    The first use of a name in a section links to the list at the end; every use shows what the name
    is when pointed at.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = {term.name: term for term in terms}
        self.used: dict[str, Term] = {}
        """The names on the page, in the order of their first use."""
        self._linked: set[str] = set()
        """The names that this section has linked."""
        self._prose_terms = {
            escape(name, quote=True): term for name, term in self.terms.items() if term.in_prose
        }
        longest_first = sorted(self._prose_terms, key=len, reverse=True)
        self._pattern = re.compile(
            rf"(?<![\w^@&#-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w^@-])"
        )

    def section(self) -> None:
        """Begin a section, in which the first use of each name is a link again."""
        self._linked.clear()

    def prose(self, html: str) -> str:
        """Escaped text in which the first use of each name links to its explanation."""

        def link(match: re.Match[str]) -> str:
            return self._link(self._prose_terms[match[0]], match[0])

        return self._pattern.sub(link, html)

    def name(self, text: str, html: str) -> str:
        """A heading or a cell; a text that is a name shows its explanation when pointed at."""
        term = self.terms.get(text)
        return html if term is None else f'<abbr title="{_explanation(term)}">{html}</abbr>'

    def beside(self, texts: Iterable[str]) -> str:
        """Links to those of these names that this section has not explained yet."""
        new_terms = [
            self.terms[text]
            for text in dict.fromkeys(texts)
            if text in self.terms and text not in self._linked
        ]
        return ", ".join(self._link(term, _visible(term.name)) for term in new_terms)

    def listed(self) -> str:
        """The names that were used with their explanations, as a list of definitions."""
        return "".join(
            f'<dt id="{term.anchor}">{_visible(term.title)}</dt><dd>{_visible(term.text)}</dd>'
            for term in self.used.values()
        )

    def _link(self, term: Term, html: str) -> str:
        if term.name in self._linked:
            return html
        self._linked.add(term.name)
        self.used[term.name] = term
        abbreviation = f'<abbr title="{_explanation(term)}">{html}</abbr>'
        return f'<a class="name" href="#{term.anchor}">{abbreviation}</a>'


def _explanation(term: Term) -> str:
    about = term.title.removeprefix(term.name).strip()
    return _visible(f"{about}: {term.text}" if about else term.text)


def _visible(text: str) -> str:
    return escape(sanitize(text), quote=True)
