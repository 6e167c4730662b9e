"""VQA: `<question>/answer.json`, and how many answers are real.

A valid answer names its question, an option (multiple choice) or a non-empty text (open), the raw
model output, the model and a run time of at least 0 seconds, and its text is the option's or empty.
A placeholder has a raw output that says so, or an answer without raw output. If both are empty the
question was skipped honestly: not valid, and not a placeholder. A readable answer has a label or
text and is not a placeholder, whatever its other fields hold: the parse rate of S4 counts these
(AutoMedBench/AutoMedBench, branch eval_vqa, vqa_scorer.py and format_checker.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...error_codes.detectors.answers import is_placeholder
from ...error_codes.output_facts import OutputIssue
from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.reading.json_bytes import number
from ...trajectories.reading.layout import Fence
from ..scoring.scoring_rules import Rules
from ..scoring.workspace import workspace_of
from .case_checks import TrackCheck
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import Refused, read_json, read_text
from .vqa_answers import answers_by_file

NAME = "answer.json"
_OPTION_LETTER = re.compile(r"\b[A-E]\b")
_LABEL, _TEXT, _RAW = "predicted_label", "predicted_answer", "raw_model_output"
_TIME = "runtime_s"
_UNSTORABLE_TIME = re.compile(r'"runtime_s"\s{0,99}:\s{0,99}(?:NaN|Infinity|\d)')
"""A run time that was written as a number and is null once read."""
_TEXT_FIELDS = (_LABEL, _TEXT, _RAW)


def check(submission: Submission) -> TrackCheck:
    """Check the answer to every question."""
    report = submission.run.report
    # The harness's rules may refuse what was read once for all rooms.
    reads_anew = submission.rules.no_byte_order_mark or submission.rules.links
    answers = _Answers(
        mode=None if report is None else report.metrics.get("answer_mode"),
        contents=None if reads_anew else answers_by_file(submission.run),
    )
    checked = submission.per_case((NAME,), answers.inspect)
    issues = checked.issues + identical(answers.answers, "answer")
    return TrackCheck(checked.cases, issues, readable=len(answers.readable))


@dataclass
class _Answers:
    """The answers of a submission as they are inspected, question by question."""

    mode: Any
    """The report's answer mode: `multiple_choice`, `open_ended` or unknown."""
    contents: Mapping[Path, Any] | None
    """Contents of the files; None to read each when it is inspected."""
    answers: dict[str, str] = field(default_factory=dict)
    """Case -> its label or text, to compare cases."""
    readable: set[str] = field(default_factory=set)

    def inspect(self, submission: Submission, case: str, path: Path) -> list[OutputIssue]:
        """The issues about one answer."""
        value = self._read(submission, path)
        if not isinstance(value, dict):
            return [OutputIssue("schema", f"{NAME} is no object", case, NAME)]
        if not any(key in value for key in _TEXT_FIELDS):
            text = f"{NAME} has none of the fields {', '.join(_TEXT_FIELDS)}"
            return [OutputIssue("schema", text, case, NAME)]
        label, text, raw = (_stripped(value.get(key)) for key in _TEXT_FIELDS)
        wrong_type = [
            key
            for key in _TEXT_FIELDS
            if value.get(key) is not None and not isinstance(value[key], str)
        ]
        if not (label or text or raw or wrong_type):
            return [
                OutputIssue(
                    "skipped", "left unanswered: answer and raw output are empty", case, NAME
                )
            ]
        self.answers[case] = label or text

        rules = submission.rules
        question = None if submission.public is None else submission.public.question(case)
        expected = self._expected_form(question, label)
        issues = []
        if is_placeholder(raw, bool(text or (label and not rules.bare_labels))):
            preview = raw.strip()[:40] or "empty raw output"
            issues.append(OutputIssue("placeholder", f"placeholder answer: {preview}", case, NAME))
        elif _is_readable(value, expected):
            self.readable.add(case)
        not_looked_at = {_RAW}  # reported with the other fields
        if rules.loose_answers and not expected.by_label:
            not_looked_at.add(_LABEL)
        for key in wrong_type:
            if key not in not_looked_at:
                issues.append(OutputIssue("schema", f"{NAME}: {key} is no text", case, NAME))
        for problem in _field_problems(value, case, question, rules):
            issues.append(OutputIssue("schema", f"{NAME} {problem}", case, NAME))
        problem = _answer_problem(label, value.get(_TEXT), expected, rules.five_labels)
        if problem:
            issues.append(OutputIssue("values", problem, case, NAME))
        return issues

    def _read(self, submission: Submission, path: Path) -> Any:
        """The content of a file; Refused if it cannot be read."""
        if self.contents is None:
            value = read_json(path, submission.root, allow_bom=False)
            if submission.rules.loose_answers:
                return _with_unstorable_time(value, path, submission.root)
            return value
        content = self.contents[path]
        if isinstance(content, Refused):
            raise content
        return content

    def _expected_form(self, question: dict[str, Any] | None, label: str) -> _ExpectedForm:
        """The form of a question's answer.

        By the report's mode, else by the question, else by whether the answer has a label.
        """
        options = options_of(question)
        by_label = bool(label) if question is None else options is not None
        if self.mode in ("multiple_choice", "open_ended"):
            by_label = self.mode == "multiple_choice"
        return _ExpectedForm(by_label, options)


def _with_unstorable_time(value: Any, path: Path, root: Fence) -> Any:
    """The answer with infinity for a run time that no JSON of ours holds: NaN, say."""
    if not isinstance(value, dict) or value.get(_TIME, 0) is not None:
        return value
    is_number = _UNSTORABLE_TIME.search(read_text(path, root)) is not None
    return {**value, _TIME: math.inf} if is_number else value


class _ExpectedForm(NamedTuple):
    """Whether an answer must be a label or a text, and the question's options if known."""

    by_label: bool
    options: dict[str, str] | None


def _is_readable(value: Mapping[str, Any], expected: _ExpectedForm) -> bool:
    """Whether a label or text can be read from an answer."""
    if not expected.by_label:
        return bool(str(value.get(_TEXT) or "").strip())
    label = str(value.get(_LABEL) or "").strip().upper()
    return label in (expected.options or ()) or _OPTION_LETTER.search(label) is not None


def options_of(question: dict[str, Any] | None) -> dict[str, str] | None:
    """Upper-case label -> text of a question's options; None for an open or unknown question."""
    options = None if question is None else question.get("options")
    if isinstance(options, dict) and options:
        return {str(label).strip().upper(): str(text).strip() for label, text in options.items()}
    if isinstance(options, list) and options:
        return {chr(ord("A") + index): str(text).strip() for index, text in enumerate(options[:26])}
    return None


def _stripped(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _field_problems(
    value: dict[str, Any], case: str, question: dict[str, Any] | None, rules: Rules
) -> list[str]:
    """What is wrong with the fields beside the answer itself."""
    problems = []
    if rules.five_labels and _LABEL not in value:
        problems.append(f"lacks {_LABEL}")
    ids = {case}
    if question is not None and "question_id" in question:
        ids.add(str(question["question_id"]))
    if str(value.get("question_id", "")) not in ids:
        problems.append(f"has the question_id {str(value.get('question_id'))[:40]}")
    if not isinstance(value.get(_RAW), str):
        problems.append(f"has no text {_RAW}")
    model = value.get("model_name")
    if not (model if rules.loose_answers and isinstance(model, str) else _stripped(model)):
        problems.append("has no model_name")
    runtime = value.get(_TIME)
    if rules.true_is_one and isinstance(runtime, bool):
        runtime = int(runtime)
    seconds = None if isinstance(runtime, str) else number(runtime)
    if runtime == math.inf and rules.loose_answers:
        seconds = math.inf
    if seconds is None or seconds < 0:
        problems.append(f"has the runtime_s {str(runtime)[:20]}, not a number of at least 0")
    return problems


def _answer_problem(label: str, answer: Any, expected: _ExpectedForm, five_labels: bool) -> str:
    """What is wrong with a label and its text; "" if nothing is.

    `five_labels`: A to E are valid whatever the options, and open answers need no label.
    """
    by_label = expected.by_label
    options = expected.options if by_label else None
    if five_labels and not by_label:
        return "" if _stripped(answer) else f"no {_TEXT}"
    if not label and by_label:
        return f"no {_LABEL}"
    if not label and not _stripped(answer):
        return f"neither {_LABEL} nor {_TEXT}"
    allowed = tuple("ABCDE" if options is None or five_labels else options)
    if label and label.upper() not in allowed:
        return f"{_LABEL} {label[:20]} is none of the options {', '.join(allowed)[:60]}"
    if by_label and answer is None:
        return f"no {_TEXT}"
    if options is not None and answer and answer != options.get(label.upper(), answer):
        return f"{_TEXT} {str(answer)[:40]} is not the text of option {label}"
    return ""


TRACK = CheckedTrack(
    "vqa",
    check=check,
    output="answers",
    files=(NAME,),
    rubrics=("vqa",),
    words=("vqa", "slake", "vqa-rad", "pathvqa", "medxpert", "medframe"),
    keys=("length_finish_count", "artifacts_dir"),
    branch=HarnessBranch(
        missing="renormalize", breach_turns=None, judged_digits=4, rate_digits=4, s4_digits=4
    ),
    workspace=workspace_of,
    metrics=("accuracy",),
    near_zero=0.2,
    bands=score_bands(0.40, 0.25),  # eval_vqa, medal_tier.py
    parts={
        "breakdown.question_type": "question type",
        "breakdown.body_system": "body system",
        "breakdown.medical_task": "medical task",
    },
    items=PLAN_ITEMS,
)
