"""The rules judge: S1-S3 criteria that can be answered without reading a sentence.

It is the default judge. A rule gives a value where what was executed, delivered and counted speaks
for it, and quotes the turns that show it. Every other criterion is `unscored` with the reason
`not_read`: it takes a judge that reads. (`card.presumed` fills such a criterion in a scorecard
meanwhile.)

Some rulings are proofs: files, exit codes or the harness leave no other value possible, whatever
the programs of the run mean. `facts.decided` scores criteria by these alone, under every judge.

rules.yaml binds each rule to criteria of the shipped rubrics (`rubrics.bindings`), and says which
of them a proof decides, and in which direction.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from ...package_data import read_package_yaml
from ...rubrics.bindings import Binding, BindingKey, binding_key
from ...rubrics.model import Criterion
from ...tracks import TRACKS
from ...trajectories.models import Action, ActionKind, Run, Turn
from ...trajectories.record.facts import FactSource
from ...trajectories.record.quotes import PLAN_TURN, Evidence, QuoteIndex
from ...trajectories.turns.failures import Failure, Family, failures
from ...trajectories.turns.features import features
from ...trajectories.turns.turn_features import TurnFeatures
from ..base import Reply, Request
from ..card.fields import RULES as RULES
from ..card.stage_results import CriterionResult
from ..checks.check_outputs import OutputCheck, check_outputs
from ..scoring.formulas import PLACEHOLDER_DOMINATED, PLACEHOLDER_LIMIT

VERSION = "9"
"""Part of every verdict's key: raise it when a rule or its binding changes, so that stored verdicts
of the old rules go stale."""
MAX_ENVIRONMENT_FAILURES = 5
"""S2d is 0 if more executions than this failed because of the environment."""
MIN_FAILURE_CONFIDENCE = 0.6
"""A failure with less confidence is a hint only and does not count."""
MAX_SINGLED_OUT_CASES = 2
"""A turn that names at most this many cases may have tried the pipeline on them; a turn that lists
the inputs names more."""
NOTHING_EXECUTED = "No call of the run executed any code or command."
"""As the facts of the record say it (`error_codes.trace_facts`)."""
MAX_QUOTE_CHARS = 160
MAX_EVIDENCE = 4
BINDINGS_FILE = Path(__file__).with_name("rules.yaml")


_PNG_HEADER = re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR(?!\0{4}).{4}(?!\0{4}).{4}", re.DOTALL)
"""The beginning of a PNG file with a width and a height above 0."""
_NOT_EXECUTING: frozenset[ActionKind] = frozenset({"write", "edit", "todo", "submit"})
"""Calls that certainly execute nothing; any other one may."""
_SURE_FAMILIES: frozenset[Family] = frozenset({"package", "device", "memory", "disk", "network"})
"""Failures that are the environment's whatever the agent's own code is. A path, a permission or a
model that cannot be read may be a mistake of that code."""
_SURE_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Ruling:
    """What a rule says: a value on the criterion's scale, the reason, and quotes that show it."""

    value: float
    rationale: str
    evidence: tuple[Evidence, ...] = ()
    proof: FactSource | None = None
    """What leaves no other value possible, for those criteria that rules.yaml lets it decide. None:
    the ruling rests on what programs seem to do, so that a reader may see more."""


class RulesJudge:
    """Judge by facts alone: the same run and public inputs always give the same reply.

    It never raises for a run.
    """

    name = RULES
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None

    def __init__(self) -> None:
        self._last_facts: RuleFacts | None = None

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {"version": VERSION}

    def evidence_sha256(self, request: Request) -> str:
        """Hash of what rules can read: the run's sources, and the share of placeholder answers."""
        run = request.run
        parts = [VERSION, run.content_sha256, run.track or "", run.tier or "", request.question]
        track = TRACKS.find(request.rubric.track)
        if request.question == "S3" and track is not None and track.output == "answers":
            checks = self._facts_of(request).output_check.s4_checks
            parts.append(repr(checks.placeholder_rate))
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    async def judge(self, request: Request) -> Reply:
        """Give a verdict on each requested criterion, in the order of the request."""
        facts = self._facts_of(request)
        return Reply(results=tuple(_verdict(criterion, facts) for criterion in request.criteria))

    def _facts_of(self, request: Request) -> RuleFacts:
        # S1, S2 and S3 of one run are judged in a row, so the facts of the last run are reused.
        facts = self._last_facts
        if facts is None or facts.run is not request.run or facts.public != request.public:
            facts = RuleFacts(request.run, request.public, request.check)
            self._last_facts = facts
        return facts


class BoundRule(NamedTuple):
    """A rule in a row of rules.yaml."""

    name: str
    binding: Binding
    decides: frozenset[float]
    """The values that a proof by this rule decides these criteria with: 1 (met), 0 (not met)."""

    @property
    def rule(self) -> Rule:
        return RULES_BY_NAME[self.name]


def rule_for(criterion: Criterion) -> Rule | None:
    """The rule for this criterion; None if rules.yaml binds none to its words and meaning."""
    bound = bound_rule(criterion)
    return None if bound is None else bound.rule


def bound_rule(criterion: Criterion) -> BoundRule | None:
    """The row of rules.yaml about this criterion, by its words and meaning; None without one."""
    return _rules_by_key().get(binding_key(criterion))


_DIRECTIONS = {"met": 1.0, "not_met": 0.0}


def bindings() -> list[BoundRule]:
    """Every row of rules.yaml."""
    rows_by_rule = read_package_yaml(BINDINGS_FILE)
    return [
        BoundRule(
            rule_name,
            Binding.from_row(row),
            frozenset(_DIRECTIONS[direction] for direction in row.get("decides", ())),
        )
        for rule_name, rows in rows_by_rule.items()
        for row in rows
    ]


@cache
def _rules_by_key() -> Mapping[BindingKey, BoundRule]:
    rules: dict[BindingKey, BoundRule] = {}
    for bound in bindings():
        rules.update(dict.fromkeys(bound.binding.bound_keys(), bound))
    return rules


def _verdict(criterion: Criterion, facts: RuleFacts) -> CriterionResult:
    rule = rule_for(criterion)
    if rule is None:
        reason = "no rule was written for this criterion; it takes a judge that reads"
        return CriterionResult.unscored(criterion.id, "not_read", reason)
    ruling = rule(facts)
    if ruling is None:
        reason = "no fact decides it; it takes a judge that reads"
        return CriterionResult.unscored(criterion.id, "not_read", reason)
    return CriterionResult(
        id=criterion.id,
        value=ruling.value,
        status="scored",
        rationale=ruling.rationale,
        evidence=ruling.evidence[:MAX_EVIDENCE],
    )


@dataclass
class RuleFacts:
    """The facts of one run that rules rest on, each computed once."""

    run: Run
    public: Path | None = None
    """Public inputs of the benchmark, where there are any."""
    opened: OutputCheck | None = None
    """The check of the delivered files, if it was made already."""

    @cached_property
    def _quotes(self) -> QuoteIndex:
        return QuoteIndex(self.run)

    @cached_property
    def output_check(self) -> OutputCheck:
        """The check of the delivered files."""
        return self.opened or check_outputs(self.run, public=self.public)

    @cached_property
    def executions(self) -> tuple[TurnFeatures, ...]:
        """Turns that executed something, in order."""
        return tuple(turn for turn in features(self.run) if turn.executed)

    @cached_property
    def successes(self) -> tuple[TurnFeatures, ...]:
        """Executions in which nothing failed, was blocked or remained without an answer."""
        turns = self.run.turns
        return tuple(
            execution
            for execution in self.executions
            if not execution.failed and _succeeded(turns[execution.turn - 1])
        )

    @cached_property
    def full_runs(self) -> tuple[TurnFeatures, ...]:
        """Successful executions that ran the pipeline over all cases."""
        return tuple(
            turn for turn in self.successes if turn.cases_scope == "all" and _runs_pipeline(turn)
        )

    @cached_property
    def before_full_run(self) -> tuple[TurnFeatures, ...]:
        """Successful executions before the last full run; empty if there was no full run."""
        if not self.full_runs:
            return ()
        last_turn = self.full_runs[-1].turn
        return tuple(turn for turn in self.successes if turn.turn < last_turn)

    @cached_property
    def pilots(self) -> tuple[TurnFeatures, ...]:
        """Turns that ran the pipeline on one or a few cases before the first full run."""
        return tuple(
            turn
            for turn in self.before_full_run
            if turn.turn < self.full_runs[0].turn
            and turn.cases_scope in ("one", "few")
            and _runs_pipeline(turn)
        )

    @cached_property
    def environment_failures(self) -> tuple[Failure, ...]:
        """Failures because of packages, downloads, devices, memory, disk or network."""
        return tuple(
            failure
            for failure in failures(self.run)
            if failure.environment and failure.confidence >= MIN_FAILURE_CONFIDENCE
        )

    @cached_property
    def executing_calls(self) -> Mapping[tuple[int, int], Action]:
        """Every call that may have executed something, by turn and its number in the turn."""
        return {
            (turn.index, number): action
            for turn in self.run.turns
            for number, action in enumerate(turn.actions)
            if action.kind not in _NOT_EXECUTING
        }

    @property
    def nothing_executed(self) -> bool:
        """Whether no call of the run can have executed anything."""
        return not self.executions and not self.executing_calls

    @property
    def everything_failed(self) -> bool:
        """Whether something was executed, and each such call was answered as failed.

        That is by its exit code, or by the harness: a time limit, a block.
        """
        calls = self.executing_calls.values()
        return bool(calls) and all(action.failed for action in calls)

    @cached_property
    def possible_failures(self) -> int:
        """How many executions may have failed for any reason: all but those that ended well and
        whose output has no trace of an error."""
        with_error = {(failure.turn, failure.action) for failure in failures(self.run)}
        return sum(
            not _ended_well(action) or place in with_error
            for place, action in self.executing_calls.items()
        )

    @cached_property
    def certain_environment_failures(self) -> int:
        """How many executions failed, and certainly because of the environment."""
        calls = self.executing_calls
        return sum(
            failure.family in _SURE_FAMILIES
            and failure.confidence >= _SURE_CONFIDENCE
            and _has_failed(calls.get((failure.turn, failure.action)))
            for failure in self.environment_failures
        )

    def names(self, name: str) -> bool:
        """Whether a call that may have had an effect names this file, anywhere."""
        return any(
            name in f"{action.code}\n{action.path}\n{action.arguments}".lower()
            for _, action in self.run.actions()
            if not action.failed
        )

    def quote_turns(self, turns: Iterable[int]) -> tuple[Evidence, ...]:
        """A quote from each turn: the last line of its output, else the first line of its code.

        Turn 0 is the plan. Turns without a quotable line are left out.
        """
        quotes = [self._quote(turn) for turn in dict.fromkeys(turns)]
        return tuple(quote for quote in quotes if quote is not None)

    def quote_failure(self, failure: Failure) -> Evidence | None:
        """The failure's message as a quote from its turn; None if the turn does not contain it."""
        return self._verified(failure.turn, failure.message[:MAX_QUOTE_CHARS])

    def _quote(self, number: int) -> Evidence | None:
        if number == PLAN_TURN:
            lines = (self.run.plan.text or "").splitlines()
        else:
            turn = self.run.turns[number - 1]
            lines = [*reversed(turn.output.splitlines()), *turn.code.splitlines()]
        for line in lines:
            quote = line.strip()[:MAX_QUOTE_CHARS].strip()
            if any(char.isalnum() for char in quote):
                return self._verified(number, quote)
        return None

    def _verified(self, turn: int, quote: str) -> Evidence | None:
        evidence = self._quotes.check(turn, quote)
        return evidence if evidence.check == "verified" else None


Rule = Callable[[RuleFacts], Ruling | None]
"""A rule returns None where facts do not decide the criterion."""


def _ended_well(action: Action) -> bool:
    return action.observation is not None and action.observation.kind == "ok"


def _has_failed(action: Action | None) -> bool:
    if action is None or action.observation is None:
        return False
    return action.observation.kind == "failed"


def _is_picture(path: Path) -> bool:
    """Whether a file begins like a PNG of some size."""
    try:
        with path.open("rb") as file:
            return _PNG_HEADER.match(file.read(24)) is not None
    except OSError:
        return False


def _succeeded(turn: Turn) -> bool:
    return not turn.failed and all(action.observation is not None for action in turn.actions)


def _runs_pipeline(turn: TurnFeatures) -> bool:
    """Whether a model was applied to a case, or files of the deliverable were written."""
    return turn.forward_pass or turn.writes_outputs


def _first(turns: Iterable[TurnFeatures]) -> TurnFeatures | None:
    return next(iter(turns), None)


def _met(facts: RuleFacts, rationale: str, *turns: TurnFeatures) -> Ruling:
    """Value 1, with a quote from each of these turns."""
    return Ruling(1.0, rationale, facts.quote_turns(turn.turn for turn in turns))


def nothing_ran(facts: RuleFacts) -> Ruling | None:
    """0 if no execution succeeded: the criterion takes one that worked.

    That is a proof only where nothing was executed at all: a program that failed in the end may
    have done, before that, what the criterion asks for.
    """
    if facts.nothing_executed:
        return Ruling(0.0, NOTHING_EXECUTED, proof="trace")
    if facts.successes:
        return None
    first_attempts = facts.executions[:2]
    return Ruling(
        0.0,
        "No execution of the run succeeded.",
        facts.quote_turns(turn.turn for turn in first_attempts),
    )


def plan_exists(facts: RuleFacts) -> Ruling:
    """plan.md came with the run, or an execution that did not fail wrote it.

    Its text proves that it came, and so does the exit code 0 of the call that wrote it; that no
    call names it proves that there is none.
    """
    plan = facts.run.plan
    if not plan.exists:
        return Ruling(
            0.0,
            "No plan.md came with the run and no execution that succeeded wrote one.",
            proof=None if facts.names("plan.md") else "file",
        )
    quotes = facts.quote_turns([PLAN_TURN])
    if plan.source == "file":
        has_text = bool((plan.text or "").strip())
        return Ruling(1.0, "plan.md came with the run.", quotes, "file" if has_text else None)
    ended_well = plan.turn is not None and all(
        _ended_well(action) for action in facts.run.turn(plan.turn).actions
    )
    reason = "plan.md was written by an execution that succeeded."
    return Ruling(1.0, reason, quotes, "exit" if ended_well else None)


def plan_image_exists(facts: RuleFacts) -> Ruling:
    """plan.png came with the run, or an execution that did not fail saved it.

    The picture proves that it came; that no call names it proves that there is none. What a program
    that names it saves takes a reader.
    """
    plan = facts.run.plan
    if not plan.image_exists:
        return Ruling(
            0.0,
            "No plan.png came with the run and no execution that succeeded saved one.",
            proof=None if facts.names("plan.png") else "file",
        )
    quotes = facts.quote_turns([plan.image_turn] if plan.image_turn else [])
    if plan.image_path is None:
        return Ruling(1.0, "plan.png was saved by an execution that succeeded.", quotes)
    proof: FactSource | None = "file" if _is_picture(plan.image_path) else None
    return Ruling(1.0, "plan.png came with the run.", quotes, proof)


def weights_obtained(facts: RuleFacts) -> Ruling | None:
    """An execution downloads or loads weights, and a model runs.

    Whether a method without weights meets the criterion takes a reader.
    """
    loads = _first(t for t in facts.successes if t.has("obtains_weights", "loads_model"))
    applies = _first(t for t in facts.successes if t.forward_pass)
    if loads is None or applies is None:
        return nothing_ran(facts)
    rationale = f"Weights were obtained or loaded in turn {loads.turn}, and a model ran."
    return _met(facts, rationale, loads, applies)


def environment_works(facts: RuleFacts) -> Ruling | None:
    """The pipeline's own code ran, so what it needs was installed.

    That everything failed proves that it was not.
    """
    if facts.everything_failed:
        attempts = facts.quote_turns(turn.turn for turn in facts.executions[:2])
        return Ruling(0.0, "No execution of the run succeeded.", attempts, "exit")
    working = _first(t for t in facts.successes if _runs_pipeline(t) or t.loads_model)
    if working is None:
        return nothing_ran(facts)
    rationale = f"The pipeline's own code ran in turn {working.turn} without failing."
    return _met(facts, rationale, working)


def few_environment_failures(facts: RuleFacts) -> Ruling:
    """At most five executions failed because of the environment.

    That is packages, downloads, devices, memory, disk or network. It is a proof where the count is
    on the same side of the limit whatever the reasons of the failures are.
    """
    failed = facts.environment_failures
    quotes = [facts.quote_failure(failure) for failure in failed[:MAX_EVIDENCE]]
    verified = tuple(quote for quote in quotes if quote is not None)
    proof: FactSource | None = None
    if len(failed) > MAX_ENVIRONMENT_FAILURES:
        if facts.certain_environment_failures > MAX_ENVIRONMENT_FAILURES:
            proof = "exit"
        rationale = f"{len(failed)} executions failed because of the environment, more than five."
        return Ruling(0.0, rationale, verified, proof)
    if facts.nothing_executed:
        return Ruling(0.0, NOTHING_EXECUTED, proof="trace")
    if not facts.executions:
        return Ruling(0.0, "Nothing was executed, so no environment was set up.")
    working = facts.quote_turns(turn.turn for turn in facts.successes[:1])
    quotes_shown = (*working, *verified[:3])
    if facts.successes and facts.possible_failures <= MAX_ENVIRONMENT_FAILURES:
        total = len(facts.executing_calls)
        failed_at_most = facts.possible_failures or "None"
        rationale = f"{failed_at_most} of {total} executions failed or printed an error."
        return Ruling(1.0, rationale, quotes_shown, "exit")
    rationale = f"{len(failed) or 'No'} executions failed because of the environment."
    return Ruling(1.0, rationale, quotes_shown)


def model_works(facts: RuleFacts) -> Ruling | None:
    """A model was applied in an execution that succeeded.

    Whether a classical method meets the criterion takes a reader.
    """
    applications = [turn for turn in facts.successes if turn.forward_pass]
    if not applications:
        return nothing_ran(facts)
    on_real_input = [turn for turn in applications if not turn.dummy_forward]
    rationale = f"A model was applied in turn {applications[0].turn} without failing."
    return _met(facts, rationale, applications[0], *on_real_input[:1])


def answers_by_model(facts: RuleFacts) -> Ruling | None:
    """Like `model_works`, but 0 if the check of the outputs found no successful model call."""
    return _no_model_call(facts) or model_works(facts)


def assets_of_model(facts: RuleFacts) -> Ruling | None:
    """Like `weights_obtained`, but 0 if the check of the outputs found no successful model call."""
    return _no_model_call(facts) or weights_obtained(facts)


def _no_model_call(facts: RuleFacts) -> Ruling | None:
    if facts.output_check.s4_checks.model_call_found is not False:
        return None
    return Ruling(0.0, "No execution that succeeded loads a model and calls it.")


def no_pilot(facts: RuleFacts) -> Ruling | None:
    """0 if nothing that could be a pilot came before the full run.

    How much a pilot validated takes a reader.
    """
    if not facts.full_runs:
        return nothing_ran(facts)
    if any(_may_be_pilot(turn) for turn in facts.before_full_run):
        return None
    first_turn = facts.full_runs[0].turn
    rationale = (
        f"No execution before the run over all cases (turn {first_turn}) applied the pipeline or"
        " looked at a single case."
    )
    return Ruling(0.0, rationale, facts.quote_turns([first_turn]))


def _may_be_pilot(turn: TurnFeatures) -> bool:
    return (
        _runs_pipeline(turn)
        or turn.has("dummy_forward", "loads_model")
        or 0 < len(turn.cases) <= MAX_SINGLED_OUT_CASES
    )


def answers_piloted(facts: RuleFacts) -> Ruling | None:
    """S3 of vqa: 0 if placeholders dominate the answers, at most 0.2 if there are some of them.

    What the delivered answers say of themselves proves that they are placeholders.
    """
    checks = facts.output_check.s4_checks
    rate = checks.placeholder_rate
    if rate is not None and rate > PLACEHOLDER_DOMINATED:
        source: FactSource = "file" if checks.source == "files" else "harness"
        reason = f"{rate:.0%} of the delivered answers are placeholders."
        return Ruling(0.0, reason, proof=source)
    no_model_call = _no_model_call(facts)
    if no_model_call is not None:
        return no_model_call
    if rate is not None and rate > PLACEHOLDER_LIMIT and facts.pilots:
        rationale = (
            f"{rate:.0%} of the delivered answers are placeholders, more than"
            f" {PLACEHOLDER_LIMIT:.0%}."
        )
        return Ruling(0.2, rationale, facts.quote_turns([facts.pilots[0].turn]))
    return nothing_ran(facts)


def pilot_first(facts: RuleFacts) -> Ruling | None:
    """S3a of reports: a run on one or a few cases succeeded before the run over all of them."""
    if not facts.pilots:
        return no_pilot(facts)
    pilot = facts.pilots[0]
    rationale = f"The pipeline ran on few cases in turn {pilot.turn}, before the full run."
    return _met(facts, rationale, pilot)


def pilot_writes(facts: RuleFacts) -> Ruling | None:
    """S3c of reports: the pilot wrote deliverables."""
    writing_pilot = _first(turn for turn in facts.pilots if turn.writes_outputs)
    if writing_pilot is None:
        return nothing_ran(facts)
    rationale = f"The pilot of turn {writing_pilot.turn} wrote its output."
    return _met(facts, rationale, writing_pilot)


def reports_delivered(facts: RuleFacts) -> Ruling | None:
    """S2a and S2e of reports: a case has a report.txt, and a successful execution wrote outputs.

    If no tool that writes files names it, executed code must have written it.
    """
    reports = [
        file
        for file in facts.run.outputs.files
        if file.case is not None and file.name == "report.txt"
    ]
    writer = _first(turn for turn in facts.successes if turn.writes_outputs)
    if not reports or writer is None:
        return nothing_ran(facts)
    ruling = _met(facts, f"{reports[0].case}/{reports[0].name} was delivered.", writer)
    by_tool = any(
        "report.txt" in f"{action.path}\n{action.arguments}".lower()
        for _, action in facts.run.actions()
        if action.kind in ("write", "edit")
    )
    has_text = any(file.size > 0 for file in reports)
    return replace(ruling, proof="file" if has_text and not by_tool else None)


RULES_BY_NAME: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        plan_exists,
        plan_image_exists,
        weights_obtained,
        environment_works,
        few_environment_failures,
        model_works,
        answers_by_model,
        assets_of_model,
        no_pilot,
        answers_piloted,
        pilot_first,
        pilot_writes,
        reports_delivered,
        nothing_ran,
    )
}
"""Rules by the names under which rules.yaml binds them."""
