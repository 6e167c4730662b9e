"""Answers without a model behind them (E1), and answer-level codes (taxonomy `answers`).

An answer file has at most one code. Answers and questions are the mappings read from their files;
nothing is opened here. The first rule that applies decides the code, so that faults of form come
before faults of content. What a raw output means (no picture seen, the other side) is for a judge.
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
"""Texts that exceptions, runtimes and providers print in place of an answer."""
_NO_MODEL = re.compile(r"none|n/?a|unknown|heuristic|baseline|rule[- ]based|dummy|", re.IGNORECASE)


class AnswerCode(Frozen):
    """The code of one answer. `question` is the question's id, `why` one sentence."""

    question: str
    code: str
    why: str


def answer_codes(
    answers: Sequence[Mapping[str, Any]], questions: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[AnswerCode, ...]:
    """Codes of all answers in order, then CMP001 for unanswered questions and SCT001 for the set.

    `questions`: question id -> its file (`options`: label -> text); without it the rules about
    options are skipped.
    """
    questions = questions or {}
    codes: list[AnswerCode] = []
    for answer in answers:
        question = str(answer.get("question_id") or "?")
        code = _code(answer, questions.get(question))
        if code is not None:
            codes.append(AnswerCode(question=question, code=code[0], why=code[1]))
    answered = {str(answer.get("question_id")) for answer in answers}
    why = "There is no answer for this question."
    codes += (
        AnswerCode(question=question, code="CMP001", why=why)
        for question in questions
        if question not in answered
    )
    labels = {str(a.get("predicted_label")) for a in answers if a.get("predicted_label")}
    raw = {str(a.get("raw_model_output") or "") for a in answers}
    if len(answers) >= 5 and len(labels) == 1 and (len(raw) > 1 or raw == {""}):
        why = (
            f"All {len(answers)} answers carry the label {labels.pop()} although the outputs behind"
            " them differ or are empty."
        )
        codes.append(AnswerCode(question="*", code="SCT001", why=why))
    return tuple(codes)


def is_placeholder(raw: str, answered: bool) -> bool:
    """Whether a raw output is a stand-in for an answer, or empty beside one (branch eval_vqa)."""
    text = raw.strip()
    return bool(_STAND_IN.match(text)) or (answered and not text)


def _code(answer: Mapping[str, Any], question: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The code of an answer and its sentence; None for a sound answer."""
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
    answered = bool(label) or bool(text)
    if not raw.strip() and not answered:
        return "CMP001", "Answer and raw output are both empty."
    if is_placeholder(raw, answered):
        return "PLC001", "The answer is a placeholder: its raw output is empty or a stand-in."
    for pattern, code, why in _ERRORS:
        if pattern.search(raw[:4_000]):
            return code, why
    options = question.get("options") if question is not None else None
    if isinstance(options, Mapping) and options:
        texts = {str(key): str(value) for key, value in options.items()}
        contradiction = _option_code(str(label or ""), str(text or ""), raw, texts)
        if contradiction is not None:
            return contradiction
    if _NO_MODEL.fullmatch(str(answer["model_name"] or "").strip()):
        return "AUX001", "The field that names the model names none."
    return None


def _option_code(
    label: str, text: str, raw: str, options: dict[str, str]
) -> tuple[str, str] | None:
    """The code of an answer that contradicts the options; None if it does not."""
    if label and label not in options:
        return "HAL001", f"The label {label[:20]} is none of the options."
    if label and text and _plain(text) != _plain(options[label]):
        if _plain(text) in map(_plain, options.values()):
            return "LOG001", "The answer text is another option's than the label's."
        return "HAL001", "The answer text is none of the options."
    for key, value in options.items():
        if label and key != label and _plain(raw) in (_plain(key), _plain(value)):
            return "LOG002", "The raw output is one option and the label another one."
    return None


def _plain(text: str) -> str:
    return " ".join(text.lower().strip(" .").split())


_MODEL_ACCESS = frozenset({"model", "network", "package", "memory", "device", "disk"})
TRIED_HARD = 2
"""Failed attempts at a model from which a run without one counts as kept from it."""


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
        why = "Answers were delivered although no model was ever called."
        yield Finding((ctx.final_write,), why, 0.8)


def _kept_from_model(ctx: CodeContext) -> bool:
    """Whether a model was out of reach, or `TRIED_HARD` turns failed before the last write."""
    if out_of_reach(ctx) is not None:
        return True
    turns = {
        failure.turn
        for failure in ctx.failures
        if failure.environment
        and failure.family in _MODEL_ACCESS
        and failure.confidence >= 0.7
        and (ctx.final_write is None or failure.turn <= ctx.final_write)
    }
    return len(turns) >= TRIED_HARD
