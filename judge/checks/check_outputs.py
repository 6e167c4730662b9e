"""S4, S5, Task and the caps that follow from the outputs, for one run (benchmark.md section 4).

Delivered files are opened when they came with the run; else the report's flags and counts stand for
them, then its scores of S4 and S5, else the answer to submit_results. What none of them says stays
None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...tracks import TRACKS
from ...trajectories.models import Outputs, Run, Stage, TrackName
from ...trajectories.reading.layout import Fence, find_outputs
from ...trajectories.turns.briefs import validation_artefacts
from ..card.fields import Policy, TaskFrom
from ..card.scoring import (
    NEARLY_COMPLETE,
    UNKNOWN,
    VALID_SHARE,
    Bounds,
    Cap,
    answers_s4_caps,
    answers_stage_caps,
    gate_closed,
    real_but_broken,
    s4_bounds,
    s4_score,
    s5_bounds,
    s5_score,
)
from ..card.scoring_rules import LIKE, Rules
from ..card.stage_results import StageChecks
from .case_checks import CaseCheck, Fact, TrackCheck
from .demands import files as demanded_files
from .demands import other_format
from .expected_cases import expected_cases
from .model_calls import model_call_found
from .output_summary import Found, against_report, denied, from_report, from_trace
from .public_inputs import PublicInputs, find_public
from .report_metrics import accuracy, scored_above_zero
from .submission import Submission
from .track import CheckedTrack, checked_track
from .untrusted_files import fence_of
from .workspace import Workspace

_PLAN_FILES = ("plan.md", "plan.png")
_MAX_PROBLEMS = 40


@dataclass(frozen=True)
class OutputCheck:
    """S4 and S5 of one run with everything behind them.

    `s4` and `s5` are in [0, 1] or None when unknown, with bounds; a disqualification is not applied
    to them (that is `scoring.apply_breach`, which needs the breach's stage). `task` is in [0, 1],
    with the gate and a disqualification applied. `stage_caps` are upper limits on S1 and S3 that
    follow from delivered answers.
    """

    track: TrackName | None
    s4: float | None = None
    s5: float | None = None
    s4_bounds: Bounds = UNKNOWN
    s5_bounds: Bounds = UNKNOWN
    s4_checks: StageChecks = field(default_factory=StageChecks)
    s5_checks: StageChecks = field(default_factory=StageChecks)
    task: float | None = None
    task_from: TaskFrom | None = None
    s4_caps: tuple[Cap, ...] = ()
    stage_caps: Mapping[Stage, Cap] = field(default_factory=dict)
    real_but_broken: bool = False
    """Answers: a model answered everything, and next to nothing is right."""
    cases: tuple[CaseCheck, ...] = ()
    run_facts: tuple[Fact, ...] = ()
    measures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Case -> quantity -> number, of the delivered files; empty without files.

    Masks: `organ`, `lesion` or `label_<n>` in ml. Images: `mean`, `std`, `min`, `max` of the stored
    values. Boxes: `boxes`, and in the middle their `score` in [0, 1], `width` and `height` in
    pixels.
"""
    workspace: Workspace | None = None
    """Answers by the harness's rules alone: what stands for S2, and is blended into S3 and S4."""
    warnings: tuple[str, ...] = ()
    """What the files contradict in the report, and what could not be decided."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts of the run, then of every case, in order."""
        return (*self.run_facts, *(fact for case in self.cases for fact in case.facts))


def check_outputs(
    run: Run, *, public: Path | None = None, policy: Policy | None = None
) -> OutputCheck:
    """Check what the run delivered against its track's format.

    `public` is a folder of public inputs (`public/<task>/<case>/` or `public/<case>/`): the
    expected cases and reference shapes. InputError when it is given and no folder. Broken
    deliverables never raise: they are facts.
    """
    policy = policy or Policy()
    task, task_from = _task(run, None, None)
    if run.track is None:
        return OutputCheck(track=None, task=task, task_from=task_from)
    track = checked_track(run.track)
    if track is None:
        known = ", ".join(TRACKS.names)
        said = f"unknown track {run.track}: S4 and S5 stay unscored; known: {known}"
        return OutputCheck(track=run.track, task=task, task_from=task_from, warnings=(said,))
    inputs = None if public is None else find_public(public, run.task)
    rules = LIKE[policy.like if track.branch is not None else "paper"]
    run = _as_found(run, rules)
    warnings = (
        [f"no public inputs for {run.task or 'the task'} in the given folder"]
        if public and inputs is None
        else []
    )
    others = other_format(run.brief, _track_files())
    if others:
        warnings.append(
            f"the brief asks for {', '.join(others)}, no files of {track.name}: they were not"
            " opened"
        )
    try:
        found = None if others else _from_files(run, track, inputs, rules)
    except Exception as error:
        plugin = TRACKS.entries[track.name]
        if not plugin.package:
            raise
        text = f"the check of track {track.name} ({plugin}) failed: {type(error).__name__}: {error}"
        return OutputCheck(track=track.name, warnings=(f"{text[:300]}; S4 and S5 stay unscored",))
    if found is None:
        found = from_report(run, track, rules)
    else:
        warnings += against_report(run, found)
        found = denied(run, track, found)
    if found is None:
        found = from_trace(run, track)
    return _conclude(run, track, policy, rules, found, tuple(warnings))


def _as_found(run: Run, rules: Rules) -> Run:
    """The run with the outputs that these rules see."""
    outputs = run.outputs
    if rules.links:
        outputs = find_outputs(run.folder, run.listed_cases or (), leave=True)
    if rules.one_folder and outputs.root is not None and outputs.root.name == "agent_outputs":
        outputs = Outputs(root=outputs.root)
    return run if outputs is run.outputs else run.model_copy(update={"outputs": outputs})


def _track_files() -> frozenset[str]:
    """The names of files that any track knows."""
    return frozenset(name for track in TRACKS for name in track.files)


def _from_files(
    run: Run, track: CheckedTrack, public: PublicInputs | None, rules: Rules
) -> Found | None:
    if run.outputs.root is None:
        return None
    # Links may stay within the run, as for the loader.
    root = Fence(Path(run.folder.anchor)) if rules.links else fence_of(run)
    delivered = _delivered(Submission(run, root, (), rules=rules), track)
    expected = expected_cases(run, delivered, public, track.counts_valid)
    if expected.source is None:
        # Nobody says how many cases there were: completion stays unknown, but what is wrong with a
        # file is known.
        submission = Submission(
            run, root, tuple(sorted(delivered or set(run.outputs.cases))), public, rules
        )
        checked = track.check(submission)
        broken = any(not case.valid for case in checked.cases) or any(
            fact.fatal for fact in checked.facts
        )
        return Found(
            source="files",
            output_valid=False if broken else None,
            submission_valid=False if broken and track.output != "answers" else None,
            results=_results(run, track, checked, rules),
            complete_cases=checked.delivered,
            cases=checked.cases,
            facts=(*checked.facts, *_also_demanded(run)),
            measures=submission.measures,
        )
    submission = Submission(run, root, expected.cases, public, rules)
    checked = track.check(submission)
    if expected.source in ("submit", "trace", "report"):
        checked = _soften_extras(checked)
    total = max(expected.count or 0, 1)
    facts = (*checked.facts, *_also_demanded(run))
    if len(expected.cases) < total:
        unnamed = total - len(expected.cases)
        facts = (
            *facts,
            Fact(
                "missing",
                f"{unnamed} of {total} expected cases have no output; their names are not known",
            ),
        )
    counted = checked.valid if track.counts_valid else checked.delivered
    completion = min(1.0, counted / total)
    valid = checked.valid >= total and not any(fact.fatal for fact in facts)
    answers = track.output == "answers"
    return Found(
        source="files",
        completion=completion,
        output_valid=valid,
        submission_valid=checked.valid / total >= VALID_SHARE if answers else valid,
        results=_results(run, track, checked, rules),
        parse_rate=min(1.0, _readable(checked) / total) if answers else None,
        placeholder_rate=min(1.0, checked.cases_with("placeholder") / total) if answers else None,
        answers=checked.delivered - checked.cases_with("skipped") if answers else None,
        unsure=public is None or checked.unsure,
        complete_cases=counted,
        expected=expected,
        cases=checked.cases,
        facts=facts,
        measures=submission.measures,
    )


def _also_demanded(run: Run) -> tuple[Fact, ...]:
    """Files beside the track's own that the brief wants and nobody delivered."""
    have = {file.name.rsplit("/", 1)[-1] for file in run.outputs.files}
    known = _track_files()
    return tuple(
        Fact("demand", f"{name} is missing", None, name)
        for _, name in demanded_files(run.brief)
        if name not in have and name not in known and name not in _PLAN_FILES
    )


def _delivered(submission: Submission, track: CheckedTrack) -> set[str]:
    """Cases that have their required file, before anyone says which are expected."""
    if track.delivered is not None:
        return track.delivered(submission)
    required = track.required(submission) if track.required is not None else track.files[:1]
    have: dict[str, set[str]] = {}
    for file in submission.run.outputs.files:
        if file.case is not None:
            have.setdefault(file.case, set()).add(file.name)
    return {case for case, names in have.items() if required and names.issuperset(required)}


def _soften_extras(checked: TrackCheck) -> TrackCheck:
    """Where the expected names were only inferred, a name outside them is no fault of the
    submission."""
    facts = tuple(
        replace(fact, forgiven=True) if fact.kind == "extra" else fact for fact in checked.facts
    )
    return replace(checked, facts=facts)


def _readable(checked: TrackCheck) -> int:
    return checked.valid if checked.readable is None else checked.readable


def _results(run: Run, track: CheckedTrack, checked: TrackCheck, rules: Rules) -> bool | None:
    """has_valid_results: an output that can be used where one is enough, else a metric above zero;
    nothing delivered scores nothing."""
    if track.one_output_suffices:
        return (_readable(checked) if track.output == "answers" else checked.valid) > 0
    if checked.cases and (
        checked.delivered == 0 or (track.output == "images" and checked.valid == 0)
    ):
        return False
    return scored_above_zero(track, run.report, rules.psnr_needed)


def _reported(run: Run, stage: Stage, bounds: Bounds, policy: Policy) -> float | None:
    """The report's score of S4 or S5, where the rest leaves it open and allows it.

    Reports follow the default policy, and a disqualified run's scores are 0 whatever it delivered.
    """
    score = (
        run.report.step_scores.get(stage)
        if run.report is not None and not run.report.breached
        else None
    )
    usual = policy.completeness_gate and policy.malformed == "formula"
    return score if score is not None and usual and bounds[0] <= score <= bounds[1] else None


def _conclude(
    run: Run,
    track: CheckedTrack,
    policy: Policy,
    rules: Rules,
    found: Found,
    warnings: tuple[str, ...],
) -> OutputCheck:
    way = track.branch if rules.rounded else None
    if way is not None and way.rate_digits is not None:
        found = found.rounded(way.rate_digits)
    closed = gate_closed(track.gate and policy.completeness_gate, found.completion)
    output_valid, submission_valid, results = (
        found.output_valid,
        found.submission_valid,
        found.results,
    )
    if closed:
        output_valid = submission_valid = False
        if results is None and (found.completion == 0 or not track.one_output_suffices):
            results = False  # a closed gate scores nothing above zero
    said = (
        None if way is None or track.one_output_suffices else _reported(run, "S5", UNKNOWN, policy)
    )
    if said is not None and submission_valid is not None:
        # the metric itself may have been rounded to 0
        results = said - 0.5 * submission_valid >= 0.5
    caps: tuple[Cap, ...] = ()
    stage_caps: dict[Stage, Cap] = {}
    called: bool | None = None
    broken = False
    workspace = None
    if rules.workspace and track.workspace is not None:
        workspace = track.workspace(run, found.expected.count)
    if track.output == "answers":
        called = model_call_found(run) if workspace is None else workspace.called
        if called is None and run.report is not None:
            stated = run.report.metrics.get("model_call_detected")
            called = stated if isinstance(stated, bool) else None
        enough = NEARLY_COMPLETE if rules.nearly_complete else 1.0
        complete = None if found.completion is None else found.completion >= enough
        caps = answers_s4_caps(found.placeholder_rate, called, complete, accuracy(run.report))
        broken = real_but_broken(called, complete, accuracy(run.report))
        if workspace is None:
            stage_caps = answers_stage_caps(
                found.placeholder_rate, found.answers, _artefact_missing(run)
            )
        else:
            stalled = workspace.smoke and not workspace.artefacts
            answers = int(stalled or found.completion != 0)
            stage_caps = answers_stage_caps(
                found.placeholder_rate, answers, not workspace.artefacts, False
            )
    validity = found.parse_rate if track.output == "answers" else output_valid
    digits = None if way is None else way.s4_digits
    s4_limits = s4_bounds(found.completion, validity, caps, digits)
    s5_limits = s5_bounds(results, submission_valid, policy.malformed)
    s4, s5 = (
        s4_score(found.completion, validity, caps, digits),
        s5_score(results, submission_valid, policy.malformed),
    )
    if s4 is None and (s4 := _reported(run, "S4", s4_limits, policy)) is not None:
        s4_limits = (s4, s4)
    if s5 is None and (s5 := _reported(run, "S5", s5_limits, policy)) is not None:
        s5_limits = (s5, s5)
    facts = OutputCheck(track=track.name, cases=found.cases, run_facts=found.facts).facts
    checks = StageChecks(
        completion=found.completion,
        format_valid=output_valid,
        has_valid_results=results,
        parse_rate=found.parse_rate,
        placeholder_rate=found.placeholder_rate,
        model_call_found=called,
        expected_cases=found.expected.count,
        complete_cases=found.complete_cases,
        cases_from=found.expected.source,
        source=found.source,
        caps=tuple(cap.reason for cap in caps if s4 is None or s4 >= cap.value),
        problems=_problems(facts),
    )
    ignored = rules.branch and track.branch is not None and track.branch.breach_turns is None
    task, task_from = _task(run, closed, found.completion, ignored)
    return OutputCheck(
        track=track.name,
        s4=s4,
        s5=s5,
        s4_bounds=s4_limits,
        s5_bounds=s5_limits,
        s4_checks=checks,
        s5_checks=checks.model_copy(update={"format_valid": submission_valid, "caps": ()}),
        task=task,
        task_from=task_from,
        s4_caps=caps,
        stage_caps=stage_caps,
        real_but_broken=broken,
        cases=found.cases,
        run_facts=found.facts,
        warnings=warnings,
        measures=found.measures,
        workspace=workspace,
    )


def _task(
    run: Run, closed: bool | None, completion: float | None, ignored: bool = False
) -> tuple[float | None, TaskFrom | None]:
    """A disqualified run scores 0, a closed gate 0, else the report's number stands or the outcome
    that the user named; without either, no output is worth 0."""
    if run.status.disqualified and not ignored:
        return 0.0, "policy"
    if closed:
        return 0.0, "gate"
    score = run.report.task_score if run.report is not None else None
    if score is None and run.task_outcome is not None:
        return run.outcomes[run.task_outcome].as_task_score, "outcome"
    if score is None and completion == 0:
        return 0.0, "outputs"
    return score, None if score is None else "report"


def _artefact_missing(run: Run) -> bool:
    """Whether the brief names a calibration or post-processing file that was not delivered."""
    if run.outputs.root is None:
        return False
    names = {file.name.rsplit("/", 1)[-1] for file in run.outputs.files}
    return bool(validation_artefacts(run.brief) - names)


def _problems(facts: tuple[Fact, ...]) -> tuple[str, ...]:
    """Fatal facts first; a last line counts what is left out."""
    lines = [
        str(fact) for fact in (*(f for f in facts if f.fatal), *(f for f in facts if not f.fatal))
    ]
    if len(lines) <= _MAX_PROBLEMS:
        return tuple(lines)
    return (*lines[:_MAX_PROBLEMS], f"and {len(lines) - _MAX_PROBLEMS} more")
