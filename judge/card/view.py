"""What is shown of a scorecard, whatever draws it: sections with items and lines of typed parts.

The terminal, the browser, the pages of a site and a notebook all draw `scorecard_view(card)`.
`view_parts.py` says how values are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ...error_codes.models import Contradiction, EpisodeInfo, FiredCode
from ...error_codes.output_facts import StageChecks
from ...rounding import fixed
from ...trajectories.record.facts import FactInfo
from ...trajectories.record.quotes import Evidence
from ...trajectories.stages import stage_title
from .fields import PlanItem, ScoreCardFields
from .read_share import Standing, format_total
from .stage_results import CriterionResult
from .view_parts import (
    MARK_MEANINGS,
    UNKNOWN,
    Bounds,
    Item,
    Line,
    Mark,
    Name,
    Part,
    Quote,
    Section,
    Target,
    Text,
    Turns,
    Value,
    outcome_text,
    score_text,
    value_text,
)

if TYPE_CHECKING:
    from ...rubrics.model import Criterion, Rubric


def scorecard_view(card: ScoreCardFields, rubric: Rubric | None = None) -> list[Section]:
    """All that is shown of a scorecard, in reading order; sections without content are left out.

    `rubric` adds what its criteria ask; without it only titles that the card brings are shown.
    """
    criteria = {item.id: item for item in rubric.criteria()} if rubric else {}
    sections = [_run(card), _totals(card)]
    sections += [_stage(card, name, criteria) for name in card.stages if _applies(card, name)]
    sections.append(_codes(card))
    optional = (
        _bare_facts(card),
        Section(
            "unproven",
            "Readings without proof",
            (Text(" (did not fire)", "dim"),),
            items=tuple(code_item(code, n, proven=False) for n, code in enumerate(card.unproven)),
        ),
        Section(
            "plan",
            "What the plan promised",
            items=tuple(plan_item(promise, n) for n, promise in enumerate(card.plan)),
        ),
        Section(
            "contradictions",
            "Contradicted by facts",
            items=tuple(_contradiction(c, n) for n, c in enumerate(card.contradictions)),
        ),
        Section(
            "episodes",
            "Failed steps",
            items=tuple(episode_item(episode, n) for n, episode in enumerate(card.episodes)),
        ),
        _cited_facts(card),
        Section("files", "Problems of the delivered files", lines=_file_problems(card)),
        Section("warnings", "Warnings", lines=tuple(Line((Text(w),)) for w in card.warnings)),
    )
    return sections + [section for section in optional if section.items or section.lines]


# The run and its totals.

_ENDINGS = {
    "submitted": "submitted",
    "stopped": "stopped without submitting",
    "breach": "ended by a breach",
    "cut": "cut off",
    "running": "still running",
}
RUNNING = "the run still goes on: what needs its end is withheld"
STAGES_BY = {"judge": "stages by the judge", "mixed": "stages by rules and judge"}
"""Who labelled the turns, where it was not the rules alone."""


def ending(ended: str, track: str | None, imported: str | None) -> str:
    """How a run ended, in words.

    Runs without a track, and runs of other harnesses, have nothing to submit with.
    """
    cannot_submit = track is None or imported is not None
    if ended == "stopped" and cannot_submit:
        return "stopped by itself"
    return _ENDINGS[ended]


def _applies(card: ScoreCardFields, name: str) -> bool:
    """Whether a stage says anything: a run without a track has no outputs that can be checked."""
    stage = card.stages[name]
    is_empty = stage.score is None and not stage.criteria
    return card.run.track is not None or not is_empty


def _run(card: ScoreCardFields) -> Section:
    run = card.run
    agent = run.agent or "unknown agent"
    if run.model and run.model != run.agent:
        agent += f" ({run.model})"
    facts = [run.task or "unknown task"]
    if run.track is not None or run.tier is not None:
        facts += [run.track or "unknown track", run.tier or "unknown tier"]
    facts.append(agent)
    if run.repeat is not None:
        facts.append(f"repeat {run.repeat}")
    facts.append(f"{run.turns} turn{'' if run.turns == 1 else 's'}")
    if card.episodes:
        count = len(card.episodes)
        facts.append(f"{count} failed step{'' if count == 1 else 's'}")
    if card.resources.cost_usd is not None:
        facts.append(f"${fixed(card.resources.cost_usd, 2)}")
    facts.append(ending(card.status.ended, run.track, card.imported))
    about_run: tuple[Part, ...] = (Text(" · ".join(facts)),)
    if card.status.disqualified:
        about_run += (Text(", DISQUALIFIED", "bad"),)
    lines = [Line(about_run), Line((Text(" · ".join(_policy_words(card)), "dim"),))]
    if card.judge.calls:
        usage = " · ".join(usage_parts(card.judge, "${:.4f}", always_tokens=True))
        lines.append(Line((Text(usage, "dim"),)))
    return Section("run", run.id, lines=tuple(lines))


def _policy_words(card: ScoreCardFields) -> Iterator[str]:
    """Rubric, judge, and the choices that the numbers depend on."""
    policy = card.policy
    yield f"rubric {card.rubric.id} {card.rubric.version}"
    yield f"judge {card.judge.name}"
    if card.stages_from in STAGES_BY:
        yield STAGES_BY[card.stages_from]
    if policy.like != "paper":
        yield f"like: {policy.like}"
    yield f"missing: {policy.missing}"
    if policy.strict_evidence:
        yield "strict evidence"
    if card.status.disqualified:
        yield f"breach: {policy.breach}"


class Usage(Protocol):
    """What judging used, as scorecards and judges count it."""

    @property
    def calls(self) -> int: ...
    @property
    def input_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def cache_write_tokens(self) -> int | None: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def estimated_calls(self) -> int: ...


def usage_parts(
    usage: Usage, price_format: str = "${:.2f}", always_tokens: bool = False
) -> list[str]:
    """Calls, input tokens and cost of judging, each in a few words.

    Tokens are named where a provider's cache served some of them, or with `always_tokens`; so are
    calls that the provider did not count and whose cost is estimated.
    """
    parts = [f"{usage.calls} call{'' if usage.calls == 1 else 's'}"]
    cached = []
    if usage.cached_tokens:
        cached.append(f"{_short_count(usage.cached_tokens)} from cache")
    if usage.cache_write_tokens:
        cached.append(f"{_short_count(usage.cache_write_tokens)} into cache")
    if usage.input_tokens is not None and (cached or always_tokens):
        of_these = f" ({', '.join(cached)})" if cached else ""
        parts.append(f"{_short_count(usage.input_tokens)} tokens in{of_these}")
    cost = "cost unknown" if usage.cost_usd is None else price_format.format(usage.cost_usd)
    if usage.cost_usd is not None and usage.estimated_calls:
        plural = "" if usage.estimated_calls == 1 else "s"
        cost += f" ({usage.estimated_calls} call{plural} estimated)"
    parts.append(cost)
    return parts


def _short_count(tokens: int) -> str:
    """950, 12.3k, 1.2M."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1e3:.1f}k" if tokens < 999_950 else f"{tokens / 1e6:.1f}M"


_TASK_NOTES = {
    "gate": " (0 by the completeness gate)",
    "policy": " (0 by the breach policy)",
    "outputs": " (0 as no output counts)",
}


def totals(card: ScoreCardFields) -> tuple[str, str]:
    """Agentic and Overall: points, points on presumed criteria with their range, or ranges."""
    standing, presumed = card.standing, card.presumed > 0
    return (
        format_total(card.agentic, card.agentic_bounds, standing, presumed, 2, UNKNOWN),
        format_total(card.overall, card.overall_bounds, standing, presumed, 1, UNKNOWN),
    )


def _totals(card: ScoreCardFields) -> Section:
    agentic, overall = totals(card)
    is_point = card.standing != "open"
    overall_share = card.overall / 100 if card.overall is not None and is_point else None
    parts: list[Part] = [
        Text("Agentic ", "dim"),
        Value(agentic, card.agentic if is_point else None),
    ]
    # A run without a track has no Task, unless the user names an outcome that stands for it.
    if card.run.track is not None or card.task is not None:
        parts += [Text("   Task ", "dim"), Value(score_text(card.task), card.task)]
        if card.task_from in _TASK_NOTES:
            parts.append(Text(_TASK_NOTES[card.task_from], "dim"))
        parts += [Text("   Overall ", "dim"), Value(overall, overall_share)]
        low, high = card.overall_bounds
        range_is_in_total = card.standing != "read" and card.overall is not None
        if high - low > 0.05 and not range_is_in_total:
            parts += [Text(" [", "dim"), Bounds(low, high, digits=1), Text("]", "dim")]
        parts.append(Text(" of 100", "dim"))
    lines = [Line(tuple(parts))]
    if card.outcomes:
        lines.append(_outcomes(card))
    if card.status.ended == "running":
        lines.append(Line((Text(RUNNING, "unknown"),)))
    elif card.standing != "read":
        reason = standing_reasons({card.standing: 1}, card.read_share)[0]
        lines.append(Line((Text(reason, "unknown"),)))
    quotes, verified = card.quotes
    if verified < quotes or card.contradictions:
        proof = evidence_words(quotes, verified, len(card.contradictions))
        if card.policy.strict_evidence:
            proof += "; strict evidence: such verdicts do not count"
        lines.append(Line((Text(proof, "warn"),)))
    return Section("totals", "Totals", lines=tuple(lines))


def standing_reasons(
    runs: Mapping[Standing, int], share: float | None, has_ranges: bool = True
) -> list[str]:
    """Why scores of so many runs are ranges, or rest on presumed criteria.

    `share`: of the weight of the judged criteria (S1-S3), what was judged on average. `has_ranges`:
    ranges are shown.
    """
    judged = ""
    if share is not None:
        judged = f" ({share:.0%} of the weight of the criteria was judged)"
    reasons = []
    if count := runs.get("presumed"):
        subject = "the scores rest" if count == 1 else f"the scores of {count} runs rest"
        reasons.append(f"~  {subject} on presumed criteria{judged}")
    if count := runs.get("open"):
        subject = "the run has" if count == 1 else f"{count} runs have"
        ranges = "; the range covers every possible verdict" if has_ranges else ""
        reasons.append(
            f"{UNKNOWN}  {subject} too few judged criteria for a point score{judged}{ranges}"
        )
    return reasons


def evidence_words(quotes: int, verified: int, contradicted: int) -> str:
    """How many quotes were found in their runs, and how many verdicts facts contradict."""
    parts = [f"{verified} of {quotes} quotes found in the runs"] if quotes else []
    if contradicted:
        verdicts = "verdict" if contradicted == 1 else "verdicts"
        parts.append(f"{contradicted} {verdicts} contradicted by facts (!)")
    return "; ".join(parts)


_MAX_OUTCOMES = 16
"""Outcomes that a scorecard shows; the others are counted."""


def _outcomes(card: ScoreCardFields) -> Line:
    """What another harness says of the run."""
    parts: list[Part] = [Text(f"Outcomes of {card.imported or 'the run'}: ", "dim")]
    for number, (name, outcome) in enumerate(list(card.outcomes.items())[:_MAX_OUTCOMES]):
        value = outcome.value
        style = ""
        if isinstance(value, bool):
            style = "good" if value else "bad"
        parts += [Text(f"{', ' if number else ''}{name} "), Text(outcome_text(value), style)]
    if len(card.outcomes) > _MAX_OUTCOMES:
        parts.append(Text(f" and {len(card.outcomes) - _MAX_OUTCOMES} more", "dim"))
    return Line(tuple(parts))


# Stages and criteria.


def _stage(card: ScoreCardFields, name: str, criteria: Mapping[str, Criterion]) -> Section:
    stage = card.stages[name]
    low, high = stage.bounds
    head: list[Part] = [Value(score_text(stage.score, stage.presumed), stage.score)]
    if stage.method == "withheld":
        head = [Value("withheld", None), Text(": running ", "unknown"), Bounds(low, high)]
    elif stage.method == "not_applicable":
        head += [Text(" does not apply", "dim")]
    elif high - low > 0.005 or stage.score is None:
        head += [Text(" "), Bounds(low, high)]
    if stage.failure:
        # Another taxonomy than that of the error codes below.
        head += [Text(" harness ", "dim"), Name(stage.failure, "code")]
    lines = []
    if stage.method == "reported":
        states = "states no score" if stage.score is None else "states it"
        lines.append(Line((Text(f"as the harness's report {states}", "dim"),)))
    if stage.method == "policy":
        lines.append(Line((Text("0 by the breach policy", "warn"),)))
    if stage.cap is not None:
        lines.append(Line((Text(f"at most {stage.cap:g}: {stage.cap_reason}", "warn"),)))
    if stage.checks is not None:
        lines += _check_lines(card, name, stage.checks)
    items = tuple(
        criterion_item(result, criteria.get(result.id), card.rubric.titles.get(result.id, ""))
        for result in stage.criteria
    )
    if stage.method == "reported":
        items = tuple(replace(item, loses_points=False) for item in items)
    turns = tuple(index for index, label in enumerate(card.turn_stages, 1) if label == name)
    target = Target("stage", name, turns[:1])
    title = stage_title(name)
    return Section("stage", title, tuple(head), tuple(lines), items, key=name, target=target)


def criterion_mark(result: CriterionResult) -> Mark:
    """How a criterion turned out, as one sign; ~ before it where the value is presumed."""
    if result.status == "credited":
        return Mark("+", "good")
    if result.status == "not_applicable":
        return Mark("–", "dim")
    if result.value is None:
        return Mark("?", "unknown")
    if result.value >= 1:
        sign, style = "✓", "good"
    elif result.value <= 0:
        sign, style = "✗", "bad"
    else:
        sign, style = "½" if result.value == 0.5 else "◐", "warn"
    return Mark(f"~{sign}", "unknown") if result.status == "presumed" else Mark(sign, style)


def _state(result: CriterionResult) -> Part:
    """A criterion's value, or in words why it has none."""
    if result.status == "credited":
        return Text("credited", "good")
    if result.status == "not_applicable":
        return Text("does not apply", "dim")
    if result.value is None:
        reason = f" ({result.reason.replace('_', ' ')})" if result.reason else ""
        return Text(f"unscored{reason}", "unknown")
    presumed = "~" if result.status == "presumed" else ""
    return Value(presumed + value_text(result.value), result.value)


def criterion_target(result: CriterionResult) -> Target:
    """A criterion with the turns and quotes that its value rests on.

    A quote that was cited from another turn points to the turn that has it.
    """
    turns = tuple(evidence.actual_turn for evidence in result.evidence)
    quotes = tuple(evidence.quote for evidence in result.evidence)
    return Target("criterion", result.id, turns, quotes)


def criterion_item(result: CriterionResult, criterion: Criterion | None, title: str = "") -> Item:
    """A criterion with its verdict, reason and evidence; `criterion` adds what it asks."""
    if criterion is not None:
        title = criterion.title
    head: list[Part] = [criterion_mark(result), Text(" "), Name(result.id)]
    if title:
        head.append(Text(f" {title}"))
    if result.evidence:
        head.append(Text(f" {len(result.evidence)}★", "dim"))
    if any(evidence.check != "verified" for evidence in result.evidence):
        head.append(Text(" ≠", "bad"))
    reason = result.rationale or result.detail or "no reason given"
    whose = " (by facts)" if result.by == "facts" else ""
    details = [Line((_state(result), Text(f"{whose}: {reason}")), "reason")]
    if criterion is not None:
        for level in criterion.scale:
            if level.value == result.value and result.status in ("scored", "presumed"):
                text = f"{value_text(level.value)} means: {level.text}"
                details.append(Line((Text(text, "dim"),), "level"))
        details.append(Line((Text(criterion.text, "dim"),), "asks"))
    details += [Line((Quote(evidence),), "evidence") for evidence in result.evidence]
    for vote in result.votes:
        value = "unscored" if vote.value is None else value_text(vote.value)
        vote_reason = f" ({vote.reason.replace('_', ' ')})" if vote.reason else ""
        details.append(Line((Text(f"{vote.judge}: {value}{vote_reason}", "dim"),), "vote"))
    below_full = result.value is None or result.value < 1
    judged = result.status in ("scored", "presumed", "unscored") and result.reason != "running"
    target = criterion_target(result)
    return Item(
        result.id,
        tuple(head),
        tuple(details),
        target,
        loses_points=judged and below_full,
        summary=title or reason,
    )


def _check_lines(card: ScoreCardFields, name: str, checks: StageChecks) -> Iterator[Line]:
    """The facts about the outputs that S4 and S5 are scored from.

    S4 and S5 look at the same outputs. Where the scorecard has both, how many cases are complete
    is said at S4, and whether any result counts at S5.
    """
    other = card.stages.get({"S4": "S5", "S5": "S4"}.get(name, ""))
    is_alone = other is None or other.checks is None
    if name == "S4" or is_alone:
        yield from _completion_lines(checks)
    if checks.has_valid_results is not None and (name == "S5" or is_alone):
        yield _check(checks.has_valid_results, "some results count", "no result counts")
    if checks.format_valid is not None:
        yield _check(checks.format_valid, "format valid", "format invalid")
    yield from (Line((Text(cap, "warn"),)) for cap in checks.caps)
    if checks.source:
        yield Line((Text(f"from the {checks.source}", "dim"),))


def _completion_lines(checks: StageChecks) -> Iterator[Line]:
    if checks.completion is not None:
        parts: list[Part] = [Text("completion "), _share(checks.completion)]
        if checks.complete_cases is not None:
            expected = checks.expected_cases
            total = "an unknown number of" if expected is None else expected
            parts.append(Text(f" ({checks.complete_cases} of {total} cases)"))
        yield Line(tuple(parts))
    if checks.parse_rate is not None:
        yield Line((Text("parse rate "), _share(checks.parse_rate)))
    if checks.placeholder_rate is not None:
        # A high share is bad here: no grade, which would colour it good.
        yield Line((Text(f"placeholder answers {score_text(checks.placeholder_rate)}"),))
    if checks.model_call_found is not None:
        yield _check(checks.model_call_found, "model call found", "no model call found")


def _share(value: float) -> Value:
    return Value(score_text(value), value)


def _check(holds: bool, if_true: str, if_false: str) -> Line:
    if holds:
        return Line((Mark("✓", "good"), Text(f" {if_true}")))
    return Line((Mark("✗", "bad"), Text(f" {if_false}")))


def _file_problems(card: ScoreCardFields) -> tuple[Line, ...]:
    """What is wrong with the delivered files, each once: S4 and S5 look at the same ones."""
    problems = dict.fromkeys(
        problem
        for stage in card.stages.values()
        if stage.checks is not None
        for problem in stage.checks.problems
    )
    return tuple(Line((Mark("✗", "bad"), Text(f" {problem}"))) for problem in problems)


# Codes, promises, contradictions, failed steps, facts.


def _codes(card: ScoreCardFields) -> Section:
    head: tuple[Part, ...] = ()
    if card.primary_failure:
        text = f" (the paper's; primary failure by the harness's codes {card.primary_failure})"
        head = (Text(text, "dim"),)
    return Section(
        "codes",
        "Error codes",
        head,
        lines=() if card.codes else (Line((Text("none fired", "dim"),)),),
        items=tuple(item for item, _ in code_entries(card.codes)),
        notes=tuple(codes_not_fired(card.codes_read)),
    )


_READING_WORDS = {
    "absent": "absent",
    "cannot_tell": "cannot tell",
    "not_read": "not read",
    "withheld": "withheld: running",
}


def codes_not_fired(codes_read: Mapping[str, str], unread_reason: str = "") -> Iterator[Line]:
    """Codes that did not fire, one line for each thing that can be known of them: `E2, E4: absent`.

    `unread_reason` says why some are not read.
    """
    for state, words in _READING_WORDS.items():
        codes = [code for code in sorted(codes_read) if codes_read[code] == state]
        if not codes:
            continue
        reason = f" ({unread_reason})" if unread_reason and state == "not_read" else ""
        style = "dim" if state == "absent" else "unknown"
        yield Line((Text(f"{', '.join(codes)}: ", "dim"), Text(words + reason, style)))


def code_target(code: FiredCode, number: int, *, proven: bool = True) -> Target:
    """Where a code leads to: its turns, with the quoted words in the one that holds them.

    `number` is its place among the scorecard's codes, or its readings without proof.
    """
    quotes = tuple(_quote_in(code.quote, turn) for turn in code.turns)
    prefix = "" if proven else "?"
    return Target("code", f"{prefix}{code.code}.{number}", code.turns, quotes)


def supports(codes: Sequence[FiredCode]) -> dict[int, int]:
    """Of each code that is another support of an earlier one, the place of that one.

    A reading says the same as a finding of a detector that names the code, too, for one of its
    turns.
    """
    same: dict[int, int] = {}
    for place, code in enumerate(codes):
        is_reading = code.by.startswith("judge:")
        for other_place, other in enumerate(codes):
            is_other_kind = other.by.startswith("judge:") != is_reading
            shares_turns = bool(set(code.turns) & set(other.turns))
            if is_reading and is_other_kind and other.code == code.code and shares_turns:
                same[place] = other_place
                break
    return same


def code_entries(codes: Sequence[FiredCode]) -> Iterator[tuple[Item, tuple[FiredCode, ...]]]:
    """An item for each code, with all that supports it: a finding and readings of the same thing
    are one item."""
    same = supports(codes)
    readings: dict[int, list[int]] = {}
    for reading, finding in same.items():
        readings.setdefault(finding, []).append(reading)
    for place, code in enumerate(codes):
        if place in same:
            continue
        item = code_item(code, place)
        own_readings = tuple(codes[reading] for reading in readings.get(place, ()))
        for reading_of_code in own_readings:
            item = _with_reading(item, code, reading_of_code)
        yield item, (code, *own_readings)


def _with_reading(item: Item, finding: FiredCode, reading: FiredCode) -> Item:
    """The line of a finding with what a judge read of the same thing."""
    quote = reading.quote
    turns = tuple(sorted({*finding.turns, *reading.turns}))
    target = Target("code", item.id, turns, tuple(_quote_in(quote, turn) for turn in turns))
    said = Line((Text(f"{reading.by} reads: ", "dim"), Text(reading.why)), "reading")
    details = (said, *code_item(reading).details, *item.details)
    return replace(item, details=details, target=target)


def _quote_in(quote: Evidence | None, turn: int) -> str:
    return quote.quote if quote is not None and quote.actual_turn == turn else ""


def code_item(code: FiredCode, number: int = 0, *, proven: bool = True) -> Item:
    """A code with its turns and reason, and the words and facts that a reading of it rests on."""
    target = code_target(code, number, proven=proven)
    head: list[Part] = [
        Name(code.code, "code" if proven else "unknown"),
        Text(f" {code.stage} ", "dim"),
        Turns(code.turns),
        Text(f": {code.why}"),
    ]
    if code.independence == "from_score":
        # Such a code says nothing new about a score that is low.
        head.append(Text(" (read from the score)", "dim"))
    details = []
    if code.quote is not None:
        details.append(Line((Quote(code.quote),), "evidence"))
    if code.facts:
        details.append(Line((Text("facts of the record: ", "dim"), *_fact_names(code)), "facts"))
    origin = (
        f"{code.by} · {code.independence.replace('_', ' ')} · confidence"
        f" {score_text(code.confidence)} · {code.taxonomy}"
    )
    details.append(Line((Text(origin, "dim"),), "origin"))
    return Item(target.id, tuple(head), tuple(details), target, summary=code.why)


def _fact_names(code: FiredCode) -> Iterator[Part]:
    for number, fact in enumerate(code.facts):
        if number:
            yield Text(", ")
        yield Name(fact)


PROMISE_MARKS = {
    "kept": Mark("✓", "good"),
    "broken": Mark("✗", "bad"),
    "dropped": Mark("–", "warn"),
}


def plan_item(promise: PlanItem, number: int = 0) -> Item:
    """A commitment of the plan with its fate and the words that show it."""
    quote = promise.quote
    head: list[Part] = [
        PROMISE_MARKS[promise.state],
        Text(f" {promise.state:<8}", "dim"),
        Text(promise.commitment),
    ]
    if promise.turns:
        head += [Text(" (", "dim"), Turns(promise.turns), Text(")", "dim")]
    if quote is None or quote.check == "not_found":
        head.append(Text(" ≠ quote not found", "bad"))
    details = () if quote is None else (Line((Quote(quote),), "evidence"),)
    turns = promise.turns
    if not turns and quote is not None:
        turns = (quote.actual_turn,)
    target = Target("plan", f"p{number}", turns, tuple(_quote_in(quote, turn) for turn in turns))
    return Item(target.id, tuple(head), details, target, summary=promise.commitment)


def _contradiction(contradiction: Contradiction, number: int) -> Item:
    head: list[Part] = [
        Mark("!", "bad"),
        Text(" "),
        Name(contradiction.criterion),
        Text(f": {contradiction.fact}"),
    ]
    if contradiction.turns:
        head += [Text(" (", "dim"), Turns(contradiction.turns), Text(")", "dim")]
    target = Target("contradiction", f"!{number}", contradiction.turns)
    return Item(target.id, tuple(head), target=target)


def episode_item(episode: EpisodeInfo, number: int = 0) -> Item:
    """A failed step: where, what went wrong, how often it was tried, how it ended."""
    attempts = f"{episode.attempts} attempt{'' if episode.attempts == 1 else 's'}"
    turns = episode.turns
    mark, end = Mark("✗", "bad"), "never worked"
    if episode.resolved_at is not None:
        mark, end = Mark("✓", "good"), f"worked in turn {episode.resolved_at}"
        turns += (episode.resolved_at,)
    head = (
        mark,
        Text(f" {episode.stage} ", "dim"),
        Turns(episode.turns),
        Text(f": {episode.cause} ({attempts}, {end})"),
    )
    target = Target("episode", f"x{number}", turns)
    return Item(target.id, head, target=target)


_FACT_SOURCES = {
    "file": "delivered files",
    "exit": "exit codes",
    "harness": "the harness",
    "trace": "the trace",
}


def _cited_ids(card: ScoreCardFields) -> set[str]:
    return {fact_id for code in (*card.codes, *card.unproven) for fact_id in code.facts}


def _bare_facts(card: ScoreCardFields) -> Section:
    """Facts that speak for themselves: no code names them, and they are no judge's reading."""
    cited = _cited_ids(card)
    items = tuple(fact_item(fact) for fact in card.facts if fact.id not in cited)
    return Section("bare_facts", "Facts beside the verdicts", items=items)


def fact_item(fact: FactInfo) -> Item:
    """A fact with its turns."""
    head: list[Part] = [Name(fact.id), Text(f" {fact.text}")]
    if fact.turns:
        head += [Text(" (", "dim"), Turns(fact.turns), Text(")", "dim")]
    target = Target("fact", fact.id, fact.turns) if fact.turns else None
    return Item(fact.id, tuple(head), target=target, summary=fact.text)


def _cited_facts(card: ScoreCardFields) -> Section:
    cited = _cited_ids(card)
    facts = [fact for fact in card.facts if fact.id in cited]
    counts = Counter(fact.source for fact in facts)
    sources = ", ".join(
        f"{count} from {_FACT_SOURCES[source]}" for source, count in counts.most_common()
    )
    items = tuple(fact_item(fact) for fact in facts)
    return Section("facts", "Facts that codes rest on", (Text(f": {sources}"),), items=items)


def mark_legend(sections: Sequence[Section]) -> str:
    """What the marks of the criteria in these sections mean."""
    signs = {
        sign
        for section in sections
        if section.kind == "stage"
        for item in section.items
        if item.mark is not None
        for sign in item.mark.text
    }
    return " · ".join(f"{sign} {text}" for sign, text in MARK_MEANINGS.items() if sign in signs)
