"""What a scorecard says of its own making: rubric, judge, packages, and warnings to its reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from ...error_codes.registry import detector_packages
from ...plugins import stamps
from ...rubrics.load import builtin_ids, load_rubric
from ...rubrics.model import Rubric, has_all_stages
from ...tracks import TRACKS
from ...trajectories.models import Run, Tier, TrackName
from ..base import Judge, Reply, total_usage
from ..checks.check_outputs import OutputCheck
from ..scoring.base import Scoring
from .fields import REPLAY, REPORTED, RULES, JudgeInfo, RubricInfo


def rubric_info(rubric: Rubric) -> RubricInfo:
    return RubricInfo(
        id=rubric.id, version=rubric.version, sha256=rubric.sha256, titles=_own_titles(rubric)
    )


def _own_titles(rubric: Rubric) -> dict[str, str]:
    """Titles of the criteria, unless the rubric ships with ambjudge: only the card has them."""
    if rubric.id in builtin_ids() and load_rubric(rubric.id).sha256 == rubric.sha256:
        return {}
    return {criterion.id: criterion.title for criterion in rubric.criteria()}


def judge_info(
    judge: Judge, replies: Iterable[Reply], reported_model: str | None = None
) -> JudgeInfo:
    """The judge, what it cost, and which models answered for it.

    `reported_model`: the one behind the judge that repeats reports.
    """
    replies = tuple(replies)
    served_models = dict.fromkeys(model for reply in replies for model in reply.served_models)
    days = _verdict_days(judge, replies)
    return JudgeInfo(
        name=judge.name,
        members=judge.members,
        prompt_sha256=judge.prompt_sha256,
        temperature=_common_parameter(judge, "temperature"),
        samples=_common_parameter(judge, "samples"),
        first_verdict=min(days, default=None),
        last_verdict=max(days, default=None),
        **asdict(total_usage(replies)),
        served_model=", ".join(served_models) or reported_model,
    )


def _common_parameter(judge: Judge, name: str) -> Any:
    """A parameter of the judge, or the one that all members of a panel have; else None.

    A panel has its members' parameters under names like `0.gpt-4.1.temperature`.
    """
    if not judge.members:
        return judge.parameters.get(name)
    suffix = f".{name}"
    values = {value for key, value in judge.parameters.items() if key.endswith(suffix)}
    return values.pop() if len(values) == 1 else None


def _verdict_days(judge: Judge, replies: Iterable[Reply]) -> set[date]:
    """The days of a judge's verdicts; none for rules and for answers that were recorded before."""
    if judge.name in (RULES, REPORTED) or judge.name.startswith(REPLAY):
        return set()
    return {day for reply in replies for day in reply.days}


def packages(run: Run, judge: Judge) -> tuple[str, ...]:
    """Stamps of the packages that took part: with detectors, the run's track, or the judge.

    A panel's judge parameters include those of its members.
    """
    judges = [
        str(value)
        for name, value in judge.parameters.items()
        if name.rpartition(".")[2] == "plugin"
    ]
    tracks = [stamp for stamp in stamps(TRACKS) if stamp.startswith(f"tracks:{run.track} ")]
    return tuple(sorted({*detector_packages(), *tracks, *judges}))


def card_warnings(
    of_run: Sequence[str],
    rubric: Rubric,
    scoring: Scoring,
    outputs: OutputCheck,
    replies: Iterable[Reply],
    *,
    track: TrackName | None,
    tier: Tier | None,
    is_running: bool,
) -> tuple[str, ...]:
    """What a reader of the scorecard should know, each sentence once."""
    lines = list(of_run)
    if "S4" in rubric.stages or "S5" in rubric.stages:
        lines += outputs.warnings
    lines += scoring.warnings
    if is_running:
        lines.append(
            "the run still goes on, so what needs its end is withheld: score it again after its end"
        )
    if track is None and has_all_stages(rubric.stages):
        lines.append(
            "track unknown: judged by the shared workflow, S4 and S5 unscored (--track names it)"
        )
    if tier is None and any(item.credit or item.tiers for item in rubric.criteria()):
        lines.append("tier unknown: no item is credited and every item is judged (--tier names it)")
    if rubric.derived:
        lines.append(
            f"rubric {rubric.id}: no per-item rubric is published for it; derived from the"
            " shared workflow"
        )
    for reply in replies:
        lines += reply.warnings
    return tuple(dict.fromkeys(lines))
