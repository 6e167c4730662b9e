"""The built-in tables of `analyze`, one constant each; `report_tables.BUILT_IN` orders them.

To add a table, write a constant here and put its name into that list. A section of the report may
then include it (`report_outline`); a table that no section includes comes at the end of the report.
"""

from __future__ import annotations

from ..statistics.alternative_models import robustness
from ..statistics.benchmark_ratings import part_scores, ratings
from ..statistics.board import board_runs, run_means
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
from ..statistics.stages_by_code import stages_by_code
from ..statistics.who_ran import who_ran
from ..tables.codes_read import reading_counts
from .basis import basis
from .cohort_tables import (
    codes_by_stage,
    cohort_summary,
    judge_cost,
    order_stability,
    with_titles,
)
from .table_spec import Table, TableInputs

COHORT = Table(
    "The cohort",
    "The runs that were analysed, and what was left out.",
    lambda inputs: cohort_summary(inputs.cohort),
)
BASIS = Table(
    "What the scores rest on",
    "The judge, the share of the weight of the judged criteria that was read, and the number of"
    " quotes that were found in the runs. Presumed: criteria that nobody judged have their"
    " commonest value (~). Unread: a judged stage is unscored or has too few values for a point"
    " score, so only a range is given.",
    lambda inputs: basis(inputs.cohort),
)
CHECKS = Table(
    "Checks of the scores",
    "Whether scores add up, all runs were scored by the same policies, and no run counts twice.",
    lambda inputs: validate_scores(inputs.runs),
)
WHO_RAN = Table(
    "Who ran, was read and was scored where",
    "Runs by {row}; cells are tasks and tiers, of those on which any {row} ran. Means of {rows}"
    " that ran or were scored on other cells cannot be compared as they stand.",
    lambda inputs: who_ran(inputs.runs, inputs.outcome),
    about="rows",
)
LEADERBOARD = Table(
    "Leaderboard by {score}",
    "Mean over the tasks of a track, then over tracks; tasks have equal weights. The wide"
    " interval is for new tasks, the narrow one for the same tasks run again. Rank sets hold"
    " jointly at 95 %.",
    lambda inputs: leaderboard(inputs.runs, inputs.outcome),
    about="rows",
)
PAIRWISE = Table(
    "Differences of {score} between {rows}",
    "Paired by task; p is adjusted by Holm over all pairs. mde80 is the difference that is"
    " detected with power .8.",
    lambda inputs: pairwise(inputs.runs, inputs.outcome),
    about="rows",
)
STAGES = Table(
    "Stage profile by {row}",
    "Means over tasks and tracks, as on the leaderboard; unscored stages are left out, never"
    " counted as 0.",
    lambda inputs: stage_profile(inputs.runs),
    about="rows",
)
STAGES_BY_TRACK = Table(
    "Stage profile by {row} and track",
    "As above, within tracks.",
    lambda inputs: stage_profile(inputs.runs, ("agent", "track")),
    about="rows",
)
TIERS = Table(
    "Tier contrast",
    "Change from the baseline tier in percent, on tasks with runs in both tiers. Columns that end"
    " in _free leave out criteria that a tier credits without judging.",
    lambda inputs: tier_contrast(inputs.runs),
    about="rows",
)
CODES_READ = Table(
    "What was read for codes",
    "A code is present, absent, cannot tell (a judge looked and could not decide), or not read"
    " (nobody looked). Without a judge that reads runs, E1 and E3 are not read: facts can show"
    " them, never exclude them. “Read” counts runs in which a reading decided or, for E2, E4 and"
    " E5, the facts. “Fired unread” counts runs that nobody read and in which facts show the"
    " code; rates leave them out.",
    lambda inputs: reading_counts(select_runs(inputs.runs)[0]),
)
CODES = Table(
    "Fired codes",
    "Rates per run and shares of all fired codes, among the runs that were read for them. Shares"
    " sum to 1, so that one can fall only because another rises: read both.",
    lambda inputs: code_prevalence(inputs.runs, source=inputs.code_source),
)
CODES_BY_AGENT = Table(
    "Fired codes by {row}",
    "As above, by {row}.",
    lambda inputs: code_prevalence(inputs.runs, ("agent",), source=inputs.code_source),
    about="rows",
)
CODES_BY_TRACK = Table(
    "Fired codes by track",
    "As above, by track.",
    lambda inputs: code_prevalence(inputs.runs, ("track",), source=inputs.code_source),
)
CODE_STAGES = Table(
    "Where codes fire",
    "Firings by code, stage and source; a code that fires in two stages of a run counts in both."
    " A code without a row may not have been read: see what was read for codes.",
    lambda inputs: codes_by_stage(inputs.cohort),
)
CLIFF = Table(
    "{score} by number of fired codes",
    "Raw, and within repeats of the same agent, task and tier; single codes show the composition"
    " of the one-code group. Only codes that were read in the same runs are counted; the notes"
    " name those that were not.",
    lambda inputs: cliff(inputs.runs, inputs.outcome, source=inputs.code_source),
    about="agents",
)
RECOVERY = Table(
    "Recovery",
    "Among runs with two or more codes, the share that still reaches a scored submission. Compare"
    " {rows} with care: those with more codes are seen on harder runs.",
    lambda inputs: recovery(inputs.runs, source=inputs.code_source),
    about="rows",
)
STAGES_BY_CODE = Table(
    "Stages of runs with and without a code",
    "Means of S1 to S3 over the runs that were read for the code, each run counting once. The"
    " differences are associations: agents and tasks are not held equal.",
    lambda inputs: stages_by_code(inputs.runs, source=inputs.code_source),
)
CODE_EFFECTS = Table(
    "Effects of codes on {score}",
    "Runs that fired a code against repeats of the same agent, task, tier and other codes that"
    " did not, in the unit of {score}. The effects are associations: codes are tagged after the"
    " outcome. If runs already differ in earlier stages (placebo p), no effect may be claimed.",
    lambda inputs: code_effects(inputs.runs, inputs.outcome, source=inputs.code_source),
    about="agents",
)
EFFECT_PARTS = Table(
    "Effects on Overall by part of the score",
    "An exact decomposition into the judge part (S1-S3), the rule part (S4, S5) and the Task"
    " part. The Task part is split further into whether Task is 0 and how high it is above 0.",
    lambda inputs: decompose_effects(inputs.runs, source=inputs.code_source),
    about="agents",
)
EFFECTS_BY_AGENT = Table(
    "Effects of codes on {score} by {row}",
    "p is adjusted by BH over all {rows} and codes. Rank by the shrunk value only.",
    lambda inputs: effects_by(
        inputs.named_runs, inputs.by, inputs.outcome, source=inputs.code_source
    ),
)
ROBUSTNESS = Table(
    "Effects on {score} under other models",
    "How the effects change with the model; the warnings name pitfalls of a model.",
    lambda inputs: robustness(inputs.runs, inputs.outcome, source=inputs.code_source),
    about="agents",
)
EXPLAINED = Table(
    "How much of {score} codes explain",
    "R² within cells, on held-out tasks.",
    lambda inputs: explained_variance(inputs.runs, inputs.outcome, source=inputs.code_source),
    about="agents",
)
PLACEBO = Table(
    "Placebo: effects on earlier stages",
    "These effects should be 0. An alarm means that runs with the code differed before the code"
    " could act; one cohort in twenty raises an alarm by chance.",
    lambda inputs: placebo(inputs.runs, source=inputs.code_source),
    about="agents",
)
CIRCULARITY = Table(
    "Circular codes",
    "Codes that restate the score cannot explain it.",
    lambda inputs: circularity(inputs.runs),
)
LEAVE_AGENT_OUT = Table(
    "Effects on {score} without one {row}",
    "Whether a single {row} carries a result.",
    lambda inputs: leave_one_out(
        inputs.named_runs, inputs.outcome, axis=inputs.by, source=inputs.code_source
    ),
)
COST = Table(
    "Cost and {score}",
    "Correlations over all runs mix differences of agents with differences of runs; within_cell"
    " compares repeats only.",
    lambda inputs: cost_score(inputs.runs, outcome=inputs.outcome),
    about="agents",
)
RUN_MEANS = Table(
    "Means over all runs",
    "What a run scored, took and cost. Within each {row}, tasks and tracks have equal weights;"
    " {rows} weigh by their runs.",
    lambda inputs: run_means(board_runs(inputs.runs)),
    about="rows",
)
JUDGE_COST = Table(
    "Cost of judging",
    "Sums over scorecards by judge, for all judges. Input tokens are split into those read from a"
    " provider's cache, those written into it, and all others; a sum is unknown if one scorecard"
    " lacks the number.",
    lambda inputs: judge_cost(inputs.runs),
)
FAILURES = Table(
    "Failures and validity",
    "“failed”: no scoreable submission, by the rule of the track. A run rated F is a breach, a"
    " timeout (never submitted), without output, or below the lowest band (submitted, not good"
    " enough or malformed). “valid”: something scored above zero.",
    lambda inputs: failure_rates(inputs.runs, ("agent",)),
    about="rows",
)
ABILITY = Table(
    "Ability and difficulty",
    "A second opinion: a Rasch model of success, in logits. It allows for tasks that one"
    " of the {rows} never ran, and assumes that a task is equally hard for all.",
    lambda inputs: abilities(inputs.runs),
    about="rows",
)
PASS_K = Table(
    "Success every time",
    "pass^k: the chance that k runs of a task all succeed; pass@k: that one of them does. Success"
    " is no failure by the rule of the track; tasks and tracks weigh as on the leaderboard.",
    lambda inputs: pass_k(inputs.runs),
    about="rows",
)
RATINGS = Table(
    "Ratings and medals",
    "Ratings of the harness report if Task is from it, else by the published limits of the track."
    " A and B count as resolved; F means that nothing can be rated. “shuffled” is the Task metric"
    " of the same outputs against the references of other cases.",
    lambda inputs: ratings(inputs.runs),
    about="rows",
)
PARTS = Table(
    "Scores of parts",
    "The benchmark's metric by class, tissue or kind of question, if the reports have it; means"
    " over runs.",
    lambda inputs: part_scores(inputs.cohort),
    about="rows",
)
FIRST_BREAKS = Table(
    "Where runs break first",
    "For each stage, the share of runs below .5 among those whose earlier stages all reached .5;"
    " unbroken: the share that remains after it. Disqualified runs are left out; a run is counted"
    " up to its first stage without a score.",
    lambda inputs: first_breaks(inputs.runs),
    about="rows",
)
STAGE_USE = Table(
    "Turns, calls and time by stage",
    "Means per run, from the segmentation.",
    lambda inputs: stage_use(inputs.runs),
    about="rows",
)
PLANNING = Table(
    "Detectable differences of {score} with more tasks or repeats",
    "The smallest difference of two {rows} that is detected with power .8, from the variance"
    " components of this cohort.",
    lambda inputs: power(difference_noise(variance_components(inputs.runs, inputs.outcome))),
    about="rows",
)
ORDER = Table(
    "Would the order by {score} hold",
    "How often a new set of as many tasks would show the same order. The"
    " true means are taken to differ less than these ones, which contain chance.",
    lambda inputs: order_stability(inputs.runs, inputs.outcome),
    about="rows",
)
RANK_STABILITY = Table(
    "Would fewer tasks show the order by {score}",
    "How often the order by all tasks appears on subsets of them, drawn within tracks. Subsets of"
    " the same tasks differ less than new tasks would: see whether the order by {score} would"
    " hold.",
    lambda inputs: rank_stability(inputs.runs, inputs.outcome),
    about="rows",
)
LABEL_PLAN = Table(
    "Which runs to label",
    "A sample stratified by tags, rare codes first. Labels record how their run was drawn"
    " (ambjudge label next --out).",
    lambda inputs: label_plan(
        inputs.runs, inputs.label_budget, source=inputs.code_source, already=inputs.labelled_runs
    ),
    about="agents",
)
RELIABILITY = Table(
    "Reliability of criteria",
    "Krippendorff's alpha of every criterion over all judges and annotators that scored the same"
    " runs; presumed, credited and unscored ones are gaps. Criteria that one rater scored have no"
    " row.",
    lambda inputs: reliability(inputs.cohort, inputs.labels),
)
AGREEMENT = Table(
    "Judge against people",
    "Several coefficients, as no single one is enough; undefined ones give the reason. Runs are"
    " weighted by how they were drawn for labelling. Labels that were used to write a judge's"
    " rules or prompts say nothing about new runs.",
    lambda inputs: with_titles(agreement(inputs.cohort, inputs.required_labels), inputs.cohort),
    needs="labels",
)
CORRECTED_LEADERBOARD = Table(
    "Leaderboard by {score}, corrected by labels",
    "The judge's means, and the same means corrected for the judge's error. “These runs”: the runs"
    " are fixed, and only the judge's error varies.",
    TableInputs.corrected_means,
    needs="labels",
    about="rows",
)
CORRECTED_EFFECTS = Table(
    "Effects of codes on {score}, corrected by labels",
    "By the judge, by people on the labelled runs alone, and the judge's corrected by the labels"
    " (codes, and S1-S3 where people scored them).",
    TableInputs.corrected_effects,
    needs="labels",
)
CLUSTERS = Table(
    "Groups of failures",
    "Texts about failures, grouped by similarity without regard to numbers, quotes and paths. A"
    " run counts once in a group. Runs that were not read for a code have no texts about it.",
    lambda inputs: inputs.required_texts.table(),
    needs="texts",
)
