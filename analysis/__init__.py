"""From scorecards to tables: frames, leaderboards, effects of fired codes, agreement, planning, simulation.

Names load on first use, so that importing this package loads neither numpy nor polars. No module bears the name of a
function: importing a module would put it in the function's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .between_judges import judge_pairs
    from .descriptive import code_prevalence, cost_score, failure_rates, stage_profile, stage_use, tier_contrast
    from .diagnostics import circularity, leave_one_out, placebo
    from .dose import cliff, recovery
    from .effects import code_effects, decompose_effects
    from .estimate import Estimate, wide
    from .failure_texts import failure_clusters
    from .frames import Cohort, cohort, criteria, frame, read_frame, write_frame
    from .heterogeneity import effects_by, explained_variance
    from .html_report import write_report
    from .judge_error import corrected_code_effects, corrected_leaderboard, judged_mean
    from .label_tables import read_labels
    from .monte_carlo import selfcheck
    from .ranking import leaderboard, pairwise, rank_sets
    from .raters import agreement, judge_labels, rater_agreement
    from .report_tables import TABLES, all_tables
    from .results import Analysis, analyse
    from .robust import robustness
    from .sample_sizes import label_plan, power, variance_components
    from .score_checks import validate_scores
    from .simulation import simulate

_WHERE = {
    "Analysis": "results",
    "Cohort": "frames",
    "Estimate": "estimate",
    "TABLES": "report_tables",
    "agreement": "raters",
    "all_tables": "report_tables",
    "analyse": "results",
    "circularity": "diagnostics",
    "cliff": "dose",
    "code_effects": "effects",
    "code_prevalence": "descriptive",
    "cohort": "frames",
    "corrected_code_effects": "judge_error",
    "corrected_leaderboard": "judge_error",
    "cost_score": "descriptive",
    "criteria": "frames",
    "decompose_effects": "effects",
    "effects_by": "heterogeneity",
    "explained_variance": "heterogeneity",
    "failure_rates": "descriptive",
    "failure_clusters": "failure_texts",
    "frame": "frames",
    "judge_labels": "raters",
    "judge_pairs": "between_judges",
    "judged_mean": "judge_error",
    "label_plan": "sample_sizes",
    "leaderboard": "ranking",
    "leave_one_out": "diagnostics",
    "pairwise": "ranking",
    "placebo": "diagnostics",
    "power": "sample_sizes",
    "rank_sets": "ranking",
    "rater_agreement": "raters",
    "read_frame": "frames",
    "read_labels": "label_tables",
    "recovery": "dose",
    "robustness": "robust",
    "selfcheck": "monte_carlo",
    "simulate": "simulation",
    "stage_profile": "descriptive",
    "stage_use": "descriptive",
    "tier_contrast": "descriptive",
    "validate_scores": "score_checks",
    "variance_components": "sample_sizes",
    "wide": "estimate",
    "write_frame": "frames",
    "write_report": "html_report",
}

__all__ = [
    "TABLES",
    "Analysis",
    "Cohort",
    "Estimate",
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
    "frame",
    "judge_labels",
    "judge_pairs",
    "judged_mean",
    "label_plan",
    "leaderboard",
    "leave_one_out",
    "pairwise",
    "placebo",
    "power",
    "rank_sets",
    "rater_agreement",
    "read_frame",
    "read_labels",
    "recovery",
    "robustness",
    "selfcheck",
    "simulate",
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
