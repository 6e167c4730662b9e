"""The tables of `analyze` that we ship, one constant each; `report_tables.BUILT_IN` orders them.

To add one, write a constant here and put its name into that list: a figure or a report section may
then place it (`report_outline`); a table that none places stands at the end of the report.
"""

from __future__ import annotations

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
from ..statistics.label_sampling import label_plan
from ..statistics.power_analysis import difference_noise, power
from ..statistics.ranking import leaderboard, pairwise, rank_stability
from ..statistics.rasch import abilities
from ..statistics.raters import agreement, reliability
from ..statistics.repeated_success import first_breaks, pass_k
from ..statistics.run_arrays import select_runs
from ..statistics.score_by_code_count import cliff, recovery
from ..statistics.score_checks import validate_scores
from ..statistics.score_variance import variance_components
from ..tables.codes_read import reading_counts
from .basis import basis
from .cohort_tables import codes_by_stage, cohort_summary, judge_cost, order_stability
from .table_spec import Table, TableInputs

COHORT = Table(
    "The cohort",
    "What was read, and what the analysis leaves out.",
    lambda inputs: cohort_summary(inputs.cohort),
)
BASIS = Table(
    "What the scores rest on",
    "Who judged, what share of the weight of the judged criteria was read, and how many quotes were"
    " found in the runs. Presumed: criteria that nobody judged have their commonest value (~)."
    " Unread: a judged stage is unscored or has too few values for a point score, so only a range"
    " is given.",
    lambda inputs: basis(inputs.runs),
)
CHECKS = Table(
    "Checks of the scores",
    "Whether scores add up, all runs were scored by the same policies, and no run counts twice.",
    lambda inputs: validate_scores(inputs.runs),
)
LEADERBOARD = Table(
    "Leaderboard by {score}",
    "Mean over the tasks of a track, then over tracks; tasks weigh the same. The wide interval is"
    " for new tasks, the narrow one for these tasks run again. Rank sets hold jointly at 95 %.",
    lambda inputs: leaderboard(inputs.runs, inputs.outcome),
)
PAIRWISE = Table(
    "Differences of {score} between agents",
    "Paired by task; p adjusted by Holm over pairs. mde80 is the difference found with power .8.",
    lambda inputs: pairwise(inputs.runs, inputs.outcome),
)
STAGES = Table(
    "Stage profile by agent",
    "Means of tasks and tracks, as on the leaderboard; unscored stages are left out, never"
    " counted as 0.",
    lambda inputs: stage_profile(inputs.runs),
)
STAGES_BY_TRACK = Table(
    "Stage profile by agent and track",
    "As above, within tracks.",
    lambda inputs: stage_profile(inputs.runs, ("agent", "track")),
)
TIERS = Table(
    "Tier contrast",
    "Change from the baseline tier in percent, on tasks with both. Columns ending in _free"
    " leave out criteria that a tier credits unjudged.",
    lambda inputs: tier_contrast(inputs.runs),
)
CODES_READ = Table(
    "What was read for codes",
    "A code is present, absent, cannot tell (a reader could not), or not read (nobody looked)."
    " Without a judge that reads runs, E1 and E3 are not read: facts can show them, never"
    " exclude them. “Read” counts runs in which a reading, or for E2, E4 and E5 the facts,"
    " decided. “Fired unread”: shown by facts in a run that nobody read; rates leave these"
    " out.",
    lambda inputs: reading_counts(select_runs(inputs.runs)[0]),
)
CODES = Table(
    "Fired codes",
    "Rates per run and shares of fired codes, of the runs that were read for them; shares are"
    " compositional, so read both.",
    lambda inputs: code_prevalence(inputs.runs, source=inputs.code_source),
)
CODES_BY_AGENT = Table(
    "Fired codes by agent",
    "As above, by agent.",
    lambda inputs: code_prevalence(inputs.runs, ("agent",), source=inputs.code_source),
)
CODES_BY_TRACK = Table(
    "Fired codes by track",
    "As above, by track.",
    lambda inputs: code_prevalence(inputs.runs, ("track",), source=inputs.code_source),
)
CODE_STAGES = Table(
    "Where codes fire",
    "Firings by code, stage and source; a code in two stages of a run counts in both here. A"
    " code without a row may not have been read: see what was read for codes.",
    lambda inputs: codes_by_stage(inputs.cohort),
)
CLIFF = Table(
    "{score} by number of fired codes",
    "Raw and within repeats of the same agent, task and tier; single codes show what the"
    " one-code group is made of. Counts are of codes that were read in the same runs; where"
    " some were not, the notes say which.",
    lambda inputs: cliff(inputs.runs, inputs.outcome, source=inputs.code_source),
)
RECOVERY = Table(
    "Recovery",
    "Among runs with two or more codes, the share that still reaches a scored submission."
    " Agents with more codes are seen on harder runs.",
    lambda inputs: recovery(inputs.runs, source=inputs.code_source),
)
CODE_EFFECTS = Table(
    "Effects of codes on {score}",
    "Runs that fired a code against repeats of the same agent, task, tier and other codes that"
    " did not, in the unit of {score}. Associational: codes are tagged after the outcome; where"
    " runs differ already in earlier stages (placebo p) no effect may be claimed.",
    lambda inputs: code_effects(inputs.runs, inputs.outcome, source=inputs.code_source),
)
EFFECT_PARTS = Table(
    "Effects on Overall by part of the score",
    "An exact split: judge part (S1-S3), rule part (S4, S5), Task part, and this again: a Task"
    " of 0, and how good results above it are.",
    lambda inputs: decompose_effects(inputs.runs, source=inputs.code_source),
)
EFFECTS_BY_AGENT = Table(
    "Effects of codes on {score} by agent",
    "BH over the grid; rank by the shrunk value only.",
    lambda inputs: effects_by(inputs.runs, "agent", inputs.outcome, source=inputs.code_source),
)
ROBUSTNESS = Table(
    "Effects on {score} under other models",
    "What changes when the model changes; traps are named in the warnings.",
    lambda inputs: robustness(inputs.runs, inputs.outcome, source=inputs.code_source),
)
EXPLAINED = Table(
    "How much of {score} codes explain",
    "R2 within cells on left-out tasks.",
    lambda inputs: explained_variance(inputs.runs, inputs.outcome, source=inputs.code_source),
)
PLACEBO = Table(
    "Placebo: effects on earlier stages",
    "Should be 0. An alarm means that runs with the code differed before it could act; one"
    " cohort in twenty raises one by chance.",
    lambda inputs: placebo(inputs.runs, source=inputs.code_source),
)
CIRCULARITY = Table(
    "Circular codes",
    "Codes that restate the score cannot explain it.",
    lambda inputs: circularity(inputs.runs),
)
LEAVE_AGENT_OUT = Table(
    "Effects on {score} without one agent",
    "Whether a single agent carries a result.",
    lambda inputs: leave_one_out(inputs.runs, inputs.outcome, source=inputs.code_source),
)
COST = Table(
    "Cost and {score}",
    "Correlations over runs mix agents with runs; within_cell compares repeats only.",
    lambda inputs: cost_score(inputs.runs, outcome=inputs.outcome),
)
JUDGE_COST = Table(
    "What judging cost",
    "Sums over scorecards by judge, all judges. Input tokens are split into those read from a"
    " provider's cache, written into it, and neither; unknown where one scorecard does not"
    " say.",
    lambda inputs: judge_cost(inputs.runs),
)
FAILURES = Table(
    "Failures and validity",
    "“failed”: no scoreable submission, by the rule of the track. A run rated F is a breach, a"
    " timeout (never submitted), without output, or below the lowest band (submitted, not good"
    " enough or malformed). “valid”: something scored above zero.",
    lambda inputs: failure_rates(inputs.runs, ("agent",)),
)
ABILITY = Table(
    "Ability and difficulty",
    "A second opinion: a Rasch model of success, in logits. It allows for tasks that an agent"
    " never ran, and assumes that tasks are hard for all alike.",
    lambda inputs: abilities(inputs.runs),
)
PASS_K = Table(
    "Success every time",
    "pass^k: the chance that k runs of a task all succeed; pass@k: that one of them does."
    " Success is no failure by the rule of the track; tasks and tracks weigh as on the"
    " leaderboard.",
    lambda inputs: pass_k(inputs.runs),
)
RATINGS = Table(
    "Ratings and medals",
    "The report's where the Task is its own, else by the published limits of the track. A and B"
    " are resolved; F: nothing that can be rated. “shuffled”: the Task metric of the same"
    " outputs against the references of other cases.",
    lambda inputs: ratings(inputs.runs),
)
PARTS = Table(
    "Scores of parts",
    "The benchmark's metric by class, tissue or kind of question, where the reports tell it;"
    " means over runs.",
    lambda inputs: part_scores(inputs.cohort),
)
FIRST_BREAKS = Table(
    "Where runs break first",
    "Of the runs whose earlier stages all reached .5, the share whose stage did not; unbroken:"
    " what is left after it. Disqualified runs are left out; a run leaves at its first stage"
    " without a score.",
    lambda inputs: first_breaks(inputs.runs),
)
STAGE_USE = Table(
    "Turns, calls and time by stage",
    "Means per run, from the segmentation.",
    lambda inputs: stage_use(inputs.runs),
)
PLANNING = Table(
    "What more tasks or repeats would show of {score}",
    "Smallest difference of two agents found with power .8, from this cohort's variance"
    " components.",
    lambda inputs: power(difference_noise(variance_components(inputs.runs, inputs.outcome))),
)
ORDER = Table(
    "Would the order by {score} hold",
    "Were these means the truth: how often as many new tasks show the same order.",
    lambda inputs: order_stability(inputs.runs, inputs.outcome),
)
RANK_STABILITY = Table(
    "Would fewer tasks show the order by {score}",
    "The order of all tasks on some of them, drawn within tracks. Subsets of these tasks differ"
    " less than new ones would: see whether the order holds.",
    lambda inputs: rank_stability(inputs.runs, inputs.outcome),
)
LABEL_PLAN = Table(
    "Which runs to label",
    "Stratified by tags, rare codes first. Labels keep how they were drawn (ambjudge label next"
    " --out).",
    lambda inputs: label_plan(
        inputs.runs, inputs.label_budget, source=inputs.code_source, already=inputs.labelled_runs
    ),
)
RELIABILITY = Table(
    "Reliability of criteria",
    "Krippendorff's alpha of every criterion over all judges and annotators that scored the"
    " same runs; presumed, credited and unscored ones are gaps. Criteria that one rater scored"
    " have no row.",
    lambda inputs: reliability(inputs.cohort, inputs.labels),
)
AGREEMENT = Table(
    "Judge against people",
    "Several coefficients, since none is enough; undefined ones say why. Weighed by how runs"
    " were drawn for labelling. Labels that were seen while a judge's rules or prompts were"
    " written say nothing about new runs.",
    lambda inputs: agreement(inputs.cohort, inputs.required_labels),
    "labels",
)
CORRECTED_LEADERBOARD = Table(
    "Leaderboard by {score}, corrected by labels",
    "Judge's means and the same corrected for the judge's error. Corrected, “same tasks” means"
    " these very runs.",
    TableInputs.corrected_means,
    "labels",
)
CORRECTED_EFFECTS = Table(
    "Effects of codes on {score}, corrected by labels",
    "Judge's tags, labelled runs only, and predict-then-debias.",
    TableInputs.corrected_effects,
    "labels",
)
CLUSTERS = Table(
    "Groups of failures",
    "Words about failures, grouped by their likeness; numbers, quotes and paths do not count. A"
    " run counts once in a group. Runs that nobody read for a code have no reasons of it.",
    lambda inputs: inputs.required_texts.table(),
    "texts",
)
