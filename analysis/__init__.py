"""From scorecards to tables: frames, leaderboards, effects of fired codes, agreement, sample sizes,
simulation.

Names load on first use, so that importing this package loads neither numpy nor polars. No module
bears the name of a function: importing a module would put it in the function's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report.failure_texts import failure_clusters
    from .report.html_report import write_report
    from .report.report_tables import TABLES, all_tables
    from .report.results import Analysis, analyse
    from .simulated.simulated_cards import simulated_scorecards
    from .simulated.simulation import simulate
    from .statistics.descriptive import (
        code_prevalence,
        cost_score,
        failure_rates,
        stage_profile,
        stage_use,
        tier_contrast,
    )
    from .statistics.diagnostics import circularity, leave_one_out, placebo
    from .statistics.dose import cliff, recovery
    from .statistics.effects import code_effects, decompose_effects
    from .statistics.estimate import Estimate, wide
    from .statistics.heterogeneity import effects_by, explained_variance
    from .statistics.judge_error import corrected_code_effects, corrected_leaderboard, judged_mean
    from .statistics.planning import power
    from .statistics.ranking import leaderboard, pairwise, rank_sets, rank_stability
    from .statistics.rasch import abilities
    from .statistics.raters import agreement, judge_pairs, rater_agreement, reliability
    from .statistics.repeated_success import first_breaks, pass_k
    from .statistics.robust import robustness
    from .statistics.sample_sizes import label_plan, variance_components
    from .tables.cohorts import Cohort, cohort, criteria, frame
    from .tables.frames import read_frame, write_frame
    from .tables.label_tables import read_labels
    from .tables.score_checks import validate_scores

_NAMES = {
    "statistics.rasch": ("abilities",),
    "tables.cohorts": ("Cohort", "cohort", "criteria", "frame"),
    "statistics.descriptive": (
        "code_prevalence",
        "cost_score",
        "failure_rates",
        "stage_profile",
        "stage_use",
        "tier_contrast",
    ),
    "statistics.diagnostics": ("circularity", "leave_one_out", "placebo"),
    "statistics.dose": ("cliff", "recovery"),
    "statistics.effects": ("code_effects", "decompose_effects"),
    "statistics.estimate": ("Estimate", "wide"),
    "report.failure_texts": ("failure_clusters",),
    "tables.frames": ("read_frame", "write_frame"),
    "statistics.heterogeneity": ("effects_by", "explained_variance"),
    "report.html_report": ("write_report",),
    "statistics.judge_error": ("corrected_code_effects", "corrected_leaderboard", "judged_mean"),
    "tables.label_tables": ("read_labels",),
    "statistics.planning": ("power",),
    "statistics.ranking": ("leaderboard", "pairwise", "rank_sets", "rank_stability"),
    "statistics.raters": ("agreement", "judge_pairs", "rater_agreement", "reliability"),
    "statistics.repeated_success": ("first_breaks", "pass_k"),
    "report.report_tables": ("TABLES", "all_tables"),
    "report.results": ("Analysis", "analyse"),
    "statistics.robust": ("robustness",),
    "statistics.sample_sizes": ("label_plan", "variance_components"),
    "tables.score_checks": ("validate_scores",),
    "simulated.simulated_cards": ("simulated_scorecards",),
    "simulated.simulation": ("simulate",),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "TABLES",
    "Analysis",
    "Cohort",
    "Estimate",
    "abilities",
    "agreement",
    "all_tables",
    "analyse",
    "circularity",
    "cliff",
    "code_effects",
    "code_prevalence",
    "cohort",
    "corrected_code_effects",
    "corrected_leaderboard",
    "cost_score",
    "criteria",
    "decompose_effects",
    "effects_by",
    "explained_variance",
    "failure_clusters",
    "failure_rates",
    "first_breaks",
    "frame",
    "judge_pairs",
    "judged_mean",
    "label_plan",
    "leaderboard",
    "leave_one_out",
    "pairwise",
    "pass_k",
    "placebo",
    "power",
    "rank_sets",
    "rank_stability",
    "rater_agreement",
    "read_frame",
    "read_labels",
    "recovery",
    "reliability",
    "robustness",
    "simulate",
    "simulated_scorecards",
    "stage_profile",
    "stage_use",
    "tier_contrast",
    "validate_scores",
    "variance_components",
    "wide",
    "write_frame",
    "write_report",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
