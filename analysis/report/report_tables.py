"""Every table of a cohort by name, with human titles and notes: what the report and `analyze
--json` show.

`TABLES` names them in reading order; `all_tables` computes them. Tables in long form have two rows
a subject where both populations apply; `estimate.wide` puts these side by side for display.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from ...errors import AmbjudgeError, ConfigError
from ..statistics.alternative_models import robustness
from ..statistics.benchmark_ratings import part_scores, ratings
from ..statistics.descriptive import (
    code_prevalence,
    cost_score,
    failure_rates,
    stage_profile,
    stage_use,
    tier_contrast,
)
from ..statistics.effect_diagnostics import circularity, leave_one_out, placebo
from ..statistics.effects import code_effects, decompose_effects
from ..statistics.heterogeneity import effects_by, explained_variance
from ..statistics.judge_error import corrected_code_effects, corrected_leaderboard, human_scores
from ..statistics.label_sampling import label_plan
from ..statistics.power_analysis import difference_noise, power
from ..statistics.ranking import leaderboard, pairwise, rank_stability
from ..statistics.rasch import abilities
from ..statistics.raters import agreement, reliability
from ..statistics.repeated_success import first_breaks, pass_k
from ..statistics.run_arrays import check_outcome, select_runs
from ..statistics.score_by_code_count import cliff, recovery
from ..statistics.score_variance import order_probability, variance_components
from ..tables.codes_read import reading_counts
from ..tables.cohorts import Cohort, cohort
from ..tables.frames import conform
from ..tables.label_tables import Labels, read_labels, weighted
from ..tables.score_checks import validate_scores
from ..tables.score_names import score_of
from .basis import basis
from .failure_texts import FailureTexts


@dataclass(frozen=True)
class Question:
    """What the tables of a cohort are made of."""

    cohort: Cohort
    labels: Labels | None
    texts: FailureTexts | None
    outcome: str
    source: str
    """Whose tags count (`design`)."""
    budget: int
    """Runs that can be labelled."""

    @property
    def runs(self) -> pl.DataFrame:
        return self.cohort.runs

    @property
    def gold(self) -> Labels:
        """The labels; tables that need them are made with them only."""
        return self.labels or read_labels([])

    @property
    def words(self) -> FailureTexts:
        """The words about failures, likewise."""
        return self.texts or FailureTexts()

    @property
    def labelled(self) -> list[str]:
        """Runs that the usual annotator labelled."""
        mine = self.gold.of(self.gold.usual)
        return pl.concat([mine.codes["run_id"], mine.criteria["run_id"]]).unique().to_list()

    def corrected_means(self) -> pl.DataFrame:
        if self.outcome != "overall":
            raise ConfigError("labels of criteria correct Overall alone", "leave --outcome out")
        human, notes = human_scores(self.cohort, self.gold, self.gold.usual)
        return corrected_leaderboard(self.runs, human, self.outcome, notes=notes)

    def corrected_effects(self) -> pl.DataFrame:
        mine = self.gold.of(self.gold.usual)
        there = mine.codes.drop("annotator").join(
            self.runs.select("run_id").unique(), on="run_id", how="semi"
        )
        human, notes = weighted(there.unique("run_id", keep="first"), mine.drawn)
        return corrected_code_effects(
            self.runs, human, self.outcome, source=self.source, notes=notes
        )


@dataclass(frozen=True)
class Table:
    """How a table presents itself, and how it is made."""

    title: str
    """`{score}` stands for the outcome that is asked for, here and in the note."""
    note: str
    make: Callable[[Question], pl.DataFrame]
    needs: Literal["", "labels", "texts"] = ""
    """Without these it is not made."""

    def said(self, outcome: str, runs: pl.DataFrame | None = None) -> tuple[str, str]:
        """Title and note for a score, which they name."""
        score = score_of(outcome, runs)
        return self.title.replace("{score}", score.titled), self.note.replace("{score}", score.name)


TABLES: dict[str, Table] = {
    "cohort": Table(
        "The cohort",
        "What was read, and what was left out of the analysis.",
        lambda q: _summary(q.cohort),
    ),
    "basis": Table(
        "What the scores rest on",
        "Whose scorecards, what share of the weight of the judged criteria was read, and how many"
        " quotes were found in the runs. Presumed: criteria that nobody read have their commonest"
        " value (~). Unread: a judged stage is unscored or too little has a value, so that there is"
        " a range and no point.",
        lambda q: basis(q.runs),
    ),
    "checks": Table(
        "Checks of the scores",
        "Whether scores add up, policies are one, and nothing was read twice.",
        lambda q: validate_scores(q.runs),
    ),
    "leaderboard": Table(
        "Leaderboard by {score}",
        "Mean of the tasks of a track, then of tracks; tasks weigh the same. The wide interval"
        " speaks of new tasks, the narrow one of these tasks again. Rank sets hold jointly at"
        " 95 %.",
        lambda q: leaderboard(q.runs, q.outcome),
    ),
    "pairwise": Table(
        "Differences of {score} between agents",
        "Paired by task; p adjusted by Holm over pairs. mde80 is the difference found with"
        " power .8.",
        lambda q: pairwise(q.runs, q.outcome),
    ),
    "stages": Table(
        "Stage profile by agent",
        "Means of tasks and tracks, as on the leaderboard; unscored stages are left out, never"
        " counted as 0.",
        lambda q: stage_profile(q.runs),
    ),
    "stages_by_track": Table(
        "Stage profile by agent and track",
        "As above, within tracks.",
        lambda q: stage_profile(q.runs, ("agent", "track")),
    ),
    "tiers": Table(
        "Tier contrast",
        "Change from the baseline tier in percent, on tasks with both. Columns ending in _free"
        " leave out criteria that a tier credits unjudged.",
        lambda q: tier_contrast(q.runs),
    ),
    "codes_read": Table(
        "What was read for codes",
        "A code is present, absent, cannot tell (a reader could not), or not read (nobody looked)."
        " Without a judge that reads runs, E1 and E3 are not read: facts can show them, never"
        " exclude them. “Read” counts runs in which a reading, or for E2, E4 and E5 the facts,"
        " decided. “Fired unread”: shown by facts in a run that nobody read; rates leave these"
        " out.",
        lambda q: reading_counts(select_runs(q.runs)[0]),
    ),
    "codes": Table(
        "Fired codes",
        "Rates per run and shares of fired codes, of the runs that were read for them; shares are"
        " compositional, so read both.",
        lambda q: code_prevalence(q.runs, source=q.source),
    ),
    "codes_by_agent": Table(
        "Fired codes by agent",
        "As above, by agent.",
        lambda q: code_prevalence(q.runs, ("agent",), source=q.source),
    ),
    "codes_by_track": Table(
        "Fired codes by track",
        "As above, by track.",
        lambda q: code_prevalence(q.runs, ("track",), source=q.source),
    ),
    "code_stages": Table(
        "Where codes fire",
        "Firings by code, stage and source; a code in two stages of a run counts in both here. A"
        " code without a row may not have been read: see what was read for codes.",
        lambda q: _code_stages(q.cohort),
    ),
    "cliff": Table(
        "{score} by number of fired codes",
        "Raw and within repeats of the same agent, task and tier; single codes show what the"
        " one-code group is made of. Counts are of codes that were read in the same runs; where"
        " some were not, the notes say which.",
        lambda q: cliff(q.runs, q.outcome, source=q.source),
    ),
    "recovery": Table(
        "Recovery",
        "Among runs with two or more codes, the share that still reaches a scored submission."
        " Agents with more codes are seen on harder runs.",
        lambda q: recovery(q.runs, source=q.source),
    ),
    "code_effects": Table(
        "Effects of codes on {score}",
        "Runs that fired a code against repeats of the same agent, task, tier and other codes that"
        " did not, in the unit of {score}. Associational: codes are tagged after the outcome; where"
        " runs differ already in earlier stages (placebo p) no effect may be claimed.",
        lambda q: code_effects(q.runs, q.outcome, source=q.source),
    ),
    "effect_parts": Table(
        "Effects on Overall by part of the score",
        "An exact split: judge part (S1-S3), rule part (S4, S5), Task part, and this again: a Task"
        " of 0, and how good results above it are.",
        lambda q: decompose_effects(q.runs, source=q.source),
    ),
    "effects_by_agent": Table(
        "Effects of codes on {score} by agent",
        "BH over the grid; rank by the shrunk value only.",
        lambda q: effects_by(q.runs, "agent", q.outcome, source=q.source),
    ),
    "robustness": Table(
        "Effects on {score} under other models",
        "What changes when the model changes; traps are named in the warnings.",
        lambda q: robustness(q.runs, q.outcome, source=q.source),
    ),
    "explained": Table(
        "How much of {score} codes explain",
        "R2 within cells on left-out tasks.",
        lambda q: explained_variance(q.runs, q.outcome, source=q.source),
    ),
    "placebo": Table(
        "Placebo: effects on earlier stages",
        "Should be 0. An alarm means that runs with the code differed before it could act; one"
        " cohort in twenty raises one by chance.",
        lambda q: placebo(q.runs, source=q.source),
    ),
    "circularity": Table(
        "Circular codes",
        "Codes that restate the score cannot explain it.",
        lambda q: circularity(q.runs),
    ),
    "leave_agent_out": Table(
        "Effects on {score} without one agent",
        "Whether a single agent carries a result.",
        lambda q: leave_one_out(q.runs, q.outcome, source=q.source),
    ),
    "cost": Table(
        "Cost and {score}",
        "Correlations over runs mix agents with runs; within_cell compares repeats only.",
        lambda q: cost_score(q.runs, outcome=q.outcome),
    ),
    "judge_cost": Table(
        "What judging cost",
        "Sums over scorecards by judge, all judges. Input tokens are split into those read from a"
        " provider's cache, written into it, and neither; unknown where one scorecard does not"
        " say.",
        lambda q: _judge_cost(q.runs),
    ),
    "failures": Table(
        "Failures and validity",
        "“failed”: no scoreable submission, by the rule of the track. A run rated F is a breach, a"
        " timeout (never submitted), without output, or below the lowest band (submitted, not good"
        " enough or malformed). “valid”: something scored above zero.",
        lambda q: failure_rates(q.runs, ("agent",)),
    ),
    "ability": Table(
        "Ability and difficulty",
        "A second opinion: a Rasch model of success, in logits. It allows for tasks that an agent"
        " never ran, and assumes that tasks are hard for all alike.",
        lambda q: abilities(q.runs),
    ),
    "pass_k": Table(
        "Success every time",
        "pass^k: the chance that k runs of a task all succeed; pass@k: that one of them does."
        " Success is no failure by the rule of the track; tasks and tracks weigh as on the"
        " leaderboard.",
        lambda q: pass_k(q.runs),
    ),
    "ratings": Table(
        "Ratings and medals",
        "The report's where the Task is its own, else by the published limits of the track. A and B"
        " are resolved; F: nothing that can be rated. “shuffled”: the Task metric of the same"
        " outputs against the references of other cases.",
        lambda q: ratings(q.runs),
    ),
    "parts": Table(
        "Scores of parts",
        "The benchmark's metric by class, tissue or kind of question, where the reports tell it;"
        " means over runs.",
        lambda q: part_scores(q.cohort),
    ),
    "first_breaks": Table(
        "Where runs break first",
        "Of the runs whose earlier stages all reached .5, the share whose stage did not; unbroken:"
        " what is left after it. Disqualified runs are left out; a run leaves at its first stage"
        " without a score.",
        lambda q: first_breaks(q.runs),
    ),
    "stage_use": Table(
        "Turns, calls and time by stage",
        "Means per run, from the segmentation.",
        lambda q: stage_use(q.runs),
    ),
    "planning": Table(
        "What more tasks or repeats would show of {score}",
        "Smallest difference of two agents found with power .8, from this cohort's variance"
        " components.",
        lambda q: power(difference_noise(variance_components(q.runs, q.outcome))),
    ),
    "order": Table(
        "Would the order by {score} hold",
        "Were these means the truth: how often as many new tasks show the same order.",
        lambda q: _order(q.runs, q.outcome),
    ),
    "rank_stability": Table(
        "Would fewer tasks show the order by {score}",
        "The order of all tasks on some of them, drawn within tracks. Subsets of these tasks differ"
        " less than new ones would: see whether the order holds.",
        lambda q: rank_stability(q.runs, q.outcome),
    ),
    "label_plan": Table(
        "Which runs to label",
        "Stratified by tags, rare codes first. Labels keep how they were drawn (ambjudge label next"
        " --out).",
        lambda q: label_plan(q.runs, q.budget, source=q.source, already=q.labelled),
    ),
    "reliability": Table(
        "Reliability of criteria",
        "Krippendorff's alpha of every criterion over all judges and annotators that scored the"
        " same runs; presumed, credited and unscored ones are gaps. Criteria that one rater scored"
        " have no row.",
        lambda q: reliability(q.cohort, q.labels),
    ),
    "agreement": Table(
        "Judge against people",
        "Several coefficients, since none is enough; undefined ones say why. Weighed by how runs"
        " were drawn for labelling. Labels that were seen while a judge's rules or prompts were"
        " written say nothing about new runs.",
        lambda q: agreement(q.cohort, q.gold),
        "labels",
    ),
    "corrected_leaderboard": Table(
        "Leaderboard by {score}, corrected by labels",
        "Judge's means and the same corrected for the judge's error. Corrected, “same tasks” means"
        " these very runs.",
        Question.corrected_means,
        "labels",
    ),
    "corrected_effects": Table(
        "Effects of codes on {score}, corrected by labels",
        "Judge's tags, labelled runs only, and predict-then-debias.",
        Question.corrected_effects,
        "labels",
    ),
    "clusters": Table(
        "Groups of failures",
        "Words about failures, grouped by their likeness; numbers, quotes and paths do not count. A"
        " run counts once in a group. Runs that nobody read for a code have no reasons of it.",
        lambda q: q.words.table(),
        "texts",
    ),
}


CORRECTED_IN = {
    "leaderboard": "the leaderboard corrected by labels takes the judge's errors out",
    "pairwise": "the ranks of the leaderboard corrected by labels take the judge's errors out",
    "code_effects": "tags may be wrong: the effects corrected by labels show by how much",
    "effect_parts": "tags may be wrong: the effects corrected by labels show by how much",
    "cliff": "tags may be wrong, which makes it look smaller; no label corrects it",
}
"""What stands in every row of tables that labels speak about."""


def all_tables(
    source: Any,
    *,
    labels: Labels | None = None,
    texts: FailureTexts | None = None,
    only: Iterable[str] | None = None,
    outcome: str = "overall",
    code_source: str = "any",
    budget: int = 300,
) -> dict[str, pl.DataFrame]:
    """Tables by name, in the order of TABLES.

    `source`: a run frame, a Cohort, or anything `cohorts.cohort` reads. `labels` and `texts` add
    the tables that need them. `only`: names to compute. A table that cannot be computed has one row
    with the `reason`. Raises ConfigError for an unknown name and InputError when nothing can be
    read.
    """
    names = list(TABLES) if only is None else list(only)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise ConfigError(f"unknown table {unknown[0]!r}", f"choose from {', '.join(TABLES)}")
    whole = source if isinstance(source, Cohort) else _cohort(source)
    check_outcome(whole.runs, outcome)
    asked = Question(whole, labels, texts, outcome, code_source, budget)
    out: dict[str, pl.DataFrame] = {}
    for name, table in TABLES.items():
        if name in names and not (table.needs and getattr(asked, table.needs) is None):
            try:
                out[name] = table.make(asked)
            except AmbjudgeError as error:
                out[name] = pl.DataFrame({"reason": [str(error)]})
    for name, where in CORRECTED_IN.items() if labels is not None else ():
        if "warnings" in out.get(name, pl.DataFrame()).columns:
            note = pl.lit([f"as judged; {where}"], dtype=pl.List(pl.String))
            out[name] = out[name].with_columns(pl.concat_list("warnings", note))
    return out


def _cohort(source: Any) -> Cohort:
    if isinstance(source, pl.DataFrame):
        empty = cohort([])
        return Cohort(conform(source), empty.criteria, empty.codes)
    return cohort(source)


def _summary(whole: Cohort) -> pl.DataFrame:
    runs, notes = select_runs(whole.runs)
    rows: list[tuple[str, str]] = [
        ("scorecards", str(whole.runs.height)),
        ("runs analysed", str(runs.height)),
    ]
    for name in (
        "agent",
        "task",
        "track",
        "tier",
        "judge",
        "rubric",
        "like",
        "missing_policy",
        "breach_policy",
    ):
        values = [str(value) for value in runs[name].unique().sort().to_list() if value is not None]
        shown = ", ".join(values[:12]) + (
            f" and {len(values) - 12} more" if len(values) > 12 else ""
        )
        rows.append((name.replace("_", " "), f"{len(values)}: {shown}" if values else "none"))
    cells = runs.select("agent", "task", "tier").n_unique() if runs.height else 0
    rows.append(("cells (agent x task x tier)", str(cells)))
    read = (
        ", ".join(f"{row['code']} {row['read']}" for row in reading_counts(runs).to_dicts())
        if runs.height
        else "none"
    )
    rows.append((f"runs read for codes, of {runs.height}", read))
    if (shares := runs["presumed"].drop_nulls()).len() and (mean := shares.mean()):
        some = f"{100 * float(mean):.1f} % of those with a value, in {int((shares > 0).sum())} runs: nobody read them (~)"  # type: ignore[arg-type]
        rows.append(("criteria presumed", some))
    rows.append(("disqualified", _disqualified(runs)))
    rows += [("left out", note) for note in notes]
    rows += [("not readable", problem) for problem in whole.problems[:50]]
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def _disqualified(runs: pl.DataFrame) -> str:
    """How many runs, and what they cost as far as it is known."""
    out = runs.filter(pl.col("disqualified"))
    spent = (
        ("{:,.0f} s", "wall_time_s"),
        ("{:,} tokens in", "input_tokens"),
        ("{:,} out", "output_tokens"),
        ("${:,.2f}", "cost_usd"),
    )
    known = [form.format(out[name].sum()) for form, name in spent if out[name].count()]
    return f"{out.height}, which cost {', '.join(known)}" if known else str(out.height)


def _code_stages(whole: Cohort) -> pl.DataFrame:
    return (
        whole.codes.with_columns(
            pl.col("stage").cast(pl.String), source=pl.col("by").str.split(":").list.first()
        )
        .group_by("taxonomy", "code", "stage", "source", "independence")
        .agg(firings=pl.len().cast(pl.Int64), runs=pl.col("run_id").n_unique().cast(pl.Int64))
        .sort(
            "taxonomy",
            "code",
            "stage",
            "source",
            "independence",
            descending=[True, False, False, False, False],
        )
    )


def _judge_cost(runs: pl.DataFrame) -> pl.DataFrame:
    """Calls, tokens and dollars of each judge, summed over its scorecards; null where one of them
    does not say."""
    spent = (
        "judge_calls",
        "judge_input_tokens",
        "judge_uncached_tokens",
        "judge_cached_tokens",
        "judge_cache_write_tokens",
        "judge_output_tokens",
        "judge_cost_usd",
    )
    caches = pl.col("judge_cached_tokens") + pl.col("judge_cache_write_tokens")
    told = runs.with_columns(judge_uncached_tokens=pl.col("judge_input_tokens") - caches)
    # More cached than read at all is no split: such a card says nothing of its caches.
    sane = pl.col("judge_uncached_tokens") >= 0
    parts = [name for name in spent if "cache" in name]
    told = told.with_columns(pl.when(sane).then(pl.col(name)).alias(name) for name in parts)
    out = (
        told.group_by("judge")
        .agg(
            runs=pl.len().cast(pl.Int64),
            **{
                name.removeprefix("judge_"): (
                    pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
                )
                for name in spent
            },
            split=pl.col("judge_cached_tokens").count().cast(pl.Int64),
            priced=pl.col("judge_cost_usd").count().cast(pl.Int64),
        )
        .sort("judge", nulls_last=True)
    )
    words = [
        pl.when(pl.col(name) < pl.col("runs")).then(
            pl.format("{} known for {} of {} scorecards", pl.lit(what), name, "runs")
        )
        for name, what in (("split", "caches"), ("priced", "cost"))
    ]
    joined = pl.concat_str(words, separator="; ", ignore_nulls=True)
    return out.with_columns(reason=pl.when(joined != "").then(joined)).drop("split", "priced")


def _order(runs: pl.DataFrame, outcome: str) -> pl.DataFrame:
    board = leaderboard(runs, outcome, scopes=("overall",)).filter(pl.col("population") == "new")
    parts = variance_components(runs, outcome)
    chance = order_probability([v for v in board["value"].to_list() if v is not None], parts)
    row = {
        "s2_repeat": parts.repeat,
        "s2_agent_task": parts.agent_task,
        "s2_task": parts.task,
        "tasks": parts.n_tasks,
        "repeats": parts.n_rep,
        **chance,
        "reason": (
            parts.reason
            if parts.reason
            else (None if chance["same_order"] is not None else "needs two agents and two tasks")
        ),
    }
    schema: dict[str, Any] = {
        "s2_repeat": pl.Float64,
        "s2_agent_task": pl.Float64,
        "s2_task": pl.Float64,
        "tasks": pl.Int64,
        "repeats": pl.Float64,
        "same_order": pl.Float64,
        "same_first": pl.Float64,
        "reason": pl.String,
    }
    return pl.DataFrame([row], schema=schema)
