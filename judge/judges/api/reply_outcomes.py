"""Turn completions and failed calls into verdicts: reasons, merged repairs, notes on quotes."""

from __future__ import annotations

from typing import NamedTuple

from ...card.stage_results import CriterionResult, UnscoredReason
from ...questions.replies import ParsedReply
from .answers import Completion
from .transport import CallFailed

_REFUSAL_FINISHES = (
    "content_filter",
    "content-filter",
    "content_filtered",
    "refusal",
    "safety",
    "recitation",
    "prohibited_content",
    "blocklist",
    "spii",
    "guardrail_intervened",
)
"""Finish reasons of a refusal, by providers."""


class Failure(NamedTuple):
    """Why a call brought no verdict on some criteria."""

    reason: UnscoredReason
    detail: str = ""


class NoCompletion(Exception):
    """A call that brought no completion: all criteria are unscored because of `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


def failure_of_call(failed: CallFailed) -> Failure:
    """A failed call as a reason to be unscored."""
    reason: UnscoredReason = "refused" if failed.kind == "policy" else "judge_error"
    return Failure(reason, failed.message)


def failure_of_completion(completion: Completion, limit: int) -> Failure | None:
    """The failure of a completion that was refused or cut; None if it ended normally.

    `limit`: the most output tokens that it could have.

    To be asked before the text is parsed, as a cut or refused reply may still contain JSON.
    """
    if completion.refusal is not None or completion.finish in _REFUSAL_FINISHES:
        detail = completion.refusal or f"finish reason {completion.finish}"
        return Failure("refused", detail[:200])
    if completion.is_cut:
        return Failure(
            "truncated",
            f"the reply was cut at its limit of {limit:,} tokens; raise max_tokens in ambjudge.toml"
            " or AMBJUDGE_MAX_TOKENS",
        )
    return None


def merge_repair(first: ParsedReply, repair: ParsedReply) -> ParsedReply:
    """Keep what was usable in the first reply; the repair only fills in what was missing."""
    entries = {**repair.entries, **first.entries}
    problems = {id: problem for id, problem in repair.problems.items() if id not in entries}
    return ParsedReply(entries, problems, repair.ignored)


def add_repair_failure(result: CriterionResult, failure: Failure) -> CriterionResult:
    """Say in an unparsable criterion's detail that its repair was cut, refused or failed."""
    if result.reason != "unparsable" or failure.reason == "unparsable":
        return result
    detail = f"{result.detail}; repair: {failure.detail}"[:300]
    return result.model_copy(update={"detail": detail})


def add_detail(result: CriterionResult, text: str) -> CriterionResult:
    """The result with `text` at the end of its detail."""
    detail = f"{result.detail}; {text}" if result.detail else text
    return result.model_copy(update={"detail": detail})


def quote_warnings(results: tuple[CriterionResult, ...]) -> list[str]:
    """A warning that counts the judge's quotes by their check; none if all were verified."""
    checks = [evidence.check for result in results for evidence in result.evidence]
    verified, moved = checks.count("verified"), checks.count("moved")
    if verified == len(checks):
        return []
    return [
        f"{verified} of {len(checks)} quotes verified, {moved} moved,"
        f" {checks.count('not_found')} not found"
    ]
