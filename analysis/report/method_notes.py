"""What every number of the report has in common: units, populations, estimators, missing values."""

from __future__ import annotations

METHOD_NOTES = (
    (
        "Unit",
        (
            "A run: one agent on one task in one tier. A cell is all runs of an agent on a task in"
            " a tier; its runs are repeats."
        ),
    ),
    (
        "Populations",
        (
            "“New tasks”: these tasks are a sample of their kind; the spread is between tasks,"
            " tasks are the clusters, t with (effective clusters − 1) degrees of freedom,"
            " Satterthwaite’s over tracks for leaderboards. “Same tasks”: these tasks run again;"
            " only repeats vary. The error for new tasks is at least that for the same tasks, which"
            " new ones vary in too. Below three degrees of freedom there is no interval, no p and"
            " no rank: the tasks are too few. Agents, tracks and tiers are fixed, never a sample."
        ),
    ),
    (
        "Leaderboard",
        (
            "Mean of a track, then over tracks, each counting the same; within a track every task"
            " counts the same, however often it was repeated. Disqualified runs count with their 0;"
            " runs without a score are left out, and “missing as 0” and “missing as best” bound the"
            " mean."
        ),
    ),
    (
        "Rank sets",
        (
            "What Holm’s procedure over all paired differences leaves possible: all sets hold at"
            " once at 95 %. A track with one task borrows the spread of tasks from the others."
        ),
    ),
    (
        "Effects of codes",
        (
            "Overlap-weighted: runs with the code against repeats of the same cell with the same"
            " other codes; every such group of n runs weighs (n − 1) p (1 − p) on average. Standard"
            " errors by deleting one task at a time; Holm over the codes. “Compared” counts firings"
            " with such a repeat. Tags derived from the score alone count as not fired. “Placebo"
            " p”: the smallest adjusted p of effects on stages before the code; below .05 no effect"
            " is claimed. Disqualified runs are left out. Codes are tagged after the outcome, so"
            " these are associations. Completion, S4 and S5 are never conditioned on."
        ),
    ),
    (
        "Codes read",
        (
            "A code is present, absent, cannot tell or not read. Rates, effects and agreement are"
            " of the runs that were read for the code, and say “N of M”; a code shown by facts in a"
            " run that nobody read is no part of them. Numbers of codes, and effects, are of codes"
            " that were read in the same runs: all five where at least half of the runs were read"
            " for all, else those that were. Where a reader could not tell, the run was not read"
            " for the code."
        ),
    ),
    (
        "Parts",
        (
            "Overall is linear in the stages and Task, so an effect splits exactly: judged stages"
            " (the judge may also have set the tag), checked stages (for E5 partly by definition),"
            " Task (the benchmark’s own metric): what is lost by a Task of 0, which a gate or an"
            " unscorable result decides, and how good the others are."
        ),
    ),
    (
        "Missing",
        (
            "What nobody scored is unknown, never 0, except where a column says so. A number that"
            " is not defined is a dash with its reason."
        ),
    ),
)
