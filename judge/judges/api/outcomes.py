"""From what came back, or did not, to verdicts: reasons, repairs merged, notes on quotes."""

from __future__ import annotations

from ...base import Usage
from ...card.stage_results import CriterionResult, UnscoredReason
from ...questions.replies import Parsed
from .transport import CallFailed, Completion

_REFUSED = ("content_filter", "refusal", "safety")


class Stopped(Exception):
    """No answer came; the criteria are unscored for this reason."""

    def __init__(self, reason: UnscoredReason, message: str, calls: int = 0) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message
        self.usage = Usage(calls=calls)  # failed requests are calls, but bring no tokens to bill


def reason_of(failed: CallFailed) -> UnscoredReason:
    return "refused" if failed.kind == "policy" else "judge_error"


def ended_badly(answer: Completion) -> tuple[UnscoredReason, str] | None:
    """Looked at before the text: a reply that was cut or refused may still hold something that
    parses."""
    if answer.refusal is not None or answer.finish in _REFUSED:
        return "refused", (answer.refusal or f"finish reason {answer.finish}")[:200]
    if answer.finish == "length":
        return "truncated", "the reply reached its token limit; raise max_tokens"
    return None


def merge(first: Parsed, second: Parsed) -> Parsed:
    """What was usable at first stays; the repair fills in only what was missing."""
    stated = {**second.stated, **first.stated}
    problems = {name: what for name, what in second.problems.items() if name not in stated}
    return Parsed(stated, problems, second.ignored)


def with_reason(result: CriterionResult, lost: tuple[UnscoredReason, str]) -> CriterionResult:
    """An unparsable criterion whose repair was cut, refused or failed says so."""
    if result.reason != "unparsable" or lost[0] == "unparsable":
        return result
    return result.model_copy(update={"detail": f"{result.detail}; repair: {lost[1]}"[:300]})


def with_detail(result: CriterionResult, words: str) -> CriterionResult:
    return result.model_copy(update={"detail": "; ".join(filter(None, (result.detail, words)))})


def citations(results: tuple[CriterionResult, ...]) -> list[str]:
    """How many of the judge's quotes stand where it says, when not all do."""
    checks = [e.check for r in results for e in r.evidence]
    good = checks.count("verified")
    if good == len(checks):
        return []
    return [
        f"{good} of {len(checks)} quotes verified, {checks.count('moved')} moved,"
        f" {checks.count('not_found')} not found"
    ]
