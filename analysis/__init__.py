"""From scorecards to tables, statistics, figures and the report.

- `tables`: scorecards and labels as polars frames; one `Cohort` says which runs are analysed.
- `statistics`: estimates with intervals: leaderboards, effects of error codes, agreement with human
  labels, power. Start with `statistics/interval_estimates.py` (what an estimate is) and
  `statistics/run_arrays.py` (how a run frame becomes arrays).
- `report` and `figures`: every table by name with its notes, findings in sentences, HTML report.
- `simulated`: cohorts with known true effects, for tests and for planning.

Names load on first use, so that importing this package loads neither numpy nor polars. No direct
submodule may bear the name of an exported function: importing it would replace the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report.failure_texts import failure_clusters
    from .report.html_report import write_report
    from .report.report_tables import TABLES, all_tables
    from .report.results import Analysis, analyse
    from .simulated.simulated_cards import simulated_scorecards
    from .simulated.simulation import simulate
    from .statistics.alternative_models import robustness
    from .statistics.corrected_effects import corrected_code_effects
    from .statistics.corrected_means import corrected_leaderboard, judged_mean
    from .statistics.descriptive import (
        code_prevalence,
        cost_score,
        failure_rates,
        stage_profile,
        stage_use,
        tier_contrast,
    )
    from .statistics.effect_diagnostics import circularity, leave_one_out, placebo
    from .statistics.effects import code_effects, decompose_effects
    from .statistics.heterogeneity import effects_by, explained_variance
    from .statistics.interval_estimates import Estimate, wide
    from .statistics.label_sampling import label_plan
    from .statistics.power_analysis import power
    from .statistics.ranking import leaderboard, pairwise, rank_sets, rank_stability
    from .statistics.rasch import abilities
    from .statistics.raters import agreement, judge_pairs, rater_agreement, reliability
    from .statistics.repeated_success import first_breaks, pass_k
    from .statistics.score_by_code_count import cliff, recovery
    from .statistics.score_checks import validate_scores
    from .statistics.score_variance import variance_components
    from .statistics.who_ran import who_ran
    from .tables.cohorts import Cohort, cohort, criteria, frame
    from .tables.frames import read_frame, write_frame
    from .tables.label_tables import read_labels

_EXPORTS = {
    "report.failure_texts": ("failure_clusters",),
    "report.html_report": ("write_report",),
    "report.report_tables": ("TABLES", "all_tables"),
    "report.results": ("Analysis", "analyse"),
    "simulated.simulated_cards": ("simulated_scorecards",),
    "simulated.simulation": ("simulate",),
    "statistics.alternative_models": ("robustness",),
    "statistics.descriptive": (
        "code_prevalence",
        "cost_score",
        "failure_rates",
        "stage_profile",
        "stage_use",
        "tier_contrast",
    ),
    "statistics.effect_diagnostics": ("circularity", "leave_one_out", "placebo"),
    "statistics.effects": ("code_effects", "decompose_effects"),
    "statistics.heterogeneity": ("effects_by", "explained_variance"),
    "statistics.interval_estimates": ("Estimate", "wide"),
    "statistics.corrected_effects": ("corrected_code_effects",),
    "statistics.corrected_means": ("corrected_leaderboard", "judged_mean"),
    "statistics.label_sampling": ("label_plan",),
    "statistics.power_analysis": ("power",),
    "statistics.ranking": ("leaderboard", "pairwise", "rank_sets", "rank_stability"),
    "statistics.rasch": ("abilities",),
    "statistics.raters": ("agreement", "judge_pairs", "rater_agreement", "reliability"),
    "statistics.repeated_success": ("first_breaks", "pass_k"),
    "statistics.score_by_code_count": ("cliff", "recovery"),
    "statistics.score_variance": ("variance_components",),
    "statistics.who_ran": ("who_ran",),
    "tables.cohorts": ("Cohort", "cohort", "criteria", "frame"),
    "tables.frames": ("read_frame", "write_frame"),
    "tables.label_tables": ("read_labels",),
    "statistics.score_checks": ("validate_scores",),
}
"""Module -> the names that it exports here."""

_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

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
    "who_ran",
    "wide",
    "write_frame",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
