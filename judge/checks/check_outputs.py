"""S4, S5 and Task of one run, with the caps that follow from its outputs.

Delivered files are opened if they came with the run. Otherwise the report's flags and counts stand
for them, then its scores of S4 and S5, then the answer to submit_results. What none of these
sources states stays None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...error_codes.output_facts import OutputFacts, OutputIssue, StageChecks
from ...tracks import TRACKS
from ...trajectories.models import Outputs, Run, Stage, TrackName
from ...trajectories.reading.layout import OUTPUT_NAMES, Fence, find_outputs
from ..card.fields import Policy, TaskFrom
from ..scoring.formulas import (
    NEARLY_COMPLETE,
    UNKNOWN_BOUNDS,
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
from ..scoring.scoring_rules import LIKE, Rules
from ..scoring.workspace import Workspace
from .brief_paths import case_files
from .case_checks import CaseCheck, TrackCheck
from .expected_cases import ExpectedCases, expected_cases
from .model_calls import model_call_found
from .output_summary import (
    OutputSummary,
    as_far_as_reported,
    defer_to_report,
    report_disagreements,
    report_says_completion,
    summary_without_files,
    with_reported_completion,
)
from .public_inputs import PublicInputs, find_public
from .report_metrics import accuracy, scored_above_zero
from .submission import Submission
from .track import CheckedTrack, checked_track
from .untrusted_files import fence_of

_PLAN_FILES = ("plan.md", "plan.png")
_MAX_PROBLEMS = 40
_MAX_WARNING = 300


@dataclass(frozen=True)
class OutputCheck:
    """S4 and S5 of one run with everything behind them.

    `s4` and `s5` are in [0, 1] or None if unknown, with bounds; a disqualification is not applied
    to them (that is `scoring.apply_breach`, which needs the breach's stage). `task` is in [0, 1],
    with the gate and a disqualification applied. `stage_caps` are upper limits on S1 and S3 that
    follow from delivered answers.
    """

    track: TrackName | None
    s4: float | None = None
    s5: float | None = None
    s4_bounds: Bounds = UNKNOWN_BOUNDS
    s5_bounds: Bounds = UNKNOWN_BOUNDS
    s4_checks: OutputFacts = field(default_factory=OutputFacts)
    s5_checks: StageChecks = field(default_factory=StageChecks)
    task: float | None = None
    task_from: TaskFrom | None = None
    s4_caps: tuple[Cap, ...] = ()
    stage_caps: Mapping[Stage, Cap] = field(default_factory=dict)
    cases: tuple[CaseCheck, ...] = ()
    run_issues: tuple[OutputIssue, ...] = ()
    workspace: Workspace | None = None
    """Answers by the harness's rules alone: what stands for S2 and is blended into S3 and S4."""
    warnings: tuple[str, ...] = ()
    """Statements of the report that the files contradict, and what could not be decided."""

    @property
    def issues(self) -> tuple[OutputIssue, ...]:
        """Issues about the run, then about each case, in order."""
        return (*self.run_issues, *(issue for case in self.cases for issue in case.issues))


def check_outputs(
    run: Run, *, public: Path | None = None, policy: Policy | None = None
) -> OutputCheck:
    """Check what a run delivered against the format of its track.

    `public` is a folder of public inputs (`public/<task>/<case>/` or `public/<case>/`), from which
    the expected cases and reference shapes are taken. InputError if it is given and not a folder.
    Broken deliverables never raise: they become issues. Nothing is known of a run that goes on.
    """
    policy = policy or Policy()
    if run.status.ended == "running":
        return OutputCheck(track=run.track)
    track = checked_track(run.track)
    if track is None:
        return _without_track(run)
    inputs = None if public is None else find_public(public, run.task)
    rules = LIKE["paper" if track.branch is None else policy.like]
    run = _with_visible_outputs(run, track, rules)
    warnings = []
    if public and inputs is None:
        warnings.append(f"no public inputs for {run.task or 'the task'} in the given folder")
    foreign_files = _foreign_files(run)
    opened = None
    if foreign_files:
        warnings.append(
            f"the brief asks for {', '.join(foreign_files)}, no files of {track.name}: they were"
            " not opened"
        )
    else:
        try:
            opened = _open_files(run, track, inputs, rules)
        except Exception as error:  # a package's check may raise anything
            if not TRACKS.entries[track.name].package:
                raise
            return OutputCheck(track=track.name, warnings=(_failure_warning(track, error),))
    if opened is None:
        summary = summary_without_files(run, track, rules)
    else:
        warnings += report_disagreements(run, opened)
        summary = defer_to_report(run, track, opened)
    return _score_outputs(run, track, policy, rules, summary, tuple(warnings))


def _without_track(run: Run) -> OutputCheck:
    """The check of a run whose track is not stated or not known: Task alone."""
    warnings: tuple[str, ...] = ()
    if run.track is not None:
        names = ", ".join(TRACKS.names)
        warnings = (f"unknown track {run.track}: S4 and S5 stay unscored; known: {names}",)
    task, task_from = _task_score(run)
    return OutputCheck(
        track=run.track,
        s4_checks=OutputFacts(task_score=task),
        task=task,
        task_from=task_from,
        warnings=warnings,
    )


def _failure_warning(track: CheckedTrack, error: Exception) -> str:
    """The warning about a package's check that raised an error."""
    plugin = TRACKS.entries[track.name]
    text = f"the check of track {track.name} ({plugin}) failed: {type(error).__name__}: {error}"
    return f"{text[:_MAX_WARNING]}; S4 and S5 stay unscored"


def _with_visible_outputs(run: Run, track: CheckedTrack, rules: Rules) -> Run:
    """The run with the outputs that these rules see."""
    if track.branch is None or not (rules.links or rules.one_folder):
        return run
    names = (track.branch.outputs_folder,) if rules.one_folder else OUTPUT_NAMES
    outputs = find_outputs(run.folder, run.listed_cases or (), names=names, follow_out=rules.links)
    if outputs.root is None and run.outputs.root is not None:
        outputs = Outputs(root=run.outputs.root)  # another branch's folder: nothing was delivered
    return run.model_copy(update={"outputs": outputs})


def _files_of_all_tracks() -> frozenset[str]:
    return frozenset(name for track in TRACKS for name in track.files)


# Opening the delivered files


def _open_files(
    run: Run, track: CheckedTrack, public: PublicInputs | None, rules: Rules
) -> OutputSummary | None:
    """Check the delivered files; None if none came with the run."""
    if run.outputs.root is None:
        return None
    # Links may not leave the run, except by the harness's rules.
    fence = Fence(Path(run.folder.anchor)) if rules.links else fence_of(run)
    delivered = _delivered_cases(Submission(run, fence, (), rules=rules), track)
    expected = expected_cases(run, delivered, public, track.counts_valid)
    if expected.source is None or (expected.source == "trace" and report_says_completion(run)):
        cases = tuple(sorted(delivered or set(run.outputs.cases)))
        summary = _summary_without_total(Submission(run, fence, cases, public, rules), track)
        return with_reported_completion(run, summary)
    return _summary_of_files(Submission(run, fence, expected.cases, public, rules), track, expected)


def _delivered_cases(submission: Submission, track: CheckedTrack) -> set[str]:
    """Cases that have their required files, whichever cases are expected."""
    if track.delivered is not None:
        return track.delivered(submission)
    required = track.files[:1] if track.required is None else track.required(submission)
    if not required:
        return set()
    files_by_case: dict[str, set[str]] = {}
    for file in submission.run.outputs.files:
        if file.case is not None:
            files_by_case.setdefault(file.case, set()).add(file.name)
    return {case for case, names in files_by_case.items() if names.issuperset(required)}


def _summary_without_total(submission: Submission, track: CheckedTrack) -> OutputSummary:
    """The summary if nobody says how many cases there were.

    Completion stays unknown, but a broken file makes the outputs invalid whatever the total.
    """
    checked = track.check(submission)
    has_broken_case = any(not case.valid for case in checked.cases)
    broken = has_broken_case or any(issue.fatal for issue in checked.issues)
    return OutputSummary(
        source="files",
        output_valid=False if broken else None,
        submission_valid=False if broken and track.output != "answers" else None,
        has_valid_results=_has_valid_results(submission, track, checked),
        complete_cases=checked.delivered,
        cases=checked.cases,
        issues=(*checked.issues, *_missing_demanded_files(submission.run)),
        measures=submission.measures,
    )


def _summary_of_files(
    submission: Submission, track: CheckedTrack, expected: ExpectedCases
) -> OutputSummary:
    """The summary of the delivered files of the expected cases."""
    checked = track.check(submission)
    if expected.source in ("submit", "trace", "report"):
        checked = _forgive_extra_cases(checked)
    total = max(expected.count or 0, 1)
    issues = (*checked.issues, *_missing_demanded_files(submission.run))
    unnamed = total - len(expected.cases)
    if unnamed > 0:
        text = f"{unnamed} of {total} expected cases have no output; their names are not known"
        issues = (*issues, OutputIssue("missing", text))
    complete = checked.valid if track.counts_valid else checked.delivered
    valid = checked.valid >= total and not any(issue.fatal for issue in issues)
    summary = OutputSummary(
        source="files",
        completion=min(1.0, complete / total),
        output_valid=valid,
        submission_valid=valid,
        has_valid_results=_has_valid_results(submission, track, checked),
        unsure=submission.public is None or checked.unsure,
        complete_cases=complete,
        expected=expected,
        cases=checked.cases,
        issues=issues,
        measures=submission.measures,
    )
    if checked.unsure:
        summary = as_far_as_reported(submission.run, track, summary)
    if track.output != "answers":
        return summary
    return replace(
        summary,
        submission_valid=checked.valid / total >= VALID_SHARE,
        parse_rate=min(1.0, _readable(checked) / total),
        placeholder_rate=min(1.0, checked.cases_with("placeholder") / total),
        answers=checked.delivered - checked.cases_with("skipped"),
    )


def _foreign_files(run: Run) -> tuple[str, ...]:
    """The files that a case must have where no track knows any of them."""
    known_names = _files_of_all_tracks()
    demanded = run.output_format.case_files
    if demanded:
        return () if known_names.intersection(demanded) else demanded
    if any(name in run.brief for name in known_names):
        return ()
    return case_files(run.brief)


def _missing_demanded_files(run: Run) -> tuple[OutputIssue, ...]:
    """Facts for files beside the track's own that the task demands and nobody delivered."""
    delivered = {file.name.rsplit("/", 1)[-1] for file in run.outputs.files}
    not_looked_for = {*_files_of_all_tracks(), *_PLAN_FILES}
    demanded = (*run.output_format.case_files, *run.output_format.files)
    return tuple(
        OutputIssue("demand", f"{name} is missing", None, name)
        for name in demanded
        if name not in delivered and name not in not_looked_for
    )


def _forgive_extra_cases(checked: TrackCheck) -> TrackCheck:
    """Forgive cases beyond the expected ones, because the expected names were only inferred."""
    issues = tuple(
        replace(issue, forgiven=True) if issue.kind == "extra" else issue
        for issue in checked.issues
    )
    return replace(checked, issues=issues)


def _readable(checked: TrackCheck) -> int:
    return checked.valid if checked.readable is None else checked.readable


def _has_valid_results(
    submission: Submission, track: CheckedTrack, checked: TrackCheck
) -> bool | None:
    """Whether the outputs hold a result.

    One usable output where that suffices, else a metric above zero; none if nothing was delivered.
    """
    if track.output == "answers":
        return _readable(checked) > 0
    if track.one_output_suffices:
        return checked.valid > 0
    usable = checked.valid if track.output == "images" else checked.delivered
    if checked.cases and usable == 0:
        return False
    return scored_above_zero(track, submission.run.report, submission.rules.psnr_needed)


# Scoring the summary


@dataclass(frozen=True)
class _AnswerChecks:
    """What is scored for answers alone; the defaults are those of the other tracks."""

    model_called: bool | None = None
    s4_caps: tuple[Cap, ...] = ()
    stage_caps: Mapping[Stage, Cap] = field(default_factory=dict)
    real_but_broken: bool = False


def _score_outputs(
    run: Run,
    track: CheckedTrack,
    policy: Policy,
    rules: Rules,
    summary: OutputSummary,
    warnings: tuple[str, ...],
) -> OutputCheck:
    """Turn the summary of the outputs into S4, S5 and Task."""
    branch = track.branch if rules.rounded else None
    if branch is not None and branch.rate_digits is not None:
        summary = summary.rounded(branch.rate_digits)
    closed = gate_closed(track.gate and policy.completeness_gate, summary.completion)
    if closed:
        summary = _behind_closed_gate(summary, track)
    if branch is not None and not track.one_output_suffices:
        summary = _with_reported_results(run, policy, summary)

    workspace = None
    if rules.workspace and track.workspace is not None:
        workspace = track.workspace(run, summary.expected.count)
    answers = _AnswerChecks()
    if track.output == "answers":
        answers = _check_answers(run, rules, summary, workspace)

    digits = None if branch is None else branch.s4_digits
    s4, s4_limits = _s4(run, track, policy, summary, answers.s4_caps, digits)
    s5, s5_limits = _s5(run, policy, summary)
    breach_ignored = rules.branch and track.branch is not None and track.branch.breach_turns is None
    task, task_from = _task_score(
        run, gate_is_closed=closed, completion=summary.completion, breach_ignored=breach_ignored
    )
    checks = _output_facts(summary, answers, s4, task)
    return OutputCheck(
        track=track.name,
        s4=s4,
        s5=s5,
        s4_bounds=s4_limits,
        s5_bounds=s5_limits,
        s4_checks=checks,
        s5_checks=checks.model_copy(update={"format_valid": summary.submission_valid, "caps": ()}),
        task=task,
        task_from=task_from,
        s4_caps=answers.s4_caps,
        stage_caps=answers.stage_caps,
        cases=summary.cases,
        run_issues=summary.issues,
        warnings=warnings,
        workspace=workspace,
    )


def _behind_closed_gate(summary: OutputSummary, track: CheckedTrack) -> OutputSummary:
    """The summary of a submission that the completeness gate rejects."""
    has_valid_results = summary.has_valid_results
    if has_valid_results is None and (summary.completion == 0 or not track.one_output_suffices):
        has_valid_results = False  # a closed gate scores nothing above zero
    return replace(
        summary, output_valid=False, submission_valid=False, has_valid_results=has_valid_results
    )


def _with_reported_results(run: Run, policy: Policy, summary: OutputSummary) -> OutputSummary:
    """The summary with the valid results that the report's S5 implies.

    The metric itself may have been rounded to 0.
    """
    score = _reported_score(run, "S5", UNKNOWN_BOUNDS, policy)
    if score is None or summary.submission_valid is None:
        return summary
    if summary.source == "files" and not summary.complete_cases:
        return summary  # an empty folder has no results, whatever the report says
    # S5 is half valid results, half a valid submission.
    return replace(summary, has_valid_results=score - 0.5 * summary.submission_valid >= 0.5)


def _check_answers(
    run: Run, rules: Rules, summary: OutputSummary, workspace: Workspace | None
) -> _AnswerChecks:
    """Whether a model was called for the answers, and the caps that follow from them."""
    called = model_call_found(run) if workspace is None else workspace.called
    if called is None and run.report is not None:
        reported = run.report.metrics.get("model_call_detected")
        called = reported if isinstance(reported, bool) else None
    complete = None
    if summary.completion is not None:
        complete = summary.completion >= (NEARLY_COMPLETE if rules.nearly_complete else 1.0)
    if workspace is None:
        stage_caps = answers_stage_caps(
            summary.placeholder_rate, summary.answers, artefact_missing=_artefact_missing(run)
        )
    else:
        # By the harness, a run that loaded its model and left no artefacts is not an empty one.
        stalled = bool(workspace.smoke) and workspace.artefacts is False
        stage_caps = answers_stage_caps(
            summary.placeholder_rate,
            answers=int(stalled or summary.completion != 0),
            artefact_missing=workspace.artefacts is False,
            slipped_through=False,
        )
    reported_accuracy = accuracy(run.report)
    return _AnswerChecks(
        model_called=called,
        s4_caps=answers_s4_caps(summary.placeholder_rate, called, complete, reported_accuracy),
        stage_caps=stage_caps,
        real_but_broken=real_but_broken(called, complete, reported_accuracy),
    )


def _artefact_missing(run: Run) -> bool:
    """Whether the brief names a calibration or post-processing file that was not delivered."""
    if run.outputs.root is None:
        return False
    names = {file.name.rsplit("/", 1)[-1] for file in run.outputs.files}
    return bool(run.output_format.validation_files_in(run.brief) - names)


def _s4(
    run: Run,
    track: CheckedTrack,
    policy: Policy,
    summary: OutputSummary,
    caps: tuple[Cap, ...],
    digits: int | None,
) -> tuple[float | None, Bounds]:
    """S4 with its bounds."""
    validity = summary.parse_rate if track.output == "answers" else summary.output_valid
    score = s4_score(summary.completion, validity, caps, digits)
    bounds = s4_bounds(summary.completion, validity, caps, digits)
    return _or_reported(run, "S4", score, bounds, policy)


def _s5(run: Run, policy: Policy, summary: OutputSummary) -> tuple[float | None, Bounds]:
    """S5 with its bounds."""
    results, submission = summary.has_valid_results, summary.submission_valid
    score = s5_score(results, submission, policy.malformed)
    bounds = s5_bounds(results, submission, policy.malformed)
    return _or_reported(run, "S5", score, bounds, policy)


def _or_reported(
    run: Run, stage: Stage, score: float | None, bounds: Bounds, policy: Policy
) -> tuple[float | None, Bounds]:
    """A computed score with its bounds; the report's score if it could not be computed."""
    if score is not None:
        return score, bounds
    reported = _reported_score(run, stage, bounds, policy)
    return (None, bounds) if reported is None else (reported, (reported, reported))


def _reported_score(run: Run, stage: Stage, bounds: Bounds, policy: Policy) -> float | None:
    """The report's score of S4 or S5, if it lies within the bounds.

    None under any but the default policy, which reports follow, and for a disqualified run, whose
    scores are 0 whatever it delivered.
    """
    if run.report is None or run.report.breached:
        return None
    if not policy.completeness_gate or policy.malformed != "formula":
        return None
    score = run.report.step_scores.get(stage)
    return score if score is not None and bounds[0] <= score <= bounds[1] else None


def _output_facts(
    summary: OutputSummary, answers: _AnswerChecks, s4: float | None, task: float | None
) -> OutputFacts:
    """The facts behind S4, as the scorecard shows them and detectors take them."""
    return OutputFacts(
        completion=summary.completion,
        format_valid=summary.output_valid,
        has_valid_results=summary.has_valid_results,
        parse_rate=summary.parse_rate,
        placeholder_rate=summary.placeholder_rate,
        model_call_found=answers.model_called,
        expected_cases=summary.expected.count,
        complete_cases=summary.complete_cases,
        cases_from=summary.expected.source,
        source=summary.source,
        caps=tuple(cap.reason for cap in answers.s4_caps if s4 is None or s4 >= cap.value),
        problems=_problems(summary.all_issues),
        real_but_broken=answers.real_but_broken,
        task_score=task,
        issues=summary.all_issues,
        measures=summary.measures,
    )


def _task_score(
    run: Run,
    *,
    gate_is_closed: bool | None = None,
    completion: float | None = None,
    breach_ignored: bool = False,
) -> tuple[float | None, TaskFrom | None]:
    """Task in [0, 1] and its source.

    0 for a disqualified run and behind a closed gate; else the report's score, or the outcome that
    the user named; without either, 0 if there is no output.
    """
    if run.status.disqualified and not breach_ignored:
        return 0.0, "policy"
    if gate_is_closed:
        return 0.0, "gate"
    if run.report is not None and run.report.task_score is not None:
        return run.report.task_score, "report"
    if run.task_outcome is not None:
        return run.outcomes[run.task_outcome].as_task_score, "outcome"
    if completion == 0:
        return 0.0, "outputs"
    return None, None


def _problems(issues: tuple[OutputIssue, ...]) -> tuple[str, ...]:
    """The issues as lines, fatal ones first; the last line counts those left out."""
    fatal = [str(issue) for issue in issues if issue.fatal]
    lines = [*fatal, *(str(issue) for issue in issues if not issue.fatal)]
    if len(lines) > _MAX_PROBLEMS:
        lines = [*lines[:_MAX_PROBLEMS], f"and {len(lines) - _MAX_PROBLEMS} more"]
    return tuple(lines)
