"""The report's order: sections with the figures and tables they hold, and the words that introduce
them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Item:
    """A figure or a table. `where` keeps rows with these values; `title` replaces the table's;
    `folded` hides it at first."""

    kind: Literal["figure", "table"]
    name: str
    where: dict[str, str] = field(default_factory=dict)
    title: str = ""
    hide: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    id: str
    title: str
    intro: str
    items: tuple[Item, ...]


def _figure(name: str) -> Item:
    return Item("figure", name)


def _table(
    name: str, folded: bool = False, title: str = "", hide: tuple[str, ...] = (), **where: str
) -> Item:
    return Item("table", name, where, title, hide, folded)


SECTIONS: tuple[Section, ...] = (
    Section(
        "leaderboard",
        "Leaderboard",
        "Two intervals stand beside each mean. The wide one speaks of new tasks of the same kind,"
        " the narrow one of these tasks run again. Whether one agent is better than another is a"
        " question to their difference, paired by task, below.",
        (
            _figure("leaderboard"),
            _table("leaderboard", scope="overall", hide=("name",)),
            _figure("pairwise"),
            _table("pairwise", folded=True),
            _figure("leaderboard_tracks"),
            _table(
                "leaderboard",
                folded=True,
                title="Leaderboard of tracks by {score}",
                scope="track",
                hide=("p_first", "rank_set"),
            ),
            _table(
                "leaderboard",
                folded=True,
                title="Leaderboard of tasks by {score}",
                scope="task",
                hide=("p_first", "rank_set"),
            ),
            _table("order"),
            _table("rank_stability", folded=True),
            _table("planning", folded=True),
            _table("pass_k", folded=True),
            _table("ability", folded=True),
            _table("ratings"),
            _table("parts", folded=True),
        ),
    ),
    Section(
        "stages",
        "Stages and tiers",
        "Where along the work points are won and lost.",
        (
            _figure("stage_profile"),
            _table("stages", folded=True),
            _table("stages_by_track", folded=True),
            _table("tiers", title="Tier contrast over all agents", agent="(all)"),
            _table("tiers", folded=True, title="Tier contrast by agent"),
            _table("first_breaks", title="Where runs break first, all agents", agent="(all)"),
            _table("first_breaks", folded=True, title="Where runs break first, by agent"),
            _table("stage_use", folded=True),
        ),
    ),
    Section(
        "codes",
        "Error codes",
        "How often codes fire, how the score falls with their number, and how often runs recover.",
        (
            _table("codes_read"),
            _figure("code_rates"),
            _table("codes"),
            _table("codes_by_agent", folded=True),
            _table("codes_by_track", folded=True),
            _table("code_stages", folded=True),
            _figure("cliff"),
            _table("cliff"),
            _figure("recovery"),
            _table("recovery", folded=True),
        ),
    ),
    Section(
        "effects",
        "What fired codes go with",
        "Runs that fired a code against repeats of the same agent on the same task and tier that"
        " did not. These are associations: codes are tagged after the outcome.",
        (
            _figure("code_effects"),
            _table("code_effects"),
            _table("effect_parts", folded=True),
            _figure("sensitivity"),
            _table("placebo"),
            _table("circularity"),
            _table("robustness", folded=True),
            _table("explained", folded=True),
            _table("effects_by_agent", folded=True),
            _table("leave_agent_out", folded=True),
        ),
    ),
    Section(
        "words",
        "What goes wrong most",
        "Reasons of codes, causes of failed steps, problems of deliverables and rationales of"
        " criteria not met, grouped by their words.",
        (_table("clusters"),),
    ),
    Section(
        "cost",
        "Cost and failures",
        "What runs cost, and how often they hand in nothing that can be scored.",
        (
            _figure("cost_score"),
            _table("cost", folded=True),
            _table("failures", folded=True),
            _table("judge_cost", folded=True),
        ),
    ),
    Section(
        "judge",
        "Judge against people",
        "How far the judge can be trusted, from human labels, and what its errors do to the numbers"
        " above.",
        (
            _figure("agreement"),
            _table("agreement", folded=True),
            _table("reliability", folded=True),
            _figure("judge_correction"),
            _table("corrected_leaderboard"),
            _table("corrected_effects"),
            _table("label_plan", folded=True),
        ),
    ),
    Section(
        "cohort",
        "Cohort and checks",
        "What was read, what was left out, and whether the scores add up.",
        (_table("cohort"), _table("basis"), _table("checks")),
    ),
)
