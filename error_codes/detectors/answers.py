"""Answers without a model behind them (E1), and the answer-level codes (taxonomy `answers`), one or
none an answer file.

Answers and questions come in as the mappings read from their files; nothing is opened here. The
first rule that applies names the answer's code, so that what is wrong with the form comes before
what is wrong with the content. What a raw output means (no picture seen, the other side) is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...trajectories.models import Frozen
from ..context import CodeContext
from ..registry import Finding, detector
from .out_of_reach import out_of_reach

REQUIRED = ("question_id", "raw_model_output", "model_name", "runtime_s")
_STAND_IN = re.compile(
    r"(?:heuristic|fallback|placeholder|mock|dummy|stub):|(?:unknown|n/?a|none|null)\Z",
    re.IGNORECASE,
)
_ERRORS = (
    (
        re.compile(r"\btimed out\b|\bTimeout(?:Error|Expired)?\b"),
        "RES001",
        "The raw output reports a timeout.",
    ),
    (
        re.compile(r"\bout of memory\b|\bOutOfMemoryError\b"),
        "RES002",
        "The raw output reports that memory ran out.",
    ),
    (
        re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b|\bTraceback\b|\bHTTP \d{3}\b"),
        "PRV001",
        "The raw output is an error message.",
    ),
)
"""What exceptions, runtimes and providers print where an answer should be."""
_NO_MODEL = re.compile(r"none|n/?a|unknown|heuristic|baseline|rule[- ]based|dummy|", re.IGNORECASE)


class AnswerCode(Frozen):
    """The code of one answer. `question` is the question's id; `why` is one sentence."""

    question: str
    code: str
    why: str


def answer_codes(
    answers: Sequence[Mapping[str, Any]], questions: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[AnswerCode, ...]:
    """Codes of all answers, in order; then CMP001 for questions without any, and SCT001 for the
    whole set.

    `questions`: question id -> its file (`options` label -> text); without it the rules on options
    stay silent.
    """
    questions = questions or {}
    found: list[AnswerCode] = []
    for answer in answers:
        question = str(answer.get("question_id") or "?")
        code = _code(answer, questions.get(question))
        if code is not None:
            found.append(AnswerCode(question=question, code=code[0], why=code[1]))
    answered = {str(a.get("question_id")) for a in answers}
    for question in questions:
        if question not in answered:
            found.append(
                AnswerCode(
                    question=question, code="CMP001", why="There is no answer for this question."
                )
            )
    labels = {str(a.get("predicted_label")) for a in answers if a.get("predicted_label")}
    raw = {str(a.get("raw_model_output") or "") for a in answers}
    if len(answers) >= 5 and len(labels) == 1 and (len(raw) > 1 or raw == {""}):
        why = (
            f"All {len(answers)} answers carry the label {labels.pop()} although the outputs behind"
            " them differ or are empty."
        )
        found.append(AnswerCode(question="*", code="SCT001", why=why))
    return tuple(found)


def is_placeholder(raw: str, answered: bool) -> bool:
    """Whether a raw model output is none: a stand-in, or nothing behind an answer (benchmark.md
    section 4)."""
    text = raw.strip()
    return bool(_STAND_IN.match(text)) or (answered and not text)


def _code(answer: Mapping[str, Any], question: Mapping[str, Any] | None) -> tuple[str, str] | None:
    lacking = [name for name in REQUIRED if name not in answer]
    if lacking:
        return "FMT001", f"The answer lacks {', '.join(lacking)}."
    runtime = answer["runtime_s"]
    if isinstance(runtime, bool) or not isinstance(runtime, (int, float)) or runtime < 0:
        return "FMT002", "The runtime is no number from 0 on."
    raw = answer["raw_model_output"]
    if raw is not None and not isinstance(raw, str):
        return "FMT002", "The raw output is no text."
    raw = raw or ""
    label, text = answer.get("predicted_label"), answer.get("predicted_answer")
    given = bool(label) or bool(text)
    if not raw.strip() and not given:
        return "CMP001", "Answer and raw output are both empty."
    if is_placeholder(raw, given):
        return "PLC001", "The answer is a placeholder: its raw output is empty or a stand-in."
    for pattern, code, why in _ERRORS:
        if pattern.search(raw[:4_000]):
            return code, why
    options = question.get("options") if question is not None else None
    if isinstance(options, Mapping) and options:
        clash = _against_options(
            str(label or ""), str(text or ""), raw, {str(k): str(v) for k, v in options.items()}
        )
        if clash is not None:
            return clash
    if _NO_MODEL.fullmatch(str(answer["model_name"] or "").strip()):
        return "AUX001", "The field that names the model names none."
    return None


def _against_options(
    label: str, text: str, raw: str, options: dict[str, str]
) -> tuple[str, str] | None:
    if label and label not in options:
        return "HAL001", f"The label {label[:20]} is none of the options."
    if label and text and _plain(text) != _plain(options[label]):
        if _plain(text) in map(_plain, options.values()):
            return "LOG001", "The answer text is another option's than the label's."
        return "HAL001", "The answer text is none of the options."
    if label and any(
        _plain(raw) in (_plain(key), _plain(value))
        for key, value in options.items()
        if key != label
    ):
        return "LOG002", "The raw output is one option and the label another one."
    return None


def _plain(text: str) -> str:
    return " ".join(text.lower().strip(" .").split())


_MODEL_ACCESS = frozenset({"model", "network", "package", "memory", "device", "disk"})
TRIED_HARD = 2
"""Turns that failed on access to a model from which a run without one counts as kept from it."""


@detector("no_model_behind_answers", code="E1", stage="S4", independence="from_trace")
def no_model_behind_answers(ctx: CodeContext) -> Iterable[Finding]:
    """Answers were delivered and no executed code ever loaded and called a model.

    A run that tried for a model and was kept from it has another fault (E2, and E3 for what it
    handed in): its approach was right.
    """
    if ctx.output != "answers" or ctx.facts is None or ctx.facts.model_call_found is not False:
        return
    if _kept_from_model(ctx):
        return
    if ctx.facts.completion and ctx.final_write:
        yield Finding(
            (ctx.final_write,), "Answers were delivered although no model was ever called.", 0.8
        )


def _kept_from_model(ctx: CodeContext) -> bool:
    """Whether a model could not be had: another method served, or `TRIED_HARD` turns failed before
    the outputs were written."""
    if out_of_reach(ctx) is not None:
        return True
    kept = {
        f.turn
        for f in ctx.failures
        if f.environment and f.family in _MODEL_ACCESS and f.confidence >= 0.7
    }
    return len([t for t in kept if ctx.final_write is None or t <= ctx.final_write]) >= TRIED_HARD
