"""From scorecards to tables: frames, leaderboards, effects of fired codes, agreement, sample sizes, simulation.

Names load on first use, so that importing this package loads neither numpy nor polars. No module bears the name of a
function: importing a module would put it in the function's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cohorts import Cohort, cohort, criteria, frame
    from .descriptive import code_prevalence, cost_score, failure_rates, stage_profile, stage_use, tier_contrast
    from .diagnostics import circularity, leave_one_out, placebo
    from .dose import cliff, recovery
    from .effects import code_effects, decompose_effects
    from .estimate import Estimate, wide
    from .failure_texts import failure_clusters
    from .frames import read_frame, write_frame
    from .heterogeneity import effects_by, explained_variance
    from .html_report import write_report
    from .judge_error import corrected_code_effects, corrected_leaderboard, judged_mean
    from .label_tables import read_labels
    from .planning import power
    from .ranking import leaderboard, pairwise, rank_sets, rank_stability
    from .rasch import abilities
    from .raters import agreement, judge_pairs, rater_agreement, reliability
    from .repeated_success import first_breaks, pass_k
    from .report_tables import TABLES, all_tables
    from .results import Analysis, analyse
    from .robust import robustness
    from .sample_sizes import label_plan, variance_components
    from .score_checks import validate_scores
    from .simulated_cards import simulated_scorecards
    from .simulation import simulate

_NAMES = {
    "rasch": ("abilities",),
    "cohorts": ("Cohort", "cohort", "criteria", "frame"),
    "descriptive": (
        "code_prevalence", "cost_score", "failure_rates", "stage_profile", "stage_use", "tier_contrast",
    ),
    "diagnostics": ("circularity", "leave_one_out", "placebo"),
    "dose": ("cliff", "recovery"),
    "effects": ("code_effects", "decompose_effects"),
    "estimate": ("Estimate", "wide"),
    "failure_texts": ("failure_clusters",),
    "frames": ("read_frame", "write_frame"),
    "heterogeneity": ("effects_by", "explained_variance"),
    "html_report": ("write_report",),
    "judge_error": ("corrected_code_effects", "corrected_leaderboard", "judged_mean"),
    "label_tables": ("read_labels",),
    "planning": ("power",),
    "ranking": ("leaderboard", "pairwise", "rank_sets", "rank_stability"),
    "raters": ("agreement", "judge_pairs", "rater_agreement", "reliability"),
    "repeated_success": ("first_breaks", "pass_k"),
    "report_tables": ("TABLES", "all_tables"),
    "results": ("Analysis", "analyse"),
    "robust": ("robustness",),
    "sample_sizes": ("label_plan", "variance_components"),
    "score_checks": ("validate_scores",),
    "simulated_cards": ("simulated_scorecards",),
    "simulation": ("simulate",),
}  # fmt: skip
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "TABLES", "Analysis", "Cohort", "Estimate", "abilities", "agreement", "all_tables", "analyse", "circularity", "cliff",
    "code_effects", "code_prevalence", "cohort", "corrected_code_effects", "corrected_leaderboard", "cost_score",
    "criteria", "decompose_effects", "effects_by", "explained_variance", "failure_clusters", "failure_rates", "first_breaks", "frame",
    "judge_pairs", "judged_mean", "label_plan", "leaderboard", "leave_one_out", "pairwise", "pass_k", "placebo",
    "power", "rank_sets", "rank_stability", "rater_agreement", "read_frame", "read_labels", "recovery", "reliability", "robustness", "simulate",
    "simulated_scorecards", "stage_profile", "stage_use", "tier_contrast", "validate_scores", "variance_components", "wide",
    "write_frame", "write_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
