"""VQA: `<question>/answer.json`, and how many answers are real (benchmark.md section 4).

A valid answer names its question, an option (multiple choice) or a non-empty text (open), the raw
model output, the model and a run time of at least 0 seconds, and its text is the option's or empty.
A placeholder has a raw output that says so, or an answer without raw output. Both empty is an
honest skip: not valid, and no placeholder. A readable answer has a label or text and is no
placeholder, whatever its other fields hold: the parse rate of S4 counts these
(AutoMedBench/AutoMedBench, branch eval_vqa, vqa_scorer.py and format_checker.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...error_codes.detectors.answers import is_placeholder
from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.reading.json_bytes import number
from ..card.scoring_rules import Rules
from .case_checks import Fact, TrackCheck
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import Refused, read_json
from .vqa_answers import answers_by_file
from .workspace import workspace_of

NAME = "answer.json"
_LETTER = re.compile(r"\b[A-E]\b")
_TEXTS = ("predicted_label", "predicted_answer", "raw_model_output")


def check(submission: Submission) -> TrackCheck:
    """Every question's answer."""
    answers: dict[str, str] = {}
    readable: set[str] = set()
    report = submission.run.report
    mode = report.metrics.get("answer_mode") if report is not None else None
    otherwise = submission.rules.no_byte_order_mark or submission.rules.links
    known = None if otherwise else answers_by_file(submission.run)

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        rules = work.rules
        value = read_json(path, work.root, allow_bom=False) if known is None else known[path]
        if isinstance(value, Refused):
            raise value
        if not isinstance(value, dict):
            return [Fact("schema", f"{NAME} is no object", case, NAME)]
        question = work.public.question(case) if work.public is not None else None
        label, text, raw = (_text(value.get(key)) for key in _TEXTS)
        if not any(key in value for key in _TEXTS):
            return [
                Fact("schema", f"{NAME} has none of the fields {', '.join(_TEXTS)}", case, NAME)
            ]
        wrong_type = [
            key for key in _TEXTS if value.get(key) is not None and not isinstance(value[key], str)
        ]
        if not (label or text or raw or wrong_type):
            return [Fact("skipped", "left unanswered: answer and raw output are empty", case, NAME)]
        answers[case] = label or text
        facts = []
        if is_placeholder(raw, bool(text or (label and not rules.bare_labels))):
            shown = raw.strip()[:40] or "empty raw output"
            facts.append(Fact("placeholder", f"placeholder answer: {shown}", case, NAME))
        options = options_of(question)
        by_label = bool(label) if question is None else options is not None
        if mode in ("multiple_choice", "open_ended"):
            by_label = mode == "multiple_choice"
        said = str(value.get(_TEXTS[0 if by_label else 1]) or "").strip().upper()
        if not facts and (said in (options or ()) or _LETTER.search(said) if by_label else said):
            readable.add(case)
        facts += [
            Fact("schema", f"{NAME}: {key} is no text", case, NAME)
            for key in wrong_type
            if key in _TEXTS[:2]
        ]
        facts += [
            Fact("schema", f"{NAME} {problem}", case, NAME)
            for problem in _fields(value, case, question, rules)
        ]
        problems = _answer(
            label,
            value.get("predicted_answer"),
            by_label,
            options if by_label else None,
            rules.five_labels,
        )
        facts += [Fact("values", problem, case, NAME) for problem in problems]
        return facts

    found = submission.per_case((NAME,), inspect)
    return TrackCheck(
        found.cases, found.facts + identical(answers, "answer"), readable=len(readable)
    )


def options_of(question: dict[str, Any] | None) -> dict[str, str] | None:
    """Label, a capital -> text of a multiple-choice question; None for an open or unknown one."""
    options = question.get("options") if question is not None else None
    if isinstance(options, dict) and options:
        return {str(key).strip().upper(): str(text).strip() for key, text in options.items()}
    if isinstance(options, list) and options:
        return {chr(ord("A") + index): str(text).strip() for index, text in enumerate(options[:26])}
    return None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _fields(
    value: dict[str, Any], case: str, question: dict[str, Any] | None, rules: Rules
) -> list[str]:
    wrong = [
        f"lacks {key}" for key in ("predicted_label",) if rules.five_labels and key not in value
    ]
    names = (
        {case, str(question["question_id"])}
        if question is not None and "question_id" in question
        else {case}
    )
    if str(value.get("question_id", "")) not in names:
        wrong.append(f"has the question_id {str(value.get('question_id'))[:40]}")
    if not isinstance(value.get("raw_model_output"), str):
        wrong.append("has no text raw_model_output")
    if not _text(value.get("model_name")):
        wrong.append("has no model_name")
    runtime = value.get("runtime_s")
    runtime = int(runtime) if rules.true_is_one and isinstance(runtime, bool) else runtime
    seconds = None if isinstance(runtime, str) else number(runtime)
    if seconds is None or seconds < 0:
        wrong.append(f"has the runtime_s {str(runtime)[:20]}, not a number of at least 0")
    return wrong


def _answer(
    label: str, answer: Any, by_label: bool, options: dict[str, str] | None, five_labels: bool
) -> list[str]:
    if five_labels and not by_label:
        return [] if _text(answer) else ["no predicted_answer"]
    if not label and (by_label or not _text(answer)):
        return [
            "no predicted_label" if by_label else "neither predicted_label nor predicted_answer"
        ]
    known = tuple("ABCDE" if options is None or five_labels else options)
    if label and label.upper() not in known:
        return [f"predicted_label {label[:20]} is none of the options {', '.join(known)[:60]}"]
    if by_label and answer is None:
        return ["no predicted_answer"]
    if options is not None and answer and answer != options.get(label.upper(), answer):
        return [f"predicted_answer {str(answer)[:40]} is not the text of option {label}"]
    return []


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
        f"breakdown.{name}": name.replace("_", " ")
        for name in ("question_type", "body_system", "medical_task")
    },
    items={name: item for name, item in PLAN_ITEMS.items() if name != "picture"},
)
