"""The order of the report: its sections, with the figures and tables that each holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Item:
    """A figure or a table in a section."""

    kind: Literal["figure", "table"]
    name: str
    conditions: dict[str, str] = field(default_factory=dict)
    """Column -> the value of the rows that are kept; the column itself is hidden."""
    title: str = ""
    """Replaces the table's own title; may name the {score}, a {row} and {rows}."""
    hidden_columns: tuple[str, ...] = ()
    folded: bool = False
    """Whether the table is closed until the reader opens it."""


@dataclass(frozen=True)
class Section:
    """A section of the report."""

    id: str
    title: str
    intro: str
    items: tuple[Item, ...]


def _figure(name: str) -> Item:
    return Item("figure", name)


def _table(
    name: str,
    *,
    folded: bool = False,
    title: str = "",
    hidden_columns: tuple[str, ...] = (),
    **conditions: str,
) -> Item:
    return Item(
        "table",
        name,
        conditions=conditions,
        title=title,
        hidden_columns=hidden_columns,
        folded=folded,
    )


SECTIONS: tuple[Section, ...] = (
    Section(
        "leaderboard",
        "Leaderboard",
        "Each mean has two intervals: a wide one for new tasks of the same kind, and a narrow one"
        " for repeats of these tasks. To see whether one {row} is better than another, look at"
        " their paired difference below.",
        (
            _table("who_ran", folded=True),
            _figure("leaderboard"),
            _table("leaderboard", scope="overall", hidden_columns=("name",)),
            _figure("pairwise"),
            _table("pairwise", folded=True),
            _figure("leaderboard_tracks"),
            _table(
                "leaderboard",
                folded=True,
                title="Leaderboard of tracks by {score}",
                scope="track",
                hidden_columns=("rank_set",),
            ),
            _table(
                "leaderboard",
                folded=True,
                title="Leaderboard of tasks by {score}",
                scope="task",
                hidden_columns=("rank_set",),
            ),
            _table("order"),
            _table("rank_stability", folded=True),
            _table("run_means", folded=True),
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
        "Scores by stage, and by how much guidance the tier gives.",
        (
            _figure("stage_profile"),
            _table("stages", folded=True),
            _table("stages_by_track", folded=True),
            _table("tiers", title="Tier contrast over all {rows}", agent="(all)"),
            _table("tiers", folded=True, title="Tier contrast by {row}"),
            _table("first_breaks", title="Where runs break first, all {rows}", agent="(all)"),
            _table("first_breaks", folded=True, title="Where runs break first, by {row}"),
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
            _table("stages_by_code", folded=True),
        ),
    ),
    Section(
        "effects",
        "What fired codes go with",
        "Runs that fired a code are compared with repeats of the same agent on the same task and"
        " tier that did not. These are associations: codes are tagged after the outcome.",
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
        "Reasons for codes, causes of failed steps, problems with deliverables, and rationales of"
        " criteria not met, grouped by their wording.",
        (_table("clusters"),),
    ),
    Section(
        "cost",
        "Cost and failures",
        "What runs cost, and how often they submit nothing that can be scored.",
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
        "How well the judge agrees with human labels, and how its errors affect the numbers above.",
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
        "Which runs were read, which were left out, and whether the scores add up.",
        (_table("cohort"), _table("basis"), _table("checks")),
    ),
)
